"""Adapt the settings of a request to a dialect.

In:  the settings that the caller and the backend request, with the tools' own names.
Out: the settings that the dialect accepts, the wire names of tools and property keys, and the losses.

A setting that the dialect does not accept is omitted and reported as a loss, so that a preview shows it. A tool whose
name the dialect rejects gets a different name, which is used in the transcript as well
(`actors.core.transcript.transcript.tool_name`). Schemas are rewritten if necessary (`actors.adapters.schemas.host`).

A parameter that the provider rejected (`Settings.omitted`) has one of these names:

    a setting of `actors.core.settings.table`, upstream         the setting is omitted
    thinking                                                    the thinking switch and its budget are omitted
    tool_choice                                                 `auto` is sent instead
    cache                                                       all cache settings are omitted
    cache_life                                                  only the longer cache lifetime is omitted
    output                                                      the schema is described in the prompt instead
                                                                (`actors.adapters.outputs`)
    stream                                                      the answer is requested without streaming
    stream_options, include                                     the field, which the dialect itself adds, is omitted
    schema_keys                                                 property keys with unusual characters are renamed
    schema_patterns                                             regular expressions are omitted from schemas
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

from msgspec.structs import replace

from actors.adapters.outputs import request_output
from actors.adapters.request import TEXT, Settings, ToolSpec
from actors.adapters.schemas.host import HostSchema, host_schema
from actors.adapters.thinking import can_set_display, can_switch_off, fit_thinking, will_think
from actors.adapters.writing import is_unsupported_setting
from actors.core.data.jsonio import Json
from actors.core.dialects.dialect import Dialect
from actors.core.models.facts import Permission
from actors.core.schemas.property_keys import PLAIN_KEYS
from actors.core.settings.table import REQUEST_SETTINGS, SETTINGS
from actors.core.settings.values import Mode, ToolChoice, ToolChoiceSetting
from actors.core.transcript.transcript import flat_name, local_name, tool_name
from actors.core.values.identity import content_digest
from actors.errors import ConfigError

DEFAULTS: Mapping[str, Mapping[str, Any]] = {  # Any: each setting has its own type
    **{name: {name: SETTINGS[name].default} for name in REQUEST_SETTINGS},
    "thinking": {"thinking": "default", "thinking_tokens": None},
    "tool_choice": {"tool_choice": "auto"},
    "cache": {"cache": "off"},
    "cache_life": {"cache": "default"},
    "output": {"output": None},
    "stream": {"stream": False},
    "upstream": {"upstream": ""},
    "stream_options": {},
    "include": {},
    "schema_keys": {},
    "schema_patterns": {},
}
"""The settings to reset when a parameter is omitted, with their default values."""


def omit_refused(settings: Settings, dialect: Dialect) -> tuple[Settings, tuple[str, ...]]:
    """Reset the parameters in `settings.omitted` to their defaults.

    Return the changed settings, and the names of the parameters whose values changed, in order.
    """
    lost: list[str] = []
    for name in settings.omitted:
        defaults = _default_values(name, settings, dialect)
        changes = {key: value for key, value in defaults.items() if getattr(settings, key) != value}
        if changes:
            lost.append(name)
            settings = replace(settings, **changes)
    return settings, tuple(lost)


# Any: each setting has its own type.
def _default_values(name: str, settings: Settings, dialect: Dialect) -> dict[str, Any]:
    defaults = dict(DEFAULTS[name])
    if name == "cache_life" and settings.cache == "off":
        return {}
    if name == "effort" and settings.thinking == "off" and _is_switched_by_effort(dialect):
        defaults["thinking"] = "default"
    return defaults


def _is_switched_by_effort(dialect: Dialect) -> bool:
    """Return True if an effort value turns thinking off on this host."""
    return dialect.family == "responses" or dialect.reasoning.switch in ("effort", "gemini")


def setting_value(settings: Settings, name: str) -> str:
    """Return a parameter's value as a short string, by which a rejected value is recognised."""
    if name == "tool_choice":
        choice = settings.tool_choice
        return choice if isinstance(choice, str) else "named"
    # Some hosts turn thinking on or off through the effort, so the rejected value may come from `thinking`.
    keys = (*DEFAULTS[name], "thinking") if name == "effort" else DEFAULTS[name]
    value = ", ".join([repr(getattr(settings, key)) for key in keys])
    return value if len(value) <= 64 else content_digest(value)


