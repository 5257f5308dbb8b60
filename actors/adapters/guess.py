"""Which wire family a transcript is written in, told by marks that only one of them has.

Words alone look alike in several. So a mark is either plain, and then a transcript that is read as another family's is
refused, or a hint, which decides only where nobody said.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from actors.adapters.wire import Fields, fields, items, string
from actors.adapters.wire_object import plain
from actors.core.dialect import Dialect, Family
from actors.core.profiles import ANTHROPIC, BEDROCK, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES
from actors.errors import TranscriptError


class Mark(NamedTuple):
    """Something that one family has.

    Args:
        family: Whose it is.
        place: Where it stands and what it is.
        is_plain: Whether no other family could have it.
    """

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


def guessed(transcript: object) -> tuple[Dialect, str]:
    """Return the dialect that a transcript looks like, and what tells so.

    Raises:
        TranscriptError: It has plain marks of several.
    """
    found: dict[Family, Mark] = {}
    for mark in _marks(transcript):
        if mark.family not in found or (mark.is_plain and not found[mark.family].is_plain):
            found[mark.family] = mark
    told = [mark for mark in found.values() if mark.is_plain] or list(found.values())[:1]
    if len(told) > 1:
        both = " and ".join(f"{_NAMES[mark.family].name} ({mark.place})" for mark in told)
        raise TranscriptError(f"The transcript looks like {both}; name its dialect")
    if not told:
        return OPENAI_CHAT, "roles and words alone"
    return _NAMES[told[0].family], told[0].place


def refuse_other(transcript: object, named: Dialect) -> None:
    """Refuse a transcript that is plainly another dialect's than the one that is named.

    Raises:
        TranscriptError: It has marks of another, and none of this one.
    """
    other: Mark | None = None
    for mark in _marks(transcript):
        if mark.is_plain and mark.family == named.family:
            return
        if mark.is_plain and other is None:
            other = mark
    if other is not None:
        looks = _NAMES[other.family].name
        raise TranscriptError(f"The transcript looks like {looks} ({other.place}), not {named.name}")


def _marks(transcript: object) -> Iterator[Mark]:
    body = fields(transcript)
    yield from _of_body(body)
    for container in ("contents", "input", "messages"):
        if container in body:
            transcript = body[container]
            break
    else:
        container = "messages"
    for number, value in enumerate(transcript if isinstance(transcript, list | tuple) else ()):
        yield from _of_message(fields(plain(value)), f"{container}[{number}]")


def _of_body(body: Fields) -> Iterator[Mark]:
    if "contents" in body:
        yield Mark("gemini", "it has 'contents'")
    elif "input" in body and "messages" not in body:
        yield Mark("responses", "it has 'input'")
    for key in ("toolConfig", "inferenceConfig"):
        if key in body and "messages" in body:
            yield Mark("converse", f"it has '{key}'")
    if "system" in body:
        yield Mark("anthropic", "it has 'system' beside its messages", is_plain=False)


def _of_message(message: Fields, place: str) -> Iterator[Mark]:
    role, kind = string(message.get("role")), string(message.get("type"))
    if isinstance(message.get("parts"), list | tuple):
        yield Mark("gemini", f"{place} has 'parts'")
    if not role and (kind in _ITEMS or kind.endswith("_call")):
        yield Mark("responses", f"{place} is a {kind[:40]} item")
    elif role in ("tool", "function") and "content" in message:
        yield Mark("openai_chat", f"{place} has the role '{role}'", is_plain="tool_call_id" in message)
    elif role and message.get("tool_calls"):
        yield Mark("openai_chat", f"{place} has 'tool_calls'")
    yield from _of_blocks(items(message.get("content")), f"{place}.content")


def _of_blocks(blocks: Sequence[object], place: str) -> Iterator[Mark]:
    for number, value in enumerate(blocks):
        block = fields(plain(value))
        kind = string(block.get("type"))
        if kind in _BLOCKS:
            family, is_plain = _BLOCKS[kind]
            yield Mark(family, f"{place}[{number}] is a {kind} block", is_plain)
        elif kind == "thinking" and block.get("signature"):
            yield Mark("anthropic", f"{place}[{number}] is signed thinking")
        elif kind in ("image", "document") and fields(block.get("source")).get("type"):
            yield Mark("anthropic", f"{place}[{number}] is an {kind} with a source")
        elif not kind and (key := next((key for key in _CONVERSE if key in block), None)):
            yield Mark("converse", f"{place}[{number}] is a {key} block")
        elif block.keys() == {"text"}:
            yield Mark("converse", f"{place}[{number}] is a text without a type", is_plain=False)
