"""Work that a host carries out for a caller succeeds only if it was done, however it ends."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest

from actors import Runtime
from actors.config import Config, FileSettings
from actors.errors import ActorsError, JournalUnavailable, ShuttingDown
from actors.journal.journal_actor import JournalCommand
from actors.journal.storage import Storage
from actors.journal.storage.sqlite import SqliteStorage
from actors.kernel import Ref
from actors.runtime import removal
from actors.runtime.lifecycle import SessionLifecycle
from tests.journal.storages import begin
from tests.journal.test_backup import Deaf, Endless
from tests.runtime_support import hosting, openai

pytestmark = pytest.mark.anyio


class Bug(Exception):
    """An error that nothing here expects."""


class Uncopied(Exception):
    """An error that `copy` cannot make again: its message is not what it was made of."""

    def __init__(self, session: str, number: int) -> None:
        super().__init__(f"{session} {number}")


@pytest.fixture
def crashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tasks whose errors were logged."""
    names = list[str]()
    monkeypatch.setattr("actors.telemetry.logger.crashed", lambda name, _: names.append(name))
    return names


def bare_runtime(storage: Storage | None = None) -> Runtime:
    return Runtime(Config(FileSettings(), {}), journal=storage)


async def test_an_unexpected_error_of_a_deletion_reaches_its_caller(
    monkeypatch: pytest.MonkeyPatch, crashes: list[str]
) -> None:
    async def fail(journal: Ref[JournalCommand], session: str) -> list[str]:
        raise Bug(session)

    async with hosting(a=openai()) as runtime:
        await runtime.open("a", id="one")
        with monkeypatch.context() as patched:
            patched.setattr(removal, "delete_logs", fail)
            with pytest.raises(Bug):
                await runtime.journal.delete("one")
        assert (await runtime.journal.get("one")).id == "one"
        assert (await runtime.journal.delete("one")).sessions == ("one",)
    assert crashes == ["one/delete"]


async def test_an_unexpected_error_of_a_close_reaches_its_caller_and_the_session_goes_on(
    monkeypatch: pytest.MonkeyPatch, crashes: list[str]
) -> None:
    async def fail(lifecycle: SessionLifecycle) -> None:
        raise Bug(lifecycle.name)

    async with hosting(a=openai()) as runtime:
        session = await runtime.open("a", id="one")
        with monkeypatch.context() as patched:
            patched.setattr(SessionLifecycle, "_write_end", fail)
            with pytest.raises(Bug):
                await session.close()
        assert list(runtime.sessions) == ["one"]
        await session.close()
        assert list(runtime.sessions) == []
    assert crashes == ["one/close"]


async def test_an_error_of_a_close_that_cannot_be_copied_reaches_its_caller_as_it_is(
    monkeypatch: pytest.MonkeyPatch, crashes: list[str]
) -> None:
    async def fail(lifecycle: SessionLifecycle) -> None:
        raise Uncopied(lifecycle.name, 1)

    async with hosting(a=openai()) as runtime:
        session = await runtime.open("a", id="one")
        with monkeypatch.context() as patched:
            patched.setattr(SessionLifecycle, "_write_end", fail)
            with pytest.raises(Uncopied, match="one 1"):
                await session.close()
    assert crashes == ["one/close"]


async def test_a_task_keeps_neither_its_work_nor_a_frame_of_its_error_and_each_caller_gets_an_error() -> None:
    async def fail() -> None:
        raise Bug

    async with bare_runtime() as runtime:
        task = runtime._running_host().launch(fail, "one/delete")
        errors = list[Bug]()
        for _ in range(2):
            with pytest.raises(Bug) as caught:
                await task.result()
            errors.append(caught.value)
    assert errors[0] is not errors[1]
    assert task._error is not None
    assert task._error.__traceback__ is None  # its frames hold the task
    assert not hasattr(task, "_work")


async def test_work_that_was_cancelled_because_the_runtime_was_left_raises_and_is_not_logged_as_a_crash(
    crashes: list[str],
) -> None:
    errors, begun = list[ActorsError](), anyio.Event()

    async def endless() -> None:
        begun.set()
        await anyio.sleep_forever()

    async def call(runtime: Runtime) -> None:
        try:
            await runtime._running_host().carry_out(endless, "one/delete")
        except ActorsError as error:
            errors.append(error)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, bare_runtime() as runtime:
            tasks.start_soon(call, runtime)
            await begun.wait()
    (error,) = errors
    assert isinstance(error, ShuttingDown)
    assert str(error) == "one/delete was cancelled before it was done: the runtime has been left"
    assert crashes == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio has no other cancellation than that of a scope
