"""What every provider demands of a tool's JSON Schema: an object at the root, with properties; arrays with items.

A choice at the root is refused by most (OAC-11), and so is a reference there. Both are flattened: the root describes
every property that any arm describes, and demands what every arm demands. What one schema cannot say, such as which
properties go together, is left out, and the keyword is named. A schema that needs nothing stays the bytes it was.
Arguments are validated against the tool's own schema before anything runs, so what is left out here costs guidance
and no safety.
"""

from collections.abc import Sequence
from functools import lru_cache

from actors.core.data.jsonio import Json, JsonValue, dump, parse, resolve_pointer
from actors.core.schemas.json_schema import Schema, SchemaRewriter, below

_ALTERNATIVES = ("anyOf", "oneOf")
_UNSAID = ("not", "enum", "const")  # of a whole object: nothing that a root may say
_FLATTENED = frozenset({"$ref", "allOf", *_ALTERNATIVES, *_UNSAID})
_SILENT = frozenset(
    "$schema $id $anchor $comment $defs definitions title description default examples".split()  # noqa: SIM905  as a list it is a page
)
"""What an arm says that is not about the arguments."""
_TOGETHER = frozenset({"if", "then", "else"})
_MOST = 200  # arms of one schema, counting each as often as references reach it: they also bound our stack
_LONGEST = 32  # references in a row


def nodes(schema: JsonValue) -> list[Schema]:
    """Return a schema and all schemas in it, itself first."""
    found: list[Schema] = []

    def take(inner: JsonValue) -> JsonValue:
        if type(inner) is dict:
            found.append(inner)
            for key, value in inner.items():
                below(key, value, take)
        return inner

    take(schema)
    return found


def listed(value: JsonValue) -> list[JsonValue]:
    """Return a list, an empty one for what is none."""
    return value if type(value) is list else []


@lru_cache(maxsize=1024)  # a session declares the same tools in every request
def rooted(schema: Json) -> tuple[Json, tuple[str, ...]]:
    """Return a schema that any provider takes at its root, and the keywords of which something was left out."""
    value = parse(schema)
    if type(value) is not dict:
        return schema, ()
    rooting = _Rooting(value)
    made = rooting.schema(rooting.root)
    return (schema, ()) if made == value else (dump(made), rooting.losses)


class _Rooting(SchemaRewriter):
    """Flattens the root of a schema. Inside of it, arrays get items, and references to dropped schemas go."""

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self._given = schema
        self._left = _MOST
        flat = self._flat({**schema, "type": "object"}, ()) or {}
        self.root: Schema = {"type": "object", "properties": {}, **flat}

    def finish(self, made: Schema, given: Schema) -> Schema:
        reference = made.get("$ref")
        is_local = type(reference) is str and reference.startswith("#/")
        if is_local and resolve_pointer(self.root, str(reference)) is None:
            del made["$ref"]
            self.lost.append("$ref")
        kinds = given.get("type")
        is_array = kinds == "array" or "array" in listed(kinds)
        return {**made, "items": {}} if is_array and "items" not in made else made

    def _flat(self, schema: JsonValue, followed: tuple[str, ...]) -> Schema | None:
        """Return a schema without reference or choice at its root; None for one that no object is of."""
        self._left -= 1
        if schema is True:
            return {}
        if self._left < 0 or type(schema) is not dict:
            return None
        if schema.get("type", "object") not in ("object", ["object"]):
            return None
        made = {key: value for key, value in schema.items() if key not in _FLATTENED}
        self.lost += [keyword for keyword in _UNSAID if keyword in schema]
        if "$ref" in schema:
            made = self._both(made, self._followed(schema["$ref"], followed))
        for item in listed(schema.get("allOf")):
            made = self._both(made, self._arm("allOf", item, followed))
        for keyword in _ALTERNATIVES:
            if keyword in schema:
                made = self._both(made, self._either(keyword, listed(schema[keyword]), followed))
        return made

    def _followed(self, reference: JsonValue, followed: tuple[str, ...]) -> Schema:
        """Return what a reference at the root names; nothing of one that leads back to itself."""
        if type(reference) is not str or reference in followed or len(followed) == _LONGEST:
            self.lost.append("$ref")
            return {}
        return self._arm("$ref", resolve_pointer(self._given, reference), (*followed, reference))

    def _arm(self, keyword: str, item: JsonValue, followed: tuple[str, ...]) -> Schema:
        """Return what must hold besides; nothing, and a loss, where no object can be of it."""
        flat = self._flat(item, followed)
        if flat is None:
            self.lost.append(keyword)
        return flat or {}

    def _either(self, keyword: str, items: Sequence[JsonValue], followed: tuple[str, ...]) -> Schema:
        """Return what several arms describe together. Arms that differ say more than that: it is lost."""
        arms = [flat for item in items if (flat := self._flat(item, followed)) is not None]
        is_whole = bool(arms) and self._left >= 0
        if not is_whole or any(arm != arms[0] for arm in arms):
            self.lost.append(keyword)
        return _united(arms) if is_whole else {}

    def _both(self, first: Schema, second: Schema) -> Schema:
        """Return one schema for two that both hold. Where they differ in a keyword, the first one's stands."""
        made = dict(first)
        for key, value in second.items():
            before = made.get(key)
            if key in _SILENT or (key in made and before == value):
                continue
            if key == "properties" and type(before) is dict and type(value) is dict:
                made[key] = self._members(before, value)
            elif key == "required" and type(before) is list and type(value) is list:
                made[key] = [*before, *(name for name in value if name not in before)]
            elif key in made or key in _TOGETHER:
                self.lost.append(key)
            else:
                made[key] = value
        return made

    def _members(self, first: Schema, second: Schema) -> Schema:
        made = dict(first)
        for name, value in second.items():
            before = made.get(name, True)
            if type(before) is dict and type(value) is dict:
                made[name] = self._both(before, value)
            elif before is True:
                made[name] = value
        return made


def _united(arms: Sequence[Schema]) -> Schema:
    """Return what holds for an object of any of the arms, with every property that one of them describes."""
    made = {
        key: value
        for key, value in arms[0].items()
        if all(key in arm and arm[key] == value for arm in arms) and key not in _SILENT
    }
    variants: dict[str, list[JsonValue]] = {}
    for arm in arms:
        members = arm.get("properties")
        for name, value in members.items() if type(members) is dict else ():
            known = variants.setdefault(name, [])
            known += [value] if value not in known else []
    demands = [listed(arm.get("required")) for arm in arms]
    shared = [name for name in demands[0] if all(name in others for others in demands)]
    if variants:
        made["properties"] = {
            name: found[0] if len(found) == 1 else {"anyOf": found} for name, found in variants.items()
        }
    return {**made, "required": shared} if shared else made
