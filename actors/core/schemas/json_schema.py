"""Traverse and rewrite a JSON Schema, measure the cost of validation, and remove patterns that need backtracking.

A rewriter visits a schema and its subschemas, keyword by keyword. Each dialect has a subclass, with a table of policies
for the keywords, and methods for the exceptions.

The cost is the number of schema nodes that the validator may visit, for any value or for a specific value. References
can multiply the size of a schema without bound, so the size is measured before the schema is compiled. In this measure,
a cycle counts once, because the value determines how often the validator follows it. When the validator lists errors,
it does not cache results: a recursive schema that reaches a child in two ways doubles the work at each level. So this
work is counted before the errors are listed.

The linear engine cannot run patterns with lookarounds and backreferences. Without a pattern, a schema accepts more
values. Inside a `not` or an `if`, this would make the outer schema accept fewer values. So these keywords are removed
completely, and a `oneOf` becomes an `anyOf`. The result accepts every value that the original schema accepts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias

from actors.core.data.jsonio import JsonValue, resolve_pointer

Schema: TypeAlias = dict[str, JsonValue]
Policy: TypeAlias = Literal["keep", "drop", "lose", "refuse"]
"""The treatment of a keyword: keep it, drop it silently because nothing is lost, drop it and report the loss
(`lose`), or reject the schema."""
MAPS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
"""Keywords whose value maps names to schemas."""
LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""
SCHEMAS = frozenset(
    """items additionalProperties not contains if then else propertyNames unevaluatedProperties unevaluatedItems
    additionalItems contentSchema""".split()  # noqa: SIM905  a list literal would fill a page
)
"""Keywords whose value is a schema. In older drafts, `items` may be a list of schemas."""
MAX_EXPANDED = 100_000  # schema nodes; a node counts once for each path of references to it
MAX_EXPANDED_DEPTH = 160  # depth of nested nodes, including nodes reached by references
MAX_EXPLAINED = 4_000  # (schema node, value) pairs, each counted as often as the validator visits it
_UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_SAME = frozenset({"not", "if", "then", "else", "propertyNames"})
_SAME_EACH = frozenset({"allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"})
_EACH = frozenset({"additionalProperties", "additionalItems", "contains", *_UNEVALUATED})
_COUNTED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
"""Keywords that apply to the properties or items that no other keyword matched. They are removed, because the other
keywords match fewer properties and items without the patterns.
"""
_CHANGED = frozenset({"$ref", *_COUNTED})


def subschema_entries(keyword: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield (path, subschema) for each direct subschema in the value of a keyword. A subschema may be invalid.

    The path is relative to `value`, such as `.name` or `[2]`.
    """
    if keyword in MAPS and type(value) is dict:
        yield from ((f".{name}", inner) for name, inner in value.items())
    elif type(value) is list and (keyword in LISTS or keyword == "items"):
        yield from ((f"[{at}]", inner) for at, inner in enumerate(value))
    elif keyword == "dependencies" and type(value) is dict:  # in older drafts: a schema, or a list of keys
        yield from ((f".{name}", inner) for name, inner in value.items() if type(inner) is not list)
    elif keyword in SCHEMAS:
        yield "", value


def map_subschemas(keyword: str, value: JsonValue, rewrite: Callable[[JsonValue], JsonValue]) -> JsonValue:
    """Return a keyword's value with each direct subschema replaced by `rewrite(subschema)`."""
    if keyword in MAPS and type(value) is dict:
        return {name: rewrite(inner) for name, inner in value.items()}
    if type(value) is list and (keyword in LISTS or keyword == "items"):
        return [rewrite(inner) for inner in value]
    if keyword == "dependencies" and type(value) is dict:
        return {name: inner if type(inner) is list else rewrite(inner) for name, inner in value.items()}
    return rewrite(value) if keyword in SCHEMAS else value


def is_schema(value: JsonValue) -> bool:
    """Return True if a value has the type of a schema: an object or a boolean."""
    return type(value) is dict or type(value) is bool


class SchemaRefused(Exception):
    """Raised for a schema that a dialect cannot express. The message is the keyword that caused the error."""