class FittedSettings(NamedTuple):
    """Settings that a dialect accepts, and the losses. `names` and `keys` are as in `Request`."""

    settings: Settings
    names: Mapping[str, str]
    keys: Mapping[str, Mapping[str, str]]
    losses: tuple[str, ...]


def fit_settings(settings: Settings, dialect: Dialect) -> FittedSettings:
    """Return the settings in a form that a dialect accepts, ready to be encoded.

    A loss is the name of a setting (`actors.core.settings.table`) or `thinking_tokens`. `cache` means that a longer
    lifetime cannot be requested. `schema.KEYWORD` is a keyword of a tool's schema that the host rejects, and
    `output.KEYWORD` is a keyword of the answer's schema.

    Args:
        settings: The requested settings.
        dialect: The profile of the host, narrowed to the model in the settings.

    Raises:
        ConfigError: The model accepts no function tools on this API.
    """
    losses: dict[str, None] = {}
    if settings.output is not None:
        losses |= {"output": None} if "output" in settings.omitted else {}
        settings = request_output(settings, dialect)
    form = _fit_output(settings, dialect, losses)
    fitted = fit_thinking(settings, dialect, losses)
    fitted = _fit_choice(fitted, dialect, losses)
    fitted = _fit_chat_tools(fitted, settings, dialect, losses)
    fitted = _fit_fields(fitted, dialect, losses)
    cache = dialect.caching.accepted_cache(settings.cache, dialect.model)
    if settings.cache == "long" != cache:
        losses["cache"] = None
    made = [_fit_tool(tool, settings, dialect, losses) for tool in settings.tools]
    tools = tuple([tool for tool, _ in made])
    pairs = [*zip(settings.tools, made, strict=True)]
    names = {tool.name: own.name for own, (tool, _) in pairs if tool.name != own.name}
    keys = {own.name: renamed for own, (_, renamed) in pairs if renamed}
    choice = _wire_choice(fitted.tool_choice, names)
    sent = replace(fitted, tools=tools, cache=cache, output=form, tool_choice=choice)
    sent, omitted = omit_refused(sent, dialect)
    losses |= dict.fromkeys(omitted)
    return FittedSettings(sent, names, keys, (*losses,))


def _fit_output(settings: Settings, dialect: Dialect, losses: dict[str, None]) -> Json | None:
    """Return the answer's schema in a form that the dialect accepts, or None if the settings contain no schema. Add the
    schema's losses to `losses`.
    """
    if settings.output is None:
        return None
    form = _fit_schema(settings.output, settings, dialect, losses, renames_keys=False)
    losses.update(dict.fromkeys(f"output.{keyword}" for keyword in form.losses))
    return form.schema


def can_force_tool(settings: Settings, dialect: Dialect) -> bool:
    """Return True if a request with these settings can force a tool call, if necessary by turning thinking off."""
    match _forcing_support(dialect):
        case "never":
            return False
        case "without_thinking":
            return can_switch_off(dialect) or not will_think(settings, dialect)
        case _:
            return True


def _forcing_support(dialect: Dialect) -> Permission:
    """Return whether, or under which condition, both the host and the model allow a forced tool call."""
    both: tuple[Permission, Permission] = _HOSTS[dialect.request.forced_choice], dialect.model.forced_choice
    return max(both, key=_STRICTNESS.index)


_HOSTS: Mapping[str, Permission] = {
    "yes": "always",
    "not_when_thinking": "without_thinking",
    "no": "never",
}
_STRICTNESS: Sequence[Permission] = get_args(Permission)


