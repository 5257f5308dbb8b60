"""Define immutable vectors, mappings and texts whose versions share their data.

A chunked vector is an append-only sequence of plain tuples, for histories and logs. A process holds many of them, and
most are idle, so the garbage collector should not visit their items: it visits the items of a list on every full
collection, but stops tracking tuples that contain only bytes or other untracked values. Appending copies at most the
last `BLOCK` items. Each time a block becomes full, the references to all full blocks are copied too.

The newest version of a persistent mapping is updated in place, for ledgers and lanes. All versions share one dict,
which belongs to the newest version. An older version stores the values that its successor overwrote, and reads all
other values through the successor. So the newest version costs as much as a dict, older versions stay correct, and
nothing is copied. Updating an older version copies the dict once and creates a fork. Updating an empty map also creates
a new map, so all users can share `NOTHING`. Keys are never removed.

A long text, such as a request body, is stored as immutable pieces, so that the cost of appending does not depend on the
text's length. A long JSON string, usually a tool result, is a separate piece, because the ledger, the log and every
other lane share the same object. The text between long strings is joined while the pieces are short, so each byte is
copied only a limited number of times. Older pieces are grouped in pages, which later versions share.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Never, Self, TypeAlias, TypeVar, overload

from msgspec import UNSET, Struct, UnsetType

T = TypeVar("T")
BLOCK = 32  # number of items in a full block
ChunkedVector: TypeAlias = tuple[tuple[tuple[T, ...], ...], tuple[T, ...]]
"""Two tuples: the full blocks, oldest first, and the items of the last, incomplete block."""
EMPTY: ChunkedVector[Never] = ((), ())
K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")
_EMPTY_UNDO: Mapping[Any, Any] = MappingProxyType({})  # Any: shared by maps of every type
PIECE = 128 * 1024  # maximum size of a joined piece, in bytes
SHARED = 512  # minimum bytes of a JSON string in a separate piece; copying a shorter string is cheaper
PAGE = 256  # number of recent pieces that are grouped into a page


def append(vector: ChunkedVector[T], items: Iterable[T]) -> ChunkedVector[T]:
    """Return a vector with `items` appended. The original vector is unchanged."""
    blocks, rest = vector
    rest = (*rest, *items)
    if len(rest) < BLOCK:
        return blocks, rest
    full = len(rest) - len(rest) % BLOCK
    more = (rest[start : start + BLOCK] for start in range(0, full, BLOCK))
    return (*blocks, *more), rest[full:]


def item_count(vector: ChunkedVector[T]) -> int:
    return len(vector[0]) * BLOCK + len(vector[1])


def item(vector: ChunkedVector[T], index: int) -> T:
    """Return the item at `index`, from 0 for the oldest item. The index must be valid."""
    blocks, rest = vector
    block = index // BLOCK
    return (blocks[block] if block < len(blocks) else rest)[index % BLOCK]


def from_index(vector: ChunkedVector[T], start: int) -> Iterator[T]:
    """Return an iterator over the items from index `start` on. At most two blocks are copied."""
    blocks, rest = vector
    first = start // BLOCK
    if first >= len(blocks):
        return iter(rest[start - len(blocks) * BLOCK :])
    return chain(blocks[first][start % BLOCK :], chain.from_iterable(blocks[first + 1 :]), rest)


def up_to(vector: ChunkedVector[T], stop: int) -> ChunkedVector[T]:
    """Return a vector of the items before index `stop`. The result shares its full blocks with the original vector."""
    blocks, rest = vector
    last = stop // BLOCK
    if last >= len(blocks):
        return blocks, rest[: stop - len(blocks) * BLOCK]
    return blocks[:last], blocks[last][: stop % BLOCK]


class PersistentMap(Generic[K, V]):
    """An immutable mapping. `update` returns the next version and leaves this version unchanged."""

    __slots__ = ("_live", "_newer", "_undo")

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._live: dict[K, V] | None = dict(items) if items else {}
        self._newer: PersistentMap[K, V] | None = None
        self._undo: Mapping[K, V | UnsetType] = _EMPTY_UNDO  # UNSET marks a key that only newer versions have

    @overload
    def get(self, key: K) -> V | None: ...

    @overload
    def get(self, key: K, default: D) -> V | D: ...

    def get(self, key: K, default: D | None = None) -> V | D | None:
        table = self
        while table._live is None:
            if key in table._undo:
                return default if (kept := table._undo[key]) is UNSET else kept
            assert table._newer is not None
            table = table._newer
        return table._live.get(key, default)

    def __contains__(self, key: K) -> bool:
        return key in self._live if self._live is not None else self.get(key, UNSET) is not UNSET

    def __len__(self) -> int:
        return len(self._as_dict())

    def __iter__(self) -> Iterator[K]:
        return iter(self._as_dict())

    def items(self) -> list[tuple[K, V]]:
        """Return all (key, value) pairs, in the order in which the keys were added."""
        return list(self._as_dict().items())

    def update(self, changes: Mapping[K, V]) -> "PersistentMap[K, V]":
        """Return a version with `changes` applied. Values of existing keys are replaced."""
        if not changes:
            return self
        newer, live = self.__new__(type(self)), self._live
        newer._newer, newer._undo = None, _EMPTY_UNDO
        # an older version creates a fork; an empty map may be shared, so it is not changed
        if not live:
            newer._live = {**self._as_dict(), **changes}
            return newer
        newer._live = live
        if live.keys().isdisjoint(changes):  # most updates only add keys
            self._undo = dict.fromkeys(changes, UNSET)
        else:
            self._undo = {key: live.get(key, UNSET) for key in changes}
        self._newer, self._live = newer, None
        live.update(changes)
        return newer

    def _as_dict(self) -> dict[K, V]:
        """Return this version as a dict: the shared dict for the newest version, a copy for older ones."""
        if self._live is not None:
            return self._live
        undone: list[Mapping[K, V | UnsetType]] = []
        table: PersistentMap[K, V] = self
        while table._live is None:
            undone.append(table._undo)
            assert table._newer is not None
            table = table._newer
        copy: dict[K, V | UnsetType] = dict(table._live)
        for changes in reversed(undone):
            copy.update(changes)
        return {key: value for key, value in copy.items() if value is not UNSET}

    def __reduce__(self) -> tuple[type["PersistentMap[K, V]"], tuple[dict[K, V]]]:
        return PersistentMap, (self._as_dict(),)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PersistentMap):
            return NotImplemented
        return self._as_dict() == other._as_dict()

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # equality is by value, and hashing would be slow

    def __repr__(self) -> str:
        return f"PersistentMap({self._as_dict()!r})"


NOTHING: PersistentMap[Any, Any] = PersistentMap()  # Any: an empty map fits all types of keys and values


class Segments(Struct, frozen=True, gc=False):
    """An immutable text (UTF-8 bytes) in pieces: first the pieces in `pages`, then the pieces in `recent`.

    `size` is the total number of bytes, and `paged` the number of bytes in pages. The pieces of one `append` are never
    split between two pages.
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
        """Return the text with `pieces` appended. Each is a long JSON string, or the text between two long strings.

        The first piece is joined with the last pieces of this text if these are short. A long JSON string stays a
        separate piece.
        """
        size = self.size + sum(map(len, pieces))
        if len(self.recent) >= PAGE:
            return Segments((*self.pages, self.recent), _append_joined((), pieces), size, self.size)
        return Segments(self.pages, _append_joined(self.recent, pieces), size, self.paged)

    def append_unjoined(self, *pieces: bytes) -> "Segments":
        """Return the text with `pieces` appended as they are, without joining them."""
        return Segments(self.pages, (*self.recent, *pieces), self.size + sum(map(len, pieces)), self.paged)

    def prepend(self, *pieces: bytes) -> "Segments":
        """Return the text with `pieces` added at the beginning, without joining them."""
        size = sum(map(len, pieces))
        return Segments((pieces, *self.pages), self.recent, self.size + size, self.paged + size)

    def splice(self, first: int, last: int, pieces: Sequence[bytes]) -> "Segments":
        """Return the text with the recent pieces from index `first` through index `last` replaced by `pieces`."""
        recent = self.recent
        size = self.size + sum(map(len, pieces)) - sum(map(len, recent[first : last + 1]))
        return Segments(self.pages, (*recent[:first], *pieces, *recent[last + 1 :]), size, self.paged)

    def flatten(self) -> "Segments":
        """Return the same text with all pieces in `recent`, so that `splice` can reach every piece."""
        return Segments((), tuple(self), self.size)


def _append_joined(recent: tuple[bytes, ...], pieces: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return `recent` with `pieces` appended. The first of `pieces` may be joined with the last of `recent`."""
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
