"""The rule A42 of docs/reference/semantics.md: errors that end actors and are no crash."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

from actors.errors import ActorFailed, ActorStopped
from actors.kernel import Group, Ref, Reply, Restart, System
from tests.kernel.kernel_probe import Do, Keep, Look, Note, Probe, Probed, Solve, boom, held

pytestmark = pytest.mark.anyio


class Gone(Exception):
    """What an actor needs is not there."""


ENDS = Restart(intensity=1, backoff=(0.0, 0.0), ends=(Gone,))


def end(_probe: Probe, _reply: Reply[str] | None = None) -> None:
    raise Gone("no disk")


@asynccontextmanager
async def reporting(crashes: list[str]) -> AsyncIterator[System]:
    with anyio.fail_after(60):
        async with System(seed=1, on_crash=lambda name, _: crashes.append(name)) as system:
            yield system
            assert system.counts().is_balanced, system.counts()


async def asked(ref: Ref[Probed], query: Keep | Look | Solve, errors: list[Exception]) -> None:
    try:
        await ref.ask(query)
    except Exception as error:
        errors.append(error)


async def test_an_end_takes_the_group_with_it_and_who_waits_gets_the_error_itself() -> None:
    """A42: who was to be answered, whose message was handled, and whose message waits."""
    crashes, errors, ends = list[str](), list[Exception](), list[str]()
    async with reporting(crashes) as system:
        group = Group(system, ENDS)
        one, two = (system.spawn(Probe, name, group=group) for name in ("one", "two"))
        other = system.spawn(Probe, "other")
        for ref in (one, two):
            system.watch(ref, partial(ends.append, ref.name))
        context = await held(two)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked, one, Keep(), errors)
            tasks.start_soon(asked, two, Look(), errors)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(asked, one, Solve(end), errors)
        assert [(type(error), str(error)) for error in errors] == [(Gone, "no disk")] * 3
        assert (ends, crashes) == (["two", "one"], [])
        assert isinstance(group.ended, Gone)
        with pytest.raises(ActorStopped):
            await one.send(Note("too late"))
        assert await system.spawn(Probe, "one").ask(Look()) == await other.ask(Look()) == ()
        context.release()


async def test_an_end_waits_for_children_and_what_they_raise_then_is_no_crash_either() -> None:
    """A42: the name is free when they have ended."""
    crashes, notes = list[str](), list[object]()
    cleaned = anyio.Event()
    async with reporting(crashes) as system:
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


async def test_an_end_is_no_crash_that_is_counted_and_a_crash_still_is_one() -> None:
    """A42: another error is a crash as ever, whatever ends the actor."""
    crashes: list[str] = []
    async with reporting(crashes) as system:
        ref = system.spawn(Probe, "probe", restart=ENDS)
        with pytest.raises(ActorFailed):
            await ref.ask(Solve(boom))
        assert await ref.ask(Look()) == ()
        assert [cell.restarts for cell in system.cells.values()] == [1]
        with pytest.raises(Gone):
            await ref.ask(Solve(end))
        assert (crashes, dict(system.cells)) == (["probe"], {})


async def test_what_is_told_by_a_child_that_meets_it_ends_its_actor() -> None:
    """A42: also where it is raised in a child."""
    crashes, errors = list[str](), list[Exception]()
    async with reporting(crashes) as system:
        ref = system.spawn(Probe, "probe", restart=ENDS)

        async def child() -> None:
            await anyio.lowlevel.checkpoint()
            raise Gone("no disk")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked, ref, Keep(), errors)
            await anyio.wait_all_tasks_blocked()
            await ref.send(Do(lambda probe: probe.context.start(child)))
        assert [type(error) for error in errors] == [Gone]
        assert crashes == []
