"""The rules A19 to A34 of docs/reference/semantics.md: crash, restart, cancel, stop, drain, introspection."""

import gc
import signal
import sys
from contextvars import ContextVar
from functools import partial

import anyio
import pytest
import trio
from anyio.lowlevel import checkpoint

from actors.errors import ActorFailed, ActorStopped, ShuttingDown
from actors.kernel import SHARED, Actor, Context, Group, Ref, Reply, Restart, System
from tests.kernel.kernel_probe import (
    AT_ONCE,
    Do,
    GetNotes,
    Keep,
    LowProbe,
    Note,
    Probe,
    Probed,
    Solve,
    boom,
    checked_system,
    hold_actor,
    restarts,
    state,
)

pytestmark = pytest.mark.anyio

trace: ContextVar[str] = ContextVar("trace", default="none")


# Crash and restart


async def test_an_actor_crash_fails_the_pending_ask_and_keeps_queued_messages() -> None:
    """A19: the cause is chained, the message is not retried, and a new object is started."""
    built: list[Probe] = []
    notes: list[object] = []

    def build() -> Probe:
        built.append(Probe(notes))
        return built[-1]

    async with checked_system() as system:
        ref = system.spawn(build, "probe", restart=AT_ONCE)
        context = await hold_actor(ref)
        await ref.send(Do(boom))
        await ref.send(Note("kept"))
        context.release_messages()
        assert await ref.ask(GetNotes()) == ("kept",)
        with pytest.raises(ActorFailed, match="crashed with ValueError") as caught:
            await ref.ask(Solve(boom))
        assert isinstance(caught.value.__cause__, ValueError)
        assert await ref.ask(GetNotes()) == ("kept",)
        assert len(built) == 3
        assert built[2].context.receiver is ref.receiver
        assert system.account.dead == {"poison": 2}


async def test_an_actor_crash_fails_queries_that_the_actor_has_not_answered() -> None:
    """A19."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", restart=AT_ONCE)
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ActorFailed, match="crashed with ValueError"):
                    await ref.ask(Keep())

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await ref.send(Do(boom))


async def test_an_error_in_the_factory_or_the_on_start_hook_counts_as_a_crash() -> None:
    """A19: an error of the first factory call is raised by `spawn`; errors of later calls are crashes."""
    calls = 0

    class FailsToStart(Probe):
        def on_start(self, context: Context[Probed]) -> None:
            nonlocal calls
            calls += 1
            if calls in (1, 2):
                raise ValueError("not yet")
            super().on_start(context)

    async with checked_system() as system:
        with pytest.raises(ZeroDivisionError):
            system.spawn(lambda: Probe([1 // 0]), "never")
        ref = system.spawn(FailsToStart, "stubborn", restart=AT_ONCE)
        assert await ref.ask(GetNotes()) == ()
        assert calls == 3


async def test_the_delay_before_a_restart_doubles_and_depends_on_the_seed() -> None:
    """A20."""

    async def delays(seed: int) -> list[float]:
        async with System(seed=seed) as system:
            group = Group(system, Restart(backoff=(1.0, 3.0)))
            return [group.backoff_seconds(crashes) for crashes in range(1, 5)]

    first = await delays(7)
    assert first == await delays(7)
    assert first != await delays(8)
    for delay, most in zip(first, (1.0, 2.0, 3.0, 3.0), strict=True):
        assert most / 2 <= delay <= most


async def test_an_actor_that_crashes_too_often_ends_and_its_messages_become_dead_letters() -> None:
    """A21: watchers are notified, the name is free, other actors are not affected."""
    ends: list[str] = []
    async with checked_system() as system:
        other = system.spawn(Probe, "other")
        ref = system.spawn(Probe, "probe", restart=Restart(intensity=1, backoff=(0.0, 0.0)))
        system.watch(ref, partial(ends.append, "probe"))
        context = await hold_actor(ref)
        for command in (Do(boom), Do(boom), Note("unhandled")):
            await ref.send(command)
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ActorStopped, match="faulted"):
                    await ref.ask(GetNotes())

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            context.release_messages()
        assert ends == ["probe"]
        with pytest.raises(ActorStopped, match="'probe' is faulted"):
            await ref.send(Note("too late"))
        assert system.account.dead == {"poison": 2, "unhandled": 2, "stopped": 1}
        assert await other.ask(GetNotes()) == await system.spawn(Probe, "probe").ask(GetNotes()) == ()


async def test_crashes_older_than_the_restart_period_are_forgotten() -> None:
    """A21."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", restart=Restart(intensity=1, period=0.0, backoff=(0.0, 0.0)))
        for _ in range(5):
            with pytest.raises(ActorFailed):
                await ref.ask(Solve(boom))
        assert await ref.ask(GetNotes()) == ()


