"""Read JSON that a provider sent, without trusting its shape.

The helpers return an empty value where the wire has another type than the documentation says. Values that become
content go through `jsonio` first. A `WireObject` records which keys were read, so the rest is reported without a second
list of keys.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from json.encoder import encode_basestring
from typing import Any, TypeAlias

from actors.adapters.document import SLICE, LongText
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import MAX_DEPTH, is_array, is_object, sanitise

Fields: TypeAlias = Mapping[str, object]

_NOTHING: Fields = {}
_PLAIN = frozenset({str, dict, list, tuple, int, float, bool, type(None)})


def json_text(value: object) -> str:
    """Return compact JSON of a value from a document. Values that are nested too deep are cut, with a mark."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except RecursionError:
        return ingest(value).json.decode()


@dataclass(slots=True, frozen=True)
class LongJson:
    """The text of `json_text` of a large value, made in slices to limit memory."""

    value: object

    def __str__(self) -> str:
        return json_text(self.value)

    def slices(self) -> Iterator[str]:
        """Yield the text in slices of a bounded size."""
        begun: list[str] = []
        size = 0
        for piece in _pieces(self.value):
            begun.append(piece)
            size += len(piece)
            if size >= SLICE:
                yield "".join(begun)
                begun, size = [], 0
        yield "".join(begun)


def _pieces(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the JSON text of a document's value, long texts in slices."""
    if isinstance(value, LongText) or (isinstance(value, str) and len(value) > SLICE):
        yield '"'
        for piece in _slices(value) if isinstance(value, str) else value.slices():
            yield encode_basestring(piece)[1:-1]
        yield '"'
    elif is_object(value) and value and depth < MAX_DEPTH:
        for before, (key, held) in zip(chain("{", repeat(",")), value.items(), strict=False):
            yield f"{before}{encode_basestring(key)}:"
            yield from _pieces(held, depth + 1)
        yield "}"
    elif is_array(value) and value and depth < MAX_DEPTH:
        for before, held in zip(chain("[", repeat(",")), value, strict=False):
            yield before
            yield from _pieces(held, depth + 1)
        yield "]"
    else:
        yield json_text(value)


def _slices(text: str) -> Iterator[str]:
    return (text[at : at + SLICE] for at in range(0, len(text), SLICE))


Long: TypeAlias = LongText | LongJson
"""A text that is read in slices, so that no string holds all of it."""


def argument_text(value: object) -> str | LongText:
    """Return the arguments of a call, or a fragment of them, as text.

    Some servers send an object in place of the documented string, and the reverse. An empty value of any type is an
    empty text: some relays write an empty object as `[]`.
    """
    if isinstance(value, str | LongText):
        return value
    return json_text(value) if value else ""


# called for each part of a stream: typed by a second name, because a call of `is_object` takes as long as the rest
def fields(value: Any) -> Fields:  # Any: what a provider sent
    """Return `value` if it is an object, else an empty one."""
    held: Fields = value
    return held if isinstance(value, dict) else _NOTHING


def items(value: Any) -> Sequence[object]:  # Any: as above
    """Return `value` if it is an array, else an empty one."""
    held: Sequence[object] = value
    return held if isinstance(value, list | tuple) else ()


def first(value: Any) -> Fields:  # Any: as above
    """Return the candidate with index 0; requests ask for one only."""
    held: Sequence[Any] = value
    for each in held if type(value) is list else ():
        candidate: Fields = each
        if type(each) is dict and (not (index := candidate.get("index")) or index == "0"):
            return candidate
    return _NOTHING


def string(value: object) -> str:
    """Return `value` if it is a string, else an empty one."""
    return str(value) if isinstance(value, str | LongText) else ""


def long_string(value: object) -> str | LongText:
    """Return `value` if it is a string (a long one still encoded in its document), else an empty one."""
    return value if isinstance(value, str | LongText) else ""


def number(value: object) -> int | None:
    """Return `value` if it is a whole number that is not negative, else None. True is not a number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


class WireObject:
    """A JSON object, read key by key. Any other value counts as an object without keys."""

    __slots__ = ("_opened", "_taken", "fields")

    def __init__(self, value: object) -> None:
        self.fields: Fields = fields(plain(value))
        self._taken: set[str] = set()
        self._opened: dict[str, list[Any]] = {}  # Any: a WireObject for each object below a key, other values

    def __bool__(self) -> bool:
        return bool(self.fields)

    def take(self, *keys: str, kind: type = object) -> object:
        """Return the value of the first of these keys with a value of this kind, and mark it as read; None if none
        has one."""
        for key in keys:
            value = self.fields.get(key)
            if value is not None and isinstance(value, kind):
                self._taken.add(key)
                return value
        return None

    def text(self, *keys: str) -> str:
        """Return the first text under these keys, sanitised, and mark it as read; an empty text if there is none."""
        for key in keys:
            if isinstance(value := self.fields.get(key), str):
                self._taken.add(key)
                return value if value.isascii() else sanitise(value)
        return ""

    def native_id(self, *keys: str) -> str:
        """Return the id that pairs a call with its results: the first value under these keys. A blank id is empty."""
        value = self.take(*keys)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)[:64]
        return sanitise(value) if isinstance(value, str) and value.strip() else ""

    def has_value(self, key: str, *values: object) -> bool:
        """Return True if a key has one of these values, and mark it as read if so."""
        found = self.fields.get(key) in values
        if found and key in self.fields:
            self._taken.add(key)
        return found

    def inner(self, *keys: str) -> "WireObject":
        """Return the object under the first of these keys that holds one."""
        for key in keys:
            if is_object(value := plain(self.fields.get(key))):
                opened: WireObject = self._open(key, [value])[0]
                return opened
        return _EMPTY

    def each(self, *keys: str) -> Sequence[object]:
        """Return the items of a list, objects as `WireObject`. A single object is a list of one."""
        for key in keys:
            value = plain(self.fields.get(key))
            if is_object(value):
                return self._open(key, [value])
            if is_array(value):
                return self._open(key, value)
        return ()

    def whole(self) -> Fields:
        """Return all fields, and mark them as read."""
        self._taken.update(self.fields)
        return self.fields

    def unread_paths(self) -> Iterator[str]:
        """Yield the path of each unread key with a value. Indices of lists are omitted."""
        for key, value in self.fields.items():
            if key in self._taken or value is None or value is False:
                continue
            if isinstance(value, str | list | tuple | dict) and not value:
                continue
            if key not in self._opened:
                yield f".{key}"
                continue
            mark = "[]" if isinstance(value, list | tuple) else ""
            for item in self._opened[key]:
                if isinstance(item, WireObject):
                    yield from (f".{key}{mark}{path}" for path in item.unread_paths())

    def _open(self, key: str, values: Sequence[object]) -> list[Any]:  # Any: as `_opened` has them
        if key not in self._opened:
            items = map(plain, values)
            self._opened[key] = [WireObject(item) if is_object(item) else item for item in items]
        return self._opened[key]


def plain(value: object) -> object:
    """Return a value as plain data: users store objects of a vendor's client among their own dicts."""
    if type(value) in _PLAIN:
        return value
    dump = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        return value
    try:
        dumped: object = dump()
    except Exception:  # foreign code may raise anything; the value is then kept as text
        return value
    return dumped


_EMPTY = WireObject(None)  # shared: an object without keys never changes
