"""Blocking tools call back into the event loop, and see the caller's context variables."""

import json
import threading
from contextvars import ContextVar

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest

from actors import Session, tool
from actors.errors import ReentrantCall
from actors.kernel.loop_thread import Backend
from actors.testing import Call, Say, Turn
from tests.runtime.hosting_cases import case
from tests.runtime_support import bodies, openai, results, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio
CALLER: ContextVar[str] = ContextVar("who", default="nobody")


async def query(words: str = "") -> str:
    """Answer from the event loop."""
    await anyio.lowlevel.checkpoint()
    return f"{CALLER.get()} asked in {threading.current_thread().name}{words}"


def where(words: str = "") -> str:
    """Answer from the event loop without waiting."""
    return f"{CALLER.get()} asked in {threading.current_thread().name}{words}"


async def test_a_blocking_tool_can_run_sync_and_async_functions_on_the_loop() -> None:
    assert case("blocking-tool-calls-back")["tool"] == "def lookup(q): return anyio.from_thread.run(query)"

    @tool
    def lookup(q: str) -> list[str]:
        """Look something up."""
        told = [
            anyio.from_thread.run(query),
            anyio.from_thread.run(query, q),
            anyio.from_thread.run_sync(where),
        ]
        assert threading.current_thread() is not threading.main_thread()
        return told

    server = openai(Turn(Call("lookup", {"q": "!"})), Turn(Call("lookup", {"q": "?"})), Turn(Say("Done.")))
    async with runtime_with(a=server) as runtime:
        CALLER.set("me")
        session = await runtime.open("a", tools=[lookup])
        await session.ask("Look it up.")
    here = threading.current_thread().name
    for mark, told in zip("!?", results(bodies(server)[-1]).values(), strict=True):
        assert json.loads(told) == [f"me asked in {here}{end}" for end in ("", mark, "")]


async def test_an_exception_on_the_event_loop_reaches_the_blocking_tool() -> None:
    async def fail() -> None:
        raise LookupError("not there")

    @tool
    def lookup() -> str:
        """Look something up."""
        try:
            anyio.from_thread.run(fail)
        except LookupError as error:
            return f"caught {error}"
        return "nothing"

    server = openai(Turn(Call("lookup")), Turn(Say("Done.")))
    async with scripted(server, tools=[lookup]) as (_, _, session):
        await session.ask("Look it up.")
    (told,) = results(bodies(server)[-1]).values()
    assert "caught not there" in told


@pytest.mark.parametrize("exit_exception", [SystemExit, KeyboardInterrupt])
@pytest.mark.requirement("PROMISE-12")
async def test_an_exit_exception_in_a_function_that_a_tool_runs_on_the_loop_fails_only_the_call(
    exit_exception: type[BaseException],
) -> None:
    async def fail_later() -> None:
        await anyio.lowlevel.checkpoint()
        raise exit_exception("of the tool")

    def fail_at_once() -> None:
        raise exit_exception("of the tool")

    @tool
    def lookup() -> str:
        """Look something up."""
        with pytest.raises(exit_exception, match="of the tool"):
            anyio.from_thread.run_sync(fail_at_once)
        anyio.from_thread.run(fail_later)
        return "nothing"

    server = openai(Turn(Call("lookup")), Turn(Say("Done.")))
    async with scripted(server, tools=[lookup]) as (_, _, session):
        assert (await session.ask("Look it up.")).text == "Done."
    (told,) = results(bodies(server)[-1]).values()
    assert told == f"ERROR: {exit_exception.__name__}: of the tool"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
async def test_a_blocking_tool_may_run_its_own_event_loop(backend: Backend) -> None:
    @tool
    def lookup() -> str:
        """Look something up."""
        return anyio.run(query, backend=backend)

    server = openai(Turn(Call("lookup")), Turn(Say("Done.")))
    async with runtime_with(a=server) as runtime:
        CALLER.set("me")
        await (await runtime.open("a", tools=[lookup])).ask("Look it up.")
    (told,) = results(bodies(server)[-1]).values()
    assert told.startswith("me asked in actors")


async def test_a_blocking_tool_that_asks_its_own_session_gets_an_error() -> None:
    opened = list[Session]()

    @tool
    def lookup() -> str:
        """Look something up."""
        with pytest.raises(ReentrantCall):
            anyio.from_thread.run(opened[0].ask, "What is it?")
        return "told"

    server = openai(Turn(Call("lookup")), Turn(Say("Done.")))
    async with scripted(server, tools=[lookup]) as (_, _, session):
        opened.append(session)
        await opened[0].ask("Look it up.")
    (said,) = results(bodies(server)[-1]).values()
    assert "told" in said
