"""Anthropic Messages, naively: one wire message per message, results as user blocks."""

from collections.abc import Callable, Iterator, Sequence
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
    body: _Object = {"model": "m", "max_tokens": 4096, "messages": [_message(each, asked) for each in said]}
    if asked.tools:
        body["tools"] = [{"name": "read", "description": "Read.", "input_schema": SCHEMA}]
    if asked.manual:
        body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    return body


def on(version: str) -> Callable[[Sequence[Said], Asked], _Object]:
    """Return a renderer for a cloud, which has the model in the path and the version in the body."""

    def hosted(said: Sequence[Said], asked: Asked) -> _Object:
        body = request(said, asked)
        del body["model"]
        return {"anthropic_version": version, **body}

    return hosted


def _message(said: Said, asked: Asked) -> _Object:
    role = "assistant" if said.role == "assistant" else "user"
    return {"role": role, "content": list(_blocks(said.parts, asked))}


def _blocks(parts: Sequence[Part], asked: Asked) -> Iterator[_Object]:
    for at, part in enumerate(parts):
        if not (isinstance(part, Picture) and at and isinstance(parts[at - 1], Result)):
            yield _block(part, isinstance(next(iter(parts[at + 1 :]), None), Picture), asked)


_PICTURE: _Object = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": PICTURE},
}


def _block(part: Part, with_picture: bool, asked: Asked) -> _Object:
    match part:
        case Words(text=text):
            return {"type": "text", "text": text}
        case Call():
            held = as_value(asked.arguments(part))
            return {"type": "tool_use", "id": asked.id(part), "name": asked.details(part).name, "input": held}
        case Result(number=number):
            content: list[_Object] = [
                {"type": "text", "text": real_result(number) if part.real else SYNTHETIC}
            ]
            content += [_PICTURE] if with_picture else []
            block: _Object = {"type": "tool_result", "tool_use_id": asked.id(part), "content": content}
            return block if part.real else {**block, "is_error": True}
        case Thought(sealed=sealed):
            return {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE if sealed else ""}
        case Picture():
            return _PICTURE
        case _:
            assert_never(part)
