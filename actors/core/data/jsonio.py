"""Read and write strict JSON text, for adapters, tools and ingestion.

Parsed text is later sent to strict providers. So a duplicate key, a NaN, a lone surrogate or excessive depth raises an
error with its reason and is never repaired silently. Written text is compact UTF-8 in insertion order, and
deterministic.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import JSONEncoder
from math import isfinite
from typing import Any, NewType, TypeAlias, TypeGuard

import jiter
from msgspec import DecodeError
from msgspec.json import Decoder, Encoder

Json = NewType("Json", bytes)
"""Exactly one JSON text, encoded in UTF-8."""
Quoted = NewType("Quoted", Json)
"""An encoded JSON string literal, including its quotes."""
JsonObject = NewType("JsonObject", Json)
"""An encoded JSON object."""
JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
"""A parsed JSON value."""

MAX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 64
MAX_ARGUMENTS = 256 * 1024
"""Maximum size of a call's arguments in bytes. Longer arguments count as malformed."""
INT_MIN, INT_MAX = -(2**63), 2**63 - 1

_ENCODER = JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_STRING = Decoder(str)
_LITERAL = Encoder()
_SPACE = re.compile(r"\s+")
_NAMES: Mapping[type, str] = {
    dict: "object",
    list: "array",
    bool: "boolean",
    type(None): "null",
    int: "number",
    float: "number",
}


class JsonRefused(ValueError):
    """Raised for unacceptable JSON text, or for a value without a JSON form. The message is one short line."""


def quote(text: str) -> Json:
    """Return `text` as a JSON string literal, including the quotes. Lone surrogates become U+FFFD."""
    try:
        return _literal(text)
    except UnicodeEncodeError:
        return _literal(sanitise(text))


def quote_unchanged(text: str) -> Json | None:
    """Return `text` as a JSON string literal, or None if it contains lone surrogates."""
    try:
        return _literal(text)
    except UnicodeEncodeError:
        return None


def _literal(text: str) -> Json:
    """Return `text` as a JSON string literal, in a third of the time of `json.encoder.encode_basestring`.

    `join` copies the literal, to drop the spare capacity of the encoder's buffer.

    Raises:
        UnicodeEncodeError: The text contains a lone surrogate.
    """
    if type(text) is not str:
        text = str.__str__(text)  # the encoder rejects subclasses, and encodes the value of an enum member
    return b"".join((_LITERAL.encode(text), b""))  # type: ignore[return-value]  # a call of `Json` takes time


def is_object(value: object) -> TypeGuard[dict[str, Any]]:  # Any: `JsonValue` would need casts
    """Return True for a dict. Unlike `isinstance`, this tells type checkers the types of its keys and values."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[Sequence[Any]]:  # Any: `JsonValue` would need casts
    """Return True for a list or a tuple. Unlike `isinstance`, this tells type checkers the type of its items."""
    return isinstance(value, list | tuple)


def unquote(literal: Json) -> str:
    """Return the text of a JSON string literal.

    Raises:
        JsonRefused: The bytes are not one valid JSON string.
    """
    try:
        return _STRING.decode(literal)
    except (DecodeError, UnicodeDecodeError):
        value = _parse_json(literal)  # raises an error with the reason
    if type(value) is not str:
        raise JsonRefused(f"expected a JSON string, got {_NAMES[type(value)]}")
    return value


def unquote_bytes(literal: Json) -> bytes:
    """Return the text of a JSON string literal in UTF-8.

    Raises:
        JsonRefused: The bytes are not one valid JSON string.
        UnicodeEncodeError: The text contains a lone surrogate.
    """
    return unquote(literal).encode()


MAYBE_BLANK = frozenset(b'" \\') | frozenset(range(0x80, 0x100))
"""The bytes that may follow the opening quote of a blank string literal. Nearly every text begins with another
character, so checking one byte usually saves decoding the text."""


def is_blank(literal: Json) -> bool:
    """Return True if a JSON string literal contains only whitespace."""
    return literal[1] in MAYBE_BLANK and not unquote(literal).strip()


def quote_json(text: Json) -> Json:
    """Return a JSON string literal that contains a JSON text. OpenAI encodes `arguments` in this way."""
    return _literal(text.decode())


def sanitise(text: str) -> str:
    """Return `text` with surrogate pairs joined and each lone surrogate replaced by U+FFFD."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def parse(data: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> JsonValue:
    """Return the value of one JSON text in strict UTF-8, without a byte order mark.

    Input longer than `max_bytes` is rejected without parsing. A scalar has depth 0.

    Raises:
        JsonRefused: The text is not JSON, has trailing data, is too large or too deep, or contains a duplicate key,
            NaN, Infinity, a number that overflows, an integer outside 64 bits, a lone surrogate or a NUL in a key.
    """
    if len(data) > max_bytes:
        raise JsonRefused(f"{len(data)} bytes of JSON exceed the limit of {max_bytes}")
    value = _parse_json(data)
    if reason := _rejection_reason(value, max_depth):
        raise JsonRefused(reason)
    return value


