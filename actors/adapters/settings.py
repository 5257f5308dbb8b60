"""What was asked for to what a dialect takes: sampling, a forced tool, thinking, and the tools' names.

What a dialect does not take is not sent, and named among the losses, so that a preview can tell. A tool whose name
the dialect refuses goes out under a made one (`actors.core.projection.tool_name`), the same that its calls have in the
transcript. Its schema goes out as the host takes it (`actors.adapters.tool_schemas`). What one family demands, and how
thinking is asked for, is its own.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from actors.adapters.outputs import asked_form
from actors.adapters.request import TEXT, Settings, ToolSpec
from actors.adapters.tool_schemas import host_schema
from actors.core.asking import Choose, ToolChoice
from actors.core.dialect import Dialect
from actors.core.jsonio import Json
from actors.core.projection import flat_name, tool_name, within


class FittedSettings(NamedTuple):
    """Settings as a dialect takes them, with `Request.names`, `Request.keys`, and what was lost."""

    settings: Settings
    names: Mapping[str, str]
    keys: Mapping[str, Mapping[str, str]]
    losses: tuple[str, ...]


def fit(settings: Settings, dialect: Dialect) -> FittedSettings:
    """Return settings as a dialect takes them, to be sent as they are.

    The losses are: `temperature`, `top_p`, `stop`, `tool_choice`, `thinking`,
    `thinking_tokens`, `effort`; `cache`, where no longer life can be asked for; and `schema.KEYWORD` for what a tool's
    schema may not say, `output.KEYWORD` for what that of the answer may not.
    """
    if settings.output is not None:
        settings = asked_form(settings, dialect)
    lost: dict[str, None] = {}
    changes: dict[str, Any] = _sampling(settings, dialect)  # Any: each setting has its own type
    form = _form(settings, dialect, lost)
    choice = _choice(settings, dialect)
    if choice != settings.tool_choice:
        changes["tool_choice"] = choice
    if dialect.reasoning.switch == "none":
        asked = {"thinking": "default", "thinking_tokens": None, "effort": None}
        changes |= {name: nothing for name, nothing in asked.items() if getattr(settings, name) != nothing}
    cache = dialect.caching.taken(settings.cache, settings.model)
    if settings.cache == "long" != cache:
        changes["cache"] = cache
    fitted = [_taken(tool, settings.model, dialect, lost) for tool in settings.tools]
    tools = tuple([tool for tool, _ in fitted])
    pairs = zip(tools, settings.tools, strict=True)
    names = {made.name: own.name for made, own in pairs if made.name != own.name}
    sent = {"tools": tools, "cache": cache, "output": form} | changes
    if isinstance(choice, Choose):
        sent["tool_choice"] = _renamed(choice, names)
    keys = {own.name: made for own, (_, made) in zip(settings.tools, fitted, strict=True) if made}
    return FittedSettings(replace(settings, **sent), names, keys, (*changes, *lost))


def _form(settings: Settings, dialect: Dialect, lost: dict[str, None]) -> Json | None:
    """Return the schema of the answer as the dialect takes it; note what it lost."""
    if settings.output is None:
        return None
    form = host_schema(settings.output, dialect.request.patterns)
    lost.update(dict.fromkeys(f"output.{keyword}" for keyword in form.losses))
    return form.schema


def _choice(settings: Settings, dialect: Dialect) -> ToolChoice:
    """Return the tool choice as far as it can be said: one tool by its name, else any, else as the model likes."""
    choice, rules = settings.tool_choice, dialect.request
    if choice in ("auto", "none"):
        return choice
    if rules.forced_choice == "no" or (
        rules.forced_choice == "not_when_thinking" and _thinks(settings, dialect)
    ):
        return "auto"
    if not isinstance(choice, Choose):
        return choice
    tool = next((tool for tool in settings.tools if tool.name == choice.tool), None)
    if tool is None:  # it went while the ask waited
        return "auto"
    is_named = re.fullmatch(rules.named_models, settings.model) is not None
    return choice if is_named and not (tool.namespace and rules.namespaces) else "required"


def _renamed(choice: Choose, names: Mapping[str, str]) -> Choose:
    """Return a choice by the name that the tool is declared under."""
    return next((Choose(made) for made, own in names.items() if own == choice.tool), choice)


def _thinks(settings: Settings, dialect: Dialect) -> bool:
    """Say whether the model will think: it was asked to, or it always does unless it is told not to."""
    always = dialect.reasoning.required == "with_calls" and settings.thinking != "off"
    return always or settings.thinking in ("adaptive", "manual")


def _sampling(settings: Settings, dialect: Dialect) -> dict[str, Any]:  # Any: as above
    """Return what is left out of sampling. Anthropic's models take none but their own while they think."""
    rules, heat = dialect.request, settings.temperature
    takes = rules.sampling and re.fullmatch(rules.sampling_models, settings.model) is not None
    fixed = not takes or (dialect.reasoning.switch == "anthropic" and _thinks(settings, dialect))
    changes: dict[str, Any] = {}
    if heat is not None and (fixed or heat > rules.max_temperature):
        changes["temperature"] = heat = None
    if settings.top_p is not None and (fixed or (heat is not None and rules.top_p == "alone")):
        changes["top_p"] = None
    if len(settings.stop) > rules.max_stops:
        changes["stop"] = settings.stop[: rules.max_stops]
    return changes


def _taken(
    tool: ToolSpec, model: str, dialect: Dialect, lost: dict[str, None]
) -> tuple[ToolSpec, Mapping[str, str]]:
    """Return a tool under a name and with a schema that are taken, and its made keys; note what the schema lost."""
    rules = dialect.request
    has_key_rule = rules.property_keys is not None and re.fullmatch(rules.property_key_models, model)
    taken = host_schema(tool.parameters, rules.patterns, rules.property_keys if has_key_rule else None)
    lost.update(dict.fromkeys(f"schema.{keyword}" for keyword in taken.losses))
    pattern = dialect.ids.tool_name_pattern
    name = tool_name(tool.name, pattern)
    if tool.namespace and dialect.request.namespaces:
        name = flat_name(tool.namespace, tool_name(within(tool.name, tool.namespace), pattern))
    if tool.form is not None and not dialect.request.custom_tools and tool.form != TEXT:
        lost["tools.format"] = None
    return replace(tool, name=name, parameters=taken.schema), taken.keys


_MANUAL_TOKENS = 1024  # fewest of a manual thinking budget; also left for the answer where less is asked for


def _budget(settings: Settings) -> int:
    return max(settings.thinking_tokens or _MANUAL_TOKENS, _MANUAL_TOKENS)


def thinking_switch(settings: Settings) -> Mapping[str, str | int | None]:
    """Return Anthropic's `thinking`: newer models take `adaptive`, older ones `manual` (ANT-45, ANT-46)."""
    if settings.thinking == "manual":
        return {"type": "enabled", "budget_tokens": _budget(settings)}
    return {"type": {"adaptive": "adaptive", "off": "disabled"}.get(settings.thinking)}


def room(settings: Settings, default: int) -> int:
    """Return the most tokens of the answer. A manual thinking budget is part of them and must be smaller."""
    most = settings.max_tokens or default
    if settings.thinking != "manual":
        return most
    return max(most, _budget(settings) + (_MANUAL_TOKENS if settings.max_tokens else default))
