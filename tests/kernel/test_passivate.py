"""The rule A38 of docs/reference/semantics.md: passivated actors."""

import asyncio
import gc
import weakref
from functools import partial
from typing import TypeAlias

import anyio
import pytest

from actors.errors import ActorStopped
from actors.kernel import Group, Ref, Restart
from tests.kernel.kernel_probe import (
    AT_ONCE,
    Do,
    GetNotes,
    Keep,
    Note,
    Probe,
    Probed,
    Urgent,
    boom,
    checked_system,
    hold_actor,
    state,
)

pytestmark = pytest.mark.anyio

Probes: TypeAlias = Ref[Probed]


class WaitingProbe(Probe):
    """Waits for something that its cell does not know."""

    waits = True

    @property
    def idle(self) -> bool:
        return not self.waits


async def test_an_idle_actor_is_passivated_and_recreated_from_its_object() -> None:
    """A38: its watchers are not notified, its name is free, its old address rejects messages."""
    told: list[str] = []
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        system.watch(ref, partial(told.append, "ended"))
        await ref.send(Note(1))
        assert await ref.ask(GetNotes()) == (1,)
        await anyio.wait_all_tasks_blocked()
        objects = system.passivate(ref)
        assert objects is not None
        assert told == []
        assert system.cells == {}
        with pytest.raises(ActorStopped):
            await ref.send(Note(2))
        (probe,) = objects
        assert isinstance(probe, Probe)
        again: Probes = system.spawn(lambda: Probe(probe.notes), "probe")
        await again.send(Note(3))
        assert await again.ask(GetNotes()) == (1, 3)


async def test_a_passivated_object_is_freed_without_garbage_collection() -> None:
    """A38: idle sessions come and go by the thousand."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        await ref.ask(GetNotes())
        objects = system.passivate(ref)
        assert objects is not None
        freed = weakref.ref(objects[0])
        gc.disable()
        try:
            del objects, ref
            assert freed() is None
        finally:
            gc.enable()


async def test_either_all_or_none_of_several_actors_are_passivated() -> None:
    """A38: also members of a group, whose other members continue."""
    async with checked_system() as system:
        group = Group(system, AT_ONCE)
        refs: list[Probes] = [system.spawn(Probe, f"probe {number}", group=group) for number in range(3)]
        context = await hold_actor(refs[1])
        assert system.passivate(refs[0], refs[1]) is None
        assert len(system.cells) == 3
        context.release_messages()
        assert system.passivate(refs[0], refs[1]) is not None
        await refs[2].send(Do(boom))
        await refs[2].send(Note("after"))
        assert await refs[2].ask(GetNotes()) == ("after",)
        assert list(system.cells) == ["probe 2"]


async def test_an_actor_with_pending_work_is_not_passivated() -> None:
    """A38: mail, a handler, a child, an open query or a hold."""
    async with checked_system() as system:
        mail, handler, child, asked = (
            system.spawn(Probe, name) for name in ("mail", "handler", "child", "asked")
        )
        opened = anyio.Event()
        found: list[object] = []
        await handler.send(Do(lambda _: found.append(system.passivate(handler))))
        assert found == [None]
        context = await hold_actor(mail)
        assert system.passivate(mail) is None
        await mail.send(Note(1))
        await child.send(Do(lambda probe: probe.context.start(opened.wait)))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.ask, Keep())
            await anyio.wait_all_tasks_blocked()
            assert [system.passivate(ref) for ref in (mail, child, asked)] == [None] * 3
            await asked.send(Do(lambda probe: probe.kept.pop().send("answer")))
        context.release_messages()
        opened.set()
        await anyio.wait_all_tasks_blocked()
        assert all(system.passivate(ref) is not None for ref in (mail, handler, child, asked))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_queues_that_are_empty_again_do_not_prevent_passivation() -> None:
    """A38: including a control queue whose granted place was not used."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", capacity=1)
        context = await hold_actor(ref)
        await ref.send(Urgent(1))
        waiting = asyncio.create_task(_send_urgent(ref))
        await anyio.wait_all_tasks_blocked()
        context.release_messages()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        assert system.passivate(ref) is not None


async def _send_urgent(ref: Probes) -> None:
    await ref.send(Urgent(2))


async def test_an_abandoned_query_does_not_prevent_passivation() -> None:
    """A38."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ref.ask, Keep())
            await anyio.wait_all_tasks_blocked()
            assert system.passivate(ref) is None
            tasks.cancel_scope.cancel()
        assert system.passivate(ref) is not None


async def test_an_actor_that_reports_itself_busy_is_not_passivated() -> None:
    """A38."""
    async with checked_system() as system:
        ref = system.spawn(WaitingProbe, "waiting")
        await ref.ask(GetNotes())
        assert system.passivate(ref) is None

        def finish(probe: Probe) -> None:
            assert isinstance(probe, WaitingProbe)
            probe.waits = False

        await ref.send(Do(finish))
        assert system.passivate(ref) is not None


async def test_an_actor_that_restarts_or_has_ended_is_not_passivated() -> None:
    """A38."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", restart=Restart(backoff=(60.0, 60.0)))
        await ref.send(Do(boom))
        await anyio.wait_all_tasks_blocked()
        assert state(system, "probe") == "restarting"
        assert system.passivate(ref) is None
        await system.stop(ref)
        assert system.passivate(ref) is None
