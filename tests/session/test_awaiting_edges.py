"""Edge cases of a waiting turn: timers, exiting the runtime, crashed actors, a missing key."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from anyio import create_task_group, wait_all_tasks_blocked

from actors.core.log.call_events import Returned
from actors.core.log.events import TurnEnded, TurnPaused, TurnResumed, TurnStarted
from actors.core.stream_events.ask_events import AskResult, CompleteEvent
from actors.core.values.identity import CallId
from actors.errors import SessionError
from actors.journal.storage import Appended, Entry
from actors.journal.storage.memory import MemoryStorage
from actors.kernel import Ref
from actors.runtime.handle import Session
from actors.session.limits import Deadline
from actors.testing import Call, Say, Turn
from actors.tools import Tool
from tests.runtime.test_rebuild import UnknownCommand
from tests.runtime_support import Gate, assert_paired, bodies, log, openai, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
ASKING = Turn(Call("look", {"n": 1}))
ONE = CallId("hist_tool_1")


async def test_no_timer_runs_while_a_turn_waits_for_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer would not stop anything, but it would stay alive for the duration of its timeout."""
    timers = list[float]()

    async def expires(self: Deadline, context: object, ask: object, seconds: float, why: str) -> None:
        timers.append(seconds)
        try:
            await expire(self, context, ask, seconds, why)
        finally:
            timers.remove(seconds)

    expire: Any = Deadline._expire  # Any: a private method
    monkeypatch.setattr(Deadline, "_expire", expires)
    gate = Gate()
    async with scripted(
        "openai_chat", ASKING, Turn(Call("work", {"name": "a"})), Turn(Say("Found.")), tools=[LOOK, gate.tool]
    ) as (_, _, session):
        assert (await session.ask("Look.", timeout=1000)).status == "awaiting"
        await wait_all_tasks_blocked()
        assert timers == []
        async with create_task_group() as tasks:
            tasks.start_soon(partial(session.ask, results={ONE: "found"}))
            await gate.started("a")
            assert len(timers) == 1
            gate.open("a")
        await wait_all_tasks_blocked()
        assert timers == []


async def test_a_resumed_turn_gets_only_the_rest_of_its_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = list[float]()

    async def expires(self: Deadline, context: object, ask: object, seconds: float, why: str) -> None:
        given.append(seconds)
        await expire(self, context, ask, seconds, why)

    expire: Any = Deadline._expire  # Any: a private method
    monkeypatch.setattr(Deadline, "_expire", expires)
    async with runtime_with(a=openai(ASKING, ASKING, Turn(Say("Found.")))) as runtime:
        session = await runtime.open("a", tools=[LOOK])
        await session.ask("Look.", timeout=1000)
        assert (await session.ask(results={ONE: "found"})).status == "awaiting"
        answer = await session.ask(results={CallId("hist_tool_2"): "found"})
        assert answer.status == "complete"
        took = [event.ask_so_far.seconds for event in log(runtime, session) if isinstance(event, TurnPaused)]
    assert 0 < took[0] < took[1]
    assert given == [1000, 1000 - took[0], 1000 - took[1]]


async def test_a_resumed_turn_ends_when_its_time_is_up() -> None:
    gate = Gate()
    server = openai(ASKING, Turn(Call("work", {"name": "a"})), Turn(Say("Found.")))
    async with scripted(server, tools=[LOOK, gate.tool]) as (_, _, session):
        await session.ask("Look.", timeout=0.5)
        answer = await session.ask(results={ONE: "found"}, check=False)
        assert (answer.status, answer.error) == (
            "failed",
            "the ask took longer than its timeout of 0.5 s",
        )


async def test_exiting_the_runtime_keeps_a_waiting_turn_open_in_its_log() -> None:
    storage = MemoryStorage()
    async with runtime_with(a=openai(ASKING), storage=storage) as runtime:
        session = await runtime.open("a", tools=[LOOK], id="waits")
        assert (await session.ask("Look.")).status == "awaiting"
    *_, last = storage.read("waits")
    assert isinstance(last, TurnPaused)
    assert last.external == (ONE,)


async def final_result(session: Session) -> AskResult:
    """Wait for a session's ask to end, and return its result as a subscriber sees it."""
    async for event in session.events():
        if isinstance(event, CompleteEvent) and event.result.status != "awaiting":
            return event.result
    raise AssertionError("the log ends before the ask")


class CrashingStorage(MemoryStorage):
    """Crashes an actor of a session after the result of a call was appended, before the append returns."""

    def __init__(self) -> None:
        super().__init__()
        self.session: Session | None = None
        self.which = ""

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Append the entries, then crash the actor."""
        numbers = super().append(entries)
        has_result = any(isinstance(event, Returned) for entry in entries for event in entry.events)
        if self.session is not None and has_result:
            refs: dict[str, Ref[Any]] = {  # Any: the command is wrong for every actor
                "session": self.session._session,
                "renderer": self.session._refs.renderer,
            }
            self.session = None
            refs[self.which].send_nowait(UnknownCommand())
        return numbers


@pytest.mark.parametrize("which", ["session", "renderer"])
async def test_a_crash_after_a_result_was_recorded_loses_and_repeats_nothing(
    which: str,
) -> None:
    storage, server = CrashingStorage(), openai(ASKING, Turn(Say("Found.")))
    async with runtime_with(a=server, storage=storage) as runtime:
        session = await runtime.open("a", tools=[LOOK])
        await session.ask("Look.")
        storage.session, storage.which = session, which
        with pytest.raises(SessionError, match="was just restarted; ask again"):
            await session.ask(results={ONE: "found"})
        answer = await final_result(session)
        assert (answer.status, answer.text, len(answer.attempts)) == ("complete", "Found.", 1)
        assert (await session.ask(results={ONE: "found"})).status == "late"
        events = log(runtime, session)
        kinds = (TurnStarted, TurnPaused, TurnResumed, TurnEnded)
        assert [type(event) for event in events if isinstance(event, kinds)] == list(kinds)
    assert server.refusals == []
    assert len(bodies(server)) == 2
    assert_paired(bodies(server)[-1])


@pytest.mark.parametrize("put_away", [True, False])
async def test_a_resumed_turn_whose_key_is_missing_fails_and_closes_every_call(put_away: bool) -> None:
    environ = {"KEY": "secret"}
    server = openai(ASKING, Turn(Say("Found.")), Turn(Say("Next.")))
    async with runtime_with(a=server, auth={"a": "KEY"}, environ=environ) as runtime:
        session = await runtime.open("a", tools=[LOOK])
        await session.ask("Look.")
        if put_away:
            assert session._lifecycle.passivate()
            session._lifecycle.evict()
        del environ["KEY"]
        answer = await session.ask(results={ONE: "found"}, check=False)
        assert answer.status == "failed"
        assert "KEY" in answer.error
        assert "secret" not in answer.error
        assert all(item.status == "complete" for item in (await session.ledger()).interactions())
        environ["KEY"] = "secret"
        assert (await session.ask("And now?")).text == "Found."
    assert server.refusals == []
    assert_paired(bodies(server)[-1])
