"""Find the row of the table that describes a model, and narrow a dialect to the model.

In:  a profile, a model's name in its provider's spelling, and overrides of the built-in facts: the user's, then
     overrides learned from refusals.
Out: the profile with the model's facts, and with updated rules for replaying reasoning and native ids.

The first row that matches the name, among the makers whose models the host serves, describes the model. A new name of a
known family matches the row of the family's newest generation, because providers add restrictions more often than they
lift them. A model of an unknown family has no row.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from actors.core.data.record import replace
from actors.core.dialects.dialect import ChatDialect, Dialect, GeminiDialect
from actors.core.models.facts import Maker, ModelFacts, ModelRow, Overrides, override_facts

# matches a prefix such as `us.anthropic.`; a dot before a digit belongs to a version number
_PREFIX = re.compile(r"(?:[a-z][a-z0-9-]*\.)+(?=[a-z])")
_SUFFIX = re.compile(
    r"(?:[@:\[].*|(?<!claude)-v\d+:\d+|(?<=\d)-v\d+|-20\d\d-?\d\d-?\d\d(?!\d).*|-(?:latest|preview))+$"
)
_REQUIRED = {"own": "no", "with_calls": "with_calls", "every": "every"}


@lru_cache(maxsize=1024)
def base_name(model: str) -> str:
    """Return a model's name in lower case, without a gateway, region, date, tag or version suffix.

    A suffix after the date, as in `claude-sonnet-4-5-20250929-thinking`, is removed with the date.

    For example, `openai/gpt-5.6-sol-2026-07-01` becomes `gpt-5.6-sol`. Both
    `us.anthropic.claude-opus-5-5-20260901-v1:0` and `claude-opus-5-5@20260901` become `claude-opus-5-5`.
    """
    name = model.strip().lower().removeprefix("ft:").rpartition("/")[2].lstrip("~")
    return _SUFFIX.sub("", _PREFIX.sub("", name, count=1))


@lru_cache(maxsize=1024)
def find_row(model: str, makers: Collection[Maker]) -> ModelRow | None:
    """Return the row that describes a model on a host, or None if the model's family is unknown.

    Args:
        model: The model's name, as its provider spells it.
        makers: The makers whose models the host serves.
    """
    # imported here, so that the table is built only when it is needed
    from actors.core.models.table import ROWS

    name = base_name(model)
    rows = (row for row in ROWS if row.maker in makers)
    return next((row for row in rows if re.fullmatch(row.models, name)), None)


def for_model(dialect: Dialect, model: str, overrides: Sequence[Overrides] = ()) -> Dialect:
    """Return a dialect narrowed to a model. A narrowed dialect is returned unchanged, unless there are overrides.

    Args:
        dialect: The profile of the host.
        model: The model's name, as the provider spells it.
        overrides: Fields that replace the built-in facts. Later overrides replace earlier ones.
    """
    if dialect.narrowed_to and not overrides:
        return dialect
    narrowed = dialect if dialect.narrowed_to else _narrow_to_model(dialect, model)
    facts = narrowed.model
    for each in overrides:
        facts = override_facts(facts, each)
    return narrowed if facts == narrowed.model else apply_facts(narrowed, facts)


def facts_of(dialect: Dialect, model: str) -> ModelFacts:
    """Return the built-in facts of a model on a host, or the profile's own facts if the model's family is unknown."""
    row = find_row(model, dialect.makers)
    return dialect.model if row is None else row.facts


@lru_cache(maxsize=1024)
def _narrow_to_model(dialect: Dialect, model: str) -> Dialect:
    return replace(apply_facts(dialect, facts_of(dialect, model)), narrowed_to=model or "-")


def apply_facts(dialect: Dialect, facts: ModelFacts) -> Dialect:
    """Return a dialect with a model's facts. The fields that depend on the facts are updated."""
    changes: dict[str, Any] = {"model": facts}  # Any: each field has its own type
    if facts.native_ids and not dialect.ids.native_passthrough:
        # this model accepts call ids, although other models on its host do not (GEM-09)
        changes["ids"] = replace(dialect.ids, native_passthrough=True)
    reasoning = dialect.reasoning
    if isinstance(dialect, GeminiDialect) and facts.budgets:
        changes["reasoning"] = replace(reasoning, required="no", placeholder="", switch="gemini_budget")
        changes["media"] = replace(dialect.media, result_kinds=frozenset())
    elif isinstance(dialect, ChatDialect) and facts.reasoning != "host":
        carrier = "reasoning_content" if reasoning.carrier == "none" else reasoning.carrier
        binding = "model" if reasoning.binding == "none" else reasoning.binding
        changes["reasoning"] = replace(
            reasoning, carrier=carrier, binding=binding, required=_REQUIRED[facts.reasoning]
        )
    return replace(dialect, **changes)
