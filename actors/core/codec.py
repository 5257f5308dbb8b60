"""Events as JSON lines, and back.

One event is one JSON object: `{"v":1,"event":"returned",...}` with its fields by name. It is written as
segments that share the content's own pieces; a durable backend joins them. A log in memory keeps an event at rest: the
same segments, but for messages, which stay the records that the history holds, so that it costs little beside
the history. Reading is strict: an unknown version, event or field is refused, and so is a missing field or a value
that is not of its type.

Arguments are written as JSON inside a string, because their bytes, spaces included, must come back as the
model wrote them; a prefix may be bound to them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import lru_cache
from types import UnionType
from typing import Any, Literal, TypeAlias, get_args, get_origin

from actors.core.content import (
    Block,
    Code,
    Media,
    Message,
    Seal,
    Speaker,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.events import VERSION, Event
from actors.core.identity import Binding, CallId
from actors.core.jsonio import Json, JsonRefused, JsonValue, dump, nest, parse, quote
from actors.core.record import Record, freeze, thaw
from actors.core.stream import Usage
from actors.errors import JournalError

SMALL = 128
"""Pieces below this size, in bytes, are joined with their neighbours when an event is written; others are shared."""

MAX_LINE = 1 << 30
"""Bytes of the longest line that is read."""

Piece: TypeAlias = bytes | tuple[Message, ...]
"""JSON, or messages that are yet to be written."""

AtRest: TypeAlias = bytes | tuple[bytes | tuple[Record, ...], ...]
"""What `rest_event` makes and `rested_line` reads: segments of JSON, and records in the places of messages."""

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
    pieces: list[bytes] = []
    for piece in _pieces(event):
        if isinstance(piece, bytes):
            pieces.append(piece)
        else:
            _write_messages(piece, pieces)
    return _joined(pieces)


def rest_event(event: Event) -> AtRest:
    """Return an event as a log in memory keeps it. What is large in it, and its messages, are shared."""
    segments: list[bytes | tuple[Record, ...]] = []
    pieces: list[bytes] = []
    for piece in _pieces(event):
        if isinstance(piece, bytes):
            pieces.append(piece)
        else:
            segments += (*_joined(pieces), tuple(map(freeze, piece)))
            pieces = []
    segments += _joined(pieces)
    return segments[0] if len(segments) == 1 and isinstance(segments[0], bytes) else tuple(segments)


def rested_line(kept: AtRest) -> bytes:
    """Return the line of an event at rest: `encode_event`'s segments, joined."""
    if isinstance(kept, bytes):
        return kept
    pieces: list[bytes] = []
    for segment in kept:
        if isinstance(segment, bytes):
            pieces.append(segment)
        else:
            _write_messages(map(thaw, segment), pieces)
    return b"".join(pieces)


def _pieces(event: Event) -> list[Piece]:
    kind: type = type(event)
    head, names = _layout(kind)
    pieces: list[Piece] = [head]
    for name, key in names:
        pieces.append(key)
        _write(getattr(event, name), pieces)
    pieces.append(b"}")
    return pieces


@lru_cache
def _layout(kind: type) -> tuple[bytes, tuple[tuple[str, bytes], ...]]:
    """Return how an event's JSON begins, and its fields, each with its key as written."""
    head = b'{"v":%d,"event":"%b"' % (VERSION, _NAMES[kind].encode())
    return head, tuple((item.name, b',"%b":' % item.name.encode()) for item in fields(kind))


def _joined(pieces: list[bytes]) -> tuple[bytes, ...]:
    if max(map(len, pieces)) < SMALL:
        return (b"".join(pieces),)
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


def _write(value: object, pieces: list[Piece]) -> None:
    _WRITERS[type(value)](value, pieces)


_quoted = lru_cache(maxsize=1024)(quote)


def _word(text: str) -> Json:
    """Quote an id, a name or a status: the same few, again and again."""
    return _quoted(text) if len(text) <= SMALL else quote(text)


