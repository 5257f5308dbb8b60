"""A packed message: the bytes that a history, the log and everything else that keeps it share.

They are the msgpack of the message, without what would be in it many times or at great length: a seal of the message's
own origin does not repeat it, and large media stay beside the bytes, shared by all and copied by none. Equal messages
have equal bytes. Lone surrogates have none: in ids, names and addresses they become U+FFFD here.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from msgspec import MsgspecError, ValidationError
from msgspec.msgpack import Decoder, Encoder
from msgspec.structs import force_setattr

from actors.core.data.form import Form, kept, replace
from actors.core.data.jsonio import sanitised
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

LARGE = 2048  # characters from which media are kept beside a message's bytes

Packed: TypeAlias = bytes | tuple[bytes, tuple[str, ...]]
"""What `pack` makes and only `unpack` reads: the bytes, and what is beside them in the message's order."""

_BESIDE = "\0"  # in the place of media that are beside; no base64 has it
_ENCODER, _DECODER = Encoder(), Decoder(Message)


def pack(message: Message) -> Packed:
    beside: list[str] = []
    slim = [_slim(block, message.origin, beside) for block in message.blocks]
    body = encoded(replace(message, blocks=tuple(slim)))
    return (body, tuple(beside)) if beside else body


def size_of(packed: Packed) -> int:
    """Return how many bytes a packed message takes, what is beside it included."""
    return len(packed) if isinstance(packed, bytes) else len(packed[0]) + sum(map(len, packed[1]))


def unpack(packed: Packed) -> Message:
    """Return a packed message; `unpack(pack(m)) == m`, lone surrogates aside.

    Raises:
        MsgspecError: These bytes are no message.
    """
    if isinstance(packed, bytes):
        message = _DECODER.decode(packed)
    else:
        message = _DECODER.decode(packed[0])
        _bring_back(message, iter(packed[1]))
    origin = None if message.origin is None else shared(message.origin)
    if origin is not None:
        force_setattr(message, "origin", origin)
    for block in message.blocks:
        if type(block) is not Text and (seal := seal_of(block)) is not None:
            maker = origin if seal.maker is None else shared(seal.maker)
            if maker is None:
                raise ValidationError("A seal names nobody who made it")
            force_setattr(seal, "maker", maker)
    return message


@lru_cache(maxsize=4096)
def shared(binding: Binding) -> Binding:
    """Return the one object that stands for all bindings equal to this one: few of them are in very many values."""
    return binding


def encoded(form: Form) -> bytes:
    """Return a form's msgpack, without the spare memory that an encoder leaves."""
    try:
        made = _ENCODER.encode(form)
    except UnicodeEncodeError:
        made = _ENCODER.encode(_whole(form))
    return bytes(memoryview(made))


def packed_for_host(value: object) -> Packed:
    """Return what a host's code gave as a message, as it is kept.

    Raises:
        ValueError: It cannot be kept, in words for the host.
    """
    if not isinstance(value, Message):
        raise ValueError(f"{type(value).__name__} is no Message")
    try:
        packed = pack(value)
        unpack(packed)
    except (MsgspecError, AttributeError, OverflowError, TypeError, ValueError):
        why = "a block or a field of it has the wrong type; texts and addresses are str, data is base64 in a str"
        raise ValueError(why) from None
    return packed


def seal_of(block: Block) -> ProviderState | None:
    """Return the provider state that a block carries, if any."""
    if type(block) is ToolCall:
        return block.native
    return block.seal if type(block) is Thinking or type(block) is ProviderBlock else None


def _slim(block: Block, origin: Binding | None, beside: list[str]) -> Block:
    seal = seal_of(block)
    if seal is not None and seal.maker == origin and origin is not None:
        own = replace(seal, maker=None)
        return replace(block, native=own) if type(block) is ToolCall else replace(block, seal=own)
    if type(block) is Media:
        return _thin(block, beside)
    if type(block) is ToolResult and block.media:
        return replace(block, media=tuple([_thin(item, beside) for item in block.media]))
    return block


def _thin(media: Media, beside: list[str]) -> Media:
    data = media.data
    if len(data) < LARGE and data != _BESIDE:
        return media
    beside.append(data if data.isascii() else sanitised(data))
    return replace(media, data=_BESIDE)


def _bring_back(message: Message, beside: Iterator[str]) -> None:
    """Put media back into a message that was just decoded."""
    for block in message.blocks:
        held = (block,) if type(block) is Media else block.media if type(block) is ToolResult else ()
        for media in held:
            if media.data == _BESIDE:
                force_setattr(media, "data", next(beside, ""))


def _whole(value: object) -> object:
    """Return a value whose texts have no lone surrogates."""
    if isinstance(value, str):
        return sanitised(value)
    if isinstance(value, tuple):
        return tuple(map(_whole, value))
    if isinstance(value, Form):
        return kept(type(value), *(_whole(getattr(value, name)) for name in value.__struct_fields__))
    return value
