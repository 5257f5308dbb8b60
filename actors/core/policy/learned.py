"""Convert parameters that a provider rejected to a `[models."PROVIDER:GLOB"]` table of `actors.toml`.

In:  a binding, and the names of the parameters that its provider does not support (`actors.adapters.settings`).
Out: the fields of the table, and the table as text.

If no field can mark a parameter as unsupported, the table has a comment instead, and requests omit the parameter only
until the runtime ends.
"""

import re
from collections.abc import Iterable, Mapping

from actors.core.data.jsonio import quote
from actors.core.schemas.property_keys import PLAIN_KEYS
from actors.core.settings.table import SETTINGS
from actors.core.values.identity import Binding

Override = str | bool | tuple[str, ...]
"""The value of a field in a `[models]` table."""

FIELDS: Mapping[str, Mapping[str, Override]] = {
    "effort": {"efforts": ()},
    "temperature": {"sampling": "never"},
    "top_p": {"sampling": "never"},
    **{name: {setting.fact: False} for name, setting in SETTINGS.items() if setting.fact},
    "stop": {"stops": False},
    "thinking": {"thinking": ()},
    "tool_choice": {"forced_choice": "never"},
    "cache": {"cache": "none"},
    "cache_life": {"cache": "automatic"},
    "output": {"schema_output": False},
    "schema_keys": {"property_keys": PLAIN_KEYS},
}
"""The fields that mark a parameter as unsupported, by the parameter's name."""


def model_overrides(names: Iterable[str]) -> dict[str, Override]:
    """Return the fields of a `[models]` table that mark these parameters as unsupported."""
    return {field: value for name in names for field, value in FIELDS.get(name, {}).items()}


def models_entry(binding: Binding, names: Iterable[str]) -> str:
    """Return a `[models]` table, as text, that marks these parameters as unsupported by the binding's model."""
    known = tuple(names)
    model = re.sub(r"([*?\[])", r"[\1]", binding.model)
    lines = [f"[models.{_toml_value(f'{binding.backend}:{model}')}]"]
    lines += [f"{field} = {_toml_value(value)}" for field, value in model_overrides(known).items()]
    lines += [f"# {name} was rejected, but no field can express that" for name in known if name not in FIELDS]
    return "\n".join(lines)


def _toml_value(value: Override) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quote(value).decode()  # TOML's basic strings use the escapes of JSON
    return f"[{', '.join(map(_toml_value, value))}]"
