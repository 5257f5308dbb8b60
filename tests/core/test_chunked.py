"""Check that chunked vectors keep appended items in order and that older versions never change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.data.persistent import (
    BLOCK,
    EMPTY,
    ChunkedVector,
    append,
    from_index,
    item,
    item_count,
    up_to,
)
from tests.core.session_log import examples


@examples(200)
@given(
    st.lists(st.integers(0, 3 * BLOCK), max_size=6), st.integers(0, 10 * BLOCK), st.integers(0, 10 * BLOCK)
)
def test_a_chunked_vector_equals_the_list_of_its_items(portions: list[int], start: int, stop: int) -> None:
    vector: ChunkedVector[int] = EMPTY
    listed: list[int] = []
    for size in portions:
        more = range(len(listed), len(listed) + size)
        older, vector = vector, append(vector, more)
        assert list(from_index(older, 0)) == listed
        listed += more
    assert item_count(vector) == len(listed)
    assert list(from_index(vector, start)) == listed[start:]
    assert list(from_index(up_to(vector, stop), 0)) == listed[:stop]
    assert up_to(vector, stop) == append(EMPTY, listed[:stop])
    assert [item(vector, index) for index in range(len(listed))] == listed


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_a_vector_shares_its_full_blocks_with_all_vectors_that_extend_it(size: int) -> None:
    vector: ChunkedVector[int] = append(EMPTY, list(range(size)))
    higher = append(vector, range(3 * BLOCK))
    assert all(one is other for one, other in zip(vector[0], higher[0], strict=False))
    assert list(from_index(higher, 0)) == [*range(size), *range(3 * BLOCK)]
