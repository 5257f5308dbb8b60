"""Read the media type and the size of an image from its first bytes, for the limits on image sizes.

This code is independent of `actors.core.data.image_header`, which the renderer uses.
"""

import struct
from base64 import b64decode
from collections.abc import Iterator

from actors.core.data.jsonio import JsonValue

_READ = 1 << 20  # the frame header of a JPEG is searched in this many characters of base64


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
