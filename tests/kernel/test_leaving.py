"""Entering and leaving hold against every cancellation; foreign code is contained, let be, and dropped at last."""

import asyncio
import contextvars
from collections.abc import Callable

import anyio
import pytest

from actors.errors import ActorFailed
from actors.kernel import Actor, Context, Query, Restart, System
from actors.kernel.contained import Contained, Dropped
from actors.kernel.tasks import Work

pytestmark = pytest.mark.anyio

ASYNCIO = pytest.mark.parametrize("anyio_backend", ["asyncio"])


class Slow(Actor[Query[None]]):
    """Answers, and takes a few turns of the loop to stop."""

    def receive(self, command: Query[None]) -> None:
        command.reply.send(None)

    def on_start(self, context: Context[Query[None]]) -> None:
        context.start(slow_to_end)


async def held() -> None:
    """Hold a system with an actor, and foreign code that is slow to end."""
    async with System() as system:
        ref = system.spawn(Slow, "slow")
        system.containment.start(slow_to_end, lambda _: None, "foreign", contextvars.copy_context())
        await ref.ask(Query())
        await anyio.lowlevel.checkpoint()


async def slow_to_end() -> None:
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            for _ in range(5):
                await anyio.lowlevel.checkpoint()


@ASYNCIO
@pytest.mark.requirement("PROMISE-12")
async def test_a_native_cancel_at_any_await_of_entering_or_leaving_leaves_nothing_running() -> None:
    """A39: once, and a second time at every await after that."""
    before = asyncio.all_tasks()
    for turns in range(40):
        for again in (None, 0, 3):
            task = asyncio.create_task(held())
            await passes(turns)
            task.cancel()
            if again is not None:
                await passes(again)
                task.cancel()
            done, _ = await asyncio.wait([task], timeout=20)
            assert done == {task}
            assert asyncio.all_tasks() == before, turns


@ASYNCIO
@pytest.mark.requirement("PROMISE-12")
async def test_a_native_cancel_of_every_task_at_any_moment_ends_the_system() -> None:
    """A39: as a shutdown does that cancels every task and then waits for all."""
    before = asyncio.all_tasks()
    for turns in range(30):
        asyncio.create_task(held())  # noqa: RUF006  it is found among all tasks
        await passes(turns)
        tasks = asyncio.all_tasks() - before
        for task in tasks:
            task.cancel()
        with anyio.fail_after(60):
            await asyncio.gather(*tasks, return_exceptions=True)
            await passes(5)
        assert asyncio.all_tasks() == before


async def passes(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


@pytest.mark.requirement("PROMISE-12")
async def test_a_block_that_is_cancelled_by_a_scope_is_left_all_the_same() -> None:
    """A39."""
    for turns in range(0, 40, 3):
        with anyio.fail_after(60), anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_after, turns, scope)
                async with System() as system:
                    ref = system.spawn(Slow, "slow")
                    await anyio.sleep_forever()
        assert "stopped" in repr(ref)


async def _cancel_after(turns: int, scope: anyio.CancelScope) -> None:
    for _ in range(turns + 3):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


class Asks(Query[None], frozen=True):
    """Answered by a child."""


class Parent(Actor[Asks]):
    """Starts a child, and has its task cancelled natively before it begins."""

    def on_start(self, context: Context[Asks]) -> None:
        self._context = context

    def receive(self, command: Asks) -> None:
        before = asyncio.all_tasks()
        self._context.start(self._answer, command)
        for task in asyncio.all_tasks() - before:
            task.cancel()

    async def _answer(self, command: Asks) -> None:
        command.reply.send(None)


@ASYNCIO
async def test_an_ask_whose_child_never_began_is_answered() -> None:
    """A24: the child's end is known, and that is a crash."""
    with anyio.fail_after(60):
        async with System() as system:
            ref = system.spawn(Parent, "parent", restart=Restart(backoff=(0.0, 0.0)))
            with pytest.raises(ActorFailed):
                await ref.ask(Asks())


@ASYNCIO
@pytest.mark.requirement("PROMISE-12")
async def test_a_step_of_leaving_that_shields_itself_is_not_waited_for() -> None:
    """A39: trio's run would wait for it, as for any task."""
    released = anyio.Event()

    async def deaf() -> None:
        with anyio.CancelScope(shield=True):
            await released.wait()

    with anyio.fail_after(60):
        async with System() as system:
            system.first = system.last = ((deaf, 0.05),)
    released.set()


