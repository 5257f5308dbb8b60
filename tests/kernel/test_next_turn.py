"""On trio, the kernel calls functions at the next turn without waking the loop through its socket."""

from collections.abc import AsyncIterator
from contextvars import ContextVar
from functools import partial

import anyio
import pytest
import trio

from actors.kernel import System
from actors.kernel.event_loop import event_loop

scheduled_by = ContextVar("scheduled_by", default="no caller")


def test_trio_calls_functions_at_the_next_turn_in_order_without_a_system_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called, woken = list[tuple[int, str]](), list[object]()
    monkeypatch.setattr(trio.lowlevel.TrioToken, "run_sync_soon", lambda _, work: woken.append(work))

    def note(number: int) -> None:
        called.append((number, scheduled_by.get()))

    async def main() -> None:
        scheduled_by.set("caller")
        with anyio.fail_after(60):
            for number in range(5):
                event_loop().next(partial(note, number))
            assert not called
            assert not woken
            while len(called) < 5:
                await anyio.lowlevel.checkpoint()

    trio.run(main)
    assert called == [(number, "no caller") for number in range(5)]


def test_trio_calls_a_function_even_after_trios_system_tasks_have_ended() -> None:
    called, left = list[str](), list[AsyncIterator[None]]()

    async def generator() -> AsyncIterator[None]:
        here = event_loop()
        try:
            yield
        finally:  # runs after the main task and the system tasks have ended
            here.next(lambda: called.append("next"))

    async def main() -> None:
        left.append(generator())
        await anext(left[0])
        event_loop().next(partial(called.append, "first"))
        while not called:
            await anyio.lowlevel.checkpoint()

    trio.run(main)
    assert called == ["first", "next"]


def _system_tasks() -> list[str]:
    root = trio.lowlevel.current_root_task()
    assert root is not None
    return [task.name for nursery in root.child_nurseries for task in nursery.child_tasks]


def test_the_task_that_calls_functions_at_trios_next_turn_ends_with_the_system() -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            for _ in range(2):
                called: list[str] = []
                async with System() as system:
                    system.loop.next(partial(called.append, "next"))
                    while not called:
                        await anyio.lowlevel.checkpoint()
                    assert "turns" in _system_tasks()
                for _ in range(3):
                    await anyio.lowlevel.checkpoint()
                assert "turns" not in _system_tasks()

    trio.run(main)
