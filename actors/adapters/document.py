"""Parse the JSON documents of a provider, and keep long texts out of memory.

In:  a JSON text, in UTF-8 if it is bytes.
Out: its value. In a large document, each long string beyond ASCII is a `LongText`.

A document of too many values is rejected before it is parsed: it would block the event loop for seconds.

An almost correct answer must still be read, so this parser is more tolerant than `actors.core.data.jsonio`: it
accepts duplicate keys and half surrogate pairs, which some servers split between two deltas. In a Python string,
every character takes as many bytes as the widest one: a single emoji makes four million bytes of one million. So a
long text stays in its document, and is decoded slice by slice if the caller can use slices.
"""

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, TypeAlias

import jiter

from actors.core.data.jsonio import quote

_LARGE = 1024 * 1024  # bytes of a document; the strings of a smaller one are decoded normally
_LONG = 64 * 1024  # bytes of a string
SLICE = 8 * 1024
"""Most bytes of a slice of a long text."""
MAX_VALUES = 1_000_000
"""Most values of a document, and most strings, names included. Text and images are few values, however long."""
_NO_SEPARATORS = bytes(set(range(256)) - set(b",[{"))
_ESCAPE = 6  # bytes of the longest
_KEY = re.compile(rb"\s*:")


class TooManyValues(ValueError):
    """A document holds more than `MAX_VALUES` values or strings."""


def load(text: str | bytes) -> Any:  # Any: JSON
    """Return the value of a JSON text, in UTF-8 if it is bytes.

    Raises:
        TooManyValues: The text would take too long to parse.
        ValueError: The text is not JSON, or is nested too deep.
    """
    if len(text) > MAX_VALUES:
        _check_values(text)
    return _parse(text)


def _parse(text: str | bytes) -> "_Node":
    try:
        value: _Node = jiter.from_json(text if isinstance(text, bytes) else text.encode(), cache_mode="keys")
    except ValueError:  # jiter rejects half pairs and has a lower depth limit, so the slower parser decides
        try:
            value = json.loads(text if isinstance(text, str) else text.decode("utf-8", "replace"))
        except RecursionError:
            raise ValueError("nested too deep") from None
    return value


class LongText:
    """A string in a JSON document, still encoded between its quotes. `str` decodes all of it."""

    __slots__ = ("_begin", "_document", "_end")

    def __init__(self, document: bytes, begin: int, end: int) -> None:
        self._document, self._begin, self._end = document, begin, end

    def __str__(self) -> str:
        return self._text(self._begin, self._end)

    def slices(self) -> Iterator[str]:
        """Yield the text in pieces, which may be cut inside a surrogate pair.

        Raises:
            ValueError: It is not a JSON string.
        """
        at = self._begin
        while at < self._end:
            end = self._cut_position(at, at + SLICE)
            yield self._text(at, end)
            at = end

    def _text(self, begin: int, end: int) -> str:
        return str(_parse(b'"%b"' % self._document[begin:end]))

    def _cut_position(self, begin: int, end: int) -> int:
        """Return the last position up to `end` that is neither inside a character nor inside an escape."""
        if end >= self._end:
            return self._end
        for _ in range(3):
            end -= self._document[end] & 0xC0 == 0x80
        slash = self._document.rfind(b"\\", end - _ESCAPE + 1, end)
        if slash < 0 or _backslashes(self._document, begin, slash + 1) % 2 == 0:
            return end
        is_long = self._document[slash + 1 : slash + 2] == b"u"
        return slash if slash + (_ESCAPE if is_long else 2) > end else end


