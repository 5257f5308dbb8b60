"""Read JSON that a provider sent, without relying on its structure.

The functions return an empty value if a value does not have the documented type. Values that become content are first
sanitised by `jsonio`. A `WireObject` records which keys were read, so that the remaining keys can be reported.
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
    """Return a value as compact JSON. Levels that are nested too deeply are replaced with a marker."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except RecursionError:
        return ingest(value).json.decode()


@dataclass(slots=True, frozen=True)
class LongJson:
    """The JSON text of a large value. The text equals the result of `json_text`, but is created in slices to limit
    memory.
    """

    value: object

    def __str__(self) -> str:
        return json_text(self.value)

    def slices(self) -> Iterator[str]:
        """Yield the JSON text in slices of a bounded size."""
        begun: list[str] = []
        size = 0
        for piece in _json_pieces(self.value):
            begun.append(piece)
            size += len(piece)
            if size >= SLICE:
                yield "".join(begun)
                begun, size = [], 0
        yield "".join(begun)


def _json_pieces(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the JSON text of a document's value in pieces. Long strings are split into slices."""
    if isinstance(value, LongText) or (isinstance(value, str) and len(value) > SLICE):
        yield '"'
        for piece in _text_slices(value) if isinstance(value, str) else value.slices():
            yield encode_basestring(piece)[1:-1]
        yield '"'
    elif is_object(value) and value and depth < MAX_DEPTH:
        for before, (key, held) in zip(chain("{", repeat(",")), value.items(), strict=False):
            yield f"{before}{encode_basestring(key)}:"
            yield from _json_pieces(held, depth + 1)
        yield "}"
    elif is_array(value) and value and depth < MAX_DEPTH:
        for before, held in zip(chain("[", repeat(",")), value, strict=False):
            yield before
            yield from _json_pieces(held, depth + 1)
        yield "]"
    else:
        yield json_text(value)


def _text_slices(text: str) -> Iterator[str]:
    return (text[at : at + SLICE] for at in range(0, len(text), SLICE))


Long: TypeAlias = LongText | LongJson
"""A text that is read in slices, so that it never becomes one large string."""


def argument_text(value: object) -> str | LongText:
    """Return the arguments of a call, or a fragment of arguments, as text.

    Some servers send an object where a string is documented, or the reverse. An empty value of any type becomes "",
    because some relays write an empty object as `[]`.
    """
    if isinstance(value, str | LongText):
        return value
    return json_text(value) if value else ""


# Called for each event of a stream. A second variable satisfies the type checker; calling `is_object` would double
# the time.
def as_object(value: Any) -> Fields:  # Any: provider JSON of unknown structure
    """Return `value` if it is an object; otherwise an empty object."""
    held: Fields = value
    return held if isinstance(value, dict) else _NOTHING


def as_array(value: Any) -> Sequence[object]:  # Any: provider JSON of unknown structure
    """Return `value` if it is an array; otherwise an empty array."""
    held: Sequence[object] = value
    return held if isinstance(value, list | tuple) else ()


def first_candidate(value: Any) -> Fields:  # Any: provider JSON of unknown structure
    """Return the candidate with index 0 from a list of candidates. Requests never ask for more than one."""
    held: Sequence[Any] = value
    for each in held if type(value) is list else ():
        candidate: Fields = each
        if type(each) is dict and (not (index := candidate.get("index")) or index == "0"):
            return candidate
    return _NOTHING


def as_string(value: object) -> str:
    """Return `value` if it is a string; otherwise ""."""
    return str(value) if isinstance(value, str | LongText) else ""


def as_long_string(value: object) -> str | LongText:
    """Return `value` if it is a string; otherwise "". A long string stays encoded in its document."""
    return value if isinstance(value, str | LongText) else ""


def whole_number(value: object) -> int | None:
    """Return `value` if it is a whole number of at least 0; otherwise None. Booleans do not count as numbers."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


class WireObject:
    """A JSON object that records which of its keys were read. Any value that is not an object counts as empty."""

    __slots__ = ("_opened", "_taken", "fields")

    def __init__(self, value: Any) -> None:  # Any: provider JSON of unknown structure
        self.fields: Fields = value if type(value) is dict else as_object(as_plain_data(value))
        self._taken: set[str] = set()
        self._opened: dict[
            str, list[Any]
        ] = {}  # Any: a WireObject for each object, and any other JSON value as it is

    def __bool__(self) -> bool:
        return bool(self.fields)

    def read_value(self, *keys: str, kind: type = object) -> object:
        """Return the value of the first key in `keys` whose value has the type `kind`, and mark that key as read.

        Return None if no key has such a value.
        """
        for key in keys:
            value = self.fields.get(key)
            if value is not None and isinstance(value, kind):
                self._taken.add(key)
                return value
        return None

    def read_text(self, *keys: str) -> str:
        """Return the first string under these keys, sanitised, and mark its key as read. Return "" if there is none."""
        for key in keys:
            if isinstance(value := self.fields.get(key), str):
                self._taken.add(key)
                return value if value.isascii() else sanitise(value)
        return ""

    def read_id(self, *keys: str) -> str:
        """Return the id that pairs a call with its results: the first value under these keys, or "" if that value is
        blank.
        """
        value = self.read_value(*keys)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)[:64]
        return sanitise(value) if isinstance(value, str) and value.strip() else ""

    def has_value(self, key: str, *values: object) -> bool:
        """If the value of a key is one of `values`, mark the key as read and return True. Otherwise, return False."""
        found = self.fields.get(key) in values
        if found and key in self.fields:
            self._taken.add(key)
        return found

    def read_object(self, *keys: str) -> "WireObject":
        """Return the first object under these keys, or an empty object if none of their values is an object."""
        for key in keys:
            if is_object(value := as_plain_data(self.fields.get(key))):
                opened: WireObject = self._wrap_values(key, [value])[0]
                return opened
        return _EMPTY

    def read_list(self, *keys: str) -> Sequence[object]:
        """Return the items of the first list under these keys. Objects are wrapped in `WireObject`, and a single object
        counts as a list.
        """
        for key in keys:
            value = as_plain_data(self.fields.get(key))
            if is_array(value):
                return self._wrap_values(key, value)
            if is_object(value):
                return self._wrap_values(key, [value])
        return ()

    def read_all(self) -> Fields:
        """Return all fields, and mark every key as read."""
        self._taken.update(self.fields)
        return self.fields

    def is_read(self) -> bool:
        """Return True if every key of this object, and of every nested object that was read, was read."""
        for key in self.fields.keys() - self._taken:
            if (opened := self._opened.get(key)) is None:
                return False
            for item in opened:
                if isinstance(item, WireObject) and not item.is_read():
                    return False
        return True

    def unread_paths(self) -> Iterator[str]:
        """Yield the path of each unread key that has a value, such as `.tools[].strict`. List indices are omitted."""
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

    def _wrap_values(self, key: str, values: Sequence[object]) -> list[Any]:  # Any: as in `_opened`
        if key not in self._opened:
            self._opened[key] = [WireObject(item) if type(item) is dict else _wrap(item) for item in values]
        return self._opened[key]


def _wrap(value: object) -> object:
    plain = as_plain_data(value)
    return WireObject(plain) if is_object(plain) else plain


def as_plain_data(value: object) -> object:
    """Return a value as plain data. Users put objects of vendors' client libraries into their dicts; these are
    converted with `model_dump`.
    """
    if type(value) in _PLAIN:
        return value
    dump = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        return value
    try:
        dumped: object = dump()
    except Exception:  # a vendor's code may raise any exception; the value is then kept as text
        return value
    return dumped


_EMPTY = WireObject(None)  # can be shared, because an object without keys never changes
