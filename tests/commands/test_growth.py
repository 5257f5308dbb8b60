"""A Postgres journal with many stored sessions: a sample of `python -m tests.commands.growth`."""

from contextlib import closing

import pytest

from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.postgres.check import JournalTables
from tests.commands.growth.__main__ import figures
from tests.journal.postgres import Server

SESSIONS, PART = 1000, 0.05


@pytest.mark.requirement("PROMISE-6")
def test_filled_tables_are_intact_and_a_sweep_deletes_only_the_oldest_sessions(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.runtime.retention.PAUSE", 0)
    url = postgres.url(postgres.schema())
    measured = {figure.what: figure.value for figure in figures(url, SESSIONS, part=PART, calls=4)}
    assert measured["stored sessions (number)"] == SESSIONS
    assert measured["sessions that a sweep deletes (number)"] == round(SESSIONS * PART)
    assert measured["sessions that one host owns (number)"] > 0
    with closing(JournalTables(url)) as tables:
        assert list(tables.damage()) == []
        assert tables.sessions == SESSIONS - round(SESSIONS * PART)
    with closing(PostgresStorage(url)) as storage:
        left = storage.sessions(limit=SESSIONS)
    assert sorted(session.id for session in left) == [f"s{number:07}" for number in range(len(left))]
    assert {session.owner for session in left} == {None}
