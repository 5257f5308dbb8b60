"""Sessions during a journal outage: refused requests, the fate of a turn, and how a session continues.

Each runtime compares its sessions with their rebuilt logs when it ends (`tests.runtime_support`).
"""

import gc
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from weakref import ref

import anyio
import anyio.lowlevel
import pytest

from actors import subagent
from actors.core.stream_events.ask_events import DurableEvent
from actors.core.stream_events.events import SessionEvent
from actors.errors import Fenced, JournalUnavailable, SessionClosed
from actors.journal.storage import Appended, Entry
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.handle import Session
from actors.testing import Call, Say, Turn
from actors.tools import Tool, tool
from tests.runtime_support import (
    Gate,
    anthropic,
    assert_paired,
    bodies,
    openai,
    restarted_actors,
    runtime_with,
)

pytestmark = pytest.mark.anyio

WORK = Turn(Say("I look."), Call("work", {"name": "a"}), Call("work", {"name": "b"}))
DONE = [Turn(Say("Done."))] * 8


class Outage(MemoryStorage):
    """A storage that is unavailable from append number `at` until `works` is called, for one session if `only` is set.

    `refused` counts the refused appends. With `in_doubt`, the first of them is written nevertheless.
    """

    def __init__(
        self, at: int = 1_000_000, *, only: str = "", blocking: bool = False, in_doubt: bool = False
    ) -> None:
        super().__init__()
        self.blocking, self.in_doubt = blocking, in_doubt
        self.at, self.only, self.refused = at, only, 0

    def works(self) -> None:
        """Make the storage available again."""
        self.at = 1_000_000

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        if not self.only or any(entry.session == self.only for entry in entries):
            self.at -= 1
            if self.at < 0:
                self.refused += 1
                if self.in_doubt:
                    self.in_doubt = False
                    super().append(entries)
                raise JournalUnavailable("sessions.db: the disk is full; make room")
        return super().append(entries)


@pytest.fixture(autouse=True)
def no_crashes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in which an actor crashes."""
    found: list[tuple[str, BaseException]] = []
    monkeypatch.setattr(
        "actors.telemetry.logger.actor_crashed", lambda name, error: found.append((name, error))
    )
    yield
    assert found == []


async def ask_and_collect(session: Session, words: str) -> tuple[list[SessionEvent], bool]:
    """Ask; return the events shown, and whether the journal's failure ended the ask."""
    events: list[SessionEvent] = []
    try:
        async with session.stream(words) as stream:
            events.extend([event async for event in stream])
    except JournalUnavailable:
        return events, True
    return events, False