async def test_what_a_step_of_leaving_raises_leaves_the_block_after_all_of_it() -> None:
    """A39."""
    done: list[str] = []

    async def fails() -> None:
        raise ZeroDivisionError

    async def notes() -> None:
        done.append("last")

    with pytest.raises(ZeroDivisionError):
        async with System() as system:
            system.first, system.last = ((fails, 1.0),), ((notes, 1.0),)
    assert done == ["last"]


# ---- foreign code


async def swallows() -> None:
    while True:
        try:
            await anyio.sleep_forever()
        except GeneratorExit:
            raise
        except BaseException:
            STEPS.append("")


async def shields() -> None:
    with anyio.CancelScope(shield=True):
        await anyio.sleep_forever()


async def leaves_a_group_open() -> None:
    group = anyio.create_task_group()
    await group.__aenter__()
    group.start_soon(anyio.sleep_forever)


async def leaves_a_group_open_and_goes_on() -> None:
    await leaves_a_group_open()
    await shields()


async def exits() -> None:
    raise SystemExit(3)


STEPS: list[str] = []
Ends = list[BaseException | None]


def start(system: System, work: Work, ends: Ends) -> Contained:
    return system.containment.start(work, ends.append, "foreign", contextvars.copy_context())


@pytest.mark.parametrize("work", [leaves_a_group_open, exits])
@pytest.mark.requirement("PROMISE-12", "PROMISE-8")
async def test_foreign_code_spoils_its_own_task_and_nothing_else(work: Work) -> None:
    """A40."""
    with anyio.fail_after(60):
        async with System() as system:
            ends, others, go_on = Ends(), Ends(), anyio.Event()
            start(system, go_on.wait, others)
            start(system, work, ends)
            while not ends:
                await anyio.lowlevel.checkpoint()
            assert isinstance(ends[0], RuntimeError | SystemExit)
            assert others == []
            go_on.set()
            while not others:
                await anyio.lowlevel.checkpoint()
            assert others == [None]
    await nothing_but_this_runs()


@pytest.mark.parametrize("work", [leaves_a_group_open, exits, anyio.lowlevel.checkpoint])
@pytest.mark.requirement("PROMISE-12")
async def test_foreign_code_that_runs_after_other_foreign_code_hears_nothing_of_it(work: Work) -> None:
    """A40: whatever became of the task before."""
    with anyio.fail_after(60):
        async with System() as system:
            for piece in (work, anyio.lowlevel.checkpoint, work, anyio.lowlevel.checkpoint):
                ends = Ends()
                start(system, piece, ends)
                while not ends:
                    await anyio.lowlevel.checkpoint()
                assert piece is work or ends == [None]
                await anyio.wait_all_tasks_blocked()  # what it spoiled has been cleared away


async def nothing_but_this_runs() -> None:
    try:
        ours = asyncio.current_task()
    except RuntimeError:
        return  # trio's own run would not end
    with anyio.fail_after(60):
        while [task for task in asyncio.all_tasks() if task is not ours and "sleep_forever" in repr(task)]:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("work", [swallows, shields, leaves_a_group_open_and_goes_on])
@pytest.mark.requirement("PROMISE-12")
@pytest.mark.usefixtures("short_graces")
async def test_leaving_does_not_wait_for_foreign_code_that_will_not_end(work: Work) -> None:
    """A41."""
    with anyio.fail_after(60):
        async with System() as system:
            ends = Ends()
            start(system, work, ends)
            await anyio.lowlevel.checkpoint()
        assert isinstance(ends[0], Dropped | RuntimeError)
    await nothing_but_this_runs()


@pytest.mark.requirement("PROMISE-12")
async def test_foreign_code_that_swallows_its_cancellation_does_not_spin_once_it_is_let_be() -> None:
    """A41: told, it is woken at each of its waits; let be, it is not."""
    with anyio.fail_after(60):
        async with System() as system:
            STEPS.clear()
            contained = start(system, swallows, Ends())
            await anyio.wait_all_tasks_blocked()
            contained.cancel()
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert STEPS
            contained.detach()
            await anyio.wait_all_tasks_blocked()  # it would never be, if it spun
            known = len(STEPS)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert len(STEPS) == known


RAISES: dict[str, Callable[[], BaseException]] = {"exit": SystemExit, "interrupt": KeyboardInterrupt}


@pytest.mark.parametrize("kind", RAISES)
async def test_what_is_raised_in_the_block_leaves_it_bare(kind: str) -> None:
    """A25."""
    raised = RAISES[kind]()
    with pytest.raises(type(raised)) as found:
        async with System():
            raise raised
    assert found.value is raised
