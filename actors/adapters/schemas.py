"""What every provider demands of a tool's JSON Schema: an object at the root, with properties; arrays with items.

A choice at the root is refused by most (OAC-11), and so is a reference there. Both are flattened: the root describes
every property that any arm describes, and demands what every arm demands. What one schema cannot say, such as which
properties go together, is left out, and the keyword is named. A schema that needs nothing stays the bytes it was.
Arguments are validated against the tool's own schema before anything runs, so what is left out here costs guidance
and no safety.
"""

from collections.abc import Sequence
from functools import lru_cache, reduce

from actors.core.jsonio import Json, JsonValue, dump, parse, pointed

_MAPS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS = frozenset({"items", "additionalProperties", "not", "contains", "if", "then", "else"})

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

_Schema = dict[str, JsonValue]


@lru_cache(maxsize=1024)  # a session declares the same tools in every request
def rooted(schema: Json) -> tuple[Json, tuple[str, ...]]:
    """Return a schema that any provider takes at its root, and the keywords of which something was left out."""
    value = parse(schema)
    if type(value) is not dict:
        return schema, ()
    made = _Rooting(value)
    return (schema, ()) if made.root == value else (dump(made.root), tuple(dict.fromkeys(made.lost)))


class _Rooting:
    """Makes the root of one schema, and keeps what is lost on the way.

    Attributes:
        root: What came of it.
        lost: Keywords of which something was left out, in order, some repeatedly.
    """

    def __init__(self, schema: _Schema) -> None:
        self._given = schema
        self._left = _MOST
        self.lost: list[str] = []
        flat: _Schema = {"type": "object", "properties": {}}
        flat |= self._flat({**schema, "type": "object"}, ()) or {}
        self._referred = flat
        self.root = {key: self._sanitised_under(key, value) for key, value in flat.items()}

    # --- the root --------------------------------------------------------------------------------

    def _flat(self, schema: JsonValue, followed: tuple[str, ...]) -> _Schema | None:
        """Return a schema without reference or choice at its root; None for one that no object is of."""
        self._left -= 1
        if schema is True:
            return {}
        if (
            self._left < 0
            or type(schema) is not dict
            or schema.get("type", "object") not in ("object", ["object"])
        ):
            return None
        made = {key: value for key, value in schema.items() if key not in _FLATTENED}
        self.lost += [keyword for keyword in _UNSAID if keyword in schema]
        if "$ref" in schema:
            made = self._both(made, self._followed(schema["$ref"], followed))
        for item in _listed(schema.get("allOf")):
            made = self._both(made, self._arm("allOf", item, followed))
        for keyword in _ALTERNATIVES:
            if keyword in schema:
                made = self._both(made, self._either(keyword, _listed(schema[keyword]), followed))
        return made

    def _followed(self, reference: JsonValue, followed: tuple[str, ...]) -> _Schema:
        """Return what a reference at the root names; nothing of one that leads back to itself."""
        if type(reference) is not str or reference in followed or len(followed) == _LONGEST:
            self.lost.append("$ref")
            return {}
        return self._arm("$ref", pointed(self._given, reference), (*followed, reference))

    def _arm(self, keyword: str, item: JsonValue, followed: tuple[str, ...]) -> _Schema:
        """Return what must hold besides; nothing, and a loss, where no object can be of it."""
        flat = self._flat(item, followed)
        if flat is None:
            self.lost.append(keyword)
        return flat or {}

    def _either(self, keyword: str, items: Sequence[JsonValue], followed: tuple[str, ...]) -> _Schema:
        """Return what several arms describe together. Arms that differ say more than that: it is lost."""
        arms = [flat for item in items if (flat := self._flat(item, followed)) is not None]
        is_whole = bool(arms) and self._left >= 0
        if not is_whole or any(arm != arms[0] for arm in arms):
            self.lost.append(keyword)
        return _united(arms) if is_whole else {}

    def _both(self, first: _Schema, second: _Schema) -> _Schema:
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

    def _members(self, first: _Schema, second: _Schema) -> _Schema:
        made = dict(first)
        for name, value in second.items():
            before = made.get(name, True)
            if type(before) is dict and type(value) is dict:
                made[name] = self._both(before, value)
            elif before is True:
                made[name] = value
        return made

    # --- what it holds ---------------------------------------------------------------------------

    def _sanitised_under(self, key: str, value: JsonValue) -> JsonValue:
        """Return what stands under a keyword, mended."""
        if key in _MAPS and type(value) is dict:
            return {name: self._sanitised(inner) for name, inner in value.items()}
        if key in _LISTS and type(value) is list:
            return [self._sanitised(inner) for inner in value]
        return self._sanitised(value) if key in _SCHEMAS else value

    def _sanitised(self, schema: JsonValue) -> JsonValue:
        """Return an inner schema, every array in it with items, and no reference to what is left out."""
        if type(schema) is not dict:
            return schema
        made = {key: self._sanitised_under(key, value) for key, value in schema.items()}
        reference = made.get("$ref")
        if (
            type(reference) is str
            and reference.startswith("#/")
            and pointed(self._referred, reference) is None
        ):
            del made["$ref"]
            self.lost.append("$ref")
        kinds = schema.get("type")
        is_array = kinds == "array" or (type(kinds) is list and "array" in kinds)
        return {**made, "items": {}} if is_array and "items" not in made else made


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if type(value) is list else []


def _united(arms: Sequence[_Schema]) -> _Schema:
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
    shared = reduce(_shared, [_listed(arm.get("required")) for arm in arms])
    if variants:
        made["properties"] = {
            name: found[0] if len(found) == 1 else {"anyOf": found} for name, found in variants.items()
        }
    return {**made, "required": shared} if shared else made


def _shared(first: list[JsonValue], second: list[JsonValue]) -> list[JsonValue]:
    return [name for name in first if name in second]
