"""Events as records of a log, and back.

A record is the msgpack of a version and an event, as the event's class describes it (`actors.core.form`). Reading is
strict: an unknown version, event or field is refused, and so is a missing field, a value that is not of its type, or
text that should be JSON and is none. A record is binary; who stores it knows where it ends. `export` is for people.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Literal, Optional, TypeVar, get_args

from msgspec import MsgspecError, Raw, json
from msgspec.msgpack import Decoder, decode
from msgspec.structs import fields

from actors.core.content import Block, Message, Seal
from actors.core.events import VERSION, Event
from actors.core.form import Form, set_field
from actors.core.identity import Binding
from actors.core.jsonio import Json, JsonObject, JsonValue, Quoted, dump, parse
from actors.core.packed import Packed, encoded, pack, shared, unpack
from actors.errors import JournalError

F = TypeVar("F", bound=Form)


class Record(Form, frozen=True):
    """What a log holds."""

    version: Literal[1]
    event: Event


_RECORD, _RAW = Decoder(Record), json.Decoder(Raw)
_UNREADABLE = (MsgspecError, UnicodeDecodeError)
_JSON: dict[object, bytes] = {Quoted: b'"', JsonObject: b"{", Json: b"", Optional[Json]: b""}  # noqa: UP045
"""Types of fields that hold JSON, and how it begins."""


# ---- writing


def encode_event(event: Event) -> bytes:
    """Return an event as a log holds it."""
    return encoded(Record(VERSION, event))


def export(event: Event) -> Json:
    """Return an event as JSON, for people and their tools: every field by its name, messages whole."""
    name = str(type(event).__struct_config__.tag)
    return dump({"event": name, **_readable(event)})


def _readable(form: Form) -> dict[str, JsonValue]:
    read = {name: unpack(packed) for name, packed in _packed(form)}
    return {
        item.name: _value(read.get(item.name, getattr(form, item.name)), item.type) for item in fields(form)
    }


def _value(value: Any, declared: object) -> JsonValue:  # Any: a form's field
    match value:
        case Form():
            tag = value.__struct_config__.tag
            return {**({} if tag is None else {"type": type(value).__name__}), **_readable(value)}
        case tuple():
            return [_value(unpack(item) if declared == tuple[Packed, ...] else item, None) for item in value]
        case bytes():
            return parse(value)
        case _:
            kept: JsonValue = value
            return kept


# ---- reading


def decode_event(record: bytes) -> Event:
    """Return the event of one record.

    Raises:
        JournalError: The record is not an event of this version, every field there, of its type and no other. The
            message names the event and the field.
    """
    event = _read(_RECORD.decode, record, Record, "").event
    for name in _named(type(event), Binding):
        set_field(event, name, shared(getattr(event, name)))
    name = str(type(event).__struct_config__.tag)
    for where, packed in _packed(event):
        message = _read(unpack, packed, Message, f"{name}.{where}")
        _check_json(message, f"{name}.{where}")
        _check_same(pack(message), packed, Message, f"{name}.{where}")
    _check_json(event, name)
    _check_same(encode_event(event), record, Record, "")
    return event


def _packed(form: Form) -> Iterator[tuple[str, Packed]]:
    """Give the packed messages among a form's fields, each with its place."""
    for name in _named(type(form), Packed):
        yield name, getattr(form, name)
    for name in _named(type(form), tuple[Packed, ...]):
        yield from ((f"{name}[{at}]", item) for at, item in enumerate(getattr(form, name)))


@lru_cache(maxsize=256)
def _named(kind: type[Form], *types: object) -> tuple[str, ...]:
    """Return the names of a form's fields of these types."""
    return tuple(item.name for item in fields(kind) if item.type in types)


@lru_cache(maxsize=256)
def _json_fields(kind: type[Form]) -> tuple[tuple[str, bytes], ...]:
    """Return the names of a form's fields that hold JSON, and how it begins."""
    return tuple((item.name, _JSON[item.type]) for item in fields(kind) if item.type in _JSON)


def _check_json(form: Form, where: str) -> None:
    """Raise if a field that should hold JSON does not."""
    for name, begins in _json_fields(type(form)):
        text = getattr(form, name)
        if text is not None and not _is_json(text, begins):
            raise _refused(f"{where}.{name}", f"{_short(text)} is not JSON of its kind")
    for name in _named(type(form), tuple[Block, ...]):
        for at, block in enumerate(getattr(form, name)):
            _check_json(block, f"{where}.{name}[{at}]")
    for name in _named(type(form), Seal | None):
        if (seal := getattr(form, name)) is not None:
            _check_json(seal, f"{where}.{name}")


def _is_json(text: bytes, begins: bytes) -> bool:
    try:
        _RAW.decode(text)  # its syntax; not the encoding of its strings
        return text.startswith(begins) and (text.isascii() or bool(text.decode()))
    except _UNREADABLE:
        return False


# ---- what is wrong, and where


def _read(read: Callable[[Any], F], data: Packed, kind: type[F], where: str) -> F:  # Any: bytes, or packed
    try:
        return read(data)
    except _UNREADABLE as error:
        why, _, path = str(error).partition(" - at `$")
        steps = [int(step) for step in path.removesuffix("`").strip("[]").split("][") if step]
        place, value = _place(data, kind, steps)
        raise _refused(where + place, why if value is ... else f"{_short(value)}: {why}") from error


def _check_same(again: Packed, data: Packed, kind: type[Form], where: str) -> None:
    """Raise if what was read is not written as it was: something that has a default is missing."""
    if again != data:
        steps = _difference(_plain(again), _plain(data))
        place, value = _place(again, kind, steps)
        raise _refused(where + place, f"missing, or not as version {VERSION} writes {_short(value)}")


def _plain(data: Packed) -> Any:  # Any: msgpack
    return decode(data if isinstance(data, bytes) else data[0])


def _difference(one: object, other: object) -> list[int]:
    """Return the way to the first place at which two values differ."""
    if not (isinstance(one, list) and isinstance(other, list)):
        return []
    for at, (mine, yours) in enumerate(zip(one, other, strict=False)):
        if mine != yours:
            return [at, *_difference(mine, yours)]
    return [min(len(one), len(other))] if len(one) != len(other) else []


def _place(data: Packed, declared: Any, steps: list[int]) -> tuple[str, object]:  # Any: a type as annotated
    """Return the way to a place in names of fields, and what is there; `...` if nothing is."""
    try:
        value = _plain(data)
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
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"


def _refused(where: str, why: str) -> JournalError:
    place = f"{where.removeprefix('.')}: " if where else ""
    return JournalError(f"Not an event: {place}{why}; is the journal damaged?")
