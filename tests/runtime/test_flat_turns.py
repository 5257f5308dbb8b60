"""The cost of one more turn does not depend on the length of the conversation, counted in function calls."""

import sys
from types import FrameType

import pytest

from actors.core.dialects.profiles import PROFILES
from actors.core.transcript.transcript import mint
from benchmarks.workload import LiveConversation

SHORT, LONG = 100, 2000


def steps_of_one_more_turn(name: str, messages: int) -> int:
    """Return the number of function calls, ours and built-in, to append a turn and build its request."""
    live = LiveConversation(name, name, messages)
    live.next_request()
    for _ in range(2):  # the first turns also initialise caches
        live.append(live.author.turn())
        live.next_request()
    live.append(live.author.turn())
    mint.cache_clear()  # sessions use equal call ids, and the first session fills the cache
    count = 0

    def count_call(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_call)
    try:
        live.next_request()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.long
@pytest.mark.parametrize("name", PROFILES)
def test_the_function_calls_for_appending_a_turn_do_not_grow_with_the_conversation(
    name: str,
) -> None:
    short, long = (steps_of_one_more_turn(name, messages) for messages in (SHORT, LONG))
    assert 100 < long <= short * 1.1
