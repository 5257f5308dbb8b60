"""Define the history: an immutable sequence of messages, stored as packed bytes and decoded on each read.

The packed messages are in a chunked vector, whose items the garbage collector does not visit, so a long conversation
does not slow it down.

The history also records the positions at which turns ended, so that it can be rewound to the end of a turn. A position
counts the messages of the current history: a summary shifts later positions and removes positions inside its range.
Call numbers only grow, so all calls after a position have greater numbers than the calls before it.
"""

from abc import ABCMeta
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, TypeAlias, overload

from msgspec import Struct

from actors.core.data.persistent import (
    EMPTY,
    NOTHING,
    ChunkedVector,
    PersistentMap,
    append,
    from_index,
    item,
    item_count,
    up_to,
)
from actors.core.data.record import ConstructorMeta, from_fields, reduce_fields, replace
from actors.core.ledger import NO_CALLS, Ledger
from actors.core.log.call_events import ToolCallRecord
from actors.core.log.events import TrimReason
from actors.core.normalize import import_transcript, normalize
from actors.core.normalize.settle import PositionedMessage
from actors.core.values.content import Message, ToolResult
from actors.core.values.identity import CallId, number_of
from actors.core.values.intake import ImportReport, ReportBuilder
from actors.core.values.packed import Packed, pack, unpack
from actors.errors import CanonicalFault


class TurnEnd(Struct, frozen=True, gc=False):
    """The end of a turn: the length of the history and the number of call ids used until then.

    Turn 0 is the session's opening. This class is a struct, because the garbage collector would track named tuples and
    the tuples that contain them.
    """

    turn: int
    length: int
    calls: int


TurnEnds: TypeAlias = ChunkedVector[TurnEnd]
"""The ends of turns, oldest first, without the turns that a summary or a rewind removed."""

NO_TURN_ENDS: TurnEnds = EMPTY

CallRanges: TypeAlias = tuple[tuple[int, int], ...]
"""A set of call numbers as sorted, disjoint ranges. A range includes both of its numbers."""


def with_turn_end(ends: TurnEnds, end: TurnEnd) -> TurnEnds:
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
    """Return a message about why a history cannot be rewound to `turn`, with the nearest turns that can be reached.

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
    """Return `ranges` with the range `first` to `last` added. Ranges that overlap or touch the new one are merged."""
    if last < first:
        return ranges
    before = [each for each in ranges if each[1] < first - 1]
    touched = [each for each in ranges if each[1] >= first - 1]
    return (*before, (min([first, *[each[0] for each in touched]]), last))


def contains_call(ranges: CallRanges, call_id: CallId) -> bool:
    """Return True if the call's number is in one of the ranges; False for an id that is not canonical."""
    if not ranges:
        return False
    number = number_of(call_id)
    at = bisect_left(ranges, number, key=lambda each: each[1])
    return at < len(ranges) and ranges[at][0] <= number


def _current_result(record: ToolCallRecord) -> ToolResult | None:
    """Return a call's current result: `pending` while the call runs; None if the call ended without a real result."""
    if record.reason == "running":
        return ToolResult(record.call_id, is_complete=False)
    return record.completion or record.late


class _SequenceMeta(ConstructorMeta, ABCMeta):
    """The metaclass of stored values that are also sequences."""