def load_document(data: bytes) -> Any:  # Any: as above
    """Return the value of a JSON document in UTF-8; if it is large, with its long texts as `LongText`.

    Raises:
        TooManyValues: The document would take too long to parse.
        ValueError: The document is not JSON, or is nested too deep.
    """
    if len(data) > MAX_VALUES:
        _check_values(data)
    if len(data) < _LARGE or _is_narrow(data):
        return _parse(data)
    texts: dict[str, LongText] = {}
    kept, at = list[memoryview | bytes](), 0
    mark = blake2b(data, digest_size=16).hexdigest()  # cannot occur in the document
    for begin, end in _long_strings(data):
        name = f"{mark} {len(texts)}"
        text = texts[name] = LongText(data, begin, end)
        for _ in text.slices():
            pass  # check each escape now, so that invalid JSON is reported here
        kept += [memoryview(data)[at : begin - 1], quote(name)]
        at = end + 1
    if not texts:
        return _parse(data)
    return _with_texts(_parse(b"".join((*kept, memoryview(data)[at:]))), texts)


def _check_values(text: str | bytes) -> None:
    """Raise if a long document has too many values. Separators inside strings are excluded only if the total is too
    high."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if sum(_separators(data[at : at + SLICE]) for at in range(0, len(data), SLICE)) <= MAX_VALUES:
        return
    separators = quotes = 0
    for _, part in _without_escaped_quotes(data):
        pieces = part.split(b'"')
        separators += _separators(b"".join(pieces[quotes % 2 :: 2]))  # every other piece is in a string
        quotes += len(pieces) - 1
        if separators > MAX_VALUES or quotes > 2 * MAX_VALUES:
            raise TooManyValues


def _separators(data: bytes) -> int:
    """Return the number of characters that each precede at most one value."""
    return len(data.translate(None, _NO_SEPARATORS))


def _without_escaped_quotes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield a document in pieces with their positions. Every remaining quote begins or ends a string."""
    begin = 0
    while begin < len(data):
        end = min(begin + SLICE, len(data))
        end += _backslashes(data, begin, end) % 2
        yield begin, data[begin:end].replace(b"\\\\", b"__").replace(b'\\"', b"__")
        begin = end


def _quotes(data: bytes) -> Iterator[int]:
    """Yield the positions of the quotes around strings."""
    count = 0
    for begin, part in _without_escaped_quotes(data):
        count += part.count(b'"')
        if count > 2 * MAX_VALUES:
            raise TooManyValues
        at = part.find(b'"')
        while at >= 0:
            yield begin + at
            at = part.find(b'"', at + 1)


def _long_strings(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the bounds of long strings beyond ASCII. Keys of objects are excluded."""
    quotes = _quotes(data)
    for before, end in zip(quotes, quotes, strict=False):
        begin = before + 1
        if end - begin >= _LONG and not (_is_narrow(data[begin:end]) or _KEY.match(data, end + 1)):
            yield begin, end


def _backslashes(data: bytes, begin: int, end: int) -> int:
    """Return the number of backslashes directly before `end`, counting no further back than `begin`."""
    size = 16
    while True:
        before = data[max(begin, end - size) : end]
        count = len(before) - len(before.rstrip(b"\\"))
        if count < size:
            return count
        size *= 2


def _is_narrow(text: bytes) -> bool:
    """Return True if each character of a text takes one byte."""
    return text.isascii() and b"\\u" not in text


_Node: TypeAlias = "dict[str, _Node] | list[_Node] | str | LongText | float | bool | None"


def _with_texts(value: _Node, texts: Mapping[str, LongText]) -> object:
    """Return a value, changed in place, with each placeholder name replaced by its text."""
    whole = [value]
    left: list[_Node] = [whole]
    while left:
        holder = left.pop()
        if isinstance(holder, dict):
            for key, inner in holder.items():
                if type(inner) is str:
                    holder[key] = texts.get(inner, inner)
            left += [inner for inner in holder.values() if isinstance(inner, dict | list)]
        elif isinstance(holder, list):
            holder[:] = [texts.get(inner, inner) if type(inner) is str else inner for inner in holder]
            left += [inner for inner in holder if isinstance(inner, dict | list)]
    return whole[0]
