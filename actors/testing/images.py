"""Create small PNG images whose headers declare any size, to test the image limits of providers."""

import struct
import zlib
from base64 import b64encode


def png(width: int = 1, height: int = 1, note: str = "") -> bytes:
    """Return a PNG image whose header declares the given size. The image itself has only a few pixels.

    `note` is a comment in the image, so images of equal size with different notes have different bytes.
    """
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\0\0\0")
    words = _chunk(b"tEXt", b"note\0" + note.encode("latin-1", "replace")) if note else b""
    chunks = _chunk(b"IHDR", header) + words + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def png_base64(width: int = 1, height: int = 1, note: str = "") -> str:
    """Return the image of `png`, encoded as base64."""
    return b64encode(png(width, height, note)).decode()


def _chunk(chunk_type: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + chunk_type + data + struct.pack(">I", zlib.crc32(chunk_type + data))
