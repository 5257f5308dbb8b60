"""Calls that were running during a crash: which run again, and how the others are reported."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from actors import SwitchOutcome, ToolContext, tool
from actors.core.log.call_events import Cancelled, Effects, Started
from actors.core.log.events import Configured, TurnEnded
from actors.core.stream_events.ask_events import ErrorEvent
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.testing import Call, Turn
from actors.tools import Tool
from tests.runtime.test_rebuild import assert_goes_on, crash
from tests.runtime_support import bodies, log, openai, results, runtime_with
from tests.scripted import scripted
from tests.tools.test_toolsets import Bench

pytestmark = pytest.mark.anyio

WORK = Turn(Call("work", {"name": "a"}))


class Runs:
    """A tool `work(name)` that counts its runs, and returns from run number `enough` on."""

    def __init__(self, enough: int) -> None:
        self.keys: list[str] = []
        self._enough, self._begun = enough, dict[int, anyio.Event]()

    def tool(self, effects: Effects) -> Tool[..., Any]:  # Any: any function
        async def work(name: str, context: ToolContext[None]) -> str:
            """Do a piece of work."""
            self.keys.append(context.idempotency_key)
            self._event(len(self.keys)).set()
            if len(self.keys) < self._enough:
                await anyio.sleep_forever()
            return f"{name} is done"

        return tool(effects=effects, approval="allow")(work)

    async def begun(self, times: int) -> None:
        """Wait until the tool has been started `times` times."""
        await self._event(times).wait()

    def _event(self, times: int) -> anyio.Event:
        return self._begun.setdefault(times, anyio.Event())


async def _crash_during_call(runtime: Runtime, runs: Runs, effects: Effects, crashes: int = 1) -> Session:
    """Return a session whose actors crashed `crashes` times while its tool ran."""
    session = await runtime.open("a", tools=[runs.tool(effects)])
    async with session.stream("Do it.") as stream:
        for times in range(1, crashes + 1):
            await runs.begun(times)
            await crash(session, "session")
        events = [event async for event in stream]
    assert isinstance(events[-1], ErrorEvent)
    return session


@pytest.mark.parametrize("effects", ["pure", "idempotent"])
@pytest.mark.requirement("PROMISE-7")
async def test_a_repeatable_call_runs_again_after_a_crash_with_the_same_key(
    effects: Effects,
) -> None:
    runs, server = Runs(2), openai(WORK)
    async with runtime_with(a=server, seconds=30) as runtime:
        session = await _crash_during_call(runtime, runs, effects)
        [known] = (await session.ledger()).interactions()
        assert (known.status, known.reason) == ("complete", None)
        assert len(runs.keys) == 2
        assert len(set(runs.keys)) == 1
        ends = [event.status for event in log(runtime, session) if isinstance(event, TurnEnded)]
        assert ends == ["interrupted"]
        await assert_goes_on(session, server)
        assert list(results(bodies(server)[-1]).values()) == ["a is done"]


@pytest.mark.requirement("PROMISE-7")
async def test_a_call_that_is_not_idempotent_is_not_run_again() -> None:
    runs, server = Runs(2), openai(WORK)
    async with runtime_with(a=server, seconds=30) as runtime:
        session = await _crash_during_call(runtime, runs, "once")
        [known] = (await session.ledger()).interactions()
        assert (known.status, known.reason) == ("unknown", "outcome_unknown")
        assert len(runs.keys) == 1


async def test_a_call_that_always_crashes_its_process_is_started_at_most_three_times() -> None:
    runs, server = Runs(9), openai(WORK)
    async with runtime_with(a=server, seconds=30) as runtime:
        session = await _crash_during_call(runtime, runs, "idempotent", crashes=3)
        [known] = (await session.ledger()).interactions()
        assert known.reason == "outcome_unknown"
        assert len(runs.keys) == 3
        assert [type(event) for event in log(runtime, session)].count(Started) == 3


async def _cancel(session: Session) -> None:
    await session.cancel()


async def _close(session: Session) -> None:
    await session.close()


@pytest.mark.parametrize("ends", [_cancel, _close])
async def test_a_cancel_or_close_stops_a_call_that_runs_again(
    ends: Callable[[Session], Awaitable[None]],
) -> None:
    runs, server = Runs(9), openai(WORK)
    async with scripted(server, tools=[runs.tool("idempotent")]) as (_, runtime, session):
        async with session.stream("Do it.") as stream:
            await runs.begun(1)
            await crash(session, "session")
            await runs.begun(2)
            await ends(session)
            async for _ in stream:
                pass
        written = log(runtime, session)
        closed = [event.reason for event in written if isinstance(event, Cancelled)]
        assert closed == ["outcome_unknown"]
        assert [event.status for event in written if isinstance(event, TurnEnded)] == ["interrupted"]


@pytest.mark.requirement("PROMISE-5", "PROMISE-11")
async def test_a_call_that_runs_again_keeps_its_toolset_when_the_session_is_configured() -> None:
    runs, toolset, server = Runs(9), Bench(), openai(WORK)
    toolset.offers = [runs.tool("idempotent")]
    async with runtime_with(a=server, seconds=30) as runtime:
        session = await runtime.open("a", tools=[toolset.source()])
        async with session.stream("Do it.") as stream:
            await runs.begun(1)
            await crash(session, "session")
            await runs.begun(2)
            assert await session.configure(tools=[]) == SwitchOutcome("a", "queued", 1)
            await crash(session, "session")
            await runs.begun(3)
            assert toolset.notes == ["bench opened"]
            await session.cancel()
            async for _ in stream:
                pass
        kinds = [type(event) for event in log(runtime, session)]
        assert kinds.index(Configured) == kinds.index(TurnEnded) + 1
        assert await session.configure(system="Be brief.") == SwitchOutcome("a", "applied")
