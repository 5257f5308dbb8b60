"""AWS Bedrock Converse, naively: one wire message per message, results as user blocks."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from tests.scenarios.naive.request import SCHEMA, Asked, as_value
from tests.scenarios.script import (
    PICTURE,
    SIGNATURE,
    SYNTHETIC,
    THOUGHT,
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
    body: _Object = {"messages": [_message(each, asked) for each in said]}
    if asked.tools:
        spec = {"name": "read", "description": "Read.", "inputSchema": {"json": SCHEMA}}
        body["toolConfig"] = {"tools": [{"toolSpec": spec}]}
    if asked.manual:
        body["additionalModelRequestFields"] = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    return body


def _message(said: Said, asked: Asked) -> _Object:
    role = "assistant" if said.role == "assistant" else "user"
    return {"role": role, "content": list(_blocks(said.parts, asked))}


def _blocks(parts: Sequence[Part], asked: Asked) -> Iterator[_Object]:
    for at, part in enumerate(parts):
        if not (isinstance(part, Picture) and at and isinstance(parts[at - 1], Result)):
            yield _block(part, isinstance(next(iter(parts[at + 1 :]), None), Picture), asked)


_PICTURE: _Object = {"image": {"format": "png", "source": {"bytes": PICTURE}}}


def _block(part: Part, with_picture: bool, asked: Asked) -> _Object:
    match part:
        case Words(text=text):
            return {"text": text}
        case Call():
            call = {"toolUseId": asked.id(part), "name": asked.details(part).name}
            return {"toolUse": {**call, "input": as_value(asked.arguments(part))}}
        case Result(number=number):
            content: list[_Object] = [{"text": real_result(number) if part.real else SYNTHETIC}]
            content += [_PICTURE] if with_picture else []
            status = "success" if part.real else "error"
            return {"toolResult": {"toolUseId": asked.id(part), "content": content, "status": status}}
        case Thought(sealed=sealed):
            unsigned = {"text": THOUGHT}
            signed = {**unsigned, "signature": SIGNATURE}
            return {"reasoningContent": {"reasoningText": signed if sealed else unsigned}}
        case Picture():
            return _PICTURE
        case _:
            assert_never(part)
