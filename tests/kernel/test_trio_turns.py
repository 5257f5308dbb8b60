"""On trio, the kernel calls functions at the loop's next turn from a task of its own."""

from collections.abc import Callable

import anyio
import pytest
import trio
import trio.lowlevel
import trio.testing

from actors.kernel import System
from actors.kernel.event_loop import TrioTurns, event_loop

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "trio"


class Log:
    """Functions that record their call, and the work that trio's own scheduler got instead."""

    def __init__(self) -> None:
        self.called = list[str]()
        self.handed_over = list[Callable[[], None]]()

    def work(self, name: str) -> Callable[[], None]:
        """Return a function that records its name."""
        return lambda: self.called.append(name)


async def test_work_is_called_in_order_at_the_next_turn_and_not_before() -> None:
    log = Log()
    turns = TrioTurns(log.handed_over.append)
    for name in "abc":
        turns.next(log.work(name))
    assert log.called == []
    await anyio.wait_all_tasks_blocked()
    turns.next(log.work("d"))
    await anyio.wait_all_tasks_blocked()
    turns.rest()
    assert (log.called, log.handed_over) == (["a", "b", "c", "d"], [])


async def test_work_that_schedules_itself_again_leaves_turns_to_other_tasks() -> None:
    turns, count = TrioTurns(list[Callable[[], None]]().append), 0

    def again() -> None:
        nonlocal count
        count += 1
        if count < 100:
            turns.next(again)

    turns.next(again)
    while count < 100:
        before = count
        await anyio.lowlevel.checkpoint()
        assert count <= before + 2  # of this turn and of the next, in either order with this task
    turns.rest()


async def test_the_task_ends_at_rest_after_the_work_that_is_due_and_later_work_starts_another() -> None:
    log, before = Log(), len(_system_tasks())
    turns = TrioTurns(log.handed_over.append)
    turns.next(log.work("a"))
    turns.rest()
    await anyio.wait_all_tasks_blocked()
    assert (log.called, len(_system_tasks())) == (["a"], before)
    turns.next(log.work("b"))
    await anyio.wait_all_tasks_blocked()
    assert (log.called, len(_system_tasks())) == (["a", "b"], before + 1)
    turns.rest()
    await anyio.wait_all_tasks_blocked()
    assert len(_system_tasks()) == before


async def test_a_system_leaves_no_task_behind() -> None:
    before = len(_system_tasks())
    async with System() as system:
        system.loop.next(lambda: None)
        await anyio.wait_all_tasks_blocked()
        assert "turns" in [task.name for task in _system_tasks()]
    assert len(_system_tasks()) == before


def test_work_of_the_end_of_the_run_is_handed_over_to_trio() -> None:
    called = list[str]()

    async def until_cancelled() -> None:
        here = event_loop()
        try:
            await trio.sleep_forever()
        finally:
            here.next(lambda: called.append("late"))
            with trio.CancelScope(shield=True):
                for _ in range(100):  # far more turns than trio's scheduler needs
                    await trio.lowlevel.checkpoint()

    async def main() -> None:
        event_loop().next(lambda: called.append("early"))
        trio.lowlevel.spawn_system_task(until_cancelled)
        await trio.testing.wait_all_tasks_blocked()
        called.clear()

    for _ in range(10):  # trio resumes cancelled tasks in random order
        trio.run(main)
        assert called == ["late"]


def _system_tasks() -> list[trio.lowlevel.Task]:
    root = trio.lowlevel.current_root_task()
    assert root is not None
    return [task for nursery in root.child_nurseries for task in nursery.child_tasks]
