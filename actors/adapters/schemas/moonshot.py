"""Rewrite a tool's JSON Schema so that Moonshot accepts it. Every schema gets a type, and every reference points into
`$defs`.

The rewrite never makes a schema stricter. If the values imply a type, it is written out, and a schema that accepts
anything becomes a choice of all types (KIM-07). Constraints that Moonshot does not accept are dropped.
"""

from collections.abc import Mapping
from functools import lru_cache

from actors.adapters.schemas.rooted import as_list
from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.schemas.json_schema import Schema, SchemaRewriter

_ANY: list[JsonValue] = [
    {"type": kind} for kind in ("string", "number", "boolean", "object", "array", "null")
]
_TYPES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
_IMPLIED_TYPES = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "items": "array",
    "pattern": "string",
}
_UNTYPED = ("type", "anyOf", "oneOf", "allOf", "$ref")
_CHOICES = ("anyOf", "oneOf", "allOf")


@lru_cache(maxsize=1024)  # sessions declare the same tools in every request
def moonshot_schema(schema: Json) -> tuple[Json, tuple[str, ...]]:
    """Return a tool's schema in a form that Moonshot accepts, and the keywords that lost part of their meaning."""
    given, typing = parse(schema), _MoonshotRewriter()
    return (dump(typing.schema(given)), typing.losses) if type(given) is dict else (schema, ())


class _MoonshotRewriter(SchemaRewriter):
    """Adds a type to every schema inside the root. The root already has a type."""

    def finish(self, made: Schema, given: Schema) -> Schema:
        if "definitions" in made:
            made = _with_single_definitions(made)
        if "$ref" in made:
            return self._rewrite_reference(made["$ref"])
        return _with_required_properties(self._replace_choices(made))

    def _replace_choices(self, schema: Schema) -> Schema:
        """Return a schema whose only choice keyword is `anyOf`. Moonshot accepts no other choice in place of a type.

        `oneOf` and `allOf` become `anyOf`. If a schema has several choices, all but the first are lost.
        """
        choices = {key: arms for key in _CHOICES if (arms := schema.get(key))}
        kept = {key: value for key, value in schema.items() if key not in _CHOICES}
        if not choices:
            return kept
        chosen, *others = choices
        arms = choices[chosen]
        self.lost += [*others, *(["allOf"] if chosen == "allOf" and arms != as_list(arms)[:1] else [])]
        kept.pop("type", None)  # each alternative contains the type
        return {**kept, "anyOf": arms}

    def value(self, keyword: str, value: JsonValue, given: Schema) -> JsonValue:
        if keyword in _CHOICES:
            value = [_typed_alternative(item, given) for item in value] if type(value) is list else value
        elif keyword == "items" and type(value) is list:  # a tuple, whose items may then appear in any order
            return {"anyOf": [self.entry(keyword, item) for item in value] or _ANY}
        elif keyword == "additionalProperties" and type(value) is not dict:
            return value
        return super().value(keyword, value, given)

    def _rewrite_reference(self, reference: JsonValue) -> Schema:
        """Return a reference without other keywords.

        A reference into `definitions` is changed to point into `$defs`.
        """
        led = reference.replace("#/definitions/", "#/$defs/", 1) if type(reference) is str else ""
        if led.startswith("#/$defs/"):
            return {"$ref": led}
        self.lost.append("$ref")
        return {"type": "object", "description": "(see elsewhere)"}

    def entry(self, keyword: str, value: JsonValue) -> JsonValue:
        """Return the rewritten form of a nested schema, with its type."""
        if type(value) is not dict:
            # `false` accepts no value; null is the closest type.
            return {"anyOf": _ANY} if value is True else {"type": "null"}
        made = self.schema(value)
        return {**made, **_type_of(made)} if made.keys().isdisjoint(_UNTYPED) else made


def _with_single_definitions(schema: Schema) -> Schema:
    """Return a schema whose definitions are all under `$defs`. On a conflict, the keyword that comes first wins."""
    joined: Schema = {}
    for keyword, value in schema.items():
        key = "$defs" if keyword == "definitions" else keyword
        before = joined.get(key)
        joined[key] = {**value, **before} if type(value) is dict and type(before) is dict else value
    return joined


def _typed_alternative(alternative: JsonValue, parent: Schema) -> JsonValue:
    """Return an alternative of a choice. If the alternative has no type, it gets the type of the parent schema."""
    if type(alternative) is dict and "type" in parent and alternative.keys().isdisjoint(_UNTYPED):
        return {"type": parent["type"], **alternative}
    return alternative


def _with_required_properties(schema: Schema) -> Schema:
    """Return a schema in which every required name has a property. A missing property accepts any value."""
    required, members = schema.get("required"), schema.get("properties", {})
    if type(required) is not list or type(members) is not dict:
        return schema
    more: Schema = {name: {"anyOf": _ANY} for name in required if type(name) is str and name not in members}
    return {**schema, "properties": {**members, **more}} if more else schema


def _type_of(schema: Schema) -> Schema:
    """Return a schema that contains only the type that `schema` implies. If it implies no type, return a choice of all
    types.
    """
    for key, kind in _IMPLIED_TYPES.items():
        if key in schema:
            return {"type": kind}
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    kinds: set[str] = {_TYPES.get(type(value), "") for value in values} if type(values) is list else set()
    if len(kinds) == 1 and "" not in kinds:
        return {"type": kinds.pop()}
    return {"anyOf": _ANY}
