"""Events as JSON lines, and back.

One event is one JSON object: `{"v":1,"event":"returned",...}` with its fields by name. It is written as
segments that share the content's own pieces, so that a log in memory costs little beside the history; a
durable backend joins them. Reading is strict: an unknown version, event or field is refused.

Arguments are written as JSON inside a string, because their bytes, spaces included, must come back as the
model wrote them; a prefix may be bound to them.
"""

from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import lru_cache
from typing import Any, get_args, get_origin

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
from actors.core.events import VERSION, Event
from actors.core.identity import Binding
from actors.core.jsonio import Json, dump, nest, parse, quote
from actors.core.stream import Usage
from actors.errors import JournalError

SMALL = 128
"""Pieces below this size, in bytes, are joined with their neighbours when an event is written; others are shared."""

_EVENTS: dict[str, type] = {}
_NAMES: dict[type, str] = {}


def _register() -> None:
    for alias in get_args(Event):
        for kind in get_args(alias) or (alias,):
            name = "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__).lstrip("_")
            _EVENTS[name], _NAMES[kind] = kind, name


_register()

# ---- writing


def encode_event(event: Event) -> tuple[bytes, ...]:
    """Return an event's JSON as segments; joined, they are one line without its newline."""
    kind: type = type(event)
    head, names = _layout(kind)
    pieces: list[bytes] = [head]
    for name, key in names:
        pieces.append(key)
        value = getattr(event, name)
        _WRITERS[type(value)](value, pieces)
    pieces.append(b"}")
    return _joined(pieces)


@lru_cache
def _layout(kind: type) -> tuple[bytes, tuple[tuple[str, bytes], ...]]:
    """Return how an event's JSON begins, and its fields, each with its key as written."""
    head = b'{"v":%d,"event":"%b"' % (VERSION, _NAMES[kind].encode())
    return head, tuple((item.name, b',"%b":' % item.name.encode()) for item in fields(kind))


def _joined(pieces: list[bytes]) -> tuple[bytes, ...]:
    joined: list[bytes] = []
    start = 0
    for index, piece in enumerate(pieces):
        if len(piece) >= SMALL:
            if start < index:
                joined.append(b"".join(pieces[start:index]))
            joined.append(piece)
            start = index + 1
    if start < len(pieces):
        joined.append(b"".join(pieces[start:]))
    return tuple(joined)


def _write(value: object, pieces: list[bytes]) -> None:
    _WRITERS[type(value)](value, pieces)


def _write_json(json: Json, pieces: list[bytes]) -> None:
    if json.startswith(b'"'):
        pieces += (b'{"text":', json, b"}")
    else:
        pieces.append(nest(json))


def _write_usage(usage: Usage, pieces: list[bytes]) -> None:
    _write_all(tuple(getattr(usage, name) for name in _FIGURES), pieces)


def _write_all(values: tuple[object, ...], pieces: list[bytes]) -> None:
    separator = b"["
    for value in values:
        pieces.append(separator)
        _write(value, pieces)
        separator = b","
    pieces.append(b"]" if values else b"[]")


@lru_cache(maxsize=1024)
def _binding_json(binding: Binding) -> Json:
    return dump([getattr(binding, item.name) for item in fields(binding)])


def _write_message(message: Message, pieces: list[bytes]) -> None:
    pieces.append(b'{"speaker":"%b","turn":%d,"origin":' % (message.speaker.encode(), message.turn))
    _write(message.origin, pieces)
    pieces.append(b',"blocks":[')
    separator = b""
    for block in message.blocks:
        pieces.append(separator)
        _write_block(block, pieces)
        separator = b","
    pieces.append(b"]}")


def _write_block(block: Block, pieces: list[bytes]) -> None:
    match block:
        case Text(json=json):
            pieces += (b'{"text":', json, b"}")
        case Thinking(json=json, seal=seal):
            pieces += (b'{"thinking":', json, b',"seal":')
            _write_seal(seal, pieces)
        case ToolCall(id=id, name=name, json=json, raw=raw, native=native):
            head = b'{"call":%b,"name":%b,"arguments":' % (quote(id), quote(name))
            pieces += (head, nest(json), b',"raw":', b"null" if raw is None else quote(raw), b',"native":')
            _write_seal(native, pieces)
        case ToolResult(call_id=id, content_json=content, error_json=error, is_complete=complete):
            pieces.append(b'{"result":%b,"content":' % quote(id))
            _write(content, pieces)
            pieces.append(b',"error":')
            _write(error, pieces)
            pieces.append(b',"is_complete":%b}' % dump(complete))
        case Media(mime=mime, data=data, url=url):
            pieces.append(b'{"media":%b,"data":%b,"url":%b}' % (quote(mime), quote(data), quote(url)))
        case Code(source=source, language=language):
            pieces.append(b'{"code":%b,"language":%b}' % (quote(source), quote(language)))


