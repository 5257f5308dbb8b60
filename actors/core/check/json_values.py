"""Describe the JSON values of a request: the keys of an object, and how error messages name a value."""

from collections.abc import Mapping
from typing import TypeAlias

from actors.core.data.jsonio import JsonValue

Shape: TypeAlias = Mapping[str, JsonValue]
"""The keys that an object may have, with the default value of each key."""

KINDS: Mapping[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    type(None): "null",
}


def shape(keys: str, **defaults: JsonValue) -> dict[str, JsonValue]:
    """Return the keys of an object with their default values.

    `keys` contains names separated by spaces. A key that is not in `defaults` has the default null.
    """
    return dict.fromkeys(keys.split()) | defaults


def value_at(value: JsonValue, *keys: str) -> JsonValue:
    """Return the value at a path of object keys, or None if the path does not exist."""
    for key in keys:
        value = value.get(key) if type(value) is dict else None
    return value


def excerpt(value: JsonValue) -> str:
    """Return any JSON value as one line of at most 60 characters, for error messages."""
    if isinstance(value, dict | list):
        return kind_of(value)
    text = ascii(value if type(value) is not str else value[:61])
    return text if len(text) <= 60 else text[:59] + "…"


def kind_of(value: JsonValue) -> str:
    """Return the type of a JSON value with its article, such as `an object`."""
    return KINDS.get(type(value), "a number")
