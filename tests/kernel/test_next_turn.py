"""On trio, the kernel calls functions at the next turn without waking the loop through its socket."""

from collections.abc import AsyncIterator
from contextvars import ContextVar

import anyio
import pytest
import trio

from actors.kernel.event_loop import event_loop

wakes = ContextVar("wakes", default="none")


def test_trio_calls_a_function_at_the_next_turn_without_a_system_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called, woken = list[str](), list[object]()
    monkeypatch.setattr(trio.lowlevel.TrioToken, "run_sync_soon", lambda _, work: woken.append(work))

    async def main() -> None:
        wakes.set("caller")
        with anyio.fail_after(60):
            event_loop().next(lambda: called.append(wakes.get()))
            assert not called
            assert not woken
            while not called:
                await anyio.lowlevel.checkpoint()

    trio.run(main)
    assert called == ["none"]


def test_trio_calls_a_function_even_after_the_end_of_its_system_tasks() -> None:
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

    trio.run(main)
    assert called == ["next"]