def _write_seal(seal: Seal | None, pieces: list[bytes]) -> None:
    """Write a seal and close the block that ends with it."""
    if seal is None:
        pieces.append(b"null}")
    else:
        pieces += (b"[", quote(seal.kind), b",", seal.data, b",", _binding_json(seal.origin), b"]}")


_FIGURES = tuple(item.name for item in fields(Usage))
_WRITERS: dict[type, Callable[[Any, list[bytes]], None]] = {  # Any: one writer a type
    bytes: _write_json,
    str: lambda text, pieces: pieces.append(quote(text)),
    int: lambda number, pieces: pieces.append(b"%d" % number),
    bool: lambda value, pieces: pieces.append(b"true" if value else b"false"),
    type(None): lambda _, pieces: pieces.append(b"null"),
    tuple: _write_all,
    Message: _write_message,
    Binding: lambda binding, pieces: pieces.append(_binding_json(binding)),
    Usage: _write_usage,
}


# ---- reading


def decode_event(line: bytes) -> Event:
    """Return the event of one line.

    Raises:
        JournalError: The line is not an event of this version, complete and with no unknown field.
    """
    try:
        value: Any = parse(line, max_bytes=1 << 30)  # Any: checked field by field below
        if value.pop("v") != VERSION:
            raise ValueError(f"it is not of version {VERSION}")
        kind = _EVENTS[value.pop("event")]
        readers = _readers(kind)
        missing = [
            f.name
            for f in fields(kind)
            if f.name not in value and (f.default, f.default_factory) == (MISSING, MISSING)
        ]
        if unknown := sorted(value.keys() - readers.keys()) or missing:
            raise ValueError(f"its fields do not match: {', '.join(unknown)}")
        event: Event = kind(**{name: readers[name](item) for name, item in value.items()})
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise JournalError(f"Not an event: {line[:60]!r}: {error}; is the journal damaged?") from error
    return event


def _same(value: Any) -> Any:  # Any: JSON as parsed; the event's constructor is typed
    return value


def _json(value: Any) -> Json | None:  # Any: JSON as parsed
    if value is None:
        return None
    return Json(value.encode()) if isinstance(value, str) else quote(value["text"])


def _binding(value: Any) -> Binding | None:  # Any: JSON as parsed
    return None if value is None else Binding(*value)


def _read_seal(value: Any) -> Seal | None:  # Any: JSON as parsed
    return None if value is None else Seal(value[0], quote(value[1]), Binding(*value[2]))


def _message(value: Any) -> Message:  # Any: JSON as parsed
    blocks = [_BLOCKS[next(iter(block))](block) for block in value["blocks"]]
    return Message(value["speaker"], blocks, value["turn"], _binding(value["origin"]))


_BLOCKS: dict[str, Callable[[Any], Block]] = {  # Any: JSON as parsed, one reader a block kind
    "text": lambda b: Text(b["text"]),
    "thinking": lambda b: Thinking(b["thinking"], _read_seal(b["seal"])),
    "call": lambda b: ToolCall(
        b["call"],
        b["name"],
        raw=b["raw"],
        native=_read_seal(b["native"]),
        json=Json(b["arguments"].encode()),
    ),
    "result": lambda b: ToolResult(
        b["result"],
        content_json=_json(b["content"]),
        error_json=_json(b["error"]),
        is_complete=b["is_complete"],
    ),
    "media": lambda b: Media(b["media"], b["data"], b["url"]),
    "code": lambda b: Code(b["code"], b["language"]),
}


@lru_cache
def _readers(kind: type) -> dict[str, Callable[[Any], Any]]:  # Any: see `_reader`
    return {item.name: _reader(item.type) for item in fields(kind)}


def _reader(declared: object) -> Callable[[Any], Any]:  # Any: by the declared type of an event's field
    if declared is Json:
        return _json
    if declared is Message:
        return _message
    if declared is Binding:
        return _binding
    if declared is Usage:
        return lambda value: Usage(*value)
    if get_origin(declared) is tuple:
        item = get_args(declared)[0]
        if item is Message:
            return lambda value: tuple(map(_message, value))
        return lambda value: tuple(tuple(pair) for pair in value)
    return _same
