"""Check the media type and size of images in Anthropic requests, by reading the beginning of each image file."""

from base64 import b64decode
from collections.abc import Iterator, Sequence

from actors.strict.rules.anthropic_rules import RULES
from actors.strict.rules.base import Json, is_array, is_object
from actors.strict.rules.reading import cached_result

_MOST, _MOST_OF_MANY, _MANY = 8000, 2000, 20
_READ = 256 * 1024  # number of bytes to read from the beginning of an image file


def check(messages: Sequence[Json]) -> None:
    """Check the images of all messages.

    Raises:
        RuleBroken: An image has a wrong media type, or is too large, in general or for a request with many images.
    """
    images = [
        (at, *image)
        for at, message in enumerate(messages)
        for image in cached_result(_images_with_sizes, message)
    ]
    for at, place, label, kind, side in images:
        path = f"messages.{at}.{place}"
        if kind and kind != label:
            raise RULES["ANT-61"].refuse(path=path, label=label)
        if side > _MOST:
            raise RULES["ANT-58"].refuse(path=path, most=_MOST)
        if side > _MOST_OF_MANY and len(images) > _MANY:
            raise RULES["ANT-59"].refuse(path=path, most=_MOST_OF_MANY)


def _images_with_sizes(message: Json) -> list[tuple[str, str, str, int]]:
    """Return (path, stated media type, actual media type, longest side in pixels) for each image of a message.

    The last two are "" and 0 if the image cannot be read.
    """
    found: list[tuple[str, str, str, int]] = []
    for path, image in _images(message.get("content"), "content"):
        source = image.get("source")
        inline = is_object(source) and source.get("type") == "base64"
        kind, sides = _read_image(source.get("data")) if inline else ("", (0,))
        label = source.get("media_type", "") if inline else ""
        found.append((f"{path}.image.source.base64.data", label, kind, max(sides)))
    return found


def _images(content: Json, path: str) -> Iterator[tuple[str, Json]]:
    for number, block in enumerate(content if is_array(content) else ()):
        if is_object(block) and block.get("type") == "image":
            yield f"{path}.{number}", block
        elif is_object(block) and block.get("type") == "tool_result":
            yield from _images(block.get("content"), f"{path}.{number}.tool_result.content")


def _read_image(data: Json) -> tuple[str, tuple[int, ...]]:
    """Return the media type of an image file and its sides in pixels. The type is "" if it is unknown."""
    try:
        raw = b64decode(data[: _READ * 4 // 3 // 4 * 4])
    except (ValueError, TypeError):
        return "", (0,)
    if raw[:8] == b"\x89PNG\r\n\x1a\n":
        return "image/png", _unpack_integers(raw[16:24], 4, "big")
    if raw[:4] == b"GIF8":
        return "image/gif", _unpack_integers(raw[6:10], 2, "little")
    if raw[:2] == b"\xff\xd8":
        return "image/jpeg", _jpeg_sides(raw)
    if raw[:4] + raw[8:12] == b"RIFFWEBP":
        return "image/webp", _webp_sides(raw)
    return "", (0,)


def _unpack_integers(raw: bytes, width: int, byte_order: Json) -> tuple[int, ...]:
    return tuple(int.from_bytes(raw[at : at + width], byte_order) for at in range(0, len(raw), width)) or (0,)


def _jpeg_sides(raw: bytes) -> tuple[int, ...]:
    """Return the sides of a JPEG image in pixels, from its first frame header; (0,) if it has none."""
    at = 2
    while at + 9 < len(raw):
        if raw[at] != 0xFF or raw[at + 1] == 0xFF:
            at += 1
            continue
        marker = raw[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _unpack_integers(raw[at + 5 : at + 9], 2, "big")
        length = 0 if 0xD0 <= marker <= 0xD7 or marker == 1 else int.from_bytes(raw[at + 2 : at + 4], "big")
        at += 2 + length
    return (0,)


def _webp_sides(raw: bytes) -> tuple[int, ...]:
    """Return the sides of a WebP image in pixels. The image may be extended, lossless or lossy."""
    chunk, held = raw[12:16], raw[20:30]
    if chunk == b"VP8X":
        return tuple(1 + side for side in _unpack_integers(held[4:10], 3, "little"))
    if chunk == b"VP8L":
        packed = int.from_bytes(held[1:5], "little")
        return 1 + packed % 0x4000, 1 + packed // 0x4000 % 0x4000
    return tuple(side % 0x4000 for side in _unpack_integers(held[6:10], 2, "little"))
