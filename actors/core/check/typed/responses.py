"""Items as our encoder of the family `responses` writes them, attachments left out."""

from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from actors.core.check.responses import Responses
from actors.core.check.typed.literals import QUOTE, Doubt, Shape, literal, nested_object


class Message(Shape, tag_field="type", tag="message"):
    role: Literal["user", "assistant"]
    content: Raw
    phase: Literal["commentary", "final_answer"] | UnsetType = UNSET


class Call(Shape, tag_field="type", tag="function_call"):
    call_id: str
    name: str
    arguments: str


class Output(Shape, tag_field="type", tag="function_call_output"):
    call_id: str
    output: Raw


class Reasoning(Shape, tag_field="type", tag="reasoning"):
    summary: list[Raw]
    encrypted_content: str
    id: str | UnsetType = UNSET
    content: Raw = Raw()
    status: Raw = Raw()


class Text(Shape, tag_field="type", tag="input_text"):
    text: Raw


MESSAGES: TypeAlias = list[Message | Call | Output | Reasoning | int]
_PARTS = msgspec.json.Decoder(list[Text])


def read(state: Responses, items: list[Message | Call | Output | Reasoning | int], resumes: bool) -> None:
    """State what the items are. Each is whole, so none `resumes`."""
    for item in items:
        state.count += 1
        if isinstance(item, Output):
            state.stand("function_call_output", None, None)
            _content(state, item.output, blank=True)
            state.output("function_call_output", item.call_id)
        elif isinstance(item, Message):
            state.stand("message", item.role, None)
            _content(state, item.content, blank=item.role == "user")
            state.said(item.role)
        elif isinstance(item, Call):
            state.stand("function_call", None, None)
            if not state.is_name(item.name):
                raise Doubt
            nested_object(item.arguments)
            state.call("function_call", item.call_id)
        elif isinstance(item, Reasoning):
            state.stand("reasoning", None, None if item.id is UNSET else item.id)
            state.reasoned(sealed=bool(item.encrypted_content))
        else:
            raise Doubt


def _content(state: Responses, content: Raw, *, blank: bool) -> None:
    """Read a text, which may be empty if it may be `blank`, or a list of texts that may not."""
    text = bytes(content)
    if text[0] == QUOTE and len(text) <= state.longest and (blank or text != b'""'):
        return
    parts = _PARTS.decode(content)
    if not parts or any(literal(part.text, state.longest) == b'""' for part in parts):
        raise Doubt
