"""Record where turns ended, for `rewind`.

In:  the positions of turn ends, and the turn to rewind to.
Out: the number of messages to keep and the calls to remove; or the reason why the turn has no position.

Positions count the messages of the current history: a summary shifts later positions and removes those inside its
range. Call numbers grow, so all calls after a position have greater numbers than those before.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from actors.core.data.chunked import EMPTY, ChunkedVector, append, from_index, item, item_count, up_to
from actors.core.data.record import replace
from actors.core.values.identity import CallId, number_of


class TurnEnd(Struct, frozen=True, gc=False):
    """The end of a turn: the length of the history and the number of call ids used. Turn 0 is the opening.

    A named tuple would keep itself and the tuples around it tracked by the garbage collector.
    """

    turn: int
    length: int
    calls: int


TurnEnds: TypeAlias = ChunkedVector[TurnEnd]
"""Turn ends, oldest first, without the turns that a summary or a rewind removed."""

NO_TURN_ENDS: TurnEnds = EMPTY

CallRanges: TypeAlias = tuple[tuple[int, int], ...]
"""Call numbers as sorted, disjoint ranges that include both ends."""


def with_end(ends: TurnEnds, end: TurnEnd) -> TurnEnds:
    """Return the turn ends with one appended."""
    return append(ends, (end,))


def end_of(ends: TurnEnds, turn: int) -> TurnEnd | None:
    """Return the end of a turn; None if it has no position."""
    count = item_count(ends)
    at = bisect_left(range(count), turn, key=lambda index: item(ends, index).turn)
    found = item(ends, at) if at < count else None
    return found if found is not None and found.turn == turn else None


def last_turn_within(ends: TurnEnds, length: int) -> int | None:
    """Return the last turn that ended within the first `length` messages; None if there is none."""
    at = bisect_right(range(item_count(ends)), length, key=lambda index: item(ends, index).length)
    return item(ends, at - 1).turn if at else None


def ends_until(ends: TurnEnds, turn: int) -> TurnEnds:
    """Return the turn ends up to and including `turn`."""
    count = item_count(ends)
    at = bisect_left(range(count), turn + 1, key=lambda index: item(ends, index).turn)
    return up_to(ends, at)


def ends_around(ends: TurnEnds, start: int, stop: int) -> TurnEnds:
    """Return the turn ends after messages `start` to `stop` (excluded) became one, without ends inside that range."""
    return append(EMPTY, _remaining(ends, start, stop))


def _remaining(ends: TurnEnds, start: int, stop: int) -> Iterator[TurnEnd]:
    for end in from_index(ends, 0):
        if end.length <= start:
            yield end
        elif end.length > stop:
            yield replace(end, length=end.length - (stop - start) + 1)


def refusal(ends: TurnEnds, turn: int, turns: int) -> str:
    """Return why a history cannot be rewound to a turn, and the nearest turns to which it can.

    `turns` is the number of turns so far.
    """
    why = (
        f"there have been {turns} turns"
        if turn > turns
        else "its messages became a summary, or an earlier rewind took them out of the history"
    )
    known = [end.turn for end in from_index(ends, 0)]
    near = [*[each for each in known if each < turn][-1:], *[each for each in known if each > turn][:1]]
    return f"{why}; {' or '.join(map(str, near)) or 'none'} is possible"


def with_range(ranges: CallRanges, first: int, last: int) -> CallRanges:
    """Return the ranges with a last one added; ranges that it covers or touches are merged into it."""
    if last < first:
        return ranges
    before = [each for each in ranges if each[1] < first - 1]
    touched = [each for each in ranges if each[1] >= first - 1]
    return (*before, (min([first, *[each[0] for each in touched]]), last))


def is_within(ranges: CallRanges, call_id: CallId) -> bool:
    """Return True if the call's number is in one of the ranges. Ids that no session minted are in none."""
    if not ranges:
        return False
    number = number_of(call_id)
    at = bisect_left(ranges, number, key=lambda each: each[1])
    return at < len(ranges) and ranges[at][0] <= number
