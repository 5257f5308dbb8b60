"""The rules of docs/reference/semantics.md, A22 to A38: crash, restart, cancel, stop, drain, introspection."""

import asyncio
import gc
import sys
from contextlib import suppress
from contextvars import ContextVar

import anyio
import pytest
from anyio.lowlevel import checkpoint

from actors.errors import ActorFailed, ActorStopped, Draining, KernelError
from actors.kernel import Actor, Context, Mailbox, Ref, Restart, State, Strategy, System, Terminated
from actors.kernel.runner import STRETCH
from actors.kernel.system import SHARED
from tests.kernel.kernel_probe import (
    AT_ONCE,
    Do,
    Gate,
    Keep,
    Look,
    Note,
    Probe,
    Probed,
    Solve,
    blocked,
    boom,
    law,
)

pytestmark = pytest.mark.anyio

trace: ContextVar[str] = ContextVar("trace", default="none")


def state(system: System, name: str) -> State:
    """Return where the actor is in its life, as the tree tells it."""
    return next(info.state for info in system.tree() if info.name == name)


# Crash and restart


async def test_a_crash_fails_its_asker_and_keeps_the_mail() -> None:
    """A22: the cause is chained, the message is not tried again, the object is new and was started."""
    built: list[Probe] = []
    notes: list[object] = []

    def build() -> Probe:
        built.append(Probe(notes))
        return built[-1]

    async with law() as system:
        ref = system.spawn(build, "probe", restart=AT_ONCE)
        gate = await blocked(ref)
        await ref.tell(Do(boom))
        await ref.tell(Note("kept"))
        gate.opened.set()
        assert await ref.ask(Look()) == ("kept",)
        with pytest.raises(ActorFailed, match="crashed with ValueError") as caught:
            await ref.ask(Solve(boom))
        assert isinstance(caught.value.__cause__, ValueError)
        assert await ref.ask(Look()) == ("kept",)
        assert len(built) == 3
        assert built[2].hold.name == "probe"
        assert system.dead_letters().counts == {"poison": 2}


async def test_a_crash_fails_the_questions_the_actor_had_kept() -> None:
    """A22."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", restart=AT_ONCE)
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ActorFailed, match="crashed with ValueError"):
                    await ref.ask(Keep())

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await ref.tell(Do(boom))


async def test_a_crash_in_the_factory_or_the_started_hook_counts_as_any_other() -> None:
    """A22: the first factory call raises at spawn, later ones are crashes."""
    calls = 0

    class Stubborn(Probe):
        async def started(self, context: Context[Probed]) -> None:
            nonlocal calls
            calls += 1
            if calls in (1, 2):
                raise ValueError("not yet")
            await super().started(context)

    async with law() as system:
        with pytest.raises(ZeroDivisionError):
            system.spawn(lambda: Probe([1 // 0]), "never")
        ref = system.spawn(Stubborn, "stubborn", restart=AT_ONCE)
        assert await ref.ask(Look()) == ()
        assert calls == 3


async def test_the_delay_before_a_restart_doubles_and_comes_from_the_seed() -> None:
    """A23."""

    async def delays(seed: int) -> list[float]:
        async with System(seed=seed) as system:
            group = system.group("group", restart=Restart(backoff=(1.0, 3.0)))
            unit = group.unit
            assert unit is not None
            found = []
            for crashes in range(1, 5):
                unit.crashes.append(crashes)
                found.append(unit.delay())
            return found

    first = await delays(7)
    assert first == await delays(7)
    assert first != await delays(8)
    for delay, most in zip(first, (1.0, 2.0, 3.0, 3.0), strict=True):
        assert most / 2 <= delay <= most


async def test_an_actor_that_crashes_too_often_is_given_up_and_its_mail_is_dead() -> None:
    """A24: watchers are told, its name is free, others are not touched."""
    ends: list[Terminated] = []
    async with law() as system:
        other = system.spawn(Probe, "other")
        ref = system.spawn(Probe, "probe", restart=Restart(intensity=1, backoff=(0.0, 0.0)))
        system.watch(ref, ends.append)
        gate = await blocked(ref)
        for command in (Do(boom), Do(boom), Note("unhandled")):
            await ref.tell(command)
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ActorStopped, match="faulted"):
                    await ref.ask(Look())

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            gate.opened.set()
        assert [(end.name, end.faulted, type(end.error)) for end in ends] == [("probe", True, ValueError)]
        assert state(system, "probe") is State.FAULTED
        with pytest.raises(ActorStopped, match="'probe' is faulted"):
            await ref.tell(Note("too late"))
        assert system.dead_letters().counts == {"poison": 2, "unhandled": 2, "stopped": 1}
        assert await other.ask(Look()) == await system.spawn(Probe, "probe").ask(Look()) == ()


async def test_crashes_longer_ago_than_the_period_are_forgotten() -> None:
    """A24."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", restart=Restart(intensity=1, period=0.0, backoff=(0.0, 0.0)))
        for _ in range(5):
            with pytest.raises(ActorFailed):
                await ref.ask(Solve(boom))
        assert await ref.ask(Look()) == ()


async def test_a_one_for_all_group_restarts_together_in_start_order() -> None:
    """A25: also a member whose handler waits, once it is done; mail is kept; the budget is the group's."""
    order: list[str] = []

    class Member(Probe):
        async def started(self, context: Context[Probed]) -> None:
            await super().started(context)
            order.append(context.name)

    async with law() as system:
        group = system.group("group", Strategy.ONE_FOR_ALL, Restart(intensity=1, backoff=(0.0, 0.0)))
        one, two, three = (system.spawn(Member, name, group=group) for name in ("one", "two", "three"))
        alone = system.spawn(Member, "alone")
        assert await alone.ask(Look()) == ()
        gate = await blocked(one)
        await one.tell(Note("kept"))
        await two.tell(Do(boom))
        await anyio.wait_all_tasks_blocked()
        assert state(system, "two") is State.RESTARTING
        assert order == ["one", "two", "three", "alone"]
        gate.opened.set()
        assert await one.ask(Look()) == ("kept",)
        assert await three.ask(Look()) == ()
        assert order[4:] == ["one", "two", "three"]
        await three.tell(Do(boom))
        await anyio.wait_all_tasks_blocked()
        assert [state(system, name) for name in ("one", "two", "three")] == [State.FAULTED] * 3
        assert await alone.ask(Look()) == ()


async def test_a_member_that_hangs_is_cut_off_so_that_its_group_can_restart() -> None:
    """A25 and A31."""
    async with law(patience=0.02) as system:
        group = system.group("group", restart=AT_ONCE)
        hung = system.spawn(Probe, "hung", group=group)
        crashing = system.spawn(Probe, "crashing", group=group)
        gate = Gate()
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ActorFailed):
                    await hung.ask(Solve(gate))

            tasks.start_soon(ask)
            await gate.reached.wait()
            await crashing.tell(Do(boom))
        assert await hung.ask(Look()) == ()
        assert await crashing.ask(Look()) == ()
        assert [info.restarts for info in system.tree()] == [1, 1]


async def test_a_one_for_one_group_restarts_the_crashed_member_only() -> None:
    """A25."""
    async with law() as system:
        group = system.group("group", Strategy.ONE_FOR_ONE)
        one, two = (system.spawn(Probe, name, group=group, restart=AT_ONCE) for name in ("one", "two"))
        with pytest.raises(ActorFailed):
            await one.ask(Solve(boom))
        assert await one.ask(Look()) == await two.ask(Look()) == ()
        assert [info.restarts for info in system.tree()] == [1, 0]


