"""A damaged journal: what is read is what was written, or it is refused; nothing else is ever given for a log."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from shutil import copy
from traceback import format_exception

import pytest

from actors.core.data.jsonio import Json
from actors.core.log.codec import encode_event
from actors.core.log.events import AskStarted, LogEvent, Opened, Returned
from actors.core.values.content import Message, Text
from actors.core.values.identity import CallId
from actors.core.values.packed import pack
from actors.errors import JournalDamaged, JournalError
from actors.journal.storage import Entry
from actors.journal.storage.sqlite import SqliteStorage
from tests.commands.at_scale import share, spread
from tests.journal.storages import begin, to

SESSIONS = ("one", "two", "three")
LARGE = Json(b'"' + b"many words " * 3000 + b'"')


def log(session: str) -> list[LogEvent]:
    """Return what a session's log holds."""
    said = AskStarted(1, pack(Message("user", (Text(f"I am {session}. " * 20),))))
    return [Opened(session, "a"), said, Returned(CallId("c"), LARGE), *map(to, "bcd")]


def written(path: Path) -> SqliteStorage:
    """Write a journal, one record in a transaction; it is left open, so its write-ahead log is there."""
    storage = SqliteStorage(path)
    claims = {session: begin(storage, session) for session in SESSIONS}
    for session, claim in claims.items():
        for event in log(session)[1:]:
            storage.append([Entry(session, claim.fence, (event,))])
    return storage


