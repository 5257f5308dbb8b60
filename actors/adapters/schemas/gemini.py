"""Rewrite a tool's JSON Schema to the subset that generateContent accepts as `parameters`.

The provider rejects keywords outside its subset (rulebook GEM-10), a schema without a type, an array without items, and
any keyword next to `anyOf`. Features that the subset cannot express are dropped and reported as losses.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

from actors.adapters.schemas.rooted import as_list
from actors.core.data.jsonio import Json, JsonValue, dump, parse, resolve_pointer
from actors.core.schemas.json_schema import Policy, Schema, SchemaRewriter

_KEPT: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("title", "description", "pattern"), (str,)),
    **dict.fromkeys(
        ("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength"), (int,)
    ),
    **dict.fromkeys(("minimum", "maximum"), (int, float)),
    "default": (str, int, float, bool, list, dict, type(None)),
}
"""Keywords that are kept unchanged, with the allowed types of their values."""
_ANNOTATIONS = frozenset({"$schema", "$id", "$comment", "$defs", "definitions", "examples"})
_FORMATS = {"STRING": ("enum", "date-time"), "NUMBER": ("float", "double"), "INTEGER": ("int32", "int64")}
_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"})
_READ = frozenset(
    "type properties required items enum const anyOf oneOf allOf $ref format nullable".split()  # noqa: SIM905  more readable
)
_MAX_DEPTH = 24  # maximum depth of a schema; deeper levels are not sent
_MAX_SCHEMAS = 4096  # maximum number of schemas in one tool, with references followed


@lru_cache(maxsize=1024)  # sessions declare the same tools in every request
def project_schema(schema: Json) -> tuple[Json | None, tuple[str, ...]]:
    """Return a tool's schema in the provider's subset, and the keywords that were dropped. The schema is None if the
    tool has no parameters.
    """
    whole = parse(schema)
    projection = _SubsetProjector(whole if type(whole) is dict else {})
    made = projection.project(projection.root)
    return (dump(made) if made.get("properties") else None), projection.losses


class _SubsetProjector(SchemaRewriter):
    """Rewrites one tool's schema to the subset. References and `allOf` are replaced with their contents."""

    policies: ClassVar[Mapping[str, Policy]] = {
        **dict.fromkeys(_KEPT, "keep"),
        **dict.fromkeys(_READ | _ANNOTATIONS, "drop"),
    }
    other = "lose"

    def __init__(self, root: Schema) -> None:
        super().__init__()
        self.root = root
        self._made = 0  # number of schemas rewritten so far
        self._depth = _MAX_DEPTH + 1  # levels until the depth limit
        self._followed: tuple[str, ...] = ()  # the references that lead to the current schema

    def project(self, given: JsonValue) -> Schema:
        """Return the rewritten form of a schema that is nested in the current schema.

        At the depth limit, the result is a schema for any object.
        """
        self._made += 1
        if type(given) is not dict:
            return {"type": "STRING"}
        if self._depth == 1 or self._made > _MAX_SCHEMAS:
            self.lost.append("depth")
            return {"type": "OBJECT"}
        around = self._followed
        self._depth -= 1
        given = self._flatten(given, self._depth)
        arms = self._alternatives(given)
        made = self._project_choice(given, arms) if arms else self.schema(given)
        self._followed = around
        self._depth += 1
        return made

    def policy(self, keyword: str, value: JsonValue) -> Policy:
        is_wrong = keyword in _KEPT and type(value) not in _KEPT[keyword]
        return "lose" if is_wrong else super().policy(keyword, value)

    def value(self, keyword: str, value: JsonValue, given: Schema) -> JsonValue:
        return value

    def _flatten(self, schema: Schema, depth: int) -> Schema:
        """Return a schema with its references followed and its `allOf` merged, in at most `depth` steps."""
        for _ in range(depth):
            inner: list[JsonValue] = []
            if "$ref" in schema:
                inner.append(self._follow_reference(schema["$ref"]))
            inner += as_list(schema.get("allOf"))
            if not inner:
                return schema
            schema = _merge_schemas([*(item for item in inner if type(item) is dict), _own_keywords(schema)])
        self.lost.append("$ref")
        return _own_keywords(schema)

    def _follow_reference(self, reference: JsonValue) -> JsonValue:
        """Return the target of a local reference. A remote or recursive reference becomes `{"type": "object"}`."""
        if type(reference) is not str or not reference.startswith("#") or reference in self._followed:
            self.lost.append("$ref")
            return {"type": "object"}
        self._followed = (*self._followed, reference)
        return resolve_pointer(self.root, reference)

    def _alternatives(self, schema: Schema) -> list[JsonValue]:
        """Return the alternatives of a schema, or an empty list if the schema is not a choice."""
        for keyword in ("anyOf", "oneOf"):
            if arms := as_list(schema.get(keyword)):
                if keyword == "oneOf":
                    self.lost.append(keyword)
                return arms
        kinds = as_list(schema.get("type"))
        return [{**schema, "type": kind} for kind in kinds] if len(kinds) > 1 else []

    def _project_choice(self, choice: Schema, alternatives: list[JsonValue]) -> Schema:
        """Return a choice in rewritten form. Null and descriptions move into the alternatives, because no other keyword
        may stand next to `anyOf`.
        """
        real = [arm for arm in alternatives if not _is_null(arm)]
        beside: Schema = {key: choice[key] for key in ("title", "description", "default") if key in choice}
        made = [self.project({**beside, **arm} if type(arm) is dict else arm) for arm in real]
        for arm in made if len(real) < len(alternatives) else []:
            arm["nullable"] = True
        if not made:
            return {"type": "STRING", "nullable": True}
        flat = [inner for arm in made for inner in _nested_alternatives(arm)]
        return flat[0] if len(flat) == 1 else {"anyOf": list[JsonValue](flat)}

    def finish(self, made: Schema, given: Schema) -> Schema:
        kind = _type_of(given)
        made = {"type": kind, **made}
        if (form := given.get("format")) in _FORMATS.get(kind, ()):
            made["format"] = form
        elif form is not None:
            self.lost.append("format")
        if given.get("nullable") is True:
            made["nullable"] = True
        self._add_enumeration(given, made)
        if kind == "ARRAY":
            made["items"] = self.project(given.get("items", {"type": "string"}))
        if kind == "OBJECT":
            self._add_properties(given, made)
        return made

    def _add_enumeration(self, schema: Schema, projected: Schema) -> None:
        """Add the enumeration of `schema` to `projected`. The subset allows only strings as values; if null is a value,
        the schema becomes nullable.
        """
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if type(values) is not list:
            return
        if None in values:
            projected["nullable"] = True
        words: list[JsonValue] = [value for value in values if type(value) is str and value]
        if projected["type"] == "STRING" and words:
            projected["enum"], projected["format"] = words, "enum"
        if len(words) < len(values) - (None in values):
            self.lost.append("const" if "const" in schema else "enum")

    def _add_properties(self, schema: Schema, projected: Schema) -> None:
        known = schema.get("properties")
        if type(known) is not dict:
            return
        if known:
            projected["properties"] = {name: self.project(value) for name, value in known.items()}
        if there := [name for name in as_list(schema.get("required")) if type(name) is str and name in known]:
            projected["required"] = list[JsonValue](there)


