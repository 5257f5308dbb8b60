"""Define one row of the corpus of rules.

A row breaks one rule: it holds a request that breaks it, the nearest request that keeps it, and the verdicts of the
three readers of the rules, which share no code: the judge (`actors.core.check`), the strict server of the dialect
(`actors.strict.rules`) and the classifier of error bodies (`actors.adapters.classify`). `test_rules` runs every row
through all three.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import PROFILES
from actors.strict.rules import ServerSettings
from actors.strict.rules.base import Mode

Json: TypeAlias = dict[str, Any]  # Any: a row may break a body in any way

ACCEPTED = "accepted"
"""The strict server accepts the broken request: no host is known to refuse it."""
UNSEEN = "unseen"
"""The judge finds nothing: the fault is outside a request body, or one that the renderer cannot make."""
NOT_ASKED = "not asked"
"""The strict server has no host like this one: the row changes the dialect, or needs stored items."""


class Answer(NamedTuple):
    """The HTTP status, type and code of a rejection."""

    status: int = 400
    type: str = "invalid_request_error"
    code: str | None = None


USUAL = Answer()


@dataclass(frozen=True)
class Row:
    """A request that breaks one rule, and the nearest request that keeps it.

    Args:
        rule: Id of the broken rule, in the rulebook or in the tables of the strict servers.
        words: The provider's error message; "…" stands for any text. Empty if another row has the words of the
            same rule.
        judge: Ids of the rules that the judge finds in `broken`, separated by spaces; by default `rule`.
        server: Id of the rule that the strict server names; by default `rule`.
        stricter: Ids of the rules that the judge finds in `sound`, which the host accepts.
        answer: Status, type and code of the refusal; by default those of most refusals of the dialect.
        param: The part of the request that the refusal names in a field of its own; by default as in most refusals.
        read: The classifier's reading of the refusal: the kind of the failure and the id of the rule that it reads in
            the words, if any. By default the kind that follows from `server` in the rulebook, and that rule.
        hosted: Whether the official host refuses `broken` too, as the strict mode does.
        mode: The mode that has these words.
        settings: The model that the strict server stands for; by default one that trusts any signature.
        dialect: Name of the dialect.
        profile: The dialect as the judge applies it, where it differs from the profile of that name.
    """

    rule: str
    broken: Json | bytes
    sound: Json | bytes
    words: str = ""
    judge: str = ""
    server: str = ""
    stricter: str = ""
    answer: Answer | None = None
    param: str | None = ""
    read: str = ""
    hosted: bool = True
    mode: Mode = "strict"
    settings: ServerSettings | None = None
    dialect: str = ""
    profile: Dialect | None = None

    @property
    def judged_by(self) -> Dialect:
        return self.profile or PROFILES[self.dialect]

    @property
    def found(self) -> set[str]:
        """Ids of the rules that the judge finds in the broken request."""
        return set() if self.judge == UNSEEN else set((self.judge or self.rule).split())

    @property
    def refused_as(self) -> str | None:
        """Id of the rule that the strict server names; None if it accepts the broken request."""
        return None if self.server == ACCEPTED else self.server or self.rule

    @property
    def is_served(self) -> bool:
        return self.server != NOT_ASKED


def rows(dialect: str, *listed: Row, answer: Answer = USUAL, param: str | None = None) -> list[Row]:
    """Return the rows with the dialect's name, and with the answer and the place that most of its refusals have."""
    return [
        replace(
            row,
            dialect=row.dialect or dialect,
            answer=row.answer or answer,
            param=param if row.param == "" else row.param,
        )
        for row in listed
    ]


def encode_request(request: Json | bytes) -> bytes:
    """Return the bytes of a request. A lone surrogate is escaped."""
    if isinstance(request, bytes):
        return request
    try:
        return json.dumps(request, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(request).encode()


def without(value: Mapping[str, Any], key: str) -> Json:  # Any: JSON
    return {name: inner for name, inner in value.items() if name != key}
