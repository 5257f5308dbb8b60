"""Forms of answers that callers ask for, with the answer that has each, and with some that have not."""

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
    """A form.

    Args:
        output: What the caller asks for.
        said: What the model says of an ask, as JSON.
        value: What the caller is given then.
    """

    output: Any  # Any: a type, or a JSON Schema
    said: Callable[[str], Json]
    value: Callable[[str], object]


def _remark(ask: str) -> dict[str, Json]:
    return {"note": f"all about {ask}", "count": len(ask)}


def _list(ask: str) -> list[Json]:
    return [ask, "and no more"]


_SCHEMA = {
    "type": "object",
    "properties": {"note": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["note", "count"],
}
FORMS: Mapping[str, AnswerForm] = {
    "type": AnswerForm(Remark, _remark, lambda ask: Remark(f"all about {ask}", len(ask))),
    "list": AnswerForm(list[str], lambda ask: {"value": _list(ask)}, _list),
    "schema": AnswerForm(_SCHEMA, _remark, _remark),
}
WRONG = ("I would rather not.", '{"note": "all', '{"note": 3}', "[1, 2]")
"""Answers that have none of them."""


def answer(form: str, ask: str) -> str:
    """Return the answer to an ask that has the form."""
    return json.dumps(FORMS[form].said(ask))


def is_explained(said: bytes) -> bool:
    """Say whether a model that reads can see from what it is told that its answer was not taken."""
    return b"Your answer" in said
