"""The rules A1 to A18 of docs/reference/semantics.md: order, delivery, full mailboxes, asks, deadlines."""

import asyncio
import threading

import anyio
import pytest
from anyio.lowlevel import checkpoint

from actors.errors import ActorFailed, AskOrderError, AskTimeout, KernelError
from actors.kernel import SHARED, Context, MailboxFull, Ref, Reply, System
from actors.kernel.shared import BATCH, STRETCH
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
    Urgent,
    checked_system,
    hold_actor,
    restarts,
)

pytestmark = pytest.mark.anyio


# Order


async def test_messages_of_one_sender_are_handled_in_order() -> None:
    """A1: also if the sender waits for space, and if some messages are handled at once and others queued."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", capacity=3)
        for number in range(100):
            await ref.send(Note(number))
        assert await ref.ask(GetNotes()) == tuple(range(100))


async def test_messages_sent_by_a_handler_are_handled_in_order_after_the_handler_returns() -> None:
    """A1 and A2: no handler runs inside another, not even one of the same actor."""
    order: list[str] = []
    async with checked_system() as system:
        one, two = system.spawn(Probe, "one"), system.spawn(Probe, "two")

        def note(what: str) -> Do:
            return Do(lambda _: order.append(what))

        def send(_probe: Probe) -> None:
            two.send_nowait(note("first"))
            one.send_nowait(note("to myself"))
            two.send_nowait(note("second"))
            order.append("sent")

        await one.send(Do(send))
        assert order == ["sent", "first", "second", "to myself"]


async def test_a_long_chain_of_actors_causes_no_recursion() -> None:
    """A2."""
    async with checked_system() as system:
        notes: list[object] = []
        refs: list[Ref[Probed]] = [
            system.spawn(lambda: Probe(notes), f"probe {number}") for number in range(5000)
        ]

        def pass_on(number: int) -> Do:
            def deed(probe: Probe) -> None:
                probe.notes.append(number)
                if number + 1 < len(refs):
                    refs[number + 1].send_nowait(pass_on(number + 1))

            return Do(deed)

        await refs[0].send(pass_on(0))
        assert await system.drain(grace=60)
        assert notes == list(range(len(refs)))


async def test_control_commands_overtake_queued_messages_but_not_each_other() -> None:
    """A3."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        context = await hold_actor(ref)
        for number in range(3):
            await ref.send(Note(number))
            await ref.send(Urgent(f"urgent {number}"))
        context.release_messages()
        assert await ref.ask(GetNotes()) == ("urgent 0", "urgent 1", "urgent 2", 0, 1, 2)


async def test_an_actor_with_endless_messages_starves_neither_other_actors_nor_the_event_loop() -> None:
    """A4."""
    async with checked_system() as system:
        greedy = system.spawn(Probe, "greedy")

        def again(probe: Probe) -> None:
            greedy.send_nowait(Do(again) if probe.notes == [] else Note("the end"))

        greedy.send_nowait(Do(again))
        other = system.spawn(Probe, "other")
        assert await other.ask(GetNotes()) == ()
        await checkpoint()
        await greedy.send(Note("enough"))
        assert "enough" in await greedy.ask(GetNotes())


async def test_an_actor_with_many_messages_yields_to_other_actors_and_the_event_loop() -> None:
    """A4: after a batch of one actor's messages, and after a stretch of all messages."""
    order: list[str] = []
    async with checked_system() as system:
        refs: list[Ref[Probed]] = [system.spawn(Probe, name) for name in ("one", "two")]
        contexts = [await hold_actor(ref) for ref in refs]
        for ref in refs:
            for _ in range(STRETCH):
                await ref.send(Do(lambda _, name=ref.name: order.append(name)))  # type: ignore[misc]  # typed as above

        def release(_probe: Probe) -> None:
            for context in contexts:
                context.release_messages()

        await system.spawn(Probe, "third").send(Do(release))
        assert len(order) < STRETCH
        assert order.index("two") == BATCH
        assert await system.drain(grace=60)
        assert len(order) == 2 * STRETCH


@pytest.mark.parametrize("seconds", [0.0, 3600.0])
async def test_a_slow_handler_is_reported(seconds: float) -> None:
    """A5: it cannot be interrupted."""
    slow: list[tuple[str, str]] = []
    with anyio.fail_after(60):
        async with System(slow=seconds, on_slow=lambda name, what, _: slow.append((name, what))) as system:
            await system.spawn(Probe, "probe").send(Note(1))
    assert slow == ([("probe", "Note")] if seconds == 0.0 else [])


# Delivery


