"""Asks whose turn waited for a result keep their output type, limits, cost and event streams."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import anyio
import pytest
from anyio.lowlevel import checkpoint

from actors import Budget, Price, Runtime
from actors.config import Config, FileSettings, PoolSettings
from actors.core.log.events import ApprovalDecided, TurnEnded, TurnPaused
from actors.core.stream_events.ask_events import CompleteEvent, DurableEvent, TurnEndedEvent
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.round_events import TextEvent
from actors.errors import SessionClosed, SessionError
from actors.events import ApprovalDecision, event_json
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.handle import Session
from actors.testing import SERVER_ERROR, Call, Say, Turn, serve
from actors.tools import tool
from tests.runtime.test_rebuild import crash
from tests.runtime_support import Gate, backend_at, bodies, log, openai, runtime_with
from tests.scripted import scripted
from tests.session.test_external_calls import LOOK, ONE, OTHER, PUT_AWAY, leave

pytestmark = pytest.mark.anyio


@dataclass
class City:
    name: str


@tool(approval="ask")
async def delete() -> str:
    """Delete it."""
    return "gone"


@PUT_AWAY
async def test_an_ask_that_waited_returns_a_value_of_its_output_type(put_away: str) -> None:
    server = openai(Turn(Call("look", {})), Turn(Say('{"name": "Oslo"}')))
    async with scripted(server, tools=[LOOK]) as (_, _, session):
        await session.ask("Where?", output=City)
        leave(session, put_away)
        assert (await session.ask(results={ONE: 1})).output == City("Oslo")


@PUT_AWAY
async def test_the_corrections_of_an_answer_are_counted_across_a_wait(put_away: str) -> None:
    no = Turn(Say("no"))
    server = openai(no, no, Turn(Call("look", {})), no, Turn(Say("never")))
    async with scripted(server, tools=[LOOK]) as (_, _, session):
        assert (await session.ask("Where?", output=City, max_corrections=2)).status == "awaiting"
        leave(session, put_away)
        answer = await session.ask(results={ONE: 1}, check=False)
    assert answer.status == "failed"
    assert answer.error.startswith("the answer does not have the required format: ")
    assert len(bodies(server)) == 4


async def test_a_token_limit_counts_the_tokens_used_before_a_wait() -> None:
    looks = [Turn(Call("look", {}), usage=(11, 7)) for _ in range(2)]
    async with scripted("openai_chat", *looks, Turn(Say("never")), tools=[LOOK]) as (server, _, session):
        await session.ask("Look twice.", token_limit=30)
        assert (await session.ask(results={ONE: 1})).status == "awaiting"
        answer = await session.ask(results={OTHER: 2}, check=False)
        assert answer.error == "the ask used 36 tokens, but its token_limit is 30"
    assert len(bodies(server)) == 2


@pytest.mark.parametrize(
    ("prices", "cost"), [({"*": Price(1.0, 1.0)}, 2200 / 1_000_000), ({"other": Price(1.0, 1.0)}, None)]
)
async def test_the_cost_of_an_ask_includes_the_turns_before_a_wait(
    prices: dict[str, Price], cost: float | None
) -> None:
    gate = Gate()
    gate.open("a")
    first = openai(Turn(Call("work", {"name": "a"}), usage=(1000, 100)), faults={1: SERVER_ERROR})
    second = openai(Turn(Call("look", {}), usage=(500, 50)), Turn(Say("two"), usage=(500, 50)))
    async with serve(first, second):
        backends = {"a": backend_at(first), "b": backend_at(second).model_copy(update={"model": "other"})}
        pools = {"both": PoolSettings(members=("a", "b"))}
        config = Config(FileSettings(backends=backends, pools=pools), {})
        async with Runtime(config, prices=prices, seed=1) as runtime:
            session = await runtime.open("both", tools=[gate.tool, LOOK])
            asked = await session.ask("Work!")
            answer = await session.ask(results={asked.pending_calls[0].id: 1})
            assert (answer.text, answer.cost) == ("two", None if cost is None else pytest.approx(cost))


async def test_a_budget_of_seconds_does_not_count_the_time_spent_waiting() -> None:
    server = openai(Turn(Call("look", {})), Turn(Say("one")), Turn(Say("two")))
    async with runtime_with(a=server) as runtime:
        began = anyio.current_time()
        session = await runtime.open("a", tools=[LOOK], budget=Budget(seconds=600.0))
        await session.ask("Look.")
        await session.ask(results={ONE: 1})
        parts = [
            event.seconds for event in log(runtime, session) if isinstance(event, TurnPaused | TurnEnded)
        ]
        assert len(parts) == 2
        assert min(parts) > 0
        assert sum(parts) <= anyio.current_time() - began
        assert (await session.ask("And now?")).text == "two"


async def test_a_subscriber_receives_the_text_that_follows_a_wait() -> None:
    server = openai(Turn(Say("Before."), Call("look", {})), Turn(Say("After.")))
    seen: list[SessionEvent] = []
    async with scripted(server, tools=[LOOK]) as (_, _, session):

        async def read() -> None:
            async for event in session.events():
                seen.append(event)
                if isinstance(event, TurnEndedEvent):
                    return

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            await session.ask("Look.")
            await session.ask(results={ONE: 1})
    assert "".join(event.text for event in seen if isinstance(event, TextEvent)) == "Before.After."


async def durable_events(stream: AbstractAsyncContextManager[AsyncIterator[SessionEvent]]) -> list[object]:
    async with stream as events:
        return [
            event_json(event)
            async for event in events
            if isinstance(event, DurableEvent) and not isinstance(event, CompleteEvent)
        ]


@pytest.mark.parametrize("verdict", ["allow", "deny"])
@pytest.mark.parametrize("is_last", [True, False])
async def test_the_stream_and_the_log_of_an_ask_contain_the_same_approval_decisions(
    verdict: str, is_last: bool
) -> None:
    assert verdict in ("allow", "deny")
    server = openai(Turn(Call("look", {}), Call("delete", {})), Turn(Say("Done.")))
    async with scripted(server, tools=[LOOK, delete]) as (_, _, session):
        own = await durable_events(session.stream("Go."))
        if is_last:
            own += await durable_events(session.stream(results={ONE: 1}))
        own += await durable_events(session.stream(approvals={OTHER: ApprovalDecision(verdict)}))  # type: ignore[arg-type]  # one of the two
        if not is_last:
            own += await durable_events(session.stream(results={ONE: 1}))
        late = [
            event_json(event)
            async for event in session.events(after=1, follow=False)
            if isinstance(event, DurableEvent) and not isinstance(event, CompleteEvent)
        ]
    assert own == late


@pytest.mark.parametrize("which", ["session", "ledger", "scheduler"])
async def test_a_turn_continues_if_actors_crash_after_its_last_decision(which: str) -> None:
    server = openai(Turn(Call("delete", {})), Turn(Say("I see.")), Turn(Say("Still here.")))
    async with scripted(server, tools=[delete]) as (_, runtime, session):
        await session.ask("Delete it.")

        async def deny() -> None:
            try:
                await session.ask(approvals={ONE: ApprovalDecision("deny")})
            except SessionError:
                restarts.append("restarted")

        restarts: list[str] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deny)
            while not any(isinstance(event, ApprovalDecided) for event in log(runtime, session)):
                await checkpoint()
            await crash(session, which)
        with anyio.fail_after(30):
            text = ""
            while not text:
                try:
                    text = (await session.ask("And now?")).text
                except SessionError:
                    restarts.append("again")
        assert text == "Still here."
        ended = [event.status for event in log(runtime, session) if isinstance(event, TurnEnded)]
        assert ended[-1] == "complete"
        assert (session.pending, session.busy) == ((), False)


@pytest.mark.parametrize("queued", ["ask", "compact"])
async def test_exiting_the_runtime_drops_asks_queued_after_a_waiting_turn(
    queued: str,
) -> None:
    server, storage = openai(Turn(Call("look", {})), Turn(Say("It is Oslo."))), MemoryStorage()
    dropped: list[str] = []

    async def wait_in_queue(session: Session) -> None:
        with pytest.raises(SessionClosed) as ended:
            await (session.compact() if queued == "compact" else session.ask("And now?"))
        dropped.append(str(ended.value))

    with anyio.fail_after(60):
        async with serve(server), anyio.create_task_group() as tasks:
            config = Config(FileSettings(backends={"a": backend_at(server)}), {})
            async with Runtime(config, seed=1, journal=storage) as runtime:
                session = await runtime.open("a", tools=[LOOK], id="trip")
                assert (await session.ask("Where?")).status == "awaiting"
                tasks.start_soon(wait_in_queue, session)
                await anyio.wait_all_tasks_blocked()
                assert dropped == []
            async with Runtime(config, seed=1, journal=storage) as runtime:
                session = await runtime.resume("trip", tools=[LOOK])
                assert [call.call.id for call in session.pending] == [ONE]
                assert (await session.ask(results={ONE: "Oslo"})).text == "It is Oslo."
    assert len(dropped) == 1
    assert server.refusals == []
