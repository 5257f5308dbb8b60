"""Operations of a runtime that are cancelled at any await leave no session claimed and no storage open."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing
from itertools import count
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from actors import Runtime
from actors.errors import JournalError, KernelError, ShuttingDown
from actors.journal.storage import Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.runtime.handle import Session
from actors.runtime.runtime import StorageOwner
from tests.journal.postgres import Server
from tests.journal.storages import FILES
from tests.runtime.every_await import Work, cancels
from tests.runtime_support import actors

pytestmark = pytest.mark.anyio

STORAGES = pytest.mark.parametrize("kept", ["memory", "sqlite-process", "postgres"])
FILE = "sessions.db"
ENVIRON = {"OPENAI_API_KEY": "k"}


def runtime_on(storage: Storage) -> Runtime:
    """Return a runtime, not entered yet, whose backend needs no server."""
    return Runtime(environ=ENVIRON, journal=storage, seed=1)


class WatchedStorage(PostgresStorage):
    """Logs in their own Postgres schema, with a second connection for inspection."""

    def __init__(self, server: Server) -> None:
        role = server.role()  # so that no other connection has this user name
        super().__init__(server.url(role, user=role))
        self.watch = server.connect(role)
        self._role = role

    @property
    def exists(self) -> bool:
        """Existence of the tables."""
        return self.watch.execute("SELECT to_regclass('actors_session')").fetchall() != [(None,)]

    @property
    def claims(self) -> list[str]:
        """The names of the sessions that have an owner."""
        claimed = "SELECT name FROM actors_session WHERE owner IS NOT NULL"
        return [name for (name,) in self.watch.execute(claimed)] if self.exists else []

    @property
    def connections(self) -> int:
        """The number of connections from the storage to the server."""
        count = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
        ((found,),) = self.watch.execute(count, (self._role,)).fetchall()
        return int(found)


@pytest.fixture
def storage(kept: str, request: pytest.FixtureRequest) -> Iterator[Storage]:
    """Return an empty, closed storage."""
    if kept != "postgres":
        yield FILES[kept](request.getfixturevalue("tmp_path"))
        return
    watched = WatchedStorage(request.getfixturevalue("postgres"))
    with watched.watch:
        yield watched


def claims_held(storage: Storage) -> list[str]:
    """Return the sessions that only this host may continue."""
    if isinstance(storage, MemoryStorage):
        return sorted(storage._claimed)
    if isinstance(storage, WatchedStorage):
        return storage.claims
    if not storage_path(storage).exists():
        return []
    with closing(sqlite3.connect(storage_path(storage))) as file:
        return [name for (name,) in file.execute("SELECT name FROM session WHERE owner IS NOT NULL")]


def storage_path(storage: Storage) -> Path:
    """Return the path of a storage that is a file."""
    assert isinstance(storage, SqliteStorage)
    return storage.path


def is_open(storage: Storage) -> bool:
    """Return True if this process has files of the storage open, or connections to it."""
    if isinstance(storage, MemoryStorage):
        return False
    if isinstance(storage, WatchedStorage):
        return storage.connections > 0
    return bool(open_files(storage_path(storage).parent))


def open_files(folder: Path) -> list[str]:
    """Return the files of a folder that this process has open."""
    found = list[str]()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # closed meanwhile
            continue
    return [name for name in found if name.startswith(str(folder))]


async def wait_until(is_so: Callable[[], object]) -> None:
    """Wait for work that the host or a thread does in the background."""
    while not is_so():  # noqa: ASYNC110  # the host does not report it
        await anyio.sleep(0.001)


async def assert_nothing_left(runtime: Runtime, *expected: str) -> None:
    """Wait until only the expected sessions are claimed, open or running."""
    with anyio.fail_after(30):
        await runtime.journal.list()  # waits for the journal's earlier work
        await wait_until(lambda: set(claims_held(runtime._storage)) <= set(expected))
        await wait_until(
            lambda: not {name.partition("/")[0] for name in actors(runtime)} - {"journal", *expected}
        )
        await wait_until(lambda: not runtime._registry._reserved)
    assert set(runtime.sessions) <= set(expected)


class OpenedSessions:
    """The sessions that a caller received before it was cancelled."""

    def __init__(self) -> None:
        self.sessions = list[Session]()

    async def close(self) -> None:
        """Close the sessions as their owner would."""
        while self.sessions:
            await self.sessions.pop().close()


async def cancel_at_each_await(
    work: Work, runtime: Runtime, opened: OpenedSessions | None = None
) -> AsyncIterator[None]:
    """Cancel the work at each await; after each, check that nothing is left, and yield."""
    async with aclosing(cancels(work)) as moments:
        async for _ in moments:
            if opened is not None:
                await opened.close()
            await assert_nothing_left(runtime)
            yield


@STORAGES
@pytest.mark.requirement("PROMISE-12", "PROMISE-11")
async def test_open_cancelled_at_any_await_leaves_no_session_claimed(storage: Storage) -> None:
    opened = OpenedSessions()
    async with runtime_on(storage) as runtime:

        async def work() -> None:
            opened.sessions.append(await runtime.open("openai:m", id="one", tools=[look]))

        async for _ in cancel_at_each_await(work, runtime, opened):
            # closed by its owner
            assert [each.state for each in await runtime.journal.list()] in ([], ["closed"])
            await runtime.journal.delete("one")


@pytest.mark.alternating
@STORAGES
@pytest.mark.requirement("PROMISE-12", "PROMISE-11")
async def test_resume_cancelled_at_any_await_leaves_no_session_claimed(storage: Storage) -> None:
    opened = OpenedSessions()
    async with runtime_on(storage) as runtime:
        exported = await log_of_a_session(runtime)
        await runtime.journal.import_session(exported, id="one")

        async def work() -> None:
            opened.sessions.append(await runtime.resume("one", tools=[look]))

        async for _ in cancel_at_each_await(work, runtime, opened):
            await runtime.journal.delete("one")
            await runtime.journal.import_session(exported, id="one")


@pytest.mark.alternating
@STORAGES
@pytest.mark.requirement("PROMISE-12", "PROMISE-11")
async def test_open_with_resume_cancelled_at_any_await_leaves_no_session_claimed(
    storage: Storage,
) -> None:
    opened = OpenedSessions()
    async with runtime_on(storage) as runtime:
        exported = await log_of_a_session(runtime)

        async def work() -> None:
            for name in ("new", "known"):
                opened.sessions.append(await runtime.open("openai:m", id=name, tools=[look], resume=True))

        await runtime.journal.import_session(exported, id="known")
        async for _ in cancel_at_each_await(work, runtime, opened):
            await runtime.journal.delete("new", "known")
            await runtime.journal.import_session(exported, id="known")


@STORAGES
@pytest.mark.requirement("PROMISE-12", "PROMISE-11")
async def test_cancelling_a_deletion_at_any_await_leaves_no_session_claimed(storage: Storage) -> None:
    async with runtime_on(storage) as runtime:
        exported = await log_of_a_session(runtime)
        await runtime.journal.import_session(exported, id="one")

        async def work() -> None:
            await runtime.journal.delete("one")

        async for _ in cancel_at_each_await(work, runtime):
            if not await runtime.journal.list():
                await runtime.journal.import_session(exported, id="one")


@STORAGES
@pytest.mark.requirement("PROMISE-12", "PROMISE-11")
async def test_cancelling_a_fork_at_any_await_leaves_no_claim_and_no_orphaned_log(
    storage: Storage,
) -> None:
    known = list[str]()
    async with runtime_on(storage) as runtime:
        await runtime.journal.import_session(await log_of_a_session(runtime), id="one")

        async def work() -> None:
            known.append(await runtime.journal.fork("one"))

        async for _ in cancel_at_each_await(work, runtime):
            assert {each.id for each in await runtime.journal.list()} == {"one", *known}


@STORAGES
@pytest.mark.requirement("PROMISE-12", "PROMISE-11")
async def test_an_import_cancelled_at_any_await_is_stored_completely_or_not_at_all(
    storage: Storage,
) -> None:
    known = list[str]()
    async with runtime_on(storage) as runtime:
        exported = await log_of_a_session(runtime)

        async def work() -> None:
            known.append(await runtime.journal.import_session(exported, id="two"))

        async for _ in cancel_at_each_await(work, runtime):
            assert [each.id for each in await runtime.journal.list()] == known
            known.clear()
            await runtime.journal.delete("two")


@pytest.mark.alternating
@STORAGES
@pytest.mark.requirement("PROMISE-12", "PROMISE-11")
async def test_cancelling_a_runtime_at_any_await_leaves_no_resource_open(
    storage: Storage,
) -> None:
    numbers = count()

    async def work() -> None:
        async with runtime_on(storage) as runtime:
            await runtime.open("openai:m", id=f"session-{next(numbers)}", tools=[look])
            await anyio.lowlevel.checkpoint()

    before = running_tasks()
    async with aclosing(cancels(work)) as moments:
        async for way, number in moments:
            with anyio.fail_after(30):
                await wait_until(lambda: not is_open(storage))
            assert running_tasks() == before, (way, number)
            assert claims_held(storage) == []


def running_tasks() -> int:
    """Return the number of asyncio tasks, or 0 on trio."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # trio: no task outlives its nursery
        return 0


