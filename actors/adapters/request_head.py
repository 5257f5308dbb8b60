"""Write the head of a request: all fields that its settings decide, up to the first message.

The encoders of all families use it. They collect the fields in a table of wire keys. The table of settings
(`actors.core.settings.table`) names the wire field of each setting, so an encoder needs no code of its own for most
of them.
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
"""A value in a request. Bytes are already JSON."""


class RequestHead(NamedTuple):
    """The part of a request that its settings decide. Cache routing keys go between `before` and `after`."""

    path: str
    before: bytes
    after: bytes
    headers: tuple[tuple[str, str], ...] = ()
    losses: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def write_json(value: Wire) -> bytes:
    """Return a value as JSON, without empty members; empty bytes for None, and for a container without members."""
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


def open_body(table: Mapping[str, Wire], messages: str) -> bytes:
    """Return the beginning of a body: the keys of a table, and the key of the messages up to the first message."""
    return write_json({**table, messages: b"["})[:-1]


def chosen_tool(settings: Settings) -> Literal["none", "required"] | ToolSpec | None:
    """Return the tool choice, or the declaration of the forced tool; None if the choice is the default."""
    choice = settings.tool_choice
    if choice == "auto" or not settings.tools:
        return None
    if isinstance(choice, ToolChoice):
        return next(tool for tool in settings.tools if tool.name == choice.tool)
    return choice


def system(settings: Settings) -> str | None:
    """Return the system prompt; None if it is blank."""
    return settings.system if settings.system and settings.system.strip() else None


WireTable = dict[str, Any]  # Any: values of a request (`actors.adapters.request_head.Wire`)


def is_lacking(name: str, dialect: Dialect) -> bool:
    """Return True if the host or the model has no field for a setting, whatever its value."""
    setting, request = SETTINGS[name], dialect.request
    field = field_name(name, dialect)
    if not field or name in request.lacks:
        return True
    if isinstance(dialect, ChatDialect) and dialect.request.keys and field not in dialect.request.keys:
        return True
    return bool(setting.fact) and not getattr(dialect.model, setting.fact)


def field_name(name: str, dialect: Dialect) -> str:
    """Return the field of a request that holds a setting, keys joined by dots; empty if there is none."""
    if isinstance(dialect, ChatDialect):
        if name == "max_tokens":
            return dialect.request.max_tokens_field
        if name == "seed":
            return dialect.request.seed_field
    return SETTINGS[name].wire.get(dialect.family, "")


def with_fields(table: WireTable, settings: Settings, dialect: Dialect) -> WireTable:
    """Return an encoder's part of a request with the fields of the settings that need no code of their own."""
    for name, setting in _PLAIN[dialect.family].items():
        if (value := getattr(settings, name)) in (None, ()):
            continue
        _set_field(table, field_name(name, dialect), dict(value) if name == "metadata" else value)
        for path, constant in setting.constants.get(dialect.family, {}).items():
            _set_field(table, path, constant)
    return table


def _set_field(table: WireTable, path: str, value: object) -> None:
    """Set a field, creating the objects around it."""
    *parents, key = path.split(".")
    for parent in parents:
        if not isinstance(table.get(parent), dict):
            table[parent] = {}
        table = table[parent]
    table[key] = value


def _plain(family: str) -> Mapping[str, Setting]:
    return {
        name: setting
        for name, setting in SETTINGS.items()
        if name in REQUEST_SETTINGS and family in setting.wire and family not in setting.coded
    }


_PLAIN = {family: _plain(family) for family in get_args(Family)}
"""The settings that need no code of their own, by wire family."""