async def test_an_idle_actor_handles_a_message_before_send_returns() -> None:
    """A6: mail, a control command and a query; a busy actor queues them."""
    async with checked_system() as system:
        notes: list[object] = []
        ref = system.spawn(lambda: Probe(notes), "probe")
        ref.send_nowait(Note(1))
        await ref.send(Urgent(2))
        assert notes == [1, 2]
        context = await hold_actor(ref)
        await ref.send(Note(3))
        assert system.counts().queued == 1
        context.release_messages()
        assert notes == [1, 2, 3]


async def test_a_task_whose_asks_are_answered_at_once_still_yields_regularly() -> None:
    """A6: at least every 64th message is queued for the next iteration of the loop."""
    turns, asks = 0, 10 * STRETCH
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        async with anyio.create_task_group() as tasks:

            async def count() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await checkpoint()

            tasks.start_soon(count)
            for _ in range(asks):
                await ref.ask(GetNotes())
            tasks.cancel_scope.cancel()
    assert asks / STRETCH - 1 <= turns <= asks / 4


async def _send(ref: Ref[Probed], what: str) -> None:
    await ref.send(Note(what))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("turns", range(8))
async def test_a_natively_cancelled_send_delivers_its_message_once_or_not_at_all(turns: int) -> None:
    """A7: for each iteration of the loop in which the cancellation may arrive."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", capacity=1)
        context = await hold_actor(ref)
        await ref.send(Note("fills"))
        first, second = (asyncio.create_task(_send(ref, name)) for name in ("first", "second"))
        await anyio.wait_all_tasks_blocked()
        context.release_messages()
        for _ in range(turns):
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first, second])
        expected = ("fills", "second") if first.cancelled() else ("fills", "first", "second")
        assert await ref.ask(GetNotes()) == expected


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_ask_with_a_native_timeout_ends_exactly_once() -> None:
    """A7 and A9: native timeouts that coincide with the answer."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        for _ in range(100):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ref.ask(Keep()), 0)
        assert await asyncio.wait_for(ref.ask(GetNotes()), 60) == ()
        counts = system.counts()
        assert counts.asked == counts.answered + counts.unanswered


async def test_a_late_or_second_answer_is_ignored() -> None:
    """A9."""

    def answer_twice(_probe: Probe, reply: Reply[str]) -> None:
        reply.send("first")
        reply.send("second")
        reply.fail(ValueError("third"))

    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        assert await ref.ask(Solve(answer_twice)) == "first"
        with pytest.raises(AskTimeout):
            await ref.ask(Keep(), timeout=0.01)
        await ref.send(Do(lambda probe: probe.kept.pop().send("late")))
        assert await ref.ask(GetNotes()) == ()
        assert system.counts().answered == 2


async def test_an_answer_may_be_sent_after_the_handler_returned() -> None:
    """A9."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                assert await ref.ask(Keep()) == "now"

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await ref.send(Do(lambda probe: probe.kept.pop().send("now")))


async def test_an_error_sent_as_the_answer_is_raised_in_the_asker() -> None:
    """A9: also an exception that an event loop does not transport, such as `StopIteration`."""

    def refuse(_probe: Probe, reply: Reply[str]) -> None:
        reply.fail(StopIteration("no"))

    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        with pytest.raises(RuntimeError) as caught:
            await ref.ask(Solve(refuse))
        assert isinstance(caught.value.__cause__, StopIteration)
        assert await ref.ask(GetNotes()) == ()


async def test_a_query_whose_reply_is_dropped_fails_at_once() -> None:
    """A10: in the handler, and after it."""

    def forget(probe: Probe, _reply: Reply[str] | None = None) -> None:
        probe.kept.clear()

    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        with pytest.raises(ActorFailed, match="dropped a query"):
            await ref.ask(Solve(forget))
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ActorFailed, match="dropped a query"):
                    await ref.ask(Keep())

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await ref.send(Do(forget))


async def test_a_reply_dropped_in_a_worker_thread_fails_its_query() -> None:
    """A10: finalizers run in any thread."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")

        def forget_elsewhere(probe: Probe) -> None:
            thread = threading.Thread(target=probe.kept.clear)
            thread.start()
            thread.join()

        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ActorFailed):
                    await ref.ask(Keep())

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await ref.send(Do(forget_elsewhere))


async def test_one_query_object_may_be_asked_and_sent_several_times() -> None:
    """A9: the same object, concurrently, and without an asker."""
    query = GetNotes()
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        context = await hold_actor(ref)  # so that it is asked again while it is queued
        await ref.send(query)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ref.ask, query)
            await anyio.wait_all_tasks_blocked()
            context.release_messages()
        await ref.send(query)
        assert await ref.ask(query) == ()
        assert system.counts().answered == 4
        assert system.account.dead == {}


# Full mailboxes


