"""Close every object in an answer schema, as providers with schema-guided decoding require.

`actors.adapters.outputs` and the encoders use this module. A closed object allows only the keys that the schema lists.
Keywords that the providers reject are dropped (bounds, defaults), and `oneOf` becomes `anyOf`. The answer is validated
against the complete schema, so this weakens the model's guidance but not the validation. A schema is rejected if
closing it would change its meaning, for example if it allows objects with arbitrary keys, values of any type, or
tuples.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import ClassVar, NamedTuple

from actors.adapters.schemas.rooted import all_schemas, as_list
from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.schemas.json_schema import Policy, Schema, SchemaRefused, SchemaRewriter

_DROPPED = frozenset(
    """minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern minItems maxItems
    uniqueItems minProperties maxProperties default examples title contains minContains maxContains discriminator
    $schema""".split()  # noqa: SIM905  a list would fill a page
)
_INEXPRESSIBLE = frozenset(
    """allOf not if then else patternProperties propertyNames dependentSchemas dependentRequired prefixItems
    unevaluatedProperties unevaluatedItems definitions""".split()  # noqa: SIM905  a list would fill a page
)
_FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())  # noqa: SIM905  more readable
_PLAIN = (str, int, float, bool, type(None))
_MAX_REFERENCES = 32  # maximum length of a chain of references that is followed


class SchemaSize(NamedTuple):
    """The size of a closed schema, for comparison with a provider's limits.

    Args:
        is_recursive: Whether the schema refers to itself.
        depth: The number of nested schema levels, with references followed.
        objects: The number of nested object levels.
        optional: The number of properties that are not required.
        unions: The number of properties that have alternatives.
        empty_objects: The number of objects without properties, except the root.
        indistinct_choices: The number of choices between objects that begin with the same key and are not distinguished
            by the key's values.
        untyped_schemas: The number of schemas without a type, alternatives or a reference.
        properties: The number of properties.
        values: The number of enumerated values.
        characters: The number of characters in the names of properties and definitions, and in enumerated strings.
    """

    is_recursive: int
    depth: int
    objects: int
    optional: int
    unions: int
    empty_objects: int
    indistinct_choices: int
    untyped_schemas: int
    properties: int
    values: int
    characters: int


@lru_cache(maxsize=256)
def close_schema(schema: Json, *, require_all: bool = False) -> Json | None:
    """Return a schema in which every object is closed, or None if closing would change its meaning.

    Args:
        schema: The answer's schema, encoded.
        require_all: Make every property required. For properties that may be null or have a default, this does not
            change the meaning. If there is any other optional property, the result is None.
    """
    root = parse(schema)
    try:
        return dump(_SchemaCloser(root, require_all=require_all).schema(root)) if type(root) is dict else None
    except SchemaRefused:
        return None


class _SchemaCloser(SchemaRewriter):
    """Closes every object in a schema."""

    policies: ClassVar[Mapping[str, Policy]] = {
        **dict.fromkeys(_DROPPED, "drop"),
        **dict.fromkeys(_INEXPRESSIBLE, "refuse"),
        **dict.fromkeys(("additionalProperties", "oneOf"), "drop"),
    }

    def __init__(self, root: Schema, *, require_all: bool) -> None:
        super().__init__()
        self._root = root
        self._require_all = require_all

    def schema(self, given: Schema) -> Schema:
        if "$ref" in given:
            return self._close_reference(given)
        if not given.keys() & {"type", "anyOf", "oneOf", "enum", "const"}:
            raise SchemaRefused
        if not all(type(value) in _PLAIN for value in allowed_values(given)):
            raise SchemaRefused
        return super().schema({**given, "anyOf": given["oneOf"]} if "oneOf" in given else given)

    def _close_reference(self, schema: Schema) -> Schema:
        """Return a reference with its definitions. Its other keywords are dropped."""
        if _INEXPRESSIBLE & schema.keys() or find_definition(schema["$ref"], self._root) is None:
            raise SchemaRefused
        definitions = {"$defs": self.value("$defs", schema["$defs"], schema)} if "$defs" in schema else {}
        return {"$ref": schema["$ref"], **definitions}

    def policy(self, keyword: str, value: JsonValue) -> Policy:
        if keyword == "format":
            return "keep" if type(value) is str and value in _FORMATS else "drop"
        return super().policy(keyword, value)

    def entry(self, keyword: str, value: JsonValue) -> JsonValue:
        if type(value) is not dict:
            raise SchemaRefused(keyword)
        return self.schema(value)

    def finish(self, made: Schema, given: Schema) -> Schema:
        if "object" in _types_of(given):
            self._close_object(given, made)
        if "array" in _types_of(given) and "items" not in given:
            raise SchemaRefused
        return made

    def _close_object(self, schema: Schema, closed: Schema) -> None:
        properties = schema.get("properties")
        is_open = schema.get("additionalProperties", not properties) is not False
        if type(properties) is not dict or is_open:
            raise SchemaRefused
        closed["additionalProperties"] = False
        if not self._require_all:
            return
        left_out = [name for name in properties if name not in as_list(schema.get("required"))]
        if not all(_accepts_no_value(properties[name], self._root) for name in left_out):
            raise SchemaRefused
        closed["required"] = list(properties)


def _accepts_no_value(schema: JsonValue, root: Schema) -> bool:
    """Return True if a property accepts null or has a default, so that requiring it does not change the meaning."""
    if type(schema) is not dict:
        return False
    arms = [*as_list(schema.get("anyOf")), *as_list(schema.get("oneOf"))]
    is_null = "null" in _types_of(schema) or None in allowed_values(schema)
    return "default" in schema or is_null or any(_accepts_no_value(arm, root) for arm in arms)


def _types_of(schema: Mapping[str, JsonValue]) -> list[JsonValue]:
    return [schema.get("type"), *as_list(schema.get("type"))]


def allowed_values(schema: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return the values of a schema's enumeration or constant."""
    return [schema["const"]] if "const" in schema else as_list(schema.get("enum"))


