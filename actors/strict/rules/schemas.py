"""Check the schemas of tools and structured answers, against the rules of OpenAI's structured outputs and other hosts.

The rules for strict schemas come from the guide "Structured Outputs" (supported schemas), and from reported refusals:
each message in this module follows `Invalid schema for response_format 'NAME': ` or `Invalid schema for function
'NAME': `. Keywords without a known rule are accepted.

Faults inside a tool's schema make hosts refuse the complete request. Anthropic checks the keys of properties only at
the root of a schema; deeper keys may be any string. The same applies on Bedrock. llama.cpp builds a grammar from the
complete schema.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from actors.strict.rules.base import Json, is_array, is_object

DEFINITIONS = ("$defs", "definitions")
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_FORMATS = tuple("date-time time date duration email hostname ipv4 ipv6 uuid".split())  # noqa: SIM905  a list is longer
_UNSUPPORTED_KEYWORDS = frozenset(
    """allOf oneOf not if then else dependentRequired dependentSchemas default minLength maxLength
    patternProperties unevaluatedProperties propertyNames minProperties maxProperties
    unevaluatedItems prefixItems contains minContains maxContains uniqueItems""".split()  # noqa: SIM905  a list would fill a page
)
_MAX_DEPTH = 10
_MAX_PROPERTIES = 5_000
_MAX_VALUES = 1_000
_MAX_TEXT = 120_000  # maximum total characters of property names, definition names and enumeration values
_MAX_LARGE = 250  # in an enumeration with more values, the total characters are limited to `_MAX_LARGE_TEXT`
_MAX_LARGE_TEXT = 15_000
Context = tuple[str, ...]
_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_EACH_VALUE = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_EACH_ITEM = ("anyOf", "allOf", "oneOf", "prefixItems")
_ITSELF = ("additionalProperties", "items", "not", "if", "then", "else", "contains", "propertyNames")
_LOOKAROUND = re.compile(r"(?<!\\)(?:\\\\)*\(\?(?:[=!]|<)")


def schema_nodes(
    schema: Json, subschemas_of: Callable[[dict[str, Json]], Iterable[Json]]
) -> Iterator[dict[str, Json]]:
    """Yield a schema, all schemas in its definitions, and all subschemas that `subschemas_of` returns."""
    if not is_object(schema):
        return
    yield schema
    for key in (key for key in DEFINITIONS if is_object(schema.get(key))):
        for inner in schema[key].values():
            yield from schema_nodes(inner, subschemas_of)
    for inner in subschemas_of(schema):
        yield from schema_nodes(inner, subschemas_of)


def resolve_definition(reference: Json, root: Json) -> Json:
    """Return the definition to which a reference such as `#/$defs/A` points; None if it does not exist."""
    where, key, name = [*str(reference).split("/", 2), "", ""][:3]
    definitions = root.get(key) if where == "#" and key in DEFINITIONS else None
    return definitions.get(name) if is_object(definitions) else None


def find_strict_fault(schema: Json, *, is_compatible_host: bool) -> str | None:
    """Return a description of the first fault in a strict schema, or None.

    If `is_compatible_host` is True, apply the additional rules of strict compatible hosts as well.
    """
    if not is_object(schema):
        return f"{schema!r} is not of type 'object', 'boolean'."
    if schema.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
    if "anyOf" in schema:
        return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    return next(
        _schema_faults(schema, (), schema, is_compatible_host=is_compatible_host), None
    ) or _size_fault(schema)


def _schema_faults(schema: Json, context: Context, root: Json, *, is_compatible_host: bool) -> Iterator[str]:
    """Yield a description of each fault in a schema, in document order. `context` is the path of the schema."""
    if not is_object(schema):
        yield f"In context={context}, schema must have a 'type' key."
        return
    for key in (key for key in DEFINITIONS if is_object(schema.get(key))):
        for name, inner in schema[key].items():
            yield from _schema_faults(
                inner, (*context, key, name), root, is_compatible_host=is_compatible_host
            )
    if "$ref" in schema:
        yield from _reference_faults(schema, context, root)
        return
    for key in schema:
        if key in _UNSUPPORTED_KEYWORDS:
            yield f"In context={context}, '{key}' is not permitted."
    yield from _type_faults(schema, context)
    if is_compatible_host:
        yield from _indistinguishable_objects(schema.get("anyOf"), root)
    for step, inner in _subschemas_with_paths(schema):
        yield from _schema_faults(inner, (*context, *step), root, is_compatible_host=is_compatible_host)


def _reference_faults(schema: dict[str, Json], context: Context, root: Json) -> Iterator[str]:
    beside = {key for key in schema if key not in ("$ref", *DEFINITIONS)}
    if beside:
        yield f"context={context}, $ref cannot have keywords {beside}."
    elif schema["$ref"] != "#" and _resolve_reference(schema["$ref"], root) is None:
        yield (
            f"In context={context}, reference can only point to definitions defined at the top level of the "
            "schema."
        )


def _type_faults(schema: dict[str, Json], context: Context) -> Iterator[str]:
    kinds = schema.get("type")
    told = kinds if is_array(kinds) else [kinds]
    if kinds is None:
        if not is_array(schema.get("anyOf")):
            yield f"In context={context}, schema must have a 'type' key."
    elif not told or not all(isinstance(kind, str) and kind in _TYPES for kind in told):
        yield f"In context={context}, {kinds!r} is not valid under any of the given schemas."
    if "object" in told:
        yield from _object_faults(schema, context)
    if "array" in told and "items" not in schema:
        yield f"In context={context}, array schema missing items."
    if "format" in schema and schema["format"] not in _FORMATS:
        yield f"In context={context}, '{schema['format']}' is not a valid format."


def _object_faults(schema: dict[str, Json], context: Context) -> Iterator[str]:
    properties, required = schema.get("properties"), schema.get("required")
    if schema.get("additionalProperties") is not False:
        yield f"In context={context}, 'additionalProperties' is required to be supplied and to be false."
    if not is_object(properties):
        yield f"In context={context}, object schema missing properties."
        return
    wanted = (
        f"In context={context}, 'required' is required to be supplied and to be an array including every key in "
        "properties. "
    )
    names = required if is_array(required) else []
    for name in properties:
        if name not in names:
            yield f"{wanted}Missing '{name}'."
    for name in names:
        if not isinstance(name, str) or name not in properties:
            yield f"{wanted}Extra required key '{name}' supplied."


def _indistinguishable_objects(alternatives: Json, root: Json) -> Iterator[str]:
    """Yield a fault for each object in an `anyOf` that has the same first key as an earlier object.

    The same key is allowed if its schemas are enumerations without a common value.
    """
    first: dict[str, list[Json]] = {}
    for schema in alternatives if is_array(alternatives) else ():
        has_reference = is_object(schema) and "$ref" in schema
        found = _resolve_reference(schema["$ref"], root) if has_reference else schema
        properties = found.get("properties") if is_object(found) else None
        if not is_object(properties) or not properties:
            continue
        key, told = next(iter(properties.items()))
        if key in first and (
            not _enum_values(told) or any(not _are_distinct(told, other) for other in first[key])
        ):
            yield (
                "Objects provided via 'anyOf' must not share identical first keys. Consider adding a "
                "discriminator key or rearranging the properties to ensure the first key is unique."
            )
        first.setdefault(key, []).append(told)


def _are_distinct(schema: Json, other: Json) -> bool:
    """Return True if both schemas are enumerations without a common value."""
    first, second = _enum_values(schema), _enum_values(other)
    return bool(second) and not any(value in second for value in first)


def _enum_values(schema: Json) -> list[Json]:
    if not is_object(schema):
        return []
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return values if is_array(values) else []


def _subschemas_with_paths(schema: Mapping[str, Json]) -> Iterator[tuple[Context, Json]]:
    properties, arms = schema.get("properties"), schema.get("anyOf")
    for name, inner in properties.items() if is_object(properties) else ():
        yield ("properties", name), inner
    if "items" in schema:
        yield ("items",), schema["items"]
    for at, inner in enumerate(arms if is_array(arms) else ()):
        yield ("anyOf", str(at)), inner


def _subschemas(schema: Mapping[str, Json]) -> Iterator[Json]:
    return (inner for _, inner in _subschemas_with_paths(schema))


def _resolve_reference(reference: Json, root: Json) -> Json:
    return root if reference == "#" else resolve_definition(reference, root)


# ---- sizes


def _size_fault(root: Json) -> str | None:
    """Return a description of the first limit that the complete schema exceeds, or None."""
    found = list(schema_nodes(root, _subschemas))
    properties = [name for node in found for name in node.get("properties") or ()]
    values = [value for node in found for value in _enum_values(node)]
    named = [name for key in DEFINITIONS for name in root.get(key) or ()]
    depth = _object_depth(root, root, ())
    if depth > _MAX_DEPTH:
        return f"{depth} levels of nesting exceeds limit of {_MAX_DEPTH}."
    if len(properties) > _MAX_PROPERTIES:
        return f"{len(properties)} object properties exceeds limit of {_MAX_PROPERTIES}."
    if len(values) > _MAX_VALUES:
        return f"{len(values)} enum values exceeds limit of {_MAX_VALUES}."
    if (length := _total_length([*properties, *named, *values])) > _MAX_TEXT:
        return f"{length} characters of names and enum values exceeds limit of {_MAX_TEXT}."
    large = [_total_length(own) for node in found if len(own := _enum_values(node)) > _MAX_LARGE]
    if max(large, default=0) > _MAX_LARGE_TEXT:
        return f"{max(large)} characters of one enum exceeds limit of {_MAX_LARGE_TEXT}."
    return None


def _total_length(texts: Iterable[Json]) -> int:
    return sum(len(text) for text in texts if isinstance(text, str))


def _object_depth(schema: Json, root: Json, followed: tuple[Json, ...]) -> int:
    """Return the maximum depth of nested objects in a schema. A recursive reference is followed only once."""
    if not is_object(schema):
        return 0
    if "$ref" in schema:
        reference = schema["$ref"]
        if reference == "#" or reference in followed:
            return 0
        return _object_depth(_resolve_reference(reference, root), root, (*followed, reference))
    below = max(
        (_object_depth(inner, root, followed) for _, inner in _subschemas_with_paths(schema)), default=0
    )
    return below + ("properties" in schema)


def has_odd_key(schema: Json) -> bool:
    """Return True if a property at the root of a schema has a key that Anthropic refuses."""
    properties = schema.get("properties")
    return is_object(properties) and not all(map(_KEY.fullmatch, properties))


def first_invalid_subschema(schema: Json) -> str | None:
    """Return the Python repr of the first subschema that is neither an object nor a boolean; None if there is none."""
    for inner in _direct_subschemas(schema):
        if is_object(inner):
            if (found := first_invalid_subschema(inner)) is not None:
                return found
        elif not isinstance(inner, bool):
            return repr(inner)
    return None


def has_lookaround(schema: Json) -> bool:
    """Return True if a schema contains a regular expression with lookaround, for which no grammar can be built."""
    if not is_object(schema):
        return False
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and _LOOKAROUND.search(pattern):
        return True
    return any(map(has_lookaround, _direct_subschemas(schema)))


def _direct_subschemas(schema: dict[str, Json]) -> Iterator[Json]:
    for keyword, value in schema.items():
        if keyword in _EACH_VALUE and is_object(value):
            yield from value.values()
        elif is_array(value) and (keyword in _EACH_ITEM or keyword == "items"):
            yield from value
        elif keyword in _ITSELF:
            yield value
