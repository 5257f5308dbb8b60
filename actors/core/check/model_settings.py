"""Judge the settings of a whole request against the facts of its model (`actors.core.models`).

A table lists the path of each setting in each wire family; the facts are the same for all. Only `check` uses this
module, because the fragments of a lane contain no settings.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from actors.core.data.jsonio import JsonValue
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.models.facts import ModelFacts
from actors.core.models.lookup import find_row

Place: TypeAlias = tuple[str, ...]

_PLACES: Mapping[str, Mapping[str, Place]] = {
    "openai_chat": {
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "effort": ("reasoning_effort",),
        "thinking": ("thinking", "type"),
        "stop": ("stop",),
    },
    "responses": {
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "effort": ("reasoning", "effort"),
        "choice": ("tool_choice",),
    },
    "anthropic": {
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "effort": ("output_config", "effort"),
        "thinking": ("thinking", "type"),
        "stop": ("stop_sequences",),
        "choice": ("tool_choice", "type"),
    },
    "converse": {
        "temperature": ("inferenceConfig", "temperature"),
        "top_p": ("inferenceConfig", "topP"),
        "effort": ("outputConfig", "effort"),
        "thinking": ("additionalModelRequestFields", "thinking", "type"),
        "stop": ("inferenceConfig", "stopSequences"),
    },
    "gemini": {
        "effort": ("generationConfig", "thinkingConfig", "thinkingLevel"),
    },
}
"""The path of each setting in a request, by family."""

_ACCEPTED = ModelFacts(forced_choice="without_thinking")  # where sources disagree
_FREE = ("auto", "none", "validated")  # tool choices that force nothing


def setting_faults(body: Mapping[str, JsonValue], dialect: Dialect) -> Iterator[tuple[str, str, str]]:
    """Yield (rule and case, path, description) for each setting that the model does not accept."""
    facts = judged_facts(dialect, body.get("model"))
    asked = {name: (place, value) for name, place in _PLACES[dialect.family].items()
             if (value := _value(body, place)) is not None}  # fmt: skip
    yield from _sampling(asked, dialect, facts)
    yield from _effort(asked, body, dialect, facts)
    if (thinking := asked.get("thinking")) is not None and thinking[1] not in facts.thinking:
        place, value = thinking
        yield f"ALL-16 {value}", ".".join(place), f"the model does not accept {value!r}"
    if not facts.stops and (stop := asked.get("stop")) is not None:
        yield "ALL-16 stop", ".".join(stop[0]), "the model accepts no stop sequences"
    if facts.forced_choice == "never" and (choice := asked.get("choice")) is not None and _forces(choice[1]):
        yield "ALL-16 forced", ".".join(choice[0]), "the model accepts no forced tool"


def judged_facts(dialect: Dialect, model: JsonValue) -> ModelFacts:
    """Return the facts of a request's model; those of the dialect if it is already narrowed to a model.

    Facts about which sources disagree cause no fault (`ModelRow.cautious`).

    Args:
        dialect: The profile of the host.
        model: The model field of the request.
    """
    named = dialect.narrowed_to or model
    row = find_row(named, dialect.makers) if isinstance(named, str) else None
    if row is None:
        return dialect.model
    facts = dialect.model if dialect.narrowed_to else row.facts
    unsure = [name for name in row.cautious if getattr(facts, name) == getattr(row.facts, name)]
    return replace(facts, **{name: getattr(_ACCEPTED, name) for name in unsure})


def _value(body: JsonValue | Mapping[str, JsonValue], place: Place) -> Any:  # Any: JSON
    for key in place:
        body = body.get(key) if isinstance(body, Mapping) else None
    return body


def _sampling(
    asked: Mapping[str, tuple[Place, Any]], dialect: Dialect, facts: ModelFacts
) -> Iterator[tuple[str, str, str]]:  # Any: JSON
    """Yield the sampling settings that the model rejects. Every model accepts the default of 1."""
    if facts.sampling != "never":
        return
    for name in ("temperature", "top_p"):
        place, value = asked.get(name, ((), None))
        if value not in (None, 1):
            yield "ALL-16 sampling", ".".join(place), "the model accepts no sampling settings"


def _effort(
    asked: Mapping[str, tuple[Place, Any]], body: Mapping[str, JsonValue], dialect: Dialect, facts: ModelFacts
) -> Iterator[tuple[str, str, str]]:  # Any: JSON
    place, effort = asked.get("effort", ((), None))
    is_chat = dialect.family == "openai_chat" and dialect.reasoning.switch == "effort"
    if is_chat and body.get("tools") and _refuses_tools(facts, effort):
        what = "tools are accepted only with another effort, or on the Responses API"
        yield "ALL-16 tools", "reasoning_effort", what
        return
    if effort is not None and facts.efforts is not None and str(effort).lower() not in facts.efforts:
        levels = ", ".join(facts.efforts) or "none"
        yield "ALL-16 effort", ".".join(place), f"no level {str(effort)[:20]!r}; the model has {levels}"


def _refuses_tools(facts: ModelFacts, effort: JsonValue) -> bool:
    match facts.chat_tools:
        case "without_effort":
            return effort not in (None, "none")
        case "effort_none":
            return effort != "none"
        case "never":
            return True
        case _:
            return False


def _forces(choice: JsonValue) -> bool:
    if isinstance(choice, dict):
        return choice.get("type") != "allowed_tools"
    return isinstance(choice, str) and choice.lower() not in _FREE
