"""Check the schema of a structured answer in Anthropic requests (`output_config.format`).

The rules come from the documentation page "Structured outputs" (the sections on JSON Schema limitations and on schema
complexity), and from reported refusals. Keywords without a known rule are accepted.
"""

from collections.abc import Iterator

from actors.strict.rules.anthropic_rules import RULES
from actors.strict.rules.anthropic_shapes import WALK
from actors.strict.rules.base import Json, is_array, is_object
from actors.strict.rules.json_schema import resolve_definition, schema_nodes
from actors.strict.rules.shapes import Fields, Word

_PATH = "output_config.format.schema"
_BOUNDS = frozenset(
    """minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems uniqueItems
    minProperties maxProperties patternProperties propertyNames""".split()  # noqa: SIM905  a list fills a page
)
_FORMATS = frozenset(
    "date-time time date duration email hostname uri ipv4 ipv6 uuid".split()  # noqa: SIM905  a list is longer
)
_TYPE = Word("json_schema", reports_wrong_type=True)
_FORM = Fields({"type": object, "schema": dict})
_LISTS = ("anyOf", "allOf", "oneOf")
_MAX_OPTIONAL = 24
_MAX_UNIONS = 16


def check(config: dict[str, Json]) -> None:
    """Check the answer format of an `output_config`.

    Raises:
        RuleBroken: The format is invalid, or its schema cannot be compiled by the host.
    """
    form = WALK.optional_member(config, "format", dict, "output_config")
    if form is None:
        return
    path = "output_config.format"
    WALK.check(WALK.require(form, "type", path), _TYPE, f"{path}.type")
    WALK.check(form, _FORM, path)
    root = form["schema"]
    found = list(schema_nodes(root, _subschemas))
    for node in found:
        _check_node(node, root)
    if _is_recursive(root):
        raise RULES["ANT-S19"].refuse()
    optional = sum(len(_optional_properties(node)) for node in found)
    if optional > _MAX_OPTIONAL:
        raise RULES["ANT-S20"].refuse(what="optional parameters", count=optional, limit=_MAX_OPTIONAL)
    unions = sum(1 for node in found for inner in _property_schemas(node) if _is_union(inner))
    if unions > _MAX_UNIONS:
        raise RULES["ANT-S20"].refuse(what="parameters with union types", count=unions, limit=_MAX_UNIONS)


def _check_node(node: dict[str, Json], root: Json) -> None:
    """Check one schema that is part of the schema `root`. Its subschemas are not checked."""
    kinds = node.get("type")
    told = kinds if is_array(kinds) else [kinds]
    if "object" in told and node.get("additionalProperties") is not False:
        raise RULES["ANT-S18"].refuse(why=_open_object_fault(node))
    if barred := sorted(_BOUNDS & node.keys()):
        kind = next((kind for kind in told if isinstance(kind, str)), "any")
        verb = "properties {} are" if len(barred) > 1 else "property '{}' is"
        raise RULES["ANT-S18"].refuse(
            why=f"For '{kind}' type, {verb.format(', '.join(barred))} not supported"
        )
    if node.get("minItems", 0) not in (0, 1):
        raise RULES["ANT-S18"].refuse(
            why="For 'array' type, 'minItems' values other than 0 or 1 are not supported"
        )
    if "format" in node and str(node["format"]) not in _FORMATS:
        raise RULES["ANT-S18"].refuse(why=f"For 'string' type, format '{node['format']}' is not supported")
    if any(isinstance(value, dict | list) for value in _enum_values(node)):
        raise RULES["ANT-S18"].refuse(why="enum values must be strings, numbers, booleans or null")
    if "$ref" in node and resolve_definition(node["$ref"], root) is None:
        raise RULES["ANT-S18"].refuse(why=f"$ref '{node['$ref']}' is not defined in the schema")
    if any(is_object(arm) and "$ref" in arm for arm in _as_list(node.get("allOf"))):
        raise RULES["ANT-S18"].refuse(why="allOf with $ref is not supported")


def _open_object_fault(node: dict[str, Json]) -> str:
    """Return the error message for an object that allows additional properties."""
    if "additionalProperties" not in node:
        return "For 'object' type, 'additionalProperties' must be explicitly set to false"
    told = "true" if node["additionalProperties"] is True else "object"
    return (
        f"For 'object' type, 'additionalProperties: {told}' is not supported. Please set 'additionalProperties' to "
        "false"
    )


def _optional_properties(node: dict[str, Json]) -> list[str]:
    required = _as_list(node.get("required"))
    properties = node.get("properties")
    return [name for name in properties if name not in required] if is_object(properties) else []


def _is_union(schema: Json) -> bool:
    return is_object(schema) and ("anyOf" in schema or is_array(schema.get("type")))


def _property_schemas(node: dict[str, Json]) -> Iterator[Json]:
    properties = node.get("properties")
    yield from properties.values() if is_object(properties) else ()


def _enum_values(node: dict[str, Json]) -> list[Json]:
    return [node["const"]] if "const" in node else _as_list(node.get("enum"))


def _as_list(value: Json) -> list[Json]:
    return value if is_array(value) else []


def _subschemas(schema: dict[str, Json]) -> Iterator[Json]:
    yield from _property_schemas(schema)
    if "items" in schema:
        yield schema["items"]
    for key in _LISTS:
        yield from _as_list(schema.get(key))


def _is_recursive(root: Json) -> bool:
    def loops(schema: Json, followed: tuple[Json, ...]) -> bool:
        if not is_object(schema):
            return False
        reference = schema.get("$ref")
        if reference is not None:
            return reference in followed or loops(resolve_definition(reference, root), (*followed, reference))
        return any(loops(inner, followed) for inner in _subschemas(schema))

    return loops(root, ())