async def test_a_childs_failure_is_its_actors_crash_and_ends_its_siblings_first() -> None:
    """A26: the new object starts when every child of the old one has ended."""
    events: list[str] = []

    class Parent(Probe):
        async def started(self, context: Context[Probed]) -> None:
            await super().started(context)
            events.append("started")

    async def sibling() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            events.append("sibling ended")

    async def failing() -> None:
        await checkpoint()
        raise ValueError("child")

    async def start(probe: Probe) -> None:
        probe.hold.start(sibling)
        probe.hold.start(failing)

    async with law() as system:
        ref = system.spawn(Parent, "parent", restart=AT_ONCE)
        await ref.tell(Do(start))
        await anyio.wait_all_tasks_blocked()
        assert await ref.ask(Look()) == ()
        assert events == ["started", "sibling ended", "started"]


async def test_a_cancelled_child_is_no_failure() -> None:
    """A26."""

    async def start_and_cancel(probe: Probe) -> None:
        probe.hold.start(anyio.sleep_forever).cancel()

    async with law() as system:
        ref = system.spawn(Probe, "probe")
        await ref.tell(Do(start_and_cancel))
        await anyio.wait_all_tasks_blocked()
        (info,) = system.tree()
        assert (info.children, info.restarts) == (0, 0)


async def test_an_actor_that_is_ending_starts_no_child() -> None:
    """A26."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        probes: list[Probe] = []

        async def show(probe: Probe) -> None:
            probes.append(probe)

        await ref.tell(Do(show))
        await ref.ask(Look())
        await system.stop(ref)
        with pytest.raises(ActorStopped, match="starts no child"):
            probes[0].hold.start(anyio.sleep_forever)


async def test_a_cancellation_nobody_asked_for_is_a_crash_and_not_the_runners_end() -> None:
    """A27: raised by a handler, and by a child."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await checkpoint()
        except anyio.get_cancelled_exc_class() as error:
            stray = error
            raise

    async def astray(_probe: Probe | None = None, _reply: object = None) -> None:
        raise stray

    async def start(probe: Probe) -> None:
        probe.hold.start(astray)

    async with law() as system:
        ref = system.spawn(Probe, "probe", restart=AT_ONCE)
        with pytest.raises(ActorFailed):
            await ref.ask(Solve(astray))
        await ref.tell(Do(start))
        await anyio.wait_all_tasks_blocked()
        assert await ref.ask(Look()) == ()
        assert system.tree()[0].restarts == 2


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_runner_cancelled_natively_lives_on() -> None:
    """A27: in a handler, which is a crash; and just after an answer, or while it is idle, which is nothing."""

    async def cancel_myself(_probe: Probe, _reply: object = None) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async with law() as system:
        ref = system.spawn(Probe, "probe", restart=AT_ONCE)
        with pytest.raises(ActorFailed):
            await ref.ask(Solve(cancel_myself))
        assert await ref.ask(Look()) == ()
        for turns in range(4):
            for _ in range(turns):
                await asyncio.sleep(0)
            for task in asyncio.all_tasks():
                if task.get_name() == "runner":
                    task.cancel()
            assert await ref.ask(Look()) == ()
        assert system.tree()[0].restarts == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_busy_runner_cancelled_natively_lives_on() -> None:
    """A27: where it lets other tasks have their turn."""
    handled = 0

    async def cancel_soon(_probe: Probe) -> None:
        nonlocal handled
        handled += 1
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)  # by then the runner has given way

    async with law() as system:
        ref = system.spawn(Probe, "probe", mailbox=Mailbox(2 * STRETCH))
        for _ in range(2 * STRETCH):
            ref.tell_nowait(Do(cancel_soon))
        await anyio.wait_all_tasks_blocked()
        assert await ref.ask(Look()) == ()
        assert system.tree()[0].restarts == 0
        handled *= 10  # the system's block was not ended early, which would look like its end
    assert handled == 20 * STRETCH


