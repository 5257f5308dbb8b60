"""What one more turn costs does not depend on how long the conversation is: counted in steps, not in time."""

import sys
from types import FrameType

import pytest

from actors.core.dialects.profiles import PROFILES
from actors.core.transcript.projection import mint
from benchmarks.workload import Live

SHORT, LONG = 100, 2000


def steps_of_one_more_turn(name: str, messages: int) -> int:
    """Return how many functions run, ours and the interpreter's, to append a turn and make its request."""
    live = Live(name, name, messages)
    live.next()
    for _ in range(2):  # what is made once, on first use, is not what a turn costs
        live.append(live.author.turn())
        live.next()
    live.append(live.author.turn())
    mint.cache_clear()  # sessions number their calls alike, and the first of them pays for the ids of all
    count = 0

    def called(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        live.next()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.long
@pytest.mark.parametrize("name", PROFILES)
def test_one_more_turn_takes_no_more_steps_in_a_long_conversation(name: str) -> None:
    short, long = (steps_of_one_more_turn(name, messages) for messages in (SHORT, LONG))
    assert 100 < long <= short * 1.1
