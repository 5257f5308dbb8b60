"""Deleted sessions: no byte of them remains in the storage's files, or the result names the place and the reason."""

import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

import pytest
from psycopg import sql

from actors.cli import main
from actors.core.data.jsonio import Json
from actors.core.log.call_events import Failed
from actors.core.values.identity import CallId
from actors.errors import JournalUnavailable
from actors.journal.storage import Entry, Storage
from actors.journal.storage.directory import RemainingData
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.connection import Connections
from tests.journal.postgres import Server
from tests.journal.storages import begin
from tests.runtime_support import openai, runtime_with

pytestmark = pytest.mark.anyio

MARK = b"words-that-a-user-wants-gone-"
READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM record").fetchone()
print("reads", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def no_reader_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for readers."""
    monkeypatch.setattr("actors.runtime.retention.READER_TIMEOUT", 0)


def write(storage: Storage, session: str, mark: bytes = MARK, times: int = 200) -> None:
    """Write and release a log with many copies of a mark."""
    words = mark.decode()
    claim = begin(storage, session, title=words.upper(), metadata=(("note", words),))
    text = Json(b'"' + mark * 20 + b'"')
    storage.append([Entry(session, claim.fence, (Failed(CallId("c"), text),) * times)])
    storage.release(session, claim.fence)


def copies(path: Path, mark: bytes = MARK) -> int:
    """Return the number of copies of a mark in all files."""
    return sum(file.read_bytes().lower().count(mark) for file in path.parent.iterdir())


def free_pages(path: Path) -> int:
    """Return the number of unused pages of the file."""
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("PRAGMA freelist_count").fetchone()
        return int(count)


@contextmanager
def open_reader(path: Path) -> Iterator[sqlite3.Connection]:
    """Keep a read transaction on the current state of the file open until the end of the block."""
    reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM record").fetchone()
    try:
        yield reader
    finally:
        reader.close()


@pytest.mark.parametrize("durability", ["process", "power"])
async def test_a_deletion_leaves_no_byte_of_the_session_in_any_file(
    durability: Literal["process", "power"], path: Path
) -> None:
    storage = SqliteStorage(path, durability=durability)
    write(storage, "gone")
    write(storage, "kept", b"other-words")
    assert copies(path) >= 4_000
    async with runtime_with(a=openai(), storage=storage) as runtime:
        deletion = await runtime.journal.delete("gone")
        assert (deletion.sessions, deletion.remaining, copies(path)) == (("gone",), (), 0)
        assert deletion.is_complete
    assert copies(path, b"other-words") > 0


async def test_deleted_data_pinned_by_a_reader_is_reported_until_its_removal(
    path: Path, no_reader_wait: None
) -> None:
    storage = SqliteStorage(path)
    write(storage, "gone")
    async with runtime_with(a=openai(), storage=storage) as runtime:
        with open_reader(path):
            deletion = await runtime.journal.delete("gone")
            assert deletion.sessions == ("gone",)
            assert not deletion.is_complete
            assert [each.place for each in deletion.remaining] == [str(path), f"{path}-wal"]
            assert all(each.is_temporary and each.bytes for each in deletion.remaining)
            assert copies(path) >= 4_000
            assert [each.place for each in await runtime.journal.vacuum()] == [str(path), f"{path}-wal"]
        assert (await runtime.journal.delete("gone")).remaining == ()
        assert copies(path) == 0


class Reread(SqliteStorage):
    """A storage that loses its other reader after the first attempt to remove deleted data."""

    reader: sqlite3.Connection

    def vacuum(self, max_bytes: int | None = None) -> Sequence[RemainingData]:
        found = super().vacuum(max_bytes)
        if found:
            self.reader.close()
        return found


async def test_a_deletion_waits_briefly_for_a_reader(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.runtime.retention.READER_TIMEOUT", 60)
    storage = Reread(path)
    write(storage, "gone")
    async with runtime_with(a=openai(), storage=storage) as runtime:
        with open_reader(path) as storage.reader:
            assert (await runtime.journal.delete("gone")).remaining == ()
            assert copies(path) == 0


def test_the_delete_command_fails_and_names_the_reading_process(
    path: Path, no_reader_wait: None, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = SqliteStorage(path)
    write(storage, "gone")
    storage.close()
    process = subprocess.Popen(
        [sys.executable, "-c", READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"reads\n"
        assert main(["sessions", "delete", "gone", "--journal", str(path)]) == 1
        out, complaints = capsys.readouterr()
        assert out == "gone\n"
        assert f"data of deleted sessions remains in {path} (" in complaints
        assert re.search(
            rf"(process {process.pid}|another program) still reads the earlier state", complaints
        )
        assert main(["sessions", "vacuum", "--journal", str(path)]) == 1
        assert copies(path) >= 4_000
        process.stdin.close()
        process.wait(60)
    assert main(["sessions", "vacuum", "--journal", str(path)]) == 0
    assert copies(path) == 0


def test_remnants_of_a_killed_process_in_free_page_space_are_removed(path: Path) -> None:
    """SQLite leaves copies of rows when it merges pages, and a process may end before the file is rewritten."""
    chance, names, storage = random.Random(3), [f"s{number}" for number in range(12)], SqliteStorage(path)
    fences = {name: begin(storage, name).fence for name in names}
    for _ in range(150):
        for name in chance.choices(names, k=3):
            text = f"words-of-{name}-".encode() * chance.choice([1, 3, 40, 200])
            storage.append([Entry(name, fences[name], (Failed(CallId("c"), Json(b'"' + text + b'"')),))])
    for name in names[1::2]:
        storage.delete(name)
    while free_pages(path):
        storage.append([Entry("s0", fences["s0"], (Failed(CallId("c"), Json(b'"' + b"x" * 4000 + b'"')),))])
    storage.close()

    def remaining_texts() -> list[str]:
        return [name for name in names[1::2] if copies(path, f"words-of-{name}-".encode())]

    assert remaining_texts()
    anew = SqliteStorage(path)
    assert [each.place for each in anew.vacuum(max_bytes=0)] == [str(path)]
    assert remaining_texts()
    assert (anew.vacuum(), remaining_texts()) == ([], [])
    assert len(anew.read("s0")) > 1
    anew.close()


def test_a_deletion_rewrites_the_file_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewrites, rewrite = [], Connections._rewrite_file

    def count(connections: Connections, connection: sqlite3.Connection) -> None:
        rewrites.append(path.stat().st_size)
        rewrite(connections, connection)

    monkeypatch.setattr(Connections, "_rewrite_file", count)
    storage = SqliteStorage(path)
    write(storage, "gone")
    assert (storage.vacuum(), len(rewrites)) == ([], 0)
    storage.delete("gone")
    for _ in range(2):
        assert (storage.vacuum(), len(rewrites)) == ([], 1)
    storage.close()


async def test_a_copy_of_a_damaged_file_is_reported_until_its_deletion(path: Path) -> None:
    storage = SqliteStorage(path)
    write(storage, "gone")
    copy = path.with_name(f"{path.name}-damaged-0123456789ab")
    copy.write_bytes(MARK)
    async with runtime_with(a=openai(), storage=storage) as runtime:
        (left,) = (await runtime.journal.delete("gone")).remaining
        assert (left.place, left.bytes, left.is_temporary) == (str(copy), len(MARK), False)
        assert "delete it when it is no longer needed" in str(left)
        copy.unlink()
        assert await runtime.journal.vacuum() == ()


class Full(MemoryStorage):
    """A storage without space to rewrite its file."""

    def vacuum(self, max_bytes: int | None = None) -> Sequence[RemainingData]:
        raise JournalUnavailable("the disk is full; make room")


async def test_a_deletion_reports_data_that_it_cannot_remove() -> None:
    storage = Full()
    write(storage, "gone")
    async with runtime_with(a=openai(), storage=storage) as runtime:
        deletion = await runtime.journal.delete("gone")
        assert deletion.sessions == ("gone",)
        assert [each.reason for each in deletion.remaining] == ["the disk is full; make room"]


async def test_postgres_tables_with_deleted_data_are_reported_until_rewritten(
    postgres: Server,
) -> None:
    schema = postgres.schema()
    storage = PostgresStorage(postgres.url(schema))
    write(storage, "gone")
    write(storage, "kept")
    assert list(storage.vacuum()) == []
    async with runtime_with(a=openai(), storage=storage) as runtime:
        remaining = (await runtime.journal.delete("gone")).remaining
        tables = ["actors_blob", "actors_blob_use", "actors_record", "actors_session"]
        assert [each.place.rpartition(" ")[2] for each in remaining] == tables
        assert "VACUUM FULL actors_record" in str(remaining[2])
        with postgres.connect(schema) as connection:
            connection.autocommit = True
            for table in tables:
                connection.execute(sql.SQL("VACUUM {}").format(sql.Identifier(table)))
            assert await runtime.journal.vacuum() == remaining
            for table in tables:
                connection.execute(sql.SQL("VACUUM FULL {}").format(sql.Identifier(table)))
        connection.close()
        assert await runtime.journal.vacuum() == ()
    storage.close()
