"""Messages as our encoder of the family `anthropic` writes them, attachments and cache marks left out."""

from typing import ClassVar, TypeAlias

from msgspec import Raw, field

from actors.core.check.anthropic import Anthropic
from actors.core.check.typed.literals import QUOTE, Doubt, Shape, literal, words


class Text(Shape, tag_field="type", tag="text"):
    text: Raw


class Thinking(Shape, tag_field="type", tag="thinking"):
    thinking: Raw
    signature: str


class Redacted(Shape, tag_field="type", tag="redacted_thinking"):
    data: str


class Call(Shape, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: dict[str, Raw]


class Result(Shape, tag_field="type", tag="tool_result"):
    tool_use_id: str
    content: Raw
    is_error: bool = False


class User(Shape, tag_field="role", tag="user"):
    role: ClassVar[str] = "user"
    blocks: list[Text | Result | int] = field(name="content")


class Assistant(Shape, tag_field="role", tag="assistant"):
    role: ClassVar[str] = "assistant"
    blocks: list[Text | Thinking | Redacted | Call | int] = field(name="content")


MESSAGES: TypeAlias = list[User | Assistant]


def read(state: Anthropic, messages: list[User | Assistant], resumes: bool) -> None:
    """State what the messages are, the first of which is open already if it `resumes`."""
    for message in messages:
        if not resumes:
            state.open(message.role)
        resumes = False
        for block in message.blocks:
            if isinstance(block, Result) and not block.is_error and bytes(block.content)[0] == QUOTE:
                state.result(block.tool_use_id)
            elif isinstance(block, Text):
                state.beside(ragged=words(block.text))
            elif isinstance(block, Call):
                state.call(block.id, block.name)
            else:
                _rare(state, block)


def _rare(state: Anthropic, block: Result | Thinking | Redacted | int) -> None:
    match block:
        case Thinking():
            literal(block.thinking)
            state.signed(block.signature)
            state.thought()
        case Redacted() if block.data:
            state.thought()
        case Result() if block.is_error:
            words(block.content)
            state.result(block.tool_use_id)
        case _:
            raise Doubt
