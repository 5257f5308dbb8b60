"""Write the settings of a request to the fields that the table of settings names (`actors.core.settings.table`).

In:  settings that a dialect accepts, and its dialect.
Out: the fields of the request that no encoder writes in code of its own, as a nested table.

Encoders add this to their own part of a request, so a new setting needs a row in the table and no encoder.
"""

from collections.abc import Mapping
from typing import Any, get_args

from actors.adapters.request import Settings
from actors.core.dialects.dialect import ChatDialect, Dialect
from actors.core.models.concerns import Family
from actors.core.settings.table import REQUEST_SETTINGS, SETTINGS, Setting

Fields = dict[str, Any]  # Any: values of a request (`actors.adapters.preamble.Wire`)


def is_lacking(name: str, dialect: Dialect) -> bool:
    """Return True if a host or the model has no field for a setting, whatever its value."""
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


def with_fields(table: Fields, settings: Settings, dialect: Dialect) -> Fields:
    """Return an encoder's part of a request with the fields of the settings that the table alone describes."""
    for name, setting in _PLAIN[dialect.family].items():
        if (value := getattr(settings, name)) in (None, ()):
            continue
        _put(table, field_name(name, dialect), dict(value) if name == "metadata" else value)
        for path, constant in setting.constants.get(dialect.family, {}).items():
            _put(table, path, constant)
    return table


def _put(table: Fields, path: str, value: object) -> None:
    """Set a field, with the objects around it."""
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
"""The settings that the table alone describes, by wire family."""
