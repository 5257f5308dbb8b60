"""`fsck`: find damage without writing, and salvage intact records."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from shutil import copy
from tempfile import TemporaryDirectory

import pytest

from actors.errors import JournalDamaged, JournalError
from actors.journal.storage.rows import Damage
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.check import JournalFile
from actors.journal.storage.sqlite.salvage import salvage
from tests.journal.storages import begin
from tests.journal.test_damage import DAMAGE, OF_OTHERS, SESSIONS, log, write_journal
from tests.journal.test_unavailable import unprivileged_user

KEPT = {
    "a changed record": (3, 4),
    "a moved record": (5, 6),
    "a record of another session": (3, 4),
    "a record attributed to another session": (3, 4),
    "a record swapped with another session's": (3, 4),
    "a link to another session's record": (6, 3),
    "a link that skips a record": (6, 3),
    "a link to the same record": (6, 3),
    "a circular link": (6, 3),
    "a link to no record": (6, 3),
    "the end of another session": (6, 6),
    "an end before the last record": (6, 6),
    "an end that is not a number": (6, 6),
    "a missing record": (3, 4),
    "a lost end": (3, 6),
    "a changed entry": (6, 0),
    "a changed tenant": (6, 0),
    "a decreased fencing number": (6, 0),
    "a missing session": (6, 0),
    "a changed blob": (2, 3),
    "a missing blob": (2, 3),
}
"""For each kind of damage: how many of the six events of session `one` can be salvaged, and the record that is named.
"""


def damage_of(path: Path) -> list[Damage]:
    with closing(JournalFile(path)) as file:
        return list(file.damage())


def salvage_counts(path: Path, to: Path) -> dict[str, int]:
    with closing(SqliteStorage(to, durability="process")) as storage:
        return dict(salvage(path, storage))


def test_checking_a_sound_journal_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    storage = write_journal(path)
    storage.delete("three")
    assert damage_of(path) == []
    storage.close()
    before = path.read_bytes()
    with closing(JournalFile(path)) as file:
        assert list(file.damage()) == []
        assert (file.sessions, file.records, file.blobs) == (2, 12, 1)
    assert path.read_bytes() == before


def test_a_write_during_the_check_is_not_damage(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    storage = write_journal(path)
    with closing(JournalFile(path)) as file:
        found = file.damage()
        assert storage.claim("four").fence == 1
        storage.delete("one")
        assert list(found) == []
        assert file.sessions == 3
    storage.close()


@pytest.mark.parametrize("damage", DAMAGE)
def test_fsck_locates_damage_and_salvages_the_rest(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    write_journal(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(DAMAGE[damage])
    found = damage_of(path)
    assert found
    if damage != "a missing session":
        assert {"one"} <= {each.session for each in found}
    kept, number = KEPT[damage]
    if number:
        assert ("one", number) in {(each.session, each.number) for each in found}
    counts = salvage_counts(path, tmp_path / "saved.db")
    assert counts["one"] == kept
    if "blob" not in damage and damage not in OF_OTHERS:
        assert counts["two"] == counts["three"] == 6
    with closing(SqliteStorage(tmp_path / "saved.db")) as storage:
        for session, count in counts.items():
            assert storage.read(session) == log(session)[:count]
    assert damage_of(tmp_path / "saved.db") == []


@pytest.mark.parametrize("number", [6, 7])
def test_fsck_finds_an_unlinked_record_but_does_not_salvage_the_record(number: int, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    write_journal(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(
            "INSERT INTO record (before, session, number, checksum, bytes) "
            "SELECT place, session, ?, checksum, bytes FROM record WHERE session = 1 AND number = 6",
            (number,),
        )
    assert [each.what for each in damage_of(path)] == [
        f"{path}: session 'one': the log has 6 records, but the file contains 7 of them"
    ]
    assert salvage_counts(path, tmp_path / "saved.db") == dict.fromkeys(SESSIONS, 6)


@pytest.mark.parametrize("session", [1, 3])
def test_a_misattributed_record_does_not_hide_the_genuine_record(session: int, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    write_journal(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE record SET session = 2 WHERE session = ? AND number = 4", (session,))
    assert salvage_counts(path, tmp_path / "saved.db") == {
        **dict.fromkeys(SESSIONS, 6),
        SESSIONS[session - 1]: 3,
    }


def test_fsck_distinguishes_missing_from_deleted_sessions(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    storage = write_journal(path)
    storage.delete("two")
    storage.close()
    assert list(damage_of(path)) == []
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(DAMAGE["a missing session"])
    assert f"{path}: the file should have 2 sessions, but 1 have an entry" in [
        each.what for each in damage_of(path)
    ]


@pytest.mark.parametrize(
    "damage", ["UPDATE meta SET value = 0 WHERE key = 'floor'", "DELETE FROM meta WHERE key = 'floor'"]
)
def test_a_lost_record_of_used_fencing_numbers_is_reported_and_blocks_claims(
    tmp_path: Path, damage: str
) -> None:
    path = tmp_path / "sessions.db"
    with closing(write_journal(path)) as storage:
        storage.delete("two")
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(damage)
    what = f"{path}: the counts of removed sessions are corrupt"
    assert any(each.what.startswith(what) for each in damage_of(path))
    with closing(SqliteStorage(path)) as storage, pytest.raises(JournalDamaged, match=what):
        storage.claim("two")


@pytest.mark.parametrize("table", ["blob_count", "blob_use"])
def test_fsck_finds_wrong_blob_counts(table: str, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    write_journal(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(f"DELETE FROM {table}")
    assert any("sessions use blob" in each.what for each in damage_of(path))


def test_salvaging_a_file_with_a_flipped_bit_yields_a_prefix_of_each_log(tmp_path: Path) -> None:
    source, path, random, lost = tmp_path / "source.db", tmp_path / "sessions.db", Random(3), 0
    write_journal(source).close()
    data, whole = source.read_bytes(), {session: log(session) for session in SESSIONS}
    for _ in range(60):
        at, bit = random.randrange(len(data)), 1 << random.randrange(8)
        path.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
        to = tmp_path / f"saved-{at}-{bit}.db"
        with suppress(JournalError):
            counts = salvage_counts(path, to)
            with closing(SqliteStorage(to)) as storage:
                for session, count in counts.items():
                    assert storage.read(session) == whole[session][:count]
            if counts != dict.fromkeys(SESSIONS, 6):
                lost += 1
                assert damage_of(path)
    assert lost


def test_records_after_a_damaged_page_are_salvaged(tmp_path: Path) -> None:
    path, names = tmp_path / "sessions.db", [f"s{number:03}" for number in range(600)]
    with closing(SqliteStorage(path)) as storage, storage.transaction(names):
        for name in names:
            begin(storage, name)
    data = bytearray(path.read_bytes())
    leaves = [  # leaf pages of records: only this table has them
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
    assert salvage_counts(path, tmp_path / "saved.db") == whole


ROOTS = ("sqlite_schema", "meta", "host", "session", "record", "blob", "blob_count", "blob_use")


@pytest.mark.parametrize("table", ROOTS)
@pytest.mark.parametrize("damage", [bytes(4096), b"\xff" * 4096])
def test_every_log_is_salvaged_when_the_root_page_of_a_table_is_damaged(
    damage: bytes, table: str, tmp_path: Path
) -> None:
    path, names = tmp_path / "sessions.db", [f"s{number:03}" for number in range(100)]
    with closing(write_journal(path)) as storage, storage.transaction(names):
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
    if table == "blob":  # the whole table is on one page
        expected |= dict.fromkeys(SESSIONS, 2)
    assert salvage_counts(path, to) == expected
    with closing(SqliteStorage(to)) as storage:
        for session in SESSIONS:
            assert storage.read(session) == log(session)[: expected[session]]


def test_logs_are_salvaged_from_the_wal_when_the_first_page_is_damaged(tmp_path: Path) -> None:
    source, path = tmp_path / "source.db", tmp_path / "sessions.db"
    with closing(write_journal(source)):
        assert source.stat().st_size < source.with_name("source.db-wal").stat().st_size
        path.write_bytes(bytes(source.stat().st_size))
        copy(source.with_name("source.db-wal"), path.with_name("sessions.db-wal"))
    wal = bytearray(path.with_name("sessions.db-wal").read_bytes())
    assert salvage_counts(path, tmp_path / "saved.db") == dict.fromkeys(SESSIONS, 6)
    wal[len(wal) // 4] ^= 1
    path.with_name("sessions.db-wal").write_bytes(wal)
    counts = salvage_counts(path, tmp_path / "less.db")
    with closing(SqliteStorage(tmp_path / "less.db")) as storage:
        for session, count in counts.items():
            assert storage.read(session) == log(session)[:count]
    assert sum(counts.values()) < 18


def test_deleted_sessions_are_not_salvaged(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(write_journal(path)) as storage:
        storage.close()
        storage.delete("one")
        assert begin(storage, "one", target="b").last == 0
    data = bytearray(path.read_bytes())
    data[:4096] = bytes(4096)
    path.write_bytes(data)
    assert salvage_counts(path, tmp_path / "saved.db") == {"one": 1, "two": 6, "three": 6}


def test_a_salvage_that_finds_nothing_creates_no_file(tmp_path: Path) -> None:
    path, to = tmp_path / "sessions.db", tmp_path / "saved.db"
    path.write_bytes(Random(1).randbytes(20 * 4096))
    with pytest.raises(JournalError, match="it is not a journal"):
        salvage_counts(path, to)
    assert not to.exists()


def test_a_read_only_copy_can_be_checked() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.db"
        with closing(SqliteStorage(path)) as storage:
            begin(storage, "one")
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        with unprivileged_user(), closing(JournalFile(path)) as file:
            assert list(file.damage()) == []
            assert file.records == 1
        Path(folder).chmod(0o755)


def test_a_file_that_is_not_a_journal_is_refused_with_a_one_line_error(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE t (a)")
    text = tmp_path / "text.db"
    text.write_text("no database\n" * 100)
    for path, why in (
        (other, "not a journal"),
        (text, "it is not a journal"),
        (tmp_path / "missing.db", "there is no such file"),
        (tmp_path, "it is not a file"),
    ):
        with pytest.raises(JournalError, match=why) as raised:
            JournalFile(path)
        assert str(path) in str(raised.value)
        assert "\n" not in str(raised.value)
    assert not (tmp_path / "missing.db").exists()
