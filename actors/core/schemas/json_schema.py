"""Walk a JSON Schema: the keywords with subschemas, and the rewriter that all dialects share.

A rewriter visits a schema and its subschemas, keyword by keyword. A subclass is the table of one dialect, with a policy
for each keyword, and methods for the exceptions.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar, Literal, TypeAlias

from actors.core.data.jsonio import JsonValue

Schema: TypeAlias = dict[str, JsonValue]
Policy: TypeAlias = Literal["keep", "drop", "lose", "refuse"]
"""Keep a keyword, drop it without a loss, drop it and report the loss, or reject the schema."""

MAPS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
"""Keywords whose value maps names to schemas."""
LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""
SCHEMAS = frozenset(
    """items additionalProperties not contains if then else propertyNames unevaluatedProperties unevaluatedItems
    additionalItems contentSchema""".split()  # noqa: SIM905  as a list it is a page
)
"""Keywords whose value is a schema. In older drafts, `items` may be a list of schemas."""


def entries(keyword: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield (path, value) for each place of a keyword's value that must be a schema. The path is relative to it."""
    if keyword in MAPS and type(value) is dict:
        yield from ((f".{name}", inner) for name, inner in value.items())
    elif type(value) is list and (keyword in LISTS or keyword == "items"):
        yield from ((f"[{at}]", inner) for at, inner in enumerate(value))
    elif keyword == "dependencies" and type(value) is dict:  # in older drafts: a schema, or a list of keys
        yield from ((f".{name}", inner) for name, inner in value.items() if type(inner) is not list)
    elif keyword in SCHEMAS:
        yield "", value


def map_subschemas(keyword: str, value: JsonValue, made: Callable[[JsonValue], JsonValue]) -> JsonValue:
    """Return a keyword's value with each direct subschema replaced by the result of `made`."""
    if keyword in MAPS and type(value) is dict:
        return {name: made(inner) for name, inner in value.items()}
    if type(value) is list and (keyword in LISTS or keyword == "items"):
        return [made(inner) for inner in value]
    if keyword == "dependencies" and type(value) is dict:
        return {name: inner if type(inner) is list else made(inner) for name, inner in value.items()}
    return made(value) if keyword in SCHEMAS else value


def is_schema(value: JsonValue) -> bool:
    """Return True if a value can be a schema: an object or a boolean."""
    return type(value) is dict or type(value) is bool


class SchemaRefused(Exception):
    """A schema that a dialect cannot express."""


class SchemaRewriter:
    """A rewriter of one schema, which records the lost keywords.

    A subclass gives the policies of its dialect as a table, and overrides the methods where a policy depends on more
    than the keyword.
    """

    policies: ClassVar[Mapping[str, Policy]] = {}
    other: ClassVar[Policy] = "keep"
    """The policy of keywords that are not in the table."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        """The lost keywords in their order, some repeatedly."""

    @property
    def losses(self) -> tuple[str, ...]:
        """The lost keywords, each once."""
        return tuple(dict.fromkeys(self.lost))

    def schema(self, given: Schema) -> Schema:
        """Return a schema as the dialect accepts it.

        Raises:
            SchemaRefused: The dialect cannot express it.
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
        """Return the policy of a keyword with a value."""
        return self.policies.get(keyword, self.other)

    def value(self, keyword: str, value: JsonValue, given: Schema) -> JsonValue:
        """Return the value of a kept keyword with its subschemas rewritten."""
        return map_subschemas(keyword, value, partial(self.entry, keyword))

    def entry(self, keyword: str, value: JsonValue) -> JsonValue:
        """Rewrite a subschema. A value that is not an object stays unchanged."""
        return self.schema(value) if type(value) is dict else value

    def finish(self, made: Schema, given: Schema) -> Schema:
        """Apply the changes that depend on several keywords to a rewritten schema."""
        return made