async def test_an_actor_crash_stops_its_group_before_the_sender_continues() -> None:
    """A19 and A22: no member handles another message, and its queries have failed."""
    async with checked_system() as system:
        group = Group(system, Restart(backoff=(3600.0, 3600.0)))
        notes: list[object] = []
        one, two = (system.spawn(lambda: Probe(notes), name, group=group) for name in ("one", "two"))
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ActorFailed, match="'two' crashed with ValueError"):
                    await two.ask(Keep())

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            one.send_nowait(Do(boom))
            two.send_nowait(Note("too late"))
            assert [state(system, name) for name in ("one", "two")] == ["restarting"] * 2
        assert notes == []
        await system.stop(one)
        await system.stop(two)


async def test_a_sender_continues_only_after_the_crash_of_an_actor_later_in_a_chain_of_sends() -> None:
    """A19: also for the crash of an actor further along the chain."""
    async with checked_system() as system:
        last = system.spawn(Probe, "last", restart=Restart(backoff=(3600.0, 3600.0)))
        first = system.spawn(Probe, "first")
        await first.send(Do(lambda _: last.send_nowait(Do(boom))))
        assert state(system, "last") == "restarting"
        await system.stop(last)


async def test_a_child_task_ends_without_continuing_if_its_actor_crashes_during_its_ask() -> None:
    """A19 and A23: the query was answered at once, and the crash came before the child continued."""
    answers: list[object] = []
    async with checked_system() as system:
        group = Group(system, AT_ONCE)
        high = system.spawn(Probe, "high", group=group)
        low = system.spawn(LowProbe, "low", group=group)

        def answer_and_crash(_probe: Probe, reply: Reply[str]) -> None:
            low.send_nowait(Do(boom))
            reply.send("answer")

        async def ask() -> None:
            answers.append(await low.ask(Solve(answer_and_crash)))

        await high.send(Do(lambda probe: probe.context.start(ask)))
        await anyio.wait_all_tasks_blocked()
        assert await high.ask(GetNotes()) == ()
        assert answers == []
        assert restarts(system) == [1, 1]


async def test_failing_an_actor_through_its_context_crashes_it_once_after_its_handler_returns() -> None:
    """A19: `context.fail` called several times counts once."""

    def fail(probe: Probe) -> None:
        for _ in range(3):
            probe.context.fail(ValueError("soon"))
        probe.notes.append("handled")

    notes: list[object] = []
    async with checked_system() as system:
        ref = system.spawn(lambda: Probe(notes), "probe", restart=AT_ONCE)
        await ref.send(Do(fail))
        assert (notes, state(system, "probe")) == (["handled"], "restarting")
        assert await ref.ask(GetNotes()) == ("handled",)
        assert restarts(system) == [1]


async def test_a_one_for_all_group_restarts_together_in_start_order() -> None:
    """A22: mail is kept; the group shares its restart budget."""
    order: list[str] = []

    class Member(Probe):
        def on_start(self, context: Context[Probed]) -> None:
            super().on_start(context)
            order.append(context.ref.name)

    async with checked_system() as system:
        group = Group(system, Restart(intensity=1, backoff=(0.0, 0.0)))
        one, two, three = (system.spawn(Member, name, group=group) for name in ("one", "two", "three"))
        alone = system.spawn(Member, "alone")
        assert order == ["one", "two", "three", "alone"]
        await hold_actor(one)
        await one.send(Note("kept"))
        await two.send(Do(boom))
        assert await one.ask(GetNotes()) == ("kept",)
        assert await three.ask(GetNotes()) == ()
        assert order[4:] == ["one", "two", "three"]
        ended: list[str] = []
        for ref in (one, two, three):
            system.watch(ref, partial(ended.append, ref.name))
        await three.send(Do(boom))
        assert ended == ["three", "two", "one"]
        with pytest.raises(ActorStopped, match="'one' is faulted"):
            await one.send(Note("too late"))
        assert await alone.ask(GetNotes()) == ()


async def test_an_actor_that_joins_a_crashing_group_restarts_with_it() -> None:
    """A22."""
    async with checked_system() as system:
        group = Group(system, AT_ONCE)
        first = system.spawn(Probe, "first", group=group)
        await first.send(Do(boom))
        second = system.spawn(Probe, "second", group=group)
        assert state(system, "second") == "restarting"
        assert await second.ask(GetNotes()) == ()
        assert restarts(system) == [1, 1]


