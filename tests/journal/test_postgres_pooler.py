"""A pooler that shares the server's connections between transactions is refused before anything is left on them."""

from collections.abc import Iterator

import anyio
import psycopg
import pytest

from actors import Runtime
from actors.config import load
from actors.errors import ConfigError
from actors.journal.storage.postgres import PostgresStorage
from tests.journal.postgres import PASSWORD, Server
from tests.journal.postgres_pooler import Pooler, pooled
from tests.journal.postgres_proxy import proxied
from tests.journal.storages import begin


@pytest.fixture
def pooler(postgres: Server) -> Iterator[Pooler]:
    with pooled(postgres.folder) as pooler:
        yield pooler


def _url(postgres: Server, port: int) -> str:
    plain = {"sslmode": "disable", "gssencmode": "disable"}
    return postgres.url(postgres.schema(), host="127.0.0.1", port=str(port), **plain)


@pytest.mark.anyio
async def test_a_pooler_in_transaction_mode_is_refused_in_one_line_and_nothing_stays_on_its_connections(
    postgres: Server, pooler: Pooler
) -> None:
    """Case pooled-transactions."""
    url = _url(postgres, pooler.port)
    with psycopg.connect(url, autocommit=True) as one, psycopg.connect(url, autocommit=True) as other:
        pids = [each.execute("SELECT pg_backend_pid()").fetchall() for each in (one, other)]
        assert pids[0] == pids[1]  # it does what it is to stand for
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


def test_what_keeps_a_connection_for_one_program_is_no_such_pooler(postgres: Server) -> None:
    with proxied(postgres.folder) as proxy:
        storage = PostgresStorage(_url(postgres, proxy.port))
        storage.open()
        assert begin(storage, "one").fence == 1
        storage.close()


def test_a_server_without_a_place_for_one_more_connection_is_used_all_the_same(postgres: Server) -> None:
    role = postgres.role("CONNECTION LIMIT 1")
    storage = PostgresStorage(postgres.url(role, user=role), patience=5)
    assert begin(storage, "one").fence == 1
    storage.close()
