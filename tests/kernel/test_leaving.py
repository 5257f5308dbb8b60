"""Entering and exiting an actor system under cancellation, and the containment of host code."""

import asyncio
import contextvars
from collections.abc import Callable

import anyio
import pytest

from actors.errors import ActorFailed
from actors.kernel import Actor, Context, Query, Restart, System
from actors.kernel.tasks import ContainedTask, TaskDropped, Work

pytestmark = pytest.mark.anyio

ASYNCIO = pytest.mark.parametrize("anyio_backend", ["asyncio"])


class SlowActor(Actor[Query[None]]):
    """Answers, and takes a few iterations of the loop to stop."""

    def receive(self, command: Query[None]) -> None:
        command.reply.send(None)

    def on_start(self, context: Context[Query[None]]) -> None:
        context.start(end_slowly)


async def run_system() -> None:
    """Run a system with an actor and foreign code that is slow to end."""
    async with System() as system:
        ref = system.spawn(SlowActor, "slow")
        system.contained_tasks.start(end_slowly, lambda _: None, "foreign", contextvars.copy_context())
        await ref.ask(Query())
        await anyio.lowlevel.checkpoint()


async def end_slowly() -> None:
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            for _ in range(5):
                await anyio.lowlevel.checkpoint()


@ASYNCIO
@pytest.mark.requirement("PROMISE-12")
async def test_a_native_cancel_at_any_await_of_an_actor_system_leaves_nothing_running() -> None:
    """A39: the task is cancelled once, or once more at a later await."""
    before = asyncio.all_tasks()
    for turns in range(40):
        for again in (None, 0, 3):
            task = asyncio.create_task(run_system())
            await iterate(turns)
            task.cancel()
            if again is not None:
                await iterate(again)
                task.cancel()
            done, _ = await asyncio.wait([task], timeout=20)
            assert done == {task}
            assert asyncio.all_tasks() == before, turns


@ASYNCIO
@pytest.mark.requirement("PROMISE-12")
async def test_a_native_cancel_of_every_task_ends_the_actor_system() -> None:
    """A39: as in a shutdown that cancels every task and then waits for all."""
    before = asyncio.all_tasks()
    for turns in range(30):
        asyncio.create_task(run_system())  # noqa: RUF006  found among all tasks
        await iterate(turns)
        tasks = asyncio.all_tasks() - before
        for task in tasks:
            task.cancel()
        with anyio.fail_after(60):
            await asyncio.gather(*tasks, return_exceptions=True)
            await iterate(5)
        assert asyncio.all_tasks() == before


async def iterate(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


@pytest.mark.requirement("PROMISE-12")
async def test_an_actor_system_ends_when_a_cancel_scope_cancels_its_block() -> None:
    """A39."""
    for turns in range(0, 40, 3):
        with anyio.fail_after(60), anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_after, turns, scope)
                async with System() as system:
                    ref = system.spawn(SlowActor, "slow")
                    await anyio.sleep_forever()
        assert "stopped" in repr(ref)


async def _cancel_after(turns: int, scope: anyio.CancelScope) -> None:
    for _ in range(turns + 3):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


class Asks(Query[None], frozen=True):
    """Answered by a child."""


class CancellingParent(Actor[Asks]):
    """Starts a child, and cancels its task natively before it begins."""

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
async def test_an_ask_is_answered_even_if_its_child_task_never_began() -> None:
    """A24: the end of the child is noticed, and is a crash."""
    with anyio.fail_after(60):
        async with System() as system:
            ref = system.spawn(CancellingParent, "parent", restart=Restart(backoff=(0.0, 0.0)))
            with pytest.raises(ActorFailed):
                await ref.ask(Asks())


@ASYNCIO
@pytest.mark.requirement("PROMISE-12")
async def test_a_cancelled_program_does_not_wait_for_a_shielded_shutdown_step() -> None:
    """A39: trio's run would wait for it, as for any task."""
    released = anyio.Event()

    async def wait_shielded() -> None:
        with anyio.CancelScope(shield=True):
            await released.wait()

    with anyio.fail_after(60):
        async with System() as system:
            system.first_steps = system.last_steps = ((wait_shielded, 0.05),)
    released.set()


async def test_an_error_in_a_shutdown_step_is_raised_after_all_steps() -> None:
    """A39."""
    done: list[str] = []

    async def fail() -> None:
        raise ZeroDivisionError

    async def note() -> None:
        done.append("last")

    with pytest.raises(ZeroDivisionError):
        async with System() as system:
            system.first_steps, system.last_steps = ((fail, 1.0),), ((note, 1.0),)
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


def start(system: System, work: Work, ends: Ends) -> ContainedTask:
    return system.contained_tasks.start(work, ends.append, "foreign", contextvars.copy_context())


@pytest.mark.parametrize("work", [leaves_a_group_open, exits])
@pytest.mark.requirement("PROMISE-12", "PROMISE-8")
async def test_damage_that_host_code_does_to_its_task_affects_no_other_task(work: Work) -> None:
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
    await assert_nothing_else_runs()


@pytest.mark.parametrize("work", [leaves_a_group_open, exits, anyio.lowlevel.checkpoint])
@pytest.mark.requirement("PROMISE-12")
async def test_damage_that_host_code_does_to_its_task_does_not_affect_later_host_code(work: Work) -> None:
    """A40: no matter how the earlier code damaged its task."""
    with anyio.fail_after(60):
        async with System() as system:
            for piece in (work, anyio.lowlevel.checkpoint, work, anyio.lowlevel.checkpoint):
                ends = Ends()
                start(system, piece, ends)
                while not ends:
                    await anyio.lowlevel.checkpoint()
                assert piece is work or ends == [None]
                await anyio.wait_all_tasks_blocked()  # the damage has been cleared


async def assert_nothing_else_runs() -> None:
    try:
        ours = asyncio.current_task()
    except RuntimeError:
        return  # trio's run would not end
    with anyio.fail_after(60):
        while [task for task in asyncio.all_tasks() if task is not ours and "sleep_forever" in repr(task)]:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("work", [swallows, shields, leaves_a_group_open_and_goes_on])
@pytest.mark.requirement("PROMISE-12")
@pytest.mark.usefixtures("short_graces")
async def test_exiting_an_actor_system_does_not_wait_for_host_code_that_never_ends(work: Work) -> None:
    """A41."""
    with anyio.fail_after(60):
        async with System() as system:
            ends = Ends()
            start(system, work, ends)
            await anyio.lowlevel.checkpoint()
        assert isinstance(ends[0], TaskDropped | RuntimeError)
    await assert_nothing_else_runs()


@pytest.mark.requirement("PROMISE-12")
async def test_detached_host_code_that_swallows_cancellation_does_not_spin() -> None:
    """A41: cancelled code is woken at each of its awaits; detached code is not."""
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
            await anyio.wait_all_tasks_blocked()  # would never return if the code spun
            known = len(STEPS)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert len(STEPS) == known


RAISES: dict[str, Callable[[], BaseException]] = {"exit": SystemExit, "interrupt": KeyboardInterrupt}


@pytest.mark.parametrize("kind", RAISES)
async def test_an_exception_in_the_block_of_an_actor_system_propagates_unwrapped(kind: str) -> None:
    """A25."""
    raised = RAISES[kind]()
    with pytest.raises(type(raised)) as found:
        async with System():
            raise raised
    assert found.value is raised
