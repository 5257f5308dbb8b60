"""Google generateContent, naively: one content per message, signatures on the part after their thought."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from tests.scenarios.naive.request import Asked, as_value
from tests.scenarios.script import (
    PICTURE,
    SIGNATURE,
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
_SCHEMA = {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}}


def request(said: Sequence[Said], asked: Asked) -> _Object:
    """Return the body."""
    body: _Object = {"contents": [_content(each, asked) for each in said]}
    if asked.tools:
        declared = {"name": "read", "description": "Read.", "parameters": _SCHEMA}
        body["tools"] = [{"functionDeclarations": [declared]}]
    return body


def _content(said: Said, asked: Asked) -> _Object:
    return {"role": "model" if said.role == "assistant" else "user", "parts": list(_parts(said.parts, asked))}


def _parts(parts: Sequence[Part], asked: Asked) -> Iterator[_Object]:
    signed = False
    for part in parts:
        if isinstance(part, Thought):
            signed = part.sealed
            continue
        written = _part(part, asked)
        yield {**written, "thoughtSignature": SIGNATURE} if signed else written
        signed = False


def _part(part: Words | Call | Result | Picture, asked: Asked) -> _Object:
    match part:
        case Words(text=text):
            return {"text": text}
        case Call():
            call: _Object = {"name": asked.details(part).name, "args": as_value(asked.arguments(part))}
            return {"functionCall": _with_id(call, part, asked)}
        case Result(number=number):
            response = {"output": real_result(number)} if part.real else {"error": SYNTHETIC}
            answer: _Object = {"name": asked.details(part).name, "response": response}
            return {"functionResponse": _with_id(answer, part, asked)}
        case Picture():
            return {"inlineData": {"mimeType": "image/png", "data": PICTURE}}
        case _:
            assert_never(part)


def _with_id(value: _Object, part: Call | Result, asked: Asked) -> _Object:
    """Return a call or a response with its id, if it has one."""
    call_id = asked.id(part)
    return {"id": call_id, **value} if call_id else value
