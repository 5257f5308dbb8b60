"""Check the shape of a JSON value against a table, with a host's error messages.

In:  a value, its shape, and its path for error messages.
Out: nothing if the value fits the shape. Otherwise, `RuleBroken` is raised for the first fault in table order.

A shape is data:

    str, int, bool, dict, list    a value of this JSON type
    object                        any value
    Word("a", "b")                one of these strings
    ArrayOf(shape)                an array
    Fields({"name": shape})       an object with these keys; `Maybe(shape)` is a key that may be absent
    OneMember({"name": shape})    an object with exactly one of these keys
    Tagged("type", {"a": shape})  an object whose tag selects its shape
    Then(shape, check)            a shape, and a further check of the value

A check is a function of the value, its path and the context that the caller passed. It raises `RuleBroken` for a rule
that cannot be expressed in a table. Hosts differ in rules, messages and paths; `ShapeChecker` contains the shared code.
OpenAI's APIs, Chat Completions and Responses, refuse the same faults under different rule ids, so the rules are
arguments.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from actors.strict.rules.base import Json, RuleBroken, ServerRule, json_type_name, unknown_key

Check: TypeAlias = Callable[[Json, str, Any], None]
"""A function that raises the refusal of an invalid value. Its arguments are the value, its path, and the context that
the caller passed to `ShapeChecker.check`."""
_TYPES: Mapping[type, str] = {
    str: "a string",
    dict: "an object",
    list: "an array of objects",
    bool: "a boolean",
    float: "a decimal",
    object: "any value",
}


class Word:
    """The shape of a string that must be one of `values`.

    If `reports_wrong_type` is True, a value that is not a string is refused as a wrong type, not as a wrong word.
    """

    __slots__ = ("reports_wrong_type", "values")

    def __init__(self, *values: str, reports_wrong_type: bool = False) -> None:
        self.values: tuple[str, ...] = values
        self.reports_wrong_type: bool = reports_wrong_type


@dataclass(frozen=True, slots=True)
class Maybe:
    """The shape of a key that may be absent. If `null` is True, a null value counts as absent."""

    shape: "Shape"
    null: bool = False


@dataclass(frozen=True, slots=True)
class Then:
    """A shape, and a further `check` that runs if the value has this shape."""

    shape: "Shape"
    check: Check


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """The shape of an array whose items all have the shape `shape`. `check` runs before the items are checked."""

    shape: "Shape"
    check: Check | None = None


class Fields:
    """The shape of an object with known keys.

    Args:
        fields: The keys, in the order in which they are checked.
        closed: When unknown keys are refused: before the fields are checked (`first`), afterwards (`last`), or never
            (`open`).
        precheck: A check that runs before the fields are checked. If `closed` is `first`, unknown keys are refused even
            earlier.
        check: A check that runs at the end.
    """

    __slots__ = ("check", "closed", "fields", "names", "precheck")

    def __init__(
        self,
        fields: Mapping[str, "Shape | Maybe"],
        *,
        closed: Literal["first", "last", "open"] = "first",
        precheck: Check | None = None,
        check: Check | None = None,
    ) -> None:
        self.fields: Mapping[str, Shape | Maybe] = fields
        self.names: frozenset[str] = frozenset(fields)
        self.closed = closed
        self.precheck: Check | None = precheck
        self.check: Check | None = check


class OneMember:
    """The shape of an object with exactly one of these keys.

    Args:
        shapes: The shape of the value, by key.
        is_key_in_path: Whether the path of the value contains the key.
        precheck: A check that runs after unknown keys are refused, and before the keys are counted.
    """

    __slots__ = ("is_key_in_path", "names", "precheck", "shapes")

    def __init__(
        self, shapes: Mapping[str, "Shape"], *, is_key_in_path: bool = True, precheck: Check | None = None
    ) -> None:
        self.shapes: Mapping[str, Shape] = shapes
        self.names: frozenset[str] = frozenset(shapes)
        self.is_key_in_path: bool = is_key_in_path
        self.precheck: Check | None = precheck


@dataclass(frozen=True, slots=True)
class Tagged:
    """The shape of an object in which the value of the key `tag` selects the other fields.

    Args:
        tag: The key of the tag, such as `type`.
        shapes: The shape of the object, by tag.
        listed: The tags, in the order in which an error message lists them.
        precheck: A check that runs if the tag is known, before the shape is checked.
        reports_wrong_type: Whether a tag that is not a string is refused as a wrong type instead of an unknown tag.
    """

    tag: str
    shapes: Mapping[str, "Fields"]
    listed: tuple[str, ...] = ()
    precheck: Check | None = None
    reports_wrong_type: bool = True


Shape: TypeAlias = type | Word | ArrayOf | Fields | OneMember | Tagged | Then


class ShapeChecker:
    """Checks JSON values against shapes. Each host has a subclass that formats paths and builds errors."""

    def key_path(self, path: str, key: str) -> str:
        """Return the path of the value under `key` in the object at `path`."""
        return f"{path}.{key}" if path else key

    def item_path(self, path: str, index: int) -> str:
        """Return the path of the item at index `index` in the array at `path`."""
        return f"{path}[{index}]"

    def tagged_path(self, path: str, tag: str) -> str:
        """Return the path inside the tagged object at `path`. Some hosts add the tag."""
        return path

    def wrong_type_refusal(self, path: str, expected_type: type, value: Json) -> RuleBroken:
        """Return the refusal of a value that does not have the JSON type `expected_type`."""
        raise NotImplementedError

    def wrong_word_refusal(self, path: str, value: Json, shape: Word) -> RuleBroken:
        """Return the refusal of a value that is not one of the shape's values."""
        raise NotImplementedError

    def wrong_tag_refusal(self, path: str, value: Json, shape: Tagged) -> RuleBroken:
        """Return the refusal of an object whose tag is unknown."""
        raise NotImplementedError

    def missing_key_refusal(self, path: str, key: str) -> RuleBroken:
        """Return the refusal of an object in which the required `key` is missing."""
        raise NotImplementedError

    def unknown_key_refusal(self, path: str, key: str) -> RuleBroken:
        """Return the refusal of an object that has an unknown key."""
        raise NotImplementedError

    def key_count_refusal(self, path: str, count: int) -> RuleBroken:
        """Return the refusal of an object that must have exactly one key, and has `count` keys."""
        raise NotImplementedError

    def require_type(self, value: Json, expected_type: type, path: str) -> Json:
        """Return `value` if it has the JSON type `expected_type`; otherwise raise a refusal."""
        if not isinstance(value, expected_type) or (expected_type is int and isinstance(value, bool)):
            raise self.wrong_type_refusal(path, expected_type, value)
        return value

    def require(self, value: Mapping[str, Json], key: str, path: str) -> Json:
        """Return the value of a required key, or raise a refusal if the key is missing."""
        if key not in value:
            raise self.missing_key_refusal(path, key)
        return value[key]

    def required_member(
        self, value: Mapping[str, Json], key: str, expected_type: type, path: str = ""
    ) -> Json:
        """Return the value of a required key that must have the JSON type `expected_type`, or raise a refusal."""
        return self.require_type(self.require(value, key, path), expected_type, self.key_path(path, key))

    def optional_member(
        self, value: Mapping[str, Json], key: str, expected_type: type, path: str = ""
    ) -> Json:
        """Return the value of an optional key; None if the key is absent or its value is null.

        Raise a refusal if the value does not have the JSON type `expected_type`.
        """
        found = value.get(key)
        return None if found is None else self.require_type(found, expected_type, self.key_path(path, key))

    def allow_only(self, value: Mapping[str, Json], allowed: frozenset[str], path: str) -> None:
        """Refuse an object with keys that are not in `allowed`."""
        if (key := unknown_key(value, allowed)) is not None:
            raise self.unknown_key_refusal(path, key)

    def check(self, value: Json, shape: Shape, path: str, context: object = None) -> None:
        """Check a value against a shape. `context` is passed on to the checks in the shape.

        Raises:
            RuleBroken: At the first fault.
        """
        match shape:
            case Fields():
                self._check_fields(value, shape, path, context)
            case Then(shape=inner, check=check):
                self.check(value, inner, path, context)
                check(value, path, context)
            case ArrayOf(shape=inner, check=precheck):
                self.require_type(value, list, path)
                _run_check(precheck, value, path, context)
                for at, each in enumerate(value):
                    self.check(each, inner, self.item_path(path, at), context)
            case Word():
                self._check_word(value, shape, path)
            case OneMember():
                self._check_member(value, shape, path, context)
            case Tagged():
                self._check_tagged(value, shape, path, context)
            case _:
                self.require_type(value, shape, path)

    def _check_word(self, value: Json, shape: Word, path: str) -> None:
        if shape.reports_wrong_type:
            self.require_type(value, str, path)
        if value not in shape.values:
            raise self.wrong_word_refusal(path, value, shape)

    def _check_fields(self, value: Json, shape: Fields, path: str, context: object) -> None:
        self.require_type(value, dict, path)
        if shape.closed == "first":
            self.allow_only(value, shape.names, path)
        _run_check(shape.precheck, value, path, context)
        for key, inner in shape.fields.items():
            self._check_field(value, key, inner, path, context)
        if shape.closed == "last":
            self.allow_only(value, shape.names, path)
        _run_check(shape.check, value, path, context)

    def _check_field(self, value: Json, key: str, shape: Shape | Maybe, path: str, context: object) -> None:
        if isinstance(shape, Maybe):
            if key not in value or (shape.null and value[key] is None):
                return
            shape = shape.shape
        elif key not in value and not (isinstance(shape, Word) and not shape.reports_wrong_type):
            raise self.missing_key_refusal(path, key)
        if shape is not object:
            self.check(value.get(key), shape, self.key_path(path, key), context)

    def _check_member(self, value: Json, shape: OneMember, path: str, context: object) -> None:
        self.require_type(value, dict, path)
        self.allow_only(value, shape.names, path)
        _run_check(shape.precheck, value, path, context)
        if len(value) != 1:
            raise self.key_count_refusal(path, len(value))
        ((key, inner),) = value.items()
        self.check(
            inner, shape.shapes[key], self.key_path(path, key) if shape.is_key_in_path else path, context
        )

    def _check_tagged(self, value: Json, shape: Tagged, path: str, context: object) -> None:
        self.require_type(value, dict, path)
        tag = self.require(value, shape.tag, path)
        if shape.reports_wrong_type:
            self.require_type(tag, str, self.key_path(path, shape.tag))
        if not isinstance(tag, str) or tag not in shape.shapes:
            raise self.wrong_tag_refusal(path, tag, shape)
        _run_check(shape.precheck, value, path, context)
        self.check(value, shape.shapes[tag], self.tagged_path(path, tag), context)


