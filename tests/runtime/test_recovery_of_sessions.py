"""A crash at any event of a session's log: each ask and each turn ends once, and dead actors have no effect.

At its end, every runtime of these tests compares each session with its rebuilt log (`tests.runtime_support`).
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest

from actors import Runtime
from actors.config import Config, FileSettings
from actors.core.log.call_events import Cancelled, Returned, Started
from actors.core.log.codec import encode_event
from actors.core.log.events import (
    AskStarted,
    Closed,
    LogEvent,
    Opened,
    RequestSent,
    RoundEnded,
    SwitchQueued,
    TurnEnded,
    TurnStarted,
)
from actors.core.session.publishing import Publisher
from actors.core.stream_events.ask_events import CompleteEvent, ErrorEvent
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.round_events import ToolResultsEvent
from actors.core.values.identity import CallId
from actors.errors import JournalError, SessionError
from actors.journal.journal_actor import JournalActor
from actors.journal.log import Generation, MemoryUse, TotalMemory
from actors.journal.storage import PAGE, Appended, Entry, LogPage, decode_page
from actors.journal.storage.memory import MemoryStorage
from actors.kernel import Ref, System
from actors.kernel.system import SHARED
from actors.runtime.handle import Session
from actors.session.commands import EndWritten, Finished
from actors.testing import Call, Say, Turn
from tests.runtime.test_rebuild import UnknownCommand, crash
from tests.runtime_support import Gate, anthropic, log, openai, runtime_with, wait_for_result
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

VICTIMS = ["session", "ledger", "renderer", "scheduler"]
WORK = Turn(Call("work", {"name": "a"}), Call("work", {"name": "b"}))


class HookedStorage(MemoryStorage):
    """A storage that calls `hook` before or after append number `at`."""

    def __init__(self, at: int, *, after: bool = True) -> None:
        super().__init__()
        self.hook: Callable[[], None] | None = None
        self._at, self._after = at, after
        self._count = 0

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        hook = self.hook if self._count == self._at else None
        self._count += 1
        if hook is not None and not self._after:
            hook()
        numbers = super().append(entries)
        if hook is not None and self._after:
            hook()
        return numbers


class HeldStorage(MemoryStorage):
    """A blocking storage: the first append of a `kind` of event waits for `freed`, and fails if `fails`."""

    blocking = True

    def __init__(self, kind: type[LogEvent], *, fails: bool = False) -> None:
        super().__init__()
        self._kind: type[LogEvent] | None = kind
        self._fails = fails
        self.begun, self.freed = anyio.Event(), threading.Event()

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        events = [event for entry in entries for event in entry.events]
        if self._kind is not None and any(isinstance(event, self._kind) for event in events):
            self._kind = None
            anyio.from_thread.run_sync(self.begun.set)
            assert self.freed.wait(60)
            if self._fails:
                raise JournalError("no room")
        return super().append(entries)


def restarts(runtime: Runtime, session: Session) -> int:
    """Return the number of restarts of a session's actors."""
    return runtime._system.cells[f"{session.id}/session"].restarts


async def wait_for_restart(runtime: Runtime, session: Session) -> None:
    """Wait until the session's actors have restarted."""
    while not restarts(runtime, session):
        await anyio.lowlevel.checkpoint()
    for _ in range(50):
        await anyio.lowlevel.checkpoint()


def crash_later(session: Session, which: str) -> Callable[[], None]:
    """Return a function that crashes one of a session's actors."""
    ref: Ref[Any] = (
        session._session if which == "session" else getattr(session._refs, which)
    )  # Any: as in `crash`
    return lambda: ref.send_nowait(UnknownCommand())


def assert_orderly(events: list[LogEvent]) -> None:
    """Check that turns end once and do not overlap, events are inside their turn, and ended calls never start."""
    turn: int | None = None
    never: set[str] = set()
    for event in events:
        if isinstance(event, TurnStarted):
            assert turn is None
            turn = event.turn
        elif isinstance(event, TurnEnded):
            assert event.turn == turn
            turn = None
        elif isinstance(event, RequestSent | RoundEnded):
            assert event.turn == turn
        elif isinstance(event, Cancelled) and event.reason == "never_started":
            never.add(event.call_id)
        elif isinstance(event, Started | Returned):
            assert event.call_id not in never
    assert turn is None
    bound = [event.turn for event in events if isinstance(event, TurnStarted)]
    assert bound == list(range(1, len(bound) + 1))
    asks = [event.ask for event in events if isinstance(event, AskStarted)]
    assert asks == list(range(1, len(asks) + 1))


