"""Damaged journals: a read returns the bytes that were written or raises an error, never wrong data."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from shutil import copy
from traceback import format_exception

import pytest

from actors.core.data.jsonio import Json
from actors.core.log.call_events import Returned
from actors.core.log.codec import encode_event
from actors.core.log.events import AskStarted, LogEvent, Opened
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
    """Return the expected log of a session."""
    said = AskStarted(1, pack(Message("user", (Text(f"I am {session}. " * 20),))))
    return [Opened(session, "a"), said, Returned(CallId("c"), LARGE), *map(to, "bcd")]


def write_journal(path: Path) -> SqliteStorage:
    """Write a journal with one record per transaction, and keep it open so that its write-ahead log stays."""
    storage = SqliteStorage(path)
    claims = {session: begin(storage, session) for session in SESSIONS}
    for session, claim in claims.items():
        for event in log(session)[1:]:
            storage.append([Entry(session, claim.fence, (event,))])
    return storage


def damaged_journal(path: Path, statement: str, *values: object) -> Path:
    """Write a journal and change its content with a statement."""
    write_journal(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        assert other.execute(statement, values).rowcount > 0
    return path


def read(path: Path) -> list[list[LogEvent]]:
    """Read every session without cached state: through the directory, and by name."""
    storage = SqliteStorage(path)
    try:
        listed = {stored.id: stored.events for stored in storage.sessions()}
        logs = [storage.read(session) for session in SESSIONS]
        assert listed == {session: len(each) for session, each in zip(SESSIONS, logs, strict=True) if each}
        return logs
    finally:
        storage.close()


DAMAGE = {
    "a changed record": "UPDATE record SET bytes = bytes || x'00' WHERE session = 1 AND number = 4",
    "a moved record": "UPDATE record SET number = number + 10 WHERE session = 1 AND number = 6",
    "a record of another session": (
        "UPDATE record SET (checksum, bytes) = (SELECT checksum, bytes FROM record WHERE session = 2 AND number = 4) "
        "WHERE session = 1 AND number = 4"
    ),
    "a record attributed to another session": "UPDATE record SET session = 2 WHERE session = 1 AND number = 4",
    "a record swapped with another session's": (
        "UPDATE record SET session = 3 - session WHERE session IN (1, 2) AND number = 4"
    ),
    "a link to another session's record": (
        "UPDATE record SET before = (SELECT place FROM record WHERE session = 2 AND number = 3) "
        "WHERE session = 1 AND number = 4"
    ),
    "a link that skips a record": (
        "UPDATE record SET before = (SELECT place FROM record WHERE session = 1 AND number = 2) "
        "WHERE session = 1 AND number = 4"
    ),
    "a link to the same record": "UPDATE record SET before = place WHERE session = 1 AND number = 4",
    "a circular link": (
        "UPDATE record SET before = (SELECT place FROM record WHERE session = 1 AND number = 6) "
        "WHERE session = 1 AND number = 4"
    ),
    "a link to no record": "UPDATE record SET before = 1000000 WHERE session = 1 AND number = 4",
    "the end of another session": (
        "UPDATE session SET place = (SELECT place FROM session WHERE name = 'two') WHERE name = 'one'"
    ),
    "an end before the last record": (
        "UPDATE session SET place = (SELECT place FROM record WHERE session = 1 AND number = 5) WHERE name = 'one'"
    ),
    "an end that is not a number": "UPDATE session SET place = 'x' WHERE name = 'one'",
    "a missing record": "DELETE FROM record WHERE session = 1 AND number = 4",
    "a lost end": "DELETE FROM record WHERE session = 1 AND number > 3",
    "a changed entry": "UPDATE session SET last = 3 WHERE name = 'one'",
    "a changed tenant": "UPDATE session SET tenant = 'other' WHERE name = 'one'",
    "a decreased fencing number": "UPDATE session SET fence = 0 WHERE name = 'one'",
    "a missing session": "DELETE FROM session WHERE name = 'one'",
    "a changed blob": "UPDATE blob SET bytes = bytes || x'20'",
    "a missing blob": "DELETE FROM blob",
}
OF_OTHERS = ("a missing session", "a record swapped with another session's")
"""Kinds of damage that do not affect session `one` alone."""


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_reported_with_its_location(damage: str, tmp_path: Path) -> None:
    storage = SqliteStorage(damaged_journal(tmp_path / "sessions.db", DAMAGE[damage]))
    with pytest.raises(JournalDamaged, match=r"sessions\.db") as raised:
        storage.read("one")
    assert "entries of sessions are missing" in str(raised.value) or raised.value.session == "one"
    if "blob" not in damage and damage not in OF_OTHERS:
        assert storage.read("two") == log("two")
    storage.close()


@pytest.mark.parametrize("number", range(1, 7))
def test_a_record_of_an_unknown_session_is_refused(number: int, tmp_path: Path) -> None:
    change = "UPDATE record SET session = 9 WHERE session = 1 AND number = ?"
    storage = SqliteStorage(damaged_journal(tmp_path / "sessions.db", change, number))
    with pytest.raises(JournalDamaged, match=f"record {number} is missing"):
        storage.read("one")
    assert storage.read("one", number) == log("one")[number:]
    storage.close()


@pytest.mark.parametrize("number", [6, 7])
def test_an_unlinked_record_is_not_read(number: int, tmp_path: Path) -> None:
    copied = (
        "INSERT INTO record (before, session, number, checksum, bytes) "
        "SELECT place, session, ?, checksum, bytes FROM record WHERE session = 1 AND number = 6"
    )
    path = damaged_journal(tmp_path / "sessions.db", copied, number)
    assert read(path) == [log(session) for session in SESSIONS]


@pytest.mark.parametrize("damage", DAMAGE)
def test_deleting_a_damaged_log_affects_no_other_log(damage: str, tmp_path: Path) -> None:
    path = damaged_journal(tmp_path / "sessions.db", DAMAGE[damage])
    storage = SqliteStorage(path)
    with suppress(JournalDamaged), closing(sqlite3.connect(path)) as other:
        storage.delete("one")  # the deletion must not rely on the damaged entry
        (left,) = other.execute("SELECT count(*) FROM record WHERE session = 1").fetchone()
        assert left == 0
    if damage not in (*OF_OTHERS, "a changed blob", "a missing blob"):
        assert storage.read("two") == log("two")
    storage.close()


def test_a_flipped_bit_in_the_last_records_never_yields_wrong_data(
    tmp_path: Path,
) -> None:
    """The bits are in all fields of a record's cell: length, place, predecessor, session, number, checksum, event."""
    source, path = tmp_path / "source.db", tmp_path / "sessions.db"
    write_journal(source).close()
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


