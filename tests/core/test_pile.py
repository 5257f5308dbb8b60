"""Piles: what is on them is what was put there, in order, and an older one never changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.pile import BLOCK, EMPTY, Pile, above, below, height, item, piled
from tests.core.session_log import examples


@examples(200)
@given(
    st.lists(st.integers(0, 3 * BLOCK), max_size=6), st.integers(0, 10 * BLOCK), st.integers(0, 10 * BLOCK)
)
def test_a_pile_is_the_list_it_stands_for(portions: list[int], start: int, stop: int) -> None:
    pile: Pile[int] = EMPTY
    listed: list[int] = []
    for size in portions:
        more = range(len(listed), len(listed) + size)
        older, pile = pile, piled(pile, more)
        assert list(above(older, 0)) == listed
        listed += more
    assert height(pile) == len(listed)
    assert list(above(pile, start)) == listed[start:]
    assert list(above(below(pile, stop), 0)) == listed[:stop]
    assert below(pile, stop) == piled(EMPTY, listed[:stop])
    assert [item(pile, index) for index in range(len(listed))] == listed


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_a_full_block_is_shared_by_all_later_piles(size: int) -> None:
    pile: Pile[int] = piled(EMPTY, list(range(size)))
    higher = piled(pile, range(3 * BLOCK))
    assert all(one is other for one, other in zip(pile[0], higher[0], strict=False))
    assert list(above(higher, 0)) == [*range(size), *range(3 * BLOCK)]
