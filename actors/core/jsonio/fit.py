"""Fit: a plain tree to a text within its size.

In:  plain data of bounded depth, strings of any length.
Out: JSON of at most `max_bytes`, no string literal longer than `max_string`.

Long strings are cut first, all to the same length, so that the small values around them stay. If that is
not enough, containers are made shorter and shorter. Each cut leaves a marker that counts what is gone.
"""

from collections.abc import Callable, Sequence
from itertools import islice

from actors.core.jsonio.limits import SizeLimits
from actors.core.jsonio.text import Json, JsonValue, dump, encodable, quote, sanitised
from actors.core.jsonio.walk import Gap, gap, unused

_LEAST_STRING = 128


def fit(value: JsonValue, is_long: bool, limits: SizeLimits, marks: set[str]) -> Json:
    """Return the JSON of `value`: long strings cut first, evenly; then containers, shorter and shorter."""
    if not is_long:  # so the whole is known to be small enough to try
        text = dump(value)
        if len(text) <= min(limits.max_bytes, limits.max_string):
            return text
    items = _widest(value)
    while items:
        sizes: list[int] = []
        frame = _frame(value, limits.max_string, sizes)
        cap = _level(sizes, limits.max_bytes - frame, limits.max_string)
        if cap >= _LEAST_STRING:
            return dump(_with_strings_cut(value, cap, marks))
        items = items * 2 // 3
        value = _thinned(value, items)
        marks.add("truncated")
    return quote(f"[a value of more than {limits.max_bytes} bytes, cut]")


def _widest(value: JsonValue) -> int:
    """Return the length of the longest container, at least 1."""
    if isinstance(value, list):
        return max(1, len(value), *map(_widest, value))
    if isinstance(value, dict):
        return max(1, len(value), *map(_widest, value.values()))
    return 1


def _frame(value: JsonValue, longest: int, sizes: list[int]) -> int:
    """Return the bytes of all that is not a string value, and append the sizes of those that are."""
    if isinstance(value, str):
        sizes.append(longest if len(value) > longest else min(longest, len(quote(value))))
        return 0
    if isinstance(value, list):
        return 2 + len(value) + sum(_frame(item, longest, sizes) for item in value)
    if isinstance(value, dict):
        keys = sum(len(quote(key)) for key in value)
        return 2 + 2 * len(value) + keys + sum(_frame(item, longest, sizes) for item in value.values())
    return len(dump(value))


def _level(sizes: list[int], room: int, longest: int) -> int:
    """Return the largest cap for which the sizes, each cut to it, fill no more than `room`."""
    if sum(sizes) <= room:
        return longest
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return max(room, 0) // left
        room -= size
        left -= 1
    return 0  # there is no string to cut: what is too large are keys and numbers


def _with_strings_cut(value: JsonValue, cap: int, marks: set[str]) -> JsonValue:
    if isinstance(value, str):
        return _cut(value, cap, marks) if len(value) > cap or len(quote(value)) > cap else value
    if isinstance(value, list):
        return [_with_strings_cut(item, cap, marks) for item in value]
    if isinstance(value, dict):
        return {key: _with_strings_cut(item, cap, marks) for key, item in value.items()}
    return value


def _cut(text: str, cap: int, marks: set[str]) -> str:
    """Return the start and the end of `text` with a marker between, at most `cap` bytes as a literal."""
    half = (cap - 2 - len(f" [{len(text)} characters cut] ")) // 2
    start, tail = text[:half], text[-half:]
    start = start[: _longest(half, lambda size: start[:size])]
    tail = tail[len(tail) - _longest(half, lambda size: tail[len(tail) - size :]) :]
    marks.add("truncated")
    if not encodable(start) or not encodable(tail):
        marks.add("surrogate")
    return sanitised(f"{start} [{len(text) - len(start) - len(tail)} characters cut] {tail}")


def _longest(room: int, piece: Callable[[int], str]) -> int:
    """Return the most characters, up to `room`, whose piece takes no more than `room` bytes in a literal."""
    low, high = 0, room
    while low < high:
        middle = high if high == room else (low + high + 1) // 2
        if len(quote(piece(middle))) - 2 <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _thinned(value: JsonValue, cap: int) -> JsonValue:
    """Return `value` with no container longer than `cap`, the marker that ends it included."""
    if isinstance(value, list):
        kept: list[JsonValue] = [_thinned(item, cap) for item in value[: _keep(len(value), cap)]]
        return kept + ([_rest(value, len(kept), "items")] if len(kept) < len(value) else [])
    if isinstance(value, dict):
        entries = {key: _thinned(value[key], cap) for key in islice(value, _keep(len(value), cap))}
        if len(entries) < len(value):
            entries[unused("[cut]", entries, {})] = _rest(list(value.values()), len(entries), "entries")
        return entries
    return value


def _keep(size: int, cap: int) -> int:
    return size if size <= cap else max(cap - 1, 0)


def _rest(items: Sequence[JsonValue], kept: int, what: str) -> Gap:
    """Return the marker for what follows the first `kept`, which may itself end in a marker."""
    last = items[-1]
    hidden = last.hidden - 1 if isinstance(last, Gap) else 0
    return gap(len(items) - kept + hidden, what)
