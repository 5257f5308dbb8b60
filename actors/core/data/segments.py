"""Segments: a long text in immutable pieces, to which adding costs what is added.

Long literals, results above all, are pieces as they are: the ledger, the log and every other lane hold the same object.
What stands between them is joined, and so are its neighbours while they are small: a byte is copied only a bounded
number of times. What was added long ago lies in pages, which later versions share.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Self

from msgspec import Struct

PIECE = 128 * 1024  # bytes up to which neighbouring pieces are joined
SHARED = 512  # bytes from which a literal is a piece of its own: less costs more in objects than its copy
PAGE = 256  # pieces from which what is recent becomes a page


class Segments(Struct, frozen=True, gc=False):
    """A text in pieces: those in pages first, then the recent ones.

    `size` is the bytes of all, `paged` of those in pages. A page ends where something that was added ends.
    """

    pages: tuple[tuple[bytes, ...], ...] = ()
    recent: tuple[bytes, ...] = ()
    size: int = 0
    paged: int = 0

    @classmethod
    def of(cls, *pieces: bytes) -> Self:
        """Return a text of these pieces, as they are."""
        return cls((), pieces, sum(map(len, pieces)))

    def __iter__(self) -> Iterator[bytes]:
        return chain(chain.from_iterable(self.pages), self.recent)

    def __len__(self) -> int:
        return sum(map(len, self.pages)) + len(self.recent)

    def plus(self, pieces: Sequence[bytes]) -> "Segments":
        """Return the text with more behind it, joined as this module says."""
        size = self.size + sum(map(len, pieces))
        if len(self.recent) >= PAGE:
            return Segments((*self.pages, self.recent), _joined((), pieces), size, self.size)
        return Segments(self.pages, _joined(self.recent, pieces), size, self.paged)

    def ended(self, *pieces: bytes) -> "Segments":
        """Return the text with pieces behind it, joined with nothing."""
        return Segments(self.pages, (*self.recent, *pieces), self.size + sum(map(len, pieces)), self.paged)

    def begun(self, piece: bytes) -> "Segments":
        """Return the text with a piece ahead of it."""
        size = len(piece)
        return Segments(((piece,), *self.pages), self.recent, self.size + size, self.paged + size)

    def spliced(self, first: int, last: int, pieces: Sequence[bytes]) -> "Segments":
        """Return the text with other pieces in place of the recent ones from `first` to `last`."""
        recent = self.recent
        size = self.size + sum(map(len, pieces)) - sum(map(len, recent[first : last + 1]))
        return Segments(self.pages, (*recent[:first], *pieces, *recent[last + 1 :]), size, self.paged)

    def unpaged(self) -> "Segments":
        """Return the same text with every piece among the recent ones."""
        return Segments((), tuple(self), self.size)


def _joined(recent: tuple[bytes, ...], pieces: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return pieces behind the recent ones: long literals as they are, all else joined geometrically."""
    grown = list(recent)
    for piece in pieces:
        # only a literal begins with a quote: before a key stands a brace
        while grown and piece[:1] != b'"' != grown[-1][:1] and _joins(grown[-1], piece):
            piece = grown.pop() + piece
        grown.append(piece)
    return tuple(grown)


def _joins(before: bytes, piece: bytes) -> bool:
    """Say whether two pieces become one, each byte being copied only a bounded number of times."""
    return len(before) <= 2 * len(piece) and len(before) + len(piece) <= PIECE
