"""The rule A42 of docs/reference/semantics.md: errors that end an actor without a crash."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

from actors.errors import ActorFailed, ActorStopped
from actors.kernel import Group, Ref, Reply, Restart, System
from tests.kernel.kernel_probe import Do, GetNotes, Keep, Note, Probe, Probed, Solve, boom, hold_actor

pytestmark = pytest.mark.anyio


class Gone(Exception):
    """A resource that the actor needs is missing."""


ENDS = Restart(intensity=1, backoff=(0.0, 0.0), ends=(Gone,))


def end(_probe: Probe, _reply: Reply[str] | None = None) -> None:
    raise Gone("no disk")


@asynccontextmanager
async def reporting_system(crashes: list[str]) -> AsyncIterator[System]:
    with anyio.fail_after(60):
        async with System(seed=1, on_crash=lambda name, _: crashes.append(name)) as system:
            yield system
            assert system.counts().is_balanced, system.counts()


async def ask_and_collect(ref: Ref[Probed], query: Keep | GetNotes | Solve, errors: list[Exception]) -> None:
    try:
        await ref.ask(query)
    except Exception as error:
        errors.append(error)


async def test_an_error_that_ends_an_actor_stops_its_group_and_is_raised_in_its_askers() -> None:
    """A42: askers whose reply was kept, whose message was being handled, and whose message was queued."""
    crashes, errors, ends = list[str](), list[Exception](), list[str]()
    async with reporting_system(crashes) as system:
        group = Group(system, ENDS)
        one, two = (system.spawn(Probe, name, group=group) for name in ("one", "two"))
        other = system.spawn(Probe, "other")
        for ref in (one, two):
            system.watch(ref, partial(ends.append, ref.name))
        context = await hold_actor(two)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_and_collect, one, Keep(), errors)
            tasks.start_soon(ask_and_collect, two, GetNotes(), errors)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(ask_and_collect, one, Solve(end), errors)
        assert [(type(error), str(error)) for error in errors] == [(Gone, "no disk")] * 3
        assert (ends, crashes) == (["two", "one"], [])
        assert isinstance(group.end_error, Gone)
        with pytest.raises(ActorStopped):
            await one.send(Note("too late"))
        assert await system.spawn(Probe, "one").ask(GetNotes()) == await other.ask(GetNotes()) == ()
        context.release_messages()


async def test_an_ending_actor_waits_for_its_children_whose_errors_do_not_count_as_crashes() -> None:
    """A42: the name is free when they have ended."""
    crashes, notes = list[str](), list[object]()
    cleaned = anyio.Event()
    async with reporting_system(crashes) as system:
        ref = system.spawn(partial(Probe, notes), "probe", restart=ENDS)

        async def child() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await cleaned.wait()
                raise Gone("again")

        await ref.send(Do(lambda probe: probe.context.start(child)))
        await anyio.wait_all_tasks_blocked()
        await ref.send(Do(lambda probe: probe.context.fail(Gone("no disk"))))
        await ref.send(Note("unread"))
        assert "probe" in system.cells
        ended = anyio.Event()
        system.watch(ref, ended.set)
        cleaned.set()
        await ended.wait()
        assert ("probe" in system.cells, crashes, notes) == (False, [], [])


async def test_only_errors_that_do_not_end_an_actor_are_counted_as_crashes() -> None:
    """A42: any other error is a crash."""
    crashes: list[str] = []
    async with reporting_system(crashes) as system:
        ref = system.spawn(Probe, "probe", restart=ENDS)
        with pytest.raises(ActorFailed):
            await ref.ask(Solve(boom))
        assert await ref.ask(GetNotes()) == ()
        assert [cell.restarts for cell in system.cells.values()] == [1]
        with pytest.raises(Gone):
            await ref.ask(Solve(end))
        assert (crashes, dict(system.cells)) == (["probe"], {})


async def test_an_error_type_that_ends_an_actor_also_ends_the_actor_if_a_child_task_raises_it() -> None:
    """A42: also if it is raised in a child."""
    crashes, errors = list[str](), list[Exception]()
    async with reporting_system(crashes) as system:
        ref = system.spawn(Probe, "probe", restart=ENDS)

        async def child() -> None:
            await anyio.lowlevel.checkpoint()
            raise Gone("no disk")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_and_collect, ref, Keep(), errors)
            await anyio.wait_all_tasks_blocked()
            await ref.send(Do(lambda probe: probe.context.start(child)))
        assert [type(error) for error in errors] == [Gone]
        assert crashes == []
