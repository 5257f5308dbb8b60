"""A JSON Schema as hosts walk it: the schemas in it, and what a reference names."""

from collections.abc import Callable, Iterable, Iterator

from actors.strict.rules.base import Json, is_object

DEFINITIONS = ("$defs", "definitions")


def nodes(schema: Json, below: Callable[[dict[str, Json]], Iterable[Json]]) -> Iterator[dict[str, Json]]:
    """Yield a schema and those in it: its definitions, and what the host finds `below` each."""
    if not is_object(schema):
        return
    yield schema
    for key in (key for key in DEFINITIONS if is_object(schema.get(key))):
        for inner in schema[key].values():
            yield from nodes(inner, below)
    for inner in below(schema):
        yield from nodes(inner, below)


def definition_of(reference: Json, root: Json) -> Json:
    """Return the definition at the top that a reference names; None if it names none."""
    where, key, name = [*str(reference).split("/", 2), "", ""][:3]
    definitions = root.get(key) if where == "#" and key in DEFINITIONS else None
    return definitions.get(name) if is_object(definitions) else None
