"""What the bytes of an image say: its type and its size in pixels.

In:  the bytes of a file, or the base64 of them, from anyone.
Out: type, width and height of a PNG, JPEG, GIF or WebP; or why a file cannot be such an image.

Only headers are read, and where the parts of a file end; no pixel is decoded, so a bomb costs nothing. The formats are
those of RFC 2083, ITU T.81, GIF89a and RFC 9649. Providers look at the same: they refuse an image whose type is not the
one it is labelled with, or whose sides are too long (ANT-58, ANT-59, ANT-61).
"""

from base64 import b64decode
from binascii import Error
from typing import NamedTuple

_PNG = b"\x89PNG\r\n\x1a\n"
_STARTS = (
    (_PNG, "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
}
_OTHER_IMAGES = ((b"BM", "image/bmp"), (b"II*\0", "image/tiff"), (b"MM\0*", "image/tiff"))
READ_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The types whose headers are read."""

_START = 64  # characters of base64 that tell a type; a multiple of 4
_HEADERS = (128, 64 * 1024, 1024 * 1024)
"""Characters of base64 that are read for a size, until it is found: a JPEG may begin with profiles and a thumbnail."""
_NO_SIZE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers of a JPEG that stand alone
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # markers of a JPEG that tell its size


class ImageHeader(NamedTuple):
    """Type and size of an image, in pixels."""

    media_type: str
    width: int
    height: int

    @property
    def longest_side(self) -> int:
        return max(self.width, self.height)


def detect_media_type(label: str, data: str) -> str:
    """Return the type that the first bytes tell, else the label: what a file is, its bytes know best.

    A text that begins like another file is still a text. `data` is base64.
    """
    if label.startswith("text/"):
        return label
    try:
        start = b64decode(data[:_START])
    except (Error, ValueError):
        return label
    return _type_of(start, is_image=label.startswith("image/")) or label


def read_header(data: str) -> ImageHeader | None:
    """Return the header of an image given as base64; None if it is no image of a known type, or none of its size."""
    for size in _HEADERS:
        try:
            header = _header(b64decode(data[:size]))
        except (Error, ValueError):
            return None
        if header is not None or size >= len(data):
            return header
    return None


def find_damage(media_type: str, data: str) -> str | None:
    """Return why a file of this type cannot be read, in words; None if nothing is wrong with it.

    Args:
        media_type: As `detect_media_type` gives it. Only of `READ_TYPES` is more looked at than the base64.
        data: The whole file as base64.
    """
    try:
        raw = b64decode(data, validate=True)
    except (Error, ValueError):
        return "its data is not base64"
    if not raw:
        return "it is empty"
    if media_type not in READ_TYPES:
        return None
    header = _header(raw)
    if header is None:
        return f"its bytes are not a readable {media_type.partition('/')[2].upper()} header"
    if not header.width or not header.height:
        return f"its header says {header.width} x {header.height} pixels"
    return None if _is_whole(header.media_type, raw) else "it is cut off"


def _type_of(start: bytes, *, is_image: bool) -> str | None:
    for magic, media_type in _STARTS:
        if start.startswith(magic):
            return media_type
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    if start[4:8] == b"ftyp" and start[8:12] in _BRANDS:
        return _BRANDS[start[8:12]]
    weak = _OTHER_IMAGES if is_image else ()  # two letters prove nothing by themselves
    return next((media_type for magic, media_type in weak if start.startswith(magic)), None)


def _header(raw: bytes) -> ImageHeader | None:
    media_type = _type_of(raw[:16], is_image=True)
    size: tuple[int, int] | None = None
    if media_type == "image/png":
        size = _png(raw)
    elif media_type == "image/gif":
        size = (_little(raw, 6, 2), _little(raw, 8, 2)) if len(raw) >= 10 else None
    elif media_type == "image/jpeg":
        size = _jpeg(raw)
    elif media_type == "image/webp":
        size = _webp(raw)
    return None if size is None or media_type is None else ImageHeader(media_type, *size)


def _little(raw: bytes, at: int, count: int) -> int:
    return int.from_bytes(raw[at : at + count], "little")


def _big(raw: bytes, at: int, count: int) -> int:
    return int.from_bytes(raw[at : at + count], "big")


def _png(raw: bytes) -> tuple[int, int] | None:
    """Return the size of a PNG, whose first chunk is IHDR. Apple's own kind has another in front of it."""
    at = len(_PNG)
    if raw[at + 4 : at + 8] == b"CgBI":
        at += 12 + _big(raw, at, 4)
    if raw[at + 4 : at + 8] != b"IHDR" or len(raw) < at + 16:
        return None
    return _big(raw, at + 8, 4), _big(raw, at + 12, 4)


def _jpeg(raw: bytes) -> tuple[int, int] | None:
    """Return the size of a JPEG: that of its first frame, behind any number of segments."""
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF:  # fill
            at += 1
        elif marker in _NO_SIZE:
            at += 2
        elif marker in _FRAMES:
            return _big(raw, at + 7, 2), _big(raw, at + 5, 2)
        elif marker in (0xD9, 0xDA):  # the end, or pixels without a frame
            return None
        else:
            at += 2 + max(_big(raw, at + 2, 2), 2)
    return None


def _webp(raw: bytes) -> tuple[int, int] | None:
    """Return the size of a WebP: of its canvas, or of its one frame, with or without loss."""
    kind = raw[12:16]
    if kind == b"VP8X" and len(raw) >= 30:
        return 1 + _little(raw, 24, 3), 1 + _little(raw, 27, 3)
    if kind == b"VP8L" and len(raw) >= 25 and raw[20] == 0x2F:
        bits = _little(raw, 21, 4)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and len(raw) >= 30 and raw[23:26] == b"\x9d\x01\x2a":
        return _little(raw, 26, 2) & 0x3FFF, _little(raw, 28, 2) & 0x3FFF
    return None


# ---- whether all of a file is there


def _is_whole(media_type: str, raw: bytes) -> bool:
    if media_type == "image/png":
        return _has_png_end(raw)
    if media_type == "image/gif":
        return _has_gif_end(raw)
    if media_type == "image/webp":
        return 8 + _little(raw, 4, 4) <= len(raw)
    return raw.rfind(b"\xff\xd9") > raw.find(b"\xff\xda") > 0


def _has_png_end(raw: bytes) -> bool:
    at = len(_PNG)
    while at + 12 <= len(raw):
        kind, at = raw[at + 4 : at + 8], at + 12 + _big(raw, at, 4)
        if kind == b"IEND":
            return at <= len(raw)
    return False


def _has_gif_end(raw: bytes) -> bool:
    """Return whether a GIF has a whole frame and stops between two blocks; its trailer is often left out."""
    at, frames = _behind_colours(raw, 10, 13), 0
    while at < len(raw):
        if raw[at] == 0x3B:
            return frames > 0
        if raw[at] == 0x21:
            at = _behind_blocks(raw, at + 2)
        elif raw[at] == 0x2C:
            at = _behind_blocks(raw, _behind_colours(raw, at + 9, at + 10) + 1)
            frames += at <= len(raw)
        else:
            return frames > 0  # something that readers skip
    return frames > 0 and at == len(raw)


def _behind_colours(raw: bytes, flags_at: int, at: int) -> int:
    """Return where the table of colours ends that begins at `at`, if the flags say that there is one."""
    flags = raw[flags_at] if flags_at < len(raw) else 0
    return at + (3 << (flags & 7) + 1 if flags & 0x80 else 0)


def _behind_blocks(raw: bytes, at: int) -> int:
    """Return where a row of blocks ends, behind its empty one; a place past the end if that is missing."""
    while at < len(raw) and raw[at]:
        at += 1 + raw[at]
    return at + 1