class SchemaRewriter:
    """Rewrites one schema for a dialect, and records the lost keywords.

    A subclass defines the policies of its dialect as a table, and overrides methods if a policy depends on more than
    the keyword.
    """

    policies: ClassVar[Mapping[str, Policy]] = {}
    other: ClassVar[Policy] = "keep"
    """The policy for keywords that are not in the table."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        """The lost keywords in the order of their loss, possibly with repetitions."""

    @property
    def losses(self) -> tuple[str, ...]:
        """The lost keywords, without repetitions."""
        return tuple(dict.fromkeys(self.lost))

    def schema(self, given: Schema) -> Schema:
        """Return a schema in a form that the dialect accepts.

        Raises:
            SchemaRefused: The dialect cannot express the schema.
        """
        made: Schema = {}
        for keyword, value in given.items():
            match self.policy(keyword, value):
                case "keep":
                    made[keyword] = self.value(keyword, value, given)
                case "lose":
                    self.lost.append(keyword)
                case "drop":
                    pass
                case "refuse":
                    raise SchemaRefused(keyword)
        return self.finish(made, given)

    def policy(self, keyword: str, value: JsonValue) -> Policy:
        """Return the policy for a keyword with this value."""
        return self.policies.get(keyword, self.other)

    def value(self, keyword: str, value: JsonValue, given: Schema) -> JsonValue:
        """Return the value of a keyword that is kept, with the subschemas inside it rewritten."""
        return map_subschemas(keyword, value, partial(self.entry, keyword))

    def entry(self, keyword: str, value: JsonValue) -> JsonValue:
        """Return a rewritten subschema. A boolean schema is returned unchanged."""
        return self.schema(value) if type(value) is dict else value

    def finish(self, made: Schema, given: Schema) -> Schema:
        """Return `made`, the rewritten schema, after changes that depend on several keywords.

        `given` is the original schema.
        """
        return made


def schema_nodes(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    """Yield every object inside a schema, beginning with the schema itself."""
    if isinstance(value, dict):
        yield value
    for child in _child_values(value):
        yield from schema_nodes(child)


class SchemaCost:
    """The cost of validation with one schema. The schema may only contain references into itself."""

    def __init__(self, root: dict[str, Any]) -> None:  # Any: `JsonValue` would need casts
        self.root: JsonValue = root
        self._known: dict[int, tuple[int, int]] = {}
        self._open: set[int] = set()
        self._is_recursive = False
        self._anchors = {
            name: node
            for node in schema_nodes(root)
            for key in ("$anchor", "$dynamicAnchor")
            if isinstance(name := node.get(key), str)
        }

    def why_too_costly(self) -> str | None:
        """Return the reason why the schema is too costly to compile, or None."""
        try:
            size, depth = self._measure(self.root)
        except RecursionError:
            depth = size = MAX_EXPANDED_DEPTH + 1
        if depth > MAX_EXPANDED_DEPTH:
            return f"its references nest more than {MAX_EXPANDED_DEPTH} subschemas inside each other"
        if size > MAX_EXPANDED:
            return f"its references and unevaluated keywords expand to more than {MAX_EXPANDED} subschemas"
        return None

    def can_explain(self, value: JsonValue) -> bool:
        """Return True if the errors of a value can be listed within `MAX_EXPLAINED` visits.

        The result is always True for a schema without recursion, because `why_too_costly` already limits its cost.
        """
        try:
            return not self._is_recursive or self._count_visits(self.root, value, {}) <= MAX_EXPLAINED
        except RecursionError:
            return False

    def _measure(self, value: JsonValue, outer_depth: int = 0) -> tuple[int, int]:
        """Return the number and the depth of the nodes in a schema. `outer_depth` is the number of enclosing nodes.

        Raises:
            RecursionError: The depth exceeds `MAX_EXPANDED_DEPTH`. This limit protects our own stack.
        """
        if id(value) in self._known:
            self._is_recursive |= id(value) in self._open
            return self._known[id(value)]
        if not isinstance(value, dict | list):
            return 1, 1
        if outer_depth >= MAX_EXPANDED_DEPTH:
            raise RecursionError
        self._known[id(value)] = 1, 1  # the size and depth of a cyclic reference back to this node
        self._open.add(id(value))
        below = [self._measure(child, outer_depth + 1) for child in self._subschemas(value)]
        self._open.discard(id(value))
        size, depth = 1 + sum(size for size, _ in below), 1 + max((depth for _, depth in below), default=0)
        if isinstance(value, dict) and not _UNEVALUATED.isdisjoint(value):
            size *= 2  # the validator visits the subschemas again to find out which properties they evaluated
        self._known[id(value)] = size, depth
        return size, depth

    def _subschemas(self, value: JsonValue) -> list[JsonValue]:
        reference = value.get("$ref") if isinstance(value, dict) else None
        target = [self._reference_target(reference)] if isinstance(reference, str) else []
        return [*_child_values(value), *target]

    def _reference_target(self, reference: str) -> JsonValue:
        from urllib.parse import (
            unquote as percent_decoded,  # imported here, because few schemas contain references
        )

        name = percent_decoded(reference.removeprefix("#"))
        return resolve_pointer(self.root, reference) if name[:1] in ("", "/") else self._anchors.get(name)

    def _count_visits(
        self, schema: JsonValue, value: JsonValue, known: dict[tuple[int, int], int], outer_depth: int = 0
    ) -> int:
        """Return how many (schema node, value) pairs the validator visits, including nested values.

        `known` contains the results of earlier calls, by the ids of schema and value. `outer_depth` is the number of
        enclosing nodes.

        Raises:
            RecursionError: The depth or the number of pairs exceeds its limit.
        """
        pair = id(schema), id(value)
        if not isinstance(schema, dict) or pair in known:
            return known.get(pair, 1)
        if outer_depth >= MAX_EXPANDED_DEPTH or len(known) > MAX_EXPLAINED:
            raise RecursionError
        known[pair] = 1
        below = sum(
            self._count_visits(inner, part, known, outer_depth + 1)
            for inner, part in self._visited_pairs(schema, value)
        )
        known[pair] = 1 + below * (1 if _UNEVALUATED.isdisjoint(schema) else 2)
        return known[pair]

    def _visited_pairs(
        self, schema: dict[str, JsonValue], value: JsonValue
    ) -> Iterator[tuple[JsonValue, JsonValue]]:
        """Yield the subschemas that the validator may visit next, each with the value that it checks there.

        The result contains every pair that the validator does visit, and possibly more.
        """
        for key, inner in schema.items():
            if key == "$ref" and isinstance(inner, str):
                yield self._reference_target(inner), value
            elif key in _SAME:
                yield inner, value
            elif key in _SAME_EACH:
                yield from ((item, value) for item in _child_values(inner))
            elif key == "properties" and isinstance(inner, dict) and isinstance(value, dict):
                yield from ((inner[name], part) for name, part in value.items() if name in inner)
            elif key in ("patternProperties", "prefixItems") or (key == "items" and isinstance(inner, list)):
                yield from ((item, part) for item in _child_values(inner) for part in _child_values(value))
            elif key in _EACH or key == "items":
                yield from ((inner, part) for part in _child_values(value))


def _child_values(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


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
