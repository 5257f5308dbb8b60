"""A Postgres server that accepts data and never answers: the longest wait, and the error that callers receive."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from actors import Runtime
from actors.core.stats.stats import JournalStats, StorageSizes
from actors.errors import JournalUnavailable
from actors.journal.health import JournalHealth
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.postgres.connection import connection_parameters
from actors.runtime.handle import Session
from actors.testing import Say, Turn
from tests.journal.postgres import Server
from tests.journal.postgres_proxy import Proxy
from tests.runtime_support import openai, restarted_actors, runtime_with


@pytest.mark.anyio
@pytest.mark.alternating  # seconds pass until a thread gives up, independently of the event loop
@pytest.mark.requirement("PROMISE-8", "PROMISE-9")
async def test_a_storage_waits_for_a_silent_server_no_longer_than_its_lease(
    postgres: Server, proxy: Proxy
) -> None:
    url = postgres.url(postgres.schema(), host="127.0.0.1", port=str(proxy.port))
    storage = PostgresStorage(url, lease=4, patience=2)
    async with runtime_with(a=openai(*[Turn(Say("Done."))] * 8), storage=storage) as runtime:
        session = await runtime.open("a", id="one")
        assert (await session.ask("Hello.")).status == "complete"
        await _wait_until_ready(runtime)
        proxy.fall_silent()
        with anyio.fail_after(90):  # two rounds: a statement, and then a connection
            async with anyio.create_task_group() as tasks:  # two connections, which wait concurrently
                tasks.start_soon(_expect_unavailable, lambda: session.ask("Again?"))
                tasks.start_soon(_expect_unavailable, lambda: runtime.resume("other"))
                tasks.start_soon(_expect_unavailable, lambda: runtime.journal.list())
        assert not runtime.stats().is_ready
        proxy.speak()
        with anyio.fail_after(60):
            await _ask_until_answered(session)
        await _wait_until_ready(runtime)
        assert restarted_actors(runtime) == []
    storage.close()


async def _expect_unavailable(use: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(JournalUnavailable):
        await use()


async def _wait_until_ready(runtime: Runtime) -> None:
    with anyio.fail_after(60):
        while not runtime.stats().is_ready:  # noqa: ASYNC110  a heartbeat renews the lease without an event to wait for
            await anyio.sleep(0.05)


async def _ask_until_answered(session: Session) -> None:
    """Ask until an ask is answered: for a moment, asks fail at once because the server did not answer."""
    while True:
        try:
            assert (await session.ask("Again?")).status == "complete"
        except JournalUnavailable:
            await anyio.sleep(0.05)
        else:
            return


def test_a_connection_has_default_timeouts() -> None:
    assert connection_parameters("postgresql://h/d", 5, "n", 2.5)["tcp_user_timeout"] == "2500"
    assert connection_parameters("postgresql://h/d", 60, "n", 2.5)["connect_timeout"] == "2"
    assert connection_parameters("postgresql://h/d?tcp_user_timeout=7", 5, "n")["tcp_user_timeout"] == "7"


@pytest.mark.parametrize(
    ("stats", "is_ready"),
    [
        (JournalStats(), True),
        (JournalStats(unavailable_since=1.0), False),
        (JournalStats(lag=4.9), True),
        (JournalStats(lag=5.1), False),
        (JournalStats(lease=10.0, lease_age=9.0), True),
        (JournalStats(lease=10.0, lease_age=11.0), False),
        (JournalStats(lease_age=11.0), True),
    ],
)
def test_readiness_depends_on_pending_writes_and_the_lease(stats: JournalStats, is_ready: bool) -> None:
    assert stats.is_ready == is_ready


def test_a_long_pending_write_is_visible_before_it_fails() -> None:
    meter = JournalHealth()
    meter.record_renewal_time(100.0)
    meter.begin_batch(100.0)
    stats = meter.stats("power", 10.0, StorageSizes(), 0, 256, 111.0)
    assert (stats.lag, stats.lease_age, stats.is_ready) == (11.0, 11.0, False)