class History(
    Sequence[Message], Struct, frozen=True, gc=False, eq=False, init=False, metaclass=_SequenceMeta
):
    """An immutable sequence of messages in normal form, oldest first.

    In normal form, tool calls are only in assistant messages, each with a unique id and an object as arguments.
    `History(messages, ledger)` normalizes messages of any shape. If a result has no call, but `ledger` knows the call,
    the call is restored. `append` returns a longer history.

    The stored messages contain no results; results found in the messages are in the history's own `ledger`. Iteration
    inserts the results after each group of calls, with a `pending` result for a running call. `since` returns the
    stored messages without results.
    """

    _packed: ChunkedVector[Packed]
    """The stored messages."""
    ledger: Ledger
    """The results found in the history's own blocks. Empty in a session, where the ledger actor keeps all results."""
    report: ImportReport
    """The repairs and losses of the import."""
    system: str | None
    """The system prompt of the imported transcript; None if the transcript has none."""
    _short: PersistentMap[CallId, TrimReason]
    """The results that transcripts replace by placeholders: call ids with reasons. The ledger keeps the results."""
    _removed: CallRanges
    """The calls removed by rewinds. The ledger records their late results, but no transcript contains them."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return reduce_fields(self)

    def __new__(cls, messages: Iterable[Message] = (), ledger: Ledger = NO_CALLS) -> "History":
        given = tuple(messages)
        return from_packed(given, tuple(map(pack, given)), ledger)

    def append(self, *messages: Message, ledger: Ledger = NO_CALLS) -> "History":
        """Return the history with these messages appended. The messages may have any shape; they are normalized."""
        if not messages:
            return self
        # `map` is lazy: the earlier messages are unpacked only if normalizing the new ones needs them.
        before = map(unpack, from_index(self._packed, 0))
        normal, known, report = normalize(messages, ledger, before=before, known=self.ledger)
        return replace(
            extend(self, map(pack, normal)), ledger=known, report=self.report.combined_with(report)
        )

    @property
    def length(self) -> int:
        """Number of stored messages, without the results that iteration inserts."""
        return item_count(self._packed)

    def since(self, cursor: int) -> list[Message]:
        """Return the stored messages from index `cursor` on. The cost grows with the number of these messages."""
        return list(map(unpack, from_index(self._packed, cursor)))

    def upto(self, length: int) -> "History":
        """Return the history of the first `length` stored messages."""
        return replace(self, _packed=up_to(self._packed, length))

    def __len__(self) -> int:
        return sum(1 for _ in self) if len(self.ledger) else self.length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice) or len(self.ledger):
            return list(self)[index]
        return unpack(item(self._packed, range(self.length)[index]))

    def __iter__(self) -> Iterator[Message]:
        for message in map(unpack, from_index(self._packed, 0)):
            yield message
            known = [item for call in message.calls if (item := self.ledger.get(call.id)) is not None]
            if results := [result for item in known if (result := _current_result(item)) is not None]:
                yield Message("tool", results, message.turn)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        return self._packed == other._packed and self.ledger == other.ledger

    def __ne__(self, other: object) -> bool:
        return not self == other  # needed because Struct defines `__ne__` by identity

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # histories are compared by value and never hashed

    def __repr__(self) -> str:
        return f"<History of {len(self)} messages>"


def from_packed(messages: Sequence[Message], packed: Sequence[Packed], ledger: Ledger = NO_CALLS) -> History:
    """Return a history with these messages, which may have any shape and are normalized.

    `packed` contains the same messages in packed form. Messages that normalization does not change need not be packed
    again.
    """
    normal, own, report = normalize(messages, ledger)
    known = dict(zip(map(id, messages), packed, strict=True))
    return _new_history([known.get(id(message)) or pack(message) for message in normal], own, report)


def from_transcript(
    messages: Iterable[PositionedMessage], remarks: ReportBuilder, system: str | None
) -> History:
    """Return the history of a provider's transcript, whose call ids come from the provider.

    `messages` are in wire order. A wire message that mixes roles may appear as several messages. `remarks` collects the
    findings of the import.
    """
    normal, ledger, report = import_transcript(messages, remarks)
    return _new_history(map(pack, normal), ledger, report, system)


def packed_messages(history: History, start: int = 0) -> Iterator[Packed]:
    """Return the packed messages from index `start` on."""
    return from_index(history._packed, start)


def shortened_results(history: History) -> PersistentMap[CallId, TrimReason]:
    """Return the results that transcripts replace by placeholders: each call id with the reason."""
    return history._short


def with_ledger(history: History, ledger: Ledger) -> History:
    """Return the history with `ledger` as the source of the results that iteration inserts."""
    return replace(history, ledger=ledger)


def extend(history: History, packed: Iterable[Packed]) -> History:
    """Return the history with these normal, packed messages appended. Their bytes are shared rather than copied."""
    return replace(history, _packed=append(history._packed, packed))


def replace_messages(history: History, start: int, stop: int, summary: Packed) -> History:
    """Return the history with a summary in place of the stored messages `start` to `stop` (excluded).

    Raises:
        CanonicalFault: The range is not within the history.
    """
    if not 0 <= start <= stop <= history.length:
        raise CanonicalFault(
            f"Messages {start} to {stop} cannot be replaced, because the history has {history.length} messages"
        )
    packed = append(up_to(history._packed, start), (summary, *from_index(history._packed, stop)))
    return replace(history, _packed=packed)


def rewind(history: History, length: int, calls: range) -> History:
    """Return the history of the first `length` messages. `calls` are the numbers of the calls in the removed messages.

    Raises:
        CanonicalFault: The history has fewer messages.
    """
    if not 0 <= length <= history.length:
        raise CanonicalFault(
            f"The history cannot be rewound to {length} messages, because it has {history.length} messages"
        )
    removed = add_range(history._removed, calls.start, calls.stop - 1)
    return replace(history, _packed=up_to(history._packed, length), _removed=removed)


def is_removed(history: History, call_id: CallId) -> bool:
    """Return True if a rewind removed this call."""
    return contains_call(history._removed, call_id)


def shorten(history: History, results: Iterable[tuple[CallId, TrimReason]]) -> History:
    """Return the history with placeholders in place of these results. Each pair is a call id and the reason."""
    return replace(history, _short=history._short.update(dict(results)))


def _new_history(
    packed: Iterable[Packed], ledger: Ledger, report: ImportReport, system: str | None = None
) -> History:
    return from_fields(History, append(EMPTY, packed), ledger, report, system, NOTHING, ())


NO_MESSAGES = History()
"""The empty history. It is shared, because histories are immutable."""
