"""Define the output formats that simulated callers request, with valid and invalid answers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from actors.strict.rules.base import Json


@dataclass(frozen=True)
class Remark:
    """The output type of some simulated asks."""

    note: str
    count: int


class OutputFormat(NamedTuple):
    """An output format with its valid answers.

    Args:
        output: The output type or JSON Schema that the caller requests.
        answer: Returns the model's answer to an ask, as JSON.
        value: Returns the value that the caller receives for that answer.
    """

    output: Any  # Any: annotations have no common type
    answer: Callable[[str], Json]
    value: Callable[[str], object]


def _remark_json(ask: str) -> dict[str, Json]:
    return {"note": f"all about {ask}", "count": len(ask)}


def _remark_value(ask: str) -> Remark:
    return Remark(f"all about {ask}", len(ask))


def _list_value(ask: str) -> list[str]:
    return [ask, "and no more"]


def _list_json(ask: str) -> Json:
    return {"value": _list_value(ask)}


_SCHEMA = {
    "type": "object",
    "properties": {"note": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["note", "count"],
}
OUTPUT_FORMATS: Mapping[str, OutputFormat] = {
    "type": OutputFormat(Remark, _remark_json, _remark_value),
    "list": OutputFormat(list[str], _list_json, _list_value),
    "schema": OutputFormat(_SCHEMA, _remark_json, _remark_json),
}
INVALID_ANSWERS = ("I would rather not.", '{"note": "all', '{"note": 3}', "[1, 2]")
"""Answers that are invalid in every format."""


def valid_answer(output_format: str, ask: str) -> str:
    """Return a valid answer to an ask in the format `output_format`."""
    return json.dumps(OUTPUT_FORMATS[output_format].answer(ask))


def explains_rejection(feedback: bytes) -> bool:
    """Return True if the feedback tells the model that its previous answer was rejected."""
    return b"Your answer" in feedback
