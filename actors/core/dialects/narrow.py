"""Narrow a dialect to one model: combine the rules of a host with the facts of the model that it serves.

In:  a profile, a model's name, and overrides of the built-in facts: the user's, then overrides learned from refusals.
Out: the profile with the model's facts, and with updated rules for replaying reasoning and native ids.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from actors.core.data.record import replace
from actors.core.dialects.dialect import ChatDialect, Dialect, GeminiDialect
from actors.core.models.facts import ModelFacts, Overrides, override_facts
from actors.core.models.lookup import find_row

_REQUIRED = {"own": "no", "with_calls": "with_calls", "every": "every"}


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