async def test_senders_wait_for_space_in_the_order_of_their_arrival() -> None:
    """A11: a cancelled sender gives its place to the next."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", capacity=1)
        context = await hold_actor(ref)
        await ref.send(Note("first"))
        scope = anyio.CancelScope()

        async def give_up() -> None:
            with scope:
                await ref.send(Note("never"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(give_up)
            await anyio.wait_all_tasks_blocked()
            for name in ("second", "third"):
                tasks.start_soon(ref.send, Note(name))
                await anyio.wait_all_tasks_blocked()
            with pytest.raises(MailboxFull, match="'probe' is full"):
                ref.send_nowait(Note("refused"))
            scope.cancel()
            await anyio.wait_all_tasks_blocked()
            context.release_messages()
        assert await ref.ask(GetNotes()) == ("first", "second", "third")
        assert system.account.dead == {"overflow": 1}


async def test_no_message_overtakes_senders_that_wait_for_mailbox_space() -> None:
    """A11: the waiting senders were granted space but have not run yet."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", capacity=2)
        context = await hold_actor(ref)
        for name in ("first", "second"):
            await ref.send(Note(name))
        async with anyio.create_task_group() as tasks:
            for name in ("third", "fourth"):
                tasks.start_soon(ref.send, Note(name))
                await anyio.wait_all_tasks_blocked()
            context.release_messages()
            notes: list[object] = []

            def show(probe: Probe) -> None:
                notes.extend(probe.notes)

            with pytest.raises(MailboxFull):
                ref.send_nowait(Do(show))
            assert notes == []
        seen = await ref.ask(GetNotes())
        assert seen[:2] == ("first", "second")
        assert sorted(map(str, seen[2:])) == ["fourth", "third"]


async def test_the_queue_of_control_commands_has_its_own_size_limit() -> None:
    """A12."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", capacity=2)
        context = await hold_actor(ref)
        ref.send_nowait(Urgent("a"))
        ref.send_nowait(Urgent("b"))
        with pytest.raises(MailboxFull):
            ref.send_nowait(Urgent("c"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ref.send, Urgent("waits"))
            await anyio.wait_all_tasks_blocked()
            context.release_messages()
        assert await ref.ask(GetNotes()) == ("a", "b", "waits")
        assert system.account.dead == {"overflow": 1}


async def test_an_actor_handles_no_message_while_its_outgoing_messages_wait_for_space() -> None:
    """A13: several messages that one handler sends downhill arrive in order."""
    async with checked_system() as system:
        high, low = system.spawn(Probe, "high"), system.spawn(LowProbe, "low", capacity=1)
        context = await hold_actor(low)
        await low.send(Note("fills"))

        def send(probe: Probe) -> None:
            for number in range(3):
                probe.context.send(low, Note(number))

        await high.send(Do(send))
        await high.send(Note("later"))
        await anyio.wait_all_tasks_blocked()
        assert system.counts().queued == 2
        context.release_messages()
        assert await high.ask(GetNotes()) == ("later",)
        assert await low.ask(GetNotes()) == ("fills", 0, 1, 2)


async def test_a_handler_that_sends_to_a_full_mailbox_of_an_equal_or_higher_actor_is_refused() -> None:
    """A13: also by actors of the same level."""
    async with checked_system() as system:
        one, two = system.spawn(Probe, "one"), system.spawn(Probe, "two", capacity=1)
        context = await hold_actor(two)

        def send(probe: Probe) -> None:
            probe.context.send(two, Note("fits"))
            try:
                probe.context.send(two, Note("does not"))
            except MailboxFull:
                probe.notes.append("refused")

        await one.send(Do(send))
        assert await one.ask(GetNotes()) == ("refused",)
        context.release_messages()
        assert await two.ask(GetNotes()) == ("fits",)


async def test_an_actor_on_hold_handles_nothing_until_its_child_has_ended() -> None:
    """A14: with a holding child, started by a handler or by the `on_start` hook."""
    opened = anyio.Event()

    class LoadingProbe(Probe):
        def on_start(self, context: Context[Probed]) -> None:
            super().on_start(context)
            context.start(self.load, holds=True)

        async def load(self) -> None:
            await opened.wait()
            self.notes.append("loaded")

    async with checked_system() as system:
        ref = system.spawn(LoadingProbe, "loading")
        await ref.send(Note("mail"))
        await ref.send(Urgent("control"))
        await anyio.wait_all_tasks_blocked()
        assert system.counts().queued == 2
        opened.set()
        assert await ref.ask(GetNotes()) == ("loaded", "control", "mail")


async def test_each_hold_of_an_actor_needs_a_release_by_a_context_of_the_same_generation() -> None:
    """A14, and A19: a context from before a crash has no effect."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", restart=AT_ONCE)
        old = await hold_actor(ref)
        old.hold_messages()
        old.fail(ValueError("while it is held"))
        await anyio.wait_all_tasks_blocked()
        new = await hold_actor(ref)
        old.release_messages()
        old.release_messages()
        old.fail(ValueError("once more"))
        await ref.send(Note(1))
        assert system.counts().queued == 1
        new.hold_messages()
        new.release_messages()
        assert system.counts().queued == 1
        new.release_messages()
        assert await ref.ask(GetNotes()) == (1,)
        assert restarts(system) == [1]