def find_definition(reference: JsonValue, root: Schema) -> Schema | None:
    """Return the definition to which a reference into `$defs` points, or None for any other reference."""
    defined = root.get("$defs")
    name = str(reference).removeprefix("#/$defs/")
    found = defined.get(name) if type(defined) is dict else None
    return found if type(found) is dict and reference == f"#/$defs/{name}" else None


# ---- size


@lru_cache(maxsize=256)
def measure_schema(schema: Json) -> SchemaSize:
    """Return the size of a closed schema, for comparison with a provider's limits."""
    root = parse(schema)
    assert type(root) is dict
    inside = all_schemas(root)
    names = [name for node in inside for name in _properties(node)]
    said = [value for node in inside for value in allowed_values(node)]
    defined = root.get("$defs")
    texts = [*names, *said, *(defined if type(defined) is dict else ())]
    members = [inner for node in inside for inner in _properties(node).values()]
    return SchemaSize(
        *_schema_depths(root, root, ()),
        sum(name not in as_list(node.get("required")) for node in inside for name in _properties(node)),
        sum(
            type(inner) is dict and ("anyOf" in inner or type(inner.get("type")) is list) for inner in members
        ),
        sum("object" in _types_of(node) and not _properties(node) for node in inside if node is not root),
        sum(_has_indistinct_objects(node, root) for node in inside),
        sum(not node.keys() & {"type", "anyOf", "$ref"} for node in inside),
        len(names),
        len(said),
        sum(len(text) for text in texts if type(text) is str),
    )


def _properties(node: Schema) -> Schema:
    found = node.get("properties")
    return found if type(found) is dict else {}


def _inner_schemas(node: Schema) -> Iterator[JsonValue]:
    yield from _properties(node).values()
    yield from as_list(node.get("anyOf"))
    if "items" in node:
        yield node["items"]


def _schema_depths(schema: JsonValue, root: Schema, followed: tuple[JsonValue, ...]) -> tuple[int, int, int]:
    """Return three numbers: 1 if a schema refers to itself (otherwise 0), its nested schema levels, and its nested
    object levels. `followed` contains the references that lead to the schema.
    """
    if type(schema) is not dict:
        return 0, 0, 0
    if "$ref" in schema:
        reference = schema["$ref"]
        if reference in followed or len(followed) > _MAX_REFERENCES:
            return 1, 0, 0
        return _schema_depths(find_definition(reference, root), root, (*followed, reference))
    inside = [(0, 0, 0), *(_schema_depths(inner, root, followed) for inner in _inner_schemas(schema))]
    loops, levels, objects = map(max, zip(*inside, strict=True))
    return loops, 1 + levels, objects + ("properties" in schema)


def _has_indistinct_objects(node: Schema, root: Schema) -> bool:
    """Return True if two objects in a choice begin with the same key and are not distinguished by the key's values."""
    first: dict[str, list[list[JsonValue]]] = {}
    for arm in as_list(node.get("anyOf")):
        if type(arm) is not dict:
            continue
        properties = _properties(find_definition(arm["$ref"], root) or {} if "$ref" in arm else arm)
        for key, told in list(properties.items())[:1]:
            first.setdefault(key, []).append(allowed_values(told) if type(told) is dict else [])
    return any(len(told) > 1 and not _are_distinct(told) for told in first.values())


def _are_distinct(values_per_object: list[list[JsonValue]]) -> bool:
    every = [dump(value) for each in values_per_object for value in each]
    return all(values_per_object) and len(set(every)) == len(every)
