"""Each query of the Postgres storage finds its rows by an index, however many sessions are stored.

The plans are those for 5,000 sessions, of which an index returns few. `python -m tests.commands.growth` measures the
same queries with 1,000,000 sessions.
"""

from collections.abc import Iterator
from contextlib import closing
from time import time
from typing import Any, LiteralString, TypeAlias

import anyio
import psycopg
import pytest

from actors.core.settings.labels import Metadata
from actors.journal.storage.directory import SessionFilter, State
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.postgres import statements as sql
from tests.commands.growth.filling import fill, name_of
from tests.commands.growth.measuring import recorded_turns
from tests.journal.postgres import Server

Directory: TypeAlias = "psycopg.Connection[Any]"

SESSIONS = 5000
KEYS = [[1, 2], [1, 1], [1, 1]]


@pytest.fixture(scope="module")
def directory(postgres: Server) -> Iterator[Directory]:
    """Yield a connection to tables with many sessions."""
    schema = postgres.schema()
    with closing(PostgresStorage(postgres.url(schema))) as storage:
        storage.open()
    with postgres.connect(schema) as connection:
        fill(connection, SESSIONS, anyio.run(recorded_turns), time())
        yield connection


def plan_of(directory: Directory, statement: str, given: Any) -> str:  # Any: parameters of any type
    """Return the plan of a statement. Fail if it reads all rows of a table that may be large."""
    lines = [line for (line,) in directory.execute(f"EXPLAIN {statement}".encode(), given)]
    plan = "\n".join(lines)
    for table in ("actors_session", "actors_record", "actors_blob", "actors_blob_use"):
        assert f"Seq Scan on {table}" not in plan, plan
    return plan


BUCKET, TENANT, STATE, ENTRIES = (
    f"actors_session_{name}_idx" for name in ("bucket", "tenant_bucket_state", "state_bucket", "entries")
)
USER: Metadata = (("user", "u3"),)


@pytest.mark.parametrize("used", [None, time() - 80 * 86_400], ids=["any_time", "recently"])
@pytest.mark.parametrize(
    ("tenant", "state", "metadata", "indexes"),
    [
        (None, None, (), {BUCKET}),
        ("large", None, (), {TENANT, BUCKET}),
        ("t7", None, (), {TENANT}),
        (None, "idle", (), {BUCKET, STATE}),
        (None, "running", (), {STATE}),
        (None, "awaiting", (), {STATE}),
        (None, "closed", (), {BUCKET, STATE}),
        ("t7", "closed", (), {TENANT}),
        ("large", "running", (), {TENANT, STATE}),
        (None, None, USER, {ENTRIES}),
        ("large", "idle", USER, {ENTRIES}),
    ],
)
def test_lists_use_an_index(
    tenant: str | None,
    state: State | None,
    metadata: Metadata,
    indexes: set[str],
    used: float | None,
    directory: Directory,
) -> None:
    which = SessionFilter(tenant, state, metadata=metadata)
    given: dict[str, object] = {"tenant": tenant, "state": state, "limit": 20, "used": used, "name": "x"}
    given |= {"indexed": ['"user":"u3"'], "entries": list(which.entries)}
    plan = plan_of(directory, sql.sessions(which, used), given)
    assert any(index in plan for index in indexes), plan


@pytest.mark.parametrize(
    ("statement", "given"), [(sql.OWNED, ("host-1", "", 10)), (sql.OWNED, ("host-1", name_of(1000), 10))]
)
def test_sessions_of_a_host_are_found_by_an_index(
    statement: LiteralString, given: tuple[object, ...], directory: Directory
) -> None:
    plan = plan_of(directory, statement, given)
    assert "actors_session_owner_name_idx" in plan
    assert "Sort" not in plan


def test_hosts_count_their_sessions_by_an_index(directory: Directory) -> None:
    assert "actors_session_owner_name_idx" in plan_of(directory, sql.COUNTED_HOSTS, ())
    assert "actors_session" not in plan_of(directory, sql.HOSTS, ())


@pytest.mark.parametrize("host", ["host-1", "unknown"])
def test_the_sessions_of_a_host_missing_in_the_statistics_are_released_by_key(
    host: str, directory: Directory
) -> None:
    plan = plan_of(directory, sql.RELEASE_PAGE, (host, "", 1000, host))
    assert "actors_session_owner_name_idx" in plan
    assert "Index Cond: (key = ANY" in plan


@pytest.mark.parametrize(
    ("statement", "given"),
    [
        (sql.ROWS, (["s0000001"],)),
        (sql.LOOK, (["s0000001", "s0000002"],)),
        (sql.CLAIM, ("host", 1, 1)),
        (sql.CLAIM_ALL, ("host", [1, 2], [1, 1])),
        (sql.RELEASE, ("s0000001", 1)),
        (sql.ASSIGN, ("host-1", "s0000001", 1, "host-2")),
        (sql.RECORDS, ("s0000001", 0, 128)),
        (sql.PAGE, (0, 128, "s0000001")),
        (sql.UNUSED, ()),
        (sql.DELETE_SESSIONS, tuple(KEYS)),
        (sql.DELETE_RECORDS, ([1, 2],)),
        (sql.REMOVE, tuple(KEYS[:2])),
    ],
)
def test_claims_reads_and_deletions_use_an_index(
    statement: LiteralString, given: tuple[object, ...], directory: Directory
) -> None:
    assert "Index" in plan_of(directory, statement, given)
