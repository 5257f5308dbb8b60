"""Weaken a schema where a pattern needs an engine that backtracks.

In:  a schema, and those of its patterns that the linear engine cannot run: lookarounds and backreferences.
Out: a schema without them. It accepts every value that the given one accepts.

A pattern is only left out where that makes the schema accept more. Below a `not` or an `if` it would accept less, so
the whole keyword goes, and one arm of a `oneOf` may no longer exclude another.
"""

from typing import Any

from actors.core.data.jsonio import JsonValue
from actors.core.schemas.json_schema import below
from actors.core.schemas.schema_cost import nodes

_COUNTED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
"""Keywords that apply to what others did not match. Without a pattern, others match less."""
_CHANGED = frozenset({"$ref", *_COUNTED})


def without_patterns(schema: dict[str, Any], patterns: frozenset[str]) -> dict[str, Any]:  # Any: JSON
    """Return a schema that holds none of the patterns and accepts all that the given one accepts."""
    made: dict[str, Any] = {}
    gone = _unsafe_keywords(schema, patterns)
    for keyword, value in schema.items():
        if keyword in gone or (keyword == "pattern" and value in patterns):
            continue
        if keyword == "patternProperties" and isinstance(value, dict):
            value = {pattern: inner for pattern, inner in value.items() if pattern not in patterns}
        made[keyword] = below(keyword, value, lambda inner: _inside(inner, patterns))
    if "oneOf" in made and _holds(schema["oneOf"], patterns):
        made["allOf"] = [*made.get("allOf", ()), {"anyOf": made.pop("oneOf")}]
    return made


def _inside(schema: JsonValue, patterns: frozenset[str]) -> JsonValue:
    return without_patterns(schema, patterns) if isinstance(schema, dict) else schema


def _unsafe_keywords(schema: dict[str, Any], patterns: frozenset[str]) -> frozenset[str]:  # Any: JSON
    """Return the keywords that could make a schema accept less once the patterns are gone."""
    by_key = schema.get("patternProperties")
    affected = {
        "not": _holds(schema.get("not"), patterns),
        "if": _holds(schema.get("if"), patterns),
        "maxContains": _holds(schema.get("contains"), patterns),
        "additionalProperties": isinstance(by_key, dict) and not patterns.isdisjoint(by_key),
    }
    return _COUNTED.union(keyword for keyword, is_affected in affected.items() if is_affected)


def _holds(value: JsonValue, patterns: frozenset[str]) -> bool:
    """Tell whether a keyword's schemas may accept more without the patterns. A reference may lead to a pattern."""
    inner = value if isinstance(value, list) else [value]
    return any(
        not _CHANGED.isdisjoint(node) or patterns.intersection(patterns_of(node))
        for part in inner
        for node in nodes(part)
    )


def patterns_of(schema: dict[str, Any]) -> list[str]:  # Any: JSON
    """Return the patterns of one schema, without those of schemas in it."""
    pattern, by_key = schema.get("pattern"), schema.get("patternProperties")
    return [*([pattern] if isinstance(pattern, str) else ()), *(by_key if isinstance(by_key, dict) else ())]