def _own_keywords(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}


def _type_of(schema: Mapping[str, JsonValue]) -> str:
    """Return the type of a schema. If the schema has no type, guess the type from the other keywords."""
    kind = schema.get("type")
    if type(kind) is list and kind:
        kind = kind[0]
    if type(kind) is str and kind.upper() in _TYPES:
        return kind.upper()
    if "properties" in schema or "additionalProperties" in schema:
        return "OBJECT"
    if "items" in schema:
        return "ARRAY"
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    sample = values[0] if type(values) is list and values else ""
    return _SAMPLE_TYPES.get(type(sample), "STRING")


_SAMPLE_TYPES: Mapping[type, str] = {bool: "BOOLEAN", int: "INTEGER", float: "NUMBER"}


def _is_null(schema: JsonValue) -> bool:
    return type(schema) is dict and (
        schema.get("type") == "null" or ("const" in schema and schema["const"] is None)
    )


def _nested_alternatives(schema: Schema) -> list[Schema]:
    """Return the alternatives of a nested choice, or the schema itself if it is not a choice."""
    inner = schema.get("anyOf")
    if type(inner) is not list:
        return [schema]
    null = schema.get("nullable") is True
    return [{**item, "nullable": True} if null else item for item in inner if type(item) is dict]


def _merge_schemas(schemas: list[Schema]) -> Schema:
    """Merge schemas into one. Properties and required names are combined. For other keywords, the later schema wins."""
    merged: Schema = {}
    for schema in schemas:
        for keyword, value in schema.items():
            before = merged.get(keyword)
            if keyword == "properties" and type(before) is dict and type(value) is dict:
                merged[keyword] = {**before, **value}
            elif keyword == "required" and type(before) is list and type(value) is list:
                merged[keyword] = [*before, *(name for name in value if name not in before)]
            else:
                merged[keyword] = value
    return merged