async def test_a_base_exception_passes_out_of_the_system() -> None:
    """A28: bare, and every question ends."""

    class Fatal(BaseException):
        pass

    async def fatal(_probe: Probe) -> None:
        raise Fatal

    async def run() -> None:
        async with system:
            refs.append(system.spawn(Probe, "probe"))
            await refs[0].tell(Do(fatal))
            await refs[0].ask(Look())

    refs: list[Ref[Probed]] = []
    system = System()
    with anyio.fail_after(60), pytest.raises(Fatal):
        await run()
    assert system.counts().pending == 0
    with pytest.raises(ActorStopped):
        await refs[0].ask(Look())


async def test_an_error_in_the_block_leaves_it_bare() -> None:
    """A28."""

    async def run() -> None:
        async with System() as system:
            system.spawn(Probe, "probe")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await run()


async def test_crashes_are_reported() -> None:
    """A22: to the function the host gave."""
    crashes: list[tuple[str, str]] = []
    with anyio.fail_after(60):
        async with System(on_crash=lambda name, error: crashes.append((name, str(error)))) as system:
            ref = system.spawn(Probe, "probe", restart=AT_ONCE)
            await ref.tell(Do(boom))
            await ref.ask(Look())
    assert crashes == [("probe", "boom")]


# Cancel, stop, drain


class Tidy(Probe):
    """Writes down that it was stopped."""

    async def stopped(self) -> None:
        await checkpoint()
        self.notes.append(f"{self.hold.name} stopped")


async def test_a_cancelled_host_still_stops_its_actors_in_reverse_order() -> None:
    """A29 and A32."""
    notes: list[object] = []
    with anyio.fail_after(60), anyio.CancelScope() as host:
        async with System() as system:
            for name in ("one", "two", "three"):
                await system.spawn(lambda: Tidy(notes), name).ask(Look())
            host.cancel()
            await anyio.sleep_forever()
    assert notes == ["three stopped", "two stopped", "one stopped"]


async def test_who_asks_is_stopped_before_who_is_asked_whoever_came_first() -> None:
    """A32."""
    notes: list[object] = []
    with anyio.fail_after(60):
        async with System() as system:
            for name, depth in (("above", 0), ("middle", 1), ("below", SHARED), ("another", 0)):
                await system.spawn(lambda: Tidy(notes), name, depth=depth).ask(Look())
    assert notes == ["another stopped", "above stopped", "middle stopped", "below stopped"]


async def test_stop_lets_the_handler_finish_and_buries_the_rest() -> None:
    """A30."""
    notes: list[object] = []

    async def ended(probe: Probe) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            notes.append("child ended")

    async def start_child_and_wait(probe: Probe) -> None:
        probe.hold.start(ended, probe)
        await gate(probe)
        notes.append("handled")

    gate = Gate()
    async with law() as system:
        ref = system.spawn(lambda: Tidy(notes), "probe")
        await ref.tell(Do(start_child_and_wait))
        await gate.reached.wait()
        await ref.tell(Note("never"))
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ActorStopped):
                    await ref.ask(Look())

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(system.stop, ref)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(ActorStopped, match="'probe' is stopping"):
                ref.tell_nowait(Note("too late"))
            gate.opened.set()
        await system.stop(ref)
        assert notes == ["handled", "child ended", "probe stopped"]
        assert system.tree() == ()
        assert system.dead_letters().counts == {"stopped": 3}


