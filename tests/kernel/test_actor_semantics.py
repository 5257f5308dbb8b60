"""The rules of docs/reference/semantics.md, A1 to A19: order, delivery, full mailboxes, asks, deadlines."""

import asyncio
import threading
from functools import partial

import anyio
import pytest

from actors.errors import ActorFailed, ActorStopped, AskTimeout, AskUphill, KernelError, MailboxFull
from actors.kernel import COALESCE, DROP_OLDEST, REFUSE, SHARED, Mailbox, Ref, Reply, System, spawn
from tests.kernel.kernel_probe import (
    AT_ONCE,
    Do,
    Gate,
    Keep,
    Latest,
    Look,
    Note,
    Probe,
    Probed,
    Solve,
    Urgent,
    blocked,
    boom,
    law,
)

pytestmark = pytest.mark.anyio


class Low(Probe):
    level = 5


# Order


async def test_one_senders_mail_is_handled_in_the_order_it_was_sent() -> None:
    """A1, also when it has to wait for room."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", mailbox=Mailbox(capacity=3))
        for number in range(100):
            await ref.tell(Note(number))
        assert await ref.ask(Look()) == tuple(range(100))


async def test_one_handler_of_an_actor_runs_at_a_time() -> None:
    """A2, also while it waits and while a crash is dealt with."""
    inside = 0

    async def enter(_probe: Probe) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        await anyio.lowlevel.checkpoint()
        inside -= 1

    async with law() as system:
        ref = system.spawn(Probe, "probe")
        async with anyio.create_task_group() as tasks:
            for _ in range(40):
                tasks.start_soon(ref.tell, Do(enter))
        await ref.ask(Look())
        assert system.dead_letters().counts == {}


async def test_control_commands_overtake_mail_but_not_each_other() -> None:
    """A3."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        gate = await blocked(ref)
        for number in range(3):
            await ref.tell(Note(number))
            await ref.tell(Urgent(f"urgent {number}"))
        gate.opened.set()
        assert await ref.ask(Look()) == ("urgent 0", "urgent 1", "urgent 2", 0, 1, 2)


async def test_an_actor_with_endless_mail_starves_neither_others_nor_the_loop() -> None:
    """A4."""
    async with law() as system:
        greedy = system.spawn(Probe, "greedy")

        async def again(probe: Probe) -> None:
            greedy.tell_nowait(Do(again) if probe.notes == [] else Note("the end"))

        greedy.tell_nowait(Do(again))
        other = system.spawn(Probe, "other")
        assert await other.ask(Look()) == ()
        await anyio.lowlevel.checkpoint()
        await greedy.tell(Note("enough"))
        assert "enough" in await greedy.ask(Look())


async def test_a_handler_that_waits_holds_up_its_own_actor_only() -> None:
    """A5, for many at once, and with a message sent by the handler just before it waits."""
    async with law() as system:
        other = system.spawn(Probe, "other")
        gates = [Gate() for _ in range(100)]

        async def tell_and_wait(gate: Gate, probe: Probe) -> None:
            other.tell_nowait(Note("from a handler"))
            await gate(probe)

        for number, gate in enumerate(gates):
            waiting = system.spawn(Probe, f"waiting {number}")
            await waiting.tell(Do(partial(tell_and_wait, gate)))
        for gate in gates:
            await gate.reached.wait()
        assert await other.ask(Look()) == ("from a handler",) * 100
        for gate in gates:
            gate.opened.set()


# Delivery


