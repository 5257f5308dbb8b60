"""Rewrite the root of a tool's JSON Schema as an object with properties, which every provider accepts.

Most providers reject a choice or a reference at the root (OAC-11). Both are replaced with one object. It describes the
properties of all alternatives, and requires the properties that every alternative requires. Constraints that one schema
cannot express, such as which properties go together, are dropped and reported. Arrays get `items` everywhere. An
acceptable schema is returned unchanged. Arguments are validated against the tool's own schema before a tool runs, so
this weakens the model's guidance but not the validation.
"""

from collections.abc import Sequence
from functools import lru_cache

from actors.core.data.jsonio import Json, JsonValue, dump, parse, resolve_pointer
from actors.core.schemas.json_schema import Schema, SchemaRewriter, map_subschemas

_ALTERNATIVES = ("anyOf", "oneOf")
# Constraints on the complete object, which providers do not accept at the root.
_OBJECT_CONSTRAINTS = ("not", "enum", "const")
_FLATTENED = frozenset({"$ref", "allOf", *_ALTERNATIVES, *_OBJECT_CONSTRAINTS})
_ANNOTATIONS = frozenset(
    "$schema $id $anchor $comment $defs definitions title description default examples".split()  # noqa: SIM905  more readable
)
"""Keywords that do not constrain the arguments."""
_TOGETHER = frozenset({"if", "then", "else"})
# The maximum number of alternatives. Every use of a reference counts, so this bounds the recursion as well.
_MAX_ALTERNATIVES = 200
_MAX_REFERENCES = 32  # maximum length of a chain of references that is followed


def all_schemas(schema: JsonValue) -> list[Schema]:
    """Return a schema and all schemas inside it, outer schemas first."""
    found: list[Schema] = []

    def collect(inner: JsonValue) -> JsonValue:
        if type(inner) is dict:
            found.append(inner)
            for key, value in inner.items():
                map_subschemas(key, value, collect)
        return inner

    collect(schema)
    return found


def as_list(value: JsonValue) -> list[JsonValue]:
    """Return `value` if it is a list; otherwise an empty list."""
    return value if type(value) is list else []


@lru_cache(maxsize=1024)  # sessions declare the same tools in every request
def flatten_root(schema: Json) -> tuple[Json, tuple[str, ...]]:
    """Return a schema whose root every provider accepts, and the keywords that lost part of their meaning."""
    value = parse(schema)
    if type(value) is not dict:
        return schema, ()
    rooting = _RootFlattener(value)
    made = rooting.schema(rooting.root)
    return (schema, ()) if made == value else (dump(made), rooting.losses)