async def test_a_child_that_does_not_end_does_not_block_its_groups_restart() -> None:
    """A22 and A28: a later failure of the child has no effect."""

    async def stay() -> None:
        with anyio.CancelScope(shield=True):
            await released.wait()
        raise ValueError("late")

    released = anyio.Event()
    async with checked_system(child_timeout=0.02) as system:
        group = Group(system, AT_ONCE)
        one, two = (system.spawn(Probe, name, group=group) for name in ("one", "two"))
        await one.send(Do(lambda probe: probe.context.start(stay)))
        await anyio.wait_all_tasks_blocked()
        await two.send(Do(boom))
        assert await one.ask(GetNotes()) == await two.ask(GetNotes()) == ()
        released.set()
        await anyio.wait_all_tasks_blocked()
        assert restarts(system) == [1, 1]


async def test_an_actor_without_a_group_restarts_alone() -> None:
    """A22."""
    async with checked_system() as system:
        one, two = (system.spawn(Probe, name, restart=AT_ONCE) for name in ("one", "two"))
        with pytest.raises(ActorFailed):
            await one.ask(Solve(boom))
        assert await one.ask(GetNotes()) == await two.ask(GetNotes()) == ()
        assert restarts(system) == [1, 0]


async def test_a_failing_child_crashes_its_actor_and_cancels_its_siblings() -> None:
    """A23: the new object starts when every child of the old one has ended."""
    events: list[str] = []

    class Parent(Probe):
        def on_start(self, context: Context[Probed]) -> None:
            super().on_start(context)
            events.append("started")

    async def sibling() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            events.append("sibling ended")

    async def fail() -> None:
        await checkpoint()
        raise ValueError("child")

    def start(probe: Probe) -> None:
        probe.context.start(sibling)
        probe.context.start(fail)

    async with checked_system() as system:
        ref = system.spawn(Parent, "parent", restart=AT_ONCE)
        await ref.send(Do(start))
        await anyio.wait_all_tasks_blocked()
        assert await ref.ask(GetNotes()) == ()
        assert events == ["started", "sibling ended", "started"]


async def test_the_cancellation_of_a_child_task_does_not_count_as_a_failure() -> None:
    """A23."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        await ref.send(Do(lambda probe: probe.context.start(anyio.sleep_forever).cancel()))
        while system.passivate(ref) is None:
            assert restarts(system) == [0]
            await checkpoint()


async def test_an_actor_that_is_stopping_starts_no_child() -> None:
    """A23."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        context = await hold_actor(ref)
        await system.stop(ref)
        with pytest.raises(ActorStopped, match="cannot start a child"):
            context.start(anyio.sleep_forever)


