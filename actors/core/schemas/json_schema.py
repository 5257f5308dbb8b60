"""Walk a JSON Schema: the keywords that hold other schemas, and the rewriter that all dialects share.

A rewriter visits a schema and the schemas inside of it, keyword by keyword. A subclass is the table of one dialect: for
each keyword a policy, and code only for the rest.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar, Literal, TypeAlias

from actors.core.data.jsonio import JsonValue

Schema: TypeAlias = dict[str, JsonValue]
Policy: TypeAlias = Literal["keep", "drop", "lose", "refuse"]
"""Keep a keyword, drop it because nothing is lost, drop it and report the loss, or refuse the whole schema."""

MAPS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
"""Keywords of an object whose every entry is a schema."""
LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
"""Keywords of a list of schemas."""
SCHEMAS = frozenset(
    """items additionalProperties not contains if then else propertyNames unevaluatedProperties unevaluatedItems
    additionalItems contentSchema""".split()  # noqa: SIM905  as a list it is a page
)
"""Keywords of one schema. Older drafts also take a list of them under `items`."""


def entries(keyword: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield what stands under a keyword where schemas must stand, each with its path behind the keyword."""
    if keyword in MAPS and type(value) is dict:
        yield from ((f".{name}", inner) for name, inner in value.items())
    elif type(value) is list and (keyword in LISTS or keyword == "items"):
        yield from ((f"[{at}]", inner) for at, inner in enumerate(value))
    elif keyword == "dependencies" and type(value) is dict:  # of older drafts: a schema, or a list of keys
        yield from ((f".{name}", inner) for name, inner in value.items() if type(inner) is not list)
    elif keyword in SCHEMAS:
        yield "", value


def map_subschemas(keyword: str, value: JsonValue, made: Callable[[JsonValue], JsonValue]) -> JsonValue:
    """Return a keyword's value, each schema directly in it replaced by the result of `made`."""
    if keyword in MAPS and type(value) is dict:
        return {name: made(inner) for name, inner in value.items()}
    if type(value) is list and (keyword in LISTS or keyword == "items"):
        return [made(inner) for inner in value]
    if keyword == "dependencies" and type(value) is dict:
        return {name: inner if type(inner) is list else made(inner) for name, inner in value.items()}
    return made(value) if keyword in SCHEMAS else value


def is_schema(value: JsonValue) -> bool:
    """Say whether a value can be a schema at all: an object, or a boolean."""
    return type(value) is dict or type(value) is bool


class SchemaRefused(Exception):
    """A schema that a dialect cannot express."""


class SchemaRewriter:
    """Rewrites one schema and records the keywords that it loses.

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
        """Return the value of a keyword that is kept, the schemas inside of it rewritten."""
        return map_subschemas(keyword, value, partial(self.entry, keyword))

    def entry(self, keyword: str, value: JsonValue) -> JsonValue:
        """Return a schema inside of a keyword's value. A value that is not an object stays as it is."""
        return self.schema(value) if type(value) is dict else value

    def finish(self, made: Schema, given: Schema) -> Schema:
        """Return a rewritten schema with the changes that depend on several of its keywords."""
        return made
