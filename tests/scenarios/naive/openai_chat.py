"""Chat Completions, naively: one wire message per message, one `tool` message per result."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from tests.scenarios.naive.request import SCHEMA, Asked
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
    messages = [written for each in said for written in _messages(each, asked)]
    body: _Object = {"model": "m", "messages": messages}
    if asked.tools:
        declared = {"name": "read", "description": "Read.", "parameters": SCHEMA}
        body["tools"] = [{"type": "function", "function": declared}]
    return body


def _messages(said: Said, asked: Asked) -> Iterator[_Object]:
    if said.role == "tool" and not any(isinstance(part, Call) for part in said.parts):
        yield from _results(said.parts, asked)
        return
    message: _Object = {"role": said.role}
    content = [_content(part, asked) for part in said.parts if not isinstance(part, Call | Thought)]
    if content:
        message["content"] = content
    for part in said.parts:
        if isinstance(part, Thought):
            message.update(_reasoning_fields(part, asked))
    if calls := [_call(part, asked) for part in said.parts if isinstance(part, Call)]:
        message["tool_calls"] = calls
    yield message


def _results(parts: Sequence[Part], asked: Asked) -> Iterator[_Object]:
    for at, part in enumerate(parts):
        if not isinstance(part, Result):
            continue
        text = real_result(part.number) if part.real else SYNTHETIC
        content: object = text
        if isinstance(next(iter(parts[at + 1 :]), None), Picture):
            content = [{"type": "text", "text": text}, _PICTURE]
        yield {"role": "tool", "tool_call_id": asked.id(part), "content": content}


def _call(part: Call, asked: Asked) -> _Object:
    function = {"name": asked.details(part).name, "arguments": asked.arguments(part)}
    return {"id": asked.id(part), "type": "function", "function": function}


_PICTURE: _Object = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}


def _content(part: Words | Result | Picture, asked: Asked) -> _Object:
    match part:
        case Words(text=text):
            return {"type": "text", "text": text}
        case Result(number=number):
            return {"type": "tool_result", "tool_call_id": asked.id(part), "content": real_result(number)}
        case Picture():
            return _PICTURE
        case _:
            assert_never(part)


def _reasoning_fields(part: Thought, asked: Asked) -> _Object:
    if asked.dialect != "openrouter":
        return {"reasoning_content": THOUGHT}
    detail = {"type": "reasoning.text", "text": THOUGHT, "signature": SIGNATURE if part.sealed else ""}
    return {"reasoning_details": [detail]}
