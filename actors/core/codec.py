"""Events as records of a log, and back.

A record is the msgpack of a version and an event, as the event's class describes it (`actors.core.form`). Reading is
strict: an unknown version, event or field is refused, and so is a missing field, a value that is not of its type, or
text that should be JSON and is none. A record is binary; who stores it knows where it ends.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from msgspec import MsgspecError, Raw, json
from msgspec.msgpack import Decoder, Encoder, decode
from msgspec.structs import fields

from actors.core.content import Block, Message, Seal
from actors.core.events import VERSION, Event
from actors.core.form import Form, set_field
from actors.core.identity import Binding
from actors.core.jsonio import Json, JsonObject, Quoted
from actors.core.packed import Packed, encoded, seal_of, shared
from actors.errors import JournalError

F = TypeVar("F", bound=Form)

_Check: TypeAlias = Callable[[Form, str], None]
"""Checks the field of this name."""


class LogRecord(Form, frozen=True):
    """What a log holds."""

    version: Literal[1]
    event: Event


def encode_event(event: Event) -> bytes:
    """Return an event as a log holds it."""
    return encoded(LogRecord(VERSION, event))


# ---- reading

_RECORD, _MESSAGE, _RAW = Decoder(LogRecord), Decoder(Message), json.Decoder(Raw)
_ENCODER = Encoder()
_UNREADABLE = (MsgspecError, UnicodeDecodeError)


def decode_event(record: bytes) -> Event:
    """Return the event of one record.

    Raises:
        JournalError: The record is not an event of this version, every field there, of its type and no other. The
            message names the event and the field.
    """
    name = ""
    try:
        event = _strictly(_RECORD, LogRecord, record).event
        name = str(event.__struct_config__.tag)
        _check(event)
    except _Wrong as wrong:
        place = (name + wrong.place).removeprefix(".")
        raise JournalError(
            f"Not an event: {place and place + ': '}{wrong.why}; is the journal damaged?"
        ) from wrong
    return event


class _Wrong(Exception):
    """Something is not as its form says: where, in names of fields, and why."""

    def __init__(self, place: str, why: str) -> None:
        self.place, self.why = place, why


def _strictly(decoder: Decoder[F], kind: type[F], data: bytes) -> F:
    """Return what these bytes are, and the only bytes it has: so nothing that has a default is missing."""
    try:
        form = decoder.decode(data)
    except _UNREADABLE as error:
        why, _, path = str(error).partition(" - at `$")
        steps = [int(step) for step in path.removesuffix("`").strip("[]").split("][") if step]
        place, value = _place(data, kind, steps)
        raise _Wrong(place, why if value is ... else f"{_short(value)}: {why}") from error
    if (again := _ENCODER.encode(form)) != data:
        place, value = _place(again, kind, _difference(decode(again), decode(data)))
        raise _Wrong(place, f"missing, or not as version {VERSION} writes {_short(value)}")
    return form


def _check(form: Form) -> None:
    """Check what the types of a form's fields cannot say; give each binding its one object."""
    for name, check in _checks(type(form)):
        try:
            check(form, name)
        except _Wrong as wrong:
            raise _Wrong(f".{name}{wrong.place}", wrong.why) from wrong


@lru_cache(maxsize=256)
def _checks(kind: type[Form]) -> tuple[tuple[str, _Check], ...]:
    """Return which of a form's fields are checked, and how."""
    return tuple((item.name, _CHECKS[item.type]) for item in fields(kind) if item.type in _CHECKS)


def _share(form: Form, name: str) -> None:
    set_field(form, name, shared(getattr(form, name)))


def _check_seal(form: Form, name: str) -> None:
    if (seal := getattr(form, name)) is not None:
        _check(seal)


def _check_all(check: Callable[[Any], None], form: Form, name: str) -> None:  # Any: what the field holds
    for at, item in enumerate(getattr(form, name)):
        try:
            check(item)
        except _Wrong as wrong:
            raise _Wrong(f"[{at}]{wrong.place}", wrong.why) from wrong


def _check_message(packed: Packed) -> None:
    message = _strictly(_MESSAGE, Message, packed if isinstance(packed, bytes) else packed[0])
    _check(message)
    if message.origin is None and any(seal.maker is None for seal in map(seal_of, message.blocks) if seal):
        raise _Wrong("", "a seal in it names nobody who made it")


def _check_json(begins: bytes, form: Form, name: str) -> None:
    text = getattr(form, name)
    if text is None:
        return
    try:
        _RAW.decode(text)  # its syntax; not the encoding of its strings
        good = text.startswith(begins) and (text.isascii() or bool(text.decode()))
    except _UNREADABLE:
        good = False
    if not good:
        raise _Wrong("", f"{_short(text)} is not JSON of its kind")


_CHECKS: dict[object, _Check] = {  # by a field's type
    Binding: _share,
    Packed: lambda form, name: _check_message(getattr(form, name)),
    tuple[Packed, ...]: partial(_check_all, _check_message),
    tuple[Block, ...]: partial(_check_all, _check),
    Seal | None: _check_seal,
    Quoted: partial(_check_json, b'"'),
    JsonObject: partial(_check_json, b"{"),
    Json: partial(_check_json, b""),
    Json | None: partial(_check_json, b""),
}


# ---- where it is


def _difference(one: object, other: object) -> list[int]:
    """Return the way to the first place at which two values differ."""
    if not (isinstance(one, list) and isinstance(other, list)):
        return []
    for at, (mine, yours) in enumerate(zip(one, other, strict=False)):
        if mine != yours:
            return [at, *_difference(mine, yours)]
    return [min(len(one), len(other))] if len(one) != len(other) else []


def _place(data: bytes, declared: Any, steps: list[int]) -> tuple[str, object]:  # Any: a type as annotated
    """Return the way to a place in names of fields, and what is there; `...` if nothing is."""
    try:
        value = decode(data)
    except _UNREADABLE:  # cut short: it has no places
        return "", ...
    place = ""
    columns: list[tuple[str, Any]] = []
    for step in (*steps, None):
        declared = _chosen(declared, value)
        columns = _columns(declared)
        if place == ".event" and columns:
            place = str(declared.__struct_config__.tag)
        if step is None:
            break
        name, declared = _below(declared, step)
        place += name
        value = value[step] if isinstance(value, list) and step < len(value) else ...
    if isinstance(value, list) and len(value) < len(columns):  # the first that is missing
        return f"{place}.{columns[len(value)][0]}", ...
    return place, value


def _below(declared: Any, step: int) -> tuple[str, Any]:  # Any: types as they are annotated
    """Return what the value of a type has at a position: its name, and its type."""
    if columns := _columns(declared):
        return (f".{columns[step][0]}", columns[step][1]) if step < len(columns) else (f"[{step}]", None)
    items = get_args(declared)
    return f"[{step}]", items[0] if items[-1:] == (...,) else items[step] if step < len(items) else None


def _columns(declared: object) -> list[tuple[str, Any]]:  # Any: as above
    """Return the names and types of what a form's array holds, in order; nothing for another type."""
    if not (isinstance(declared, type) and issubclass(declared, Form)):
        return []
    named = [(item.name, item.type) for item in fields(declared)]
    return named if declared.__struct_config__.tag is None else [("kind", str), *named]


def _chosen(declared: Any, value: object) -> Any:  # Any: types as they are annotated
    """Return which of a union's types a value is meant to be."""
    tag = value[0] if isinstance(value, list) and value else None
    kinds = [kind for kind in get_args(declared) if isinstance(kind, type) and issubclass(kind, Form)]
    return next((kind for kind in kinds if kind.__struct_config__.tag in (tag, None)), declared)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