async def assert_in_log(session: Session, events: Sequence[SessionEvent]) -> None:
    """Check that each event shown as durable is in the log under its number."""
    logged = [event async for event in session.events(follow=False)]
    told = [event for event in events if isinstance(event, DurableEvent)]
    kept = {(event.type, getattr(event, "seq", None)) for event in logged}
    assert {(event.type, getattr(event, "seq", None)) for event in told if event.type != "complete"} <= kept
    last = max((getattr(event, "seq", 0) for event in logged), default=0)
    assert all(getattr(event, "seq", 0) <= last for event in told)


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-2", "PROMISE-6", "PROMISE-7", "PROMISE-8")
@pytest.mark.parametrize(("blocking", "in_doubt"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("at", range(8))
async def test_an_ask_fails_at_any_refused_write_and_the_session_resumes(
    at: int, blocking: bool, in_doubt: bool
) -> None:
    storage, gate = Outage(only="one", blocking=blocking, in_doubt=in_doubt), Gate()
    gate.open("a", "b")
    server = anthropic(WORK, *DONE)
    async with runtime_with(a=server, b=openai(*DONE), storage=storage) as runtime:
        session = await runtime.open("a", id="one", tools=[gate.tool])
        other = await runtime.open("b", id="other")
        storage.at = at
        events, was_refused = await ask_and_collect(session, "Look.")
        assert was_refused == bool(storage.refused)
        assert (await other.ask("And you?")).status == "complete"
        for _ in range(5 if was_refused else 0):  # more often than an actor may crash
            with pytest.raises(JournalUnavailable):
                await session.ask("Again?")
        storage.works()
        assert (await session.ask("And now?")).status == "complete"
        await assert_in_log(session, events)
        assert restarted_actors(runtime) == []
        assert len(gate.runs) == len(set(gate.runs))  # a started call is never run again
        for body in bodies(server):
            assert_paired(body)


@pytest.mark.requirement("PROMISE-9")
async def test_a_passivated_session_keeps_no_log_state_in_memory() -> None:
    storage = Outage(only="one")
    async with runtime_with(a=anthropic(*DONE), storage=storage) as runtime:
        session = await runtime.open("a", id="one")
        await session.ask("Hello.")
        actors = session._lifecycle.actors
        assert actors is not None
        made = ref(actors._live_session_actor)
        storage.at = 0
        with pytest.raises(JournalUnavailable):
            await session.ask("And?")
        for _ in range(1000):
            if session._lifecycle.actors is None:
                break
            await anyio.lowlevel.checkpoint()
        gc.collect()
        assert made() is None
        assert (actors.busy, actors._generation._replay) == (False, None)
        storage.works()
        assert (await session.ask("And now?")).status == "complete"
        gc.collect()
        assert session._lifecycle.actors is actors
        assert actors._generation._replay is None  # the replayed state belongs to the actors alone


@pytest.mark.requirement("PROMISE-8")
async def test_a_session_that_another_writer_has_claimed_ends_and_affects_no_other_session() -> None:
    storage, gate = MemoryStorage(), Gate()
    async with runtime_with(a=anthropic(WORK, *DONE), b=openai(*DONE), storage=storage) as runtime:
        session = await runtime.open("a", id="one", tools=[gate.tool])
        other = await runtime.open("b", id="other")
        errors: list[Exception] = []

        async def ask() -> None:
            try:
                await session.ask("Look.")
            except Fenced as error:
                errors.append(error)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await gate.started("a", "b")
                tasks.start_soon(ask)  # waits after the first ask
                storage.claim("one")
                gate.open("a", "b")
        assert len(errors) == 2
        written = len(storage.read("one"))
        with pytest.raises(Fenced, match="'one' now has another writer"):
            await session.ask("Are you there?")
        with pytest.raises(Fenced):
            await session.switch("b")
        assert [event.type async for event in session.events(follow=False)]
        with pytest.raises(SessionClosed):
            runtime.session("one")
        await session.close()
        assert len(storage.read("one")) == written
        assert (await (await runtime.resume("one", tools=[gate.tool])).ask("And now?")).status == "complete"
        with pytest.raises(Fenced):
            await session.ask("Are you there?")
        assert (await other.ask("And you?")).status == "complete"
        assert restarted_actors(runtime) == []


@pytest.mark.requirement("PROMISE-8")
async def test_passivation_after_an_outage_fails_callers_and_cancels_tools() -> None:
    storage, gate, left = Outage(only="one"), Gate(), anyio.Event()

    async def slow() -> str:
        """Run for a long time."""
        try:
            await gate.tool.function("slow")
        finally:
            with anyio.CancelScope(shield=True):
                await left.wait()
        return "never"

    turn = Turn(Call("work", {"name": "a"}), Call("slow", {}))
    async with runtime_with(a=openai(turn, *DONE), storage=storage) as runtime:
        session = await runtime.open("a", id="one", tools=[gate.tool, tool(slow)])
        errors: list[str] = []

        async def use(what: Callable[[], Awaitable[object]]) -> None:
            try:
                await what()
            except JournalUnavailable as error:
                errors.append(str(error))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for words in ("Look.", "And this waits."):
                    tasks.start_soon(use, partial(session.ask, words))
                    await gate.started("a", "slow")
                storage.at = 0
                gate.open("a")
                while not storage.refused:
                    await anyio.lowlevel.checkpoint()
                for what in (session.compact, session.cancel, partial(session.switch, "a")):
                    tasks.start_soon(use, what)
                await anyio.wait_all_tasks_blocked()
                left.set()
        assert errors == ["sessions.db: the disk is full; make room"] * 5
        storage.works()
        assert (await session.ask("And now?")).status == "complete"
        unknown = [item.reason for item in (await session.ledger()).interactions()]
        assert unknown == ["outcome_unknown", "outcome_unknown"]


INTAKE: dict[str, Callable[[Session, str], Awaitable[object]]] = {
    "ask": lambda session, _: session.ask("Again?"),
    "switch": lambda session, _: session.switch("b"),
    "configure": lambda session, _: session.configure(system="Be brief.", tools=[]),
    "call_tool": lambda session, _: session.call_tool("work", {"name": "a"}),
    "compact": lambda session, _: session.compact(),
    "results": lambda session, call: session.ask(results={call: "late"}),
    "close": lambda session, _: session.close(),
}


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-6")
@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("intake", INTAKE)
async def test_an_outage_refuses_requests_and_leaves_an_idle_session_unchanged(
    intake: str, blocking: bool
) -> None:
    storage, gate = Outage(only="one", blocking=blocking), Gate()
    gate.open("a")
    turns = Turn(Call("look_up", {})), Turn(Say("I wait.")), *DONE
    async with runtime_with(a=anthropic(*turns), b=openai(*DONE), storage=storage) as runtime:
        look_up = Tool.external("look_up", "Look it up.", {"type": "object"})
        session = await runtime.open("a", id="one", tools=[gate.tool, look_up], system="Be kind.")
        await session.ask("Hello.")
        call = session.pending[0].call.id
        assert (await session.ask(results={call: "found"})).status == "complete"
        before, ledger = await session.history(), await session.ledger()
        storage.at = 0
        while storage.refused < 5:  # more often than an actor may crash
            with pytest.raises(JournalUnavailable, match="the disk is full"):
                await INTAKE[intake](session, call)
        assert session.target == "a"
        assert await session.history() == before  # reading still works
        storage.works()
        assert [each.name for each in session._lifecycle.tools] == ["work", "look_up"]
        assert (await session.ask("And now?")).status == "complete"
        assert (await session.history()).since(0)[: before.length] == before.since(0)
        assert await session.ledger() == ledger
        assert (await session.history()).system == "Be kind."
        assert session.target == "a"
        assert restarted_actors(runtime) == []
        if intake != "results":  # a second result is late, and a duplicate
            await INTAKE[intake](session, call)
        assert session.target == ("b" if intake == "switch" else "a")


@pytest.mark.requirement("PROMISE-2")
@pytest.mark.parametrize("at", range(6))
async def test_a_paused_turn_survives_any_refused_write_of_its_results(
    at: int,
) -> None:
    storage, look_up = Outage(only="one"), Tool.external("look_up", "Look it up.", {"type": "object"})
    server = anthropic(Turn(Call("look_up", {}), Call("look_up", {})), *DONE)
    async with runtime_with(a=server, storage=storage) as runtime:
        session = await runtime.open("a", id="one", tools=[look_up])
        await session.ask("Hello.")
        first, second = [each.call.id for each in session.pending]
        storage.at = at
        for call in (first, second):
            with suppress(JournalUnavailable):
                await session.ask(results={call: "found"})
        storage.works()
        while session.busy or session.pending:
            for each in session.pending:
                await session.ask(results={each.call.id: "found"})
        assert (await session.ask("And now?")).status == "complete"
        ledger = await session.ledger()
        assert [item.status for item in ledger.interactions()] == ["complete", "complete"]
        for body in bodies(server):
            assert_paired(body)


@pytest.mark.requirement("PROMISE-8")
@pytest.mark.parametrize("at", range(1, 8))
async def test_a_subagent_ends_with_its_call_at_any_refused_write(at: int) -> None:
    storage = Outage()
    server = anthropic(Turn(Call("helper", {"task": "Help."})), *DONE)
    async with runtime_with(a=server, b=openai(*DONE), storage=storage) as runtime:
        helper = subagent("helper", "It helps.", target="b")
        session = await runtime.open("a", id="one", tools=[helper])
        storage.at = at
        events, was_refused = await ask_and_collect(session, "Look.")
        storage.works()
        assert (await session.ask("And now?")).status == "complete"
        await assert_in_log(session, events)
        assert list(runtime.sessions) == ["one"]
        assert restarted_actors(runtime) == []
        assert was_refused == bool(storage.refused)
