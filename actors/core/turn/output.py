"""Instruct a model to answer in a required format, and find the JSON value in its answer.

`actors.session.output` validates the candidates against the type that the ask requires.

The dialect decides how a request requires the format (`actors.adapters.outputs`): with a schema, an output tool or an
instruction. The answer is always read in the same way, as text that is one JSON value. A call of the output tool is
converted to text that contains the call's arguments, so the call needs no result.
"""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final, TypeAlias

from msgspec import Struct

from actors.core.data.jsonio import Json, JsonValue, parse
from actors.core.schemas.arguments import ArgumentError
from actors.core.schemas.repair import RepairKind, RepairMode, read_json
from actors.core.turn.answers import without_reasoning
from actors.core.values.content import Block, Message, Text, ToolCall

OUTPUT_TOOL: Final = "give_final_answer"
"""The name of the output tool, which is used if a dialect has no better way to require a format."""

MAX_ANSWER: Final = 4 * 1024 * 1024
"""The maximum size of an answer that is parsed as a value, in bytes."""

_NAMED = 3  # maximum number of errors in an answer that the caller's error message lists

# Limits of a search for JSON in text: the maximum numbers of opening brackets and fences to try, of characters to read,
# and of brackets and strings to read.
_MOST_OPENINGS = 1000
_MOST_SCANNED = 2 * MAX_ANSWER
_MOST_TOKENS = 100_000

_OPENING = re.compile(r"^[ \t>]*(```)[a-zA-Z]*[ \t]*\n|[\[{]", re.MULTILINE)
_CLOSING = re.compile(r"^[ \t>]*```", re.MULTILINE)
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_TAGGED = re.compile(r"\s*<(thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_BEGINS_JSON = re.compile(
    r'\{\s*"(?:[^"\\]|\\.)*+(?:"\s*(?::|\Z)|\Z)|\[\s*(?:["{\[\d-]|true|false|null)', re.DOTALL
)

_Value: TypeAlias = tuple[JsonValue, tuple[RepairKind, ...]]


def instruction(schema: Json) -> str:
    """Return the instruction to answer with JSON that conforms to this schema."""
    return (
        "When you give your final answer, answer with one JSON value and nothing else: no other words, no code fence. "
        f"It must conform to this JSON Schema:\n{schema.decode()}"
    )


def correction(errors: Sequence[ArgumentError]) -> str:
    """Return the message that asks a model to correct its answer.

    Empty `errors` mean that the answer was not JSON.
    """
    if not errors:
        return "Your answer is not one JSON value. Answer again with the JSON value alone, without any other words."
    lines = [f"- {error.path or 'the value'}: {_describe_error(error)}" for error in errors]
    return "\n".join(
        ["Your answer does not have the required format:", *lines, "Answer again with the complete value."]
    )


def describe_errors(errors: Sequence[ArgumentError]) -> str:
    """Summarise the errors in an answer for the caller, without values from the answer.

    Empty `errors` mean that the answer was not JSON.
    """
    if not errors:
        return "it is not one JSON value"
    named = [
        f"{error.path or 'the value'}: {'missing' if error.is_missing else f'expected {error.expected}'}"
        for error in errors[:_NAMED]
    ]
    more = [f"and {len(errors) - _NAMED} more"] if len(errors) > _NAMED else []
    return "; ".join([*named, *more])


def _describe_error(error: ArgumentError) -> str:
    if error.is_missing:
        return f"missing; expected {error.expected}"
    return f"expected {error.expected}" + (f", got {error.value}" if error.value else "")


class Candidate(Struct, frozen=True):
    """A JSON value found in an answer, and the kinds of repairs that were needed to parse it."""

    value: JsonValue
    kinds: tuple[RepairKind, ...] = ()


def candidates(text: str, repair: RepairMode) -> list[Candidate]:
    """Return the JSON values in a text that may be the model's answer. No candidate contains another candidate.

    If the complete text is JSON, it is the only candidate. In any other text, each object or list is a candidate, and
    so is each value in a code fence. Leading reasoning is skipped. If the text is too long to search completely, or a
    value is truncated, the result is empty, because a value may have been overlooked.
    """
    said = text.strip()
    try:
        return [Candidate(parse(said.encode(), max_bytes=MAX_ANSWER))]
    except ValueError:
        if repair == "strict" or len(text) > MAX_ANSWER:
            return []
    if (read := read_json(said, MAX_ANSWER)) is not None:
        return [Candidate(*read)]
    return [
        Candidate(value, ("around", *kinds)) for value, kinds in _JsonSearch(_strip_reasoning(said)).values()
    ]


def _strip_reasoning(text: str) -> str:
    """Remove leading reasoning from a text, even if the opening tag of the reasoning is missing."""
    rest, at = without_reasoning(text), 0
    while (tagged := _TAGGED.match(rest, at)) is not None:
        at = tagged.end()
    rest = rest[at:]
    opened, tag, behind = rest.partition("</think>")
    return behind if tag and "<think>" not in opened else rest


class _JsonSearch:
    """A search for JSON values in the text of an answer."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._left, self._tokens = _MOST_SCANNED, _MOST_TOKENS
        self._breaks_off = False

    def values(self) -> list[_Value]:
        """Return the JSON values in the text, in order. If a value may have been overlooked, return no values."""
        found: list[_Value] = []
        for _ in range(_MOST_OPENINGS):
            if (opening := _OPENING.search(self._text, self._at)) is None:
                return found
            value = self._fence_value(opening) if opening[1] else self._bracket_value(opening.start())
            if value is not None:
                found.append(value)
            if self._breaks_off or min(self._left, self._tokens) <= 0:
                break
        return []

    def _fence_value(self, opening: re.Match[str]) -> _Value | None:
        """Return the value in a code fence. If there is none, return None and continue the search inside the fence."""
        closing = _CLOSING.search(self._text, opening.end())
        stop = len(self._text) if closing is None else closing.start()
        self._left -= stop - opening.start()
        value = read_json(self._text[opening.end() : stop], MAX_ANSWER)
        self._at = opening.end() if value is None else stop if closing is None else closing.end()
        return value

    def _bracket_value(self, start: int) -> _Value | None:
        """Return the JSON value that begins with the bracket at `start`, or None.

        If the text up to the closing bracket is not JSON, the search continues after that bracket, because a JSON value
        inside the brackets may have another meaning.
        """
        stop = self._closing_position(start)
        self._at = stop or start + 1
        # If the closing bracket is missing, the search for it has read the rest of the text.
        scanned_to = stop or len(self._text)
        self._left -= scanned_to - start
        if stop is not None:
            return read_json(self._text[start:stop], MAX_ANSWER)
        self._breaks_off = _BEGINS_JSON.match(self._text, start) is not None
        return None

    def _closing_position(self, start: int) -> int | None:
        """Return the position after the bracket that closes the bracket at `start`; None if there is none."""
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
    """Return the answer with the output tool's call replaced by its arguments as text."""
    if not any(call.name == OUTPUT_TOOL for call in message.calls):
        return message
    blocks = [_answer_text(block) if type(block) is ToolCall else block for block in message.blocks]
    return Message(message.role, blocks, message.turn, message.origin)


def _answer_text(call: ToolCall) -> Block:
    if call.name != OUTPUT_TOOL:
        return call
    if call.raw_json is not None:
        return Text(json=call.raw_json)
    return Text(call.json.decode() if (text := call.text) is None else text)
