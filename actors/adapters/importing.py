"""From a provider's wire transcript to messages: for transcripts made by anyone, broken or not."""

from collections.abc import Mapping, Sequence
from typing import assert_never

from actors.adapters.anthropic.importing import instructions
from actors.adapters.reading import Read, Reading
from actors.core.dialect import Dialect
from actors.core.identity import Binding
from actors.core.profiles import dialect
from actors.errors import TranscriptError


def read(transcript: object, name: str) -> Read:
    """Read a wire transcript in the shape it is in.

    Args:
        transcript: The parsed `messages` list (`input`, `contents`), or a whole request body that holds one.
        name: The dialect it is written in.

    What the model said has the origin `imported`, so nothing sealed in it is ever sent to a provider as its own.

    Raises:
        TranscriptError: It is no transcript at all.
        UnknownTarget: There is no such dialect.
    """
    profile = dialect(name)
    reading = Reading(Binding("imported", profile.name))
    messages, system = _parts(transcript)
    reading.begin("system", "human")
    reading.instruct(_instructions(profile, system))
    _read(profile, messages, reading)
    return reading.done()


def _instructions(profile: Dialect, system: object) -> str:
    if profile.family == "converse":
        from actors.adapters.converse import importing as converse

        return converse.instructions(system)
    return instructions(system)


def _read(profile: Dialect, messages: Sequence[object], reading: Reading) -> None:
    match profile.family:
        case "openai_chat":
            from actors.adapters.openai_chat import importing as openai_chat

            openai_chat.read(messages, reading)
        case "anthropic":
            from actors.adapters.anthropic import importing as anthropic

            anthropic.read(messages, reading)
        case "responses":
            from actors.adapters.responses import importing as responses

            responses.read(messages, reading)
        case "gemini":
            from actors.adapters.gemini import importing as gemini

            gemini.read(messages, reading)
        case "converse":
            from actors.adapters.converse import importing as converse

            converse.read(messages, reading)
        case _:
            assert_never(profile.family)


def _parts(transcript: object) -> tuple[Sequence[object], object]:
    """Return the messages and the top-level system prompt, if the transcript is a body that has one."""
    system: object = None
    if isinstance(transcript, Mapping):
        held = next((key for key in _HOLDERS if key in transcript), None)
        if held is None:
            raise TranscriptError("Not a transcript: an object without 'messages'; give a list of messages")
        system = _spread(next((transcript[key] for key in _INSTRUCTIONS if key in transcript), None))
        transcript = transcript[held]
        if held == "input" and isinstance(transcript, str):
            transcript = [{"role": "user", "content": transcript}]
    if not isinstance(transcript, list | tuple):
        raise TranscriptError(f"Not a transcript: {type(transcript).__name__}; give a list of messages")
    messages = [_plain(message) for message in transcript]
    if messages and not any(isinstance(message, dict) for message in messages):
        raise TranscriptError(f"Not a transcript: none of its {len(messages)} items is an object with a role")
    return messages, system


_HOLDERS = ("messages", "input", "contents")
"""Keys under which a request body holds its transcript."""
_INSTRUCTIONS = ("system", "instructions", "systemInstruction", "system_instruction")
"""Keys under which it holds the system prompt."""


def _spread(system: object) -> object:
    """Return a system prompt that is a content with parts as a list of text blocks."""
    system = _dumped(system)
    if not isinstance(system, Mapping) or not isinstance(system.get("parts"), list | tuple):
        return system
    return [{"type": "text", **part} for part in map(_dumped, system["parts"]) if isinstance(part, Mapping)]


def _plain(message: object) -> object:
    """Return a message as plain data: people keep what a vendor's client returned among their own dicts."""
    message = _dumped(message)
    if not isinstance(message, dict):
        return message
    lists = {key: message[key] for key in ("content", "parts") if isinstance(message.get(key), list)}
    return {**message, **{key: [_dumped(block) for block in blocks] for key, blocks in lists.items()}}


def _dumped(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        return value
    try:
        plain: object = dump()
    except Exception:  # foreign code; what cannot be read stays as it is and is kept as text
        return value
    return plain