def _json_pieces(json: Json) -> tuple[bytes, ...]:
    return (b'{"text":', json, b"}") if json.startswith(b'"') else (nest(json),)


def _write_usage(usage: Usage, pieces: list[Piece]) -> None:
    _write_all(tuple(getattr(usage, name) for name in _FIGURES), pieces)


def _write_all(values: tuple[object, ...], pieces: list[Piece]) -> None:
    if messages := tuple(value for value in values if isinstance(value, Message)):
        pieces += (b"[", messages, b"]")
        return
    separator = b"["
    for value in values:
        pieces.append(separator)
        _write(value, pieces)
        separator = b","
    pieces.append(b"]" if values else b"[]")


@lru_cache(maxsize=1024)
def _binding_json(binding: Binding) -> Json:
    return dump([getattr(binding, item.name) for item in fields(binding)])


def _write_messages(messages: Iterable[Message], pieces: list[bytes]) -> None:
    for number, message in enumerate(messages):
        if number:
            pieces.append(b",")
        _write_message(message, pieces)


def _write_message(message: Message, pieces: list[bytes]) -> None:
    pieces.append(b'{"speaker":"%b","turn":%d,"origin":' % (message.speaker.encode(), message.turn))
    pieces += (b"null" if message.origin is None else _binding_json(message.origin), b',"blocks":[')
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
            head = b'{"call":%b,"name":%b,"arguments":' % (_word(id), _word(name))
            pieces += (head, nest(json), b',"raw":', b"null" if raw is None else quote(raw), b',"native":')
            _write_seal(native, pieces)
        case ToolResult(
            call_id=id, content_json=content, error_json=error, is_complete=complete, media=media
        ):
            pieces.append(b'{"result":%b,"content":' % _word(id))
            pieces += (b"null",) if content is None else _json_pieces(content)
            pieces.append(b',"error":')
            pieces += (b"null",) if error is None else _json_pieces(error)
            pieces.append(b',"is_complete":%b,"attached":[' % dump(complete))
            pieces.append(b",".join(map(_media_json, media)) + b"]}")
        case Media():
            pieces.append(_media_json(block))
        case Code(source=source, language=language):
            pieces.append(b'{"code":%b,"language":%b}' % (quote(source), quote(language)))


def _media_json(media: Media) -> Json:
    return Json(b'{"media":%b,"data":%b,"url":%b}' % (quote(media.mime), quote(media.data), quote(media.url)))


def _write_seal(seal: Seal | None, pieces: list[bytes]) -> None:
    """Write a seal and close the block that ends with it."""
    if seal is None:
        pieces.append(b"null}")
    else:
        pieces += (b"[", _word(seal.kind), b",", seal.data, b",", _binding_json(seal.origin), b"]}")


_FIGURES = tuple(item.name for item in fields(Usage))
_WRITERS: dict[type, Callable[[Any, list[Piece]], None]] = {  # Any: one writer a type
    bytes: lambda json, pieces: pieces.extend(_json_pieces(json)),
    str: lambda text, pieces: pieces.append(_word(text)),
    int: lambda number, pieces: pieces.append(b"%d" % number),
    bool: lambda value, pieces: pieces.append(b"true" if value else b"false"),
    type(None): lambda _, pieces: pieces.append(b"null"),
    tuple: _write_all,
    Message: lambda message, pieces: pieces.append((message,)),
    Binding: lambda binding, pieces: pieces.append(_binding_json(binding)),
    Usage: _write_usage,
    Media: lambda media, pieces: pieces.append(_media_json(media)),
}


# ---- reading


def decode_event(line: bytes) -> Event:
    """Return the event of one line.

    Raises:
        JournalError: The line is not an event of this version, every field there, of its type and no other. The
            message names the event, the field and the value.
    """
    try:
        return _event(parse(line, max_bytes=MAX_LINE))
    except JsonRefused as error:
        raise JournalError(f"Not an event: {line[:60]!r}: {error}; is the journal damaged?") from error
    except _Unfit as unfit:
        raise JournalError(f"Not an event: {unfit}; is the journal damaged?") from unfit


