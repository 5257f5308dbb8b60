"""Messages as our encoder of the family `anthropic` writes them, attachments and cache marks left out."""

from typing import Any, ClassVar, TypeAlias

from msgspec import Raw, field

from actors.core.check.anthropic import Anthropic
from actors.core.check.typed.literals import Doubt, Shape, literal, words


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


def read(
    state: Anthropic, blocks: list[Any]
) -> None:  # Any: told apart by the types above, faster than mypy can
    """State what the blocks of a message are."""
    for block in blocks:
        kind = type(block)  # a `match` would ask each class in turn
        if kind is Result:
            (words if block.is_error else literal)(block.content)
            state.result(block.tool_use_id)
        elif kind is Text:
            state.beside(ragged=words(block.text))
        elif kind is Call:
            state.call(block.id, block.name)
        elif kind is Thinking:
            literal(block.thinking)
            state.signed(block.signature)
            state.thought()
        elif kind is Redacted and block.data:
            state.thought()
        else:
            raise Doubt
