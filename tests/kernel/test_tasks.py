"""Independent tasks: an error of one affects no other, and all can be cancelled and joined."""

import asyncio

import anyio
import pytest

from actors.kernel.event_loop import event_loop
from actors.kernel.tasks import Tasks, Work

pytestmark = pytest.mark.anyio


async def fail() -> None:
    raise KeyError("x")


async def exit_program() -> None:
    raise SystemExit(3)


async def leave_a_scope_open() -> None:
    anyio.CancelScope().__enter__()


@pytest.mark.parametrize("work", [fail, exit_program, leave_a_scope_open])
async def test_an_error_or_an_open_scope_of_a_task_affects_no_other_task(work: Work) -> None:
    tasks, raised, done = Tasks(event_loop()), list[BaseException | None](), list[BaseException | None]()
    begun, go_on = anyio.Event(), anyio.Event()

    async def other() -> None:
        begun.set()
        await go_on.wait()

    with anyio.fail_after(60):
        tasks.start(other, done.append, "other")
        tasks.start(work, raised.append, "work")
        await begun.wait()
        while not raised:
            await anyio.lowlevel.checkpoint()
        assert done == []
        go_on.set()
        await tasks.join()
    assert isinstance(raised[0], KeyError | SystemExit | RuntimeError)
    assert done == [None]


async def test_a_cancelled_task_and_a_task_started_after_cancellation_end_without_an_error() -> None:
    tasks, ends = Tasks(event_loop()), list[BaseException | None]()
    with anyio.fail_after(60):
        scope = tasks.start(anyio.sleep_forever, ends.append, "first")
        tasks.start(anyio.sleep_forever, ends.append, "second")
        await anyio.lowlevel.checkpoint()
        scope.cancel()
        while not ends:
            await anyio.lowlevel.checkpoint()
        tasks.cancel()
        tasks.start(anyio.sleep_forever, ends.append, "late")
        await tasks.join()
    assert ends == [None, None, None]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_that_was_cancelled_natively_before_it_began_reports_its_end() -> None:
    tasks, ends = Tasks(event_loop()), list[BaseException | None]()
    before = asyncio.all_tasks()
    with anyio.fail_after(60):
        tasks.start(anyio.sleep_forever, ends.append, "work")
        (task,) = asyncio.all_tasks() - before
        task.cancel()
        await tasks.join()
    assert isinstance(ends[0], asyncio.CancelledError)


async def test_a_join_after_an_abandoned_join_waits_for_the_task() -> None:
    tasks, ends, released = Tasks(event_loop()), list[BaseException | None](), anyio.Event()
    with anyio.fail_after(60):
        tasks.start(released.wait, ends.append, "work")
        with anyio.move_on_after(0):
            await tasks.join()
        assert ends == []
        released.set()
        await tasks.join()
    assert ends == [None]
