"""Leave parameters out of a request because its provider refused them.

In:  settings as a dialect takes them, the names in `Settings.omitted`.
Out: settings without those parameters, and the names of those that would have been sent.

    a setting of `actors.core.settings.table`, upstream         the setting
    thinking                                                    the switch and its budget
    tool_choice                                                 falls to `auto`
    cache, cache_life                                           everything asked of the cache; the longer life alone
    output                                                      words stand for the schema (`actors.adapters.outputs`)
    stream                                                      the answer comes whole
    stream_options, include                                     what the dialect itself asks for
    schema_keys, schema_patterns                                property keys of unusual characters, which are renamed,
                                                                and regular expressions (`actors.adapters.settings`)
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from actors.adapters.request import Settings
from actors.core.dialects.dialect import Dialect
from actors.core.settings.table import REQUEST_SETTINGS, SETTINGS
from actors.core.values.identity import content_name

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
"""The settings of each parameter that can be left out, with the values that say nothing."""


def leave_out(settings: Settings, dialect: Dialect) -> tuple[Settings, tuple[str, ...]]:
    """Return settings without what is in `settings.omitted`, and the names of what that changes, in their order."""
    lost: list[str] = []
    for name in settings.omitted:
        defaults = _defaults(name, settings, dialect)
        changes = {key: value for key, value in defaults.items() if getattr(settings, key) != value}
        if changes:
            lost.append(name)
            settings = replace(settings, **changes)
    return settings, tuple(lost)


def _defaults(name: str, settings: Settings, dialect: Dialect) -> dict[str, Any]:  # Any: as above
    defaults = dict(DEFAULTS[name])
    if name == "cache_life" and settings.cache == "off":
        return {}
    if name == "effort" and settings.thinking == "off" and _is_off_an_effort(dialect):
        defaults["thinking"] = "default"
    return defaults


def _is_off_an_effort(dialect: Dialect) -> bool:
    """Return True if a host is asked not to think by an effort."""
    return dialect.family == "responses" or dialect.reasoning.switch in ("effort", "gemini")


def setting_value(settings: Settings, name: str) -> str:
    """Return what a request asks for under a name, as a short text: to tell a rejected value from others."""
    if name == "tool_choice":
        choice = settings.tool_choice
        return choice if isinstance(choice, str) else "named"
    keys = (
        (*DEFAULTS[name], "thinking") if name == "effort" else DEFAULTS[name]
    )  # some hosts have an effort for both
    value = ", ".join([repr(getattr(settings, key)) for key in keys])
    return value if len(value) <= 64 else content_name(value)
