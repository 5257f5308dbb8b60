"""A sample of the models on their hosts: complete sessions with every setting, without refusals."""

import pytest

from tests.commands.model_matrix import Cell, cells, refusals

SAMPLE = [*cells()][::23]


@pytest.mark.alternating
@pytest.mark.anyio
@pytest.mark.parametrize("cell", SAMPLE, ids=str)
async def test_strict_servers_accept_requests_with_every_setting(cell: Cell) -> None:
    assert await refusals(cell) == []
