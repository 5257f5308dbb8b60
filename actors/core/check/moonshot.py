"""What Moonshot does not take in a tool's JSON Schema (KIM-07)."""

from collections.abc import Iterator

from actors.core.check.words import excerpt
from actors.core.jsonio import JsonValue

_TYPED = frozenset({"type", "anyOf", "$ref"})
_NAMED_SCHEMAS = {"properties", "patternProperties", "dependentSchemas", "$defs"}
_LISTED_SCHEMAS = {"anyOf", "oneOf", "allOf", "prefixItems"}
_ONE_SCHEMA = {"items", "contains", "not", "if", "then", "else"}


def schema_faults(schema: JsonValue, path: str, *, is_root: bool = True) -> Iterator[str]:
    """Yield what is not taken, each with its place."""
    if type(schema) is not dict:
        yield f"{path}: a schema is an object"
        return
    if not is_root and schema.keys().isdisjoint(_TYPED):
        yield f"{path}: a schema without a type"
    if "type" in schema and not schema.keys().isdisjoint(_TYPED - {"type"}):
        yield f"{path}: a type beside a choice or a reference"
    reference = schema.get("$ref")
    if type(reference) is str and not reference.startswith("#/$defs/"):
        yield f"{path}.$ref: a reference outside #/$defs/"
    required, members = schema.get("required"), schema.get("properties")
    known = members if type(members) is dict else {}
    for name in required if type(required) is list else ():
        if type(name) is not str or name not in known:
            yield f"{path}.required: {excerpt(name)} is not among the properties"
    for place, inner in _inside(schema):
        yield from schema_faults(inner, f"{path}.{place}", is_root=False)


def _inside(schema: dict[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """Yield the schemas directly inside one, each with its place."""
    for key, value in schema.items():
        if key in _NAMED_SCHEMAS and type(value) is dict:
            yield from ((f"{key}.{name}", item) for name, item in value.items())
        elif key in _LISTED_SCHEMAS and type(value) is list:
            yield from ((f"{key}[{at}]", item) for at, item in enumerate(value))
        elif key in _ONE_SCHEMA or (key == "additionalProperties" and type(value) is not bool):
            yield key, value
