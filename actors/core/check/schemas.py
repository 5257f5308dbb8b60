"""Find the parts of a tool's schema that a host rejects: entries that are no schemas, keys, patterns."""

import re
from collections.abc import Iterator

from actors.core.data.jsonio import JsonValue
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.narrow import facts_of

_OF_ALL = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_OF_LIST = ("allOf", "anyOf", "oneOf", "prefixItems")
_OF_ONE = frozenset(
    """additionalItems additionalProperties contains else if items not propertyNames then unevaluatedItems
    unevaluatedProperties""".split()  # noqa: SIM905  as a list it is a page
)
_DEEPEST = 64
_ESCAPED = re.compile(r"\\.", re.DOTALL)


def schema_faults(schema: JsonValue, dialect: Dialect, model: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield (rule, description) for each fault inside a schema."""
    rules = dialect.request
    is_named = isinstance(model, str) and not dialect.narrowed_to
    pattern = (facts_of(dialect, str(model)) if is_named else dialect.model).property_keys
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if pattern is not None and isinstance(properties, dict):
        for key in properties:
            if not re.fullmatch(pattern, key):
                yield "ANT-57", f"the property key {_short(key)} does not match {pattern}"
    for path, value in _schema_places(schema, "", _DEEPEST):
        if not isinstance(value, dict | bool):
            yield "ALL-02 schema", f"a JSON Schema with a schema at {path[:80]}"
        elif rules.patterns != "any" and isinstance(value, dict):
            for found in _patterns(value):
                if rules.patterns == "none" or _has_special_group(found):
                    yield "CMP-03", f"the server builds no grammar for the pattern {_short(found)}"


def _schema_places(schema: JsonValue, path: str, left: int) -> Iterator[tuple[str, JsonValue]]:
    """Yield (path, value) for the schema and for every place inside it that must contain a schema."""
    yield path, schema
    if not isinstance(schema, dict) or not left:
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
            yield from _schema_places(inner, f"{path}.{keyword}.{name}".strip("."), left - 1)


def _patterns(schema: dict[str, JsonValue]) -> list[str]:
    told, by_key = schema.get("pattern"), schema.get("patternProperties")
    return [*([told] if isinstance(told, str) else ()), *(by_key if isinstance(by_key, dict) else ())]


def _has_special_group(pattern: str) -> bool:
    """Return True if a pattern has a special group: a lookaround, a name, a flag."""
    return "(?" in _ESCAPED.sub("", pattern).replace("(?:", "")


def _short(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:59] + "…")
