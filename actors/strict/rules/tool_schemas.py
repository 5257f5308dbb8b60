"""Faults inside a tool's schema for which hosts refuse a request, whatever it asks.

The keys of properties are checked at the root alone (Anthropic, and Bedrock before it); deeper ones may be any text.
Grammars are made of the whole schema (llama.cpp).
"""

import re
from collections.abc import Iterator

from actors.strict.rules.base import Json, is_array, is_object

_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_EACH_VALUE = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_EACH_ITEM = ("anyOf", "allOf", "oneOf", "prefixItems")
_ITSELF = ("additionalProperties", "items", "not", "if", "then", "else", "contains", "propertyNames")
_AROUND = re.compile(r"(?<!\\)(?:\\\\)*\(\?(?:[=!]|<)")


def has_odd_key(schema: Json) -> bool:
    """Say whether a property at the root has a key that Anthropic refuses."""
    properties = schema.get("properties")
    return is_object(properties) and not all(map(_KEY.fullmatch, properties))


def stray_value(schema: Json) -> str | None:
    """Return the first value that is no schema where one must stand, as Python writes it; None if there is none."""
    for inner in _within(schema):
        if is_object(inner):
            if (found := stray_value(inner)) is not None:
                return found
        elif not isinstance(inner, bool):
            return repr(inner)
    return None


def has_lookaround(schema: Json) -> bool:
    """Say whether a pattern in a schema looks around, for which there is no grammar."""
    if not is_object(schema):
        return False
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and _AROUND.search(pattern):
        return True
    return any(map(has_lookaround, _within(schema)))


def _within(schema: dict[str, Json]) -> Iterator[Json]:
    for keyword, value in schema.items():
        if keyword in _EACH_VALUE and is_object(value):
            yield from value.values()
        elif is_array(value) and (keyword in _EACH_ITEM or keyword == "items"):
            yield from value
        elif keyword in _ITSELF:
            yield value
