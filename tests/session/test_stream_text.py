"""`stream_text` yields the text of an answer, raises if the ask fails, and leaves the turn running if it is closed."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from contextvars import ContextVar

import anyio
import anyio.to_thread
import pytest

from actors.config import PoolSettings
from actors.core.settings.values import ToolChoice
from actors.errors import AskFailed, ConfigError, QueueFull, SessionError, WrongEventLoop
from actors.runtime.handle import Session
from actors.session import streams
from actors.testing import Call, Disconnect, OpenAIServer, Say, Stall, Status, Think, Turn
from actors.tools import Tool, tool
from tests.runtime_support import Gate, anthropic, openai, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

WORK = Turn(Think("Let me see. "), Say("One moment. " * 4), Call("work", {"name": "a"}))
CALLER: ContextVar[str] = ContextVar("who", default="nobody")


async def gather(text: AsyncIterator[str]) -> list[str]:
    return [piece async for piece in text]


async def gather_into(pieces: list[str], text: AsyncIterator[str]) -> None:
    async for piece in text:
        pieces.append(piece)


@pytest.mark.parametrize("make_server", [openai, anthropic])
async def test_the_text_of_all_rounds_arrives_in_pieces_without_thinking(make_server: type) -> None:
    gate = Gate()
    gate.open("a")
    async with runtime_with(a=make_server(WORK, Turn(Say("It is done. " * 4)))) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        text = session.stream_text("Do it.")
        pieces = await gather(text)
    assert "".join(pieces) == "One moment. " * 4 + "\n\n" + "It is done. " * 4
    assert len(pieces) > 4
    assert text.result is not None
    assert (text.result.status, text.result.text) == ("complete", "It is done. " * 4)


async def test_the_stream_of_a_continuation_contains_only_its_own_text() -> None:
    look = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
    turns = Turn(Say("One moment. " * 4), Call("look", {})), Turn(Say("It is there. " * 4))
    async with scripted("openai_chat", *turns, tools=[look]) as (_, _, session):
        asked = session.stream_text("Where is it?")
        assert "".join(await gather(asked)) == "One moment. " * 4
        assert asked.result is not None
        assert asked.result.status == "awaiting"
        rest = session.stream_text(results={call.id: "there" for call in asked.result.pending_calls})
        assert session.pending  # nothing is recorded before the first step
        assert "".join(await gather(rest)) == "It is there. " * 4
        assert rest.result is not None
        assert rest.result.status == "complete"


async def test_a_slow_reader_of_a_text_stream_misses_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "BUFFER", 2)
    async with scripted("openai_chat", Turn(Say("word " * 200))) as (_, _, session):
        text = session.stream_text("Talk.")
        pieces = [await anext(text)]
        while session.busy:  # noqa: ASYNC110  the session reports no end here
            await anyio.sleep(0.001)
        pieces += await gather(text)
    assert "".join(pieces) == "word " * 200


async def test_a_failed_ask_yields_its_earlier_text_before_it_raises() -> None:
    server = OpenAIServer([WORK], faults={1: Status(401, message="Incorrect API key provided.")})
    gate, pieces = Gate(), list[str]()
    gate.open("a")
    async with scripted(server, tools=[gate.tool]) as (_, _, session):
        text = session.stream_text("Do it.")
        with pytest.raises(AskFailed, match="Incorrect API key") as raised:
            await gather_into(pieces, text)
        assert "".join(pieces) == "One moment. " * 4
        assert raised.value.result.status == "failed"
        assert await gather(text) == []


async def test_the_text_of_a_second_backend_follows_a_blank_line() -> None:
    broken = OpenAIServer([Turn(Say("Half of it. " * 90))], faults={0: Disconnect(after_bytes=1500)})
    pool = PoolSettings(members=("a", "b"), failover_after_output=True)
    async with runtime_with(a=broken, b=openai(Turn(Say("All of it."))), pools={"both": pool}) as runtime:
        session = await runtime.open("both")
        told = "".join(await gather(session.stream_text("Say it.")))
    half, _, whole = told.rpartition("\n\n")
    assert whole == "All of it."
    assert half
    assert ("Half of it. " * 90).startswith(half)


async def break_off(session: Session) -> None:
    async for _ in session.stream_text("Do it."):
        break


async def close_early(session: Session) -> None:
    async with aclosing(session.stream_text("Do it.")) as text:
        await anext(text)


async def cancel_reading(session: Session) -> None:
    text = session.stream_text("Do it.")
    await anext(text)
    with anyio.move_on_after(0.01) as scope:
        await gather(text)
    assert scope.cancelled_caught


@pytest.mark.parametrize("leave", [break_off, close_early, cancel_reading])
async def test_closing_the_text_stream_does_not_stop_the_turn(leave: object) -> None:
    assert callable(leave)
    gate = Gate()
    async with scripted("openai_chat", WORK, Turn(Say("Done.")), tools=[gate.tool]) as (_, _, session):
        await leave(session)
        await gate.started("a")
        assert session.busy
        gate.open("a")
        async for event in session.events():
            if event.type == "complete":
                assert event.result.text == "Done."
                break


async def test_a_cancelled_turn_ends_a_text_stream_with_a_cancelled_result() -> None:
    gate = Gate()
    async with scripted("openai_chat", WORK, tools=[gate.tool]) as (_, _, session):
        text, pieces = session.stream_text("Do it."), list[str]()

        async def read() -> None:
            pieces.extend(await gather(text))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await gate.started("a")
            await session.cancel()
    assert "".join(pieces) == "One moment. " * 4
    assert text.result is not None
    assert text.result.status == "cancelled"


async def test_a_text_stream_closed_before_iteration_sends_no_ask() -> None:
    async with scripted("openai_chat", Turn(Say("Hi."))) as (server, _, session):
        text = session.stream_text("Hello.")
        await text.aclose()
        assert await gather(text) == []
        assert not session.busy
    assert server.requests == []


async def test_stream_text_raises_for_bad_settings_at_once_and_for_bad_asks_on_iteration() -> None:
    async with scripted("openai_chat", Turn(Say("Hi."))) as (_, _, session):
        with pytest.raises(ConfigError, match="rounds"):
            session.stream_text("Hello.", max_rounds=0)
        with pytest.raises(ConfigError, match="nothing"):
            session.stream_text("Hello.", tool_choice=ToolChoice("nothing"))
        text = session.stream_text([])
        with pytest.raises(SessionError, match="empty list"):
            await anext(text)
        assert await gather(text) == []


async def test_a_text_stream_beyond_the_queue_limit_raises_queue_full() -> None:
    gate = Gate()
    async with runtime_with(a=openai(WORK, *[Turn(Say("Done."))] * 9)) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with anyio.create_task_group() as tasks:
            for _ in range(9):
                tasks.start_soon(session.ask, "Do it.")
            await gate.started("a")
            with pytest.raises(QueueFull):
                await anext(session.stream_text("Me too."))
            gate.open("a")


async def test_tools_see_the_context_variables_of_the_caller() -> None:
    seen = list[str]()

    @tool
    async def who() -> str:
        """Return the caller's context variable."""
        seen.append(CALLER.get())
        return CALLER.get()

    async with scripted("openai_chat", Turn(Call("who")), Turn(Say("You.")), tools=[who]) as (_, _, session):
        token = CALLER.set("me")
        text = session.stream_text("Who am I?")
        CALLER.reset(token)
        assert await gather(text) == ["You."]
    assert seen == ["me"]


async def test_a_text_stream_from_another_thread_is_rejected_at_once() -> None:
    async with scripted("openai_chat", Turn(Say("Hi."))) as (_, _, session):

        def elsewhere() -> None:
            with pytest.raises(WrongEventLoop):
                session.stream_text("Hello.")

        await anyio.to_thread.run_sync(elsewhere)


async def test_closing_the_session_ends_a_text_stream() -> None:
    stalled = OpenAIServer([Turn(Say("One moment. " * 90))], faults={0: Stall(after_bytes=1500)})
    async with scripted(stalled) as (_, _, session):
        text = session.stream_text("Talk.")
        pieces = [await anext(text)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.close)
            pieces += await gather(text)
    assert text.result is not None
    assert text.result.status == "cancelled"
    assert ("One moment. " * 90).startswith("".join(pieces))
