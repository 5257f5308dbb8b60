"""A tool's JSON Schema to the kind that Moonshot takes: every property typed, every reference into `$defs`.

What is left out of a schema is left to the model, so nothing here makes it say more than it said: a type that
the values show is written down, and a property that may be anything is said to be any of the types (KIM-07).
"""

from functools import lru_cache

from actors.core.jsonio import Json, JsonValue, dump, parse

_ELSEWHERE: dict[str, JsonValue] = {"type": "object", "description": "(see elsewhere)"}
_LOST = bytes(dump(_ELSEWHERE))[1:-1]
_ANY: list[JsonValue] = [
    {"type": kind} for kind in ("string", "number", "boolean", "object", "array", "null")
]
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_SHOWN = {"properties": "object", "additionalProperties": "object", "items": "array", "pattern": "string"}
_UNTYPED = ("type", "anyOf", "oneOf", "allOf", "$ref")
_NAMED = ("properties", "$defs")
_LISTED = ("anyOf", "oneOf", "allOf")


@lru_cache(maxsize=1024)  # a session declares the same tools in every request
def moonshot(schema: Json) -> tuple[Json, bool]:
    """Return a schema as Moonshot takes it, and whether it says all that it said.

    One that is already of the kind is only written anew. A reference that leads elsewhere is lost.
    """
    value = parse(schema)
    if type(value) is not dict:
        return schema, True
    made = dump(_object(value))
    return made, made.find(_LOST) < 0


def _object(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    made: dict[str, JsonValue] = {}
    for key, value in schema.items():
        key = "$defs" if key == "definitions" else key
        if key in _NAMED and type(value) is dict:
            made[key] = {name: _typed(item) for name, item in value.items()}
        elif key in _LISTED and type(value) is list:
            made[key] = [_typed(_arm(item, schema)) for item in value]
        elif key == "items" and type(value) is list:  # a tuple: each of its kinds may stand anywhere
            made[key] = {"anyOf": [_typed(item) for item in value]} if value else {"anyOf": _ANY}
        elif key == "items" or (key == "additionalProperties" and type(value) is dict):
            made[key] = _typed(value)
        elif key == "$ref" and type(value) is str:
            led = value.replace("#/definitions/", "#/$defs/", 1)
            made |= {key: led} if led.startswith("#/$defs/") else _ELSEWHERE
        else:
            made[key] = value
    if "$ref" in made:
        return {"$ref": made["$ref"]}
    if not made.keys().isdisjoint(_LISTED):
        made.pop("type", None)  # it stands in the arms
    return made


def _arm(arm: JsonValue, parent: dict[str, JsonValue]) -> JsonValue:
    """Return one arm of a choice with the type that stood beside the choice."""
    if type(arm) is dict and "type" in parent and arm.keys().isdisjoint(_UNTYPED):
        return {"type": parent["type"], **arm}
    return arm


def _typed(schema: JsonValue) -> JsonValue:
    """Return the schema of a value with its type."""
    if type(schema) is not dict:
        return {"anyOf": _ANY} if schema is True else {"type": "null"}  # `false`: nothing can stand there
    made = _object(schema)
    if made.keys().isdisjoint(_UNTYPED):
        return {**made, **_type_of(made)}
    return made


def _type_of(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the type that a schema without one shows."""
    for key, kind in _SHOWN.items():
        if key in schema:
            return {"type": kind}
    values = (
        schema["enum"] if type(schema.get("enum")) is list else [schema["const"]] if "const" in schema else []
    )
    assert isinstance(values, list)
    kinds = list(dict.fromkeys(_TYPES.get(type(value), "") for value in values))
    if len(kinds) == 1 and kinds[0]:
        return {"type": kinds[0]}
    return {"anyOf": _ANY}