class _RootFlattener(SchemaRewriter):
    """Flattens the root of a schema, adds `items` to arrays, and removes dangling references."""

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self._given = schema
        self._left = _MAX_ALTERNATIVES  # number of schemas that may still be flattened
        flat = self._flatten({**schema, "type": "object"}, ()) or {}
        self.root: Schema = {"type": "object", "properties": {}, **flat}

    def finish(self, made: Schema, given: Schema) -> Schema:
        reference = made.get("$ref")
        is_local = type(reference) is str and reference.startswith("#/")
        if is_local and resolve_pointer(self.root, str(reference)) is None:
            del made["$ref"]
            self.lost.append("$ref")
        kinds = given.get("type")
        is_array = kinds == "array" or "array" in as_list(kinds)
        return {**made, "items": {}} if is_array and "items" not in made else made

    def _flatten(self, schema: JsonValue, followed: tuple[str, ...]) -> Schema | None:
        """Return a schema without a reference or a choice at its root, or None if the schema accepts no objects.
        `followed` contains the references that lead to the schema.
        """
        self._left -= 1
        if schema is True:
            return {}
        if self._left < 0 or type(schema) is not dict:
            return None
        if schema.get("type", "object") not in ("object", ["object"]):
            return None
        made = {key: value for key, value in schema.items() if key not in _FLATTENED}
        self.lost += [keyword for keyword in _OBJECT_CONSTRAINTS if keyword in schema]
        if "$ref" in schema:
            made = self._merge_schemas(made, self._follow_reference(schema["$ref"], followed))
        for item in as_list(schema.get("allOf")):
            made = self._merge_schemas(made, self._flatten_constraint("allOf", item, followed))
        for keyword in _ALTERNATIVES:
            if keyword in schema:
                made = self._merge_schemas(
                    made, self._unite_alternatives(keyword, as_list(schema[keyword]), followed)
                )
        return made

    def _follow_reference(self, reference: JsonValue, followed: tuple[str, ...]) -> Schema:
        """Return the target of a reference at the root, or an empty schema if the reference is recursive."""
        if type(reference) is not str or reference in followed or len(followed) == _MAX_REFERENCES:
            self.lost.append("$ref")
            return {}
        return self._flatten_constraint(
            "$ref", resolve_pointer(self._given, reference), (*followed, reference)
        )

    def _flatten_constraint(self, keyword: str, constraint: JsonValue, followed: tuple[str, ...]) -> Schema:
        """Flatten a schema that applies in addition to the root: resolve its `$ref`, and unite its alternatives.

        A schema that accepts no objects is dropped, and `keyword` is reported as a loss.
        """
        flat = self._flatten(constraint, followed)
        if flat is None:
            self.lost.append(keyword)
        return flat or {}

    def _unite_alternatives(
        self, keyword: str, alternatives: Sequence[JsonValue], followed: tuple[str, ...]
    ) -> Schema:
        """Return one schema for several alternatives. If they differ, the keyword is reported as a loss."""
        arms = [flat for item in alternatives if (flat := self._flatten(item, followed)) is not None]
        is_whole = bool(arms) and self._left >= 0
        if not is_whole or any(arm != arms[0] for arm in arms):
            self.lost.append(keyword)
        return _shared_constraints(arms) if is_whole else {}

    def _merge_schemas(self, first: Schema, second: Schema) -> Schema:
        """Merge two schemas that both apply. If they conflict in a keyword, the first schema takes precedence."""
        made = dict(first)
        for key, value in second.items():
            before = made.get(key)
            if key in _ANNOTATIONS or (key in made and before == value):
                continue
            if key == "properties" and type(before) is dict and type(value) is dict:
                made[key] = self._merge_properties(before, value)
            elif key == "required" and type(before) is list and type(value) is list:
                made[key] = [*before, *(name for name in value if name not in before)]
            elif key in made or key in _TOGETHER:
                self.lost.append(key)
            else:
                made[key] = value
        return made

    def _merge_properties(self, first: Schema, second: Schema) -> Schema:
        made = dict(first)
        for name, value in second.items():
            before = made.get(name, True)
            if type(before) is dict and type(value) is dict:
                made[name] = self._merge_schemas(before, value)
            elif before is True:
                made[name] = value
        return made


def _shared_constraints(alternatives: Sequence[Schema]) -> Schema:
    """Return the constraints that all alternatives share, and the properties of all alternatives."""
    made = {
        key: value
        for key, value in alternatives[0].items()
        if all(key in arm and arm[key] == value for arm in alternatives) and key not in _ANNOTATIONS
    }
    variants: dict[str, list[JsonValue]] = {}
    for arm in alternatives:
        members = arm.get("properties")
        for name, value in members.items() if type(members) is dict else ():
            known = variants.setdefault(name, [])
            known += [value] if value not in known else []
    demands = [as_list(arm.get("required")) for arm in alternatives]
    shared = [name for name in demands[0] if all(name in others for others in demands)]
    if variants:
        made["properties"] = {
            name: found[0] if len(found) == 1 else {"anyOf": found} for name, found in variants.items()
        }
    return {**made, "required": shared} if shared else made
