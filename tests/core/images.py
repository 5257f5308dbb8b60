"""Build minimal image files with headers of any size, in each format and variant."""

import struct

from actors.testing.images import png

SIDES = {"png": 2**31 - 1, "jpeg": 65535, "gif": 65535, "vp8": 16383, "vp8l": 16384, "vp8x": 2**24}
"""The longest side that each kind can say."""
MIMES = {"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif"}


def mime_of(kind: str) -> str:
    return MIMES.get(kind, "image/webp")


def image(kind: str, width: int, height: int, filler: bytes = b"") -> bytes:
    """Return a file of this kind and size, with a filler before the header if the format allows one."""
    match kind:
        case "png":
            return png(width, height, filler.decode("latin-1"))
        case "jpeg":
            return _jpeg(width, height, filler)
        case "gif":
            frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x01\x44\x00"
            comment = b"\x21\xfe" + b"".join(bytes([len(part)]) + part for part in _cut(filler)) + b"\0"
            return (
                b"GIF89a"
                + struct.pack("<HHBBB", width, height, 0x80, 0, 0)
                + bytes(6)
                + comment
                + frame
                + b";"
            )
        case _:
            return _webp(kind, width, height)


def _cut(filler: bytes) -> list[bytes]:
    return [filler[at : at + 255] for at in range(0, len(filler), 255)]


def _jpeg(width: int, height: int, filler: bytes) -> bytes:
    profiles = b"".join(b"\xff\xe2" + struct.pack(">H", 2 + len(part)) + part for part in _cut(filler))
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    return (
        b"\xff\xd8"
        + profiles
        + frame
        + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"
        + b"\x00" * 8
        + b"\xff\xd9"
    )


def _webp(kind: str, width: int, height: int) -> bytes:
    if kind == "vp8x":
        sides = b"".join(struct.pack("<I", side - 1)[:3] for side in (width, height))
        chunk = b"VP8X" + struct.pack("<I", 10) + bytes(4) + sides
    elif kind == "vp8l":
        chunk = (
            b"VP8L"
            + struct.pack("<I", 10)
            + b"\x2f"
            + struct.pack("<I", (width - 1) | (height - 1) << 14)
            + bytes(5)
        )
    else:
        chunk = (
            b"VP8 " + struct.pack("<I", 10) + bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height)
        )
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk
