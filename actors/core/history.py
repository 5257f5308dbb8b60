"""The conversation so far: an immutable sequence of messages, kept as bytes.

At rest a message is no object tree but a record (`actors.core.record`), and the records stand in a pile; a message is
decoded when it is read. So the collector of garbage has one object to visit, however long the conversation.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from actors.core.content import Message
from actors.core.pile import EMPTY, Pile, above, below, height, item, piled
from actors.core.record import Record, freeze, thaw
from actors.errors import CanonicalFault


class History(Sequence[Message]):
    """An immutable sequence of messages, oldest first.

    `History(messages)` makes one; `append` returns the next. Reading decodes, so keep what you read.
    """

    __slots__ = ("records",)

    records: Pile[Record]
    """The messages at rest."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.records = piled(EMPTY, map(freeze, messages))

    @classmethod
    def of(cls, records: Pile[Record]) -> "History":
        """Return the history of these records."""
        history = cls.__new__(cls)
        history.records = records
        return history

    def append(self, *messages: Message) -> "History":
        """Return the history with these messages at its end."""
        return self.of(piled(self.records, map(freeze, messages))) if messages else self

    def since(self, cursor: int) -> list[Message]:
        """Return the messages from index `cursor` on; costs what it returns."""
        return list(map(thaw, above(self.records, cursor)))

    def upto(self, length: int) -> "History":
        """Return the history as it was when it held `length` messages."""
        return self.of(below(self.records, length))

    def replaced(self, start: int, stop: int, message: Message) -> "History":
        """Return the history with messages `start` to `stop` (excluded) replaced by one: compaction.

        Raises:
            CanonicalFault: That is no range of this history.
        """
        if not 0 <= start <= stop <= len(self):
            raise CanonicalFault(f"Messages {start} to {stop} are no range of a history of {len(self)}")
        records = piled(below(self.records, start), (freeze(message), *above(self.records, stop)))
        return self.of(records)

    def __len__(self) -> int:
        return height(self.records)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> "History": ...
    def __getitem__(self, index: int | slice) -> "Message | History":
        if isinstance(index, slice):
            return self.of(piled(EMPTY, list(above(self.records, 0))[index]))
        return thaw(item(self.records, range(len(self))[index]))

    def __iter__(self) -> Iterator[Message]:
        return map(thaw, above(self.records, 0))

    def __eq__(self, other: object) -> bool:
        return self.records == other.records if isinstance(other, History) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # compared by value; never a key

    def __repr__(self) -> str:
        return f"<History of {len(self)} messages>"
