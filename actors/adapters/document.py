"""Parse the JSON documents of a provider without decoding long texts.

In:  a JSON text, in UTF-8 if it is bytes.
Out: its value. In a large document, each long string with non-ASCII characters is a `LongText`.

A document with too many values is rejected before it is parsed, because parsing would block the event loop for seconds.

Slightly malformed answers should still be usable, so this parser is more tolerant than `actors.core.data.jsonio`. It
accepts duplicate keys, and halves of surrogate pairs, because some servers split a pair between two deltas.

A Python string stores every character with the width of its widest one, so a single emoji turns one million bytes into
four million. Therefore, a long text stays encoded in its document. Callers that can process slices decode it slice by
slice.
"""

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, TypeAlias

import jiter

from actors.core.data.jsonio import quote

_LARGE = 1024 * 1024  # bytes; the strings of a smaller document are decoded normally
_LONG = 64 * 1024  # bytes; a longer string in a large document becomes a `LongText`
SLICE = 8 * 1024
"""Maximum size of a slice of a long text, in bytes."""
MAX_VALUES = 1_000_000
"""Maximum number of values in a document, and maximum number of its strings and keys. A text or an image is a single
value of any length.
"""
_NO_SEPARATORS = bytes(set(range(256)) - set(b",[{"))
_ESCAPE = 6  # bytes of the longest escape sequence
_KEY = re.compile(rb"\s*:")


class TooManyValues(ValueError):
    """A document contains more than `MAX_VALUES` values or strings."""


def load_json(text: str | bytes) -> Any:  # Any: any JSON value
    """Return the value of a JSON text, in UTF-8 if it is bytes.

    Raises:
        TooManyValues: The text would take too long to parse.
        ValueError: The text is not JSON, or is nested too deeply.
    """
    if len(text) > MAX_VALUES:
        _check_value_count(text)
    return _parse_document(text)


def _parse_document(text: str | bytes) -> "_Node":
    try:
        value: _Node = jiter.from_json(text if isinstance(text, bytes) else text.encode(), cache_mode="keys")
    except ValueError:  # jiter rejects half surrogate pairs and deep nesting, so the slower parser decides
        try:
            value = json.loads(text if isinstance(text, str) else text.decode("utf-8", "replace"))
        except RecursionError:
            raise ValueError("the JSON text is nested too deeply") from None
    return value


class LongText:
    """A string in a JSON document that is not decoded yet. `str` decodes the complete string."""

    __slots__ = ("_begin", "_document", "_end")

    def __init__(self, document: bytes, begin: int, end: int) -> None:
        self._document, self._begin, self._end = document, begin, end

    def __str__(self) -> str:
        return self._decode_range(self._begin, self._end)

    def slices(self) -> Iterator[str]:
        """Yield the text in slices, which may be cut inside a surrogate pair.

        Raises:
            ValueError: The text is not a JSON string.
        """
        at = self._begin
        while at < self._end:
            end = self._cut_position(at, at + SLICE)
            yield self._decode_range(at, end)
            at = end

    def _decode_range(self, begin: int, end: int) -> str:
        return str(_parse_document(b'"%b"' % self._document[begin:end]))

    def _character_begin(self, position: int) -> int:
        """Return the beginning of the character at a position, or the position if the bytes are not UTF-8."""
        for begin in range(position, position - 4, -1):
            byte = self._document[begin]
            if byte & 0xC0 != 0x80:
                return begin if begin + _character_size(byte) > position else position
        return position

    def _cut_position(self, begin: int, end: int) -> int:
        """Return the last position up to `end` that is neither inside a character nor inside an escape sequence."""
        if end >= self._end:
            return self._end
        end = self._character_begin(end)
        slash = self._document.rfind(b"\\", end - _ESCAPE + 1, end)
        if slash < 0 or _count_backslashes(self._document, begin, slash + 1) % 2 == 0:
            return end
        is_long = self._document[slash + 1 : slash + 2] == b"u"
        return slash if slash + (_ESCAPE if is_long else 2) > end else end