async def test_a_runtime_may_be_entered_again_after_its_journal_failed_to_open(
    tmp_path: Path,
) -> None:
    path = tmp_path / FILE
    path.write_bytes(b"not a journal, and long enough to be one" * 100)
    runtime = runtime_on(SqliteStorage(path))
    for _ in range(2):
        with pytest.raises(JournalError):
            async with runtime:
                pass
        assert open_files(tmp_path) == []
    path.unlink()
    async with runtime:
        await runtime.open("openai:m")


async def test_a_runtime_that_could_not_be_entered_is_not_shutting_down(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(b"not a journal, and long enough to be one" * 100)
    runtime = runtime_on(SqliteStorage(path))
    with pytest.raises(JournalError):
        await runtime.__aenter__()
    with pytest.raises(KernelError, match="is not running") as raised:
        await runtime.open("openai:m")
    assert type(raised.value) is KernelError


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_runtime_has_exited_once_its_event_loop_has_cancelled_all_tasks(backend: str) -> None:
    runtime = runtime_on(MemoryStorage())
    anyio.run(runtime.__aenter__, backend=backend)  # the end of the run cancels all tasks
    with pytest.raises(ShuttingDown, match="has exited"):
        runtime.stats()


class HeldStorage(MemoryStorage):
    """A storage whose `open` waits in its thread until `freed` is set."""

    blocking = True

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.freed = threading.Event(), threading.Event()
        self.calls = list[str]()

    def open(self) -> None:
        """Open, once `freed` is set."""
        self.begun.set()
        assert self.freed.wait(60)
        self.calls.append("opened")

    def close(self) -> None:
        """Close."""
        self.calls.append("closed")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("turns", range(4))
async def test_a_storage_is_closed_even_if_its_waiting_callers_are_cancelled(turns: int) -> None:
    """A shutdown may cancel every task, including the tasks of the runtime."""
    storage = HeldStorage()
    owner = StorageOwner(storage)
    opening = asyncio.create_task(owner.open())
    for _ in range(turns):
        await asyncio.sleep(0)
    if turns == 3:
        await wait_until(storage.begun.is_set)
    opening.cancel()
    await asyncio.wait([opening])
    leaving = asyncio.create_task(owner.close())
    await asyncio.sleep(0)
    leaving.cancel()
    storage.freed.set()
    await asyncio.wait([leaving])
    with anyio.fail_after(60):
        await wait_until(lambda: storage.calls and storage.calls[-1] == "closed")
    await anyio.to_thread.run_sync(owner._open)  # a thread that starts late
    assert storage.calls[-1] == "closed"


async def look(name: str) -> str:
    """Look something up."""
    return name


async def log_of_a_session(runtime: Runtime) -> bytes:
    """Return the exported log of an idle session."""
    await runtime.open("openai:m", id="exported", tools=[look], system="Be brief.")
    exported = await runtime.journal.export("exported")
    await runtime.journal.delete("exported")
    return exported
