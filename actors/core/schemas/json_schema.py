"""Where a JSON Schema holds other schemas, by keyword."""

from collections.abc import Callable, Iterator

from actors.core.data.jsonio import JsonValue

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


def below(keyword: str, value: JsonValue, made: Callable[[JsonValue], JsonValue]) -> JsonValue:
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
