"""The clock of a Postgres journal: concurrent updates and broken connections lose no update."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event, Lock
from time import monotonic, sleep, time
from typing import Any

import psycopg
import pytest

from actors.journal.storage.clock import ObservedClock, encode_clock
from actors.journal.storage.postgres import PostgresStorage
from tests.journal.postgres import Server

NOTING = "actors.journal.storage.postgres.hosts.encode_clock"
SECONDS = 60.0
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"


@pytest.fixture
def url(postgres: Server) -> str:
    """The URL of a journal for one test."""
    return postgres.url(postgres.schema())


@pytest.fixture
def storages(url: str) -> Iterator[tuple[PostgresStorage, PostgresStorage]]:
    one, other = (PostgresStorage(url, lease=600.0, patience=SECONDS) for _ in range(2))
    with closing(one), closing(other):
        one.open()
        other.open()
        yield one, other


@pytest.fixture
def owner(
    url: str, storages: tuple[PostgresStorage, PostgresStorage]
) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A connection of the test; the clock was noted a minute ago and is trusted."""
    with psycopg.connect(url, autocommit=True) as connection:
        for note in encode_clock(ObservedClock(int(time()) - 60, 0)).items():
            connection.execute("INSERT INTO actors_meta VALUES (%s, %s)", note)
        yield connection


@pytest.mark.usefixtures("owner")
def test_concurrent_updates_of_the_journal_clock_do_not_move_trusted_time_back(
    storages: tuple[PostgresStorage, PostgresStorage],
) -> None:
    now = int(time())

    def trusted_times(storage: PostgresStorage) -> list[int]:
        return [storage.record_clock(now, 0).earliest_now for _ in range(25)]

    with ThreadPoolExecutor(2) as pool:
        for times in pool.map(trusted_times, storages):
            assert min(times) > now - 300


def test_an_update_of_the_journal_clock_waits_for_a_concurrent_update(
    storages: tuple[PostgresStorage, PostgresStorage],
    owner: psycopg.Connection[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = int(time()) + 10**6
    monkeypatch.setattr("actors.journal.storage.postgres.hosts.server_time", lambda _: later)
    has_dropped, goes_on, first = Event(), Event(), Lock()

    def values(clock: ObservedClock) -> dict[str, int]:
        if first.acquire(blocking=False):
            has_dropped.set()
            assert goes_on.wait(SECONDS)
        return encode_clock(clock)

    monkeypatch.setattr(NOTING, values)
    one, other = storages
    with ThreadPoolExecutor(2) as pool:
        ahead = pool.submit(one.record_clock, later, 0)
        assert has_dropped.wait(SECONDS)
        behind = pool.submit(other.record_clock, later, 5_000)
        until = monotonic() + SECONDS
        while (
            not behind.done()
            and owner.execute(WAITING, (other._name,)).fetchone() == (0,)
            and monotonic() < until
        ):
            sleep(0.001)
        goes_on.set()
        assert ahead.result(SECONDS) == behind.result(SECONDS)


def test_a_connection_lost_during_an_update_of_the_journal_clock_loses_no_update(
    storages: tuple[PostgresStorage, PostgresStorage],
    owner: psycopg.Connection[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage, now, first = storages[0], int(time()), Lock()

    def values(clock: ObservedClock) -> dict[str, int]:
        if first.acquire(blocking=False):
            name = storage._name
            owner.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s",
                (name,),
            )
        return encode_clock(clock)

    monkeypatch.setattr(NOTING, values)
    assert storage.record_clock(now, 0).earliest_now > now - 300
    assert first.locked()
