"""Adapt a tool's JSON Schema to a host, and rename the property keys that the host rejects.

In:  a schema of any origin, and the host's rules for keys and patterns.
Out: the schema to declare, the keywords that lost part of their meaning, and the tool's own key for each new key.

Where a schema is expected, any other value is replaced with a schema that accepts anything (OAC-11). Patterns for which
the host cannot compile a grammar are dropped (CMP-03). Keys that the host rejects are renamed, along with all
references to them (ANT-57). Arguments are validated against the tool's own schema before it runs, so this weakens the
model's guidance but not the validation.

For Moonshot, every schema gets a type, and every reference points into `$defs`. The rewrite never makes a schema
stricter. If the values imply a type, it is written out, and a schema that accepts anything becomes a choice of all
types (KIM-07). Constraints that Moonshot does not accept are dropped.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from actors.adapters.schemas.rooted import all_schemas, as_list, flatten_root
from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.models.rules import Patterns
from actors.core.schemas.json_schema import LISTS, MAPS, Policy, Schema, SchemaRewriter, is_schema
from actors.core.schemas.property_keys import property_key

_ESCAPES = re.compile(r"\\.", re.DOTALL)
_SPECIAL_GROUP = re.compile(r"\(\?(?!:)")
"""The start of a lookaround, a named group or a flag in a regular expression."""
_KEYED = ("properties", "dependentSchemas", "dependentRequired", "dependencies")
_KEY_LISTS = ("dependentRequired", "dependencies")
_NAMING = {"propertyNames": ("enum", "const"), "discriminator": ("propertyName",)}
"""Keywords whose values mention property keys, with the fields that mention them."""
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


class HostSchema(NamedTuple):
    """A schema that a host accepts.

    `losses` are the keywords that lost part of their meaning. `keys` maps each new key to the tool's own key.
    """

    schema: Json
    losses: tuple[str, ...]
    keys: Mapping[str, str]


@lru_cache(maxsize=1024)  # sessions declare the same tools in every request
def host_schema(schema: Json, patterns: Patterns = "any", key_pattern: str | None = None) -> HostSchema:
    """Rewrite a schema so that a host accepts it. An acceptable schema is returned unchanged.

    Args:
        schema: The tool's own schema, encoded.
        patterns: Which patterns the host accepts (`RequestRules.patterns`).
        key_pattern: A pattern that every property key must match in full. `None` accepts all keys.
    """
    given = parse(schema)
    if type(given) is not dict:
        return HostSchema(schema, (), {})
    pruning = _SchemaPruner(patterns)
    pruned = pruning.schema(given)
    rooted, lost = flatten_root(dump(pruned) if pruning.lost else schema)
    losses = tuple(dict.fromkeys((*pruning.losses, *lost)))
    root = parse(rooted)
    keys: Mapping[str, str] = _new_keys(root, key_pattern) if key_pattern is not None else {}
    if not keys or type(root) is not dict:
        return HostSchema(rooted, losses, {})
    renamed = _KeyRenamer({own: made for made, own in keys.items()}).schema(root)
    return HostSchema(dump(renamed), losses, keys)


class _SchemaPruner(SchemaRewriter):
    """Drops keywords whose values have a wrong type, and patterns that the host cannot compile."""

    def __init__(self, patterns: Patterns) -> None:
        super().__init__()
        self._patterns = patterns

    def policy(self, keyword: str, value: JsonValue) -> Policy:
        is_lost = (
            (keyword == "pattern" and not self._accepts_pattern(value))
            or (keyword in MAPS and type(value) is not dict)
            or (keyword in LISTS and type(value) is not list)
        )
        return "lose" if is_lost else "keep"

    def value(self, keyword: str, value: JsonValue, given: Schema) -> JsonValue:
        if keyword == "patternProperties" and type(value) is dict:
            kept = {pattern: inner for pattern, inner in value.items() if self._accepts_pattern(pattern)}
            self.lost += [keyword] if len(kept) < len(value) else []
            value = kept
        return super().value(keyword, value, given)

    def entry(self, keyword: str, value: JsonValue) -> JsonValue:
        if is_schema(value):
            return super().entry(keyword, value)
        self.lost.append(keyword)
        return {}

    def _accepts_pattern(self, pattern: JsonValue) -> bool:
        if self._patterns == "any" or type(pattern) is not str:
            return True
        return self._patterns == "plain" and not _SPECIAL_GROUP.search(_ESCAPES.sub("", pattern))


def _new_keys(schema: JsonValue, pattern: str) -> Mapping[str, str]:
    """Choose a new key for each key that does not match the pattern. Return a mapping from new keys to the schema's own
    keys.
    """
    owned = dict.fromkeys(key for node in all_schemas(schema) for key in _property_keys(node))
    keys: dict[str, str] = {}
    for own in owned:
        if re.fullmatch(pattern, own):
            continue
        probe = 0
        while (made := property_key(own, pattern, probe)) in owned or made in keys:
            probe += 1
        keys[made] = own
    return keys


def _property_keys(node: Schema) -> Iterator[str]:
    """Yield the property keys that a schema mentions, from all of its keywords."""
    for keyword in _KEYED:
        if type(value := node.get(keyword)) is dict:
            yield from value
    listed = [node.get("required")]
    for keyword in _KEY_LISTS:
        if type(value := node.get(keyword)) is dict:
            listed += value.values()
    yield from (key for keys in listed if type(keys) is list for key in keys if type(key) is str)


class _KeyRenamer(SchemaRewriter):
    """Renames property keys in all places of a schema that mention them."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names

    def value(self, keyword: str, value: JsonValue, given: Schema) -> JsonValue:
        if keyword == "required":
            return self._rename_keys(value)
        if keyword == "$ref" and type(value) is str:
            return self._rename_reference(value)
        if keyword in _NAMING and type(value) is dict:
            named = _NAMING[keyword]
            return {key: self._rename_keys(item) if key in named else item for key, item in value.items()}
        value = super().value(keyword, value, given)
        if keyword not in _KEYED or type(value) is not dict:
            return value
        return {self._names.get(key, key): self._rename_entry(item) for key, item in value.items()}

    def _rename_entry(self, value: JsonValue) -> JsonValue:
        """Return an entry of a keyword such as `dependentRequired`. If the entry is a list of keys, rename the keys."""
        return self._rename_keys(value) if type(value) is list else value

    def _rename_keys(self, value: JsonValue) -> JsonValue:
        if type(value) is list:
            return [self._rename_keys(item) for item in value]
        return self._names.get(value, value) if type(value) is str else value

    def _rename_reference(self, reference: str) -> str:
        """Return a reference with the new names of the property keys in its path."""
        from urllib.parse import quote, unquote  # imported lazily, as few schemas refer to themselves

        tokens = reference.split("/")
        for at in range(1, len(tokens)):
            key = unquote(tokens[at]).replace("~1", "/").replace("~0", "~")
            if tokens[at - 1] in _KEYED and key in self._names:
                tokens[at] = quote(self._names[key].replace("~", "~0"))
        return "/".join(tokens)


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
