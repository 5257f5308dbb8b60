"""Check the settings of a complete request against the facts of its model (`actors.core.models`).

A table gives the path of each setting in each wire family, so all families share the checks. Only `check` uses this
module, because fragments of messages contain no settings.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from actors.core.data.jsonio import JsonValue
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.narrow import find_row
from actors.core.models.facts import ModelFacts

SettingPath: TypeAlias = tuple[str, ...]

_PATHS: Mapping[str, Mapping[str, SettingPath]] = {
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
"""The path of each setting in a request, by family and setting."""

# used in place of a row's `cautious` facts, about which the sources disagree
_ACCEPTED = ModelFacts(forced_choice="without_thinking")
_UNFORCED = ("auto", "none", "validated")  # tool choices that force nothing


def setting_faults(body: Mapping[str, JsonValue], dialect: Dialect) -> Iterator[tuple[str, str, str]]:
    """Yield (rule and case, path, description) for each setting in a request body that the model does not accept."""
    facts = relaxed_facts(dialect, body.get("model"))
    asked = {name: (place, value) for name, place in _PATHS[dialect.family].items()
             if (value := _value_at(body, place)) is not None}  # fmt: skip
    yield from _sampling_faults(asked, dialect, facts)
    yield from _effort_faults(asked, body, dialect, facts)
    if (thinking := asked.get("thinking")) is not None and thinking[1] not in facts.thinking:
        place, value = thinking
        yield f"ALL-16 {value}", ".".join(place), f"the model does not accept {value!r}"
    if not facts.stops and (stop := asked.get("stop")) is not None:
        yield "ALL-16 stop", ".".join(stop[0]), "the model does not accept stop sequences"
    if (
        facts.forced_choice == "never"
        and (choice := asked.get("choice")) is not None
        and _forces_tool(choice[1])
    ):
        yield "ALL-16 forced", ".".join(choice[0]), "the model does not accept a forced tool choice"


def relaxed_facts(dialect: Dialect, model: JsonValue) -> ModelFacts:
    """Return the facts of a request's model. If the dialect is already narrowed to a model, return the dialect's facts.

    A fact about which sources disagree (`ModelRow.cautious`) is replaced by a value with which no request is rejected.

    Args:
        dialect: The profile of the host.
        model: The `model` field of the request. Its type is not checked yet.
    """
    named = dialect.narrowed_to or model
    row = find_row(named, dialect.makers) if isinstance(named, str) else None
    if row is None:
        return dialect.model
    facts = dialect.model if dialect.narrowed_to else row.facts
    unsure = [name for name in row.cautious if getattr(facts, name) == getattr(row.facts, name)]
    return replace(facts, **{name: getattr(_ACCEPTED, name) for name in unsure})


def _value_at(
    body: JsonValue | Mapping[str, JsonValue], path: SettingPath
) -> Any:  # Any: `JsonValue` would need casts
    for key in path:
        body = body.get(key) if isinstance(body, Mapping) else None
    return body


def _sampling_faults(
    settings: Mapping[str, tuple[SettingPath, Any]], dialect: Dialect, facts: ModelFacts
) -> Iterator[tuple[str, str, str]]:  # Any: `JsonValue` would need casts
    """Yield a fault for each sampling setting that the model rejects. Every model accepts the default of 1."""
    if facts.sampling != "never":
        return
    for name in ("temperature", "top_p"):
        place, value = settings.get(name, ((), None))
        if value not in (None, 1):
            yield "ALL-16 sampling", ".".join(place), "the model does not accept sampling settings"


def _effort_faults(
    settings: Mapping[str, tuple[SettingPath, Any]],
    body: Mapping[str, JsonValue],
    dialect: Dialect,
    facts: ModelFacts,
) -> Iterator[tuple[str, str, str]]:  # Any: `JsonValue` would need casts
    place, effort = settings.get("effort", ((), None))
    is_chat = dialect.family == "openai_chat" and dialect.reasoning.switch == "effort"
    if is_chat and body.get("tools") and _refuses_tools(facts, effort):
        what = "the model does not accept tools at this effort; use another effort or the Responses API"
        yield "ALL-16 tools", "reasoning_effort", what
        return
    if effort is not None and facts.efforts is not None and str(effort).lower() not in facts.efforts:
        levels = ", ".join(facts.efforts) or "none"
        what = f"the model does not have the effort level {str(effort)[:20]!r}; its levels are: {levels}"
        yield "ALL-16 effort", ".".join(place), what


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


def _forces_tool(choice: JsonValue) -> bool:
    if isinstance(choice, dict):
        return choice.get("type") != "allowed_tools"
    return isinstance(choice, str) and choice.lower() not in _UNFORCED
