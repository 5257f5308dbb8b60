"""Inspect the JSON values of a request: keys, image headers and tool schemas; and quote values in error messages.

The media type and the size of an image are read from its first bytes, for the limits on image sizes. This code is
independent of `actors.core.data.image_header`, which the renderer uses.

A tool's JSON Schema may contain faults: invalid subschemas, and keys and patterns that a host rejects.
"""

import re
import struct
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from actors.core.data.jsonio import JsonValue
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.narrow import facts_of

Shape: TypeAlias = Mapping[str, JsonValue]
"""The keys that an object may have, with the default value of each key."""
KINDS: Mapping[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    type(None): "null",
}
_READ = 1 << 20  # the frame header of a JPEG is searched in this many characters of base64
_OF_ALL = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_OF_LIST = ("allOf", "anyOf", "oneOf", "prefixItems")
_OF_ONE = frozenset(
    """additionalItems additionalProperties contains else if items not propertyNames then unevaluatedItems
    unevaluatedProperties""".split()  # noqa: SIM905  a list literal would fill a page
)
_DEEPEST = 64
_ESCAPED = re.compile(r"\\.", re.DOTALL)


def shape(keys: str, **defaults: JsonValue) -> dict[str, JsonValue]:
    """Return the keys of an object with their default values.

    `keys` contains names separated by spaces. A key that is not in `defaults` has the default null.
    """
    return dict.fromkeys(keys.split()) | defaults


def value_at(value: JsonValue, *keys: str) -> JsonValue:
    """Return the value at a path of object keys, or None if the path does not exist."""
    for key in keys:
        value = value.get(key) if type(value) is dict else None
    return value


def excerpt(value: JsonValue) -> str:
    """Return any JSON value as one line of at most 60 characters, for error messages."""
    if isinstance(value, dict | list):
        return kind_of(value)
    text = ascii(value if type(value) is not str else value[:61])
    return text if len(text) <= 60 else text[:59] + "…"


def kind_of(value: JsonValue) -> str:
    """Return the type of a JSON value with its article, such as `an object`."""
    return KINDS.get(type(value), "a number")


def read_picture(data: JsonValue) -> tuple[str, int] | None:
    """Return the media type and the longest side in pixels of a base64 image; None if its header cannot be read."""
    if type(data) is not str:
        return None
    try:
        raw = b64decode(data[:64])
        media_type = _media_type(raw)
        if media_type == "image/jpeg":
            raw = b64decode(data[:_READ])
        return (media_type, max(_read_sides(media_type, raw))) if media_type else None
    except (ValueError, struct.error):  # the data is not base64, or too short for the header
        return None


def _media_type(raw: bytes) -> str:
    if raw.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if raw.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if raw.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    return "image/webp" if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP" else ""


def _read_sides(media_type: str, raw: bytes) -> tuple[int, ...]:
    if media_type == "image/png":
        return struct.unpack_from(">II", raw, 16)
    if media_type == "image/gif":
        return struct.unpack_from("<HH", raw, 6)
    if media_type == "image/jpeg":
        return next(_jpeg_frames(raw), (0,))
    if raw[12:16] == b"VP8X":
        wide, high = raw[24:27] + b"\0", raw[27:30] + b"\0"
        return struct.unpack("<I", wide)[0] + 1, struct.unpack("<I", high)[0] + 1
    if raw[12:16] == b"VP8L":
        bits = struct.unpack_from("<I", raw, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return tuple(side & 0x3FFF for side in struct.unpack_from("<HH", raw, 26))


def _jpeg_frames(raw: bytes) -> Iterator[tuple[int, ...]]:
    """Yield (height, width) in pixels from each frame header of a JPEG."""
    at = 2
    while at + 9 <= len(raw):
        mark, kind = raw[at], raw[at + 1]
        if mark != 0xFF or kind == 0xFF:
            at += 1
        elif kind == 0x01 or 0xD0 <= kind <= 0xD8:
            at += 2
        else:
            if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
                yield struct.unpack_from(">HH", raw, at + 5)
            at += 2 + int(struct.unpack_from(">H", raw, at + 2)[0])


def schema_faults(schema: JsonValue, dialect: Dialect, model: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield (rule, description) for each fault inside a tool's schema. The rules depend on dialect and model."""
    rules = dialect.request
    is_named = isinstance(model, str) and not dialect.narrowed_to
    pattern = (facts_of(dialect, str(model)) if is_named else dialect.model).property_keys
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if pattern is not None and isinstance(properties, dict):
        for key in properties:
            if not re.fullmatch(pattern, key):
                yield "ANT-57", f"the property key {_excerpt(key)} does not match {pattern}"
    for path, value in _subschemas(schema, "", _DEEPEST):
        if not isinstance(value, dict | bool):
            yield "ALL-02 schema", f"the value at {path[:80]} in the JSON Schema must be a schema"
        elif rules.patterns != "any" and isinstance(value, dict):
            for found in _regular_expressions(value):
                if rules.patterns == "none" or _has_special_group(found):
                    yield "CMP-03", f"the server cannot build a grammar for the pattern {_excerpt(found)}"


def _subschemas(schema: JsonValue, path: str, depth_left: int) -> Iterator[tuple[str, JsonValue]]:
    """Yield (path, value) for the schema and for every value inside it that must be a schema.

    `depth_left` is the number of nested levels to visit.
    """
    yield path, schema
    if not isinstance(schema, dict) or not depth_left:
        return
    for keyword, value in schema.items():
        below: list[tuple[str, JsonValue]] = []
        if isinstance(value, dict) and keyword in _OF_ALL:
            below = list(value.items())
        elif isinstance(value, list) and (keyword in _OF_LIST or keyword == "items"):
            below = [(str(at), item) for at, item in enumerate(value)]
        elif keyword in _OF_ONE:
            below = [("", value)]
        for name, inner in below:
            yield from _subschemas(inner, f"{path}.{keyword}.{name}".strip("."), depth_left - 1)


def _regular_expressions(schema: dict[str, JsonValue]) -> list[str]:
    pattern, by_key = schema.get("pattern"), schema.get("patternProperties")
    return [*([pattern] if isinstance(pattern, str) else ()), *(by_key if isinstance(by_key, dict) else ())]


def _has_special_group(pattern: str) -> bool:
    """Return True if a regular expression contains a lookaround, a named group or a flag."""
    return "(?" in _ESCAPED.sub("", pattern).replace("(?:", "")


def _excerpt(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:59] + "…")
