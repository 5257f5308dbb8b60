"""Define the ranges of settings: the values that each accepts, and the words for error messages.

The table of settings (`actors.core.settings.table`), prices, budgets and compaction use them. A value has the same
range in a program and in a configuration file.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import inf
from sys import float_info
from types import NoneType
from typing import Any, TypeGuard, TypeVar, get_args, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from actors.errors import ConfigError

S = TypeVar("S", bound=Struct)


class Range(Struct, frozen=True):
    """The values that a setting accepts.

    Args:
        words: The range in words, as error messages show it.
        accepts: Returns True for a value in the range.
        store: Converts an accepted value to its stored form.
    """

    words: str
    accepts: Callable[[object], bool]
    store: Callable[[Any], Any] = lambda value: value  # Any: each setting has its own type


def _is_whole(value: object, least: int = 1, most: float = inf) -> bool:
    return type(value) is int and least <= value <= most


def whole(words: str, least: int = 1, most: float = inf) -> Range:
    """Return the range of the whole numbers between two bounds."""
    return Range(words, lambda value: _is_whole(value, least, most))


def is_number(value: object) -> TypeGuard[float]:
    """Return True for a finite number."""
    return isinstance(value, int | float) and type(value) is not bool and abs(value) <= float_info.max


def number(words: str, least: float, most: float = inf) -> Range:
    """Return the range of the numbers between two bounds."""
    return Range(words, lambda value: is_number(value) and least <= value <= most, float)


def word(words: tuple[str, ...]) -> Range:
    """Return the range of some words."""
    return Range(f"one of {', '.join(words)}", lambda value: type(value) is str and value in words)


def text(words: str, most: int) -> Range:
    """Return the range of the texts that are not blank, up to a length in characters."""
    return Range(words, lambda value: type(value) is str and bool(value.strip()) and len(value) <= most)


def positive(words: str) -> Range:
    """Return the range of the numbers above 0."""
    return Range(words, lambda value: is_number(value) and value > 0, float)


@lru_cache
def optional_fields(kind: type[Struct]) -> frozenset[str]:
    """Return the fields of a struct that accept None."""
    hints = get_type_hints(kind)
    return frozenset(name for name in kind.__struct_fields__ if NoneType in get_args(hints[name]))


def check_fields(given: S, ranges: Mapping[str, Range], owner: str) -> S:
    """Return a struct with its fields in their stored form.

    Args:
        given: The struct, as a program made it.
        ranges: The range of each field.
        owner: The subject of the error message.

    Raises:
        ConfigError: A field is outside of its range.
    """
    fields = dict[str, object]()
    for name, allowed in ranges.items():
        value, is_optional = getattr(given, name), name in optional_fields(type(given))
        if value is None and is_optional:
            continue
        if not allowed.accepts(value):
            more = ", or None" if is_optional else ""
            raise ConfigError(f"{owner} has {name}={value!r}; it takes {allowed.words}{more}")
        fields[name] = allowed.store(value)
    return replace(given, **fields)