def damaged(path: Path, statement: str, *values: object) -> Path:
    """Write a journal, and change what is in it behind its back."""
    written(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        assert other.execute(statement, values).rowcount > 0
    return path


def read(path: Path) -> list[list[LogEvent]]:
    """Read every session as a newcomer: by the directory, and by their names."""
    storage = SqliteStorage(path)
    try:
        listed = {stored.id: stored.events for stored in storage.sessions()}
        logs = [storage.read(session) for session in SESSIONS]
        assert listed == {session: len(each) for session, each in zip(SESSIONS, logs, strict=True) if each}
        return logs
    finally:
        storage.close()


DAMAGE = {
    "a record that has changed": "UPDATE record SET bytes = bytes || x'00' WHERE session = 1 AND number = 4",
    "a record in another's place": "UPDATE record SET number = number + 10 WHERE session = 1 AND number = 6",
    "a record of another session": (
        "UPDATE record SET (checksum, bytes) = (SELECT checksum, bytes FROM record WHERE session = 2 AND number = 4) "
        "WHERE session = 1 AND number = 4"
    ),
    "a record that says it is another's": "UPDATE record SET session = 2 WHERE session = 1 AND number = 4",
    "a record that changes places with another's": (
        "UPDATE record SET session = 3 - session WHERE session IN (1, 2) AND number = 4"
    ),
    "a way back to another's record": (
        "UPDATE record SET before = (SELECT place FROM record WHERE session = 2 AND number = 3) "
        "WHERE session = 1 AND number = 4"
    ),
    "a way back that leaves one out": (
        "UPDATE record SET before = (SELECT place FROM record WHERE session = 1 AND number = 2) "
        "WHERE session = 1 AND number = 4"
    ),
    "a way back to the same record": "UPDATE record SET before = place WHERE session = 1 AND number = 4",
    "a way back in a circle": (
        "UPDATE record SET before = (SELECT place FROM record WHERE session = 1 AND number = 6) "
        "WHERE session = 1 AND number = 4"
    ),
    "a way back to nowhere": "UPDATE record SET before = 1000000 WHERE session = 1 AND number = 4",
    "an end that is another's": (
        "UPDATE session SET place = (SELECT place FROM session WHERE name = 'two') WHERE name = 'one'"
    ),
    "an end that is not the last": (
        "UPDATE session SET place = (SELECT place FROM record WHERE session = 1 AND number = 5) WHERE name = 'one'"
    ),
    "an end that is no number": "UPDATE session SET place = 'x' WHERE name = 'one'",
    "one that is missing": "DELETE FROM record WHERE session = 1 AND number = 4",
    "a lost end": "DELETE FROM record WHERE session = 1 AND number > 3",
    "an entry that has changed": "UPDATE session SET last = 3 WHERE name = 'one'",
    "another's tenant": "UPDATE session SET tenant = 'other' WHERE name = 'one'",
    "a number that goes back": "UPDATE session SET fence = 0 WHERE name = 'one'",
    "a session that is missing": "DELETE FROM session WHERE name = 'one'",
    "a blob that has changed": "UPDATE blob SET bytes = bytes || x'20'",
    "a blob that is missing": "DELETE FROM blob",
}
OF_OTHERS = ("a session that is missing", "a record that changes places with another's")
"""What is not damage of session `one` alone."""


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_refused_with_its_place(damage: str, tmp_path: Path) -> None:
    storage = SqliteStorage(damaged(tmp_path / "sessions.db", DAMAGE[damage]))
    with pytest.raises(JournalDamaged, match=r"sessions\.db") as raised:
        storage.read("one")
    assert "missing from its directory" in str(raised.value) or raised.value.session == "one"
    if "blob" not in damage and damage not in OF_OTHERS:
        assert storage.read("two") == log("two")
    storage.close()


@pytest.mark.parametrize("number", range(1, 7))
def test_a_record_that_says_it_is_of_no_session_is_refused_wherever_it_stands(
    number: int, tmp_path: Path
) -> None:
    change = "UPDATE record SET session = 9 WHERE session = 1 AND number = ?"
    storage = SqliteStorage(damaged(tmp_path / "sessions.db", change, number))
    with pytest.raises(JournalDamaged, match=f"record {number} is missing"):
        storage.read("one")
    assert storage.read("one", number) == log("one")[number:]
    storage.close()


@pytest.mark.parametrize("number", [6, 7])
def test_a_record_that_belongs_to_no_log_is_not_read(number: int, tmp_path: Path) -> None:
    copied = (
        "INSERT INTO record (before, session, number, checksum, bytes) "
        "SELECT place, session, ?, checksum, bytes FROM record WHERE session = 1 AND number = 6"
    )
    path = damaged(tmp_path / "sessions.db", copied, number)
    assert read(path) == [log(session) for session in SESSIONS]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_log_is_deleted_and_no_other(damage: str, tmp_path: Path) -> None:
    path = damaged(tmp_path / "sessions.db", DAMAGE[damage])
    storage = SqliteStorage(path)
    with suppress(JournalDamaged), closing(sqlite3.connect(path)) as other:
        storage.delete("one")  # damaged: an entry that has changed says nothing
        (left,) = other.execute("SELECT count(*) FROM record WHERE session = 1").fetchone()
        assert left == 0
    if damage not in (*OF_OTHERS, "a blob that has changed", "a blob that is missing"):
        assert storage.read("two") == log("two")
    storage.close()


def test_a_flipped_bit_in_any_byte_of_the_last_records_is_never_read_as_something_else(
    tmp_path: Path,
) -> None:
    """The bytes of their cells: length, place, the place of the one before, session, number, checksum, event."""
    source, path = tmp_path / "source.db", tmp_path / "sessions.db"
    written(source).close()
    data, whole, random = source.read_bytes(), [log(session) for session in SESSIONS], Random(4)
    last = [encode_event(event) for event in log("three")[-3:]]
    ends = [at + len(each) for each in last for at in [data.rindex(each)]]
    begin, end = min(ends) - len(last[0]) - 16, max(ends)
    assert end - begin < 400
    refused = 0
    for at in range(begin, end):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :])
        try:
            assert read(path) == whole, at
        except JournalError:
            refused += 1
    assert refused > (end - begin) * 0.8


