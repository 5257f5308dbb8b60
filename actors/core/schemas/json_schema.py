"""Traverse a JSON Schema: the keywords that contain subschemas, and the base class of the dialects' schema rewriters.

A rewriter visits a schema and its subschemas, keyword by keyword. Each dialect has a subclass, with a table of policies
for the keywords, and methods for the exceptions.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar, Literal, TypeAlias

from actors.core.data.jsonio import JsonValue

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


def subschema_entries(keyword: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield (path, subschema) for each value inside `value`, the value of a keyword, that must be a schema.

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