def _run_check(check: Check | None, value: Json, path: str, context: object) -> None:
    if check is not None:
        check(value, path, context)


class OpenAIShapeChecker(ShapeChecker):
    """The shape checks for one of OpenAI's APIs.

    Args:
        type_rule: The rule that is broken by a value of a wrong JSON type.
        missing_rule: The rule that is broken by a missing key.
        unknown_rule: The rule that is broken by an unknown key.
        word_rule: The rule that is broken by a value that is not one of the allowed values.
    """

    def __init__(
        self, type_rule: ServerRule, missing_rule: ServerRule, unknown_rule: ServerRule, word_rule: ServerRule
    ) -> None:
        self._type, self._missing, self._unknown = type_rule, missing_rule, unknown_rule
        self._word_rule = word_rule

    def require_described_type(self, value: Json, expected_type: type, path: str, description: str) -> Json:
        """Return a value if it has the required JSON type. Otherwise, raise a refusal that calls the type
        `description`.
        """
        if not isinstance(value, expected_type):
            raise self._type_refusal(path, description, value)
        return value

    def wrong_type_refusal(self, path: str, expected_type: type, value: Json) -> RuleBroken:
        return self._type_refusal(path, _TYPES[expected_type], value)

    def wrong_word_refusal(self, path: str, value: Json, shape: Word) -> RuleBroken:
        return self.unlisted_value_refusal(path, value, shape.values)

    def wrong_tag_refusal(self, path: str, value: Json, shape: Tagged) -> RuleBroken:
        return self.unlisted_value_refusal(self.key_path(path, shape.tag), value, shape.listed)

    def unlisted_value_refusal(self, path: str, value: Json, allowed: tuple[str, ...]) -> RuleBroken:
        """Return the refusal of a value that is not one of `allowed`."""
        return self._word_rule.refuse(path, value=value, values=", ".join(map(repr, allowed)))

    def missing_key_refusal(self, path: str, key: str) -> RuleBroken:
        at = self.key_path(path, key)
        return self._missing.refuse(at, path=at, parent=path, key=key)

    def unknown_key_refusal(self, path: str, key: str) -> RuleBroken:
        at = self.key_path(path, key)
        return self._unknown.refuse(at, path=at)

    def _type_refusal(self, path: str, description: str, value: Json) -> RuleBroken:
        name = json_type_name(value)
        article = "" if name == "null" else "an " if name[0] in "aeio" else "a "
        return self._type.refuse(path, path=path, expected=description, got=article + name, kind=name)
