"""Parse growing request bodies incrementally, and cache the results of checks.

In:  bodies, each of which usually contains the previous one and a few more items.
Out: their strictly parsed JSON values, in which equal parts of two bodies are the same object, and cached results of
functions of these parts.

Every request repeats the history, so checking it from scratch would be quadratic in the length of a conversation. This
module splits a body into its members, and lists into their items, and parses each part once. A check that depends only
on an item and on named settings can cache its result by the item's identity. Checks that depend on the order or on
other items run on the complete list each time.

A parsed value must not be changed.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

import jiter
import msgspec

from actors.strict.rules.base import Json, is_array, is_object

T = TypeVar("T")

_WHOLE = 2000
"""The size in bytes below which a body is not split."""
_SMALL = 4000
"""The maximum size in bytes of a cached part. A larger one is parsed and checked each time."""
_MOST = 20_000
"""The maximum number of cached parts and results. Beyond it, the cache is cleared."""
_DEEP = 100
"""The number of brackets in a part above which its depth in the body may exceed the limit."""

_parts: dict[bytes, Json] = {}
_came: dict[int, tuple[Json, dict[Hashable, Json]]] = {}
"""The cached parts by identity, each with the results of functions."""
_UNKNOWN: tuple[Json, dict[Hashable, Json]] = None, {}


def parse(body: bytes) -> Json:
    """Return the JSON value of `body`, parsed more strictly than by `json.loads`.

    Raises:
        ValueError: Not UTF-8, a repeated key, NaN or Infinity, a lone surrogate, a number out of range,
            nesting deeper than 200, or anything else that is not JSON.
    """
    return _part(body) if len(body) <= _WHOLE else _latest(body)


def cached_result(make: Callable[..., T], value: Json, *settings: Hashable) -> T:
    """Return the cached result of a function of a value and settings. It must depend on nothing else.

    The result must not be changed either. If it is a JSON object, it is a part itself, and may have cached results.
    """
    if (kept := _came.get(id(value))) is None:
        return make(value, *settings)
    known, key = kept[1], (make, *settings) if settings else make
    if key not in known:
        made = known[key] = make(value, *settings)
        if is_object(made):
            _came[id(made)] = made, {}
    return known[key]  # type: ignore[no-any-return]


def unchecked_items(values: Sequence[Json], standard: object) -> Iterator[tuple[int, Json]]:
    """Yield the index and the value of each item that this standard has not accepted before.

    A value counts as accepted when the caller requests the next one without an exception. `standard` is from
    `standard_of`.
    """
    known = [_came.get(id(value), _UNKNOWN)[1] for value in values]
    new = [at for at, passed in enumerate(known) if standard not in passed]
    for at in new:
        yield at, values[at]
        if known[at] is not _UNKNOWN[1]:
            known[at][standard] = None


@lru_cache(maxsize=1000)
def standard_of(walk: str, *settings: Hashable) -> object:
    """Return the cache key of a check with all settings that its result depends on."""
    return object()


def clear_cache() -> None:
    """Clear the cache."""
    _parts.clear()
    _came.clear()
    _latest.cache_clear()


def _part(text: bytes) -> Json:
    """Parse a part, or return it from the cache."""
    if text in _parts:
        return _parts[text]
    value: Json = _parse_json(text)
    if len(text) <= _SMALL and (is_object(value) or is_array(value)):
        _keep(value)
        _parts[text] = value
    return value


def _keep(value: Json) -> None:
    if len(_came) >= _MOST:
        _parts.clear()
        _came.clear()
    _came[id(value)] = value, {}


def _parse_json(text: bytes) -> Json:
    return jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys")


@lru_cache(maxsize=1)
def _latest(body: bytes) -> Json:
    """Parse a body. The latest one is cached, because a server parses it several times per request."""
    try:
        taken = _parse_parts(body)
    except (ValueError, RecursionError):  # the complete body is parsed, which reports the error
        taken = None
    value = _parse_json(body) if taken is None else taken
    if is_object(value):
        _keep(value)
    return value


def _parse_parts(body: bytes) -> dict[str, Json] | None:
    """Parse an object by its parts; None if it may have other content, such as a repeated key."""
    members = {key: bytes(raw) for key, raw in _members(body).items()}
    written = b",".join([b'"%b":%b' % (key.encode(), text) for key, text in members.items()])
    if b"{%b}" % written != body or not all(map(str.isidentifier, members)):
        return None
    return {key: _items_of(text) if text[:1] == b"[" else _inner(text) for key, text in members.items()}


def _items_of(text: bytes) -> list[Json]:
    texts = list(map(bytes, _items(text)))
    known = list(map(_parts.get, texts))  # a cached part is never None
    return [_inner(texts[at]) if value is None else value for at, value in enumerate(known)]


def _inner(text: bytes) -> Json:
    """Parse a part of an object or a list, with the cache."""
    if (known := _parts.get(text)) is not None:
        return known
    if text.count(b"[") + text.count(b"{") > _DEEP:
        raise ValueError("It may be too deep where it stands")
    return _part(text)


_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
