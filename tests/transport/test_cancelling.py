"""A cancelled request gives its connection back whole, or closes it. The full count is a command: see there."""

import anyio
import pytest

from tests.transport.cancelling import storm

pytestmark = pytest.mark.anyio


async def test_after_many_cancels_every_place_is_free_and_no_answer_was_mixed_up() -> None:
    with anyio.fail_after(600):
        work = await storm(count=100, seed=1)
    assert work.cancelled >= 100
    assert work.whole > 10
