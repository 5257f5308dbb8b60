"""Traverse the subschemas and references of a JSON Schema, as a provider's host does."""

from collections.abc import Callable, Iterable, Iterator

from actors.strict.rules.base import Json, is_object

DEFINITIONS = ("$defs", "definitions")


def schema_nodes(
    schema: Json, subschemas_of: Callable[[dict[str, Json]], Iterable[Json]]
) -> Iterator[dict[str, Json]]:
    """Yield a schema, all schemas in its definitions, and all subschemas that `subschemas_of` returns."""
    if not is_object(schema):
        return
    yield schema
    for key in (key for key in DEFINITIONS if is_object(schema.get(key))):
        for inner in schema[key].values():
            yield from schema_nodes(inner, subschemas_of)
    for inner in subschemas_of(schema):
        yield from schema_nodes(inner, subschemas_of)


def resolve_definition(reference: Json, root: Json) -> Json:
    """Return the definition to which a reference such as `#/$defs/A` points; None if it does not exist."""
    where, key, name = [*str(reference).split("/", 2), "", ""][:3]
    definitions = root.get(key) if where == "#" and key in DEFINITIONS else None
    return definitions.get(name) if is_object(definitions) else None
