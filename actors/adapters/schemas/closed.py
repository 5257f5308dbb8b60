"""Close every object of an answer's schema, as providers with schema-guided decoding require.

`actors.adapters.outputs` and the encoders use it. Keywords that the providers reject are dropped: bounds, defaults,
and `oneOf` becomes `anyOf`. The answer is validated against the complete schema, so this weakens the guidance, not
the validation. A schema is rejected if closing would change its meaning: objects with any key, values of any type,
tuples.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import ClassVar, NamedTuple

from actors.adapters.schemas.rooted import as_list, nodes
from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.schemas.json_schema import Policy, Schema, SchemaRefused, SchemaRewriter

_UNSAID = frozenset(
    """minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern minItems maxItems
    uniqueItems minProperties maxProperties default examples title contains minContains maxContains discriminator
    $schema""".split()  # noqa: SIM905  as a list it is a page
)
_UNSAYABLE = frozenset(
    """allOf not if then else patternProperties propertyNames dependentSchemas dependentRequired prefixItems
    unevaluatedProperties unevaluatedItems definitions""".split()  # noqa: SIM905  likewise
)
_FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())  # noqa: SIM905  likewise
_PLAIN = (str, int, float, bool, type(None))
_LONGEST = 32  # references in a row


class Measures(NamedTuple):
    """The size of a closed schema.

    Args:
        is_recursive: Whether it refers to itself.
        depth: Its levels, references followed.
        objects: Nesting levels of objects.
        optional: Properties that are not required.
        unions: Properties with alternatives.
        hollow: Objects without properties, below the root.
        alike: Alternatives of objects whose first key is the same and does not distinguish them.
        untyped: Schemas without a type, alternatives or a reference.

    properties, values: Their number.

    characters: Of the names of properties and definitions, and of string values.
    """

    is_recursive: int
    depth: int
    objects: int
    optional: int
    unions: int
    hollow: int
    alike: int
    untyped: int
    properties: int
    values: int
    characters: int


@lru_cache(maxsize=256)
def close_schema(schema: Json, *, demands: bool = False) -> Json | None:
    """Return a schema in which every object is closed; None if that would change its meaning.

    Args:
        demands: Make every property required, which is harmless for nullable properties and those with a default.
    """
    root = parse(schema)
    try:
        return dump(_Closing(root, demands=demands).schema(root)) if type(root) is dict else None
    except SchemaRefused:
        return None


class _Closing(SchemaRewriter):
    """Closes every object of a schema."""

    policies: ClassVar[Mapping[str, Policy]] = {
        **dict.fromkeys(_UNSAID, "drop"),
        **dict.fromkeys(_UNSAYABLE, "refuse"),
        **dict.fromkeys(("additionalProperties", "oneOf"), "drop"),
    }

    def __init__(self, root: Schema, *, demands: bool) -> None:
        super().__init__()
        self._root = root
        self._demands = demands

    def schema(self, given: Schema) -> Schema:
        if "$ref" in given:
            return self._reference(given)
        if not given.keys() & {"type", "anyOf", "oneOf", "enum", "const"}:
            raise SchemaRefused
        if not all(type(value) in _PLAIN for value in values(given)):
            raise SchemaRefused
        return super().schema({**given, "anyOf": given["oneOf"]} if "oneOf" in given else given)

    def _reference(self, given: Schema) -> Schema:
        """Return a reference, with its definitions and no other keywords."""
        if _UNSAYABLE & given.keys() or definition_of(given["$ref"], self._root) is None:
            raise SchemaRefused
        definitions = {"$defs": self.value("$defs", given["$defs"], given)} if "$defs" in given else {}
        return {"$ref": given["$ref"], **definitions}

    def policy(self, keyword: str, value: JsonValue) -> Policy:
        if keyword == "format":
            return "keep" if type(value) is str and value in _FORMATS else "drop"
        return super().policy(keyword, value)

    def entry(self, keyword: str, value: JsonValue) -> JsonValue:
        if type(value) is not dict:
            raise SchemaRefused(keyword)
        return self.schema(value)

    def finish(self, made: Schema, given: Schema) -> Schema:
        if "object" in _kinds(given):
            self._close(given, made)
        if "array" in _kinds(given) and "items" not in given:
            raise SchemaRefused
        return made

    def _close(self, schema: Schema, made: Schema) -> None:
        properties = schema.get("properties")
        is_open = schema.get("additionalProperties", not properties) is not False
        if type(properties) is not dict or is_open:
            raise SchemaRefused
        made["additionalProperties"] = False
        if not self._demands:
            return
        left_out = [name for name in properties if name not in as_list(schema.get("required"))]
        if not all(_may_be_silent(properties[name], self._root) for name in left_out):
            raise SchemaRefused
        made["required"] = list(properties)


def _may_be_silent(schema: JsonValue, root: Schema) -> bool:
    """Return True if a property may be present without a value: null, or its default."""
    if type(schema) is not dict:
        return False
    arms = [*as_list(schema.get("anyOf")), *as_list(schema.get("oneOf"))]
    is_null = "null" in _kinds(schema) or None in values(schema)
    return "default" in schema or is_null or any(_may_be_silent(arm, root) for arm in arms)


def _kinds(schema: Mapping[str, JsonValue]) -> list[JsonValue]:
    return [schema.get("type"), *as_list(schema.get("type"))]


def values(schema: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return the values of an enumeration or a constant."""
    return [schema["const"]] if "const" in schema else as_list(schema.get("enum"))


