"""Services that the program passes to a runtime: approvals, toolsets, a transport, a storage, hooks for refusals."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest

from actors.core.values.content import ToolCall
from actors.errors import JournalError, ToolsetFailed
from actors.journal.storage import Appended, Entry
from actors.journal.storage.memory import MemoryStorage
from actors.testing import Say, Status, Turn
from actors.tools import Tool, tool
from actors.tools.toolsets import ToolSource
from actors.transport import HttpTransport, Response
from tests.host_code.rows import ONE, Bomb, check_unharmed, result_of, row
from tests.provider.test_failover import STRUCTURAL
from tests.runtime_support import openai, restarted_actors, runtime_with
from tests.tools.test_mcp import call, in_process_source, open_tools

APPROVE = ("Runtime.open.approve", "Runtime.resume.approve", "Runtime.claim.approve", "run.approve")
TAKE_TOOLS = (
    "Runtime.open",
    "Runtime.resume",
    "Runtime.claim",
    "Session.configure",
    "subagent",
    "handoff",
    "ToolContext.subagent",
    "run",
)
SERVERS = ("McpOptions", "http", "stdio")


@tool(approval="ask")
async def work(name: str) -> str:
    """Work, if approved."""
    return name


@row(*APPROVE)
async def an_approve_that_raises_in_its_thread_has_denied_the_call(bomb: Bomb) -> None:
    assert "was not approved" in await result_of(work, approve=bomb)
    assert bomb.calls == 1


@row(*APPROVE)
async def an_async_approve_that_raises_has_denied_the_call(bomb: Bomb) -> None:
    async def approve(_: ToolCall) -> bool:
        await anyio.lowlevel.checkpoint()
        raise bomb.error()

    assert "was not approved" in await result_of(work, approve=approve)


@row("Tool.function", "tool.function", "Tool.from_schema.function")
async def a_tool_that_raises_fails_its_own_call(bomb: Bomb) -> None:
    async def body(name: str) -> str:
        raise bomb.error()

    def blocking(name: str) -> str:
        raise bomb.error()

    for function in (body, blocking):
        assert type(bomb.error()).__name__ in await result_of(
            tool(name="work", description="Work.")(function)
        )


def _failing(where: str, bomb: Bomb) -> ToolSource:
    @asynccontextmanager
    async def open_block() -> AsyncIterator[Sequence[Tool[..., Any]]]:
        if where == "enter":
            bomb()
        yield [tool(name="work", description="Work.")(_works)]
        bomb()

    return ToolSource(bomb if where == "open" else open_block, "odd")


async def _works(name: str) -> str:
    return name


@row("ToolSource.open", *(f"{place}.tools" for place in TAKE_TOOLS))
async def a_toolset_that_raises_is_not_opened_and_its_end_disturbs_nobody(bomb: Bomb) -> None:
    server = openai(ONE, Turn(Say("done")), Turn(Say("again")), Turn(Say("fine")))
    async with runtime_with(seconds=60, a=server) as runtime:
        session = await runtime.open("a")
        async with check_unharmed(runtime, session):
            for where in ("open", "enter"):
                with pytest.raises(ToolsetFailed, match="Toolset 'odd' cannot be opened"):
                    await runtime.open("a", tools=[_failing(where, bomb)])
            own = await runtime.open("a", tools=[_failing("exit", bomb)])
            assert (await own.ask("Do it.")).text == "done"
            await own.close()


@row("Runtime.on_refusal")
async def a_hook_for_refusals_that_raises_is_called_once(bomb: Bomb) -> None:
    refusal = Status(400, message=STRUCTURAL[openai])
    server = openai(Turn(Say("again")), Turn(Say("fine")), faults=dict.fromkeys(range(4), refusal))
    async with runtime_with(seconds=60, a=server, on_refusal=bomb) as runtime:
        session = await runtime.open("a")
        async with check_unharmed(runtime, session):
            for _ in range(4):
                assert (await session.ask("Hello.", check=False)).status == "failed"
            while not bomb.calls:
                await anyio.lowlevel.checkpoint()
    assert bomb.calls == 1


class FailingTransport(HttpTransport):
    """A transport whose first `times` requests raise, and whose close raises."""

    def __init__(self, bomb: Bomb, times: int) -> None:
        super().__init__(environ={})
        self._bomb, self._times = bomb, times

    def send(self, *arguments: Any, **named: Any) -> AbstractAsyncContextManager[Response]:  # Any: passed on
        if self._bomb.calls < self._times:
            self._bomb()
        return super().send(*arguments, **named)

    async def close(self) -> None:
        await super().close()
        self._bomb()


@row("Runtime.transport")
async def a_transport_that_raises_fails_its_own_request(bomb: Bomb) -> None:
    server = openai(Turn(Say("again")), Turn(Say("fine")))
    async with runtime_with(seconds=60, a=server, transport=FailingTransport(bomb, 4)) as runtime:
        session = await runtime.open("a")
        async with check_unharmed(runtime, session):
            for _ in range(4):
                result = await session.ask("Hello.", check=False)
                assert (result.status, type(bomb.error()).__name__ in result.error) == ("failed", True)
    assert bomb.calls == 5


class FailingStorage(MemoryStorage):
    """A storage whose next append raises if `is_odd` is set, and whose close raises."""

    def __init__(self, bomb: Bomb) -> None:
        super().__init__()
        self._bomb, self.is_odd = bomb, False

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        if self.is_odd:
            self.is_odd = False
            self._bomb()
        return super().append(entries)

    def close(self) -> None:
        super().close()
        self._bomb()


class FailingThreadStorage(FailingStorage):
    blocking = True


@row("Runtime.journal")
async def a_storage_that_raises_fails_what_was_to_be_written(bomb: Bomb) -> None:
    for kind in (FailingStorage, FailingThreadStorage):
        storage = kind(bomb)
        server = openai(*[Turn(Say("fine"))] * 3)
        async with runtime_with(seconds=60, a=server, storage=storage) as runtime:
            session = await runtime.open("a")
            assert (await session.ask("Hello.")).status == "complete"
            storage.is_odd = True
            with pytest.raises(JournalError):
                await runtime.open("a")
            assert (await session.ask("And now?")).status == "complete"
            assert (await (await runtime.open("a")).ask("And you?")).status == "complete"
            assert restarted_actors(runtime) == []
    assert bomb.calls == 4


@row(*(f"{place}.{option}" for place in SERVERS for option in ("elicit", "sample")))
async def a_function_that_answers_a_server_and_raises_is_a_refusal(bomb: Bomb) -> None:
    async def raise_later(_: object) -> Any:  # Any: it never returns
        await anyio.lowlevel.checkpoint()
        raise bomb.error()

    functions: list[Callable[[Any], Any]] = [bomb, raise_later]  # Any: functions of both kinds
    for function in functions:
        async with open_tools(in_process_source(elicit=function, sample=function)) as offer:
            for name in ("favourite", "poem"):
                with pytest.raises(Exception, match="could not answer"):
                    await call(offer, name)
            assert await call(offer, "add", one=2, other=3) == "5"
