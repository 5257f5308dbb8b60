"""Check the shape of a JSON value against a table, with the refusals of a host.

In:  a value, its shape, and its path for refusals.
Out: no result, or the refusal of the first fault, in the order of the table.

A shape is data:

    str, int, bool, dict, list    a value of this JSON type
    object                        any value
    Word("a", "b")                one of these values
    ArrayOf(shape)                an array
    Fields({"name": shape})       an object with these keys; `Maybe(shape)` is a key that may be absent
    OneMember({"name": shape})    an object with exactly one of these keys
    Tagged("type", {"a": shape})  an object whose tag names its shape
    Then(shape, check)            a shape, and a check of such a value

A check is a function of the value, its path and the context of the walk. It raises the refusal of a rule that no table
can express. Hosts differ in rules, messages and paths; `ShapeWalk` is the walk that all hosts share.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from actors.strict.rules.base import Json, RuleBroken, unknown_key

Check: TypeAlias = Callable[[Json, str, Any], None]
"""A function that raises the refusal of a value. Its arguments are the value, its path, and the context of the walk."""


class Word:
    """One of these values. With `typed`, a value that is not a string is a separate fault."""

    __slots__ = ("typed", "values")

    def __init__(self, *values: str, typed: bool = False) -> None:
        self.values: tuple[str, ...] = values
        self.typed: bool = typed


@dataclass(frozen=True, slots=True)
class Maybe:
    """An optional key. With `null`, a null value counts as absent."""

    shape: "Shape"
    null: bool = False


@dataclass(frozen=True, slots=True)
class Then:
    """A value of a shape, with a further `check`."""

    shape: "Shape"
    check: Check


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array. `check` runs before the items are checked."""

    shape: "Shape"
    check: Check | None = None


class Fields:
    """An object.

    Args:
        fields: The keys, in the order in which they are checked.
        closed: When unknown keys are refused: before the fields, after them, or never (`open`).
        ahead: A check before the fields, and after the unknown keys if they are refused first.
        check: A check at the end.
    """

    __slots__ = ("ahead", "check", "closed", "fields", "names")

    def __init__(
        self,
        fields: Mapping[str, "Shape | Maybe"],
        *,
        closed: Literal["first", "last", "open"] = "first",
        ahead: Check | None = None,
        check: Check | None = None,
    ) -> None:
        self.fields: Mapping[str, Shape | Maybe] = fields
        self.names: frozenset[str] = frozenset(fields)
        self.closed = closed
        self.ahead: Check | None = ahead
        self.check: Check | None = check


class OneMember:
    """An object with exactly one of these keys.

    Args:
        shapes: The shape of the value, by key.
        named: Whether the path of the value contains the key.
        ahead: A check after the unknown keys, before the keys are counted.
    """

    __slots__ = ("ahead", "named", "names", "shapes")

    def __init__(
        self, shapes: Mapping[str, "Shape"], *, named: bool = True, ahead: Check | None = None
    ) -> None:
        self.shapes: Mapping[str, Shape] = shapes
        self.names: frozenset[str] = frozenset(shapes)
        self.named: bool = named
        self.ahead: Check | None = ahead


@dataclass(frozen=True, slots=True)
class Tagged:
    """An object whose `tag` names its shape.

    Args:
        listed: The tags in the order in which a refusal lists them.
        typed: Whether a tag that is not a string is a separate fault.
        ahead: A check of an object with a known tag, before its shape.
    """

    tag: str
    shapes: Mapping[str, "Fields"]
    listed: tuple[str, ...] = ()
    ahead: Check | None = None
    typed: bool = True


Shape: TypeAlias = type | Word | ArrayOf | Fields | OneMember | Tagged | Then


