"""Parse the JSON documents of a provider, and keep long texts out of memory.

In:  a JSON text, in UTF-8 where it is bytes.
Out: its value. In a large document each long string beyond ASCII is a `LongText`.
A document of too many values is refused before it is parsed: it would hold up the event loop for seconds.

An answer that is almost right must still be read, so this parser is more tolerant than `actors.core.data.jsonio`: it
takes duplicate keys and half surrogate pairs, which some servers cut between two deltas.

A Python string takes for each of its characters as many bytes as its widest one needs: one emoji makes four million
bytes of a million. So a long text stays in its document, and is decoded slice by slice where it can be used that way.
"""

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b

import jiter

from actors.core.data.jsonio import quote

_LARGE = 1024 * 1024  # bytes of a document below which its strings may take what they take
_LONG = 64 * 1024  # bytes of a string
SLICE = 8 * 1024
"""Bytes of a slice of a long text, at most."""
MAX_VALUES = 1_000_000
"""Values of a document, and strings of one, names included. Words and images are few values, however long they are."""
_NO_SEPARATORS = bytes(set(range(256)) - set(b",[{"))
_ESCAPE = 6  # bytes of the longest
_KEY = re.compile(rb"\s*:")


class TooManyValues(ValueError):
    """A document holds more than `MAX_VALUES` values or strings."""


def loaded(text: str | bytes) -> object:
    """Return the value of a JSON text, in UTF-8 where it is bytes.

    Raises:
        TooManyValues: It would take too long to parse.
        ValueError: It is not JSON, or nested too deep to read.
    """
    _check_values(text)
    return _parsed(text)


def _parsed(text: str | bytes) -> object:
    try:
        value: object = jiter.from_json(text if isinstance(text, bytes) else text.encode(), cache_mode="keys")
    except ValueError:  # it has no half pairs and less depth, so the slower parser has the last word
        try:
            value = json.loads(text if isinstance(text, str) else text.decode("utf-8", "replace"))
        except RecursionError:
            raise ValueError("nested too deep") from None
    return value


class LongText:
    """A string in a JSON document, as it stands there between its quotes. `str` gives all of it."""

    __slots__ = ("_begin", "_document", "_end")

    def __init__(self, document: bytes, begin: int, end: int) -> None:
        self._document, self._begin, self._end = document, begin, end

    def __str__(self) -> str:
        return self._text(self._begin, self._end)

    def slices(self) -> Iterator[str]:
        """Yield the text in pieces, which may be cut inside a surrogate pair.

        Raises:
            ValueError: It is no JSON string.
        """
        at = self._begin
        while at < self._end:
            end = self._cut(at, at + SLICE)
            yield self._text(at, end)
            at = end

    def _text(self, begin: int, end: int) -> str:
        return str(_parsed(b'"%b"' % self._document[begin:end]))

    def _cut(self, begin: int, end: int) -> int:
        """Return the last place up to `end` that is neither inside a character nor inside an escape, as `begin` is."""
        if end >= self._end:
            return self._end
        for _ in range(3):
            end -= self._document[end] & 0xC0 == 0x80
        slash = self._document.rfind(b"\\", end - _ESCAPE + 1, end)
        if slash < 0 or _backslashes(self._document, begin, slash + 1) % 2 == 0:
            return end
        is_long = self._document[slash + 1 : slash + 2] == b"u"
        return slash if slash + (_ESCAPE if is_long else 2) > end else end


def load_document(data: bytes) -> object:
    """Return the value of a JSON document in UTF-8, with its long texts where it is large.

    Raises:
        TooManyValues: It would take too long to parse.
        ValueError: It is not JSON, or nested too deep to read.
    """
    _check_values(data)
    if len(data) < _LARGE or _is_narrow(data):
        return _parsed(data)
    texts: dict[str, LongText] = {}
    kept, at = list[memoryview | bytes](), 0
    mark = blake2b(data, digest_size=16).hexdigest()  # no document can hold its own
    for begin, end in _long_strings(data):
        name = f"{mark} {len(texts)}"
        text = texts[name] = LongText(data, begin, end)
        for _ in text.slices():
            pass  # it is JSON, or it is found here that it is not
        kept += [memoryview(data)[at : begin - 1], quote(name)]
        at = end + 1
    if not texts:
        return _parsed(data)
    return _with_texts(_parsed(b"".join((*kept, memoryview(data)[at:]))), texts)


def _check_values(text: str | bytes) -> None:
    """Refuse a document of too many values. Commas and brackets are counted in strings too, if that is enough."""
    if len(text) <= MAX_VALUES:
        return
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
    """Return how many characters there are of which each stands in front of one value at most."""
    return len(data.translate(None, _NO_SEPARATORS))


def _without_escaped_quotes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield a document in pieces, and where each begins; every quote in them begins or ends a string."""
    begin = 0
    while begin < len(data):
        end = min(begin + SLICE, len(data))
        end += _backslashes(data, begin, end) % 2
        yield begin, data[begin:end].replace(b"\\\\", b"__").replace(b'\\"', b"__")
        begin = end


def _quotes(data: bytes) -> Iterator[int]:
    """Yield where strings begin and end."""
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
    """Yield where the texts of long strings beyond ASCII begin and end. Keys of objects are none of them."""
    quotes = _quotes(data)
    for before, end in zip(quotes, quotes, strict=False):
        begin = before + 1
        if end - begin >= _LONG and not (_is_narrow(data[begin:end]) or _KEY.match(data, end + 1)):
            yield begin, end


def _backslashes(data: bytes, begin: int, end: int) -> int:
    """Return how many backslashes stand in front of `end`, counting no further back than `begin`."""
    size = 16
    while True:
        before = data[max(begin, end - size) : end]
        count = len(before) - len(before.rstrip(b"\\"))
        if count < size:
            return count
        size *= 2


def _is_narrow(text: bytes) -> bool:
    """Say whether the characters of a text take a byte each."""
    return text.isascii() and b"\\u" not in text


def _with_texts(value: object, texts: Mapping[str, LongText]) -> object:
    """Return a value, changed in place, with a text in place of each string that is the name of one."""
    whole = [value]
    left: list[object] = [whole]
    while left:
        holder = left.pop()
        if isinstance(holder, dict):
            held = list(holder.items())
        elif isinstance(holder, list):
            held = list(enumerate(holder))
        else:
            continue
        for key, inner in held:
            if type(inner) is str:
                holder[key] = texts.get(inner, inner)
            else:
                left.append(inner)
    return whole[0]
