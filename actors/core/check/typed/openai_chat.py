"""Messages as our encoder of the family `openai_chat` writes them, attachments left out."""

from typing import ClassVar, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from actors.core.check.openai_chat import OpenAIChat
from actors.core.check.typed.literals import QUOTE, Doubt, Shape, literal, nested_object


class Function(Shape):
    name: str
    arguments: str


class Call(Shape, tag_field="type", tag="function"):
    id: str
    function: Function


class System(Shape, tag_field="role", tag="system"):
    role: ClassVar[str] = "system"
    content: Raw


class User(Shape, tag_field="role", tag="user"):
    role: ClassVar[str] = "user"
    content: Raw


class Assistant(Shape, tag_field="role", tag="assistant"):
    content: Raw = Raw()
    tool_calls: list[Call] | UnsetType = UNSET
    reasoning_content: Raw = Raw()
    reasoning_details: list[Raw] | UnsetType = UNSET


class Tool(Shape, tag_field="role", tag="tool"):
    content: Raw
    tool_call_id: str


class Text(Shape, tag_field="type", tag="text"):
    text: Raw


class Thinking(Shape, tag_field="type", tag="thinking"):
    thinking: list[Raw]
    signature: Raw = Raw()
    closed: Raw = Raw()


MESSAGES: TypeAlias = list[System | User | Assistant | Tool | int]
_PARTS = msgspec.json.Decoder(list[Text | Thinking])


def read(state: OpenAIChat, messages: list[System | User | Assistant | Tool | int], resumes: bool) -> None:
    """State what the messages are. Each is whole, so none `resumes`."""
    longest = state.longest
    for message in messages:
        state.count += 1
        if isinstance(message, Tool):
            text = bytes(message.content)
            if text[0] != QUOTE or len(text) > longest:
                raise Doubt
            state.result(message.tool_call_id)
            state.role = "tool"
        elif isinstance(message, Assistant):
            state.open("assistant")
            _assistant(state, message)
        elif isinstance(message, User | System):
            state.open(message.role)
            _content(state, message.content)
        else:
            raise Doubt


def _assistant(state: OpenAIChat, message: Assistant) -> None:
    content, calls, text = message.content, message.tool_calls, bytes(message.content)
    said = text not in (b"", b"null")
    if said:
        _content(state, content)
    reasons = bool(message.reasoning_content or message.reasoning_details) and _reasons(state, message)
    made = None if calls is UNSET else len(calls)
    state.spoke(said=said, empty=text == b'""', reasons=reasons, calls=made)
    for call in calls or ():
        function = call.function
        if not state.is_name(function.name) or len(function.arguments) > state.longest:
            raise Doubt
        nested_object(function.arguments)
        state.open_call(call.id)


def _reasons(state: OpenAIChat, message: Assistant) -> bool:
    """Say whether the field that carries reasoning holds some. Another is a doubt."""
    plain, details = message.reasoning_content, message.reasoning_details
    carrier = "reasoning_content" if plain else "reasoning_details"
    other = plain and (details is not UNSET or state.dialect.reasoning_field != "reasoning_content")
    if state.dialect.reasoning.carrier != carrier or other:
        raise Doubt
    return bool(details) if details is not UNSET else literal(plain) != b'""'


def _content(state: OpenAIChat, content: Raw) -> None:
    """Read a text, or a list of texts and of what the assistant thought."""
    text = bytes(content)
    if text[0] == QUOTE and len(text) <= state.longest:
        return
    parts = _PARTS.decode(content)
    thinks = [type(part) is Thinking for part in parts]
    for part in parts:
        if isinstance(part, Text):
            if literal(part.text, state.longest) == b'""':
                raise Doubt
        elif (
            not part.thinking
            or state.dialect.reasoning.carrier != "thinking_chunk"
            or state.role != "assistant"
        ):
            raise Doubt
    if not parts:
        raise Doubt
    if state.role == "assistant":
        state.composed(thinks)
