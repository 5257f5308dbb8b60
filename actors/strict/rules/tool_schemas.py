"""Find faults inside a tool's schema that make hosts refuse the complete request.

Anthropic checks the keys of properties only at the root of a schema; deeper keys may be any string. The same applies on
Bedrock. llama.cpp builds a grammar from the complete schema.
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
    """Return True if a property at the root of a schema has a key that Anthropic refuses."""
    properties = schema.get("properties")
    return is_object(properties) and not all(map(_KEY.fullmatch, properties))


def first_invalid_subschema(schema: Json) -> str | None:
    """Return the Python repr of the first subschema that is neither an object nor a boolean; None if there is none."""
    for inner in _subschemas(schema):
        if is_object(inner):
            if (found := first_invalid_subschema(inner)) is not None:
                return found
        elif not isinstance(inner, bool):
            return repr(inner)
    return None


def has_lookaround(schema: Json) -> bool:
    """Return True if a schema contains a regular expression with lookaround. No grammar can be built for it."""
    if not is_object(schema):
        return False
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and _AROUND.search(pattern):
        return True
    return any(map(has_lookaround, _subschemas(schema)))


def _subschemas(schema: dict[str, Json]) -> Iterator[Json]:
    for keyword, value in schema.items():
        if keyword in _EACH_VALUE and is_object(value):
            yield from value.values()
        elif is_array(value) and (keyword in _EACH_ITEM or keyword == "items"):
            yield from value
        elif keyword in _ITSELF:
            yield value
