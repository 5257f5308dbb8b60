"""A message at rest: a few bytes that the history, the log in memory and whoever else keeps it share.

A record is one bytes object: the message's fields in a row, between bytes that occur in no UTF-8 text. Fields
of `LARGE` bytes or more stay objects of their own, so that a tool's result is one object in the ledger, in the lanes
and here; the record is a plain tuple then. The collector of garbage has to visit neither.

A message is frozen once: it remembers its record, and a message that was thawed remembers the one it came from.
Lone surrogates have no bytes; in ids, names and addresses they become U+FFFD here, as they do in a log.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from sys import intern
from typing import TypeAlias

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
    setters,
)
from actors.core.identity import Binding, CallId
from actors.core.jsonio import mended

LARGE = 2048
"""Fields of this size, in bytes, are shared and not copied into a record. An object of its own takes some 100 more."""

Record: TypeAlias = bytes | tuple[bytes, ...]
"""What `freeze` makes and only `thaw` reads."""

# Bytes that UTF-8 never uses. A field stands behind the first, a part of a binding or of a result's media behind
# the second; the third is the place of a large field.
_FIELD, _PART, _LARGE = b"\xff", b"\xfe", b"\xfd"
_ABSENT, _NO, _YES = b"", b"0", b"1"  # a flag; what is absent of text or JSON has no bytes either
_UNSEALED = (_ABSENT, _ABSENT, _ABSENT)


def _whole(text: str) -> bytes:
    return (text if text.isascii() else mended(text)).encode()


@lru_cache(maxsize=4096)
def _packed_binding(binding: Binding) -> bytes:
    parts = (getattr(binding, item.name) for item in fields(Binding))
    return _PART.join(map(_whole, parts))


@lru_cache(maxsize=4096)
def _binding(packed: bytes) -> Binding:
    return Binding(*(part.decode() for part in packed.split(_PART)))


def _packed_seal(seal: Seal | None, origin: Binding | None) -> tuple[bytes, bytes, bytes]:
    """Return a seal's fields; that of the message's own origin does not repeat it."""
    if seal is None:
        return _UNSEALED
    own = seal.origin is origin or seal.origin == origin
    return (_whole(seal.kind), seal.data, _ABSENT if own else _packed_binding(seal.origin))


def _packed_media(media: tuple[Media, ...]) -> bytes:
    """Return the media of one result as one field."""
    return _PART.join([_whole(part) for item in media for part in (item.mime, item.data, item.url)])


def _packed(block: Block, origin: Binding | None) -> tuple[bytes, ...]:
    match block:
        case Text(json=json):
            return (b"t", json)
        case ToolResult(
            call_id=id, content_json=content, error_json=error, is_complete=complete, media=media
        ):
            flag = _ABSENT if complete is None else _YES if complete else _NO
            result = (b"a" if media else b"r", _whole(id), content or _ABSENT, error or _ABSENT, flag)
            return (*result, _packed_media(media)) if media else result
        case ToolCall(id=id, name=name, json=json, raw=raw, native=native):
            tag = b"c" if raw is None else b"w"
            call = (tag, _whole(id), _whole(name), json, *_packed_seal(native, origin))
            return call if raw is None else (*call, _whole(raw))
        case Thinking(json=json, seal=seal):
            return (b"h", json, *_packed_seal(seal, origin))
        case Media(mime=mime, data=data, url=url):
            return (b"m", _whole(mime), _whole(data), _whole(url))
        case Code(source=source, language=language):
            return (b"s", _whole(source), _whole(language))


def freeze(message: Message) -> Record:
    """Return a message as it is kept; the same object each time."""
    if message.at_rest is not None:
        return message.at_rest
    origin = message.origin
    maker = _ABSENT if origin is None else _packed_binding(origin)
    row = [_whole(message.speaker), b"%d" % message.turn, maker]
    for block in message.blocks:
        row += _packed(block, origin)
    record = _record(row)
    _set_at_rest(message, record)
    return record


def unkeepable(value: object) -> str | None:
    """Say why a value that should be a message cannot be kept; None if it can. For what comes from a host's code."""
    if not isinstance(value, Message):
        return f"{type(value).__name__} is no Message"
    try:
        freeze(value)
    except (AttributeError, TypeError, ValueError):
        return "a block or a field of it has the wrong type; texts and addresses are str, data is base64 in a str"
    return None


