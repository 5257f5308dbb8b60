"""A deleted session leaves no row, and yet no fencing number is assigned twice."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from actors.errors import Fenced, JournalDamaged, JournalUnavailable, SessionLeased
from actors.journal.storage import NOTHING, Entry, Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.postgres import hosts as postgres_hosts
from actors.journal.storage.postgres.check import JournalTables
from actors.journal.storage.postgres.connection import Link
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.check import JournalFile
from tests.journal.postgres import Server
from tests.journal.storages import STORAGES, begin, open_storage, to

NAME = "a-session-that-is-gone"
FLOOR = "UPDATE actors_meta SET value = %s WHERE key = 'floor'"


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    storage = open_storage(request.param, request)
    storage.open()
    yield storage
    storage.close()


@pytest.fixture
def hosts(postgres: Server, schema: str) -> Iterator[tuple[PostgresStorage, PostgresStorage]]:
    """Two hosts of the same tables."""
    url = postgres.url(schema)
    hosts = PostgresStorage(url, lease=60, patience=30), PostgresStorage(url, lease=60, patience=30)
    for host in hosts:
        host.open()
    yield hosts
    for host in hosts:
        host.close()


def names(storage: Storage) -> set[str]:
    """Return the names of the sessions of which a storage keeps any data."""
    query = "SELECT name FROM {}session"
    if isinstance(storage, MemoryStorage):
        return {*storage._fences, *storage._logs, *storage._claimed, *storage._opened, *storage._used}
    if isinstance(storage, SqliteStorage):
        with closing(sqlite3.connect(storage.path)) as file:
            return {name for (name,) in file.execute(query.format(""))}
    assert isinstance(storage, PostgresStorage)
    return storage._reader.run(lambda it: {name for (name,) in it.execute(query.format("actors_"))})


def is_fenced(storage: Storage, fence: int) -> bool:
    """Return True if an append with this number is refused and writes nothing."""
    before = storage.read(NAME)
    (outcome,) = storage.append([Entry(NAME, fence, (to("b"),))])
    return isinstance(outcome, Fenced) and storage.read(NAME) == before


@pytest.mark.requirement("PROMISE-6")
def test_a_deleted_session_has_no_row_and_fences_its_old_writers(
    storage: Storage,
) -> None:
    begin(storage, "kept")
    fences = list[int]()
    for _ in range(4):
        fences.append(begin(storage, NAME).fence)
        storage.delete(NAME)
        assert names(storage) == {"kept"}
        assert all(is_fenced(storage, fence) for fence in fences)
        fences.append(storage.claim(NAME).fence)
        assert all(is_fenced(storage, fence) for fence in fences[:-1])
        storage.delete(NAME)
    assert fences == sorted(set(fences))
    storage.close()
    storage.open()
    assert storage.claim(NAME).fence > fences[-1]


def test_a_fencing_number_of_another_session_is_not_reused(storage: Storage) -> None:
    mine = begin(storage, NAME)
    storage.delete(NAME)
    for _ in range(3):
        begin(storage, "other")
        storage.delete("other")
    assert is_fenced(storage, mine.fence)
    assert storage.claim("new").fence > mine.fence


def test_deleting_a_session_with_a_low_fencing_number_allows_no_reuse_of_higher_numbers(
    storage: Storage,
) -> None:
    lower, mine = begin(storage, "lower"), storage.claim(NAME)
    for _ in range(3):
        mine = storage.claim(NAME)
    assert mine.fence > lower.fence
    storage.delete(NAME)
    storage.delete("lower")
    assert storage.claim(NAME).fence > mine.fence
    assert is_fenced(storage, mine.fence)


@pytest.mark.parametrize("end", ["release", "close"])
def test_releasing_a_session_without_a_log_deletes_its_row(storage: Storage, end: str) -> None:
    kept, claim = begin(storage, "kept"), storage.claim(NAME)
    storage.release(NAME, claim.fence - 1)
    assert names(storage) == {"kept", NAME}
    if end == "release":
        storage.release("kept", kept.fence)
        storage.release(NAME, claim.fence)
    else:
        storage.close()
        storage.open()
    assert names(storage) == {"kept"}
    assert storage.claim(NAME, existing=True) == NOTHING
    assert is_fenced(storage, claim.fence)
    assert storage.claim(NAME).fence > claim.fence
    assert is_fenced(storage, claim.fence)


def test_no_file_contains_the_name_of_a_deleted_session(tmp_path: Path) -> None:
    def copies() -> int:
        return sum(file.read_bytes().count(NAME.encode()) for file in tmp_path.iterdir())

    gone = [f"{NAME}-{number}" for number in range(200)]
    with closing(SqliteStorage(tmp_path / "sessions.db", durability="process")) as storage:
        for number, name in enumerate(gone):
            begin(storage, name)
            begin(storage, f"other-{number}")
        assert copies() > 200
        storage.delete(*gone)
        assert (list(storage.vacuum()), copies()) == ([], 0)
    with closing(JournalFile(tmp_path / "sessions.db")) as file:
        assert list(file.damage()) == []


# Several hosts


def _waits(direct: psycopg.Connection[Any], work: "Future[Any]") -> bool:
    """Return True if the work in a thread starts to wait for a lock, False if it ends without waiting."""
    waiting = (
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    )
    while not work.done():
        if direct.execute(waiting).fetchone() == (1,):
            return True
    return False


def test_a_claim_of_a_new_session_waits_while_the_first_free_fencing_number_changes(
    hosts: tuple[PostgresStorage, PostgresStorage], direct: psycopg.Connection[Any]
) -> None:
    host, _ = hosts
    begin(host, "kept")
    for claim in (lambda: host.claim(NAME), lambda: _claim_with_another(host, "new")):
        with ThreadPoolExecutor(1) as threads:
            with direct.transaction():
                direct.execute("UPDATE actors_meta SET value = value + 40 WHERE key = 'floor'")
                claimed = threads.submit(claim)
                assert _waits(direct, claimed)
            ((floor,),) = direct.execute("SELECT value FROM actors_meta WHERE key = 'floor'").fetchall()
            assert claimed.result().fence == floor + 1


def _claim_with_another(host: PostgresStorage, session: str) -> Any:
    with host.transaction([session, "beside"]):
        return host.claim(session)


def test_a_deletion_that_waits_to_record_its_fencing_number_does_not_affect_new_claims(
    hosts: tuple[PostgresStorage, PostgresStorage], direct: psycopg.Connection[Any]
) -> None:
    host, other = hosts
    begin(other, "kept")
    begin(host, NAME)
    with ThreadPoolExecutor(1) as threads:
        with direct.transaction():
            direct.execute(FLOOR, (40,))
            deleted = threads.submit(host.delete, NAME)
            assert _waits(direct, deleted)
            claim = other.claim(NAME)  # the session is deleted and its row is free
            assert (claim.last, claim.fence) == (0, 3)
        deleted.result()
    assert names(other) == {"kept", NAME}
    assert other.append([Entry(NAME, claim.fence, (to("a"),))]) == [1]


@pytest.mark.parametrize("is_deleted_again", [True, False])
def test_a_row_that_remains_after_a_killed_deletion_is_removed_later(
    hosts: tuple[PostgresStorage, PostgresStorage], monkeypatch: pytest.MonkeyPatch, is_deleted_again: bool
) -> None:
    host, other = hosts
    claim = begin(host, NAME)
    with monkeypatch.context() as patch:
        patch.setattr(postgres_hosts, "_remove_rows", lambda *_: None)
        host.delete(NAME)
    assert names(other) == {NAME}
    if is_deleted_again:
        host.delete(NAME)
    else:
        begin(other, "kept")
    assert NAME not in names(other)
    assert other.claim(NAME).fence > claim.fence + 1


def test_a_missing_record_of_used_fencing_numbers_is_damage(
    hosts: tuple[PostgresStorage, PostgresStorage],
    postgres: Server,
    schema: str,
    direct: psycopg.Connection[Any],
) -> None:
    host, _ = hosts
    claim = begin(host, "kept")
    direct.execute("DELETE FROM actors_meta WHERE key = 'floor'")
    with pytest.raises(JournalDamaged, match="the row 'floor' of actors_meta is missing"):
        host.claim(NAME)
    with pytest.raises(JournalDamaged, match="the row 'floor' of actors_meta is missing"):
        PostgresStorage(postgres.url(schema)).open()
    assert host.append([Entry("kept", claim.fence, (to("a"),))]) == [2]
    with closing(JournalTables(postgres.url(schema))) as found:
        assert [each.what.partition(": ")[2] for each in found.damage()] == [
            "the row 'floor' of actors_meta is missing"
        ]


def test_concurrent_claims_and_deletions_never_fail_or_reuse_a_number(
    hosts: tuple[PostgresStorage, PostgresStorage], monkeypatch: pytest.MonkeyPatch
) -> None:
    failures, goes_on = list[str | None](), Link._recovers_from

    def record(link: Link, error: psycopg.Error, tries: int) -> bool:
        failures.append(error.sqlstate)
        return goes_on(link, error, tries)

    monkeypatch.setattr(Link, "_recovers_from", record)
    sessions = [NAME, "two", "three"]

    def work(host: PostgresStorage, order: list[str]) -> list[tuple[str, int]]:
        given = list[tuple[str, int]]()
        for number in range(30):
            for session in order:
                try:
                    claim = host.claim(session)
                except (SessionLeased, JournalUnavailable):  # the other host leases the session or was faster
                    continue
                given.append((session, claim.fence))
                if number % 3:
                    host.append([Entry(session, claim.fence, (to("a"),))])
            for names in ([*order] if number % 2 else [*order[:1]], [*order]):
                try:
                    host.delete(*names)
                except (SessionLeased, JournalUnavailable):
                    for session, fence in given[-len(order) :]:
                        host.release(session, fence)
        return given

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(work, hosts[0], sessions)
        two = threads.submit(work, hosts[1], sessions[::-1])
        given = one.result() + two.result()
    assert failures == []
    assert len(given) == len(set(given)) > 30
