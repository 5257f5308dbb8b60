"""Pack messages into the bytes that histories, the log and exports share.

The bytes are the message's msgpack without repeated or very long parts: a seal by the message's own origin omits that
origin, and large media stay outside the bytes, shared and never copied. Equal messages have equal bytes. Lone
surrogates in ids, names and URLs become U+FFFD.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import MsgspecError, ValidationError
from msgspec.msgpack import Decoder, Encoder
from msgspec.structs import force_setattr

from actors.core.data.jsonio import sanitise
from actors.core.data.record import StoredRecord, from_fields, replace
from actors.core.values.content import (
    Block,
    Media,
    Message,
    ProviderBlock,
    ProviderState,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.identity import Binding

LARGE = 2048  # characters of base64 from which media stay outside the bytes

Packed: TypeAlias = bytes | tuple[bytes, tuple[str, ...]]
"""The output of `pack`, read only by `unpack`: the bytes and, in message order, the media outside them."""

_DETACHED = "\0"  # a placeholder for media outside the bytes; base64 cannot contain it
_ENCODER, _DECODER = Encoder(), Decoder(Message)


def pack(message: Message) -> Packed:
    detached: list[str] = []
    slim = [_strip_block(block, message.origin, detached) for block in message.blocks]
    body = encode_record(replace(message, blocks=tuple(slim)))
    return (body, tuple(detached)) if detached else body


def size_of(packed: Packed) -> int:
    """Return the bytes of a packed message, media included."""
    return len(packed) if isinstance(packed, bytes) else len(packed[0]) + sum(map(len, packed[1]))


def unpack(packed: Packed) -> Message:
    """Return a packed message; `unpack(pack(m)) == m`, except for lone surrogates.

    Raises:
        MsgspecError: The bytes are not a message.
    """
    if isinstance(packed, bytes):
        message = _DECODER.decode(packed)
    else:
        message = _DECODER.decode(packed[0])
        _restore_media(message, iter(packed[1]))
    origin = None if message.origin is None else intern_binding(message.origin)
    if origin is not None:
        force_setattr(message, "origin", origin)
    for block in message.blocks:
        if type(block) is not Text and (seal := seal_of(block)) is not None:
            maker = origin if seal.maker is None else intern_binding(seal.maker)
            if maker is None:
                raise ValidationError("A seal has no maker")
            force_setattr(seal, "maker", maker)
    return message


@lru_cache(maxsize=4096)
def intern_binding(binding: Binding) -> Binding:
    """Return one object for all equal bindings: a process has few bindings, but very many values refer to them."""
    return binding


def encode_record(record: StoredRecord) -> bytes:
    """Return a record's msgpack without the encoder's spare capacity."""
    try:
        made = _ENCODER.encode(record)
    except UnicodeEncodeError:
        made = _ENCODER.encode(_sanitise(record))
    return bytes(memoryview(made))


def packed_for_host(value: object) -> Packed:
    """Return the packed form of a message that came from the host's code.

    Raises:
        ValueError: The value is not a valid message. The text is meant for the host.
    """
    if not isinstance(value, Message):
        raise ValueError(f"{type(value).__name__} is not a Message")
    try:
        packed = pack(value)
        unpack(packed)
    except (MsgspecError, AttributeError, OverflowError, TypeError, ValueError):
        why = "a block or a field has the wrong type; texts and URLs are str, data is base64 in a str"
        raise ValueError(why) from None
    return packed


def seal_of(block: Block) -> ProviderState | None:
    """Return the provider state that a block carries, if any."""
    if type(block) is ToolCall:
        return block.native
    return block.seal if type(block) is Thinking or type(block) is ProviderBlock else None


def _strip_block(block: Block, origin: Binding | None, detached: list[str]) -> Block:
    seal = seal_of(block)
    if seal is not None and seal.maker == origin and origin is not None:
        own = replace(seal, maker=None)
        return replace(block, native=own) if type(block) is ToolCall else replace(block, seal=own)
    if type(block) is Media:
        return _strip_media(block, detached)
    if type(block) is ToolResult and block.media:
        return replace(block, media=tuple([_strip_media(item, detached) for item in block.media]))
    return block


def _strip_media(media: Media, detached: list[str]) -> Media:
    data = media.data
    if len(data) < LARGE and data != _DETACHED:
        return media
    detached.append(data if data.isascii() else sanitise(data))
    return replace(media, data=_DETACHED)


def _restore_media(message: Message, detached: Iterator[str]) -> None:
    for block in message.blocks:
        held = (block,) if type(block) is Media else block.media if type(block) is ToolResult else ()
        for media in held:
            if media.data == _DETACHED:
                force_setattr(media, "data", next(detached, ""))


def _sanitise(value: Any) -> object:  # Any: a field's value
    """Return the value with all lone surrogates replaced."""
    items: tuple[object, ...] = value
    if isinstance(value, str):
        return sanitise(value)
    if isinstance(value, tuple):
        return tuple(map(_sanitise, items))
    if isinstance(value, StoredRecord):
        return from_fields(
            type(value), *(_sanitise(getattr(value, name)) for name in value.__struct_fields__)
        )
    return value
