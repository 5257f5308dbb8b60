"""Remove patterns that need a backtracking engine from a schema, so that it accepts at least the same values.

In:  a schema, and the patterns in it that the linear engine cannot run: those with lookarounds and backreferences.
Out: a schema without these patterns. It accepts every value that the original schema accepts.

Without a pattern, a schema accepts more values. Inside a `not` or an `if`, this would make the outer schema accept
fewer values. So these keywords are removed completely, and a `oneOf` becomes an `anyOf`.
"""

from typing import Any

from actors.core.data.jsonio import JsonValue
from actors.core.schemas.json_schema import Policy, Schema, SchemaRewriter
from actors.core.schemas.schema_cost import schema_nodes

_COUNTED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
"""Keywords that apply to the properties or items that no other keyword matched. They are removed, because the other
keywords match fewer properties and items without the patterns.
"""
_CHANGED = frozenset({"$ref", *_COUNTED})


def without_patterns(
    schema: dict[str, Any], patterns: frozenset[str]
) -> dict[str, Any]:  # Any: see `patterns_of`
    """Return a schema without the given patterns. It accepts every value that the original schema accepts."""
    return _PatternRemover(patterns).schema(schema)


class _PatternRemover(SchemaRewriter):
    """Removes the given patterns, and the keywords that depend on them."""

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
        if "oneOf" in made and _may_accept_more(given["oneOf"], self._patterns):
            arms = made.get("allOf")
            made["allOf"] = [*(arms if type(arms) is list else ()), {"anyOf": made.pop("oneOf")}]
        return made


def _unsafe_keywords(
    schema: dict[str, Any], patterns: frozenset[str]
) -> frozenset[str]:  # Any: see `patterns_of`
    """Return the keywords that could make a schema accept fewer values after the patterns are removed."""
    by_key: JsonValue = schema.get("patternProperties")
    affected = {
        "not": _may_accept_more(schema.get("not"), patterns),
        "if": _may_accept_more(schema.get("if"), patterns),
        "maxContains": _may_accept_more(schema.get("contains"), patterns),
        "additionalProperties": isinstance(by_key, dict) and not patterns.isdisjoint(by_key),
    }
    return _COUNTED.union(keyword for keyword, is_affected in affected.items() if is_affected)


def _may_accept_more(value: JsonValue, patterns: frozenset[str]) -> bool:
    """Return True if removing the patterns from a schema, or from a list of schemas, may make it accept more values.

    The result is also True for a schema with a reference, because the reference may lead to a pattern.
    """
    inner = value if isinstance(value, list) else [value]
    return any(
        not _CHANGED.isdisjoint(node) or patterns.intersection(patterns_of(node))
        for part in inner
        for node in schema_nodes(part)
    )


def patterns_of(schema: dict[str, Any]) -> list[str]:  # Any: `JsonValue` would need casts
    """Return the regular expressions of one schema, without those in its subschemas."""
    pattern, by_key = schema.get("pattern"), schema.get("patternProperties")
    return [*([pattern] if isinstance(pattern, str) else ()), *(by_key if isinstance(by_key, dict) else ())]
