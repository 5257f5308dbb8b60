"""Define the settings that requests and asks have in common, as static types, and the ranges of settings.

`actors.core.settings.table` defines the range and the wire names of each setting. A test checks that both modules
define the same settings.

A range contains the values that a setting accepts, and describes them in error messages. The table of settings, prices,
budgets and compaction use ranges. A setting has the same range in a program and in a configuration file.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import inf
from sys import float_info
from types import NoneType
from typing import Any, Literal, TypeAlias, TypeGuard, TypeVar, cast, get_args, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from actors.core.data.jsonio import INT_MAX, sanitise
from actors.core.data.record import StoredRecord
from actors.errors import ConfigError

S = TypeVar("S", bound=Struct)
_UNITS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
_FORM = re.compile(r"(\d{1,6}) ?([a-z]+)")


class ToolChoice(StoredRecord, frozen=True):
    """A tool choice that forces the model to call one tool: `tool_choice=ToolChoice("search")`.

    Args:
        tool: The tool's name in the session.
    """

    tool: str


ChoiceWord: TypeAlias = Literal["auto", "none", "required"]
ToolChoiceSetting: TypeAlias = ChoiceWord | ToolChoice
"""The setting `tool_choice`: `auto`, `none`, `required`, or a `ToolChoice`."""
Mode: TypeAlias = Literal["default", "adaptive", "manual", "off"]
AskMode: TypeAlias = Literal["adaptive", "off"]
"""Thinking modes that an ask can set. Only the backend can set a thinking budget, because replayed reasoning depends on
the budget (ANT-40).
"""
Verbosity: TypeAlias = Literal["low", "medium", "high"]
Display: TypeAlias = Literal["summarized", "omitted"]


class RequestSettings(
    Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, forbid_unknown_fields=True
):
    """Settings that a request sends unchanged, or omits. None and an empty tuple mean the provider's default.

    The log stores them as a map without default values, so a new setting does not change the records of other settings.

    Args:
        max_tokens: The maximum number of tokens in the answer of one request, at least 1.
        temperature: The sampling temperature, at least 0. A higher temperature makes answers more random.
        top_p: The share of the probability, from 0 to 1, that the most likely tokens must reach together. Only these
            tokens are sampled.
        top_k: The number of most likely tokens that are sampled, at least 1.
        frequency_penalty: From -2 to 2. A positive value makes a token less likely each time it occurs.
        presence_penalty: From -2 to 2. A positive value makes a token less likely once it has occurred.
        seed: The seed of the sampling, from 0 to 2147483647. Providers do not guarantee equal answers for equal seeds.
        stop: At most 4 strings. The answer ends before the first of them that the model writes.
        effort: The level of reasoning effort, such as `low` or `high`, or the provider's own name of a level.
        display: Whether the answer contains the reasoning as a summary (`summarized`), or does not contain it
            (`omitted`).
        verbosity: How long and detailed the answer is.
        parallel_tool_calls: Whether one message may contain several tool calls.
        logprobs: The number of most likely alternatives per token, from 0 to 20, for which the provider returns log
            probabilities.
        service_tier: The provider's name of a service tier, which affects price and latency.
        user: An id of the end user that helps the provider to detect abuse; at most 256 characters.
        metadata: Names and values that the provider attaches to the request: at most 16 pairs, with values of at most
            512 characters.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    effort: str | None = None
    display: Display | None = None
    verbosity: Verbosity | None = None
    parallel_tool_calls: bool | None = None
    logprobs: int | None = None
    service_tier: str | None = None
    user: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()


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

    def unmet_requirement(self, value: object) -> str | None:
        """Return a description of valid values if `value` is not accepted or a log cannot store it; otherwise None."""
        return _storage_requirement(self.store(value)) if self.accepts(value) else self.description


def _storage_requirement(value: Any) -> str | None:  # Any: each setting has its own type
    """Return a description of valid values if a log cannot store `value`, which is in stored form; otherwise None."""
    if isinstance(value, tuple):
        parts = cast("tuple[object, ...]", value)
        return next(filter(None, map(_storage_requirement, parts)), None)
    if isinstance(value, str) and sanitise(value) != value:
        return "valid Unicode, without lone surrogates"
    return f"at most {INT_MAX}" if isinstance(value, int) and value > INT_MAX else None


def show_value(value: object) -> str:
    """Return a value as text for an error message. Only the size of a huge integer is shown."""
    if isinstance(value, int) and abs(value) > INT_MAX:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


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
        if (requirement := allowed.unmet_requirement(value)) is not None:
            more = ", or None" if is_optional else ""
            raise ConfigError(
                f"{owner} has {name}={show_value(value)}, but {name} must be {requirement}{more}"
            )
        fields[name] = allowed.store(value)
    return replace(struct, **fields)


def parse_duration(text: str) -> int:
    """Convert a duration, such as `90 days`, `12 hours` or `2w`, to seconds.

    Raises:
        ValueError: The text is not a whole number above 0 with the unit minutes, hours, days or weeks.
    """
    found = _FORM.fullmatch(text.strip())
    units = [] if found is None else [each for each in _UNITS if found[2] in (each, f"{each}s", each[0])]
    if found is None or not units or not int(found[1]):
        raise ValueError("takes a whole number of minutes, hours, days or weeks, such as '90 days'")
    return int(found[1]) * _UNITS[units[0]]
