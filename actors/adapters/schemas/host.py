"""Adapt a tool's JSON Schema to a host, and rename the property keys that the host rejects.

In:  a schema of any origin, and the host's rules for keys and patterns.
Out: the schema to declare; the keywords that lost something; the new keys, each with the tool's own key.

A value in place of a schema becomes the schema of anything (OAC-11). Patterns without an equivalent grammar are
dropped (CMP-03). Keys that the host rejects are renamed, with all references to them (ANT-57). Arguments are
validated against the tool's own schema before it runs, so this weakens the guidance, not the validation.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from actors.adapters.schemas.rooted import nodes, root_schema
from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.models.rules import Patterns
from actors.core.schemas.json_schema import LISTS, MAPS, Policy, Schema, SchemaRewriter, is_schema
from actors.core.schemas.property_keys import property_key

_ESCAPES = re.compile(r"\\.", re.DOTALL)
_SPECIAL_GROUP = re.compile(r"\(\?(?!:)")
"""The start of a lookaround, a named group or a flag."""
_KEYED = ("properties", "dependentSchemas", "dependentRequired", "dependencies")
_KEY_LISTS = ("dependentRequired", "dependencies")
_NAMING = {"propertyNames": ("enum", "const"), "discriminator": ("propertyName",)}
"""Keywords that name keys, with the fields in which they do."""


class HostSchema(NamedTuple):
    """A schema as a host accepts it.

    `losses` are the keywords that lost something. `keys` maps each new key to the tool's own key.
    """

    schema: Json
    losses: tuple[str, ...]
    keys: Mapping[str, str]


@lru_cache(maxsize=1024)  # a session declares the same tools in every request
def host_schema(schema: Json, patterns: Patterns = "any", key_pattern: str | None = None) -> HostSchema:
    """Return a schema as a host accepts it. An acceptable schema is returned as the same bytes.

    Args:
        patterns: The patterns that the host accepts (`RequestRules.patterns`).
        key_pattern: A pattern that every property key must match in full; None accepts all.
    """
    given = parse(schema)
    if type(given) is not dict:
        return HostSchema(schema, (), {})
    pruning = _Pruning(patterns)
    pruned = pruning.schema(given)
    rooted, lost = root_schema(dump(pruned) if pruning.lost else schema)
    losses = tuple(dict.fromkeys((*pruning.losses, *lost)))
    root = parse(rooted)
    keys: Mapping[str, str] = _made_keys(root, key_pattern) if key_pattern is not None else {}
    if not keys or type(root) is not dict:
        return HostSchema(rooted, losses, {})
    renamed = _Renaming({own: made for made, own in keys.items()}).schema(root)
    return HostSchema(dump(renamed), losses, keys)


class _Pruning(SchemaRewriter):
    """Drops keywords with a wrong type of value, and patterns that the host cannot compile."""

    def __init__(self, patterns: Patterns) -> None:
        super().__init__()
        self._patterns = patterns

    def policy(self, keyword: str, value: JsonValue) -> Policy:
        is_lost = (
            (keyword == "pattern" and not self._accepts(value))
            or (keyword in MAPS and type(value) is not dict)
            or (keyword in LISTS and type(value) is not list)
        )
        return "lose" if is_lost else "keep"

    def value(self, keyword: str, value: JsonValue, given: Schema) -> JsonValue:
        if keyword == "patternProperties" and type(value) is dict:
            kept = {pattern: inner for pattern, inner in value.items() if self._accepts(pattern)}
            self.lost += [keyword] if len(kept) < len(value) else []
            value = kept
        return super().value(keyword, value, given)

    def entry(self, keyword: str, value: JsonValue) -> JsonValue:
        if is_schema(value):
            return super().entry(keyword, value)
        self.lost.append(keyword)
        return {}

    def _accepts(self, pattern: JsonValue) -> bool:
        if self._patterns == "any" or type(pattern) is not str:
            return True
        return self._patterns == "plain" and not _SPECIAL_GROUP.search(_ESCAPES.sub("", pattern))


def _made_keys(schema: JsonValue, pattern: str) -> Mapping[str, str]:
    """Return a new key for each key that does not match the pattern, mapped to the schema's own key."""
    owned = dict.fromkeys(key for node in nodes(schema) for key in _keys_of(node))
    keys: dict[str, str] = {}
    for own in owned:
        if re.fullmatch(pattern, own):
            continue
        probe = 0
        while (made := property_key(own, pattern, probe)) in owned or made in keys:
            probe += 1
        keys[made] = own
    return keys


def _keys_of(node: Schema) -> Iterator[str]:
    """Yield the keys of properties in all keywords that name them."""
    for keyword in _KEYED:
        if type(value := node.get(keyword)) is dict:
            yield from value
    listed = [node.get("required")]
    for keyword in _KEY_LISTS:
        if type(value := node.get(keyword)) is dict:
            listed += value.values()
    yield from (key for keys in listed if type(keys) is list for key in keys if type(key) is str)


class _Renaming(SchemaRewriter):
    """Renames the keys of properties wherever a schema names them."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names

    def value(self, keyword: str, value: JsonValue, given: Schema) -> JsonValue:
        if keyword == "required":
            return self._rename(value)
        if keyword == "$ref" and type(value) is str:
            return self._reference(value)
        if keyword in _NAMING and type(value) is dict:
            named = _NAMING[keyword]
            return {key: self._rename(item) if key in named else item for key, item in value.items()}
        value = super().value(keyword, value, given)
        if keyword not in _KEYED or type(value) is not dict:
            return value
        return {self._names.get(key, key): self._rename_entry(item) for key, item in value.items()}

    def _rename_entry(self, value: JsonValue) -> JsonValue:
        """Return the value of a keyed entry with renamed keys: a schema, or a list of keys."""
        return self._rename(value) if type(value) is list else value

    def _rename(self, value: JsonValue) -> JsonValue:
        if type(value) is list:
            return [self._rename(item) for item in value]
        return self._names.get(value, value) if type(value) is str else value

    def _reference(self, reference: str) -> str:
        """Return a reference with the new names of the keys in its path."""
        from urllib.parse import quote, unquote  # imported lazily, as few schemas refer to themselves

        tokens = reference.split("/")
        for at in range(1, len(tokens)):
            key = unquote(tokens[at]).replace("~1", "/").replace("~0", "~")
            if tokens[at - 1] in _KEYED and key in self._names:
                tokens[at] = quote(self._names[key].replace("~", "~0"))
        return "/".join(tokens)
