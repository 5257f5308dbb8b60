"""Which wire family a transcript is written in, told by marks that only one of them has.

Words alone look alike in several. So a mark is either plain, and then a transcript that is read as another family's is
refused, or a hint, which decides only where nobody said.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from actors.adapters.wire import Fields, fields, items, string
from actors.adapters.wire_object import plain
from actors.core.dialect import Dialect, Family
from actors.core.profiles import ANTHROPIC, BEDROCK, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES
from actors.errors import TranscriptError


class Mark(NamedTuple):
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


def guessed(transcript: object) -> tuple[Dialect, str]:
    """Return the dialect that a transcript looks like, and what tells so.

    Raises:
        TranscriptError: It has plain marks of several.
    """
    marks = list(_marks(transcript))
    told = _plain(marks) or marks[:1]
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
    told = _plain(_marks(transcript))
    if told and all(mark.family != named.family for mark in told):
        looks = _NAMES[told[0].family].name
        raise TranscriptError(f"The transcript looks like {looks} ({told[0].place}), not {named.name}")


def _plain(marks: Iterable[Mark]) -> list[Mark]:
    """Return the first plain mark of each family."""
    first: dict[Family, Mark] = {}
    for mark in marks:
        if mark.is_plain:
            first.setdefault(mark.family, mark)
    return list(first.values())


def _marks(transcript: object) -> Iterator[Mark]:
    body = fields(transcript)
    yield from _of_body(body)
    container = next((key for key in ("contents", "input", "messages") if key in body), "messages")
    for number, value in enumerate(items(body.get(container, transcript))):
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
    for number, value in enumerate(items(message.get("content"))):
        yield from _of_block(fields(plain(value)), f"{place}.content[{number}]")


def _of_block(block: Fields, place: str) -> Iterator[Mark]:
    kind = string(block.get("type"))
    if kind in _BLOCKS:
        family, is_plain = _BLOCKS[kind]
        yield Mark(family, f"{place} is a {kind} block", is_plain)
    elif kind == "thinking" and block.get("signature"):
        yield Mark("anthropic", f"{place} is signed thinking")
    elif kind in ("image", "document") and fields(block.get("source")).get("type"):
        yield Mark("anthropic", f"{place} is an {kind} with a source")
    elif not kind and (key := next((key for key in _CONVERSE if key in block), None)):
        yield Mark("converse", f"{place} is a {key} block")
    elif block.keys() == {"text"}:
        yield Mark("converse", f"{place} is a text without a type", is_plain=False)