def test_what_a_damaged_journal_held_is_in_no_error(tmp_path: Path) -> None:
    secret, change = "what only the user may know", "UPDATE session SET target = CAST(? AS TEXT)"
    storage = SqliteStorage(damaged(tmp_path / "sessions.db", change, b"\xff" + secret.encode()))
    with pytest.raises(JournalDamaged, match="has changed; restore") as raised:
        storage.read("one")
    told = "".join(format_exception(raised.value))
    assert secret not in told
    storage.close()


def is_told(read: Sequence[list[LogEvent]], whole: Sequence[list[LogEvent]], lost: int) -> bool:
    """Say whether logs are as they were written but for so many records at the end of the last one."""
    *others, last = whole
    return [*read[:-1]] == others and read[-1] in [last[: len(last) - n] for n in range(lost + 1)]


def test_a_flipped_bit_is_never_read_as_something_else(tmp_path: Path) -> None:
    source, path = tmp_path / "source.db", tmp_path / "sessions.db"
    written(source).close()
    data, whole, random, refused = source.read_bytes(), [log(session) for session in SESSIONS], Random(1), 0
    flips = share(4000)
    for _ in range(flips):
        at, bit = random.randrange(len(data)), 1 << random.randrange(8)
        path.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
        try:
            assert read(path) == whole, (at, bit)
        except JournalError:
            refused += 1
    assert refused > flips // 10


def test_a_write_ahead_log_that_was_cut_is_read_to_its_last_whole_record(tmp_path: Path) -> None:
    with_log = written(tmp_path / "source.db")
    wal = _used((tmp_path / "source.db-wal").read_bytes())
    whole, path = [log(session) for session in SESSIONS], tmp_path / "sessions.db"
    begun = len(wal) - 3 * _transaction(wal)
    lost, records = set[int](), [encode_event(event) for event in whole[-1][-3:]]
    places = [wal.index(record, begun) for record in records]
    each = [
        at for place, record in zip(places, records, strict=True) for at in range(place, place + len(record))
    ]
    cuts = spread(sorted({*range(begun, len(wal), 149), *each}), 0)
    for cut in cuts:
        copy(tmp_path / "source.db", path)
        path.with_name("sessions.db-wal").write_bytes(wal[:cut])
        logs = read(path)
        assert is_told(logs, whole, 3), cut
        lost.add(len(whole[-1]) - len(logs[-1]))
    assert lost == {1, 2, 3}
    with_log.close()


def test_a_flipped_bit_of_the_write_ahead_log_costs_the_last_transaction_at_most(tmp_path: Path) -> None:
    with_log = written(tmp_path / "source.db")
    wal = _used((tmp_path / "source.db-wal").read_bytes())
    whole, path, random, refused = [log(each) for each in SESSIONS], tmp_path / "sessions.db", Random(2), 0
    flips = share(640)
    for _ in range(flips):
        at, bit = random.randrange(32, len(wal)), 1 << random.randrange(8)
        copy(tmp_path / "source.db", path)
        path.with_name("sessions.db-wal").write_bytes(wal[:at] + bytes([wal[at] ^ bit]) + wal[at + 1 :])
        try:
            assert is_told(read(path), whole, 2), (at, bit)
        except JournalError:
            refused += 1
    assert refused > flips // 3
    with_log.close()


def _used(wal: bytes) -> bytes:
    """Return a write-ahead log without the zeros that it was made longer with."""
    frames = range(32, len(wal), _frame(wal))
    return wal[: next((at for at in frames if not any(wal[at : at + 4])), len(wal))]


def _frame(wal: bytes) -> int:
    return 24 + int.from_bytes(wal[8:12], "big")


def _transaction(wal: bytes) -> int:
    """Return the bytes of the last transaction: its frames, up to the one before that commits."""
    frame = _frame(wal)
    commits = [at for at in range(32, len(wal), frame) if int.from_bytes(wal[at + 4 : at + 8], "big")]
    return commits[-1] - commits[-2]
