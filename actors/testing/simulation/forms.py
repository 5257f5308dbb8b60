"""Define the output formats that simulated callers request, with valid and invalid answers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from actors.strict.rules.base import Json


@dataclass(frozen=True)
class Remark:
    """What a caller wants to know."""

    note: str
    count: int


class AnswerForm(NamedTuple):
    """An output format.

    Args:
        output: Requested output type or JSON Schema.
        said: Returns the answer of the model to an ask, as JSON.
        value: Returns the value that the caller receives.
    """

    output: Any  # Any: a type, or a JSON Schema
    said: Callable[[str], Json]
    value: Callable[[str], object]


def _remark(ask: str) -> dict[str, Json]:
    return {"note": f"all about {ask}", "count": len(ask)}


def _remark_value(ask: str) -> Remark:
    return Remark(f"all about {ask}", len(ask))


def _list(ask: str) -> list[str]:
    return [ask, "and no more"]


def _wrapped_list(ask: str) -> Json:
    return {"value": _list(ask)}


_SCHEMA = {
    "type": "object",
    "properties": {"note": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["note", "count"],
}
FORMS: Mapping[str, AnswerForm] = {
    "type": AnswerForm(Remark, _remark, _remark_value),
    "list": AnswerForm(list[str], _wrapped_list, _list),
    "schema": AnswerForm(_SCHEMA, _remark, _remark),
}
WRONG = ("I would rather not.", '{"note": "all', '{"note": 3}', "[1, 2]")
"""Answers that match none of the formats."""


def answer(form: str, ask: str) -> str:
    """Return a valid answer to an ask."""
    return json.dumps(FORMS[form].said(ask))


def is_explained(said: bytes) -> bool:
    """Return True if the feedback shows that the previous answer was rejected."""
    return b"Your answer" in said