async def test_tell_returns_before_the_message_is_handled() -> None:
    """A6."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        gate = await blocked(ref)
        await ref.tell(Note(1))
        assert system.counts().queued == 1
        gate.opened.set()
        assert await ref.ask(Look()) == (1,)


async def _tell(ref: Ref[Probed], what: str) -> None:
    await ref.tell(Note(what))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("turns", range(8))
async def test_a_sender_cancelled_natively_at_any_turn_has_sent_once_or_not_at_all(turns: int) -> None:
    """A7, for each turn of the loop in which the cancellation may fall."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", mailbox=Mailbox(capacity=1))
        gate = await blocked(ref)
        await ref.tell(Note("fills"))
        first, second = (asyncio.create_task(_tell(ref, name)) for name in ("first", "second"))
        await anyio.wait_all_tasks_blocked()
        gate.opened.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first, second])
        expected = ("fills", "second") if first.cancelled() else ("fills", "first", "second")
        assert await ref.ask(Look()) == expected


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asks_under_wait_for_end_once_whatever_the_moment() -> None:
    """A7 and A9: native time limits that meet the answer in one turn."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        for _ in range(100):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ref.ask(Keep()), 0)
        assert await asyncio.wait_for(ref.ask(Look()), 60) == ()
        counts = system.counts()
        assert counts.asked == counts.answered + counts.abandoned


async def test_a_late_or_second_answer_falls_into_nothing() -> None:
    """A9."""

    async def answer_twice(_probe: Probe, reply: Reply[str]) -> None:
        reply.send("first")
        reply.send("second")
        reply.fail(ValueError("third"))

    async with law() as system:
        ref = system.spawn(Probe, "probe")
        assert await ref.ask(Solve(answer_twice)) == "first"
        with pytest.raises(AskTimeout):
            await ref.ask(Keep(), timeout=0.01)

        async def answer_late(probe: Probe) -> None:
            probe.kept.pop().send("late")

        await ref.tell(Do(answer_late))
        assert await ref.ask(Look()) == ()
        assert system.counts().answered == 2


async def test_an_answer_may_be_given_after_the_handler_returned() -> None:
    """A9."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")

        async def answer(probe: Probe) -> None:
            probe.kept.pop().send("now")

        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                assert await ref.ask(Keep()) == "now"

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await ref.tell(Do(answer))


async def test_a_refusal_sent_as_the_answer_is_raised_at_the_asker() -> None:
    """A9, also for an error that an event loop would not carry."""

    async def refuse(_probe: Probe, reply: Reply[str]) -> None:
        reply.fail(StopIteration("no"))

    async with law() as system:
        ref = system.spawn(Probe, "probe")
        with pytest.raises(RuntimeError) as caught:
            await ref.ask(Solve(refuse))
        assert isinstance(caught.value.__cause__, StopIteration)
        assert await ref.ask(Look()) == ()


async def test_a_question_that_is_forgotten_fails_at_once() -> None:
    """A10: in the handler, and after it."""

    async def forget(probe: Probe, _reply: Reply[str] | None = None) -> None:
        probe.kept.clear()

    async with law() as system:
        ref = system.spawn(Probe, "probe")
        with pytest.raises(ActorFailed, match="dropped a question"):
            await ref.ask(Solve(forget))
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ActorFailed, match="dropped a question"):
                    await ref.ask(Keep())

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await ref.tell(Do(forget))


