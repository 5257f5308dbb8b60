"""Contents as our encoder of the family `gemini` writes them, attachments left out."""

from typing import ClassVar, TypeAlias

from msgspec import UNSET, Raw, UnsetType, field

from actors.core.check.gemini import Gemini
from actors.core.check.typed.literals import Doubt, Shape, literal


class Call(Shape):
    name: str
    args: dict[str, Raw]
    id: str = ""


class Result(Shape):
    name: str
    response: dict[str, Raw]
    id: str = ""


class Part(Shape):
    text: Raw = Raw()
    call: Call | UnsetType = field(name="functionCall", default=UNSET)
    result: Result | UnsetType = field(name="functionResponse", default=UNSET)
    signature: str | UnsetType = field(name="thoughtSignature", default=UNSET)


class User(Shape, tag_field="role", tag="user"):
    role: ClassVar[str] = "user"
    blocks: list[Part | int] = field(name="parts")


class Model(Shape, tag_field="role", tag="model"):
    role: ClassVar[str] = "model"
    blocks: list[Part | int] = field(name="parts")


MESSAGES: TypeAlias = list[User | Model]


def read(state: Gemini, contents: list[User | Model], resumes: bool) -> None:
    """State what the contents are, the first of which is open already if it `resumes`."""
    for content in contents:
        if not resumes:
            state.open(content.role)
        resumes, by_model = False, content.role == "model"
        for part in content.blocks:
            if type(part) is not Part:
                raise Doubt
            call, result, signature = part.call, part.result, part.signature
            if bool(part.text) + (call is not UNSET) + (result is not UNSET) != 1:
                raise Doubt
            if signature is not UNSET:
                state.signed(signature)
            if part.text:
                state.text(empty=literal(part.text) == b'""', signed=signature is not UNSET)
            elif result is not UNSET and not by_model:
                state.response(result.id, result.name)
            elif call is not UNSET and by_model:
                state.call(call.id, call.name, signed=bool(signature))
            else:
                raise Doubt
            state.blocks += 1
