"""Reading bodies that grow: what an earlier body held is the same value again, and what came of it is remembered.

In:  bodies, each of which mostly holds what the one before it did and a little more.
Out: their JSON values, strictly read, in which equal parts of two bodies are one value; and of such values what a
walk made of them.

A history is sent again with every request, so a judge that walks it anew is quadratic in the length of a conversation.
Here a body is taken apart into its members, and lists into their items. Each part is read once; from then on its bytes
give the same value. So a walk whose verdict on an item depends on nothing but the item, and on settings that it names,
can remember that verdict by the item's identity. What depends on order or on other items is walked whole each time.

A value that was read here must not be changed.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

import jiter
import msgspec

from actors.strict.rules.base import Json, is_array, is_object

T = TypeVar("T")

_WHOLE = 2000
"""Bytes of a body that is not taken apart."""
_SMALL = 4000
"""Bytes of a part that is kept. A larger one is read, and judged, each time."""
_MOST = 20_000
"""Parts, and what they were made into, that are kept. When there are more, all are forgotten."""
_DEEP = 100
"""Brackets in a part that may lie so deep that where it stands decides whether it can be read."""

_parts: dict[bytes, Json] = {}
_came: dict[int, tuple[Json, dict[Hashable, Json]]] = {}
"""By the identity of a part, which so stays its own: the part, and what walks made of it."""
_UNKNOWN: tuple[Json, dict[Hashable, Json]] = None, {}


def parse(body: bytes) -> Json:
    """Return the JSON value of `body`, read more strictly than `json.loads` does.

    Raises:
        ValueError: Not UTF-8, a repeated key, NaN or Infinity, a lone surrogate, a number out of range,
            nesting deeper than 200, or anything else that is not JSON.
    """
    return _part(body) if len(body) <= _WHOLE else _latest(body)


def came(make: Callable[..., T], value: Json, *settings: Hashable) -> T:
    """Return what a function makes of a value under these settings. It must depend on nothing else.

    Like the value, what it gave must not be changed; an object of JSON is a part in its turn, of which more may come.
    """
    if (kept := _came.get(id(value))) is None:
        return make(value, *settings)
    known, key = kept[1], (make, *settings) if settings else make
    if key not in known:
        made = known[key] = make(value, *settings)
        if is_object(made):
            _came[id(made)] = made, {}
    return known[key]  # type: ignore[no-any-return]


def fresh(values: Sequence[Json], standard: object) -> Iterator[tuple[int, Json]]:
    """Give the place and the value of each that was not let pass by this standard before.

    Who asks for the next lets the one before it pass; who raises does not. `standard` is from `standard_of`.
    """
    known = [_came.get(id(value), _UNKNOWN)[1] for value in values]
    new = [at for at, passed in enumerate(known) if standard not in passed]
    for at in new:
        yield at, values[at]
        if known[at] is not _UNKNOWN[1]:
            known[at][standard] = None


@lru_cache(maxsize=1000)
def standard_of(walk: str, *settings: Hashable) -> object:
    """Return what stands for a walk under all that its verdict depends on beside the value."""
    return object()


def forget() -> None:
    """Forget all that was read. What is read next is judged as if it were the first."""
    _parts.clear()
    _came.clear()
    _latest.cache_clear()


def _part(text: bytes) -> Json:
    """Read a part, or give what it was read as."""
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
    """Read a body; a server does so more than once for a request."""
    try:
        taken = _taken_apart(body)
    except (ValueError, RecursionError):  # it is read as a whole then, which says what is wrong
        taken = None
    value = _parse_json(body) if taken is None else taken
    if is_object(value):
        _keep(value)
    return value


def _taken_apart(body: bytes) -> dict[str, Json] | None:
    """Read an object by its parts; None if it may hold more than them, as a key twice."""
    members = {key: bytes(raw) for key, raw in _members(body).items()}
    written = b",".join([b'"%b":%b' % (key.encode(), text) for key, text in members.items()])
    if b"{%b}" % written != body or not all(map(str.isidentifier, members)):
        return None
    return {key: _items_of(text) if text[:1] == b"[" else _inner(text) for key, text in members.items()}


def _items_of(text: bytes) -> list[Json]:
    texts = list(map(bytes, _items(text)))
    known = list(map(_parts.get, texts))  # no part that is kept is None
    return [_inner(texts[at]) if value is None else value for at, value in enumerate(known)]


def _inner(text: bytes) -> Json:
    """Read a part of an object or a list, which is known where it was read before."""
    if (known := _parts.get(text)) is not None:
        return known
    if text.count(b"[") + text.count(b"{") > _DEEP:
        raise ValueError("It may be too deep where it stands")
    return _part(text)


_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
