"""Walk a JSON Schema like a host: its subschemas and references."""

from collections.abc import Callable, Iterable, Iterator

from actors.strict.rules.base import Json, is_object

DEFINITIONS = ("$defs", "definitions")


def nodes(schema: Json, below: Callable[[dict[str, Json]], Iterable[Json]]) -> Iterator[dict[str, Json]]:
    """Yield a schema and its subschemas: its definitions, and those that `below` returns."""
    if not is_object(schema):
        return
    yield schema
    for key in (key for key in DEFINITIONS if is_object(schema.get(key))):
        for inner in schema[key].values():
            yield from nodes(inner, below)
    for inner in below(schema):
        yield from nodes(inner, below)


def definition(reference: Json, root: Json) -> Json:
    """Return the root definition of a reference; None if it does not exist."""
    where, key, name = [*str(reference).split("/", 2), "", ""][:3]
    definitions = root.get(key) if where == "#" and key in DEFINITIONS else None
    return definitions.get(name) if is_object(definitions) else None