async def test_a_question_forgotten_in_a_worker_thread_fails_too() -> None:
    """A10: finalizers run in any thread."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")

        async def forget_elsewhere(probe: Probe) -> None:
            thread = threading.Thread(target=probe.kept.clear)
            thread.start()
            thread.join()

        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ActorFailed):
                    await ref.ask(Keep())

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await ref.tell(Do(forget_elsewhere))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asks_that_follow_each_other_take_one_turn_of_the_loop_each() -> None:
    """The runner that answered still attends: nobody has to be woken for the next."""
    turns, asks = 0, 100

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with law() as system:
        ref = system.spawn(Probe, "probe")
        await ref.ask(Look())
        counting = asyncio.create_task(count())
        for _ in range(asks):
            await ref.ask(Look())
        counting.cancel()
    assert turns <= asks + 2


async def test_a_query_may_be_asked_again_and_told() -> None:
    """A9: the same object, at the same time, and with nobody to answer."""
    query = Look()
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        gate = await blocked(ref)  # so that it is asked while it still waits to be handled
        await ref.tell(query)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ref.ask, query)
            await anyio.wait_all_tasks_blocked()
            gate.opened.set()
        await ref.tell(query)
        assert await ref.ask(query) == ()
        assert system.counts().answered == 4
        assert system.dead_letters().counts == {}


# Full mailboxes


async def test_senders_wait_for_room_in_the_order_they_came() -> None:
    """A11, and a cancelled one gives its place to the next."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", mailbox=Mailbox(capacity=1))
        gate = await blocked(ref)
        await ref.tell(Note("first"))
        scope = anyio.CancelScope()

        async def give_up() -> None:
            with scope:
                await ref.tell(Note("never"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(give_up)
            await anyio.wait_all_tasks_blocked()
            for name in ("second", "third"):
                tasks.start_soon(ref.tell, Note(name))
                await anyio.wait_all_tasks_blocked()
            with pytest.raises(MailboxFull, match="'probe' is full"):
                ref.tell_nowait(Note("refused"))
            scope.cancel()
            await anyio.wait_all_tasks_blocked()
            gate.opened.set()
        assert await ref.ask(Look()) == ("first", "second", "third")
        assert system.dead_letters().counts == {"overflow": 1}


async def test_a_refusing_mailbox_refuses_at_once() -> None:
    """A12."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", mailbox=Mailbox(capacity=1, when_full=REFUSE))
        gate = await blocked(ref)
        await ref.tell(Note(1))
        for attempt in (ref.tell(Note(2)), ref.ask(Look())):
            with pytest.raises(MailboxFull):
                await attempt
        gate.opened.set()
        await anyio.wait_all_tasks_blocked()
        assert await ref.ask(Look()) == (1,)
        assert system.dead_letters().counts == {"overflow": 2}


async def test_drop_oldest_keeps_the_newest_and_fails_the_question_it_drops() -> None:
    """A13."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", mailbox=Mailbox(capacity=2, when_full=DROP_OLDEST))
        gate = await blocked(ref)
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(MailboxFull):
                    await ref.ask(Look())

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            for number in range(4):
                ref.tell_nowait(Note(number))
        gate.opened.set()
        await anyio.wait_all_tasks_blocked()
        assert await ref.ask(Look()) == (2, 3)
        assert system.dead_letters().counts == {"overflow": 3}


async def test_a_coalescing_mailbox_replaces_only_messages_of_the_same_type() -> None:
    """A14."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", mailbox=Mailbox(capacity=2, when_full=COALESCE))
        gate = await blocked(ref)
        await ref.tell(Note("old"))
        await ref.tell(Note("kept"))
        await ref.tell(Note("new"))
        with pytest.raises(MailboxFull):
            await ref.ask(Look())
        gate.opened.set()
        await anyio.wait_all_tasks_blocked()
        assert await ref.ask(Look()) == ("kept", "new")


async def test_the_control_queue_is_bounded_and_coalesces_what_says_so() -> None:
    """A15."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", mailbox=Mailbox(control=2))
        gate = await blocked(ref)
        for number in range(10):
            ref.tell_nowait(Latest(number))
        ref.tell_nowait(Urgent("a"))
        with pytest.raises(MailboxFull):
            ref.tell_nowait(Urgent("b"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ref.tell, Urgent("waits"))
            await anyio.wait_all_tasks_blocked()
            gate.opened.set()
        assert await ref.ask(Look()) == (9, "a", "waits")
        assert system.dead_letters().counts == {"overflow": 10}


async def test_a_handler_waits_for_room_downhill_only() -> None:
    """A16: uphill, or to itself, it is refused at once; downhill it waits."""
    async with law() as system:
        high = system.spawn(Probe, "high", mailbox=Mailbox(capacity=1))
        low = system.spawn(Low, "low", mailbox=Mailbox(capacity=1))
        gate = await blocked(low)
        await low.tell(Note("fills"))
        seen: list[object] = []

        async def tell_down(_probe: Probe) -> None:
            await low.tell(Note("waited"))
            await high.tell(Note("fits"))
            try:
                await high.tell(Note("does not"))
            except MailboxFull as error:
                seen.append(error)

        await high.tell(Do(tell_down))
        await anyio.wait_all_tasks_blocked()
        assert not seen
        gate.opened.set()
        assert await low.ask(Look()) == ("fills", "waited")
        assert await high.ask(Look()) == ("fits",)
        assert len(seen) == 1


# Asks


async def test_a_handler_that_asks_is_refused_and_its_child_is_not() -> None:
    """A17, also for the started hook."""
    answers: list[object] = []
    async with law() as system:
        low = system.spawn(Low, "low")
        high = system.spawn(Probe, "high")

        async def ask() -> None:
            answers.append(await low.ask(Look()))

        async def ask_in_handler(probe: Probe) -> None:
            with pytest.raises(KernelError, match="let a child ask"):
                await low.ask(Look())
            probe.hold.start(ask)

        await high.tell(Do(ask_in_handler))
        await high.ask(Look())
        await system.drain(grace=60)
    assert answers == [()]


@pytest.mark.parametrize(
    ("depth", "level", "allowed"),
    [(0, 5, True), (1, -1, True), (SHARED, 0, True), (0, 0, False), (0, -1, False), (-1, 9, False)],
)
async def test_asks_go_downhill_only(depth: int, level: int, allowed: bool) -> None:
    """A18: by depth, then by level; never to oneself or one's equal."""

    class Other(Probe):
        pass

    Other.level = level
    outcome: list[object] = []
    async with law() as system:
        asker = system.spawn(Probe, "asker")
        other = system.spawn(Other, "other", depth=depth)

        async def ask() -> None:
            try:
                outcome.append(await other.ask(Look()))
            except AskUphill as error:
                outcome.append(error)

        async def start(probe: Probe) -> None:
            probe.hold.start(ask)

        await asker.tell(Do(start))
        await system.drain(grace=60)
    assert (outcome == [()]) == allowed
    assert isinstance(outcome[0], tuple | AskUphill)


# Deadlines


async def test_an_expired_question_is_never_handled() -> None:
    """A19: in the mailbox, or waiting for room in it."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", mailbox=Mailbox(capacity=1))
        gate = await blocked(ref)

        async def solve(probe: Probe, reply: Reply[str]) -> None:
            probe.notes.append("handled")
            reply.send("late")

        for _ in range(2):
            with pytest.raises(AskTimeout, match="'probe' did not answer"):
                await ref.ask(Solve(solve), timeout=0.01)
        gate.opened.set()
        assert await ref.ask(Look(), timeout=60) == ()
        assert system.dead_letters().counts == {"expired": 1}
        assert system.counts().timed_out == 2


async def test_a_question_whose_time_is_over_is_not_sent() -> None:
    """A19."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        with pytest.raises(AskTimeout):
            await ref.ask(Look(), timeout=0)
        assert system.counts().sent == 0


@pytest.mark.parametrize("own", [None, 60.0])
async def test_a_child_inherits_the_deadline_of_the_ask_it_works_for(own: float | None) -> None:
    """A20: the earlier of its own and the inherited one holds."""
    ended: list[object] = []
    async with law() as system:
        low = system.spawn(Low, "low")
        high = system.spawn(Probe, "high")

        async def ask() -> None:
            try:
                await low.ask(Keep(), timeout=own)
            except AskTimeout:
                ended.append("inherited")

        async def start(probe: Probe, reply: Reply[str]) -> None:
            probe.kept.append(reply)
            probe.hold.start(ask)

        with pytest.raises(AskTimeout):
            await high.ask(Solve(start), timeout=0.5)
        await system.drain(grace=60)
    assert ended == ["inherited"]


async def test_an_abandoned_question_is_handled_all_the_same() -> None:
    """A21."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        gate = await blocked(ref)

        async def solve(probe: Probe, reply: Reply[str]) -> None:
            probe.notes.append("handled")
            reply.send("nobody hears this")

        with anyio.move_on_after(0.2):
            await ref.ask(Solve(solve))
        gate.opened.set()
        assert await ref.ask(Look()) == ("handled",)
        assert system.counts().abandoned == 1


async def test_withdrawn_deadlines_do_not_pile_up() -> None:
    """A19: answered asks leave nothing behind that grows."""
    async with System() as system:
        ref = system.spawn(Probe, "probe")
        with anyio.fail_after(60):
            for _ in range(1000):
                await ref.ask(Look(), timeout=3600)
        assert len(system.pool.deadlines) == 0
        assert system.pool.deadlines.husks < 200


async def test_spawn_runs_one_actor_that_is_not_restarted() -> None:
    """A24, for the one-actor system of tests."""
    with anyio.fail_after(60):
        async with spawn(Probe()) as ref:
            await ref.tell(Note(1))
            assert await ref.ask(Look()) == (1,)
            with pytest.raises(ActorFailed):
                await ref.ask(Solve(boom))
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(ActorStopped):
                await ref.tell(Note(2))


def test_a_mailbox_of_no_capacity_is_refused() -> None:
    """A11."""
    with pytest.raises(ValueError, match="at least one"):
        Mailbox(capacity=0)


async def test_a_name_is_taken_until_its_actor_has_ended() -> None:
    """A33."""
    async with law() as system:
        ref = system.spawn(Probe, "probe", restart=AT_ONCE)
        with pytest.raises(KernelError, match="'probe' is running already"):
            system.spawn(Probe, "probe")
        await system.stop(ref)
        assert await system.spawn(Probe, "probe").ask(Look()) == ()