async def test_a_stray_cancellation_counts_as_a_crash_and_does_not_end_the_sender() -> None:
    """A24: the cancellation is raised by a handler, or by a child."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await checkpoint()
        except anyio.get_cancelled_exc_class() as error:
            stray = error
            raise

    def raise_stray(_probe: Probe, _reply: object = None) -> None:
        raise stray

    async def child() -> None:
        raise stray

    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", restart=AT_ONCE)
        with pytest.raises(ActorFailed):
            await ref.ask(Solve(raise_stray))
        await ref.send(Do(lambda probe: probe.context.start(child)))
        await anyio.wait_all_tasks_blocked()
        assert await ref.ask(GetNotes()) == ()
        assert restarts(system) == [2]


async def test_a_base_exception_propagates_out_of_the_actor_system() -> None:
    """A25: the exception propagates unwrapped, and every query ends."""

    class Fatal(BaseException):
        pass

    def raise_fatal(_probe: Probe) -> None:
        raise Fatal

    async def run() -> None:
        async with system:
            refs.append(system.spawn(Probe, "probe"))
            await refs[0].send(Do(raise_fatal))
            await refs[0].ask(Keep())

    refs: list[Ref[Probed]] = []
    system = System()
    with anyio.fail_after(60), pytest.raises(Fatal):
        await run()
    assert system.counts().pending == 0
    with pytest.raises(ActorStopped):
        await refs[0].ask(GetNotes())


def test_an_interrupt_is_raised_between_handlers() -> None:
    """A25: trio would raise the interrupt in the running code, which may be a handler."""
    notes: list[str] = []

    def interrupt(_probe: Probe) -> None:
        signal.raise_signal(signal.SIGINT)
        notes.append("handled")

    async def main() -> None:
        async with System() as system:
            await system.spawn(Probe, "probe").send(Do(interrupt))
            notes.append("told")
            with anyio.fail_after(60):
                await anyio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert notes == ["handled", "told"]


async def test_an_error_in_the_block_of_the_actor_system_propagates_unwrapped() -> None:
    """A25."""

    async def run() -> None:
        async with System() as system:
            system.spawn(Probe, "probe")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await run()


async def test_crashes_are_reported_to_the_callback_of_the_actor_system() -> None:
    """A19: the callback of the system receives each crash."""
    crashes: list[tuple[str, str]] = []
    with anyio.fail_after(60):
        async with System(on_crash=lambda name, error: crashes.append((name, str(error)))) as system:
            ref = system.spawn(Probe, "probe", restart=AT_ONCE)
            await ref.send(Do(boom))
            await ref.ask(GetNotes())
    assert crashes == [("probe", "boom")]


# Cancel, stop, drain


async def test_a_cancelled_host_still_stops_its_actors_in_reverse_order() -> None:
    """A26 and A29."""
    notes: list[object] = []
    with anyio.fail_after(60), anyio.CancelScope() as host:
        async with System() as system:
            for name in ("one", "two", "three"):
                system.watch(system.spawn(Probe, name), partial(notes.append, f"{name} stopped"))
            host.cancel()
            await anyio.sleep_forever()
    assert notes == ["three stopped", "two stopped", "one stopped"]


async def test_an_actor_is_stopped_before_the_actors_that_it_asks() -> None:
    """A29."""
    notes: list[object] = []
    with anyio.fail_after(60):
        async with System() as system:
            for name, depth in (("above", 0), ("middle", 1), ("below", SHARED), ("another", 0)):
                system.watch(system.spawn(Probe, name, depth=depth), partial(notes.append, f"{name} stopped"))
    assert notes == ["another stopped", "above stopped", "middle stopped", "below stopped"]


async def test_a_stop_ends_children_first_and_then_makes_queued_messages_dead_letters() -> None:
    """A27."""
    notes: list[object] = []
    ending = anyio.Event()

    async def child() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await ending.wait()
            notes.append("child ended")

    def start_child(probe: Probe) -> None:
        probe.context.start(child)
        probe.context.hold_messages()

    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        system.watch(ref, partial(notes.append, "probe stopped"))
        await ref.send(Do(start_child))
        await ref.send(Note("never"))
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ActorStopped):
                    await ref.ask(GetNotes())

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(system.stop, ref)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(ActorStopped, match="'probe' is stopping"):
                ref.send_nowait(Note("too late"))
            ending.set()
        await system.stop(ref)
        assert notes == ["child ended", "probe stopped"]
        assert system.account.dead == {"stopped": 3}


async def test_a_sender_waiting_for_space_learns_that_the_actor_stopped() -> None:
    """A27."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", capacity=1)
        context = await hold_actor(ref)
        await ref.send(Note("fills"))
        async with anyio.create_task_group() as tasks:

            async def tell() -> None:
                with pytest.raises(ActorStopped):
                    await ref.send(Note("waits"))

            tasks.start_soon(tell)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(system.stop, ref)
            await anyio.wait_all_tasks_blocked()
            context.release_messages()


async def test_a_child_that_does_not_end_delays_a_stop_by_a_limited_time() -> None:
    """A28."""

    async def stay() -> None:
        with anyio.CancelScope(shield=True):
            await release.wait()

    release = anyio.Event()
    notes: list[object] = []
    async with checked_system(child_timeout=0.02) as system:
        ref = system.spawn(Probe, "probe")
        system.watch(ref, partial(notes.append, "probe stopped"))
        await ref.send(Do(lambda probe: probe.context.start(stay)))
        await anyio.wait_all_tasks_blocked()
        await system.stop(ref)
        assert notes == ["probe stopped"]
        release.set()
        other = system.spawn(Probe, "other")
        assert await other.ask(GetNotes()) == ()


