"""Truncate a plain JSON value to its size limits, as the last step of `ingest`.

In:  plain data of limited depth, with strings of any length.
Out: JSON of at most `max_bytes`, without a string literal longer than `max_string`.

Long strings are cut first, all to the same length, so that small values around them stay. If that is not enough,
containers are shortened step by step. Each cut leaves a marker with the number of removed items or characters.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice

from msgspec import Struct

from actors.core.data.jsonio import MAX_DEPTH, Json, JsonValue, dump, quote, sanitise

_LEAST_STRING = 128


class SizeLimits(Struct, frozen=True):
    """The size limits of an ingested value.

    Args:
        max_bytes: Maximum size of the JSON text in bytes, at least 512.
        max_depth: Maximum number of nested containers, 1 to 64.
        max_items: Maximum number of items in a list or object, at least 2.
        max_string: Maximum size of a JSON string literal in bytes, at least 128.
    """

    max_bytes: int = 256 * 1024
    max_depth: int = 32
    max_items: int = 10_000
    max_string: int = 256 * 1024

    def __post_init__(self) -> None:
        if self.max_bytes < 512 or self.max_items < 2 or self.max_string < _LEAST_STRING:
            raise ValueError(
                f"{self} is too small to contain a marker; use max_bytes of at least 512, max_items of at least 2 and "
                f"max_string of at least {_LEAST_STRING}"
            )
        if not 1 <= self.max_depth <= MAX_DEPTH:
            raise ValueError(f"max_depth must be from 1 to {MAX_DEPTH}, not {self.max_depth}")


class Gap(str):
    """The marker at the end of a shortened container, with the number of removed items."""

    hidden: int

    def __new__(cls, hidden: int, noun: str) -> "Gap":
        marker = super().__new__(cls, f"[{hidden} more {noun} cut]")
        marker.hidden = hidden
        return marker


def unused_name(name: str, used: Mapping[str, object], repeats: dict[str, int]) -> str:
    """Return `name`, or the first of `name#2`, `name#3` ... that is not in `used`.

    `repeats` remembers the last number used for each name, so that repeated names do not take quadratic time.
    """
    candidate = name
    while candidate in used:
        repeats[name] = repeats.get(name, 1) + 1
        candidate = f"{name}#{repeats[name]}"
    return candidate


def truncate(value: JsonValue, is_long: bool, limits: SizeLimits, marks: set[str]) -> Json:
    """Return the JSON of `value` within the limits. Long strings are cut evenly first, then containers are shortened.

    `is_long` is True if a string exceeds its share of the budget. If so, strings are cut at once, because encoding the
    complete value first would probably be wasted work.
    """
    # without long strings, the budget of `PlainConversion` limits the value, so encoding it is cheap
    if not is_long:
        text = dump(value)
        if len(text) <= min(limits.max_bytes, limits.max_string):
            return text
    items = _longest_container(value)
    while items:
        sizes: list[int] = []
        blank = dump(_map_strings(value, partial(_record_size, limits.max_string, sizes)))
        room = limits.max_bytes - len(blank) + 2 * len(sizes)
        cap = _even_cap(sizes, room, limits.max_string)
        if cap >= _LEAST_STRING:
            return dump(_map_strings(value, partial(_cut_string, cap, marks)))
        items = items * 2 // 3
        value = _shorten_containers(value, items)
        marks.add("truncated")
    return quote(f"[a value of more than {limits.max_bytes} bytes, cut]")


def _longest_container(value: JsonValue) -> int:
    """Return the number of items in the longest list or object inside `value`, at least 1."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(1, len(inside), *map(_longest_container, inside))


def _map_strings(value: JsonValue, convert: Callable[[str], str]) -> JsonValue:
    """Return `value` with each string replaced by `convert(string)`. Keys are not changed."""
    if isinstance(value, str):
        return convert(value)
    if isinstance(value, list):
        return [_map_strings(item, convert) for item in value]
    if isinstance(value, dict):
        return {key: _map_strings(item, convert) for key, item in value.items()}
    return value


def _record_size(max_bytes: int, sizes: list[int], text: str) -> str:
    """Append the size of a string's JSON literal in bytes, at most `max_bytes`, to `sizes`. Return an empty string."""
    sizes.append(max_bytes if len(text) > max_bytes else min(max_bytes, len(quote(text))))
    return ""


def _even_cap(sizes: list[int], total_bytes: int, max_length: int) -> int:
    """Return the largest cap, at most `max_length`, with which all strings together fit into `total_bytes`.

    `sizes` are the sizes of the strings. Strings that exceed the cap are cut to it.
    """
    if sum(sizes) <= total_bytes:
        return max_length
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > total_bytes:
            return max(total_bytes, 0) // left
        total_bytes -= size
        left -= 1
    return 0  # cutting strings is not enough, because the other content alone is too large


def _cut_string(cap: int, marks: set[str], text: str) -> str:
    """Return `text`, or its start and its end around a marker if its JSON literal has more than `cap` bytes."""
    if len(text) <= cap and len(quote(text)) <= cap:
        return text
    half = (cap - 2 - len(f" [{len(text)} characters cut] ")) // 2
    start, end = text[:half], text[-half:]
    start = start[: _longest_fitting(half, lambda size: start[:size])]
    end = end[len(end) - _longest_fitting(half, lambda size: end[len(end) - size :]) :]
    kept = f"{start} [{len(text) - len(start) - len(end)} characters cut] {end}"
    marks.add("truncated")
    if (clean := sanitise(kept)) != kept:
        marks.add("surrogate")
    return clean


def _longest_fitting(max_bytes: int, text_of: Callable[[int], str]) -> int:
    """Return the largest `n` for which the JSON literal of `text_of(n)` has at most `max_bytes` bytes."""
    low, high = 0, max_bytes
    while low < high:
        middle = high if high == max_bytes else (low + high + 1) // 2
        if len(quote(text_of(middle))) - 2 <= max_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def _shorten_containers(value: JsonValue, cap: int) -> JsonValue:
    """Return `value` with each list and object shortened to `cap` items, including the marker at its end."""
    if not isinstance(value, list | dict):
        return value
    kept = len(value) if len(value) <= cap else max(cap - 1, 0)
    if isinstance(value, list):
        items = [_shorten_containers(item, cap) for item in value[:kept]]
        return items if kept == len(value) else [*items, _gap_marker(value, kept, "items")]
    entries = {key: _shorten_containers(value[key], cap) for key in islice(value, kept)}
    if kept < len(value):
        entries[unused_name("[cut]", entries, {})] = _gap_marker([*value.values()], kept, "entries")
    return entries


def _gap_marker(items: list[JsonValue], kept_count: int, noun: str) -> Gap:
    """Return the marker that replaces all items after the first `kept_count`. The last item may already be a marker."""
    last = items[-1]
    return Gap(len(items) - kept_count + (last.hidden - 1 if isinstance(last, Gap) else 0), noun)
