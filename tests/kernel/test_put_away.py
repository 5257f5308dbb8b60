"""The rule of docs/reference/semantics.md on actors that are put away, A42."""

from typing import TypeAlias

import anyio
import pytest

from actors.errors import ActorStopped
from actors.kernel import Ref, Reply, Restart, State, Strategy, Terminated
from tests.kernel.kernel_probe import AT_ONCE, Do, Gate, Keep, Look, Note, Probe, Probed, blocked, boom, law

pytestmark = pytest.mark.anyio

Probes: TypeAlias = Ref[Probed]


class Hooked(Probe):
    """Has a hook that must not run."""

    async def stopped(self) -> None:
        raise AssertionError("it was not stopped")


class Waiting(Probe):
    """Waits for something that its cell does not know of."""

    waits = True

    @property
    def idle(self) -> bool:
        return not self.waits


async def test_an_actor_with_nothing_to_do_is_put_away_at_once_and_made_again_from_its_object() -> None:
    """A42: no hook, its watchers are told, its name is free, its old address takes nothing."""
    told: list[Terminated] = []
    async with law() as system:
        ref = system.spawn(Hooked, "probe")
        system.watch(ref, told.append)
        await ref.tell(Note(1))
        assert await ref.ask(Look()) == (1,)
        await anyio.wait_all_tasks_blocked()
        objects = system.put_away(ref)
        assert objects is not None
        assert [item.name for item in told] == ["probe"]
        assert system.tree() == ()
        with pytest.raises(ActorStopped):
            await ref.tell(Note(2))
        (probe,) = objects
        assert isinstance(probe, Probe)
        again: Probes = system.spawn(lambda: Probe(probe.notes), "probe")
        await again.tell(Note(3))
        assert await again.ask(Look()) == (1, 3)


async def test_of_several_all_are_put_away_or_none() -> None:
    """A42: also members of a group, whose others go on."""
    async with law() as system:
        group = system.group("group", Strategy.ONE_FOR_ALL, AT_ONCE)
        refs: list[Probes] = [system.spawn(Probe, f"probe {number}", group=group) for number in range(3)]
        gate = await blocked(refs[1])
        assert system.put_away(refs[0], refs[1]) is None
        assert len(system.tree()) == 3
        gate.opened.set()
        await anyio.wait_all_tasks_blocked()
        assert system.put_away(refs[0], refs[1]) is not None
        await refs[2].tell(Do(boom))
        await refs[2].tell(Note("after"))
        assert await refs[2].ask(Look()) == ("after",)
        assert [item.name for item in system.tree()] == ["probe 2"]


async def test_an_actor_with_mail_a_handler_a_child_or_a_question_to_answer_is_not_put_away() -> None:
    """A42."""
    async with law() as system:
        fresh: Probes = system.spawn(Probe, "fresh")
        assert system.put_away(fresh) is None  # its `started` has yet to run
        mail, handler, child, asked = (
            system.spawn(Probe, name) for name in ("mail", "handler", "child", "asked")
        )
        await anyio.wait_all_tasks_blocked()
        await mail.tell(Note(1))
        assert system.put_away(mail) is None
        gate, other = await blocked(handler), Gate()

        async def start(probe: Probe) -> None:
            async def wait() -> None:
                await other(probe)

            probe.hold.start(wait)

        await child.tell(Do(start))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.ask, Keep())
            await anyio.wait_all_tasks_blocked()
            assert [system.put_away(ref) for ref in (handler, child, asked)] == [None] * 3
            objects = system.put_away(mail)
            assert objects is not None
            assert [probe.notes for probe in objects if isinstance(probe, Probe)] == [[1]]

            async def answer(probe: Probe, _reply: Reply[str] | None = None) -> None:
                probe.kept.pop().send("answer")

            await asked.tell(Do(answer))
        gate.opened.set()
        other.opened.set()
        await anyio.wait_all_tasks_blocked()
        assert all(system.put_away(ref) is not None for ref in (handler, child, asked))


async def test_a_question_whose_asker_has_gone_away_keeps_nobody() -> None:
    """A42."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ref.ask, Keep())
            await anyio.wait_all_tasks_blocked()
            assert system.put_away(ref) is None
            tasks.cancel_scope.cancel()
        assert system.put_away(ref) is not None


async def test_an_actor_that_waits_for_something_of_its_own_says_so_and_stays() -> None:
    """A42."""
    async with law() as system:
        ref = system.spawn(Waiting, "waiting")
        await ref.ask(Look())
        await anyio.wait_all_tasks_blocked()
        assert system.put_away(ref) is None

        async def done(probe: Probe) -> None:
            assert isinstance(probe, Waiting)
            probe.waits = False

        await ref.tell(Do(done))
        await anyio.wait_all_tasks_blocked()
        assert system.put_away(ref) is not None


async def test_one_that_is_just_restarting_or_has_ended_is_not_put_away() -> None:
    """A42."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", restart=Restart(backoff=(60.0, 60.0)))
        await ref.tell(Do(boom))
        await anyio.wait_all_tasks_blocked()
        assert [item.state for item in system.tree()] == [State.RESTARTING]
        assert system.put_away(ref) is None
        await system.stop(ref)
        assert system.put_away(ref) is None