async def test_a_sender_waiting_for_room_hears_that_the_actor_stopped() -> None:
    """A30."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", mailbox=Mailbox(capacity=1))
        gate = await blocked(ref)
        await ref.tell(Note("fills"))
        async with anyio.create_task_group() as tasks:

            async def tell() -> None:
                with pytest.raises(ActorStopped):
                    await ref.tell(Note("waits"))

            tasks.start_soon(tell)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(system.stop, ref)
            await anyio.wait_all_tasks_blocked()
            gate.opened.set()


async def test_an_actor_may_stop_itself_from_its_handler() -> None:
    """A30."""

    async def stop(probe: Probe) -> None:
        await probe.hold.system.stop(probe.hold.ref)
        probe.notes.append("handler went on")

    notes: list[object] = []
    async with law() as system:
        ref = system.spawn(lambda: Tidy(notes), "probe")
        await ref.tell(Do(stop))
        await anyio.wait_all_tasks_blocked()
        assert system.tree() == ()
    assert notes == ["handler went on", "probe stopped"]


async def test_a_hung_handler_hook_or_child_delays_a_stop_by_the_systems_patience_only() -> None:
    """A31."""

    class Hanging(Probe):
        async def stopped(self) -> None:
            await anyio.sleep_forever()

    async def stay() -> None:
        with anyio.CancelScope(shield=True):
            await release.wait()

    async def start_and_hang(probe: Probe) -> None:
        probe.hold.start(stay)
        await anyio.sleep_forever()

    release = anyio.Event()
    async with law(patience=0.02) as system:
        ref = system.spawn(Hanging, "hanging")
        await ref.tell(Do(start_and_hang))
        await anyio.wait_all_tasks_blocked()
        await system.stop(ref)
        release.set()
        other = system.spawn(Probe, "other")
        assert await other.ask(Look()) == ()


async def test_a_handler_that_swallows_its_cancellation_does_not_keep_its_actor() -> None:
    """A31."""

    async def swallow(_probe: Probe) -> None:
        with suppress(BaseException):  # what a careless handler does
            await anyio.sleep_forever()

    async with law(patience=0.02) as system:
        notes: list[object] = []
        ref = system.spawn(lambda: Tidy(notes), "careless")
        await ref.tell(Do(swallow))
        await anyio.wait_all_tasks_blocked()
        await system.stop(ref)
        assert notes == ["careless stopped"]


async def test_an_actor_may_be_stopped_while_it_waits_for_its_restart() -> None:
    """A30."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", restart=Restart(backoff=(3600.0, 3600.0)))
        await ref.tell(Do(boom))
        await ref.tell(Note("kept so far"))
        await anyio.wait_all_tasks_blocked()
        assert state(system, "probe") is State.RESTARTING
        await system.stop(ref)
        assert system.dead_letters().counts == {"poison": 1, "stopped": 1}


async def test_drain_refuses_newcomers_and_finishes_what_is_under_way() -> None:
    """A34: mail, what handlers send each other, and children."""
    async with law() as system:
        last = system.spawn(Probe, "last")
        first = system.spawn(Probe, "first")
        gate = Gate()

        async def child() -> None:
            await gate.opened.wait()
            await last.tell(Note("from a child"))

        async def work(probe: Probe) -> None:
            probe.hold.start(child)
            last.tell_nowait(Note("from a handler"))

        notes: list[object] = []

        async def show(probe: Probe) -> None:
            notes.append(probe.notes)

        await last.tell(Do(show))
        await first.tell(Do(work))
        async with anyio.create_task_group() as tasks:

            async def drain() -> None:
                assert await system.drain(grace=60)

            tasks.start_soon(drain)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(Draining):
                await first.tell(Note("from outside"))
            with pytest.raises(Draining):
                system.spawn(Probe, "newcomer")
            gate.opened.set()
        assert notes == [["from a handler", "from a child"]]
        assert system.dead_letters().counts == {"draining": 1}
        assert system.tree() == ()


async def test_drain_stops_what_outlasts_its_grace() -> None:
    """A34."""
    async with law(patience=0.02) as system:
        ref = system.spawn(Probe, "probe")
        await blocked(ref)
        await ref.tell(Note("unhandled"))
        assert not await system.drain(grace=0.02)
        assert system.dead_letters().counts == {"stopped": 2}


# Introspection