def _fit_choice(settings: Settings, dialect: Dialect, losses: dict[str, None]) -> Settings:
    """Return settings with a tool choice that can be sent: the named tool if possible, otherwise any tool, otherwise
    `auto`.

    If a tool cannot be forced while the model thinks, thinking is turned off explicitly for this request (ANT-48,
    DSK-08), because a model that thinks by default would reject a request that does not mention thinking.
    """
    choice = settings.tool_choice
    if choice in ("auto", "none"):
        return settings
    named = _accepted_choice(choice, settings, dialect)
    if named == "auto" or not can_force_tool(settings, dialect):
        losses["tool_choice"] = None
        return replace(settings, tool_choice="auto")
    if named != choice:
        losses["tool_choice"] = None
    if _forcing_support(dialect) == "always" or not will_think(settings, dialect):
        return replace(settings, tool_choice=named)
    if settings.thinking in ("adaptive", "manual"):
        losses["thinking"] = None
    return replace(settings, tool_choice=named, thinking="off", thinking_tokens=None)


def _accepted_choice(choice: ToolChoiceSetting, settings: Settings, dialect: Dialect) -> ToolChoiceSetting:
    """Return a forced choice in a form that the model and the host accept: the named tool, or any tool ("required")."""
    if not isinstance(choice, ToolChoice):
        return choice
    tool = next((tool for tool in settings.tools if tool.name == choice.tool), None)
    if tool is None:  # the tool was removed while the ask was queued
        return "auto"
    is_named = dialect.request.named_choice and dialect.model.named_choice
    return choice if is_named and not (tool.namespace and dialect.request.namespaces) else "required"


def _wire_choice(choice: ToolChoiceSetting, names: Mapping[str, str]) -> ToolChoiceSetting:
    """Return the tool choice with the tool's wire name. `names` maps wire names to the tools' own names."""
    if not isinstance(choice, ToolChoice):
        return choice
    return next((ToolChoice(made) for made, own in names.items() if own == choice.tool), choice)


def tools_rejection_reason(model: str, dialect: Dialect) -> str:
    """Return the reason why requests to a model must not declare tools, and what to do about it; "" if they may
    (OAC-21).
    """
    if not _restricts_chat_tools(dialect) or dialect.model.chat_tools != "never":
        return ""
    return (
        f"Model {model!r} accepts no tools on Chat Completions; use openai_responses:{model}, or open the session "
        "without tools"
    )


def _restricts_chat_tools(dialect: Dialect) -> bool:
    """Return True if tools and effort may exclude each other, as with OpenAI's effort levels in Chat Completions."""
    return dialect.family == "openai_chat" and dialect.reasoning.switch == "effort"


def _fit_chat_tools(
    settings: Settings, requested: Settings, dialect: Dialect, losses: dict[str, None]
) -> Settings:
    """Return settings with the effort that Chat Completions accepts together with function tools (OAC-20)."""
    rule = dialect.model.chat_tools
    if not _restricts_chat_tools(dialect) or not settings.tools:
        return settings
    if why := tools_rejection_reason(settings.model, dialect):
        raise ConfigError(why)
    if rule == "always" or (settings.thinking == "off" and rule == "without_effort"):
        return settings
    if requested.effort not in (None, "none"):
        losses["effort"] = None
    if requested.thinking in ("adaptive", "manual"):
        losses["thinking"] = None
    if rule == "without_effort":
        return replace(settings, effort=None, thinking="default", thinking_tokens=None)
    thinking: Mode = "off" if requested.thinking == "off" else "default"
    return replace(settings, effort="none", thinking=thinking, thinking_tokens=None)


