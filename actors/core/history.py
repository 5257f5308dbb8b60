"""The conversation so far: an immutable sequence of messages, kept as bytes.

At rest a message is not an object tree but a plain tuple over its JSON pieces, which the collector of
garbage does not have to visit. It is decoded to a `Message` when read. Histories share their storage:
appending to the newest costs nothing but the message, and appending to an older one copies once.

Lone surrogates have no bytes; in ids, names and addresses they become U+FFFD here, as they do in a log.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, TypeAlias, overload

from actors.core.content import (
    Block,
    Code,
    Media,
    Message,
    Seal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.identity import Binding
from actors.core.jsonio import mended
from actors.errors import CanonicalFault

# Exact tuples of strings, bytes and numbers: what `freeze` makes and only `thaw` reads. A block is its tag and its
# fields, without a tuple of its own: there are thousands of blocks.
Record: TypeAlias = tuple[Any, ...]  # Any: the layout is private to this module, one tuple shape a block kind


@lru_cache(maxsize=4096)
def _binding(fields: tuple[str, str, str, str, str]) -> Binding:
    return Binding(*fields)


@lru_cache(maxsize=4096)
def _fields(binding: Binding) -> tuple[str, str, str, str, str]:
    return (binding.backend, binding.dialect, binding.endpoint, binding.account, binding.model)


def _sealed(seal: Seal | None) -> Record:
    return (None, None, None) if seal is None else (seal.kind, seal.data, _fields(seal.origin))


def _frozen(block: Block) -> Record:
    match block:
        case Text(json=json):
            return ("t", json)
        case ToolResult(call_id=call_id, content_json=content, error_json=error, is_complete=is_complete):
            return ("r", _whole(call_id), content, error, is_complete)
        case ToolCall(id=id, name=name, json=json, raw=raw, native=native):
            return ("c", _whole(id), _whole(name), json, raw and _whole(raw), *_sealed(native))
        case Thinking(json=json, seal=seal):
            return ("h", json, *_sealed(seal))
        case Media(mime=mime, data=data, url=url):
            return ("m", _whole(mime), _whole(data), _whole(url))
        case Code(source=source, language=language):
            return ("s", _whole(source), _whole(language))


def _whole(text: str) -> str:
    return text if text.isascii() else mended(text)


def _setters(kind: type) -> list[Callable[[Any, Any], None]]:  # Any: a frozen object, and a field of it
    """Return what sets the slots of a frozen class, in order: its `__init__` would read them from keywords."""
    return [kind.__dict__[item.name].__set__ for item in fields(kind)]


_new = object.__new__
_set_text = _setters(Text)[0]
_set_id, _set_content, _set_error, _set_complete = _setters(ToolResult)
_set_call, _set_name, _set_json, _set_raw, _set_native = _setters(ToolCall)
_set_speaker, _set_blocks, _set_turn, _set_origin = _setters(Message)


def _thawed_text(record: Record, at: int) -> Text:
    text = _new(Text)
    _set_text(text, record[at + 1])
    return text


def _thawed_result(record: Record, at: int) -> ToolResult:
    result = _new(ToolResult)
    _set_id(result, record[at + 1])
    _set_content(result, record[at + 2])
    _set_error(result, record[at + 3])
    _set_complete(result, record[at + 4])
    return result


def _thawed_call(record: Record, at: int) -> ToolCall:
    call = _new(ToolCall)
    _set_call(call, record[at + 1])
    _set_name(call, record[at + 2])
    _set_json(call, record[at + 3])
    _set_raw(call, record[at + 4])
    _set_native(call, _thawed_seal(record, at + 5))
    return call


def _thawed_seal(record: Record, at: int) -> Seal | None:
    kind = record[at]
    return None if kind is None else Seal(kind, record[at + 1], _binding(record[at + 2]))


# How each block is read, given where its tag stands, and how many places it takes.
_THAWED: dict[str, tuple[Callable[[Record, int], Block], int]] = {
    "t": (_thawed_text, 2),
    "r": (_thawed_result, 5),
    "c": (_thawed_call, 8),
    "h": (lambda record, at: Thinking("", _thawed_seal(record, at + 2), json=record[at + 1]), 5),
    "m": (lambda record, at: Media(record[at + 1], record[at + 2], record[at + 3]), 4),
    "s": (lambda record, at: Code(record[at + 1], record[at + 2]), 3),
}


def freeze(message: Message) -> Record:
    """Return a message as the tuple it is kept as. The JSON pieces are shared, not copied."""
    origin = None if message.origin is None else _fields(message.origin)
    record = [message.speaker, message.turn, origin]
    for block in message.blocks:
        record += _frozen(block)
    return tuple(record)


def thaw(record: Record) -> Message:
    """Return the message a record holds; `thaw(freeze(m)) == m`, lone surrogates aside."""
    origin = record[2]
    blocks: list[Block] = []
    at, end = 3, len(record)
    while at < end:
        thawed, size = _THAWED[record[at]]
        blocks.append(thawed(record, at))
        at += size
    message = _new(Message)
    _set_speaker(message, record[0])
    _set_blocks(message, tuple(blocks))
    _set_turn(message, record[1])
    _set_origin(message, None if origin is None else _binding(origin))
    return message


class History(Sequence[Message]):
    """An immutable sequence of messages, oldest first.

    `History(messages)` makes one; `append` returns the next. Reading decodes, so keep what you read.
    """

    __slots__ = ("_length", "_records")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._records: list[Record] = [freeze(message) for message in messages]
        self._length = len(self._records)

    @classmethod
    def _of(cls, records: list[Record], length: int) -> "History":
        history = cls.__new__(cls)
        history._records, history._length = records, length
        return history

    def append(self, *messages: Message) -> "History":
        """Return the history with these messages at its end."""
        if not messages:
            return self
        records = self._records
        if len(records) != self._length:  # a newer version has grown past this one: fork
            records = records[: self._length]
        records.extend(map(freeze, messages))
        return self._of(records, len(records))

    def since(self, cursor: int) -> list[Message]:
        """Return the messages from index `cursor` on; costs what it returns."""
        return [thaw(record) for record in self._records[cursor : self._length]]

    def upto(self, length: int) -> "History":
        """Return the history as it was when it held `length` messages."""
        return self._of(self._records, min(length, self._length))

    def replaced(self, start: int, stop: int, message: Message) -> "History":
        """Return the history with messages `start` to `stop` (excluded) replaced by one: compaction.

        Raises:
            CanonicalFault: That is no range of this history.
        """
        if not 0 <= start <= stop <= self._length:
            raise CanonicalFault(f"Messages {start} to {stop} are no range of a history of {self._length}")
        records = [*self._records[:start], freeze(message), *self._records[stop : self._length]]
        return self._of(records, len(records))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> "History": ...
    def __getitem__(self, index: int | slice) -> "Message | History":
        if isinstance(index, slice):
            records = self._records[: self._length][index]
            return self._of(records, len(records))
        return thaw(self._records[range(self._length)[index]])

    def __iter__(self) -> Iterator[Message]:
        return map(thaw, self._records[: self._length])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        return self._records[: self._length] == other._records[: other._length]

    __hash__ = None  # type: ignore[assignment]  # compared by value; never a key

    def __repr__(self) -> str:
        return f"<History of {self._length} messages>"
