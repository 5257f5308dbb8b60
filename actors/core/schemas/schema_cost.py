"""Measure the cost of validation with a JSON Schema, for any value and for a given one.

In:  a schema as strict JSON, with references only into itself, and optionally a value.
Out: the number of parts that the validator may visit.

References can multiply the size of a schema without bound, so it is measured before it is compiled. There a cycle
counts once, because the value determines how often it is followed. When the validator lists errors, it caches nothing:
a recursive schema that reaches a child in two ways doubles the work at each level. So that work is counted first.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from actors.core.data.jsonio import JsonValue, resolve_pointer

MAX_EXPANDED = 100_000  # schema nodes, counted as often as references reach them
MAX_EXPANDED_DEPTH = 160  # depth of nested nodes, with references followed
MAX_EXPLAINED = 4_000  # pairs of a schema node and a part of the value, counted as often as they are reached

_UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_SAME = frozenset({"not", "if", "then", "else", "propertyNames"})
_SAME_EACH = frozenset({"allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"})
_EACH = frozenset({"additionalProperties", "additionalItems", "contains", *_UNEVALUATED})


def nodes(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    """Yield a schema and every object inside it."""
    if isinstance(value, dict):
        yield value
    for child in _children(value):
        yield from nodes(child)


class SchemaCost:
    """The cost of one schema. Its references must be local ones."""

    def __init__(self, root: dict[str, Any]) -> None:  # Any: JSON
        self.root: JsonValue = root
        self._known: dict[int, tuple[int, int]] = {}
        self._open: set[int] = set()
        self._is_recursive = False
        self._anchors = {
            name: node
            for node in nodes(root)
            for key in ("$anchor", "$dynamicAnchor")
            if isinstance(name := node.get(key), str)
        }

    def why_too_much(self) -> str | None:
        """Return why the schema is too costly to compile, or None."""
        try:
            size, depth = self._measure(self.root)
        except RecursionError:
            depth = size = MAX_EXPANDED_DEPTH + 1
        if depth > MAX_EXPANDED_DEPTH:
            return f"its references lead deeper than {MAX_EXPANDED_DEPTH} parts inside each other"
        if size > MAX_EXPANDED:
            return f"its references and unevaluated keywords expand to more than {MAX_EXPANDED} parts"
        return None

    def can_explain(self, value: JsonValue) -> bool:
        """Return True if the errors of a value can be listed within `MAX_EXPLAINED` visits.

        The cost of a schema without recursion is already bounded by `why_too_much`.
        """
        try:
            return not self._is_recursive or self._visits(self.root, value, {}) <= MAX_EXPLAINED
        except RecursionError:
            return False

    def _measure(self, value: JsonValue, above: int = 0) -> tuple[int, int]:
        """Return the number and the depth of the nodes.

        Raises:
            RecursionError: The depth exceeds `MAX_EXPANDED_DEPTH`, which protects our stack.
        """
        if id(value) in self._known:
            self._is_recursive |= id(value) in self._open
            return self._known[id(value)]
        if not isinstance(value, dict | list):
            return 1, 1
        if above >= MAX_EXPANDED_DEPTH:
            raise RecursionError
        self._known[id(value)] = 1, 1  # the count of a cycle back to this node
        self._open.add(id(value))
        below = [self._measure(child, above + 1) for child in self._subschemas(value)]
        self._open.discard(id(value))
        size, depth = 1 + sum(size for size, _ in below), 1 + max((depth for _, depth in below), default=0)
        if isinstance(value, dict) and not _UNEVALUATED.isdisjoint(value):
            size *= 2  # the validator visits the parts again to find the evaluated ones
        self._known[id(value)] = size, depth
        return size, depth

    def _subschemas(self, value: JsonValue) -> list[JsonValue]:
        reference = value.get("$ref") if isinstance(value, dict) else None
        target = [self._target(reference)] if isinstance(reference, str) else []
        return [*_children(value), *target]

    def _target(self, reference: str) -> JsonValue:
        from urllib.parse import unquote as percent_decoded  # as in `resolve_pointer`

        name = percent_decoded(reference.removeprefix("#"))
        return resolve_pointer(self.root, reference) if name[:1] in ("", "/") else self._anchors.get(name)

    def _visits(
        self, schema: JsonValue, value: JsonValue, known: dict[tuple[int, int], int], above: int = 0
    ) -> int:
        """Return the number of pairs of a schema node and a part of the value that validation visits.

        Raises:
            RecursionError: The depth or the number of pairs exceeds its limit.
        """
        pair = id(schema), id(value)
        if not isinstance(schema, dict) or pair in known:
            return known.get(pair, 1)
        if above >= MAX_EXPANDED_DEPTH or len(known) > MAX_EXPLAINED:
            raise RecursionError
        known[pair] = 1
        below = sum(self._visits(inner, part, known, above + 1) for inner, part in self._pairs(schema, value))
        known[pair] = 1 + below * (1 if _UNEVALUATED.isdisjoint(schema) else 2)
        return known[pair]

    def _pairs(self, schema: dict[str, JsonValue], value: JsonValue) -> Iterator[tuple[JsonValue, JsonValue]]:
        """Yield pairs of a direct subschema and a part of the value, at least all that the validator visits."""
        for key, inner in schema.items():
            if key == "$ref" and isinstance(inner, str):
                yield self._target(inner), value
            elif key in _SAME:
                yield inner, value
            elif key in _SAME_EACH:
                yield from ((item, value) for item in _children(inner))
            elif key == "properties" and isinstance(inner, dict) and isinstance(value, dict):
                yield from ((inner[name], part) for name, part in value.items() if name in inner)
            elif key in ("patternProperties", "prefixItems") or (key == "items" and isinstance(inner, list)):
                yield from ((item, part) for item in _children(inner) for part in _children(value))
            elif key in _EACH or key == "items":
                yield from ((inner, part) for part in _children(value))


def _children(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
