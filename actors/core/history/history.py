"""Define the history: an immutable sequence of messages, packed in a chunked vector and decoded on each read.

The garbage collector therefore has nothing to visit, however long the conversation is.
"""

from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, overload

from msgspec import Struct

from actors.core.data.chunked import EMPTY, ChunkedVector, append, from_index, item, item_count, up_to
from actors.core.data.persistent_map import NOTHING, PersistentMap
from actors.core.data.record import ConstructorMeta, from_fields, reduce_fields, replace
from actors.core.history.turn_ends import CallRanges, is_within, with_range
from actors.core.ledger import NO_CALLS, Ledger
from actors.core.log.call_events import ToolCallRecord
from actors.core.log.events import Short
from actors.core.normalize import import_transcript, normalize
from actors.core.normalize.attribute import Placed
from actors.core.values.content import Message, ToolResult
from actors.core.values.identity import CallId
from actors.core.values.intake import ImportReport, ReportBuilder
from actors.core.values.packed import Packed, pack, unpack
from actors.errors import CanonicalFault


def _so_far(known: ToolCallRecord) -> ToolResult | None:
    """Return a call's result, `pending` while the call runs."""
    if known.reason == "running":
        return ToolResult(known.call_id, is_complete=False)
    return known.completion or known.late


class _PublicSequence(ConstructorMeta, ABCMeta):
    """Metaclass of stored values that are also sequences."""


class History(
    Sequence[Message], Struct, frozen=True, gc=False, eq=False, init=False, metaclass=_PublicSequence
):
    """An immutable sequence of messages, oldest first, in normal form (`actors.core.normalize`).

    `History(messages, ledger)` normalizes messages of any shape. If `ledger` knows the call of a result without a
    call, the call is restored. `append` returns the next history. The messages of a normal history contain no results;
    results found in the blocks are in the history's own `ledger`. Iteration inserts them again: each group of calls is
    followed by its results, with a `pending` result for a running call. `since` returns the stored messages without
    results.
    """

    _packed: ChunkedVector[Packed]
    """The stored messages."""
    ledger: Ledger
    """The results found in the history's own blocks. Empty in a session, whose ledger actor holds all results."""
    report: ImportReport
    """The repairs and losses of the import."""
    system: str | None
    """The system prompt of the imported transcript, if any."""
    _short: PersistentMap[CallId, Short]
    """The calls whose results are rendered as marks, with the reason. The ledger keeps the results."""
    _removed: CallRanges
    """The calls removed by rewinds. The ledger records their late results, but no transcript contains them."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return reduce_fields(self)

    def __new__(cls, messages: Iterable[Message] = (), ledger: Ledger = NO_CALLS) -> "History":
        given = tuple(messages)
        return from_packed(given, tuple(map(pack, given)), ledger)

    def append(self, *messages: Message, ledger: Ledger = NO_CALLS) -> "History":
        """Return the history with these messages, of any shape, normalized and appended."""
        if not messages:
            return self
        before = map(unpack, from_index(self._packed, 0))  # lazy: plain user messages do not need it
        said, known, report = normalize(messages, ledger, before=before, known=self.ledger)
        return replace(extend(self, map(pack, said)), ledger=known, report=self.report.then(report))

    @property
    def length(self) -> int:
        """Number of stored messages."""
        return item_count(self._packed)

    def since(self, cursor: int) -> list[Message]:
        """Return the stored messages from index `cursor` on. The cost grows with the messages returned."""
        return list(map(unpack, from_index(self._packed, cursor)))

    def upto(self, length: int) -> "History":
        """Return the history's first `length` stored messages."""
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
            if results := [result for item in known if (result := _so_far(item)) is not None]:
                yield Message("tool", results, message.turn)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        return self._packed == other._packed and self.ledger == other.ledger

    def __ne__(self, other: object) -> bool:
        return not self == other  # Struct's own `__ne__` compares all fields

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # compared by value; never a key

    def __repr__(self) -> str:
        return f"<History of {len(self)} messages>"


def from_packed(messages: Sequence[Message], packed: Sequence[Packed], ledger: Ledger = NO_CALLS) -> History:
    """Return the history of messages of any shape with their packed forms. Unchanged messages share theirs."""
    said, own, report = normalize(messages, ledger)
    known = dict(zip(map(id, messages), packed, strict=True))
    return _of([known.get(id(each)) or pack(each) for each in said], own, report)


def from_transcript(placed: Iterable[Placed], remarks: ReportBuilder, system: str | None) -> History:
    """Return the history of a provider's transcript, in which call ids are the provider's.

    `placed` is in wire order; a wire message that mixes roles may appear as several messages.
    """
    said, ledger, report = import_transcript(placed, remarks)
    return _of(map(pack, said), ledger, report, system)


def packed_messages(history: History, start: int = 0) -> Iterator[Packed]:
    """Return the stored messages from index `start` on, packed."""
    return from_index(history._packed, start)


def shortened_results(history: History) -> PersistentMap[CallId, Short]:
    """Return the calls whose results are rendered as marks, with the reason."""
    return history._short


def with_ledger(history: History, ledger: Ledger) -> History:
    """Return the history with `ledger` as the source of its results."""
    return replace(history, ledger=ledger)


def extend(history: History, packed: Iterable[Packed]) -> History:
    """Return the history with these normal, packed messages appended; it shares their bytes."""
    return replace(history, _packed=append(history._packed, packed))


def replace_messages(history: History, start: int, stop: int, summary: Packed) -> History:
    """Return the history with stored messages `start` to `stop` (excluded) replaced by a summary.

    Raises:
        CanonicalFault: The history has no such range.
    """
    if not 0 <= start <= stop <= history.length:
        raise CanonicalFault(f"A history of {history.length} messages has no range {start} to {stop}")
    packed = append(up_to(history._packed, start), (summary, *from_index(history._packed, stop)))
    return replace(history, _packed=packed)


def rewind(history: History, length: int, calls: range) -> History:
    """Return the history's first `length` messages; `calls` are the numbers of the calls in the removed messages.

    Raises:
        CanonicalFault: The history has fewer messages.
    """
    if not 0 <= length <= history.length:
        raise CanonicalFault(f"A history of {history.length} messages cannot be rewound to {length}")
    removed = with_range(history._removed, calls.start, calls.stop - 1)
    return replace(history, _packed=up_to(history._packed, length), _removed=removed)


def is_removed(history: History, call_id: CallId) -> bool:
    """Return True if a rewind removed this call."""
    return is_within(history._removed, call_id)


def shorten(history: History, results: Iterable[tuple[CallId, Short]]) -> History:
    """Return the history with these results rendered as marks."""
    return replace(history, _short=history._short.update(dict(results)))


def _of(packed: Iterable[Packed], ledger: Ledger, report: ImportReport, system: str | None = None) -> History:
    return from_fields(History, append(EMPTY, packed), ledger, report, system, NOTHING, ())


NO_MESSAGES = History()
"""The empty history, shared because it is immutable."""
