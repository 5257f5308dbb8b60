"""A Postgres server fails under active hosts: a sample of `python -m tests.commands.failover_matrix`."""

from collections.abc import Iterator

import pytest

from tests.commands.failover_matrix.cell import Cell, play
from tests.commands.failover_matrix.site import Site, site
from tests.journal.postgres import require

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def servers() -> Iterator[Site]:
    require()
    with site() as servers:
        yield servers


@pytest.mark.requirement("PROMISE-6", "PROMISE-11")
@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_callers_are_notified_of_each_event_that_a_lagging_standby_lost(servers: Site) -> None:
    found = await play(servers, Cell("lagging", "kill"))
    assert found.losses >= found.sessions > 0


@pytest.mark.requirement("PROMISE-6")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_synchronous_standby_loses_no_event(servers: Site) -> None:
    found = await play(servers, Cell("synchronous", "kill"))
    assert found.losses == 0
