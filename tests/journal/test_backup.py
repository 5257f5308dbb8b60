"""Backups: a copy made during writes is complete and can be opened, and nothing else is changed."""

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest

from actors.cli import main
from actors.core.data.jsonio import Json
from actors.core.log.call_events import Failed
from actors.core.values.identity import CallId
from actors.errors import ConfigError, JournalDamaged, JournalError, JournalUnavailable
from actors.journal.storage import Entry
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.sqlite import SqliteStorage, vacuum
from actors.journal.storage.sqlite.check import JournalFile
from actors.testing import Say, Turn
from tests.journal.postgres import Server
from tests.journal.storages import begin, to
from tests.runtime_support import openai, runtime_with

pytestmark = pytest.mark.anyio

WRITERS = ("one", "two", "three")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "copy.db"


def events(path: Path, session: str) -> int:
    """Return how many events of a session a file has, all verified."""
    with closing(SqliteStorage(path)) as storage:
        return len(storage.read(session))


class Writer(threading.Thread):
    """Another host of the file, which writes events until it is stopped."""

    def __init__(self, path: Path, session: str, on_event: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._storage, self._session = SqliteStorage(path, patience=60), session
        self._on_event = on_event
        self.acknowledged = 0
        self.is_stopped = threading.Event()

    def run(self) -> None:
        with closing(self._storage) as storage:
            fence = begin(storage, self._session).fence
            text = Json(b'"' + self._session.encode() * 1000 + b'"')
            while not self.is_stopped.is_set() and self.acknowledged < 100_000:
                storage.append([Entry(self._session, fence, (Failed(CallId("c"), text),))])
                self.acknowledged += 1
                self._on_event()


async def test_a_backup_contains_every_event_acknowledged_before_the_backup_began(
    path: Path, copy: Path
) -> None:
    begun = {name: threading.Event() for name in WRITERS}
    writers = {name: Writer(path, name, begun[name].set) for name in WRITERS}
    async with runtime_with(a=openai(Turn(Say("Yes."))), storage=SqliteStorage(path, patience=60)) as runtime:
        session = await runtime.open("a", id="asked")
        await session.ask("Well?")
        for writer in writers.values():
            writer.start()
        try:
            for event in begun.values():
                assert await anyio.to_thread.run_sync(event.wait, 60)
            before = {name: writer.acknowledged for name, writer in writers.items()}
            await runtime.journal.backup(copy)
        finally:
            for writer in writers.values():
                writer.is_stopped.set()
            for writer in writers.values():
                await anyio.to_thread.run_sync(writer.join, 60)
        final = {name: len(runtime._storage.read(name)) for name in (*WRITERS, "asked")}
    file = JournalFile(copy)
    with closing(file):
        assert list(file.damage()) == []
    for name in WRITERS:
        assert before[name] < events(copy, name) <= final[name]
    assert events(copy, "asked") == final["asked"]


def test_writers_continue_during_a_backup(path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vacuum, "_STEPS", 20)
    storage, other = SqliteStorage(path), SqliteStorage(path)
    fences = {name: begin(each, name).fence for each, name in ((storage, "own"), (other, "others"))}
    for _ in range(50):
        storage.append([Entry("own", fences["own"], (to("b"),))])
    written = list[object]()

    def write() -> None:
        if len(written) < 10:
            written.append(storage.append([Entry("own", fences["own"], (to("c"),))]))
            written.append(other.append([Entry("others", fences["others"], (to("c"),))]))

    storage.backup(copy, write)
    assert written == [number for each in range(5) for number in ([52 + each], [2 + each])]
    assert (events(copy, "own"), events(copy, "others")) == (51, 1)
    assert (len(storage.read("own")), len(other.read("others"))) == (56, 6)
    storage.close()
    other.close()


def test_a_backup_includes_the_wal_of_a_killed_process(path: Path, copy: Path) -> None:
    killed = SqliteStorage(path)
    begin(killed, "one")
    storage = SqliteStorage(path)
    thread = threading.Thread(target=storage.backup, args=(copy, lambda: None), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert events(copy, "one") == 1
    storage.close()
    killed.close()


def assert_private_and_free_of(copy: Path, words: bytes) -> None:
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in copy.parent.iterdir()] == [copy.name]
    assert words not in copy.read_bytes()


async def test_a_backup_is_a_usable_journal_without_deleted_data(path: Path, copy: Path) -> None:
    async with runtime_with(a=openai(Turn(Say("Yes."))), storage=SqliteStorage(path)) as runtime:
        begin(runtime._storage, "gone")
        text = Json(b'"' + b"words-of-gone" * 400 + b'"')
        runtime._storage.append([Entry("gone", 1, (Failed(CallId("c"), text),))])
        runtime._storage.delete("gone")
        session = await runtime.open("a", id="one")
        await session.ask("Well?")
        await runtime.journal.backup(copy)
    assert_private_and_free_of(copy, b"words-of-gone")
    async with runtime_with(a=openai(Turn(Say("Still."))), storage=SqliteStorage(copy)) as runtime:
        session = await runtime.resume("one")
        assert (await session.ask("And now?")).text == "Still."


def test_the_backup_command_copies_a_file_open_in_another_process(
    path: Path, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = SqliteStorage(path)
    begin(storage, "one")
    assert main(["sessions", "backup", str(copy), "--journal", str(path)]) == 0
    assert main(["sessions", "fsck", str(copy)]) == 0
    assert main(["sessions", "backup", str(copy), "--journal", str(path)]) == 3
    with pytest.raises(SystemExit, match="2"):
        main(["sessions", "backup", "--journal", str(path)])
    complaints = capsys.readouterr().err
    assert f"{copy}: a file with this name already exists; choose another name for the backup" in complaints
    assert "required: FILE (actors sessions backup --help)" in complaints
    storage.close()


@pytest.mark.parametrize("suffix", ["", "-wal", "-part"])
async def test_a_backup_never_replaces_a_file(suffix: str, path: Path, copy: Path) -> None:
    there = copy.with_name(f"{copy.name}{suffix}")
    there.write_text("somebody else's")
    async with runtime_with(a=openai(), storage=SqliteStorage(path)) as runtime:
        with pytest.raises(ConfigError, match="a file with this name already exists"):
            await runtime.journal.backup(copy)
        with pytest.raises(ConfigError, match="a file with this name already exists"):
            await runtime.journal.backup(path)
    assert [each.name for each in copy.parent.iterdir()] == [there.name]
    assert there.read_text() == "somebody else's"


async def test_backing_up_a_journal_without_a_file_suggests_an_alternative(
    postgres: Server, copy: Path
) -> None:
    async with runtime_with(a=openai()) as runtime:
        with pytest.raises(ConfigError, match="in memory has no file to back up; export its sessions"):
            await runtime.journal.backup(copy)
    storage = PostgresStorage(postgres.url(postgres.schema()))
    async with runtime_with(a=openai(), storage=storage) as runtime:
        with pytest.raises(ConfigError, match="pg_dump --format=custom --file="):
            await runtime.journal.backup(copy)
    storage.close()
    assert not await anyio.Path(copy).exists()


@pytest.mark.parametrize("given", [3, "", "a\0b", None])
async def test_a_backup_requires_a_file_path(given: Any) -> None:  # Any: wrong types
    async with runtime_with(a=openai()) as runtime:
        with pytest.raises(ConfigError, match="path= takes the path of a file"):
            await runtime.journal.backup(given)


def test_an_interrupted_backup_leaves_no_file(
    path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended(BaseException):
        pass

    def end() -> None:
        raise Ended

    monkeypatch.setattr(vacuum, "_STEPS", 20)
    storage = SqliteStorage(path)
    begin(storage, "one")
    with pytest.raises(Ended):
        storage.backup(copy, end)
    assert list(copy.parent.iterdir()) == []
    storage.backup(copy, lambda: None)
    storage.close()


@pytest.fixture(params=["EPERM", "EXDEV", "ENOTSUP", "ENOSYS"])
def without_links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a file system without hard links."""
    number = getattr(errno, request.param)

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("actors.journal.storage.sqlite.vacuum.os.link", refuse)


@pytest.mark.usefixtures("without_links")
def test_a_backup_works_without_hard_links(path: Path, copy: Path) -> None:
    with closing(SqliteStorage(path)) as storage:
        begin(storage, "one")
        storage.backup(copy, lambda: None)
        assert_private_and_free_of(copy, b"no such words")
        assert events(copy, "one") == 1


@pytest.mark.usefixtures("without_links")
def test_a_backup_without_hard_links_keeps_a_file_created_meanwhile(
    path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum, "_STEPS", 20)
    with closing(SqliteStorage(path)) as storage:
        begin(storage, "one")
        with pytest.raises(JournalUnavailable, match=f"{copy.name}: File exists; nothing was written"):
            storage.backup(copy, lambda: copy.write_text("somebody else's"))
    assert [each.name for each in copy.parent.iterdir()] == [copy.name]
    assert copy.read_text() == "somebody else's"


@pytest.mark.usefixtures("without_links")
def test_a_failed_rename_of_a_backup_leaves_no_file(
    path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "rename", refuse)
    with closing(SqliteStorage(path)) as storage:
        begin(storage, "one")
        with pytest.raises(JournalUnavailable, match="nothing was written"):
            storage.backup(copy, lambda: None)
    assert list(copy.parent.iterdir()) == []


def test_a_backup_of_a_damaged_file_fails(path: Path, copy: Path) -> None:
    storage = SqliteStorage(path)
    claim = begin(storage, "one")
    for _ in range(200):
        storage.append([Entry("one", claim.fence, (to("b" * 100),))])
    storage.close()
    data = bytearray(path.read_bytes())
    data[5 * 4096 : 6 * 4096] = bytes(4096)
    path.write_bytes(data)
    anew = SqliteStorage(path)
    with pytest.raises(JournalDamaged):
        anew.backup(copy, lambda: None)
    assert list(copy.parent.iterdir()) == []
    anew.close()


class Endless(MemoryStorage):
    """A storage that writes a backup for seconds unless the caller is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.pause, self.is_ended = anyio.Event(), threading.Event(), False

    def backup(self, path: Path, check: Callable[[], object]) -> None:
        anyio.from_thread.run_sync(self.begun.set)
        try:
            for _ in range(10_000):
                check()
                self.pause.wait(0.001)
        except BaseException:
            self.is_ended = True
            raise


async def test_cancelling_the_caller_stops_the_backup(copy: Path) -> None:
    storage = Endless()
    with anyio.fail_after(60):
        async with runtime_with(a=openai(), storage=storage) as runtime, anyio.create_task_group() as tasks:
            tasks.start_soon(runtime.journal.backup, copy)
            await storage.begun.wait()
            tasks.cancel_scope.cancel()
        assert storage.is_ended


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio has only scope cancellation
async def test_native_cancellation_of_the_caller_stops_the_backup(copy: Path) -> None:
    storage = Endless()
    with anyio.fail_after(60):
        async with runtime_with(a=openai(), storage=storage) as runtime:
            task = asyncio.create_task(runtime.journal.backup(copy))
            await storage.begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert storage.is_ended


class Deaf(MemoryStorage):
    """A storage that ignores cancellation during a backup."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end = anyio.Event(), threading.Event()

    def backup(self, path: Path, check: Callable[[], object]) -> None:
        path.touch()
        anyio.from_thread.run_sync(self.begun.set)
        assert self.may_end.wait(60)


async def test_a_backup_completed_after_cancellation_leaves_no_file(copy: Path) -> None:
    storage = Deaf()
    with anyio.fail_after(60):
        async with runtime_with(a=openai(), storage=storage) as runtime, anyio.create_task_group() as tasks:
            tasks.start_soon(runtime.journal.backup, copy)
            await storage.begun.wait()
            tasks.cancel_scope.cancel()
            storage.may_end.set()
        assert list(copy.parent.iterdir()) == []


class Leaving(MemoryStorage):
    """A storage that exits the process during a backup."""

    def backup(self, path: Path, check: Callable[[], object]) -> None:
        raise SystemExit


async def test_a_system_exit_during_a_backup_becomes_an_error(copy: Path) -> None:
    async with runtime_with(a=openai(), storage=Leaving()) as runtime:
        with pytest.raises(JournalError, match="raised SystemExit"):
            await runtime.journal.backup(copy)
