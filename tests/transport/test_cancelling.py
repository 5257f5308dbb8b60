"""A cancelled request returns its connection intact or closes it. `tests.transport.cancelling` has the full count."""

import anyio
import pytest

from tests.transport.cancelling import storm

pytestmark = pytest.mark.anyio


async def test_many_cancellations_free_every_connection_slot_and_mix_up_no_answers() -> None:
    with anyio.fail_after(600):
        work = await storm(count=100, seed=1)
    assert work.cancelled >= 100
    assert work.whole > 10
