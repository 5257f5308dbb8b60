"""Values as the faults of the judge show them, and what several families ask of one."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from actors.core.jsonio import JsonRefused, JsonValue, parse

Shape: TypeAlias = Mapping[str, JsonValue]
"""The keys that an object may have, each with what it is as good as where it is absent."""
CHOICES = ("anyOf", "oneOf", "allOf")  # keywords that no provider takes at the root of a tool's schema
_KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
_QUICK = msgspec.json.Decoder(dict[str, msgspec.Raw])


def shape(keys: str, **defaults: JsonValue) -> dict[str, JsonValue]:
    """Return the shape of an object with some keys; absent ones are null where nothing else is said."""
    return dict.fromkeys(keys.split()) | defaults


def inside(value: JsonValue, *keys: str) -> JsonValue:
    """Return what stands under some keys, each in the object under the one before; None if it is absent."""
    for key in keys:
        value = value.get(key) if type(value) is dict else None
    return value


def why_no_object(text: JsonValue, *, strict: bool = True) -> str:
    """Return why `text` is not a JSON object written as a string, or an empty string if it is one."""
    if type(text) is not str:
        return "not a string"
    try:
        value = parse(text.encode()) if strict else _QUICK.decode(text)
    except (JsonRefused, msgspec.DecodeError, RecursionError):
        return "not JSON"
    return "" if type(value) is dict else "not an object"


def excerpt(value: JsonValue) -> str:
    """Return a value as a fault's message shows it: one short line, whatever it is."""
    if isinstance(value, dict | list):
        return kind_of(value)
    text = ascii(value if type(value) is not str else value[:61])
    return text if len(text) <= 60 else text[:59] + "…"


def kind_of(value: JsonValue) -> str:
    """Return the JSON name of a value's type."""
    return _KINDS.get(type(value), "a number")
