"""From a provider's wire transcript to messages: for transcripts made by anyone, broken or not.

Which family it is written in is told by marks that only one of them has; words alone look alike in several. A mark is
either plain, and then a transcript that is read as another family's is refused, or a hint, which decides only where
nobody said.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from actors.adapters.wire import Fields, fields, items, string
from actors.adapters.wire_object import WireObject, plain
from actors.core.content import Message
from actors.core.dialect import Dialect, Family
from actors.core.identity import Binding
from actors.core.intake import Remarks
from actors.core.profiles import ANTHROPIC, BEDROCK, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, dialect
from actors.errors import TranscriptError

HOLDERS = ("messages", "input", "contents")  # keys under which a request body holds its transcript
INSTRUCTIONS = ("system", "instructions", "systemInstruction", "system_instruction")  # and its system prompt


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

    named, body = None if name is None else dialect(name), WireObject(transcript)
    messages = _messages(transcript, body)
    profile, mark = written_in(transcript, named)
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
        count = len(transcript)
        raise TranscriptError(f"Not a transcript: none of its {count} items is an object with a role")
    return transcript


# ---- whose it is


class _Mark(NamedTuple):
    """Something that one family has, where it stands, and whether no other family could have it."""

    family: Family
    place: str
    is_plain: bool = True


_NAMES: Mapping[Family, Dialect] = {
    each.family: each for each in (OPENAI_CHAT, ANTHROPIC, OPENAI_RESPONSES, GEMINI, BEDROCK)
}
_BLOCKS: Mapping[str, tuple[Family, bool]] = {
    **dict.fromkeys(("tool_use", "redacted_thinking", "server_tool_use"), ("anthropic", True)),
    "tool_result": ("anthropic", False),  # without its call it may be one that somebody sent to another host
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), ("responses", False)),
    **dict.fromkeys(("image_url", "input_audio"), ("openai_chat", False)),
}
_CONVERSE = ("toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent")
_ITEMS = ("reasoning", "item_reference", "function_call_output", "custom_tool_call_output")


def written_in(transcript: object, named: Dialect | None) -> tuple[Dialect, str]:
    """Return the dialect that is named; without a name the one that a transcript looks like, and what tells so.

    Raises:
        TranscriptError: It has plain marks of another than is named and none of this one, or of several; or it is said
            to be Gemini's, and has nothing where Gemini says everything.
    """
    marks, plain = list(_marks(transcript)), dict[Family, _Mark]()
    for mark in marks:
        if mark.is_plain:
            plain.setdefault(mark.family, mark)
    looks = [f"{_NAMES[mark.family].name} ({mark.place})" for mark in plain.values()]
    if named is not None:
        if plain and named.family not in plain:
            raise TranscriptError(f"The transcript looks like {looks[0]}, not {named.name}")
        if named.family == "gemini" and not plain and (place := _said_in_content(transcript)):
            raise TranscriptError(
                f"The transcript is not {named.name}: {place} has 'content', and no 'parts'"
            )
        return named, ""
    if len(looks) > 1:
        raise TranscriptError(f"The transcript looks like {' and '.join(looks)}; name its dialect")
    told = next(iter([*plain.values(), *marks]), None)
    return (_NAMES[told.family], told.place) if told else (OPENAI_CHAT, "roles and words alone")


def _marks(transcript: object) -> Iterator[_Mark]:
    yield from _of_body(fields(transcript))
    for place, message in _placed(transcript):
        yield from _of_message(message, place)


def _placed(transcript: object) -> Iterator[tuple[str, Fields]]:
    body = fields(transcript)
    container = next((key for key in reversed(HOLDERS) if key in body), "messages")
    for number, value in enumerate(items(body.get(container, transcript))):
        yield f"{container}[{number}]", fields(plain(value))


def _said_in_content(transcript: object) -> str | None:
    """Return the first message that has content, where no message has parts (which would be a plain mark)."""
    return next((place for place, message in _placed(transcript) if message.get("content")), None)


def _of_body(body: Fields) -> Iterator[_Mark]:
    if "contents" in body:
        yield _Mark("gemini", "it has 'contents'")
    elif "input" in body and "messages" not in body:
        yield _Mark("responses", "it has 'input'")
    for key in ("toolConfig", "inferenceConfig"):
        if key in body and "messages" in body:
            yield _Mark("converse", f"it has '{key}'")
    if "system" in body:
        yield _Mark("anthropic", "it has 'system' beside its messages", is_plain=False)


def _of_message(message: Fields, place: str) -> Iterator[_Mark]:
    role, kind = string(message.get("role")), string(message.get("type"))
    if isinstance(message.get("parts"), list | tuple):
        yield _Mark("gemini", f"{place} has 'parts'")
    if not role and (kind in _ITEMS or kind.endswith("_call")):
        yield _Mark("responses", f"{place} is a {kind[:40]} item")
    elif role in ("tool", "function") and "content" in message:
        yield _Mark("openai_chat", f"{place} has the role '{role}'", is_plain="tool_call_id" in message)
    elif role and message.get("tool_calls"):
        yield _Mark("openai_chat", f"{place} has 'tool_calls'")
    for number, value in enumerate(items(message.get("content"))):
        yield from _of_block(fields(plain(value)), f"{place}.content[{number}]")


def _of_block(block: Fields, place: str) -> Iterator[_Mark]:
    kind = string(block.get("type"))
    if kind in _BLOCKS:
        family, is_plain = _BLOCKS[kind]
        yield _Mark(family, f"{place} is a {kind} block", is_plain)
    elif kind == "thinking" and block.get("signature"):
        yield _Mark("anthropic", f"{place} is signed thinking")
    elif kind in ("image", "document") and fields(block.get("source")).get("type"):
        yield _Mark("anthropic", f"{place} is an {kind} with a source")
    elif not kind and (key := next((key for key in _CONVERSE if key in block), None)):
        yield _Mark("converse", f"{place} is a {key} block")
    elif block.keys() == {"text"}:
        yield _Mark("converse", f"{place} is a text without a type", is_plain=False)