def _record(row: list[bytes]) -> Record:
    large = [field for field in row if len(field) >= LARGE]
    if not large:
        return _FIELD.join(row)
    return (_FIELD.join([_LARGE if len(field) >= LARGE else field for field in row]), *large)


def _row(record: Record) -> list[bytes]:
    if isinstance(record, bytes):
        return record.split(_FIELD)
    large = iter(record[1:])
    return [next(large) if field == _LARGE else field for field in record[0].split(_FIELD)]


_new = object.__new__  # without `__init__`, which would read the fields from keywords
(_set_text,) = setters(Text)
_set_words, _set_seal = setters(Thinking)
_set_kind, _set_data, _set_maker = setters(Seal)
_set_id, _set_content, _set_error, _set_complete, _set_media = setters(ToolResult)
_set_call, _set_name, _set_json, _set_raw, _set_native = setters(ToolCall)
_set_speaker, _set_blocks, _set_turn, _set_origin, _set_at_rest = setters(Message)


def _thawed_text(row: list[bytes], at: int, _origin: Binding | None) -> Text:
    text = _new(Text)
    _set_text(text, row[at + 1])
    return text


def _thawed_result(row: list[bytes], at: int, _origin: Binding | None) -> ToolResult:
    result, flag = _new(ToolResult), row[at + 4]
    _set_id(result, row[at + 1].decode())
    _set_content(result, row[at + 2] or None)
    _set_error(result, row[at + 3] or None)
    _set_complete(result, flag == _YES if flag else None)
    _set_media(result, ())
    return result


def _thawed_result_with_media(row: list[bytes], at: int, origin: Binding | None) -> ToolResult:
    result = _thawed_result(row, at, origin)
    parts = [part.decode() for part in row[at + 5].split(_PART)]
    _set_media(result, tuple([Media(*parts[start : start + 3]) for start in range(0, len(parts), 3)]))
    return result


def _thawed_call(row: list[bytes], at: int, origin: Binding | None) -> ToolCall:
    call = _new(ToolCall)
    _set_call(call, CallId(row[at + 1].decode()))
    _set_name(call, row[at + 2].decode())
    _set_json(call, row[at + 3])
    _set_raw(call, None)
    _set_native(call, _thawed_seal(row, at + 4, origin))
    return call


def _thawed_wrong_call(row: list[bytes], at: int, origin: Binding | None) -> ToolCall:
    call = _thawed_call(row, at, origin)
    _set_raw(call, row[at + 7].decode())
    return call


def _thawed_thinking(row: list[bytes], at: int, origin: Binding | None) -> Thinking:
    thinking = _new(Thinking)
    _set_words(thinking, row[at + 1])
    _set_seal(thinking, _thawed_seal(row, at + 2, origin))
    return thinking


def _thawed_seal(row: list[bytes], at: int, origin: Binding | None) -> Seal | None:
    data, maker = row[at + 1], row[at + 2]
    if not data:
        return None
    known = _binding(maker) if maker else origin
    assert known is not None
    seal = _new(Seal)
    _set_kind(seal, intern(row[at].decode()))
    _set_data(seal, data)
    _set_maker(seal, known)
    return seal


# How each block is read, given where its tag stands, and how many fields it takes.
_THAWED: dict[bytes, tuple[Callable[[list[bytes], int, Binding | None], Block], int]] = {
    b"t": (_thawed_text, 2),
    b"r": (_thawed_result, 5),
    b"a": (_thawed_result_with_media, 6),
    b"c": (_thawed_call, 7),
    b"w": (_thawed_wrong_call, 8),
    b"h": (_thawed_thinking, 5),
    b"m": (lambda row, at, _: Media(row[at + 1].decode(), row[at + 2].decode(), row[at + 3].decode()), 4),
    b"s": (lambda row, at, _: Code(row[at + 1].decode(), row[at + 2].decode()), 3),
}


def thaw(record: Record) -> Message:
    """Return the message a record holds; `thaw(freeze(m)) == m`, lone surrogates aside."""
    row = _row(record)
    origin = _binding(row[2]) if row[2] else None
    blocks: list[Block] = []
    at, end = 3, len(row)
    while at < end:
        thawed, size = _THAWED[row[at]]
        blocks.append(thawed(row, at, origin))
        at += size
    message = _new(Message)
    _set_speaker(message, intern(row[0].decode()))
    _set_blocks(message, tuple(blocks))
    _set_turn(message, int(row[1]))
    _set_origin(message, origin)
    _set_at_rest(message, record)
    return message