def _character_size(first: int) -> int:
    """Return the number of bytes of the UTF-8 character with this first byte."""
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def load_document(data: bytes) -> Any:  # Any: any JSON value
    """Return the value of a JSON document in UTF-8. In a large document, long texts are `LongText`.

    Raises:
        TooManyValues: The document would take too long to parse.
        ValueError: The document is not JSON, or is nested too deeply.
    """
    if len(data) > MAX_VALUES:
        _check_value_count(data)
    if len(data) < _LARGE or _is_ascii_only(data):
        return _parse_document(data)
    texts: dict[str, LongText] = {}
    kept, at = list[memoryview | bytes](), 0
    mark = blake2b(data, digest_size=16).hexdigest()  # a digest of the document cannot occur in the document
    for begin, end in _long_strings(data):
        name = f"{mark} {len(texts)}"
        text = texts[name] = LongText(data, begin, end)
        for _ in text.slices():
            pass  # decode each slice once, so that invalid JSON raises an error here
        kept += [memoryview(data)[at : begin - 1], quote(name)]
        at = end + 1
    if not texts:
        return _parse_document(data)
    return _insert_texts(_parse_document(b"".join((*kept, memoryview(data)[at:]))), texts)


def _check_value_count(text: str | bytes) -> None:
    """Raise `TooManyValues` if a long document has too many values.

    First, count all separators, which is fast but includes those inside strings. Only if the count is too high,
    determine the exact number.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if sum(_count_separators(data[at : at + SLICE]) for at in range(0, len(data), SLICE)) <= MAX_VALUES:
        return
    separators = quotes = 0
    for _, part in _mask_escaped_quotes(data):
        pieces = part.split(b'"')
        # The pieces are alternately outside and inside a string. Count only separators outside strings.
        separators += _count_separators(b"".join(pieces[quotes % 2 :: 2]))
        quotes += len(pieces) - 1
        if separators > MAX_VALUES or quotes > 2 * MAX_VALUES:
            raise TooManyValues


def _count_separators(data: bytes) -> int:
    """Return the number of `,`, `[` and `{` in `data`. Each of these precedes at most one value."""
    return len(data.translate(None, _NO_SEPARATORS))


def _mask_escaped_quotes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the pieces of a document with their positions. Escaped quotation marks are masked.

    Each remaining quotation mark begins or ends a string.
    """
    begin = 0
    while begin < len(data):
        end = min(begin + SLICE, len(data))
        end += _count_backslashes(data, begin, end) % 2
        yield begin, data[begin:end].replace(b"\\\\", b"__").replace(b'\\"', b"__")
        begin = end


def _quote_positions(data: bytes) -> Iterator[int]:
    """Yield the positions of the quotation marks that begin or end strings."""
    count = 0
    for begin, part in _mask_escaped_quotes(data):
        count += part.count(b'"')
        if count > 2 * MAX_VALUES:
            raise TooManyValues
        at = part.find(b'"')
        while at >= 0:
            yield begin + at
            at = part.find(b'"', at + 1)


def _long_strings(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each long string with non-ASCII characters. Object keys are excluded."""
    quotes = _quote_positions(data)
    for before, end in zip(quotes, quotes, strict=False):
        begin = before + 1
        if end - begin >= _LONG and not (_is_ascii_only(data[begin:end]) or _KEY.match(data, end + 1)):
            yield begin, end


def _count_backslashes(data: bytes, begin: int, end: int) -> int:
    """Return the number of successive backslashes between `begin` and `end` that directly precede `end`."""
    size = 16
    while True:
        before = data[max(begin, end - size) : end]
        count = len(before) - len(before.rstrip(b"\\"))
        if count < size:
            return count
        size *= 2


def _is_ascii_only(text: bytes) -> bool:
    """Return True if a JSON text contains only ASCII characters, even after its escape sequences are decoded."""
    return text.isascii() and b"\\u" not in text


_Node: TypeAlias = "dict[str, _Node] | list[_Node] | str | LongText | float | bool | None"


def _insert_texts(value: _Node, texts: Mapping[str, LongText]) -> object:
    """Replace each placeholder in a value, in place, with its text from `texts`. Return the value."""
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
