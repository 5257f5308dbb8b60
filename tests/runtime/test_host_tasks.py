"""Tasks that the runtime runs for a caller: the caller's call succeeds only if the task has completed."""

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
from actors.journal.commands import JournalCommand
from actors.journal.pages import ReadThrottle
from actors.journal.storage import Storage
from actors.journal.storage.sqlite import SqliteStorage
from actors.kernel import Ref
from actors.runtime import deletion, session_actors
from actors.runtime.lifecycle import SessionLifecycle
from tests.journal.storages import begin
from tests.journal.test_backup import Deaf, Endless
from tests.runtime_support import openai, runtime_with

pytestmark = pytest.mark.anyio


class Bug(Exception):
    """An unexpected error."""


class UncopyableError(Exception):
    """An error that `copy` cannot copy, because its message differs from its arguments."""

    def __init__(self, session: str, number: int) -> None:
        super().__init__(f"{session} {number}")


@pytest.fixture
def crashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the tasks whose errors were logged."""
    names = list[str]()
    monkeypatch.setattr("actors.telemetry.logger.actor_crashed", lambda name, _: names.append(name))
    return names


def bare_runtime(storage: Storage | None = None) -> Runtime:
    return Runtime(Config(FileSettings(), {}), journal=storage)


async def test_an_unexpected_error_of_a_deletion_reaches_its_caller(
    monkeypatch: pytest.MonkeyPatch, crashes: list[str]
) -> None:
    async def fail(journal: Ref[JournalCommand], session: str, throttle: ReadThrottle) -> list[str]:
        raise Bug(session)

    async with runtime_with(a=openai()) as runtime:
        await runtime.open("a", id="one")
        with monkeypatch.context() as patched:
            patched.setattr(deletion, "delete_logs", fail)
            with pytest.raises(Bug):
                await runtime.journal.delete("one")
        assert (await runtime.journal.get("one")).id == "one"
        assert (await runtime.journal.delete("one")).sessions == ("one",)
    assert crashes == ["one/delete"]


async def test_an_unexpected_error_of_a_close_reaches_its_caller(
    monkeypatch: pytest.MonkeyPatch, crashes: list[str]
) -> None:
    async def fail(lifecycle: SessionLifecycle) -> None:
        raise Bug(lifecycle.name)

    async with runtime_with(a=openai()) as runtime:
        session = await runtime.open("a", id="one")
        with monkeypatch.context() as patched:
            patched.setattr(session_actors, "_log_end", fail)
            with pytest.raises(Bug):
                await session.close()
        assert list(runtime.sessions) == ["one"]
        await session.close()
        assert list(runtime.sessions) == []
    assert crashes == ["one/close"]


async def test_an_uncopyable_error_of_a_close_reaches_its_caller_unchanged(
    monkeypatch: pytest.MonkeyPatch, crashes: list[str]
) -> None:
    async def fail(lifecycle: SessionLifecycle) -> None:
        raise UncopyableError(lifecycle.name, 1)

    async with runtime_with(a=openai()) as runtime:
        session = await runtime.open("a", id="one")
        with monkeypatch.context() as patched:
            patched.setattr(session_actors, "_log_end", fail)
            with pytest.raises(UncopyableError, match="one 1"):
                await session.close()
    assert crashes == ["one/close"]


async def test_a_finished_task_keeps_no_frames_and_raises_a_new_error_each_time() -> None:
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
    assert task._error.__traceback__ is None  # its frames would reference the task
    assert not hasattr(task, "_work")


async def test_a_task_cancelled_by_exiting_the_runtime_raises_shutting_down(
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
    assert str(error) == "one/delete was cancelled before it was done, because the runtime exited"
    assert crashes == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio has only scopes
async def test_a_caller_is_not_stuck_if_its_task_is_cancelled_before_it_starts() -> None:
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
async def test_a_caller_is_not_stuck_if_its_close_is_cancelled_before_it_starts() -> None:
    async with runtime_with(a=openai()) as runtime:
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
            # otherwise a caller that opens the session would wait for it
            assert session._lifecycle.closing is None
            assert await runtime.open("a", id="one", resume=True) is session
            await session.close()
            assert list(runtime.sessions) == []
            await runtime.journal.delete("one")


def cancel_natively_twice(task: "asyncio.Task[None]", then: Callable[[], object]) -> None:
    """Cancel a task now, and again after it received the first cancellation; then call `then`."""
    loop = asyncio.get_running_loop()
    task.cancel()
    loop.call_soon(loop.call_soon, loop.call_soon, lambda: (task.cancel(), then()))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_backup_cancelled_natively_twice_leaves_no_file(tmp_path: Path) -> None:
    storage, copy = Deaf(), tmp_path / "copy.db"
    with anyio.fail_after(60):
        async with runtime_with(a=openai(), storage=storage) as runtime:
            task = asyncio.create_task(runtime.journal.backup(copy))
            await storage.begun.wait()
            cancel_natively_twice(task, storage.may_end.set)
            with pytest.raises(asyncio.CancelledError):
                await task
        assert not copy.exists()


class SlowBackup(SqliteStorage):
    """A file whose backup is half-written when its caller is cancelled."""

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
async def test_a_half_written_cancelled_backup_is_removed_and_unlocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.journal.storage.sqlite.vacuum._STEPS", 20)
    folder = tmp_path / "backups"
    folder.mkdir()
    storage = SlowBackup(tmp_path / "sessions.db")
    with anyio.fail_after(60):
        async with runtime_with(a=openai(), storage=storage) as runtime:
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


async def test_a_backup_interrupted_by_exiting_the_runtime_raises(tmp_path: Path) -> None:
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
    assert "the runtime exited before this backup was complete" in str(error)
