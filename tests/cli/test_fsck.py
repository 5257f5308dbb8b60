"""`actors sessions fsck` reports damage and salvages intact logs."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from actors.journal.storage.sqlite import SqliteStorage
from tests.cli.command import actors_now
from tests.journal.test_damage import DAMAGE, log, write_journal


def damaged_journal(path: Path) -> Path:
    write_journal(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(DAMAGE["a missing record"])
    return path


def test_an_intact_journal_has_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    write_journal(path).close()
    done = actors_now("sessions", "fsck", str(path))
    assert (done.code, done.out, done.err) == (0, f"{path}: intact: 3 sessions, 18 records, 1 blobs\n", "")


def test_damage_is_named_with_a_fix(tmp_path: Path) -> None:
    path = damaged_journal(tmp_path / "sessions.db")
    done = actors_now("sessions", "fsck", str(path))
    assert done.code == 1
    assert done.out == (
        f"{path}: session 'one', record 4 is missing\n{path}: intact: 2 sessions, 12 records, 1 blobs\n"
    )
    assert done.complaint == (
        f"{path} is damaged; restore a copy, or salvage intact logs: actors sessions fsck FILE --salvage NEW"
    )


def test_damage_can_be_printed_as_json(tmp_path: Path) -> None:
    path = damaged_journal(tmp_path / "sessions.db")
    assert json.loads(actors_now("sessions", "fsck", str(path), "--json").out) == {
        "damage": [{"session": "one", "number": 4, "what": f"{path}: session 'one', record 4 is missing"}],
        "intact": {"sessions": 2, "records": 12, "blobs": 1},
    }


def test_intact_events_are_salvaged(tmp_path: Path) -> None:
    path, to = damaged_journal(tmp_path / "sessions.db"), tmp_path / "saved.db"
    done = actors_now("sessions", "fsck", str(path), "--salvage", str(to))
    assert done.code == 1
    assert [line.rpartition("session ")[2] for line in done.err.splitlines()] == [
        "one: 3 events",
        "two: 6 events",
        "three: 6 events",
    ]
    with closing(SqliteStorage(to)) as storage:
        assert storage.read("one") == log("one")[:3]
        assert storage.read("two") == log("two")
    again = actors_now("sessions", "fsck", str(path), "--salvage", str(to))
    assert (again.code, again.complaint) == (9, f"{to}: the file exists already; name a new file")


def test_fsck_rejects_a_missing_file(tmp_path: Path) -> None:
    done = actors_now("sessions", "fsck", str(tmp_path / "nowhere.db"))
    assert (done.code, done.out) == (9, "")
    assert done.complaint == f"{tmp_path}/nowhere.db: there is no such file; pass the path of a journal"


def test_an_unreachable_database_is_reported_without_its_password() -> None:
    done = actors_now("sessions", "fsck", "postgresql://owner:secret@/actors?host=/nowhere")
    assert done.code == 9
    assert "no server listens at this address" in done.err
    assert "secret" not in f"{done.out} {done.err}"


def test_logs_are_salvaged_from_a_file_with_a_damaged_first_page(tmp_path: Path) -> None:
    path, to = tmp_path / "sessions.db", tmp_path / "saved.db"
    write_journal(path).close()
    data = path.read_bytes()
    path.write_bytes(bytes(4096) + data[4096:])
    done = actors_now("sessions", "fsck", str(path), "--salvage", str(to))
    assert done.code == 1
    *saved, why = done.err.splitlines()
    assert [line.rpartition("session ")[2] for line in saved] == [
        "one: 6 events",
        "two: 6 events",
        "three: 6 events",
    ]
    assert "not a journal" in why or "no journal" in why
    with closing(SqliteStorage(to)) as storage:
        assert storage.read("two") == log("two")
