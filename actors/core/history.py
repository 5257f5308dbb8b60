"""The conversation so far: an immutable sequence of messages, kept as bytes.

A message is kept packed (`actors.core.packed`), and the packed ones stand in a pile; a message is decoded when it is
read. So the garbage collector has nothing to visit, however long the conversation.
"""

from abc import ABCMeta
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from msgspec import Struct

from actors.core.content import Message
from actors.core.form import Public, kept, set_field
from actors.core.packed import Packed, pack, unpack
from actors.core.pile import EMPTY, Pile, above, below, height, item, piled
from actors.errors import CanonicalFault


class _PublicSequence(Public, ABCMeta):
    """The type of a form that is a sequence."""


class History(Sequence[Message], Struct, frozen=True, gc=False, metaclass=_PublicSequence):
    """An immutable sequence of messages, oldest first.

    `History(messages)` makes one; `append` returns the next. Reading decodes, so keep what you read.
    """

    packed: Pile[Packed]
    """The messages as they are kept."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        set_field(self, "packed", piled(EMPTY, map(pack, messages)))

    @staticmethod
    def of(packed: Pile[Packed]) -> "History":
        """Return the history of these packed messages."""
        return kept(History, packed)

    def append(self, *messages: Message) -> "History":
        """Return the history with these messages at its end."""
        return self.extended(map(pack, messages)) if messages else self

    def extended(self, packed: Iterable[Packed]) -> "History":
        """Return the history with these packed messages at its end; it shares them."""
        return self.of(piled(self.packed, packed))

    def since(self, cursor: int) -> list[Message]:
        """Return the messages from index `cursor` on; costs what it returns."""
        return list(map(unpack, above(self.packed, cursor)))

    def upto(self, length: int) -> "History":
        """Return the history as it was when it held `length` messages."""
        return self.of(below(self.packed, length))

    def replaced(self, start: int, stop: int, message: Message) -> "History":
        """Return the history with messages `start` to `stop` (excluded) replaced by one: compaction.

        Raises:
            CanonicalFault: That is no range of this history.
        """
        if not 0 <= start <= stop <= len(self):
            raise CanonicalFault(f"Messages {start} to {stop} are no range of a history of {len(self)}")
        return self.of(piled(below(self.packed, start), (pack(message), *above(self.packed, stop))))

    def __len__(self) -> int:
        return height(self.packed)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> "History": ...
    def __getitem__(self, index: int | slice) -> "Message | History":
        if isinstance(index, slice):
            return self.of(piled(EMPTY, list(above(self.packed, 0))[index]))
        return unpack(item(self.packed, range(len(self))[index]))

    def __iter__(self) -> Iterator[Message]:
        return map(unpack, above(self.packed, 0))

    __hash__ = None  # type: ignore[assignment]  # compared by value; never a key

    def __repr__(self) -> str:
        return f"<History of {len(self)} messages>"
