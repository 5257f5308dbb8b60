"""Find the faults inside a tool's JSON Schema: invalid subschemas, and keys and patterns that a host rejects."""

import re
from collections.abc import Iterator

from actors.core.data.jsonio import JsonValue
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.narrow import facts_of

_OF_ALL = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_OF_LIST = ("allOf", "anyOf", "oneOf", "prefixItems")
_OF_ONE = frozenset(
    """additionalItems additionalProperties contains else if items not propertyNames then unevaluatedItems
    unevaluatedProperties""".split()  # noqa: SIM905  a list literal would fill a page
)
_DEEPEST = 64
_ESCAPED = re.compile(r"\\.", re.DOTALL)


def schema_faults(schema: JsonValue, dialect: Dialect, model: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield (rule, description) for each fault inside a tool's schema. The rules depend on dialect and model."""
    rules = dialect.request
    is_named = isinstance(model, str) and not dialect.narrowed_to
    pattern = (facts_of(dialect, str(model)) if is_named else dialect.model).property_keys
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if pattern is not None and isinstance(properties, dict):
        for key in properties:
            if not re.fullmatch(pattern, key):
                yield "ANT-57", f"the property key {_excerpt(key)} does not match {pattern}"
    for path, value in _subschemas(schema, "", _DEEPEST):
        if not isinstance(value, dict | bool):
            yield "ALL-02 schema", f"the value at {path[:80]} in the JSON Schema must be a schema"
        elif rules.patterns != "any" and isinstance(value, dict):
            for found in _regular_expressions(value):
                if rules.patterns == "none" or _has_special_group(found):
                    yield "CMP-03", f"the server cannot build a grammar for the pattern {_excerpt(found)}"


def _subschemas(schema: JsonValue, path: str, depth_left: int) -> Iterator[tuple[str, JsonValue]]:
    """Yield (path, value) for the schema and for every value inside it that must be a schema.

    `depth_left` is the number of nested levels to visit.
    """
    yield path, schema
    if not isinstance(schema, dict) or not depth_left:
        return
    for keyword, value in schema.items():
        below: list[tuple[str, JsonValue]] = []
        if isinstance(value, dict) and keyword in _OF_ALL:
            below = list(value.items())
        elif isinstance(value, list) and (keyword in _OF_LIST or keyword == "items"):
            below = [(str(at), item) for at, item in enumerate(value)]
        elif keyword in _OF_ONE:
            below = [("", value)]
        for name, inner in below:
            yield from _subschemas(inner, f"{path}.{keyword}.{name}".strip("."), depth_left - 1)


def _regular_expressions(schema: dict[str, JsonValue]) -> list[str]:
    pattern, by_key = schema.get("pattern"), schema.get("patternProperties")
    return [*([pattern] if isinstance(pattern, str) else ()), *(by_key if isinstance(by_key, dict) else ())]


def _has_special_group(pattern: str) -> bool:
    """Return True if a regular expression contains a lookaround, a named group or a flag."""
    return "(?" in _ESCAPED.sub("", pattern).replace("(?:", "")


def _excerpt(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:59] + "…")
