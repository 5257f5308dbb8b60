"""Pack messages into bytes, which histories, the log and exports share.

The bytes are the message as msgpack, with two exceptions. Provider state that the message's origin produced does not
repeat that origin. Large media are stored outside the bytes, so that they are shared instead of copied. Equal messages
have equal bytes. Lone surrogates in ids, names and URLs become U+FFFD.
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

LARGE = 2048  # media with at least this many base64 characters are stored outside the bytes

Packed: TypeAlias = bytes | tuple[bytes, tuple[str, ...]]
"""A packed message, read only by `unpack`: its bytes, or the bytes and the media outside them in message order."""

_DETACHED = "\0"  # replaces media that are outside the bytes; valid base64 cannot contain this character
_ENCODER, _DECODER = Encoder(), Decoder(Message)


def pack(message: Message) -> Packed:
    """Return a message in packed form. `unpack` restores it."""
    detached: list[str] = []
    slim = [_strip_block(block, message.origin, detached) for block in message.blocks]
    body = encode_record(replace(message, blocks=tuple(slim)))
    return (body, tuple(detached)) if detached else body


def size_of(packed: Packed) -> int:
    """Return the size of a packed message in bytes, including its media."""
    return len(packed) if isinstance(packed, bytes) else len(packed[0]) + sum(map(len, packed[1]))


def unpack(packed: Packed) -> Message:
    """Return the message that was packed: `unpack(pack(m)) == m`, except for lone surrogates.

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
                raise ValidationError("A seal names no binding, and its message has no origin")
            force_setattr(seal, "maker", maker)
    return message


@lru_cache(maxsize=4096)
def intern_binding(binding: Binding) -> Binding:
    """Return the same object for all equal bindings.

    This saves memory, because many values refer to a few bindings.
    """
    return binding


def encode_record(record: StoredRecord) -> bytes:
    """Return a record as msgpack, copied to drop the spare capacity of the encoder's buffer."""
    try:
        encoded = _ENCODER.encode(record)
    except UnicodeEncodeError:  # a string contains a lone surrogate
        encoded = _ENCODER.encode(_sanitise(record))
    return bytes(memoryview(encoded))


def pack_host_message(value: object) -> Packed:
    """Pack a message that the application created, and check its types.

    Raises:
        ValueError: The value is not a valid message. The error message names the problem.
    """
    if not isinstance(value, Message):
        raise ValueError(f"{type(value).__name__} is not a Message")
    try:
        packed = pack(value)
        unpack(packed)
    except (MsgspecError, AttributeError, OverflowError, TypeError, ValueError):
        why = "a block or a field has the wrong type; texts and URLs must be str, and data must be base64 in a str"
        raise ValueError(why) from None
    return packed


def seal_of(block: Block) -> ProviderState | None:
    """Return the provider state of a block; None if the block has none."""
    if type(block) is ToolCall:
        return block.native
    return block.seal if type(block) is Thinking or type(block) is ProviderBlock else None


def _strip_block(block: Block, origin: Binding | None, detached: list[str]) -> Block:
    """Remove large media from a block, and the origin of its provider state if that equals `origin`.

    The data of the media is appended to `detached`.
    """
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
    """Return media without its data if the data is large. The data is appended to `detached`."""
    data = media.data
    if len(data) < LARGE and data != _DETACHED:
        return media
    detached.append(data if data.isascii() else sanitise(data))
    return replace(media, data=_DETACHED)


def _restore_media(message: Message, detached: Iterator[str]) -> None:
    """Put the data in `detached` back into the media of a message."""
    for block in message.blocks:
        attached = (block,) if type(block) is Media else block.media if type(block) is ToolResult else ()
        for media in attached:
            if media.data == _DETACHED:
                force_setattr(media, "data", next(detached, ""))


def _sanitise(value: Any) -> object:  # Any: avoids a cast for `items`
    """Return the value with U+FFFD in place of every lone surrogate, in nested records and tuples too."""
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
