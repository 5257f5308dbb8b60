"""The decoder for an answer, by dialect."""

from typing import Protocol

from actors.adapters.anthropic.decode import MessagesBody, MessagesStream
from actors.adapters.base import BodyDecoder, StreamDecoder
from actors.adapters.openai_chat.decode import ChatBody, ChatStream
from actors.core.dialect import Dialect, Family
from actors.core.identity import Binding


class _MakesStream(Protocol):
    def __call__(self, binding: Binding, *, first_call: int, turn: int) -> StreamDecoder: ...


class _MakesBody(Protocol):
    def __call__(self, binding: Binding, *, first_call: int, turn: int) -> BodyDecoder: ...


_STREAMS: dict[Family, _MakesStream] = {"openai_chat": ChatStream, "anthropic": MessagesStream}
_BODIES: dict[Family, _MakesBody] = {"openai_chat": ChatBody, "anthropic": MessagesBody}


def decode(
    profile: Dialect, binding: Binding | None = None, *, first_call: int = 1, turn: int = 0
) -> StreamDecoder:
    """Return a decoder for one streamed answer.

    Args:
        profile: The dialect the provider speaks.
        binding: Who is answering; without it, a nameless backend of this dialect.
        first_call: Number of the first canonical id to mint.
        turn: Number of the turn the message belongs to.
    """
    return _STREAMS[profile.family](binding or _nameless(profile), first_call=first_call, turn=turn)


def decode_body(
    profile: Dialect, binding: Binding | None = None, *, first_call: int = 1, turn: int = 0
) -> BodyDecoder:
    """Return a decoder for one answer that is not streamed. Arguments as for `decode`."""
    return _BODIES[profile.family](binding or _nameless(profile), first_call=first_call, turn=turn)


def _nameless(profile: Dialect) -> Binding:
    return Binding(profile.name, profile.name)