def definition_of(reference: JsonValue, root: Schema) -> Schema | None:
    """Return the definition that a reference names; None for any other reference."""
    defined = root.get("$defs")
    name = str(reference).removeprefix("#/$defs/")
    found = defined.get(name) if type(defined) is dict else None
    return found if type(found) is dict and reference == f"#/$defs/{name}" else None


# ---- size


@lru_cache(maxsize=256)
def measure(schema: Json) -> Measures:
    """Return the size of a closed schema."""
    root = parse(schema)
    assert type(root) is dict
    inside = nodes(root)
    names = [name for node in inside for name in _properties(node)]
    said = [value for node in inside for value in values(node)]
    defined = root.get("$defs")
    texts = [*names, *said, *(defined if type(defined) is dict else ())]
    members = [inner for node in inside for inner in _properties(node).values()]
    return Measures(
        *_depths(root, root, ()),
        sum(name not in as_list(node.get("required")) for node in inside for name in _properties(node)),
        sum(
            type(inner) is dict and ("anyOf" in inner or type(inner.get("type")) is list) for inner in members
        ),
        sum("object" in _kinds(node) and not _properties(node) for node in inside if node is not root),
        sum(_is_alike(node, root) for node in inside),
        sum(not node.keys() & {"type", "anyOf", "$ref"} for node in inside),
        len(names),
        len(said),
        sum(len(text) for text in texts if type(text) is str),
    )


def _properties(node: Schema) -> Schema:
    found = node.get("properties")
    return found if type(found) is dict else {}


def _inner(node: Schema) -> Iterator[JsonValue]:
    yield from _properties(node).values()
    yield from as_list(node.get("anyOf"))
    if "items" in node:
        yield node["items"]


def _depths(schema: JsonValue, root: Schema, followed: tuple[JsonValue, ...]) -> tuple[int, int, int]:
    """Return whether a schema refers to itself, its levels, and its levels of objects."""
    if type(schema) is not dict:
        return 0, 0, 0
    if "$ref" in schema:
        reference = schema["$ref"]
        if reference in followed or len(followed) > _LONGEST:
            return 1, 0, 0
        return _depths(definition_of(reference, root), root, (*followed, reference))
    inside = [(0, 0, 0), *(_depths(inner, root, followed) for inner in _inner(schema))]
    loops, levels, objects = map(max, zip(*inside, strict=True))
    return loops, 1 + levels, objects + ("properties" in schema)


def _is_alike(node: Schema, root: Schema) -> bool:
    """Return True if two objects of a choice begin with the same key and its values do not distinguish them."""
    first: dict[str, list[list[JsonValue]]] = {}
    for arm in as_list(node.get("anyOf")):
        if type(arm) is not dict:
            continue
        properties = _properties(definition_of(arm["$ref"], root) or {} if "$ref" in arm else arm)
        for key, told in list(properties.items())[:1]:
            first.setdefault(key, []).append(values(told) if type(told) is dict else [])
    return any(len(told) > 1 and not _are_apart(told) for told in first.values())


def _are_apart(told: list[list[JsonValue]]) -> bool:
    every = [dump(value) for each in told for value in each]
    return all(told) and len(set(every)) == len(every)