class ShapeWalk:
    """Checks a JSON value against a shape. Each host has a subclass, which formats the paths and builds the errors."""

    def key(self, path: str, key: str) -> str:
        """Return the path of a member of an object."""
        return f"{path}.{key}" if path else key

    def item(self, path: str, at: int) -> str:
        """Return the path of an item of an array."""
        return f"{path}[{at}]"

    def variant(self, path: str, tag: str) -> str:
        """Return the path of an object with a tag."""
        return path

    def wrong_type(self, path: str, wanted: type, value: Json) -> RuleBroken:
        """Return the refusal of a value of another JSON type."""
        raise NotImplementedError

    def wrong_word(self, path: str, value: Json, shape: Word) -> RuleBroken:
        """Return the refusal of a value that is not among the words."""
        raise NotImplementedError

    def wrong_tag(self, path: str, value: Json, shape: Tagged) -> RuleBroken:
        """Return the refusal of an object with an unknown tag."""
        raise NotImplementedError

    def missing(self, path: str, key: str) -> RuleBroken:
        """Return the refusal of an object without a key."""
        raise NotImplementedError

    def unknown(self, path: str, key: str) -> RuleBroken:
        """Return the refusal of an unknown key."""
        raise NotImplementedError

    def count(self, path: str, count: int) -> RuleBroken:
        """Return the refusal of an object that does not have exactly one key."""
        raise NotImplementedError

    def require_type(self, value: Json, wanted: type, path: str) -> Json:
        """Return a value of a required JSON type."""
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise self.wrong_type(path, wanted, value)
        return value

    def require(self, value: Mapping[str, Json], key: str, path: str) -> Json:
        """Return the value of a required key."""
        if key not in value:
            raise self.missing(path, key)
        return value[key]

    def member(self, value: Mapping[str, Json], key: str, wanted: type, path: str = "") -> Json:
        """Return the value of a required key, of a JSON type."""
        return self.require_type(self.require(value, key, path), wanted, self.key(path, key))

    def optional(self, value: Mapping[str, Json], key: str, wanted: type, path: str = "") -> Json:
        """Return the value of a key, of a JSON type; None if the key is absent or null."""
        found = value.get(key)
        return None if found is None else self.require_type(found, wanted, self.key(path, key))

    def only(self, value: Mapping[str, Json], allowed: frozenset[str], path: str) -> None:
        """Refuse unknown keys."""
        if (key := unknown_key(value, allowed)) is not None:
            raise self.unknown(path, key)

    def check(self, value: Json, shape: Shape, path: str, context: object = None) -> None:
        """Check a value.

        Raises:
            RuleBroken: At the first fault.
        """
        match shape:
            case Fields():
                self._fields(value, shape, path, context)
            case Then(shape=inner, check=check):
                self.check(value, inner, path, context)
                check(value, path, context)
            case ArrayOf(shape=inner, check=ahead):
                self.require_type(value, list, path)
                _run(ahead, value, path, context)
                for at, each in enumerate(value):
                    self.check(each, inner, self.item(path, at), context)
            case Word():
                self._word(value, shape, path)
            case OneMember():
                self._member(value, shape, path, context)
            case Tagged():
                self._check_tagged(value, shape, path, context)
            case _:
                self.require_type(value, shape, path)

    def _word(self, value: Json, shape: Word, path: str) -> None:
        if shape.typed:
            self.require_type(value, str, path)
        if value not in shape.values:
            raise self.wrong_word(path, value, shape)

    def _fields(self, value: Json, shape: Fields, path: str, context: object) -> None:
        self.require_type(value, dict, path)
        if shape.closed == "first":
            self.only(value, shape.names, path)
        _run(shape.ahead, value, path, context)
        for key, inner in shape.fields.items():
            self._field(value, key, inner, path, context)
        if shape.closed == "last":
            self.only(value, shape.names, path)
        _run(shape.check, value, path, context)

    def _field(self, value: Json, key: str, shape: Shape | Maybe, path: str, context: object) -> None:
        if isinstance(shape, Maybe):
            if key not in value or (shape.null and value[key] is None):
                return
            shape = shape.shape
        elif key not in value and not (isinstance(shape, Word) and not shape.typed):
            raise self.missing(path, key)
        if shape is not object:
            self.check(value.get(key), shape, self.key(path, key), context)

    def _member(self, value: Json, shape: OneMember, path: str, context: object) -> None:
        self.require_type(value, dict, path)
        self.only(value, shape.names, path)
        _run(shape.ahead, value, path, context)
        if len(value) != 1:
            raise self.count(path, len(value))
        ((key, inner),) = value.items()
        self.check(inner, shape.shapes[key], self.key(path, key) if shape.named else path, context)

    def _check_tagged(self, value: Json, shape: Tagged, path: str, context: object) -> None:
        self.require_type(value, dict, path)
        tag = self.require(value, shape.tag, path)
        if shape.typed:
            self.require_type(tag, str, self.key(path, shape.tag))
        if not isinstance(tag, str) or tag not in shape.shapes:
            raise self.wrong_tag(path, tag, shape)
        _run(shape.ahead, value, path, context)
        self.check(value, shape.shapes[tag], self.variant(path, tag), context)


def _run(check: Check | None, value: Json, path: str, context: object) -> None:
    if check is not None:
        check(value, path, context)
