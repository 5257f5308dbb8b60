"""Parse growing request bodies incrementally, and cache the results of checks.

In:  request bodies. A body usually contains the items of the previous body and a few more.
Out: the parsed JSON values. Equal parts of two bodies are the same object, so results of functions of these parts can
     be cached.

Every request repeats the history, so the time for checking each request completely would grow with the square of the
conversation's length. This module splits a body into its members, and lists into their items, and parses each part only
once. The result of a check that depends only on one item and on given settings can be cached by the item's identity.
Checks that depend on the order of items or on several items run on the complete list each time.

A parsed value must not be changed.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

import jiter
import msgspec

from actors.strict.rules.base import Json, is_array, is_object

T = TypeVar("T")

_MAX_UNSPLIT_BYTES = 2000
"""The maximum size in bytes of a body that is parsed without splitting it."""
_MAX_PART_BYTES = 4000
"""The maximum size in bytes of a cached part. A larger part is parsed and checked each time."""
_MAX_PARTS = 20_000
"""The maximum number of cached parts. If it is reached, the cache is cleared."""
_MAX_BRACKETS = 100
"""The maximum number of opening brackets in a part that is parsed alone. A part with more brackets may be nested so
deeply that the complete body exceeds the limit, so the body is parsed without splitting it.
"""

_parts: dict[bytes, Json] = {}
_part_results: dict[int, tuple[Json, dict[Hashable, Json]]] = {}
"""The cached parts by `id()`, each with the cached results of functions of this part."""
_UNKNOWN: tuple[Json, dict[Hashable, Json]] = None, {}


def parse(body: bytes) -> Json:
    """Return the JSON value of `body`. Unlike `json.loads`, refuse repeated keys and values that are not valid JSON.

    Raises:
        ValueError: The body is not UTF-8 or not JSON, is nested more than 200 levels deep, or contains a repeated key,
            NaN, Infinity, a lone surrogate or a number out of range.
    """
    return _parse_part(body) if len(body) <= _MAX_UNSPLIT_BYTES else _parse_latest(body)


def cached_result(compute: Callable[..., T], value: Json, *settings: Hashable) -> T:
    """Return `compute(value, *settings)`. The result is cached if `value` is a cached part of a request body.

    The result must depend only on these arguments, and the caller must not change it. If the result is a JSON object,
    results of functions of this object are cached too.
    """
    if (kept := _part_results.get(id(value))) is None:
        return compute(value, *settings)
    known, key = kept[1], (compute, *settings) if settings else compute
    if key not in known:
        made = known[key] = compute(value, *settings)
        if is_object(made):
            _part_results[id(made)] = made, {}
    return known[key]  # type: ignore[no-any-return]


def unchecked_items(values: Sequence[Json], check_key: object) -> Iterator[tuple[int, Json]]:
    """Yield the index and the value of each item that has not passed this check before.

    The caller checks each item. An item has passed when the caller asks for the next item instead of raising an
    exception. `check_key` is the result of `key_of_check` for this check.
    """
    known = [_part_results.get(id(value), _UNKNOWN)[1] for value in values]
    new = [at for at, passed in enumerate(known) if check_key not in passed]
    for at in new:
        yield at, values[at]
        if known[at] is not _UNKNOWN[1]:
            known[at][check_key] = None


@lru_cache(maxsize=1000)
def key_of_check(check_name: str, *settings: Hashable) -> object:
    """Return the cache key of a check. The check must depend only on the checked item and on `settings`."""
    return object()


def clear_cache() -> None:
    """Remove all cached parts and results."""
    _parts.clear()
    _part_results.clear()
    _parse_latest.cache_clear()


def _parse_part(text: bytes) -> Json:
    """Parse a part of a body, or return its value from the cache."""
    if text in _parts:
        return _parts[text]
    value: Json = _parse_json(text)
    if len(text) <= _MAX_PART_BYTES and (is_object(value) or is_array(value)):
        _cache_part(value)
        _parts[text] = value
    return value


def _cache_part(value: Json) -> None:
    if len(_part_results) >= _MAX_PARTS:
        _parts.clear()
        _part_results.clear()
    _part_results[id(value)] = value, {}


def _parse_json(text: bytes) -> Json:
    return jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys")


@lru_cache(maxsize=1)
def _parse_latest(body: bytes) -> Json:
    """Parse a body. The latest body is cached, because a server parses each body several times."""
    try:
        taken = _parse_parts(body)
    except (ValueError, RecursionError):
        taken = None  # parse the complete body, so that the error contains the position
    value = _parse_json(body) if taken is None else taken
    if is_object(value):
        _cache_part(value)
    return value


def _parse_parts(body: bytes) -> dict[str, Json] | None:
    """Parse an object part by part. Return None if parsing by parts could miss an error, such as a repeated key."""
    members = {key: bytes(raw) for key, raw in _members(body).items()}
    written = b",".join([b'"%b":%b' % (key.encode(), text) for key, text in members.items()])
    if b"{%b}" % written != body or not all(map(str.isidentifier, members)):
        return None
    return {
        key: _parse_items(text) if text[:1] == b"[" else _parse_inner(text) for key, text in members.items()
    }


def _parse_items(text: bytes) -> list[Json]:
    texts = list(map(bytes, _items(text)))
    known = list(map(_parts.get, texts))  # a cached part is never None
    return [_parse_inner(texts[at]) if value is None else value for at, value in enumerate(known)]


def _parse_inner(text: bytes) -> Json:
    """Parse a member of an object or an item of a list, using the cache."""
    if (known := _parts.get(text)) is not None:
        return known
    if text.count(b"[") + text.count(b"{") > _MAX_BRACKETS:
        raise ValueError("The part may be nested too deeply; parse the complete body")
    return _parse_part(text)


_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
