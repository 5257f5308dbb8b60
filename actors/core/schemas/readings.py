"""The one reading of a value that does not fit its schema, if it has one: texts that are JSON of another type.

In:  a value that a model wrote, and the check of its schema.
Out: the value with some of its texts read as the JSON that they are, if it then fits, and no other choice of texts
     would fit as well; else None.

Only texts that the schema rejects are read, so a value that fits is never changed, and a text stays a text wherever the
schema accepts one. The search is bounded; a value for which it would take longer is not read.
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
"""Texts of one value that are read."""
MOST_NAMED: Final = 16
"""Of these, the texts that are named in a report."""

_MOST_CHOICES = 8  # of texts, at one level
_MOST_CHECKS = 32  # of values against the schema
_LEVELS = 3  # of texts inside of texts

Place: TypeAlias = tuple[str | int, ...]
_Choice: TypeAlias = frozenset[Place]

_OF_TYPES = frozenset({"type", "enum", "const"})  # keywords that may reject a text because it is one
_ANY_BRANCH = frozenset({"anyOf", "oneOf"})


class FittingValue(Struct, frozen=True):
    """A value that fits its schema, and the texts that were read to make it fit (the first `MOST_NAMED`)."""

    value: JsonValue
    repairs: tuple[Repair, ...]


class _TooMuch(Exception):
    """The value has more readings than are tried, so none is known to be the only one."""


def only_reading(value: JsonValue, check: ArgumentCheck) -> FittingValue | None:
    """Return the only reading of a value that fits; None if the value fits as it is, or has no reading or several."""
    found: dict[Json, FittingValue] = {}
    try:
        for reading in _Search(check).readings(value, frozenset(), _LEVELS):
            found.setdefault(dump(reading.value), reading)
            if len(found) > 1:
                return None
    except _TooMuch:
        return None
    return next(iter(found.values()), None)


class _Search:
    """One search. Mutable: it counts its work."""

    def __init__(self, check: ArgumentCheck) -> None:
        self._check = check
        self._left = _MOST_CHECKS

    def readings(self, value: JsonValue, read: _Choice, levels: int) -> Iterator[FittingValue]:
        """Yield the readings that fit. `read`: places whose texts were read already."""
        for choice in self._choices(value):
            changed = _with_texts_read(value, choice)
            if not choice or changed is None:
                continue
            self._left -= 1
            if self._left < 0:
                raise _TooMuch
            places = read | choice
            if self._check.is_valid(changed[0]):
                named = sorted({dotted_path(place) for place in places})[:MOST_NAMED]
                yield FittingValue(changed[0], tuple([Repair("text", path) for path in named]))
            elif levels > 1:
                yield from self.readings(changed[0], places, levels - 1)

    def _choices(self, value: JsonValue) -> Iterable[_Choice]:
        faults = list(islice(self._check.faults(value), MOST_TEXTS + 1))
        if len(faults) > MOST_TEXTS:
            raise _TooMuch
        return _choices(faults)


def _choices(faults: Sequence["ValidationError"]) -> list[_Choice]:
    """Return the choices of texts that may put all of these faults right; an empty list if none can."""
    choices: list[_Choice] = [frozenset()]
    for fault in faults:
        cures = _choices_for(fault)
        if len(cures) == len(choices) == 1:
            choices = [choices[0] | cures[0]]
            continue
        choices = list(dict.fromkeys(chosen | cure for chosen in choices for cure in cures))
        if len(choices) > _MOST_CHOICES:
            raise _TooMuch
        if not choices:
            break
    return choices


def _choices_for(fault: "ValidationError") -> list[_Choice]:
    """Return the choices of texts that may put one fault right."""
    kind = fault.kind.name
    cures: list[_Choice] = []
    if kind in _ANY_BRANCH:
        branches: Iterable[Sequence[ValidationError]] = fault.kind.as_dict().get("context") or ()
        cures = [choice for branch in branches if branch for choice in _choices(branch)]
    if kind in _OF_TYPES and isinstance(fault.instance, str):
        cures = [frozenset({tuple(fault.instance_path)})]
    return list(dict.fromkeys(cures))


def _with_texts_read(value: JsonValue, places: _Choice) -> tuple[JsonValue] | None:
    """Return a copy of a value in which the texts at these places are read; None if one of them is no JSON."""
    root: list[JsonValue] = [parse(dump(value))]
    for place in sorted(places, key=len):
        inner: list[JsonValue] | dict[str, JsonValue] = root
        key: str | int = 0
        for part in place:
            inner, key = inner[key], part  # type: ignore[assignment,index]  # the path of a fault
        read = read_json(inner[key])  # type: ignore[arg-type,index]  # as above; it is a text
        if read is None or isinstance(read[0], str):
            return None
        inner[key] = read[0]  # type: ignore[index]  # as above
    return (root[0],)
