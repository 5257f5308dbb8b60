"""The form that an ask's answer is to have: what a model is told of it, and what of an answer is the value.

How a provider is asked for a form is its dialect's (`actors.adapters.outputs`): by a schema of the request, by a tool
that stands for the answer, or in words. What comes is read in one way: the text of the answer is one JSON value. The
call of a tool that stands for the answer is that text, so it needs no result and none is ever missing.
"""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final, TypeAlias

from msgspec import Struct

from actors.core.data.jsonio import Json, JsonValue, parse
from actors.core.schemas.arguments import ArgumentError
from actors.core.schemas.repair import RepairKind, RepairMode, read_json
from actors.core.turn.template_tokens import without_reasoning
from actors.core.values.content import Block, Message, Text, ToolCall

OUTPUT_TOOL: Final = "give_final_answer"
"""The tool that stands for the answer where a dialect has no better way to say its form."""

MAX_ANSWER: Final = 4 * 1024 * 1024
"""Bytes of an answer that are read as a value."""

_NAMED = 3  # faults of an answer that its caller is told

_MOST_OPENINGS = 1000  # brackets and fences of an answer that are looked at
_MOST_SCANNED = 2 * MAX_ANSWER  # characters that are read to see where they close
_MOST_TOKENS = 100_000  # brackets and strings that are read for that

_OPENING = re.compile(r"^[ \t>]*(```)[a-zA-Z]*[ \t]*\n|[\[{]", re.MULTILINE)
_CLOSING = re.compile(r"^[ \t>]*```", re.MULTILINE)
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_TAGGED = re.compile(r"\s*<(thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_BEGINS_JSON = re.compile(
    r'\{\s*"(?:[^"\\]|\\.)*+(?:"\s*(?::|\Z)|\Z)|\[\s*(?:["{\[\d-]|true|false|null)', re.DOTALL
)

_Value: TypeAlias = tuple[JsonValue, tuple[RepairKind, ...]]


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


class Candidate(Struct, frozen=True):
    """A JSON value of an answer, and the slips with which it is written."""

    value: JsonValue
    kinds: tuple[RepairKind, ...] = ()


def candidates(text: str, repair: RepairMode) -> list[Candidate]:
    """Return the JSON values that an answer may mean; none of them is a part of another.

    An answer that is JSON means that value. With words around it, it may mean each object and list in the words (not in
    the reasoning that they begin with), and each value in a code fence. Where values may have been overlooked, because
    there are too many words, or a value breaks off, none is returned.
    """
    said = text.strip()
    try:
        return [Candidate(parse(said.encode(), max_bytes=MAX_ANSWER))]
    except ValueError:
        if repair == "strict" or len(text) > MAX_ANSWER:
            return []
    if (read := read_json(said, MAX_ANSWER)) is not None:
        return [Candidate(*read)]
    return [Candidate(value, ("around", *kinds)) for value, kinds in _Words(_answer_in(said)).values()]


def _answer_in(text: str) -> str:
    """Return a text without the reasoning that it begins with, whose opening tag may be missing."""
    rest = without_reasoning(text)
    while (tagged := _TAGGED.match(rest)) is not None:
        rest = rest[tagged.end() :]
    opened, tag, behind = rest.partition("</think>")
    return behind if tag and "<think>" not in opened else rest


class _Words:
    """The words of an answer while JSON values are looked for in them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._left, self._tokens = _MOST_SCANNED, _MOST_TOKENS
        self._breaks_off = False

    def values(self) -> list[_Value]:
        """Return the JSON values in order; an empty list where some may have been overlooked."""
        found: list[_Value] = []
        for _ in range(_MOST_OPENINGS):
            if (opening := _OPENING.search(self._text, self._at)) is None:
                return found
            value = self._fenced(opening) if opening[1] else self._bracketed(opening.start())
            if value is not None:
                found.append(value)
            if self._breaks_off or min(self._left, self._tokens) <= 0:
                break
        return []

    def _fenced(self, opening: re.Match[str]) -> _Value | None:
        """Return the value that stands in a code fence; if there is none, go on inside of it."""
        closing = _CLOSING.search(self._text, opening.end())
        stop = len(self._text) if closing is None else closing.start()
        self._left -= stop - opening.start()
        value = read_json(self._text[opening.end() : stop], MAX_ANSWER)
        self._at = opening.end() if value is None else stop if closing is None else closing.end()
        return value

    def _bracketed(self, start: int) -> _Value | None:
        """Return the value that begins with a bracket.

        What is not JSON up to its closing bracket is passed over as a whole: a part of it may mean something else.
        """
        stop = self._balanced(start)
        self._at = stop or start + 1
        scanned_to = stop or len(self._text)  # the search for a missing bracket reads the rest of the text
        self._left -= scanned_to - start
        if stop is not None:
            return read_json(self._text[start:stop], MAX_ANSWER)
        self._breaks_off = _BEGINS_JSON.match(self._text, start) is not None
        return None

    def _balanced(self, start: int) -> int | None:
        """Return the place behind the bracket that closes the one at `start`; None if none does."""
        depth = 0
        for token in islice(_TOKENS.finditer(self._text, start), self._tokens):
            self._tokens -= 1
            if token[0] in "[{":
                depth += 1
            elif token[0] in "]}":
                depth -= 1
                if depth == 0:
                    return token.end()
        return None


def as_text(message: Message) -> Message:
    """Return an answer in which the call of the tool that stands for it is its text."""
    if not any(call.name == OUTPUT_TOOL for call in message.calls):
        return message
    blocks = [_said(block) if type(block) is ToolCall else block for block in message.blocks]
    return Message(message.role, blocks, message.turn, message.origin)


def _said(call: ToolCall) -> Block:
    if call.name != OUTPUT_TOOL:
        return call
    if call.raw_json is not None:
        return Text(json=call.raw_json)
    return Text(call.json.decode() if (text := call.text) is None else text)
