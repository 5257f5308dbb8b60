"""`call_tool`: the scheduler runs one call outside a turn, and every provider accepts the history that follows."""

from collections.abc import Callable

import anyio
import anyio.abc
import pytest

from actors import Budget, Price, Runtime, ToolContext
from actors.config import Config, FileSettings
from actors.core.log.call_events import Returned, Scheduled, Started
from actors.core.log.events import TurnEnded, TurnStarted
from actors.core.stream_events.ask_events import TurnEndedEvent
from actors.core.stream_events.round_events import ToolProgressEvent
from actors.errors import SessionError
from actors.strict.server import LoopbackServer
from actors.testing import (
    AnthropicServer,
    BedrockServer,
    Call,
    GeminiServer,
    OpenAIServer,
    ResponsesServer,
    Say,
    Turn,
    serve,
)
from actors.tools import Tool, tool
from tests.runtime_support import Gate, backend_at, bodies, log, openai, results, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio


@tool(approval="ask")
async def weather(city: str) -> str:
    """Weather of a city."""
    return f"{city}: 21 C"


@pytest.mark.alternating
@pytest.mark.requirement("REQ-915-035", "REQ-915-029", "REQ-915-033")
@pytest.mark.parametrize(
    "make_server", [OpenAIServer, AnthropicServer, ResponsesServer, GeminiServer, BedrockServer]
)
@pytest.mark.parametrize("first", [True, False])
async def test_a_call_by_the_program_is_recorded_and_accepted_by_every_provider(
    make_server: Callable[..., LoopbackServer], first: bool
) -> None:
    server = make_server([Turn(Say("Hello."), usage=(1, 1)), Turn(Say("Warm."))][first:])
    async with scripted(server, tools=[weather]) as (_, runtime, session):
        if not first:
            await session.ask("Hello.")
        result = await session.call_tool("weather", {"city": "Oslo"})
        assert result.content == "Oslo: 21 C"
        assert (await session.ask("And now?")).text == "Warm."
        assert [message.role for message in await session.history()][-5:] == [
            *("user", "assistant", "tool", "user", "assistant")
        ]
        kinds = (TurnStarted, Scheduled, Started, Returned, TurnEnded)
        happened = [type(event) for event in log(runtime, session) if isinstance(event, kinds)]
        assert happened[0 if first else 2 :][: len(kinds)] == list(kinds)
    assert b"Oslo: 21 C" in server.requests[-1].body


async def test_a_denied_tool_is_also_denied_if_the_program_calls_the_tool() -> None:
    runs: list[str] = []

    @tool(approval="deny")
    async def wipe() -> str:
        """Wipe the disk."""
        runs.append("wiped")
        return "wiped"

    async with scripted("openai_chat", tools=[wipe]) as (_, _, session):
        assert "not approved" in str((await session.call_tool("wipe")).error)
    assert runs == []


@pytest.mark.parametrize("budget", [Budget(rounds=1), Budget(money=1.0)], ids=["rounds", "money"])
async def test_a_call_by_the_program_uses_no_budget_for_requests(budget: Budget) -> None:
    server = openai(Turn(Say("Hello.")))
    async with serve(server):
        config = Config(FileSettings(backends={"a": backend_at(server)}), {})
        async with Runtime(config, prices={"gpt": Price(1.0, 1.0)}, seed=1) as runtime:
            session = await runtime.open("a", tools=[weather], budget=budget)
            await session.call_tool("weather", {"city": "Oslo"})
            assert (await session.ask("Hello?")).text == "Hello."


async def test_arguments_from_the_program_are_validated() -> None:
    async with scripted("openai_chat", tools=[weather]) as (_, _, session):
        wrong = await session.call_tool("weather", {"town": "Oslo"})
        assert wrong.error is not None
        assert "missing: city" in str(wrong.error)


async def test_calling_an_unknown_or_external_tool_raises_a_short_error() -> None:
    look = Tool.external("look", "", {"type": "object"})
    async with scripted("openai_chat", tools=[weather, look]) as (_, runtime, session):
        with pytest.raises(SessionError, match="'wether': the session's tools are weather, look"):
            await session.call_tool("wether")
        with pytest.raises(SessionError, match="'look': the tool is external"):
            await session.call_tool("look")
        assert log(runtime, session)[1:] == []


async def test_a_call_by_the_program_waits_in_the_ask_queue_and_can_be_cancelled() -> None:
    gate, other = Gate(), openai(Turn(Say("Hello.")), Turn(Say("Next.")))
    async with scripted(other, tools=[gate.tool]) as (_, runtime, session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.call_tool, "work", {"name": "a"})
            await gate.started("a")
            tasks.start_soon(session.ask, "Hello.")
            assert await session.cancel()
        assert [event.status for event in log(runtime, session) if isinstance(event, TurnEnded)] == [
            *("cancelled", "complete")
        ]
        assert (await session.ask("Next?")).text == "Next."
    assert len(results(bodies(other)[-1])) == 1


async def test_a_call_by_the_model_after_a_call_by_the_program_has_a_new_id() -> None:
    server = openai(Turn(Call("weather", {"city": "Rome"})), Turn(Say("Warm.")))
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[weather], approve=lambda call: True)
        await session.call_tool("weather", {"city": "Oslo"})
        assert (await session.ask("And in Rome?")).text == "Warm."
        ledger = await session.ledger()
    assert [item.call_id for item in ledger.interactions()] == ["hist_tool_1", "hist_tool_2"]
    assert list(results(bodies(server)[-1]).values()) == ["Oslo: 21 C", "Rome: 21 C"]


async def test_a_call_by_the_program_reports_progress_and_sees_the_history() -> None:
    seen, heard = list[str](), anyio.Event()

    @tool
    async def work(context: ToolContext[None]) -> str:
        """Work."""
        seen.extend(message.text for message in context.history)
        await context.progress("halfway", 0.5)
        with anyio.fail_after(20):
            await heard.wait()
        return "done"

    async with scripted("openai_chat", Turn(Say("Hello.")), tools=[work]) as (_, _, session):
        await session.ask("Hi.")

        async def read(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            async for event in session.events():
                if isinstance(event, TurnEndedEvent) and event.turn == 1:
                    task_status.started()
                if isinstance(event, ToolProgressEvent):
                    assert (event.message, event.name, event.turn) == ("halfway", "work", 2)
                    heard.set()
                    return

        async with anyio.create_task_group() as tasks:
            await tasks.start(read)
            assert (await session.call_tool("work")).content == "done"
    assert seen == ["Hi.", "Hello.", "[The program ran the tool work.]"]
