"""Write the head of a request: all fields before the first message.

The encoders of all wire families use this module. They collect the fields in a table of wire keys. The settings table
(`actors.core.settings.table`) contains the wire field of each setting, so most settings need no code in an encoder.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from actors.adapters.request import Settings, ToolSpec
from actors.core.data.jsonio import dump, quote
from actors.core.dialects.dialect import ChatDialect, Dialect
from actors.core.models.rules import Family
from actors.core.settings.table import REQUEST_SETTINGS, SETTINGS, Setting
from actors.core.settings.values import ToolChoice

Wire: TypeAlias = "bytes | str | int | float | Sequence[Wire] | Mapping[str, Wire] | None"
"""A value in a request body. Bytes are already encoded as JSON."""


class RequestHead(NamedTuple):
    """The part of a request that is determined by its settings.

    The keys that route a request to a cache are inserted between `before` and `after`.
    """

    path: str
    before: bytes
    after: bytes
    headers: tuple[tuple[str, str], ...] = ()
    losses: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def write_json(value: Wire) -> bytes:
    """Return a value as JSON without its empty members. None and empty containers become empty bytes."""
    if value is None or isinstance(value, bytes):
        return value or b""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, int | float):
        return dump(value)
    if isinstance(value, dict):
        pairs = [
            b'"%b":%b' % (key.encode(), text) for key, item in value.items() if (text := write_json(item))
        ]
        return b"{%b}" % b",".join(pairs) if pairs else b""
    items = b",".join(filter(None, map(write_json, value)))
    return b"[%b]" % items if items else b""


def begin_body(table: Mapping[str, Wire], messages_key: str) -> bytes:
    """Return the beginning of a request body: the fields in `table`, then `messages_key` with a list that is not closed
    yet.
    """
    return write_json({**table, messages_key: b"["})[:-1]


def chosen_tool(settings: Settings) -> Literal["none", "required"] | ToolSpec | None:
    """Return the tool choice; for a forced tool, return the tool's declaration. Return None for the default choice."""
    choice = settings.tool_choice
    if choice == "auto" or not settings.tools:
        return None
    if isinstance(choice, ToolChoice):
        return next(tool for tool in settings.tools if tool.name == choice.tool)
    return choice


def system_prompt(settings: Settings) -> str | None:
    """Return the system prompt, or None if it is missing or blank."""
    return settings.system if settings.system and settings.system.strip() else None


WireTable = dict[str, Any]  # Any: values have the type `Wire`, but dict is invariant


def is_unsupported_setting(name: str, dialect: Dialect) -> bool:
    """Return True if the host or the model does not support a setting, regardless of the setting's value."""
    setting, request = SETTINGS[name], dialect.request
    field = field_name(name, dialect)
    if not field or name in request.lacks:
        return True
    if isinstance(dialect, ChatDialect) and dialect.request.keys and field not in dialect.request.keys:
        return True
    return bool(setting.fact) and not getattr(dialect.model, setting.fact)


def field_name(name: str, dialect: Dialect) -> str:
    """Return the path of the request field for a setting, with keys joined by dots, or "" if it has no field."""
    if isinstance(dialect, ChatDialect):
        if name == "max_tokens":
            return dialect.request.max_tokens_field
        if name == "seed":
            return dialect.request.seed_field
    return SETTINGS[name].wire.get(dialect.family, "")


def add_setting_fields(table: WireTable, settings: Settings, dialect: Dialect) -> WireTable:
    """Add to `table` the fields of all settings that need no code in an encoder, and return it."""
    for name, setting in _PLAIN[dialect.family].items():
        if (value := getattr(settings, name)) in (None, ()):
            continue
        _set_field(table, field_name(name, dialect), dict(value) if name == "metadata" else value)
        for path, constant in setting.constants.get(dialect.family, {}).items():
            _set_field(table, path, constant)
    return table


def _set_field(table: WireTable, path: str, value: object) -> None:
    """Set the value at a path of keys joined by dots, and create the missing objects around it."""
    *parents, key = path.split(".")
    for parent in parents:
        if not isinstance(table.get(parent), dict):
            table[parent] = {}
        table = table[parent]
    table[key] = value


def _plain_settings(family: str) -> Mapping[str, Setting]:
    return {
        name: setting
        for name, setting in SETTINGS.items()
        if name in REQUEST_SETTINGS and family in setting.wire and family not in setting.coded
    }


_PLAIN = {family: _plain_settings(family) for family in get_args(Family)}
"""The settings that an encoder copies to the request without further code, by wire family."""