class _Unfit(Exception):
    """Something in a line is not what the catalogue says."""


def _unfit(where: str, value: JsonValue, wanted: str) -> _Unfit:
    shown = dump(value).decode()
    return _Unfit(f"{where} is {shown if len(shown) <= 60 else shown[:59] + '…'}, not {wanted}")


_Reader: TypeAlias = Callable[
    [JsonValue, str], Any
]  # Any: one reader a type; takes a value and where it stands


def _event(value: JsonValue) -> Event:
    given = _object(value, "the line")
    version, name = given.pop("v", None), given.pop("event", None)
    if type(version) is not int or version != VERSION:
        raise _unfit("v", version, f"version {VERSION}")
    kind = _EVENTS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise _unfit("event", name, "in the catalogue")
    event: Event = kind(*_fields(given, str(name), _readers(kind)))
    return event


def _object(value: JsonValue, where: str) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise _unfit(where, value, "an object")
    return value


def _fields(value: JsonValue, where: str, readers: dict[str, _Reader]) -> list[Any]:  # Any: see `_Reader`
    """Return an object's values in the readers' order. It has the readers' keys, all of them and no other."""
    given = _object(value, where)
    if missing := [key for key in readers if key not in given]:
        raise _Unfit(f"{where}.{missing[0]} is missing")
    if len(given) > len(readers):
        key = min(given.keys() - readers.keys())
        raise _unfit(f"{where}.{_short(key)}", given[key], "a field there is")
    return [read(given[key], f"{where}.{key}") for key, read in readers.items()]


def _short(key: str) -> str:
    return key if key.isidentifier() and len(key) <= 40 else repr(key[:40])


def _list(value: JsonValue, where: str, readers: Sequence[_Reader]) -> list[Any]:  # Any: see `_Reader`
    """Return the values of a list that has one item for each reader."""
    if not isinstance(value, list) or len(value) != len(readers):
        raise _unfit(where, value, f"a list of {len(readers)}")
    return [read(item, f"{where}[{at}]") for at, (read, item) in enumerate(zip(readers, value, strict=True))]


def _all(read: _Reader) -> _Reader:
    def read_all(value: JsonValue, where: str) -> tuple[Any, ...]:  # Any: see `_Reader`
        if not isinstance(value, list):
            raise _unfit(where, value, "a list")
        return tuple([read(item, f"{where}[{at}]") for at, item in enumerate(value)])

    return read_all


def _plain(kind: type, wanted: str) -> _Reader:
    def read_plain(value: JsonValue, where: str) -> JsonValue:
        if type(value) is not kind:  # True is no number here
            raise _unfit(where, value, wanted)
        return value

    return read_plain


def _one_of(words: tuple[str, ...]) -> _Reader:
    def read_one_of(value: JsonValue, where: str) -> JsonValue:
        if value not in words:
            raise _unfit(where, value, f"one of {', '.join(words)}")
        return value

    return read_one_of


def _or_none(read: _Reader) -> _Reader:
    return lambda value, where: None if value is None else read(value, where)


_text, _number, _truth = _plain(str, "a text"), _plain(int, "an integer"), _plain(bool, "true or false")


def _json(value: JsonValue, where: str) -> Json:
    """Return a value that was ingested: a text stands in an object, all else as JSON inside a string."""
    if isinstance(value, dict):
        (text,) = _fields(value, where, {"text": _text})
        return quote(text)
    return _nested(
        value, where, "null, true, false, a number, [ or {", lambda json: json[:1] not in '" \t\r\n'
    )


def _arguments(value: JsonValue, where: str) -> Json:
    return _nested(value, where, "an object", lambda json: json.startswith("{"))


