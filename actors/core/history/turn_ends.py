"""Record the positions at which turns ended, so that a history can be rewound.

In:  the positions of turn ends, and the turn to rewind to.
Out: the number of messages to keep and the calls to remove; or the reason why the turn cannot be reached.

A position counts the messages of the current history: a summary shifts later positions and removes positions inside its
range. Call numbers only grow, so all calls after a position have greater numbers than the calls before it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from actors.core.data.chunked import EMPTY, ChunkedVector, append, from_index, item, item_count, up_to
from actors.core.data.record import replace
from actors.core.values.identity import CallId, number_of


class TurnEnd(Struct, frozen=True, gc=False):
    """The end of a turn: the length of the history and the number of call ids used. Turn 0 is the session's opening.

    A struct rather than a named tuple, because the garbage collector would track named tuples and the tuples around
    them.
    """

    turn: int
    length: int
    calls: int


TurnEnds: TypeAlias = ChunkedVector[TurnEnd]
"""The ends of turns, oldest first, without the turns that a summary or a rewind removed."""

NO_TURN_ENDS: TurnEnds = EMPTY

CallRanges: TypeAlias = tuple[tuple[int, int], ...]
"""A set of call numbers as sorted, disjoint ranges. A range includes both of its numbers."""


def with_end(ends: TurnEnds, end: TurnEnd) -> TurnEnds:
    """Return `ends` with the end of a turn appended."""
    return append(ends, (end,))


def end_of(ends: TurnEnds, turn: int) -> TurnEnd | None:
    """Return the end of a turn, or None if it is not recorded."""
    count = item_count(ends)
    at = bisect_left(range(count), turn, key=lambda index: item(ends, index).turn)
    found = item(ends, at) if at < count else None
    return found if found is not None and found.turn == turn else None


def last_turn_within(ends: TurnEnds, length: int) -> int | None:
    """Return the number of the last turn that ended within the first `length` messages, or None if no turn did."""
    at = bisect_right(range(item_count(ends)), length, key=lambda index: item(ends, index).length)
    return item(ends, at - 1).turn if at else None


def ends_until(ends: TurnEnds, turn: int) -> TurnEnds:
    """Return the ends of all turns up to and including `turn`."""
    count = item_count(ends)
    at = bisect_left(range(count), turn + 1, key=lambda index: item(ends, index).turn)
    return up_to(ends, at)


def ends_after_summary(ends: TurnEnds, start: int, stop: int) -> TurnEnds:
    """Return the turn ends after a summary replaced messages `start` to `stop` (excluded).

    Ends inside that range are removed, and later positions are shifted.
    """
    return append(EMPTY, _remaining_ends(ends, start, stop))


def _remaining_ends(ends: TurnEnds, start: int, stop: int) -> Iterator[TurnEnd]:
    for end in from_index(ends, 0):
        if end.length <= start:
            yield end
        elif end.length > stop:
            yield replace(end, length=end.length - (stop - start) + 1)


def unreachable_reason(ends: TurnEnds, turn: int, turn_count: int) -> str:
    """Return the reason why a history cannot be rewound to `turn`, and the nearest turns to which it can be rewound.

    `turn_count` is the number of turns so far.
    """
    why = (
        f"the session has had {turn_count} turns"
        if turn > turn_count
        else "a summary replaced the messages of that turn, or an earlier rewind removed them"
    )
    known = [end.turn for end in from_index(ends, 0)]
    near = [*[each for each in known if each < turn][-1:], *[each for each in known if each > turn][:1]]
    fix = f"rewind to turn {' or '.join(map(str, near))}" if near else "no turn can be reached"
    return f"{why}; {fix}"


def add_range(ranges: CallRanges, first: int, last: int) -> CallRanges:
    """Return `ranges` with another range added. Ranges that it overlaps or touches are merged with it."""
    if last < first:
        return ranges
    before = [each for each in ranges if each[1] < first - 1]
    touched = [each for each in ranges if each[1] >= first - 1]
    return (*before, (min([first, *[each[0] for each in touched]]), last))


def contains_call(ranges: CallRanges, call_id: CallId) -> bool:
    """Return True if the call's number is in one of the ranges. An id that no session assigned is in no range."""
    if not ranges:
        return False
    number = number_of(call_id)
    at = bisect_left(ranges, number, key=lambda each: each[1])
    return at < len(ranges) and ranges[at][0] <= number