def assert_ended_once(events: list[SessionEvent], stored: list[LogEvent]) -> None:
    """Check that the stream has one terminal event, its last, which agrees with the log."""
    assert [isinstance(event, CompleteEvent | ErrorEvent) for event in events].count(True) == 1
    last = events[-1]
    assert isinstance(last, CompleteEvent | ErrorEvent)
    if isinstance(last, CompleteEvent):
        ended = stored[last.seq - 1]
        assert isinstance(ended, TurnEnded)
        assert ended.status == "complete"


async def crash_at_append(which: str, at: int, *, after: bool) -> None:
    """Crash an actor at one append of two asks, and check these asks and a third."""
    gate = Gate()
    gate.open("a", "b")
    storage = HookedStorage(at, after=after)
    server = openai(WORK, *[Turn(Say(word)) for word in ("one", "two", "three", "four")])
    async with runtime_with(a=server, storage=storage) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        storage.hook = crash_later(session, which)
        async with session.stream("First.") as first, session.stream("Second.") as second:
            streams = ([event async for event in first], [event async for event in second])
        status = ""
        while not status:
            with suppress(SessionError):  # the session has just restarted
                status = (await session.ask("Third.")).status
        assert status == "complete"
        stored = log(runtime, session)
        assert_orderly(stored)
        for events in streams:
            assert_ended_once(events, stored)
        assert all(item.status != "pending" for item in (await session.ledger()).interactions())
        assert len(gate.runs) == len(set(gate.runs))
    assert server.refusals == []


@pytest.mark.alternating
@pytest.mark.parametrize("which", VICTIMS)
@pytest.mark.requirement("REQ-915-046", "PROMISE-1", "PROMISE-8")
async def test_after_a_crash_at_any_append_each_ask_and_each_turn_ends_once(which: str) -> None:
    async def sweep(at: int) -> None:
        await crash_at_append(which, at, after=False)
        await crash_at_append(which, at, after=True)

    async with anyio.create_task_group() as tasks:
        for at in range(1, 8):
            tasks.start_soon(sweep, at)


async def test_an_ask_that_ended_in_the_log_before_a_crash_keeps_its_outcome() -> None:
    storage = HookedStorage(2)
    async with runtime_with(a=openai(Turn(Say("Here."))), storage=storage) as runtime:
        session = await runtime.open("a")
        storage.hook = crash_later(session, "session")
        result = await session.ask("Hello.")
        assert (result.status, result.text) == ("complete", "Here.")
        assert restarts(runtime, session) == 1
        ends = [event.status for event in log(runtime, session) if isinstance(event, TurnEnded)]
        assert ends == ["complete"]


async def test_messages_sent_before_an_actor_crash_do_not_end_the_next_ask() -> None:
    gate = Gate()
    async with scripted("openai_chat", WORK, Turn(Say("Done.")), tools=[gate.tool]) as (_, _, session):
        async with session.stream("Do it.") as events:
            await gate.started("a", "b")
            await session._session.send(Finished(generation=-1))
            await session._session.send(EndWritten(generation=-1))
            gate.open("a", "b")
            result = [event async for event in events][-1]
        assert isinstance(result, CompleteEvent)
        assert result.result.text == "Done."


async def test_the_stream_of_a_crashed_ask_reports_the_end_of_every_call() -> None:
    gate = Gate()
    async with scripted("openai_chat", WORK, tools=[gate.tool]) as (_, runtime, session):
        async with session.stream("Do it.") as stream:
            await gate.started("a", "b")
            gate.open("a")
            await wait_for_result(session, "hist_tool_1")
            await crash(session, "scheduler")
            events = [event async for event in stream]
        replayed = Publisher()
        told = [each for event in log(runtime, session) for each in replayed.publish(event)]
    ends = [event for event in events if isinstance(event, ToolResultsEvent)]
    assert ends == [event for event in told if isinstance(event, ToolResultsEvent)]
    assert [(end.call_id, end.outcome) for end in ends[0].results] == [
        ("hist_tool_1", "returned"),
        ("hist_tool_2", "outcome_unknown"),
    ]
    assert isinstance(events[-1], ErrorEvent)


async def test_a_batch_is_not_run_if_its_turn_ended_in_a_crash() -> None:
    gate, storage = Gate(), HookedStorage(2)
    gate.open("a", "b")
    async with runtime_with(a=openai(WORK, Turn(Say("Done."))), storage=storage) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        storage.hook = crash_later(session, "ledger")
        assert (await session.ask("Do it.")).status == "interrupted"
        assert (await session.ask("And now?")).status == "complete"
        assert gate.runs == []
        unknown = [item.reason for item in (await session.ledger()).interactions()]
        assert unknown == ["outcome_unknown"] * 2  # their start was already recorded


