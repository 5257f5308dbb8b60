"""Store a long text as immutable pieces, so that the cost of appending is independent of the text's length.

Lanes use this for request bodies. Long literals, above all tool results, are pieces of their own, because the ledger,
the log and every other lane share the same object. The text between them is joined while the pieces are small, so each
byte is copied only a bounded number of times. Older pieces are grouped in pages, which later versions share.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Self

from msgspec import Struct

PIECE = 128 * 1024  # maximum bytes of joined pieces
SHARED = 512  # bytes from which a literal is a piece of its own; for shorter ones, a copy costs less than an object
PAGE = 256  # recent pieces from which they become a page


class Segments(Struct, frozen=True, gc=False):
    """A text in pieces: the pages first, then the recent pieces.

    `size` is the number of all bytes, `paged` the number of bytes in pages. A page ends at the end of an append.
    """

    pages: tuple[tuple[bytes, ...], ...] = ()
    recent: tuple[bytes, ...] = ()
    size: int = 0
    paged: int = 0

    @classmethod
    def of(cls, *pieces: bytes) -> Self:
        """Return a text of exactly these pieces."""
        return cls((), pieces, sum(map(len, pieces)))

    def __iter__(self) -> Iterator[bytes]:
        return chain(chain.from_iterable(self.pages), self.recent)

    def __len__(self) -> int:
        return sum(map(len, self.pages)) + len(self.recent)

    def append(self, pieces: Sequence[bytes]) -> "Segments":
        """Return the text with `pieces` appended and joined by the rules of this module."""
        size = self.size + sum(map(len, pieces))
        if len(self.recent) >= PAGE:
            return Segments((*self.pages, self.recent), _join((), pieces), size, self.size)
        return Segments(self.pages, _join(self.recent, pieces), size, self.paged)

    def append_unjoined(self, *pieces: bytes) -> "Segments":
        """Return the text with `pieces` appended, not joined."""
        return Segments(self.pages, (*self.recent, *pieces), self.size + sum(map(len, pieces)), self.paged)

    def prepend(self, piece: bytes) -> "Segments":
        """Return the text with `piece` in front."""
        size = len(piece)
        return Segments(((piece,), *self.pages), self.recent, self.size + size, self.paged + size)

    def splice(self, first: int, last: int, pieces: Sequence[bytes]) -> "Segments":
        """Return the text with the recent pieces from `first` to `last` replaced by `pieces`."""
        recent = self.recent
        size = self.size + sum(map(len, pieces)) - sum(map(len, recent[first : last + 1]))
        return Segments(self.pages, (*recent[:first], *pieces, *recent[last + 1 :]), size, self.paged)

    def flatten(self) -> "Segments":
        """Return the same text with all pieces among the recent ones."""
        return Segments((), tuple(self), self.size)


def _join(recent: tuple[bytes, ...], pieces: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the recent pieces with `pieces` appended: long literals unchanged, others joined geometrically."""
    grown = list(recent)
    for piece in pieces:
        # only a literal begins with a quote, because a brace precedes a key
        while grown and piece[:1] != b'"' != grown[-1][:1] and _can_join(grown[-1], piece):
            piece = grown.pop() + piece
        grown.append(piece)
    return tuple(grown)


def _can_join(before: bytes, piece: bytes) -> bool:
    """Return True if two pieces become one; the rule copies each byte only a bounded number of times."""
    return len(before) <= 2 * len(piece) and len(before) + len(piece) <= PIECE