def parse_object(
    raw: str, *, max_bytes: int = MAX_ARGUMENTS, max_depth: int = 32
) -> dict[str, JsonValue] | None:
    """Parse a model's arguments, and return them as a dict; None if they are not exactly one acceptable JSON object.

    Empty or blank text counts as an empty object, because models write nothing for tools without parameters.
    """
    if len(raw) > max_bytes:
        return None
    if not raw or raw.isspace():
        return {}
    try:
        value = parse(raw.encode(), max_bytes=max_bytes, max_depth=max_depth)
    except ValueError:  # JsonRefused, and UnicodeEncodeError for lone surrogates
        return None
    return value if type(value) is dict else None


def resolve_pointer(root: JsonValue, reference: str) -> JsonValue:
    """Return the value in `root` that a JSON pointer (RFC 6901) such as `#` or `#/$defs/A` refers to.

    The result is None for a reference that is not a pointer (`#anchor`, a URL) and for a pointer without a target.
    """
    from urllib.parse import (
        unquote as percent_decoded,  # imported here, because few schemas contain references
    )

    pointer = percent_decoded(reference.removeprefix("#"))
    if not reference.startswith("#") or pointer[:1] not in ("", "/"):
        return None
    found: JsonValue = root
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def dump(value: JsonValue) -> Json:
    """Return compact JSON in insertion order. Lone surrogates become U+FFFD.

    Raises:
        JsonRefused: The value contains NaN, an infinity, a cycle, or an object without a JSON form.
    """
    try:
        text = _ENCODER.encode(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise JsonRefused(_one_line(error)) from None
    try:
        return Json(text.encode())
    except UnicodeEncodeError:
        return Json(sanitise(text).encode())


def _parse_json(data: bytes) -> JsonValue:
    try:
        value: JsonValue = jiter.from_json(
            data, allow_inf_nan=False, cache_mode="keys", catch_duplicate_keys=True
        )
    except ValueError as error:
        raise JsonRefused(_one_line(error)) from None
    return value


def _rejection_reason(value: JsonValue, max_depth: int) -> str | None:
    """Return the reason why a parsed value is not acceptable, or None.

    The value is checked level by level, because with recursion the input would determine the depth of the stack.
    """
    level: list[Iterable[JsonValue]] = [(value,)]
    keys: set[str] = set()
    depth = 0
    while True:
        inner: list[Iterable[JsonValue]] = []
        for items in level:
            for item in items:
                if type(item) is str:
                    continue
                if type(item) is dict:
                    keys.update(item)
                    inner.append(item.values())
                elif type(item) is list:
                    inner.append(item)
                elif type(item) is int:
                    if not INT_MIN <= item <= INT_MAX:
                        return "an integer is outside 64 bits"
                elif type(item) is float and not isfinite(item):
                    return "a number is too large for a float"
        if not inner:
            return "a key contains NUL" if "\0" in "".join(keys) else None
        depth += 1
        if depth > max_depth:
            return f"nested deeper than {max_depth}"
        level = inner


def _one_line(error: BaseException) -> str:
    text = "".join(char if char.isprintable() else "?" for char in _SPACE.sub(" ", str(error)[:400]))
    return text if len(text) <= 200 else text[:199] + "…"