@pytest.mark.parametrize("kind", [AskStarted, TurnStarted, RequestSent, RoundEnded, Returned, TurnEnded])
async def test_a_session_rebuilt_during_a_write_includes_the_written_event(kind: type[LogEvent]) -> None:
    gate, storage = Gate(), HeldStorage(kind)
    gate.open("a", "b")
    server = openai(WORK, *[Turn(Say("Done."))] * 3)
    async with runtime_with(a=server, storage=storage) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("Do it.") as events:
            await storage.begun.wait()
            crash_later(session, "ledger")()
            await wait_for_restart(runtime, session)
            storage.freed.set()
            last = [event async for event in events][-1]
        assert last.type == ("complete" if kind is TurnEnded else "error")
        assert (await session.ask("And now?")).status == "complete"
        stored = log(runtime, session)
        assert_orderly(stored)
        assert Counter(type(event) for event in stored)[AskStarted] == 2
    assert server.refusals == []


@pytest.mark.parametrize("kind", [SwitchQueued, Returned])
async def test_a_failed_write_of_a_crashed_actor_does_not_crash_its_successor(
    kind: type[LogEvent],
) -> None:
    gate, storage = Gate(), HeldStorage(kind, fails=True)
    server = openai(WORK, Turn(Say("Done.")))
    async with runtime_with(a=server, b=anthropic(), storage=storage) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with anyio.create_task_group() as tasks, session.stream("Do it.") as events:
            await gate.started("a", "b")

            async def switch() -> None:
                with suppress(SessionError):
                    await session.switch("b")

            tasks.start_soon(switch)
            if kind is Returned:
                gate.open("a")
            await storage.begun.wait()
            crash_later(session, "ledger")()
            await wait_for_restart(runtime, session)
            storage.freed.set()
            assert [event async for event in events][-1].type == "error"
        assert restarts(runtime, session) == 1
        assert (await session.ask("And now?")).status == "complete"


async def test_a_cancel_during_recovery_waits_for_its_end() -> None:
    gate, storage = Gate(), HeldStorage(Cancelled)
    async with runtime_with(a=openai(WORK), storage=storage) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("Do it.") as events:
            await gate.started("a", "b")
            await crash(session, "ledger")
            await storage.begun.wait()
            answers: list[bool] = []

            async def cancel() -> None:
                answers.append(await session.cancel())
                assert all(item.status != "pending" for item in (await session.ledger()).interactions())

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel)
                for _ in range(20):
                    await anyio.lowlevel.checkpoint()
                assert answers == []
                storage.freed.set()
            assert answers == [True]
            assert [event async for event in events][-1].type == "error"


@pytest.mark.parametrize("which", VICTIMS)
async def test_closing_a_session_while_it_crashes_closes_every_call(which: str) -> None:
    for steps in range(0, 12, 3):
        gate = Gate()
        async with scripted("openai_chat", WORK, tools=[gate.tool]) as (_, runtime, session):
            async with session.stream("Do it.") as events, anyio.create_task_group() as tasks:
                await gate.started("a", "b")
                tasks.start_soon(session.close)
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                with suppress(SessionError):
                    crash_later(session, which)()
                with suppress(SessionError):
                    _ = [event async for event in events]
            stored = log(runtime, session)
            assert [type(event) for event in stored].count(Closed) == 1
            assert_orderly(stored)
            assert len({event.call_id for event in stored if isinstance(event, Cancelled)}) == 2


async def test_a_switch_queued_before_a_crash_is_applied_and_reported() -> None:
    gate = Gate()
    async with runtime_with(a=openai(WORK), b=anthropic(Turn(Say("Hi.")))) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("Do it.") as events:
            await gate.started("a", "b")
            assert (await session.switch("b")).status == "queued"
            await crash(session, "ledger")
            seen = [event.type async for event in events]
        assert seen[-2:] == ["switch_applied", "error"]
        assert (await session.ask("And now?")).binding.backend == "b"


async def test_a_damaged_record_is_named_by_session_and_number() -> None:
    class Damaged(MemoryStorage):
        def page(self, session: str, after: int = 0, limit: int = PAGE) -> LogPage:
            cancelled = encode_event(Cancelled(CallId("c"), "compacted"))
            records = (encode_event(Opened("s", "t")), cancelled.replace(b"compacted", b"contacted"))
            return decode_page(session, records, after, 2)

    storage = Damaged()
    runtime = Runtime(Config(FileSettings(), {}), journal=storage)
    async with System() as system:
        journal = system.spawn(lambda: JournalActor(storage), "journal", depth=SHARED)
        generation = Generation("s", 1, journal, runtime._backends.rules, MemoryUse(TotalMemory()), 1)
        with anyio.fail_after(60), pytest.raises(JournalError) as raised:
            await generation.replay()
    assert "Record 2 of session 's' cannot be read: Not a valid event: cancelled.reason: 'contacted'" in str(
        raised.value
    )