def _nested(value: JsonValue, where: str, wanted: str, is_wanted: Callable[[str], bool]) -> Json:
    """Return the JSON that stands inside a string, byte for byte."""
    text: str = _text(value, where)
    json = Json(text.encode())
    try:
        parse(json, max_bytes=MAX_LINE)
    except JsonRefused as error:
        raise _unfit(where, value, f"JSON in a string ({error})") from None
    if not is_wanted(text):
        raise _unfit(where, value, f"JSON in a string that begins {wanted}")
    return json


def _binding(value: JsonValue, where: str) -> Binding:
    return Binding(*_list(value, where, [_text] * len(fields(Binding))))


def _usage(value: JsonValue, where: str) -> Usage:
    return Usage(*_list(value, where, [_number] * len(fields(Usage))))


def _seal(value: JsonValue, where: str) -> Seal:
    kind, data, origin = _list(value, where, (_text, _text, _binding))
    return Seal(kind, quote(data), origin)


def _message(value: JsonValue, where: str) -> Message:
    speaker, turn, origin, blocks = _fields(value, where, _MESSAGE)
    return Message(speaker, blocks, turn, origin)


def _media(value: JsonValue, where: str) -> Media:
    return Media(*_fields(value, where, _MEDIA))


def _block(value: JsonValue, where: str) -> Block:
    """Return the block that an object is: exactly one of its keys names a kind, wherever it stands."""
    given = _object(value, where)
    kinds = [key for key in given if key in _BLOCKS]
    if len(kinds) != 1:
        raise _unfit(where, value, f"a block of one kind ({', '.join(_BLOCKS)})")
    readers, make = _BLOCKS[kinds[0]]
    return make(*_fields(given, where, readers))


_MESSAGE: dict[str, _Reader] = {
    "speaker": _one_of(get_args(Speaker)),
    "turn": _number,
    "origin": _or_none(_binding),
    "blocks": _all(_block),
}
_MEDIA: dict[str, _Reader] = {"media": _text, "data": _text, "url": _text}
_BLOCKS: dict[str, tuple[dict[str, _Reader], Callable[..., Block]]] = {  # by the key that names the kind
    "text": ({"text": _text}, Text),
    "thinking": ({"thinking": _text, "seal": _or_none(_seal)}, Thinking),
    "call": (
        {
            "call": _text,
            "name": _text,
            "arguments": _arguments,
            "raw": _or_none(_text),
            "native": _or_none(_seal),
        },
        lambda call, name, json, raw, native: ToolCall(call, name, raw=raw, native=native, json=json),
    ),
    "result": (
        {
            "result": _text,
            "content": _or_none(_json),
            "error": _or_none(_json),
            "is_complete": _or_none(_truth),
            "attached": _all(_media),
        },
        lambda call, content, error, complete, media: ToolResult(
            call, content_json=content, error_json=error, is_complete=complete, media=media
        ),
    ),
    "media": (_MEDIA, Media),
    "code": ({"code": _text, "language": _text}, Code),
}
_TYPES: dict[object, _Reader] = {
    str: _text,
    int: _number,
    bool: _truth,
    CallId: _text,
    Json: _json,
    Message: _message,
    Binding: _binding,
    Usage: _usage,
    Media: _media,
}


@lru_cache
def _readers(kind: type) -> dict[str, _Reader]:
    return {item.name: _reader(item.type) for item in fields(kind)}


def _reader(declared: object) -> _Reader:
    """Return what reads a value of the declared type of an event's field."""
    items = get_args(declared)
    if declared in _TYPES:
        return _TYPES[declared]
    if get_origin(declared) is Literal:
        return _one_of(items)
    if get_origin(declared) is UnionType and items[1] is type(None):
        return _or_none(_reader(items[0]))
    if get_origin(declared) is tuple and items[-1] is Ellipsis:
        return _all(_reader(items[0]))
    if get_origin(declared) is tuple:
        readers = [_reader(item) for item in items]
        return lambda value, where: tuple(_list(value, where, readers))
    raise TypeError(f"An event's field of type {declared!r} cannot be read; say here how")
