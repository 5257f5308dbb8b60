"""Messages as our encoder of the family `converse` writes them, attachments and cache marks left out."""

from typing import ClassVar, TypeAlias

from msgspec import UNSET, Raw, UnsetType, field

from actors.core.check.converse import Converse
from actors.core.check.typed.literals import Doubt, Shape, literal, words


class Words(Shape):
    text: Raw


class Call(Shape):
    id: str = field(name="toolUseId")
    name: str
    input: dict[str, Raw]


class Result(Shape):
    id: str = field(name="toolUseId")
    content: list[Words]
    status: str = "success"


class Signed(Shape):
    text: Raw
    signature: str


class Reasoning(Shape):
    plain: Signed | UnsetType = field(name="reasoningText", default=UNSET)
    redacted: str = field(name="redactedContent", default="")


class Block(Shape):
    text: Raw = Raw()
    call: Call | UnsetType = field(name="toolUse", default=UNSET)
    result: Result | UnsetType = field(name="toolResult", default=UNSET)
    reasoning: Reasoning | UnsetType = field(name="reasoningContent", default=UNSET)


class User(Shape, tag_field="role", tag="user"):
    role: ClassVar[str] = "user"
    blocks: list[Block | int] = field(name="content")


class Assistant(Shape, tag_field="role", tag="assistant"):
    role: ClassVar[str] = "assistant"
    blocks: list[Block | int] = field(name="content")


MESSAGES: TypeAlias = list[User | Assistant]


def read(state: Converse, blocks: list[Block | int]) -> None:
    """State what the blocks of a message are."""
    for block in blocks:
        if type(block) is not Block:
            raise Doubt
        call, result, reasoning = block.call, block.result, block.reasoning
        if bool(block.text) + (call is not UNSET) + (result is not UNSET) + (reasoning is not UNSET) != 1:
            raise Doubt
        if block.text:
            words(block.text)
            state.text()
        elif call is not UNSET and state.role == "assistant":
            state.call(call.id, call.name)
        elif result is not UNSET and state.role == "user":
            _result(state, result)
        elif reasoning is not UNSET and state.role == "assistant":
            _reasoning(state, reasoning)
        else:
            raise Doubt
        state.blocks += 1


def _result(state: Converse, result: Result) -> None:
    if not result.content or result.status not in ("success", "error"):
        raise Doubt
    for part in result.content:
        words(part.text)
    state.called = True
    state.result(result.id)


def _reasoning(state: Converse, reasoning: Reasoning) -> None:
    if isinstance(reasoning.plain, Signed):
        literal(reasoning.plain.text)
    if isinstance(reasoning.plain, Signed) is bool(reasoning.redacted):
        raise Doubt
    state.thought()
