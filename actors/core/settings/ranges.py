"""Define the ranges of settings: the values that a setting accepts, and a description for error messages.

The table of settings (`actors.core.settings.table`), prices, budgets and compaction use ranges. A setting has the same
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
    """The values that a setting accepts, with their description.

    Args:
        description: The end of the sentence "The setting must be ...".
        accepts: Returns True for a value in the range.
        store: Converts an accepted value to its stored form.
    """

    description: str
    accepts: Callable[[object], bool]
    store: Callable[[Any], Any] = lambda value: value  # Any: each setting has its own type


def _is_whole_number(value: object, least: int = 1, most: float = inf) -> bool:
    return type(value) is int and least <= value <= most


def whole_range(description: str, least: int = 1, most: float = inf) -> Range:
    """Return the range of the whole numbers from `least` to `most`, both included, with this description."""
    return Range(description, lambda value: _is_whole_number(value, least, most))


def is_number(value: object) -> TypeGuard[float]:
    """Return True for a finite int or float. A bool does not count as a number."""
    return isinstance(value, int | float) and type(value) is not bool and abs(value) <= float_info.max


def number_range(description: str, least: float, most: float = inf) -> Range:
    """Return the range of the numbers from `least` to `most`, both included, with this description."""
    return Range(description, lambda value: is_number(value) and least <= value <= most, float)


def word_range(words: tuple[str, ...]) -> Range:
    """Return the range that consists of these strings."""
    return Range(f"one of {', '.join(words)}", lambda value: type(value) is str and value in words)


def text_range(description: str, most: int) -> Range:
    """Return the range of the non-blank strings of at most `most` characters, with this description."""
    return Range(description, lambda value: type(value) is str and bool(value.strip()) and len(value) <= most)


def positive_range(description: str) -> Range:
    """Return the range of the finite numbers above 0, with this description."""
    return Range(description, lambda value: is_number(value) and value > 0, float)


@lru_cache
def optional_fields(kind: type[Struct]) -> frozenset[str]:
    """Return the names of a struct's fields that accept None."""
    hints = get_type_hints(kind)
    return frozenset(name for name in kind.__struct_fields__ if NoneType in get_args(hints[name]))


def check_fields(struct: S, ranges: Mapping[str, Range], owner: str) -> S:
    """Check a struct's fields against their ranges, and return the struct with its fields in their stored form.

    Args:
        struct: The struct to check, as a program created it.
        ranges: The range of each field, by field name.
        owner: The name of the struct in the error message, such as `budget=`.

    Raises:
        ConfigError: A field is outside of its range.
    """
    fields = dict[str, object]()
    for name, allowed in ranges.items():
        value, is_optional = getattr(struct, name), name in optional_fields(type(struct))
        if value is None and is_optional:
            continue
        if not allowed.accepts(value):
            more = ", or None" if is_optional else ""
            raise ConfigError(f"{owner} has {name}={value!r}, but {name} must be {allowed.description}{more}")
        fields[name] = allowed.store(value)
    return replace(struct, **fields)
