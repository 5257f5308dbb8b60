"""Store a long text as immutable pieces, so that the cost of appending does not depend on the text's length.

Lanes use this for request bodies. A long JSON string, usually a tool result, is a separate piece, because the ledger,
the log and every other lane share the same object. The text between long strings is joined while the pieces are short,
so each byte is copied only a limited number of times. Older pieces are grouped in pages, which later versions share.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Self

from msgspec import Struct

PIECE = 128 * 1024  # maximum size of a joined piece, in bytes
SHARED = 512  # minimum bytes of a JSON string in a separate piece; copying a shorter string is cheaper
PAGE = 256  # number of recent pieces that are grouped into a page


class Segments(Struct, frozen=True, gc=False):
    """An immutable text in pieces: first those in `pages`, then the `recent` ones.

    `size` is the total number of bytes, `paged` the number of bytes in pages. A page ends at the end of an append.
    """

    pages: tuple[tuple[bytes, ...], ...] = ()
    recent: tuple[bytes, ...] = ()
    size: int = 0
    paged: int = 0

    @classmethod
    def of(cls, *pieces: bytes) -> Self:
        """Return a text of exactly these pieces, without joining them."""
        return cls((), pieces, sum(map(len, pieces)))

    def __iter__(self) -> Iterator[bytes]:
        return chain(chain.from_iterable(self.pages), self.recent)

    def __len__(self) -> int:
        return sum(map(len, self.pages)) + len(self.recent)

    def append(self, pieces: Sequence[bytes]) -> "Segments":
        """Return the text with `pieces` appended: long JSON strings, and the text between them as one piece each.

        The first piece is joined with the last pieces of this text if they are short. A long string stays separate.
        """
        size = self.size + sum(map(len, pieces))
        if len(self.recent) >= PAGE:
            return Segments((*self.pages, self.recent), _append_joined((), pieces), size, self.size)
        return Segments(self.pages, _append_joined(self.recent, pieces), size, self.paged)

    def append_unjoined(self, *pieces: bytes) -> "Segments":
        """Return the text with `pieces` appended as they are, without joining them."""
        return Segments(self.pages, (*self.recent, *pieces), self.size + sum(map(len, pieces)), self.paged)

    def prepend(self, piece: bytes) -> "Segments":
        """Return the text with `piece` added at the beginning."""
        size = len(piece)
        return Segments(((piece,), *self.pages), self.recent, self.size + size, self.paged + size)

    def splice(self, first: int, last: int, pieces: Sequence[bytes]) -> "Segments":
        """Return the text with the recent pieces from index `first` through index `last` replaced by `pieces`."""
        recent = self.recent
        size = self.size + sum(map(len, pieces)) - sum(map(len, recent[first : last + 1]))
        return Segments(self.pages, (*recent[:first], *pieces, *recent[last + 1 :]), size, self.paged)

    def flatten(self) -> "Segments":
        """Return the same text with all pieces in `recent`, so that `splice` can reach every piece."""
        return Segments((), tuple(self), self.size)


def _append_joined(recent: tuple[bytes, ...], pieces: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the recent pieces with `pieces` appended. The first of `pieces` is joined with them as `append` states."""
    if not pieces:
        return recent
    grown, first = list(recent), pieces[0]
    # a piece that begins with a quote is one long JSON string; all other pieces begin with punctuation
    while grown and first[:1] != b'"' != grown[-1][:1] and _can_join(grown[-1], first):
        first = grown.pop() + first
    return (*grown, first, *pieces[1:])


def _can_join(previous: bytes, piece: bytes) -> bool:
    """Return True if two pieces should be joined. This rule limits the number of times that each byte is copied."""
    return len(previous) <= 2 * len(piece) and len(previous) + len(piece) <= PIECE
