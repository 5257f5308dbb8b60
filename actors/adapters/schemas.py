"""What every provider demands of a tool's JSON Schema: an object at the root, with properties; arrays with items.

A choice at the root is refused by most (OAC-11); its arms are left out, and named. A schema that needs nothing stays
the bytes it was. Arguments are validated against the tool's own schema before anything runs, so what is left out
here costs guidance and no safety.
"""

from functools import lru_cache

from actors.core.jsonio import Json, JsonValue, dump, parse

_CHOICES = ("anyOf", "oneOf", "allOf", "not", "enum", "const")
_MAPS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS = frozenset({"items", "additionalProperties", "not", "contains", "if", "then", "else"})


@lru_cache(maxsize=1024)  # a session declares the same tools in every request
def rooted(schema: Json) -> tuple[Json, tuple[str, ...]]:
    """Return a schema that any provider takes at its root, and the keywords that were left out of it."""
    value = parse(schema)
    if type(value) is not dict:
        return schema, ()
    lost = tuple(key for key in _CHOICES if key in value)
    root: dict[str, JsonValue] = {"type": "object", "properties": {}}
    root |= {key: _itemed(key, inner) for key, inner in value.items() if key not in lost}
    return (schema, ()) if root == value else (dump(root), lost)


def _itemed(key: str, value: JsonValue) -> JsonValue:
    """Return what stands under a keyword, every array in it with items."""
    if key in _MAPS and type(value) is dict:
        return {name: _with_items(inner) for name, inner in value.items()}
    if key in _LISTS and type(value) is list:
        return [_with_items(inner) for inner in value]
    return _with_items(value) if key in _SCHEMAS else value


def _with_items(schema: JsonValue) -> JsonValue:
    if type(schema) is not dict:
        return schema
    made = {key: _itemed(key, value) for key, value in schema.items()}
    kinds = schema.get("type")
    is_array = kinds == "array" or (type(kinds) is list and "array" in kinds)
    return {**made, "items": {}} if is_array and "items" not in made else made
