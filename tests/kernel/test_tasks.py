"""Tasks stand alone: what one does reaches no other, and together they can be cancelled and waited for."""

import asyncio

import anyio
import pytest

from actors.kernel.event_loop import event_loop
from actors.kernel.tasks import Tasks, Work

pytestmark = pytest.mark.anyio


async def raises() -> None:
    raise KeyError("x")


async def exits() -> None:
    raise SystemExit(3)


async def leaves_a_scope_open() -> None:
    anyio.CancelScope().__enter__()


@pytest.mark.parametrize("work", [raises, exits, leaves_a_scope_open])
async def test_what_a_task_raises_or_leaves_behind_reaches_no_other(work: Work) -> None:
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


async def test_a_cancelled_task_ends_without_an_error_and_one_started_after_that_does_too() -> None:
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
async def test_a_task_that_is_cancelled_natively_before_it_begins_says_that_it_ended() -> None:
    tasks, ends = Tasks(event_loop()), list[BaseException | None]()
    before = asyncio.all_tasks()
    with anyio.fail_after(60):
        tasks.start(anyio.sleep_forever, ends.append, "work")
        (task,) = asyncio.all_tasks() - before
        task.cancel()
        await tasks.join()
    assert isinstance(ends[0], asyncio.CancelledError)


async def test_a_task_that_nobody_waits_for_any_more_is_joined_by_the_next_asker() -> None:
    tasks, ends, released = Tasks(event_loop()), list[BaseException | None](), anyio.Event()
    with anyio.fail_after(60):
        tasks.start(released.wait, ends.append, "work")
        with anyio.move_on_after(0):
            await tasks.join()
        assert ends == []
        released.set()
        await tasks.join()
    assert ends == [None]