async def test_a_caller_does_not_wait_for_work_that_was_cancelled_before_its_first_step() -> None:
    async def work() -> None:
        raise AssertionError

    async with bare_runtime() as runtime:
        before = asyncio.all_tasks()
        task = runtime._running_host().launch(work, "one/delete")
        (begun,) = asyncio.all_tasks() - before
        begun.cancel()
        with anyio.fail_after(60), pytest.raises(ShuttingDown):
            await task.result()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_caller_does_not_wait_for_a_close_that_was_cancelled_before_its_first_step() -> None:
    async with hosting(a=openai()) as runtime:
        session = await runtime.open("a", id="one")
        before = asyncio.all_tasks()
        closing = asyncio.create_task(session.close())
        await anyio.lowlevel.checkpoint()
        for task in asyncio.all_tasks() - before - {closing}:
            task.cancel()
        with anyio.fail_after(60):
            with pytest.raises(ShuttingDown, match="close of session 'one' was cancelled before it was done"):
                await closing
            assert list(runtime.sessions) == ["one"]
            assert session._lifecycle.closing is None  # for which a caller that opens it would wait
            assert await runtime.open("a", id="one", resume=True) is session
            await session.close()
            assert list(runtime.sessions) == []
            await runtime.journal.delete("one")


def cancel_natively_twice(task: "asyncio.Task[None]", then: Callable[[], object]) -> None:
    """Cancel a task now, and again when the first cancellation has reached it; then call `then`."""
    loop = asyncio.get_running_loop()
    task.cancel()
    loop.call_soon(loop.call_soon, loop.call_soon, lambda: (task.cancel(), then()))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_backup_whose_caller_is_cancelled_natively_twice_leaves_no_file(tmp_path: Path) -> None:
    storage, copy = Deaf(), tmp_path / "copy.db"
    with anyio.fail_after(60):
        async with hosting(a=openai(), storage=storage) as runtime:
            task = asyncio.create_task(runtime.journal.backup(copy))
            await storage.begun.wait()
            cancel_natively_twice(task, storage.may_end.set)
            with pytest.raises(asyncio.CancelledError):
                await task
        assert not copy.exists()


class SlowBackup(SqliteStorage):
    """A file whose copy is half-written when its caller is cancelled, and goes on for a while."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.begun, self.goes_on = anyio.Event(), False

    def backup(self, path: Path, check: Callable[[], object]) -> None:
        def announce() -> None:
            if not self.goes_on:
                self.goes_on = True
                anyio.from_thread.run_sync(self.begun.set)
            check()

        super().backup(path, announce)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_half_written_backup_whose_caller_is_cancelled_natively_twice_is_removed_and_frees_its_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.journal.storage.sqlite.backup._STEPS", 20)
    folder = tmp_path / "backups"
    folder.mkdir()
    storage = SlowBackup(tmp_path / "sessions.db")
    with anyio.fail_after(60):
        async with hosting(a=openai(), storage=storage) as runtime:
            for number in range(50):
                begin(storage, f"s{number}")
            task = asyncio.create_task(runtime.journal.backup(folder / "copy.db"))
            await storage.begun.wait()
            cancel_natively_twice(task, lambda: None)
            with pytest.raises(asyncio.CancelledError):
                await task
            await runtime.open("a", id="another")
            while any(folder.iterdir()):
                await anyio.lowlevel.checkpoint()
            await runtime.journal.backup(folder / "copy.db")
            assert [each.name for each in folder.iterdir()] == ["copy.db"]


async def test_a_backup_that_is_under_way_when_its_runtime_is_left_raises(tmp_path: Path) -> None:
    storage, errors = Endless(), list[ActorsError]()

    async def back_up(runtime: Runtime) -> None:
        try:
            await runtime.journal.backup(tmp_path / "copy.db")
        except ActorsError as error:
            errors.append(error)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, bare_runtime(storage) as runtime:
            tasks.start_soon(back_up, runtime)
            await storage.begun.wait()
    assert storage.is_ended
    (error,) = errors
    assert isinstance(error, JournalUnavailable)
    assert "the runtime was left before this backup was complete" in str(error)
