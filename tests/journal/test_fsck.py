"""What is damaged in a journal is found without writing, and what is whole is saved."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from shutil import copy
from tempfile import TemporaryDirectory

import pytest

from actors.errors import JournalDamaged, JournalError
from actors.journal.storage.damage import Damage
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.check import JournalFile
from actors.journal.storage.sqlite.salvage import salvage
from tests.journal.storages import begin
from tests.journal.test_damage import DAMAGE, OF_OTHERS, SESSIONS, log, written
from tests.journal.test_unavailable import nobody

KEPT = {
    "a record that has changed": (3, 4),
    "a record in another's place": (5, 6),
    "a record of another session": (3, 4),
    "a record that says it is another's": (3, 4),
    "a record that changes places with another's": (3, 4),
    "a way back to another's record": (6, 3),
    "a way back that leaves one out": (6, 3),
    "a way back to the same record": (6, 3),
    "a way back in a circle": (6, 3),
    "a way back to nowhere": (6, 3),
    "an end that is another's": (6, 6),
    "an end that is not the last": (6, 6),
    "an end that is no number": (6, 6),
    "one that is missing": (3, 4),
    "a lost end": (3, 6),
    "an entry that has changed": (6, 0),
    "another's tenant": (6, 0),
    "a number that goes back": (6, 0),
    "a session that is missing": (6, 0),
    "a blob that has changed": (2, 3),
    "a blob that is missing": (2, 3),
}
"""How many of the six events of session `one` can be saved, and the record that is named, by what happened."""


def damage_of(path: Path) -> list[Damage]:
    with closing(JournalFile(path)) as file:
        return list(file.damage())


def saved(path: Path, to: Path) -> dict[str, int]:
    with closing(SqliteStorage(to, durability="process")) as storage:
        return dict(salvage(path, storage))


def test_a_sound_journal_has_no_damage_and_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    storage = written(path)
    storage.delete("three")
    assert damage_of(path) == []
    storage.close()
    before = path.read_bytes()
    with closing(JournalFile(path)) as file:
        assert list(file.damage()) == []
        assert (file.sessions, file.records, file.blobs) == (2, 12, 1)
    assert path.read_bytes() == before


def test_what_is_written_meanwhile_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    storage = written(path)
    with closing(JournalFile(path)) as file:
        found = file.damage()
        assert storage.claim("four").fence == 1
        storage.delete("one")
        assert list(found) == []
        assert file.sessions == 3
    storage.close()


@pytest.mark.parametrize("damage", DAMAGE)
def test_all_damage_is_found_with_its_place_and_the_rest_is_saved(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    written(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(DAMAGE[damage])
    found = damage_of(path)
    assert found
    if damage != "a session that is missing":
        assert {"one"} <= {each.session for each in found}
    kept, number = KEPT[damage]
    if number:
        assert ("one", number) in {(each.session, each.number) for each in found}
    counts = saved(path, tmp_path / "saved.db")
    assert counts["one"] == kept
    if "blob" not in damage and damage not in OF_OTHERS:
        assert counts["two"] == counts["three"] == 6
    with closing(SqliteStorage(tmp_path / "saved.db")) as storage:
        for session, count in counts.items():
            assert storage.read(session) == log(session)[:count]
    assert damage_of(tmp_path / "saved.db") == []


@pytest.mark.parametrize("number", [6, 7])
def test_a_record_that_belongs_to_no_log_is_found_and_not_saved(number: int, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    written(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(
            "INSERT INTO record (before, session, number, checksum, bytes) "
            "SELECT place, session, ?, checksum, bytes FROM record WHERE session = 1 AND number = 6",
            (number,),
        )
    assert [each.what for each in damage_of(path)] == [
        f"{path}: session 'one': it has 7 records, and its log has 6"
    ]
    assert saved(path, tmp_path / "saved.db") == dict.fromkeys(SESSIONS, 6)


@pytest.mark.parametrize("session", [1, 3])
def test_a_record_that_says_it_is_of_another_log_does_not_hide_the_one_that_is(
    session: int, tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    written(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE record SET session = 2 WHERE session = ? AND number = 4", (session,))
    assert saved(path, tmp_path / "saved.db") == {**dict.fromkeys(SESSIONS, 6), SESSIONS[session - 1]: 3}


def test_a_session_that_is_missing_is_told_from_one_that_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    storage = written(path)
    storage.delete("two")
    storage.close()
    assert list(damage_of(path)) == []
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(DAMAGE["a session that is missing"])
    assert f"{path}: it keeps 2 sessions, and 1 have an entry" in [each.what for each in damage_of(path)]


@pytest.mark.parametrize(
    "damage", ["UPDATE meta SET value = 0 WHERE key = 'floor'", "DELETE FROM meta WHERE key = 'floor'"]
)
def test_a_floor_of_numbers_that_is_lost_is_told_and_no_number_is_given_again(
    tmp_path: Path, damage: str
) -> None:
    path = tmp_path / "sessions.db"
    with closing(written(path)) as storage:
        storage.delete("two")
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(damage)
    what = f"{path}: its numbers of removed sessions have changed"
    assert any(each.what.startswith(what) for each in damage_of(path))
    with closing(SqliteStorage(path)) as storage, pytest.raises(JournalDamaged, match=what):
        storage.claim("two")


@pytest.mark.parametrize("table", ["blob_count", "blob_use"])
def test_blobs_that_are_counted_wrongly_are_found(table: str, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    written(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(f"DELETE FROM {table}")
    assert any("users" in each.what for each in damage_of(path))


def test_whatever_bit_is_flipped_what_is_saved_is_the_beginning_of_what_was_written(tmp_path: Path) -> None:
    source, path, random, lost = tmp_path / "source.db", tmp_path / "sessions.db", Random(3), 0
    written(source).close()
    data, whole = source.read_bytes(), {session: log(session) for session in SESSIONS}
    for _ in range(60):
        at, bit = random.randrange(len(data)), 1 << random.randrange(8)
        path.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
        to = tmp_path / f"saved-{at}-{bit}.db"
        with suppress(JournalError):
            counts = saved(path, to)
            with closing(SqliteStorage(to)) as storage:
                for session, count in counts.items():
                    assert storage.read(session) == whole[session][:count]
            if counts != dict.fromkeys(SESSIONS, 6):
                lost += 1
                assert damage_of(path)
    assert lost


def test_what_is_whole_behind_a_damaged_page_is_saved_too(tmp_path: Path) -> None:
    path, names = tmp_path / "sessions.db", [f"s{number:03}" for number in range(600)]
    with closing(SqliteStorage(path)) as storage, storage.transaction(names):
        for name in names:
            begin(storage, name)
    data = bytearray(path.read_bytes())
    leaves = [  # of records: no other table has such
        at for at in range(4096, len(data), 4096) if data[at] == 0x0D
    ]
    assert len(leaves) > 3
    at = leaves[len(leaves) // 2]
    data[at : at + 100] = bytes(100)
    path.write_bytes(data)
    damaged = {each.session for each in damage_of(path)}
    whole = {name: 1 for name in names if name not in damaged}
    assert len(whole) > len(names) // 2
    assert names[-1] in whole
    assert saved(path, tmp_path / "saved.db") == whole


ROOTS = ("sqlite_schema", "meta", "host", "session", "record", "blob", "blob_count", "blob_use")


@pytest.mark.parametrize("table", ROOTS)
@pytest.mark.parametrize("damage", [bytes(4096), b"\xff" * 4096])
def test_every_log_is_saved_whole_whatever_becomes_of_the_root_of_a_table(
    damage: bytes, table: str, tmp_path: Path
) -> None:
    path, names = tmp_path / "sessions.db", [f"s{number:03}" for number in range(100)]
    with closing(written(path)) as storage, storage.transaction(names):
        for name in names:
            begin(storage, name)
    root = 1
    with closing(sqlite3.connect(path)) as other:
        if table != "sqlite_schema":
            query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
            (root,) = other.execute(query, (table,)).fetchone()
    data = bytearray(path.read_bytes())
    has_children = data[(root - 1) * 4096] in (2, 5)
    data[(root - 1) * 4096 : root * 4096] = damage
    path.write_bytes(data)
    assert has_children or table not in ("record", "session")
    to = tmp_path / "saved.db"
    expected = dict.fromkeys(names, 1) | dict.fromkeys(SESSIONS, 6)
    if table == "blob":  # all of it is on one page
        expected |= dict.fromkeys(SESSIONS, 2)
    assert saved(path, to) == expected
    with closing(SqliteStorage(to)) as storage:
        for session in SESSIONS:
            assert storage.read(session) == log(session)[: expected[session]]


def test_logs_are_saved_from_the_write_ahead_log_where_the_first_page_is_damaged(tmp_path: Path) -> None:
    source, path = tmp_path / "source.db", tmp_path / "sessions.db"
    with closing(written(source)):
        assert source.stat().st_size < source.with_name("source.db-wal").stat().st_size
        path.write_bytes(bytes(source.stat().st_size))
        copy(source.with_name("source.db-wal"), path.with_name("sessions.db-wal"))
    wal = bytearray(path.with_name("sessions.db-wal").read_bytes())
    assert saved(path, tmp_path / "saved.db") == dict.fromkeys(SESSIONS, 6)
    wal[len(wal) // 4] ^= 1
    path.with_name("sessions.db-wal").write_bytes(wal)
    counts = saved(path, tmp_path / "less.db")
    with closing(SqliteStorage(tmp_path / "less.db")) as storage:
        for session, count in counts.items():
            assert storage.read(session) == log(session)[:count]
    assert sum(counts.values()) < 18


def test_what_was_deleted_is_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(written(path)) as storage:
        storage.close()
        storage.delete("one")
        assert begin(storage, "one", target="b").last == 0
    data = bytearray(path.read_bytes())
    data[:4096] = bytes(4096)
    path.write_bytes(data)
    assert saved(path, tmp_path / "saved.db") == {"one": 1, "two": 6, "three": 6}


def test_a_file_of_which_nothing_can_be_saved_makes_no_new_one(tmp_path: Path) -> None:
    path, to = tmp_path / "sessions.db", tmp_path / "saved.db"
    path.write_bytes(Random(1).randbytes(20 * 4096))
    with pytest.raises(JournalError, match="it is no journal"):
        saved(path, to)
    assert not to.exists()


def test_a_copy_to_which_nobody_can_write_is_looked_at_too() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.db"
        with closing(SqliteStorage(path)) as storage:
            begin(storage, "one")
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        with nobody(), closing(JournalFile(path)) as file:
            assert list(file.damage()) == []
            assert file.records == 1
        Path(folder).chmod(0o755)


def test_what_is_no_journal_is_refused_in_one_line(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE t (a)")
    text = tmp_path / "text.db"
    text.write_text("no database\n" * 100)
    for path, why in (
        (other, "not a journal"),
        (text, "it is no journal"),
        (tmp_path / "missing.db", "there is no such file"),
        (tmp_path, "it is no file"),
    ):
        with pytest.raises(JournalError, match=why) as raised:
            JournalFile(path)
        assert str(path) in str(raised.value)
        assert "\n" not in str(raised.value)
    assert not (tmp_path / "missing.db").exists()
