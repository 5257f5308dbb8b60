"""Read a provider's wire transcript into messages: transcripts made by anyone, broken or not.

`recognition` finds out which dialect a transcript is written in; the reading of that family does the rest.
"""

from collections.abc import Mapping, Sequence

from actors.adapters.recognition import GIVE_ONE, HOLDERS, recognise, refuse_foreign
from actors.adapters.wire_object import WireObject, plain
from actors.core.dialects.profiles import dialect
from actors.core.values.content import Message
from actors.core.values.identity import Binding
from actors.core.values.intake import Remarks
from actors.errors import TranscriptError

INSTRUCTIONS = ("system", "instructions", "systemInstruction", "system_instruction")  # and its system prompt


def read(transcript: object, name: str | None) -> tuple[list[tuple[str, Message]], Remarks, str | None]:
    """Read a wire transcript in the shape it is in; return its messages, what was odd, and the system prompt.

    Args:
        transcript: The parsed `messages` list (`input`, `contents`), or a whole request body that holds one.
        name: The dialect it is written in; without it, the only one it fits, and the report says which.

    What the model said has the origin `imported`, so nothing sealed in it is ever sent to a provider as its own.

    Raises:
        TranscriptError: It is no transcript at all, or plainly one of another dialect, or fits none or several.
        UnknownTarget: There is no such dialect.
    """
    from actors.adapters.codec import codec

    named, body = None if name is None else dialect(name), WireObject(transcript)
    refuse_foreign(transcript, named)
    messages = _messages(transcript, body)
    profile, mark = recognise(transcript, named)
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
            raise TranscriptError(f"Not a transcript: an object without 'messages'; {GIVE_ONE}")
        transcript = body.take(held)
        if held == "input" and isinstance(transcript, str):
            transcript = [{"role": "user", "content": transcript}]
    if not isinstance(transcript, list | tuple):
        raise TranscriptError(f"Not a transcript: {type(transcript).__name__}; give a list of messages")
    if transcript and not any(isinstance(plain(message), dict) for message in transcript):
        count = len(transcript)
        raise TranscriptError(f"Not a transcript: none of its {count} items is an object; {GIVE_ONE}")
    return transcript
