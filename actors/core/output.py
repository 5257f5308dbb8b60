"""The form that an ask's answer is to have: what a model is told of it, and what of an answer is the value.

How a provider is asked for a form is its dialect's (`actors.adapters.outputs`): by a schema of the request, by a tool
that stands for the answer, or in words. What comes is read in one way: the text of the answer is one JSON value. The
call of a tool that stands for the answer is that text, so it needs no result and none is ever missing.
"""

import re
from collections.abc import Sequence
from typing import Final

from actors.core.arguments import ArgumentError
from actors.core.content import Block, Message, Text, ToolCall
from actors.core.jsonio import Json, JsonValue, parse

OUTPUT_TOOL: Final = "give_final_answer"
"""The tool that stands for the answer where a dialect has no better way to say its form."""

MAX_ANSWER: Final = 4 * 1024 * 1024
"""Bytes of an answer that are read as a value."""

_NAMED = 3  # faults of an answer that its caller is told

_FENCED = re.compile(r"\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*", re.DOTALL)


def instruction(schema: Json) -> str:
    """Return what tells a model the form of its answer."""
    return (
        "When you give your final answer, answer with one JSON value and nothing else: no other words, no code fence. "
        f"It must conform to this JSON Schema:\n{schema.decode()}"
    )


def correction(errors: Sequence[ArgumentError]) -> str:
    """Return what tells a model why its answer is not taken. No `errors`: it was not JSON at all."""
    if not errors:
        return "Your answer is not one JSON value. Answer again with the JSON value alone, without any other words."
    lines = [f"- {error.path or 'the value'}: {_wrong(error)}" for error in errors]
    return "\n".join(
        ["Your answer does not have the form asked for:", *lines, "Answer again with the whole value."]
    )


def shortfall(errors: Sequence[ArgumentError]) -> str:
    """Return in a few words what an answer lacks, without what stood there. No `errors`: as in `correction`."""
    if not errors:
        return "it is not one JSON value"
    named = [
        f"{error.path or 'the value'}: {'missing' if error.is_missing else f'expected {error.expected}'}"
        for error in errors[:_NAMED]
    ]
    more = [f"and {len(errors) - _NAMED} more"] if len(errors) > _NAMED else []
    return "; ".join([*named, *more])


def _wrong(error: ArgumentError) -> str:
    if error.is_missing:
        return f"missing; expected {error.expected}"
    return f"expected {error.expected}" + (f", got {error.got}" if error.got else "")


def value_of(text: str) -> JsonValue:
    """Return the JSON value that an answer is. One in a code fence, or with words around an object, is that value.

    Raises:
        ValueError: There is none.
    """
    fenced = _FENCED.fullmatch(text)
    said = (fenced[1] if fenced else text).strip()
    try:
        return parse(said.encode(), max_bytes=MAX_ANSWER)
    except ValueError:
        start, end = said.find("{"), said.rfind("}")
        if start < 0 or end < start:
            raise
        return parse(said[start : end + 1].encode(), max_bytes=MAX_ANSWER)


def as_text(message: Message) -> Message:
    """Return an answer in which the call of the tool that stands for it is its text."""
    if not any(call.name == OUTPUT_TOOL for call in message.calls):
        return message
    blocks = [_said(block) if type(block) is ToolCall else block for block in message.blocks]
    return Message(message.speaker, blocks, message.turn, message.origin)


def _said(call: ToolCall) -> Block:
    if call.name != OUTPUT_TOOL:
        return call
    return Text(call.raw if call.raw is not None else call.json.decode())
