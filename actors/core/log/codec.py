"""Encode log events as binary records and decode them strictly. The journal's readers and writers use this module.

A record is a version and an event in msgpack; the event's class defines its fields (`actors.core.data.record`).
Decoding rejects an unknown version, event or field, a missing field, a value of the wrong type, and invalid JSON in a
JSON field. A record does not mark its own end, so the storage must know the record's length.
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
    """The content of one record: an event and the version of the format."""

    version: Literal[1]
    event: LogEvent


def encode_event(event: LogEvent) -> bytes:
    return encode_record(LogRecord(VERSION, event))


_RECORD, _MESSAGE = msgpack.Decoder(LogRecord), msgpack.Decoder(Message)
_ENCODER, _RAW = msgpack.Encoder(), json.Decoder(Raw)
_FIRST_BYTES: Mapping[object, bytes] = {
    Quoted: b'"',
    Quoted | None: b'"',
    JsonObject: b"{",
    Json: b"",
    Json | None: b"",
    JsonObject | None: b"{",
}
"""The first byte that the JSON in a field must have, by the field's type; empty if any JSON is valid."""
_PACKED = (Packed, Packed | None)
_CHECKED_TYPES = (
    *(*_FIRST_BYTES, *_PACKED, Binding, ProviderState | None, End | None),
    *(AskProgress, tuple[Attempt, ...], tuple[RefusedRequest, ...]),
    *(tuple[Packed, ...], tuple[Block, ...], tuple[ToolCallRecord, ...], tuple[ToolResult, ...]),
)
"""Field types that need checks in addition to those of msgspec."""
Check: TypeAlias = Callable[[Any], Any]  # Any: each check is for one field type


def decode_event(record: bytes) -> LogEvent:
    """Decode one record and return its event.

    Raises:
        JournalError: The record is not an event of this version with all fields and the right types. The message names
            the event and the field.
    """
    try:
        return _check_record(_decode_strictly(_RECORD, record).event)
    except (MsgspecError, ValueError) as error:
        raise JournalError(
            f"Not a valid event: {_describe_fault(record) or error}; the journal may be damaged"
        ) from error


def _decode_strictly(decoder: msgpack.Decoder[F], data: bytes) -> F:
    """Decode bytes. Reject them if encoding the result yields other bytes, for example because a field was missing."""
    record = decoder.decode(data)
    if _ENCODER.encode(record) != data:
        raise ValueError(f"its bytes differ from the bytes that version {VERSION} writes for this event")
    return record


def _check_record(record: F) -> F:
    """Check the fields that need more than a type check, and replace equal bindings by one shared object."""
    for name, check in _field_checks(type(record)):
        if (value := getattr(record, name)) is not None and (kept := check(value)) is not value:
            force_setattr(record, name, kept)
    return record


@lru_cache(maxsize=256)
def _field_checks(cls: type[StoredRecord]) -> tuple[tuple[str, Check], ...]:
    """Return the name and the check of each field that needs a check in addition to those of msgspec."""
    return tuple((item.name, _type_check(item.type)) for item in fields(cls) if item.type in _CHECKED_TYPES)


def _type_check(hint: Any) -> Check:  # Any: no type covers all annotations
    if hint is Binding:
        return intern_binding
    if hint in _FIRST_BYTES:
        return partial(_check_json, prefix=_FIRST_BYTES[hint])
    if hint in _PACKED:
        return _check_packed
    if get_origin(hint) is tuple:
        return partial(_check_each, check=_check_packed if hint == tuple[Packed, ...] else _check_record)
    return _check_record


def _check_each(
    items: tuple[Any, ...], check: Check
) -> tuple[Any, ...]:  # Any: the item type is known only to `check`
    for item in items:
        check(item)
    return items


def _check_packed(packed: Packed) -> Packed:
    _decode_message(packed)
    return packed


def _decode_message(packed: Packed) -> Message:
    message = _check_record(_decode_strictly(_MESSAGE, packed if isinstance(packed, bytes) else packed[0]))
    if message.origin is None and any(seal.maker is None for seal in map(seal_of, message.blocks) if seal):
        raise ValueError("a seal names no binding, and its message has no origin")
    return message


def _check_json(text: bytes, prefix: bytes) -> bytes:
    try:
        _RAW.decode(text)  # checks the JSON syntax; the next line checks the UTF-8 of strings
        if text.startswith(prefix) and (text.isascii() or text.decode()):
            return text
    except (MsgspecError, ValueError):
        pass
    raise ValueError("not valid JSON of the type that the field requires")


def _describe_fault(record: bytes) -> str | None:
    """Return a description of the first invalid field of a record; None if the bytes are not msgpack."""
    try:
        return _find_invalid_value(LogRecord, msgpack.decode(record), "")
    except (MsgspecError, ValueError):
        return None


def _find_invalid_value(
    hint: Any, value: Any, path: str
) -> str | None:  # Any: no type covers all annotations
    """Return a description of the first value inside `value` that has a wrong type, or None.

    The description contains the path of that value. `hint` is the annotated type of `value`, and `path` its path.
    """
    items: list[Any] = value  # used only if `value` is a list
    record_type = _record_type(hint, value)
    if record_type is not None and path == ".event":
        path = str(record_type.__struct_config__.tag)
    if isinstance(value, list):
        below = _field_paths(record_type) if record_type is not None else _item_paths(hint, len(items))
        for (name, of), item in zip(below, items, strict=False):
            if (found := _find_invalid_value(of, item, path + name)) is not None:
                return found
        if record_type is not None and len(items) < len(below):
            return f"{path}{below[len(items)][0]}: missing".removeprefix(".")
    try:
        typed: Any = msgpack.decode(msgpack.encode(value), type=hint)
        if hint in _FIRST_BYTES and typed is not None:
            _check_json(typed, _FIRST_BYTES[hint])
        elif hint in _PACKED and typed is not None:
            decoded = msgpack.decode(typed if isinstance(typed, bytes) else typed[0])
            if (found := _find_invalid_value(Message, decoded, path)) is not None:
                return found
            _decode_message(typed)
    except (MsgspecError, ValueError) as error:
        return f"{path}: {_truncated_repr(items)}: {str(error).partition(' - at `')[0]}".removeprefix(".")
    return None


def _record_type(hint: Any, value: Any) -> type[StoredRecord] | None:  # Any: no type covers all annotations
    """Return the record class that `hint` allows and whose tag `value` has; None if there is no such class."""
    items: list[object] = value  # used only if `value` is a list
    tag = items[0] if isinstance(value, list) and items else None
    types = [
        each for each in (hint, *get_args(hint)) if isinstance(each, type) and issubclass(each, StoredRecord)
    ]
    return next(
        (record_type for record_type in types if record_type.__struct_config__.tag in (tag, None)), None
    )


def _field_paths(record_type: type[StoredRecord]) -> list[tuple[str, Any]]:
    named = [(f".{item.name}", item.type) for item in fields(record_type)]
    return named if record_type.__struct_config__.tag is None else [(".kind", str), *named]


def _item_paths(hint: Any, count: int) -> list[tuple[str, Any]]:
    """Return the paths and types of a tuple's items; an empty list if `hint` is not a tuple."""
    kinds = get_args(hint) if get_origin(hint) is tuple else ()
    if kinds[-1:] == (...,):  # a tuple of any length, `tuple[T, ...]`
        kinds = kinds[:1] * count
    return [(f"[{at}]", of) for at, of in enumerate(kinds)]


def _truncated_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
