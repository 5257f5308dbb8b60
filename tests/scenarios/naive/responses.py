"""OpenAI Responses, naively: an item for each part, in order, with roles only on messages."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from tests.scenarios.naive.request import SCHEMA, Asked
from tests.scenarios.script import (
    ENCRYPTED,
    PICTURE,
    SYNTHETIC,
    Call,
    Part,
    Picture,
    Result,
    Said,
    Thought,
    Words,
    real_result,
)

_Object = dict[str, object]


def request(said: Sequence[Said], asked: Asked) -> _Object:
    """Return the body."""
    items = [item for each in said for item in _items(each, asked)]
    body: _Object = {"model": "m", "store": False, "input": items}
    if asked.tools:
        body["tools"] = [{"type": "function", "name": "read", "description": "Read.", "parameters": SCHEMA}]
    return body


def _items(said: Said, asked: Asked) -> Iterator[_Object]:
    role = "assistant" if said.role == "assistant" else "user"
    for at, part in enumerate(said.parts):
        if not (isinstance(part, Picture) and at and isinstance(said.parts[at - 1], Result)):
            yield _item(part, role, isinstance(next(iter(said.parts[at + 1 :]), None), Picture), asked)


_PICTURE: _Object = {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"}


def _item(part: Part, role: str, with_picture: bool, asked: Asked) -> _Object:
    match part:
        case Words(text=text):
            kind = "output_text" if role == "assistant" else "input_text"
            return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        case Call():
            call: _Object = {"type": "function_call", "call_id": asked.id(part)}
            call.update(name=asked.details(part).name, arguments=asked.arguments(part))
            item = asked.details(part).item
            return call if item is None else {**call, "id": item}
        case Result(number=number):
            text = real_result(number) if part.real else SYNTHETIC
            output = [{"type": "input_text", "text": text}, _PICTURE] if with_picture else text
            return {"type": "function_call_output", "call_id": asked.id(part), "output": output}
        case Thought(sealed=sealed):
            left_out = "id" if sealed else "encrypted_content"
            return {key: value for key, value in ENCRYPTED.items() if key != left_out}
        case Picture():
            return {"type": "message", "role": role, "content": [_PICTURE]}
        case _:
            assert_never(part)
