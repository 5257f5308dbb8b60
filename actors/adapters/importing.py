"""From a provider's wire transcript to messages: for transcripts made by anyone, broken or not."""

from collections.abc import Mapping, Sequence

from actors.adapters.guess import guessed, refuse_other
from actors.adapters.wire_object import WireObject, plain
from actors.core.content import Message
from actors.core.identity import Binding
from actors.core.intake import Remarks
from actors.core.profiles import dialect
from actors.errors import TranscriptError

HOLDERS = ("messages", "input", "contents")
"""Keys under which a request body holds its transcript."""
INSTRUCTIONS = ("system", "instructions", "systemInstruction", "system_instruction")
"""Keys under which it holds the system prompt."""


def read(transcript: object, name: str | None) -> tuple[list[tuple[str, Message]], Remarks, str | None]:
    """Read a wire transcript in the shape it is in; return its messages, what was odd, and the system prompt.

    Args:
        transcript: The parsed `messages` list (`input`, `contents`), or a whole request body that holds one.
        name: The dialect it is written in; without it, the one it looks like, and the report says which.

    What the model said has the origin `imported`, so nothing sealed in it is ever sent to a provider as its own.

    Raises:
        TranscriptError: It is no transcript at all, or plainly one of another dialect.
        UnknownTarget: There is no such dialect.
    """
    from actors.adapters.codec import codec

    profile, mark = None if name is None else dialect(name), ""
    body = WireObject(transcript)
    messages = _messages(transcript, body)
    if profile is None:
        profile, mark = guessed(transcript)
    else:
        refuse_other(transcript, profile)
    reading = codec(profile.family).reading(Binding("imported", profile.name))
    if mark:
        reading.note("read as %s: %s", profile.name, mark)
    reading.instruct(body, *INSTRUCTIONS)
    reading.read(messages)
    for path in body.unread():
        reading.remarks.left_out.add(path.removeprefix("."))
    return reading.done()


def _messages(transcript: object, body: WireObject) -> Sequence[object]:
    """Return the messages of a transcript, or of a body that holds one."""
    if isinstance(transcript, Mapping):
        held = next((key for key in HOLDERS if key in transcript), None)
        if held is None:
            raise TranscriptError("Not a transcript: an object without 'messages'; give a list of messages")
        transcript = body.take(held)
        if held == "input" and isinstance(transcript, str):
            transcript = [{"role": "user", "content": transcript}]
    if not isinstance(transcript, list | tuple):
        raise TranscriptError(f"Not a transcript: {type(transcript).__name__}; give a list of messages")
    if transcript and not any(isinstance(plain(message), dict) for message in transcript):
        raise TranscriptError(
            f"Not a transcript: none of its {len(transcript)} items is an object with a role"
        )
    return transcript