# Asks


@pytest.mark.parametrize(
    ("depth", "level", "allowed"),
    [(0, 5, True), (1, -1, True), (SHARED, 0, True), (0, 0, False), (0, -1, False), (-1, 9, False)],
)
async def test_an_actor_may_ask_only_actors_of_a_lower_level(depth: int, level: int, allowed: bool) -> None:
    """A15: by depth, then by level; never to oneself or an equal."""

    class Other(Probe):
        pass

    Other.level = level
    outcome: list[object] = []
    async with checked_system() as system:
        asker = system.spawn(Probe, "asker")
        other = system.spawn(Other, "other", depth=depth)

        async def ask() -> None:
            try:
                outcome.append(await other.ask(GetNotes()))
            except AskOrderError as error:
                outcome.append(error)

        await asker.send(Do(lambda probe: probe.context.start(ask)))
        await system.drain(grace=60)
    assert (outcome == [()]) == allowed
    assert isinstance(outcome[0], tuple | AskOrderError)


# Deadlines


async def test_an_expired_query_is_never_handled() -> None:
    """A16: neither in the mailbox nor while it waits for space."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", capacity=1)
        context = await hold_actor(ref)

        def solve(probe: Probe, reply: Reply[str]) -> None:
            probe.notes.append("handled")
            reply.send("late")

        for _ in range(2):
            with pytest.raises(AskTimeout, match="'probe' did not answer"):
                await ref.ask(Solve(solve), timeout=0.01)
        context.release_messages()
        assert await ref.ask(GetNotes(), timeout=60) == ()
        assert system.account.dead == {"expired": 1}
        assert system.counts().unanswered == 2


async def test_a_query_without_remaining_time_is_not_sent() -> None:
    """A16."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        with pytest.raises(AskTimeout):
            await ref.ask(GetNotes(), timeout=0)
        assert system.counts().sent == 0


@pytest.mark.alternating  # takes half a second each
@pytest.mark.parametrize("own", [None, 60.0])
async def test_a_child_task_inherits_the_deadline_of_the_ask_that_started_the_task(own: float | None) -> None:
    """A17: the earlier of its own and the inherited deadline applies."""
    ended: list[object] = []
    async with checked_system() as system:
        low = system.spawn(LowProbe, "low")
        high = system.spawn(Probe, "high")

        async def ask() -> None:
            try:
                await low.ask(Keep(), timeout=own)
            except AskTimeout:
                ended.append("inherited")

        def start(probe: Probe, reply: Reply[str]) -> None:
            probe.kept.append(reply)
            probe.context.start(ask)

        with pytest.raises(AskTimeout):
            await high.ask(Solve(start), timeout=0.5)
        await system.drain(grace=60)
    assert ended == ["inherited"]


async def test_an_abandoned_query_is_still_handled() -> None:
    """A18."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        context = await hold_actor(ref)

        def solve(probe: Probe, reply: Reply[str]) -> None:
            probe.notes.append("handled")
            reply.send("nobody hears this")

        with anyio.move_on_after(0.2):
            await ref.ask(Solve(solve))
        context.release_messages()
        assert await ref.ask(GetNotes()) == ("handled",)
        assert system.counts().unanswered == 1


async def test_the_deadlines_of_answered_asks_are_removed() -> None:
    """A16: the list of pending deadlines does not grow with answered asks."""
    async with System() as system:
        ref = system.spawn(Probe, "probe")
        context = await hold_actor(ref)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:

                async def ask() -> None:
                    await ref.ask(GetNotes(), timeout=3600)

                for _ in range(200):
                    tasks.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                assert system.deadlines.pending == 200
                context.release_messages()
        assert system.deadlines.pending == 0
        assert len(system.deadlines._heap) < 200


async def test_the_name_of_an_actor_stays_reserved_until_the_actor_has_ended() -> None:
    """A30."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe", restart=AT_ONCE)
        with pytest.raises(KernelError, match="'probe' is already running"):
            system.spawn(Probe, "probe")
        await system.stop(ref)
        assert await system.spawn(Probe, "probe").ask(GetNotes()) == ()
