"""Weaken a schema where a pattern needs an engine that backtracks.

In:  a schema, and those of its patterns that the linear engine cannot run: lookarounds and backreferences.
Out: a schema without them. It accepts every value that the given one accepts.

A pattern is only left out where that makes the schema accept more. Below a `not` or an `if` it would accept less, so
the whole keyword goes, and one arm of a `oneOf` may no longer exclude another.
"""

from typing import Any

from actors.core.data.jsonio import JsonValue
from actors.core.schemas.json_schema import Policy, Schema, SchemaRewriter
from actors.core.schemas.schema_cost import nodes

_COUNTED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
"""Keywords that apply to what others did not match. Without a pattern, others match less."""
_CHANGED = frozenset({"$ref", *_COUNTED})


def without_patterns(schema: dict[str, Any], patterns: frozenset[str]) -> dict[str, Any]:  # Any: JSON
    """Return a schema that holds none of the patterns and accepts all that the given one accepts."""
    return _Weakening(patterns).schema(schema)


class _Weakening(SchemaRewriter):
    def __init__(self, patterns: frozenset[str]) -> None:
        super().__init__()
        self._patterns = patterns

    def schema(self, given: Schema) -> Schema:
        gone = _unsafe_keywords(given, self._patterns)
        return super().schema({keyword: value for keyword, value in given.items() if keyword not in gone})

    def policy(self, keyword: str, value: JsonValue) -> Policy:
        return "drop" if keyword == "pattern" and value in self._patterns else "keep"

    def value(self, keyword: str, value: JsonValue, given: Schema) -> JsonValue:
        if keyword == "patternProperties" and type(value) is dict:
            value = {pattern: inner for pattern, inner in value.items() if pattern not in self._patterns}
        return super().value(keyword, value, given)

    def finish(self, made: Schema, given: Schema) -> Schema:
        if "oneOf" in made and _depends_on(given["oneOf"], self._patterns):
            arms = made.get("allOf")
            made["allOf"] = [*(arms if type(arms) is list else ()), {"anyOf": made.pop("oneOf")}]
        return made


def _unsafe_keywords(schema: dict[str, Any], patterns: frozenset[str]) -> frozenset[str]:  # Any: JSON
    """Return the keywords that could make a schema accept less once the patterns are gone."""
    by_key: JsonValue = schema.get("patternProperties")
    affected = {
        "not": _depends_on(schema.get("not"), patterns),
        "if": _depends_on(schema.get("if"), patterns),
        "maxContains": _depends_on(schema.get("contains"), patterns),
        "additionalProperties": isinstance(by_key, dict) and not patterns.isdisjoint(by_key),
    }
    return _COUNTED.union(keyword for keyword, is_affected in affected.items() if is_affected)


def _depends_on(value: JsonValue, patterns: frozenset[str]) -> bool:
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
