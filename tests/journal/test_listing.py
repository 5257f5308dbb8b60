"""Listing sessions costs as much as its result, whatever the number of sessions, and almost nothing for writers."""

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import pytest

from actors.core.log.events import Closed, LogEvent, TurnEnded, TurnPaused, TurnStarted
from actors.core.session.publishing import NO_BINDING
from actors.core.settings.labels import Metadata
from actors.errors import ConfigError
from actors.journal.storage import Entry, Storage
from actors.journal.storage.directory import BUCKET, EVERY, Page, SessionFilter, State
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite import locks as sqlite_hosts
from actors.journal.storage.sqlite import storage as sqlite_storage
from actors.journal.storage.sqlite.check import JournalFile
from actors.journal.storage.sqlite.records import query
from tests.journal.postgres import Server
from tests.journal.storages import STORAGES, begin, open_storage, to
from tests.runtime_support import openai, runtime_with

ENDS: dict[State, tuple[LogEvent, ...]] = {
    "idle": (),
    "running": (TurnStarted(1, 1, NO_BINDING),),
    "awaiting": (TurnStarted(1, 1, NO_BINDING), TurnPaused(1, ())),
    "closed": (Closed(),),
}


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest) -> Any:  # Any: a generator
    """Yield a storage with 16 sessions, created a minute apart: one per state for each of four tenants."""
    now = 0.0
    storage = open_storage(request.param, request, lambda: now)
    for number in range(16):
        now += 60.5
        tenant, (state, events) = "abcd"[number // 4], list(ENDS.items())[number % 4]
        claim = begin(storage, f"{tenant}-{state}", tenant=tenant)
        if events:
            storage.append([Entry(f"{tenant}-{state}", claim.fence, events)])
    yield storage
    storage.close()


def ids_by_page(storage: Storage, which: SessionFilter) -> list[str]:
    """Return the ids of a list that is read two at a time."""
    ids, page = list[str](), storage.sessions(which, limit=2)
    while page:
        ids += [each.id for each in page]
        page = storage.sessions(which, limit=2, after=page[-1].page)
    return ids


def test_sessions_are_listed_by_tenant_and_state_most_recently_used_first(storage: Storage) -> None:
    every = [f"{tenant}-{state}" for tenant in "abcd" for state in ENDS][::-1]
    assert ids_by_page(storage, EVERY) == every
    for state in ENDS:
        assert ids_by_page(storage, SessionFilter(state=state)) == [
            each for each in every if each.endswith(state)
        ]
        assert ids_by_page(storage, SessionFilter("b", state)) == [f"b-{state}"]
    assert ids_by_page(storage, SessionFilter("c")) == [each for each in every if each.startswith("c")]


@pytest.mark.anyio
async def test_an_unknown_session_state_raises_a_config_error() -> None:
    async with runtime_with(a=openai()) as runtime:
        await runtime.open("a", id="one")
        assert [each.id for each in await runtime.journal.list(state="idle")] == ["one"]
        assert await runtime.journal.list(state="closed") == []
        with pytest.raises(ConfigError, match=r"state= takes idle, running, awaiting or closed"):
            await runtime.journal.list(state="asleep")  # type: ignore[arg-type]  # an invalid value


ASKED: list[tuple[str | None, State | None, Page | None]] = [
    (tenant, state, page)
    for tenant in (None, "a")
    for state in (None, "awaiting")
    for page in (None, (-1000.0, "x"))
]


@pytest.mark.parametrize(("tenant", "state", "page"), ASKED)
def test_sqlite_lists_sessions_by_an_index_and_sorts_at_most_one_bucket(
    tenant: str | None, state: State | None, page: Page | None, tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    with closing(SqliteStorage(path)) as storage:
        storage.open()
        given = {
            "tenant": tenant,
            "state": state,
            "lifecycle": state,
            "limit": 1,
            "used": 1,
            "name": "x",
            "bucket": 1,
        }
        with closing(sqlite3.connect(path)) as file:
            plan = file.execute(
                f"EXPLAIN QUERY PLAN {query(SessionFilter(tenant, state), page)}", given
            ).fetchall()
    steps = [step for *_, step in plan]
    index = "session_used" if state is None else "session_lifecycle"
    index = index if tenant is None else "session_tenant"
    assert steps[0].startswith(f"SEARCH session USING INDEX {index} (")
    assert [step for step in steps[1:] if "FOR ORDER BY" in step] == []
    assert len(steps) == 2  # the second step sorts the last two terms


def test_sqlite_finds_the_sessions_of_a_host_by_an_index(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(SqliteStorage(path)) as storage:
        storage.open()
        with closing(sqlite3.connect(path)) as file:
            for statement, given in (
                (sqlite_storage._OWNED, ("a",)),
                (sqlite_storage._OWNED_AFTER, ("a", "", 1)),
                (sqlite_hosts._COUNTED, ("a",)),
            ):
                plan = file.execute(f"EXPLAIN QUERY PLAN {statement}", given).fetchall()
                steps = [step for *_, step in plan if " session " in step or "ORDER BY" in step]
                assert len(steps) == 1
                assert "INDEX session_owner (owner=?" in steps[0]


def test_sqlite_orders_a_growing_log_by_its_last_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, now = tmp_path / "sessions.db", 10.0 * BUCKET
    with closing(SqliteStorage(path, clock=lambda: now)) as storage:
        claims = {name: begin(storage, name) for name in ("one", "two")}
        now += 3 * BUCKET
        storage.append([Entry("one", claims["one"].fence, ENDS["running"])])
        assert [each.id for each in storage.sessions()] == ["one", "two"]
        storage.delete("two")
        assert [each.id for each in storage.sessions()] == ["one"]
    with closing(JournalFile(path)) as file:
        assert list(file.damage()) == []
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE session SET bucket = 2 WHERE name = 'one'")
    with closing(JournalFile(path)) as file:
        assert [damage.session for damage in file.damage()] == ["one"]


LONG: Metadata = tuple((key, Random(key).randbytes(200).hex()) for key in "abc")
"""1.2 KB, which Postgres stores outside the row or compressed."""


@pytest.mark.parametrize("metadata", [(("user", "7"),), LONG], ids=["short", "long"])
def test_events_within_a_turn_change_no_postgres_index(metadata: Metadata, postgres: Server) -> None:
    """Postgres rewrites only the row, because the updates are heap-only tuples."""
    schema, turns = postgres.schema(), 20
    with closing(PostgresStorage(postgres.url(schema), clock=lambda: 1e9)) as storage:
        fence = begin(storage, "one", tenant="t", title="Trip", metadata=metadata).fence
        for turn in range(1, turns + 1):
            for event in (TurnStarted(turn, turn, NO_BINDING), to("b"), to("a"), TurnEnded(turn, "complete")):
                storage.append([Entry("one", fence, (event,))])
    updates = hot = 0
    counts = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = %s AND relname = %s"
    with postgres.connect(schema) as connection:
        for _ in range(3000):  # the server counts the changes of a connection when it ends
            ((updates, hot),) = connection.execute(counts, (schema, "actors_session")).fetchall()
            if updates > 4 * turns:
                break
            sleep(0.01)
    assert updates > 4 * turns
    # Starts and ends of turns, which change the state; the first event; and the release, which changes the owner.
    assert updates - hot <= 2 * turns + 2
