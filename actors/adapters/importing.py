"""From a provider's wire transcript to messages. The door for transcripts made by anyone, broken or not."""

from collections.abc import Callable, Mapping, Sequence

from actors.adapters.anthropic import importing as anthropic
from actors.adapters.openai_chat import importing as openai_chat
from actors.adapters.reading import Imported, Reading
from actors.core.dialect import Family, dialect
from actors.core.identity import Binding
from actors.errors import TranscriptError

_READERS: dict[Family, Callable[[Sequence[object], Reading], None]] = {
    "openai_chat": openai_chat.read,
    "anthropic": anthropic.read,
}


def from_wire(transcript: object, name: str, *, first_call: int = 1) -> Imported:
    """Read a wire transcript into messages, whatever state it is in.

    Args:
        transcript: The parsed `messages` list, or a whole request body that holds one.
        name: The dialect it is written in.
        first_call: Number of the first canonical id to mint.

    Results are paired as `actors.adapters.reading` says. What the model said has the origin
    `imported`, so nothing sealed in it is ever sent to a provider as its own.

    Raises:
        TranscriptError: It is no transcript at all.
        UnknownTarget: There is no such dialect.
    """
    profile = dialect(name)
    reading = Reading(Binding("imported", profile.name), first_call)
    messages, system = _parts(transcript)
    reading.begin("system", "human")
    reading.instruct(anthropic.instructions(system))
    _READERS[profile.family](messages, reading)
    return reading.done()


def _parts(transcript: object) -> tuple[Sequence[object], object]:
    """Return the messages and the top-level system prompt, if the transcript is a body that has one."""
    system: object = None
    if isinstance(transcript, Mapping):
        if "messages" not in transcript:
            raise TranscriptError("Not a transcript: an object without 'messages'; give a list of messages")
        system = transcript.get("system")
        transcript = transcript["messages"]
    if not isinstance(transcript, list | tuple):
        raise TranscriptError(f"Not a transcript: {type(transcript).__name__}; give a list of messages")
    messages = [_plain(message) for message in transcript]
    if messages and not any(isinstance(message, dict) for message in messages):
        raise TranscriptError(f"Not a transcript: none of its {len(messages)} items is an object with a role")
    return messages, system


def _plain(message: object) -> object:
    """Return a message as plain data: people keep what a vendor's client returned among their own dicts."""
    message = _dumped(message)
    if isinstance(message, dict) and isinstance(message.get("content"), list):
        return {**message, "content": [_dumped(block) for block in message["content"]]}
    return message


def _dumped(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        return value
    try:
        plain: object = dump()
    except Exception:  # foreign code; what cannot be read stays as it is and is kept as text
        return value
    return plain
