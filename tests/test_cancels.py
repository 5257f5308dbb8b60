"""Cancels at random moments (`python -m tests.cancels` does so 1,000 times, and prints how long they took)."""

import anyio
import pytest

from tests.cancels import FRESH, PHASES, Storm

pytestmark = pytest.mark.anyio


@pytest.mark.long
@pytest.mark.requirement("PROMISE-10", "PROMISE-9", "REQ-915-034")
async def test_after_cancels_at_random_moments_every_call_is_closed_and_fifty_fresh_requests_are_served() -> (
    None
):
    storm = Storm(60, seed=3)
    with anyio.fail_after(300):
        outcome = await storm.run()
    assert outcome.problems == []
    assert (outcome.open_calls, outcome.fresh) == (0, FRESH)
    assert set(outcome.seconds) == set(PHASES)
    assert outcome.ends["cancelled"] > outcome.ends["complete"]
    assert sum(outcome.ends.values()) == 60
