"""The conversation so far: an immutable sequence of messages, kept packed in a chunked vector and decoded when read.

So the garbage collector has nothing to visit, however long the conversation.
"""

from abc import ABCMeta
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from msgspec import Struct

from actors.core.data.chunked import EMPTY, ChunkedVector, appended, from_index, item, item_count, up_to
from actors.core.data.form import Public, kept, reduce_fields, replace
from actors.core.data.table import NOTHING, PersistentMap
from actors.core.history.turn_ends import CallRanges, is_within, with_range
from actors.core.ledger import NO_CALLS, Ledger
from actors.core.log.events import Short, ToolCallRecord
from actors.core.normalize import imported, normal
from actors.core.normalize.attribute import Placed
from actors.core.values.content import Message, ToolResult
from actors.core.values.identity import CallId
from actors.core.values.intake import ImportReport, ReportBuilder
from actors.core.values.packed import Packed, pack, unpack
from actors.errors import CanonicalFault


def _so_far(known: ToolCallRecord) -> ToolResult | None:
    """Return a call's result; one that is pending while the call runs."""
    if known.reason == "running":
        return ToolResult(known.call_id, is_complete=False)
    return known.completion or known.late


class _PublicSequence(Public, ABCMeta):
    """The type of a form that is a sequence."""


class History(
    Sequence[Message], Struct, frozen=True, gc=False, eq=False, init=False, metaclass=_PublicSequence
):
    """An immutable sequence of messages, oldest first, in normal form (`actors.core.normalize`).

    `History(messages, ledger)` makes one of messages of any shape: a result without its call gets the call back that
    the ledger knows. `append` returns the next. Results are not messages of a normal history: what the blocks said of
    them is in `ledger`. Read as a sequence, a history has them in their places all the same, each group of calls
    followed by its results, a `pending` one for a call that is running; `since` gives the messages as they are kept.
    """

    packed: ChunkedVector[Packed]
    """The messages as they are kept."""
    ledger: Ledger
    """What its own blocks say of its calls. Empty in a session, whose results are written in one place."""
    report: ImportReport
    """What was done to the messages when they came in."""
    system: str | None
    """The system prompt that came with them, if one did."""
    short: PersistentMap[CallId, Short]
    """The calls whose results are shown as a mark, and why. What they returned is in the ledger as it was."""
    removed: CallRanges
    """The calls that a rewind took out. What comes of them late is in the ledger, and shown to no model."""

    __reduce__ = reduce_fields

    def __new__(cls, messages: Iterable[Message] = (), ledger: Ledger = NO_CALLS) -> "History":
        came = tuple(messages)
        return cls.came(came, tuple(map(pack, came)), ledger)

    @staticmethod
    def came(messages: Sequence[Message], packed: Sequence[Packed], ledger: Ledger = NO_CALLS) -> "History":
        """Return the history of messages of any shape, packed already. It shares those that stay as they are."""
        said, own, report = normal(messages, ledger)
        known = dict(zip(map(id, messages), packed, strict=True))
        return _of([known.get(id(each)) or pack(each) for each in said], own, report)

    @classmethod
    def read(cls, placed: Iterable[Placed], remarks: ReportBuilder, system: str | None) -> "History":
        """Return the history of a provider's transcript, whose call ids are that provider's.

        `placed` is in wire order; a wire message that mixes roles may be several.
        """
        said, ledger, report = imported(placed, remarks)
        return _of(map(pack, said), ledger, report, system)

    def append(self, *messages: Message, ledger: Ledger = NO_CALLS) -> "History":
        """Return the history with these messages at its end, of whatever shape they are."""
        if not messages:
            return self
        before = map(unpack, from_index(self.packed, 0))  # a human's messages make nobody read it
        said, known, report = normal(messages, ledger, before=before, known=self.ledger)
        return replace(self.extended(map(pack, said)), ledger=known, report=self.report.then(report))

    def extended(self, packed: Iterable[Packed]) -> "History":
        """Return the history with these packed messages at its end, which are normal; it shares them."""
        return replace(self, packed=appended(self.packed, packed))

    def knowing(self, ledger: Ledger) -> "History":
        """Return the history as one reads it who knows what became of its calls."""
        return replace(self, ledger=ledger)

    @property
    def length(self) -> int:
        """How many messages are kept."""
        return item_count(self.packed)

    def since(self, cursor: int) -> list[Message]:
        """Return the kept messages from index `cursor` on; costs what it returns."""
        return list(map(unpack, from_index(self.packed, cursor)))

    def upto(self, length: int) -> "History":
        """Return the history as it was when it kept `length` messages."""
        return replace(self, packed=up_to(self.packed, length))

    def replaced(self, start: int, stop: int, summary: Packed) -> "History":
        """Return the history with kept messages `start` to `stop` (excluded) replaced by a normal one: compaction.

        Raises:
            CanonicalFault: That is no range of this history.
        """
        if not 0 <= start <= stop <= self.length:
            raise CanonicalFault(f"Messages {start} to {stop} are no range of a history of {self.length}")
        packed = appended(up_to(self.packed, start), (summary, *from_index(self.packed, stop)))
        return replace(self, packed=packed)

    def rewind(self, length: int, calls: range) -> "History":
        """Return the history with its first `length` messages alone; those behind them made the calls of these numbers.

        Raises:
            CanonicalFault: There are not so many messages.
        """
        if not 0 <= length <= self.length:
            raise CanonicalFault(f"A history of {self.length} messages cannot be rewound to {length}")
        removed = with_range(self.removed, calls.start, calls.stop - 1)
        return replace(self, packed=up_to(self.packed, length), removed=removed)

    def has_removed(self, call_id: CallId) -> bool:
        """Say whether a rewind took a call out."""
        return is_within(self.removed, call_id)

    def shortened(self, results: Iterable[tuple[CallId, Short]]) -> "History":
        """Return the history that shows these results as marks."""
        return replace(self, short=self.short.update(dict(results)))

    def __len__(self) -> int:
        return sum(1 for _ in self) if len(self.ledger) else self.length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice) or len(self.ledger):
            return list(self)[index]
        return unpack(item(self.packed, range(self.length)[index]))

    def __iter__(self) -> Iterator[Message]:
        for message in map(unpack, from_index(self.packed, 0)):
            yield message
            known = [item for call in message.calls if (item := self.ledger.get(call.id)) is not None]
            if results := [result for item in known if (result := _so_far(item)) is not None]:
                yield Message("tool", results, message.turn)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        return self.packed == other.packed and self.ledger == other.ledger

    def __ne__(self, other: object) -> bool:
        return not self == other  # a Struct has one of its own, which goes by fields

    __hash__ = None  # type: ignore[assignment]  # compared by value; never a key

    def __repr__(self) -> str:
        return f"<History of {len(self)} messages>"


def _of(packed: Iterable[Packed], ledger: Ledger, report: ImportReport, system: str | None = None) -> History:
    return kept(History, appended(EMPTY, packed), ledger, report, system, NOTHING, ())


NO_MESSAGES = History()
"""The history of nothing said. One serves all: nothing changes it."""