def _fit_fields(settings: Settings, dialect: Dialect, losses: dict[str, None]) -> Settings:
    """Return settings without the fields that the host or the model does not accept in this request."""
    no_sampling = not _accepts_sampling(settings, dialect)
    changes: dict[str, Any] = {}  # Any: each setting has its own type
    for name in _FITTED:
        setting = SETTINGS[name]
        if getattr(settings, name) == setting.default:
            continue
        is_unread = name == "display" and not can_set_display(settings, dialect)
        if is_unread or is_unsupported_setting(name, dialect) or (setting.is_sampling and no_sampling):
            changes[name] = setting.default
    losses |= dict.fromkeys(changes)
    return _fit_values(replace(settings, **changes), dialect, losses)


_FITTED = [
    name
    for name in REQUEST_SETTINGS
    if name not in ("max_tokens", "tool_choice", "thinking", "effort", "stop")
]
"""Settings that are omitted completely if they are not supported. Other functions handle the remaining settings, which
may be kept in part.
"""


def _accepts_sampling(settings: Settings, dialect: Dialect) -> bool:
    """Return True if a request with these settings may contain sampling settings."""
    match dialect.model.sampling:
        case "never":
            return False
        case "without_thinking":
            return dialect.request.sampling and not will_think(settings, dialect)
        case _:
            return dialect.request.sampling


def _fit_values(settings: Settings, dialect: Dialect, losses: dict[str, None]) -> Settings:
    """Return settings without values and combinations that the host rejects."""
    rules, changes = dialect.request, dict[str, Any]()  # Any: each setting has its own type
    if settings.temperature is not None and settings.temperature > rules.max_temperature:
        changes["temperature"] = None
    heat = changes.get("temperature", settings.temperature)
    if settings.top_p is not None and heat is not None and rules.top_p == "alone":
        changes["top_p"] = None
    if len(settings.stop) > (most := rules.max_stops if dialect.model.stops else 0):
        changes["stop"] = settings.stop[:most]
    losses |= dict.fromkeys(changes)
    if settings.parallel_tool_calls is not None and (not settings.tools or settings.tool_choice == "none"):
        # not a loss: the setting has no effect without tool calls, and hosts reject it in such requests
        changes["parallel_tool_calls"] = None
    return replace(settings, **changes)


def _fit_schema(
    schema: Json, settings: Settings, dialect: Dialect, losses: dict[str, None], *, renames_keys: bool
) -> HostSchema:
    """Return a schema in a form that the host accepts, without schema features that the host rejected earlier.

    `renames_keys` permits renaming property keys. If an earlier rejection changes the schema, it is added to `losses`.
    """
    patterns, pattern = dialect.request.patterns, dialect.model.property_keys if renames_keys else None
    fitted = host_schema(schema, patterns, pattern)
    refused = {name for name in ("schema_keys", "schema_patterns") if name in settings.omitted}
    if "schema_patterns" in refused and (without := host_schema(schema, "none", pattern)) != fitted:
        losses["schema_patterns"] = None
        patterns, fitted = "none", without
    if "schema_keys" in refused and renames_keys:
        renamed = host_schema(schema, patterns, pattern or PLAIN_KEYS)
        losses |= {} if renamed == fitted else {"schema_keys": None}
        fitted = renamed
    return fitted


def _fit_tool(
    tool: ToolSpec, settings: Settings, dialect: Dialect, losses: dict[str, None]
) -> tuple[ToolSpec, Mapping[str, str]]:
    """Return a tool with an accepted name and schema, and its renamed keys. Add the schema's losses to `losses`."""
    taken = _fit_schema(tool.parameters, settings, dialect, losses, renames_keys=True)
    losses.update(dict.fromkeys(f"schema.{keyword}" for keyword in taken.losses))
    pattern = dialect.ids.tool_name_pattern
    name = tool_name(tool.name, pattern)
    if tool.namespace and dialect.request.namespaces:
        name = flat_name(tool.namespace, tool_name(local_name(tool.name, tool.namespace), pattern))
    if tool.form is not None and not dialect.request.custom_tools and tool.form != TEXT:
        losses["tools.format"] = None
    return replace(tool, name=name, parameters=taken.schema), taken.keys
