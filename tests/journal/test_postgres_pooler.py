"""A pooler that shares server connections between transactions is refused before it leaves state on them."""

from collections.abc import Iterator

import anyio
import psycopg
import pytest

from actors import Runtime
from actors.config import load
from actors.errors import ConfigError
from actors.journal.storage.postgres import PostgresStorage
from tests.journal.postgres import PASSWORD, Server
from tests.journal.postgres_pooler import Pooler, run_pooler
from tests.journal.postgres_proxy import run_proxy
from tests.journal.storages import begin


@pytest.fixture
def pooler(postgres: Server) -> Iterator[Pooler]:
    with run_pooler(postgres.folder) as pooler:
        yield pooler


def _url(postgres: Server, port: int) -> str:
    plain = {"sslmode": "disable", "gssencmode": "disable"}
    return postgres.url(postgres.schema(), host="127.0.0.1", port=str(port), **plain)


@pytest.mark.anyio
async def test_a_transaction_pooler_is_refused_and_its_connections_stay_clean(
    postgres: Server, pooler: Pooler
) -> None:
    """Case pooled-transactions."""
    url = _url(postgres, pooler.port)
    with psycopg.connect(url, autocommit=True) as one, psycopg.connect(url, autocommit=True) as other:
        pids = [each.execute("SELECT pg_backend_pid()").fetchall() for each in (one, other)]
        assert pids[0] == pids[1]  # the pooler shares connections as intended
        storage = PostgresStorage(url)
        with anyio.fail_after(60), pytest.raises(ConfigError) as raised:
            async with Runtime(load(None, {}), journal=storage):
                pass
        message = str(raised.value)
        assert "a pooler shares connections between transactions; use its session mode" in message
        assert "pool_mode = session" in message
        assert PASSWORD not in message
        assert "\n" not in message
        for each in (one, other, one, other):
            each.execute("BEGIN")
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            for each in (one, other):
                assert each.execute(f"SHOW {name}").fetchall() == [("0",)]
        for each in (one, other):
            each.execute("ROLLBACK")
            assert each.execute("SELECT to_regclass('actors_meta')").fetchall() == [(None,)]


def test_a_session_pooler_is_accepted(postgres: Server) -> None:
    with run_proxy(postgres.folder) as proxy:
        storage = PostgresStorage(_url(postgres, proxy.port))
        storage.open()
        assert begin(storage, "one").fence == 1
        storage.close()


def test_the_pooler_check_tolerates_a_server_at_its_connection_limit(postgres: Server) -> None:
    role = postgres.role("CONNECTION LIMIT 1")
    storage = PostgresStorage(postgres.url(role, user=role), patience=5)
    assert begin(storage, "one").fence == 1
    storage.close()
