"""The rule of docs/reference/semantics.md on actors that are passivated, A38."""

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
    Keep,
    Look,
    Note,
    Probe,
    Probed,
    Urgent,
    boom,
    held,
    law,
    state,
)

pytestmark = pytest.mark.anyio

Probes: TypeAlias = Ref[Probed]


class Waiting(Probe):
    """Waits for something that its cell does not know of."""

    waits = True

    @property
    def idle(self) -> bool:
        return not self.waits


async def test_an_actor_with_nothing_to_do_is_passivated_at_once_and_made_again_from_its_object() -> None:
    """A38: its watchers are not told, its name is free, its old address takes nothing."""
    told: list[str] = []
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        system.watch(ref, partial(told.append, "ended"))
        await ref.send(Note(1))
        assert await ref.ask(Look()) == (1,)
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
        assert await again.ask(Look()) == (1, 3)


async def test_an_object_that_is_passivated_is_freed_with_its_last_holder_without_the_collector() -> None:
    """A38: idle sessions come and go by the thousand."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        await ref.ask(Look())
        objects = system.passivate(ref)
        assert objects is not None
        freed = weakref.ref(objects[0])
        gc.disable()
        try:
            del objects, ref
            assert freed() is None
        finally:
            gc.enable()


async def test_of_several_all_are_passivated_or_none() -> None:
    """A38: also members of a group, whose others go on."""
    async with law() as system:
        group = Group(system, AT_ONCE)
        refs: list[Probes] = [system.spawn(Probe, f"probe {number}", group=group) for number in range(3)]
        context = await held(refs[1])
        assert system.passivate(refs[0], refs[1]) is None
        assert len(system.cells) == 3
        context.release()
        assert system.passivate(refs[0], refs[1]) is not None
        await refs[2].send(Do(boom))
        await refs[2].send(Note("after"))
        assert await refs[2].ask(Look()) == ("after",)
        assert list(system.cells) == ["probe 2"]


async def test_an_actor_with_mail_a_handler_a_child_or_a_question_to_answer_is_not_passivated() -> None:
    """A38: nor one that is on hold."""
    async with law() as system:
        mail, handler, child, asked = (
            system.spawn(Probe, name) for name in ("mail", "handler", "child", "asked")
        )
        opened = anyio.Event()
        found: list[object] = []
        await handler.send(Do(lambda _: found.append(system.passivate(handler))))
        assert found == [None]
        context = await held(mail)
        assert system.passivate(mail) is None
        await mail.send(Note(1))
        await child.send(Do(lambda probe: probe.context.start(opened.wait)))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.ask, Keep())
            await anyio.wait_all_tasks_blocked()
            assert [system.passivate(ref) for ref in (mail, child, asked)] == [None] * 3
            await asked.send(Do(lambda probe: probe.kept.pop().send("answer")))
        context.release()
        opened.set()
        await anyio.wait_all_tasks_blocked()
        assert all(system.passivate(ref) is not None for ref in (mail, handler, child, asked))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_queues_that_were_used_and_are_empty_keep_nobody() -> None:
    """A38: the control queue among them, though somebody was granted a place in it and did not use it."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", capacity=1)
        context = await held(ref)
        await ref.send(Urgent(1))
        waiting = asyncio.create_task(_urge(ref))
        await anyio.wait_all_tasks_blocked()
        context.release()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        assert system.passivate(ref) is not None


async def _urge(ref: Probes) -> None:
    await ref.send(Urgent(2))


async def test_a_question_whose_asker_has_gone_away_keeps_nobody() -> None:
    """A38."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ref.ask, Keep())
            await anyio.wait_all_tasks_blocked()
            assert system.passivate(ref) is None
            tasks.cancel_scope.cancel()
        assert system.passivate(ref) is not None


async def test_an_actor_that_waits_for_something_of_its_own_says_so_and_stays() -> None:
    """A38."""
    async with law() as system:
        ref = system.spawn(Waiting, "waiting")
        await ref.ask(Look())
        assert system.passivate(ref) is None

        def done(probe: Probe) -> None:
            assert isinstance(probe, Waiting)
            probe.waits = False

        await ref.send(Do(done))
        assert system.passivate(ref) is not None


async def test_one_that_is_just_restarting_or_has_ended_is_not_passivated() -> None:
    """A38."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", restart=Restart(backoff=(60.0, 60.0)))
        await ref.send(Do(boom))
        await anyio.wait_all_tasks_blocked()
        assert state(system, "probe") == "restarting"
        assert system.passivate(ref) is None
        await system.stop(ref)
        assert system.passivate(ref) is None
