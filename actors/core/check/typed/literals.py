"""JSON values that the first reading leaves as they are, and the few questions it has about them."""

import sys

import msgspec
from msgspec import Raw

QUOTE, _BACKSLASH = b'"\\'
_PLAIN = frozenset(range(0x21, 0x7F)) - {QUOTE, _BACKSLASH}
_TEXT = msgspec.json.Decoder(str)


class Doubt(Exception):  # a signal, not an error
    """The fragment is to be read whole."""


class Shape(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An object with the keys that its class names, and no other."""


def literal(raw: Raw, longest: int = sys.maxsize) -> bytes:
    """Return a string as it is written, if it is one and may be that long: it has no more characters than bytes."""
    text = bytes(raw)
    if text[0] != QUOTE or len(text) > longest:
        raise Doubt
    return text


def words(raw: Raw) -> bool:
    """Doubt what is no string with something but whitespace in it, and say whether it ends in whitespace."""
    text = bytes(raw)
    if text[0] != QUOTE:
        raise Doubt
    if text[1] in _PLAIN and text[-2] in _PLAIN and text[-3] != _BACKSLASH:
        return False
    said = _TEXT.decode(text)
    if not said.strip():
        raise Doubt
    return said[-1].isspace()


nested_object = msgspec.json.Decoder(dict[str, Raw]).decode
"""Doubts what is no object written as a string."""
