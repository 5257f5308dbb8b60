"""How much of a value is kept, and what is told about it."""

from dataclasses import dataclass

from msgspec import Struct

from actors.core.jsonio.text import MAX_DEPTH, Json

MARKS = frozenset(
    {
        "bytes",  # binary data, as text or base64
        "cycle",  # a reference to an enclosing value
        "depth",  # a container nested too deep
        "key",  # a key that was not a string, or held NUL
        "not_finite",  # NaN or an infinity
        "object",  # a value with no JSON form, described
        "repr_failed",  # a value that raised when it was looked at
        "surrogate",  # text with lone surrogates
        "truncated",  # something was cut for size
        "wide_int",  # an integer beyond 64 bits, as text
    }
)


@dataclass(frozen=True)
class SizeLimits:
    """How much of a value is kept.

    Args:
        max_bytes: Of the whole JSON text, at least 512.
        max_depth: Containers inside each other, 1 to 64.
        max_items: In one list or object, at least 2.
        max_string: Bytes of one JSON string literal, at least 128.
    """

    max_bytes: int = 256 * 1024
    max_depth: int = 32
    max_items: int = 10_000
    max_string: int = 256 * 1024

    def __post_init__(self) -> None:
        if self.max_bytes < 512 or self.max_items < 2 or self.max_string < 128:
            raise ValueError(f"limits too small to hold a marker: {self}")
        if not 1 <= self.max_depth <= MAX_DEPTH:
            raise ValueError(f"max_depth is 1 to {MAX_DEPTH}, not {self.max_depth}")


class Ingested(Struct, frozen=True):
    """A value as JSON, and what had to be done to it.

    `marks` is sorted and from `MARKS`. Empty means that the text says all that the value was.
    """

    json: Json
    marks: tuple[str, ...]
