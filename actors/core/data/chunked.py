"""Define chunked vectors: append-only sequences that consist of plain tuples, for histories and logs.

The garbage collector visits the items of a list on every full collection, but stops tracking tuples that contain only
bytes or other untracked values. Histories and logs are numerous and idle most of the time, so they are chunked vectors.
A chunked vector is immutable: appending copies at most the last `BLOCK` items. Each time a block becomes full, the
references to all full blocks are copied too.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Never, TypeAlias, TypeVar

T = TypeVar("T")

BLOCK = 32  # number of items in a full block

ChunkedVector: TypeAlias = tuple[tuple[tuple[T, ...], ...], tuple[T, ...]]
"""Two tuples: the full blocks, oldest first, and the items of the last, incomplete block."""

EMPTY: ChunkedVector[Never] = ((), ())


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
    """Return an iterator over the items from index `start` on. It copies at most two blocks."""
    blocks, rest = vector
    first = start // BLOCK
    if first >= len(blocks):
        return iter(rest[start - len(blocks) * BLOCK :])
    return chain(blocks[first][start % BLOCK :], chain.from_iterable(blocks[first + 1 :]), rest)


def up_to(vector: ChunkedVector[T], stop: int) -> ChunkedVector[T]:
    """Return a vector of the items before index `stop`. It shares its full blocks with the original vector."""
    blocks, rest = vector
    last = stop // BLOCK
    if last >= len(blocks):
        return blocks, rest[: stop - len(blocks) * BLOCK]
    return blocks[:last], blocks[last][: stop % BLOCK]
