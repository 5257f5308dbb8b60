"""An append-only sequence of what is kept, made of plain tuples.

The garbage collector visits what a list holds, each time; tuples of bytes and of forms it no longer tracks. So what
idles in great numbers, histories and logs, is piled and not listed. A pile is a value: adding to it copies at most the
last `BLOCK` places and, once in `BLOCK` times, one place for each block before.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Never, TypeAlias, TypeVar

T = TypeVar("T")

BLOCK = 32
"""Items of a full block."""

Pile: TypeAlias = tuple[tuple[tuple[T, ...], ...], tuple[T, ...]]
"""Full blocks, oldest first; and the rest, which is less than a block."""

EMPTY: Pile[Never] = ((), ())
"""The pile of nothing."""


def piled(pile: Pile[T], items: Iterable[T]) -> Pile[T]:
    """Return the pile with these items on top."""
    blocks, rest = pile
    rest = (*rest, *items)
    if len(rest) < BLOCK:
        return blocks, rest
    full = len(rest) - len(rest) % BLOCK
    more = (rest[start : start + BLOCK] for start in range(0, full, BLOCK))
    return (*blocks, *more), rest[full:]


def height(pile: Pile[T]) -> int:
    """Return how many items there are."""
    return len(pile[0]) * BLOCK + len(pile[1])


def item(pile: Pile[T], index: int) -> T:
    """Return one item; 0 is the oldest. The index must be one of the pile's."""
    blocks, rest = pile
    block = index // BLOCK
    return (blocks[block] if block < len(blocks) else rest)[index % BLOCK]


def above(pile: Pile[T], start: int) -> Iterator[T]:
    """Give the items from index `start` on. Costs what it gives."""
    blocks, rest = pile
    first = start // BLOCK
    if first >= len(blocks):
        return iter(rest[start - len(blocks) * BLOCK :])
    return chain(blocks[first][start % BLOCK :], chain.from_iterable(blocks[first + 1 :]), rest)


def below(pile: Pile[T], stop: int) -> Pile[T]:
    """Return the pile of the items before index `stop`, which shares their blocks."""
    blocks, rest = pile
    last = stop // BLOCK
    if last >= len(blocks):
        return blocks, rest[: stop - len(blocks) * BLOCK]
    return blocks[:last], blocks[last][: stop % BLOCK]
