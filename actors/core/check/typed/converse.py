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


def read(state: Converse, messages: list[User | Assistant], resumes: bool) -> None:
    """State what the messages are, the first of which is open already if it `resumes`."""
    for message in messages:
        if not resumes:
            state.open(message.role)
        resumes, by_model = False, message.role == "assistant"
        for block in message.blocks:
            if type(block) is not Block:
                raise Doubt
            call, result, reasoning = block.call, block.result, block.reasoning
            if bool(block.text) + (call is not UNSET) + (result is not UNSET) + (reasoning is not UNSET) != 1:
                raise Doubt
            if block.text:
                words(block.text)
                state.text()
            elif result is not UNSET and not by_model:
                _result(state, result)
            elif call is not UNSET and by_model:
                state.call(call.id, call.name)
            elif reasoning is not UNSET and by_model:
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