async def test_an_actor_may_be_stopped_while_it_waits_for_its_restart() -> None:
    """A27."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", restart=Restart(backoff=(3600.0, 3600.0)))
        await ref.send(Do(boom))
        await ref.send(Note("kept so far"))
        assert state(system, "probe") == "restarting"
        await system.stop(ref)
        assert system.account.dead == {"poison": 1, "stopped": 1}


async def test_draining_an_actor_system_rejects_new_messages_and_finishes_running_work() -> None:
    """A31: mail, messages from handlers, children, and senders that wait for space."""
    async with checked_system() as system:
        notes: list[object] = []
        last = system.spawn(lambda: LowProbe(notes), "last")
        first = system.spawn(Probe, "first")
        opened = anyio.Event()

        async def child() -> None:
            await opened.wait()
            await last.send(Note("from a child"))

        def work(probe: Probe) -> None:
            probe.context.start(child)
            probe.context.send(last, Note("from a handler"))

        await first.send(Do(work))
        async with anyio.create_task_group() as tasks:

            async def drain() -> None:
                assert await system.drain(grace=60)

            tasks.start_soon(drain)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(ShuttingDown):
                await first.send(Note("from outside"))
            with pytest.raises(ShuttingDown):
                system.spawn(Probe, "newcomer")
            opened.set()
        assert notes == ["from a handler", "from a child"]
        assert system.account.dead == {"draining": 1}
        assert system.cells == {}


async def test_draining_an_actor_system_stops_work_that_outlasts_the_grace_period() -> None:
    """A31."""
    async with checked_system(child_timeout=0.02) as system:
        ref = system.spawn(Probe, "probe")
        await hold_actor(ref)
        await ref.send(Note("unhandled"))
        assert not await system.drain(grace=0.02)
        assert system.account.dead == {"stopped": 1}


# Introspection


async def test_the_last_dead_letters_are_kept_and_all_are_counted() -> None:
    """A32."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        await system.stop(ref)
        for number in range(300):
            with pytest.raises(ActorStopped):
                ref.send_nowait(Note(number))
        letters = system.account
        assert len(letters.recent) == 256
        assert letters.dead == {"stopped": 300}
        assert (letters.recent[0].actor, letters.recent[0].message, letters.recent[0].reason) == (
            "probe",
            "Note",
            "stopped",
        )


async def test_watchers_of_an_actor_are_notified_once_even_if_it_has_already_ended() -> None:
    """A33: an exception of one watcher affects no other."""
    ends: list[str] = []
    async with checked_system() as system:
        ref = system.spawn(Probe, "watched")

        def fail() -> None:
            raise ValueError("watcher")

        system.watch(ref, fail)
        system.watch(ref, partial(ends.append, "watched"))
        await system.stop(ref)
        system.watch(ref, partial(ends.append, "watched again"))
        assert ends == ["watched", "watched again"]


class Quiet(Actor[Note]):
    """An actor without hooks and state."""

    __slots__ = ()

    def receive(self, command: Note) -> None:
        """Do nothing."""


async def spawn_idle(system: System, name: str) -> tuple[list[Ref[Note]], float]:
    """Return a thousand idle actors that have handled a message, and the number of objects per actor."""
    gc.collect()
    objects = len(gc.get_objects())
    refs = [system.spawn(Quiet, f"{name} {number}") for number in range(1000)]
    for ref in refs:
        await ref.send(Note(1))
    while system.active:
        await checkpoint()
    gc.collect()
    return refs, (len(gc.get_objects()) - objects) / len(refs)


async def test_an_idle_actor_has_no_task_and_few_objects() -> None:
    """A34: an idle actor consists of its object, its cell and one address.

    The smallest of three counts excludes objects of other threads and of first uses.
    """
    async with checked_system() as system:
        await spawn_idle(system, "first")  # starts the task with which the kernel continues on trio
        before = {task.id for task in anyio.get_running_tasks()}
        counts = [await spawn_idle(system, name) for name in ("one", "two", "three")]
        assert min(objects for _, objects in counts) < 5
        # a task that was ending may have ended
        assert {task.id for task in anyio.get_running_tasks()} <= before
        (ref, *_), _ = counts[0]
        assert sum(map(sys.getsizeof, (ref, ref.receiver, Quiet()))) < 1024


async def test_the_context_of_a_sender_does_not_leak_into_actors() -> None:
    """A34: not into handlers, `on_start` hooks, children or further actors, nor back out of them."""
    seen: list[str] = []

    async def child() -> None:
        seen.append(trace.get())

    class ReadingProbe(Probe):
        def on_start(self, context: Context[Probed]) -> None:
            super().on_start(context)
            seen.append(trace.get())

    def read(probe: Probe) -> None:
        seen.append(trace.get())
        probe.context.start(child)

    async with checked_system() as system:
        trace.set("mine")
        ref, other = system.spawn(ReadingProbe, "probe"), system.spawn(Probe, "other")
        await ref.send(Do(read))
        await ref.send(Do(lambda _: other.send_nowait(Do(read))))
        await system.drain(grace=60)
        assert trace.get() == "mine"
    assert seen == ["none"] * 5
