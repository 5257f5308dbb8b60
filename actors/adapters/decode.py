"""The decoder for an answer, by dialect. A family's reader is imported when it is first asked for."""

from collections.abc import Mapping
from typing import assert_never

from actors.adapters.assembly import Assembly
from actors.adapters.base import AnswerReader, BodyDecoder, Frames, StreamDecoder
from actors.core.dialect import Dialect
from actors.core.identity import Binding


def decode(
    profile: Dialect,
    binding: Binding | None = None,
    *,
    first_call: int = 1,
    turn: int = 0,
    names: Mapping[str, str] | None = None,
) -> StreamDecoder:
    """Return a decoder for one streamed answer.

    Args:
        profile: The dialect the provider speaks.
        binding: Who is answering; without it, a nameless backend of this dialect.
        first_call: Number of the first canonical id to mint.
        turn: Number of the turn the message belongs to.
        names: `Request.names` of what is being answered: tools the provider knows by another name.
    """
    return StreamDecoder(_reader(profile, binding, first_call, turn, names), _frames(profile))


def decode_body(
    profile: Dialect,
    binding: Binding | None = None,
    *,
    first_call: int = 1,
    turn: int = 0,
    names: Mapping[str, str] | None = None,
) -> BodyDecoder:
    """Return a decoder for one answer that is not streamed. Arguments as for `decode`."""
    return BodyDecoder(_reader(profile, binding, first_call, turn, names))


def _reader(
    profile: Dialect, binding: Binding | None, first_call: int, turn: int, names: Mapping[str, str] | None
) -> AnswerReader:
    binding = binding or Binding(profile.name, profile.name)
    assembly = Assembly(profile, binding, first_call=first_call, turn=turn, names=names)
    match profile.family:
        case "openai_chat":
            from actors.adapters.openai_chat.decode import ChatReader

            return ChatReader(assembly, profile)
        case "anthropic":
            from actors.adapters.anthropic.decode import MessagesReader

            return MessagesReader(assembly, profile)
        case "responses":
            from actors.adapters.responses.decode import ResponsesReader

            return ResponsesReader(assembly, profile)
        case "gemini":
            from actors.adapters.gemini.decode import GenerateContentReader

            return GenerateContentReader(assembly, profile)
        case "converse":
            from actors.adapters.converse.decode import ConverseReader

            return ConverseReader(assembly, profile)
        case _:
            assert_never(profile.family)


def _frames(profile: Dialect) -> Frames | None:
    """Return what splits the stream where it is no server-sent events."""
    if profile.family != "converse":
        return None
    from actors.adapters.converse.frames import FrameParser

    return FrameParser()