def test_a_name_that_cannot_be_encoded_is_not_reported_as_damage(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "sessions.db")
    begin(storage, "one")
    for ask in (storage.find, storage.read, storage.claim, storage.delete):
        with pytest.raises(UnicodeEncodeError):
            ask("\ud800")
    storage.close()


def test_errors_about_damage_contain_no_journal_content(tmp_path: Path) -> None:
    secret, change = "the user's private text", "UPDATE session SET target = CAST(? AS TEXT)"
    storage = SqliteStorage(damaged_journal(tmp_path / "sessions.db", change, b"\xff" + secret.encode()))
    with pytest.raises(JournalDamaged, match="is corrupt; restore") as raised:
        storage.read("one")
    told = "".join(format_exception(raised.value))
    assert secret not in told
    storage.close()


def is_intact_up_to(read: Sequence[list[LogEvent]], whole: Sequence[list[LogEvent]], lost: int) -> bool:
    """Return True if the logs are unchanged, except for at most `lost` records at the end of the last one."""
    *others, last = whole
    return [*read[:-1]] == others and read[-1] in [last[: len(last) - n] for n in range(lost + 1)]


def test_a_flipped_bit_never_yields_wrong_data(tmp_path: Path) -> None:
    source, path = tmp_path / "source.db", tmp_path / "sessions.db"
    write_journal(source).close()
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


def test_a_truncated_wal_is_read_up_to_its_last_complete_record(tmp_path: Path) -> None:
    with_log = write_journal(tmp_path / "source.db")
    wal = _without_padding((tmp_path / "source.db-wal").read_bytes())
    whole, path = [log(session) for session in SESSIONS], tmp_path / "sessions.db"
    begun = len(wal) - 3 * _last_transaction_bytes(wal)
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
        assert is_intact_up_to(logs, whole, 3), cut
        lost.add(len(whole[-1]) - len(logs[-1]))
    assert lost == {1, 2, 3}
    with_log.close()


def test_a_flipped_bit_in_the_wal_loses_at_most_the_last_transaction(tmp_path: Path) -> None:
    with_log = write_journal(tmp_path / "source.db")
    wal = _without_padding((tmp_path / "source.db-wal").read_bytes())
    whole, path, random, refused = [log(each) for each in SESSIONS], tmp_path / "sessions.db", Random(2), 0
    flips = share(640)
    for _ in range(flips):
        at, bit = random.randrange(32, len(wal)), 1 << random.randrange(8)
        copy(tmp_path / "source.db", path)
        path.with_name("sessions.db-wal").write_bytes(wal[:at] + bytes([wal[at] ^ bit]) + wal[at + 1 :])
        try:
            assert is_intact_up_to(read(path), whole, 2), (at, bit)
        except JournalError:
            refused += 1
    assert refused > flips // 3
    with_log.close()


def _without_padding(wal: bytes) -> bytes:
    """Return a write-ahead log without its preallocated zeros."""
    frames = range(32, len(wal), _frame_bytes(wal))
    return wal[: next((at for at in frames if not any(wal[at : at + 4])), len(wal))]


def _frame_bytes(wal: bytes) -> int:
    return 24 + int.from_bytes(wal[8:12], "big")


def _last_transaction_bytes(wal: bytes) -> int:
    """Return the size in bytes of the last transaction: its frames after the previous commit."""
    frame = _frame_bytes(wal)
    commits = [at for at in range(32, len(wal), frame) if int.from_bytes(wal[at + 4 : at + 8], "big")]
    return commits[-1] - commits[-2]
