"""Turn ends: the places that a history can be rewound to.

In:  where turns ended, and the turn that somebody wants to go back to.
Out: how many messages of the history stay, and which calls leave it; or why there is no such place.

A place counts messages as the history has them now: a summary shifts those behind it, and takes away those inside of
what it stands for. Calls are known by their numbers: all that were made behind a place have greater ones.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from actors.core.data.chunked import EMPTY, ChunkedVector, appended, from_index, item, item_count, up_to
from actors.core.values.identity import CallId, number_of


class TurnEnd(NamedTuple):
    """Where a turn ended: how many messages the history had, and how many call ids were used. Turn 0: the opening."""

    turn: int
    length: int
    calls: int


TurnEnds: TypeAlias = ChunkedVector[TurnEnd]
"""By turn, oldest first. Turns that a summary or a rewind took away are missing."""

NO_TURN_ENDS: TurnEnds = EMPTY

CallRanges: TypeAlias = tuple[tuple[int, int], ...]
"""Numbers of calls, as ranges that include both ends; in order, and apart from each other."""


def with_end(ends: TurnEnds, end: TurnEnd) -> TurnEnds:
    """Return the places with one more."""
    return appended(ends, (end,))


def end_of(ends: TurnEnds, turn: int) -> TurnEnd | None:
    """Return where a turn ended; None if there is no such place."""
    count = item_count(ends)
    at = bisect_left(range(count), turn, key=lambda index: item(ends, index).turn)
    found = item(ends, at) if at < count else None
    return found if found is not None and found.turn == turn else None


def last_turn_within(ends: TurnEnds, length: int) -> int | None:
    """Return the last turn that ended within so many messages; None if no place is left there."""
    at = bisect_right(range(item_count(ends)), length, key=lambda index: item(ends, index).length)
    return item(ends, at - 1).turn if at else None


def ends_until(ends: TurnEnds, turn: int) -> TurnEnds:
    """Return the places up to the end of a turn."""
    count = item_count(ends)
    at = bisect_left(range(count), turn + 1, key=lambda index: item(ends, index).turn)
    return up_to(ends, at)


def ends_around(ends: TurnEnds, start: int, stop: int) -> TurnEnds:
    """Return the places when messages `start` to `stop` (excluded) became one: none is left inside or at its end."""
    return appended(EMPTY, _left(ends, start, stop))


def _left(ends: TurnEnds, start: int, stop: int) -> Iterator[TurnEnd]:
    for end in from_index(ends, 0):
        if end.length <= start:
            yield end
        elif end.length > stop:
            yield end._replace(length=end.length - (stop - start) + 1)


def refusal(ends: TurnEnds, turn: int, turns: int) -> str:
    """Return why a history cannot be rewound to a turn that has no place, and what it can be rewound to.

    `turns`: how many turns there have been.
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
    """Return ranges with one more, which ends behind them all; those that it covers or touches become one with it."""
    if last < first:
        return ranges
    before = [each for each in ranges if each[1] < first - 1]
    touched = [each for each in ranges if each[1] >= first - 1]
    return (*before, (min([first, *[each[0] for each in touched]]), last))


def is_within(ranges: CallRanges, call_id: CallId) -> bool:
    """Say whether a call's number is in one of the ranges. Ids that no session minted are in none."""
    if not ranges:
        return False
    number = number_of(call_id)
    at = bisect_left(ranges, number, key=lambda each: each[1])
    return at < len(ranges) and ranges[at][0] <= number