async def test_the_last_dead_letters_are_kept_and_all_are_counted() -> None:
    """A35."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        await system.stop(ref)
        for number in range(300):
            with pytest.raises(ActorStopped):
                ref.tell_nowait(Note(number))
        letters = system.dead_letters()
        assert len(letters.recent) == 256
        assert letters.counts == {"stopped": 300}
        assert (letters.recent[0].actor, letters.recent[0].message, letters.recent[0].reason) == (
            "probe",
            "Note",
            "stopped",
        )


async def test_the_tree_shows_each_actor_as_it_stands() -> None:
    """A36."""
    async with law() as system:
        ref = system.spawn(Probe, "busy")
        system.spawn(Probe, "idle")
        gate = await blocked(ref)
        await ref.tell(Note(1))
        await checkpoint()
        busy, idle = system.tree()
        assert (busy.name, busy.state, busy.mail, busy.current) == ("busy", State.RUNNING, 1, "Do")
        assert busy.oldest > 0
        assert (idle.name, idle.mail, idle.control, idle.oldest, idle.current) == ("idle", 0, 0, 0.0, None)
        gate.opened.set()
        await ref.ask(Look())
        assert system.tree()[0].handled == 3


async def test_watchers_are_told_once_that_an_actor_ended_even_if_they_come_late() -> None:
    """A37: by a call, by a control message; one that raises disturbs nobody; one that left hears nothing."""
    ends: list[str] = []
    async with law() as system:
        ref = system.spawn(Probe, "watched")
        watcher = system.spawn(Probe, "watcher")

        async def watch(probe: Probe) -> None:
            probe.hold.watch(ref)

        def fail(_end: Terminated) -> None:
            raise ValueError("watcher")

        def gone(end: Terminated) -> None:
            ends.append("gone")

        await watcher.tell(Do(watch))
        await watcher.ask(Look())
        system.watch(ref, fail)
        system.watch(ref, lambda end: ends.append(end.name))
        system.watch(ref, gone)()
        await system.stop(ref)
        system.watch(ref, lambda end: ends.append(f"{end.name} again"))
        assert ends == ["watched", "watched again"]
        assert await watcher.ask(Look()) == (("watched", "stopped"),)


class Quiet(Actor[Note]):
    """Has no hooks and no state."""

    __slots__ = ()

    async def receive(self, command: Note) -> None:
        """Do nothing."""


async def test_idle_actors_cost_no_task_and_few_objects() -> None:
    """A38."""
    async with law() as system:
        before = anyio.get_running_tasks()
        gc.collect()
        objects = len(gc.get_objects())
        refs = [system.spawn(Quiet, f"quiet {number}") for number in range(1000)]
        assert len(anyio.get_running_tasks()) == len(before)
        for ref in refs:
            await ref.tell(Note(1))
        await anyio.wait_all_tasks_blocked()
        gc.collect()
        assert (len(gc.get_objects()) - objects) / len(refs) < 4
        assert len(anyio.get_running_tasks()) <= len(before) + 1
        size = sys.getsizeof(refs[0]) + sys.getsizeof(Quiet())
        assert size < 1024


async def test_runner_tasks_beyond_the_limit_end_when_they_are_idle() -> None:
    """A38."""
    with anyio.fail_after(60):
        async with System(runners=2) as system:
            refs: list[Ref[Probed]] = [system.spawn(Probe, f"probe {number}") for number in range(20)]
            gates = [await blocked(ref) for ref in refs]
            assert len(anyio.get_running_tasks()) > 20
            for gate in gates:
                gate.opened.set()
            await anyio.wait_all_tasks_blocked()
            assert sum(task.name == "runner" for task in anyio.get_running_tasks()) == 2


async def test_a_senders_context_does_not_leak_into_actors() -> None:
    """A38: context variables are no channel between actors."""
    seen: list[str] = []

    async def read(_probe: Probe | None = None) -> None:
        seen.append(trace.get())

    async def start(probe: Probe) -> None:
        probe.hold.start(read)

    async with law() as system:
        trace.set("mine")
        ref = system.spawn(Probe, "probe")
        await ref.tell(Do(read))
        await ref.tell(Do(start))
        await system.drain(grace=60)
    assert seen == ["none", "none"]


async def test_a_system_that_is_not_entered_says_so() -> None:
    """A38."""
    with pytest.raises(KernelError, match="async with System"):
        System().spawn(Probe, "probe")
