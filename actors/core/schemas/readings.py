"""Find the only way to parse strings inside a value as JSON so that the value conforms to its schema.

In:  a value that a model wrote, and the check of its schema.
Out: the value with some strings replaced by the JSON that they contain, if the result conforms to the schema and no
     other choice of strings does; otherwise None.

For example, `{"count": "3"}` becomes `{"count": 3}` if the schema requires a number. Only strings that the schema
rejects are parsed. So a valid value never changes, and a string stays a string where the schema accepts strings. The
search is bounded; a value that would need a longer search is not repaired.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.schemas.arguments import ArgumentCheck, dotted_path
from actors.core.schemas.repair import Repair, read_json

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

MOST_TEXTS: Final = 1000
"""The maximum number of strings of one value that are parsed."""
MOST_NAMED: Final = 16
"""The maximum number of parsed strings that a report lists."""

_MOST_CHOICES = 8  # maximum number of sets of strings to try at one level
_MOST_CHECKS = 32  # maximum number of validations of candidate values
_LEVELS = 3  # maximum depth of JSON strings inside JSON strings

ValuePath: TypeAlias = tuple[str | int, ...]
_StringPaths: TypeAlias = frozenset[ValuePath]

_OF_TYPES = frozenset({"type", "enum", "const"})  # keywords that may reject a value because it is a string
_ANY_BRANCH = frozenset({"anyOf", "oneOf"})


class FittingValue(Struct, frozen=True):
    """A value that conforms to its schema after some strings were parsed.

    `repairs` lists the parsed strings, at most `MOST_NAMED`.
    """

    value: JsonValue
    repairs: tuple[Repair, ...]


class _SearchTooLarge(Exception):
    """Raised if the search for a value's only repair exceeds its limits."""


def only_repair(value: JsonValue, check: ArgumentCheck) -> FittingValue | None:
    """Return the only repair that makes a value conform to the schema.

    Return None if the value conforms unchanged, if no repair helps, or if several do.
    """
    found: dict[Json, FittingValue] = {}
    try:
        for repaired in _Search(check).fitting_values(value, frozenset(), _LEVELS):
            found.setdefault(dump(repaired.value), repaired)
            if len(found) > 1:
                return None
    except _SearchTooLarge:
        return None
    return next(iter(found.values()), None)


class _Search:
    """A search for repairs of one value. It counts the validations in order to stop at a limit."""

    def __init__(self, check: ArgumentCheck) -> None:
        self._check = check
        self._left = _MOST_CHECKS

    def fitting_values(
        self, value: JsonValue, parsed_paths: _StringPaths, levels_left: int
    ) -> Iterator[FittingValue]:
        """Yield each value that conforms to the schema after strings inside `value` are parsed, with the repairs.

        Args:
            value: The value with the strings at `parsed_paths` already parsed.
            parsed_paths: The paths of these strings in the original value.
            levels_left: How deep JSON strings may be nested inside JSON strings.
        """
        for choice in self._string_choices(value):
            changed = _with_parsed_strings(value, choice)
            if not choice or changed is None:
                continue
            self._left -= 1
            if self._left < 0:
                raise _SearchTooLarge
            places = parsed_paths | choice
            if self._check.is_valid(changed[0]):
                named = sorted({dotted_path(place) for place in places})[:MOST_NAMED]
                yield FittingValue(changed[0], tuple([Repair("text", path) for path in named]))
            elif levels_left > 1:
                yield from self.fitting_values(changed[0], places, levels_left - 1)

    def _string_choices(self, value: JsonValue) -> Iterable[_StringPaths]:
        faults = list(islice(self._check.validation_errors(value), MOST_TEXTS + 1))
        if len(faults) > MOST_TEXTS:
            raise _SearchTooLarge
        return _string_choices(faults)


def _string_choices(faults: Sequence["ValidationError"]) -> list[_StringPaths]:
    """Return sets of strings. Parsing all strings of one set as JSON may fix all of these errors."""
    choices: list[_StringPaths] = [frozenset()]
    for fault in faults:
        cures = _string_fixes(fault)
        if len(cures) == len(choices) == 1:
            choices = [choices[0] | cures[0]]
            continue
        choices = list(dict.fromkeys(chosen | cure for chosen in choices for cure in cures))
        if len(choices) > _MOST_CHOICES:
            raise _SearchTooLarge
        if not choices:
            break
    return choices


def _string_fixes(fault: "ValidationError") -> list[_StringPaths]:
    """Return sets of strings. Parsing all strings of one set as JSON may fix the error."""
    kind = fault.kind.name
    cures: list[_StringPaths] = []
    if kind in _ANY_BRANCH:
        branches: Iterable[Sequence[ValidationError]] = fault.kind.as_dict().get("context") or ()
        cures = [choice for branch in branches if branch for choice in _string_choices(branch)]
    if kind in _OF_TYPES and isinstance(fault.instance, str):
        cures = [frozenset({tuple(fault.instance_path)})]
    return list(dict.fromkeys(cures))


def _with_parsed_strings(value: JsonValue, paths: _StringPaths) -> tuple[JsonValue] | None:
    """Return a copy of a value with the strings at `paths` parsed, in a 1-tuple.

    The result is None if a string does not contain JSON.
    """
    root: list[JsonValue] = [parse(dump(value))]
    for place in sorted(paths, key=len):
        inner: list[JsonValue] | dict[str, JsonValue] = root
        key: str | int = 0
        for part in place:
            inner, key = inner[key], part  # type: ignore[assignment,index]  # the path exists in the value
        read = read_json(inner[key])  # type: ignore[arg-type,index]  # the path leads to a string
        if read is None or isinstance(read[0], str):
            return None
        inner[key] = read[0]  # type: ignore[index]  # the path exists in the value
    return (root[0],)
