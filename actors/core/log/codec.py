"""Encode log events as binary records and decode them strictly; the journal's readers and writers use it.

A record is the msgpack of a version and an event, whose class defines its fields (`actors.core.data.record`). Decoding
rejects an unknown version, event or field, a missing field, a value of the wrong type, and invalid JSON in a field
that holds JSON. A record does not mark its own end; the storage does.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin

from msgspec import MsgspecError, Raw, json, msgpack
from msgspec.structs import fields, force_setattr

from actors.core.data.jsonio import Json, JsonObject, Quoted
from actors.core.data.record import StoredRecord
from actors.core.log.call_events import End, ToolCallRecord
from actors.core.log.events import VERSION, LogEvent
from actors.core.values.content import Block, Message, ProviderState, ToolResult
from actors.core.values.identity import Binding
from actors.core.values.packed import Packed, encode_record, intern_binding, seal_of
from actors.core.values.progress import AskProgress, Attempt, RefusedRequest
from actors.errors import JournalError

F = TypeVar("F", bound=StoredRecord)


class LogRecord(StoredRecord, frozen=True):
    """The value of one record."""

    version: Literal[1]
    event: LogEvent


def encode_event(event: LogEvent) -> bytes:
    return encode_record(LogRecord(VERSION, event))


_RECORD, _MESSAGE = msgpack.Decoder(LogRecord), msgpack.Decoder(Message)
_ENCODER, _RAW = msgpack.Encoder(), json.Decoder(Raw)
_BEGINS: Mapping[object, bytes] = {
    Quoted: b'"',
    Quoted | None: b'"',
    JsonObject: b"{",
    Json: b"",
    Json | None: b"",
    JsonObject | None: b"{",
}
"""The first byte of the JSON in a field, by the field's type."""
_PACKED = (Packed, Packed | None)
_HOLDS_MORE = (
    *(*_BEGINS, *_PACKED, Binding, ProviderState | None, End | None),
    *(AskProgress, tuple[Attempt, ...], tuple[RefusedRequest, ...]),
    *(tuple[Packed, ...], tuple[Block, ...], tuple[ToolCallRecord, ...], tuple[ToolResult, ...]),
)
"""Field types that need checks beyond msgspec's."""
Check: TypeAlias = Callable[[Any], Any]  # Any: a field's value, and the value to store


def decode_event(record: bytes) -> LogEvent:
    """Return the event of one record.

    Raises:
        JournalError: The record is not an event of this version with all fields and the right types. The message names
            the event and the field.
    """
    try:
        return _check(_decode_strictly(_RECORD, record).event)
    except (MsgspecError, ValueError) as error:
        raise JournalError(f"Not an event: {_fault_of(record) or error}; is the journal damaged?") from error


def _decode_strictly(decoder: msgpack.Decoder[F], data: bytes) -> F:
    """Decode bytes, and check that encoding gives the same bytes, so that no field with a default is missing."""
    record = decoder.decode(data)
    if _ENCODER.encode(record) != data:
        raise ValueError(f"not the bytes that version {VERSION} writes")
    return record


def _check(record: F) -> F:
    """Check the fields beyond their types, and replace equal bindings by one shared object."""
    for name, check in _checks(type(record)):
        if (value := getattr(record, name)) is not None and (kept := check(value)) is not value:
            force_setattr(record, name, kept)
    return record


@lru_cache(maxsize=256)
def _checks(kind: type[StoredRecord]) -> tuple[tuple[str, Check], ...]:
    """Return the fields that need checks beyond their types, each with its check."""
    return tuple((item.name, _check_of(item.type)) for item in fields(kind) if item.type in _HOLDS_MORE)


def _check_of(kind: Any) -> Check:  # Any: a type as annotated
    if kind is Binding:
        return intern_binding
    if kind in _BEGINS:
        return partial(_check_json, begins=_BEGINS[kind])
    if kind in _PACKED:
        return _check_packed
    if get_origin(kind) is tuple:
        return partial(_check_each, check=_check_packed if kind == tuple[Packed, ...] else _check)
    return _check


def _check_each(items: tuple[Any, ...], check: Check) -> tuple[Any, ...]:  # Any: as in `Check`
    for item in items:
        check(item)
    return items


def _check_packed(packed: Packed) -> Packed:
    _message(packed)
    return packed


def _message(packed: Packed) -> Message:
    message = _check(_decode_strictly(_MESSAGE, packed if isinstance(packed, bytes) else packed[0]))
    if message.origin is None and any(seal.maker is None for seal in map(seal_of, message.blocks) if seal):
        raise ValueError("a seal in it has no maker")
    return message


def _check_json(text: bytes, begins: bytes) -> bytes:
    try:
        _RAW.decode(text)  # checks the syntax but not the UTF-8 of strings
        if text.startswith(begins) and (text.isascii() or text.decode()):
            return text
    except (MsgspecError, ValueError):
        pass
    raise ValueError("not JSON of its kind")


def _fault_of(record: bytes) -> str | None:
    """Return the fault of a record, with the names of fields; None if it cannot be decoded at all."""
    try:
        return _fault(LogRecord, msgpack.decode(record), "")
    except (MsgspecError, ValueError):
        return None


def _fault(kind: Any, value: Any, place: str) -> str | None:  # Any: a type as annotated, and any value
    """Return the first value of the wrong type, with its place; None if there is none."""
    items: list[Any] = value  # if it is a list
    record_type = _record_type(kind, value)
    if record_type is not None and place == ".event":
        place = str(record_type.__struct_config__.tag)
    if isinstance(value, list):
        below = _columns(record_type) if record_type is not None else _items(kind, len(items))
        for (name, of), item in zip(below, items, strict=False):
            if (found := _fault(of, item, place + name)) is not None:
                return found
        if record_type is not None and len(items) < len(below):
            return f"{place}{below[len(items)][0]}: missing".removeprefix(".")
    try:
        typed: Any = msgpack.decode(msgpack.encode(value), type=kind)
        if kind in _BEGINS and typed is not None:
            _check_json(typed, _BEGINS[kind])
        elif kind in _PACKED and typed is not None:
            said = msgpack.decode(typed if isinstance(typed, bytes) else typed[0])
            if (found := _fault(Message, said, place)) is not None:
                return found
            _message(typed)
    except (MsgspecError, ValueError) as error:
        return f"{place}: {_short(items)}: {str(error).partition(' - at `')[0]}".removeprefix(".")
    return None


def _record_type(kind: Any, value: Any) -> type[StoredRecord] | None:  # Any: as above
    """Return the class that a value is meant to be, among those that its type allows."""
    items: list[object] = value  # if it is a list
    tag = items[0] if isinstance(value, list) and items else None
    types = [
        each for each in (kind, *get_args(kind)) if isinstance(each, type) and issubclass(each, StoredRecord)
    ]
    return next(
        (record_type for record_type in types if record_type.__struct_config__.tag in (tag, None)), None
    )


def _columns(record_type: type[StoredRecord]) -> list[tuple[str, Any]]:
    named = [(f".{item.name}", item.type) for item in fields(record_type)]
    return named if record_type.__struct_config__.tag is None else [(".kind", str), *named]


def _items(kind: Any, count: int) -> list[tuple[str, Any]]:
    """Return the places and types of a tuple's items; nothing for another type."""
    kinds = get_args(kind) if get_origin(kind) is tuple else ()
    if kinds[-1:] == (...,):
        kinds = kinds[:1] * count
    return [(f"[{at}]", of) for at, of in enumerate(kinds)]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
