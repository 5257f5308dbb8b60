"""Read the media type and the size in pixels from the bytes of an image, for attachments.

In:  untrusted bytes of a file, or their base64.
Out: type, width and height of a PNG, JPEG, GIF or WebP; or the reason why a file is not a valid image.

Only the headers and the end of the file are read. No pixel is decoded, so a decompression bomb costs nothing. The
formats are those of RFC 2083, ITU T.81, GIF89a and RFC 9649. Providers check the same properties: they reject an image
with a wrong media type or with too long sides (ANT-58, ANT-59, ANT-61).
"""

from base64 import b64decode
from binascii import Error
from typing import NamedTuple

_PNG = b"\x89PNG\r\n\x1a\n"
_MAGIC_NUMBERS = (
    (_PNG, "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_MP4_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
}
_OTHER_IMAGES = ((b"BM", "image/bmp"), (b"II*\0", "image/tiff"), (b"MM\0*", "image/tiff"))
READ_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Media types whose headers this module can parse."""

_PREFIX_LENGTH = 64  # characters of base64 that are enough to detect a type; a multiple of 4
_HEADER_LENGTHS = (128, 64 * 1024, 1024 * 1024)
"""Numbers of leading base64 characters in which the size is searched, one after another. A JPEG may begin with profiles
and a thumbnail, so its size may be far from the start."""
_MARKERS_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})  # JPEG markers without a length field
# JPEG markers of frames, which contain the size
_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class ImageHeader(NamedTuple):
    """The media type and the size in pixels of an image."""

    media_type: str
    width: int
    height: int

    @property
    def longest_side(self) -> int:
        return max(self.width, self.height)


def detect_media_type(label: str, data: str) -> str:
    """Return the media type that the first bytes of base64 `data` identify, or `label` if they identify none.

    A `text/*` label is always returned, because plain text may begin with any bytes.
    """
    if label.startswith("text/"):
        return label
    try:
        start = b64decode(data[:_PREFIX_LENGTH])
    except (Error, ValueError):
        return label
    return _media_type_of(start, is_image=label.startswith("image/")) or label


def read_header(data: str) -> ImageHeader | None:
    """Return the header of a base64 image; None if the type is unknown or the size is missing."""
    for size in _HEADER_LENGTHS:
        try:
            header = _parse_header(b64decode(data[:size]))
        except (Error, ValueError):
            return None
        if header is not None or size >= len(data):
            return header
    return None


def find_damage(media_type: str, data: str) -> str | None:
    """Return the reason why a file of this type cannot be read; None if the file is intact.

    Args:
        media_type: The result of `detect_media_type`. Types outside `READ_TYPES` are checked for valid base64 only.
        data: The complete file as base64.
    """
    try:
        raw = b64decode(data, validate=True)
    except (Error, ValueError):
        return "its data is not valid base64"
    if not raw:
        return "it is empty"
    if media_type not in READ_TYPES:
        return None
    header = _parse_header(raw)
    if header is None:
        return f"its {media_type.partition('/')[2].upper()} header is not readable"
    if not header.width or not header.height:
        return f"its header states a size of {header.width} x {header.height} pixels"
    return None if _is_complete(header.media_type, raw) else "it is incomplete"


def _media_type_of(first_bytes: bytes, *, is_image: bool) -> str | None:
    for magic, media_type in _MAGIC_NUMBERS:
        if first_bytes.startswith(magic):
            return media_type
    if first_bytes[:4] == b"RIFF" and first_bytes[8:12] == b"WEBP":
        return "image/webp"
    if first_bytes[4:8] == b"ftyp" and first_bytes[8:12] in _MP4_BRANDS:
        return _MP4_BRANDS[first_bytes[8:12]]
    # two bytes identify an image type only if the label is an image type too
    weak = _OTHER_IMAGES if is_image else ()
    return next((media_type for magic, media_type in weak if first_bytes.startswith(magic)), None)


def _parse_header(raw: bytes) -> ImageHeader | None:
    media_type = _media_type_of(raw[:16], is_image=True)
    size: tuple[int, int] | None = None
    if media_type == "image/png":
        size = _png_size(raw)
    elif media_type == "image/gif":
        size = (_little_endian(raw, 6, 2), _little_endian(raw, 8, 2)) if len(raw) >= 10 else None
    elif media_type == "image/jpeg":
        size = _jpeg_size(raw)
    elif media_type == "image/webp":
        size = _webp_size(raw)
    return None if size is None or media_type is None else ImageHeader(media_type, *size)


def _little_endian(raw: bytes, offset: int, count: int) -> int:
    return int.from_bytes(raw[offset : offset + count], "little")


def _big_endian(raw: bytes, offset: int, count: int) -> int:
    return int.from_bytes(raw[offset : offset + count], "big")


def _png_size(raw: bytes) -> tuple[int, int] | None:
    """Return (width, height) from a PNG's IHDR chunk. In Apple's variant of PNG, a CgBI chunk precedes this chunk."""
    at = len(_PNG)
    if raw[at + 4 : at + 8] == b"CgBI":
        at += 12 + _big_endian(raw, at, 4)
    if raw[at + 4 : at + 8] != b"IHDR" or len(raw) < at + 16:
        return None
    return _big_endian(raw, at + 8, 4), _big_endian(raw, at + 12, 4)


def _jpeg_size(raw: bytes) -> tuple[int, int] | None:
    """Return (width, height) from a JPEG's first frame header, or None if the JPEG has no frame header."""
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF:  # a fill byte before a marker
            at += 1
        elif marker in _MARKERS_WITHOUT_LENGTH:
            at += 2
        elif marker in _FRAME_MARKERS:
            return _big_endian(raw, at + 7, 2), _big_endian(raw, at + 5, 2)
        elif marker in (0xD9, 0xDA):  # the image ends, or its pixels begin, before any frame header
            return None
        else:
            at += 2 + max(_big_endian(raw, at + 2, 2), 2)
    return None


def _webp_size(raw: bytes) -> tuple[int, int] | None:
    """Return (width, height) of a WebP's canvas, or of its only frame if it has no canvas.

    Return None if the file has neither a canvas nor a frame.
    """
    kind = raw[12:16]
    if kind == b"VP8X" and len(raw) >= 30:
        return 1 + _little_endian(raw, 24, 3), 1 + _little_endian(raw, 27, 3)
    if kind == b"VP8L" and len(raw) >= 25 and raw[20] == 0x2F:
        bits = _little_endian(raw, 21, 4)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and len(raw) >= 30 and raw[23:26] == b"\x9d\x01\x2a":
        return _little_endian(raw, 26, 2) & 0x3FFF, _little_endian(raw, 28, 2) & 0x3FFF
    return None


# ---- completeness of a file


def _is_complete(media_type: str, raw: bytes) -> bool:
    if media_type == "image/png":
        return _has_png_end(raw)
    if media_type == "image/gif":
        return _has_gif_end(raw)
    if media_type == "image/webp":
        return 8 + _little_endian(raw, 4, 4) <= len(raw)
    return raw.rfind(b"\xff\xd9") > raw.find(b"\xff\xda") > 0


def _has_png_end(raw: bytes) -> bool:
    at = len(_PNG)
    while at + 12 <= len(raw):
        kind, at = raw[at + 4 : at + 8], at + 12 + _big_endian(raw, at, 4)
        if kind == b"IEND":
            return at <= len(raw)
    return False


def _has_gif_end(raw: bytes) -> bool:
    """Return True if a GIF has a complete frame and ends between two blocks.

    The trailer is not required, as many files lack it.
    """
    at, frames = _after_colour_table(raw, 10, 13), 0
    while at < len(raw):
        if raw[at] == 0x3B:
            return frames > 0
        if raw[at] == 0x21:
            at = _after_sub_blocks(raw, at + 2)
        elif raw[at] == 0x2C:
            at = _after_sub_blocks(raw, _after_colour_table(raw, at + 9, at + 10) + 1)
            frames += at <= len(raw)
        else:
            return frames > 0  # trailing data, which decoders ignore
    return frames > 0 and at == len(raw)


def _after_colour_table(raw: bytes, flags_offset: int, start: int) -> int:
    """Return the offset after the colour table at `start`, or `start` if the flags byte indicates no table."""
    flags = raw[flags_offset] if flags_offset < len(raw) else 0
    return start + (3 << (flags & 7) + 1 if flags & 0x80 else 0)


def _after_sub_blocks(raw: bytes, offset: int) -> int:
    """Return the offset after the chain of sub-blocks at `offset` and its terminator.

    If the terminator is missing, the result is past the end of `raw`.
    """
    while offset < len(raw) and raw[offset]:
        offset += 1 + raw[offset]
    return offset + 1
