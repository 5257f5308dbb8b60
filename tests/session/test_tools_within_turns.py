"""Toolsets with `within_turn`: the next request of the turn declares the tools that a call has changed."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from mcp import Client

from actors import LiveTools, Runtime, ToolChoice, ToolSource, mcp, tool
from actors.config import Config, FileSettings, load
from actors.config.settings import PoolSettings
from actors.core.log.events import Configured, EpochBegan
from actors.core.stream_events.events import ToolChangeDeferredEvent
from actors.errors import ToolDefinitionError
from actors.journal.storage.memory import MemoryStorage
from actors.strict.server import LoopbackServer
from actors.testing import (
    SERVER_ERROR,
    Call,
    GeminiServer,
    ResponsesProfile,
    ResponsesServer,
    ResponsesSettings,
    Say,
    Think,
    Turn,
    serve,
)
from actors.tools import Tool
from actors.tools.mcp.configured import configured_toolset
from tests.runtime_support import anthropic, backend_at, bodies, log, openai, results, runtime_with
from tests.scripted import scripted
from tests.tools.mcp_servers.forking import command

pytestmark = pytest.mark.anyio

AnyTool = Tool[..., Any]  # Any: any function
LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
DEBUG, STEP = Turn(Call("debug", {})), Turn(Call("step", {}))
DONE = Turn(Say("Done."))


def responses(*turns: Turn) -> ResponsesServer:
    return ResponsesServer(list(turns), settings=ResponsesSettings(ResponsesProfile(prefix_bound=True)))


def gemini(*turns: Turn) -> GeminiServer:
    return GeminiServer(list(turns))


SERVERS: dict[str, Callable[..., LoopbackServer]] = {
    "chat": openai,
    "anthropic": anthropic,
    "gemini": gemini,
    "responses": responses,
}
EACH = pytest.mark.parametrize("wire", SERVERS)


class Debugger:
    """A toolset whose tool `debug` replaces itself with other tools."""

    def __init__(self, *then: str) -> None:
        self.then = then or ("step", "stop")
        self.offers: list[AnyTool] = [tool(self.debug)]
        self._changed = anyio.Event()

    async def debug(self) -> str:
        """Attach a debugger."""
        self.offers = [self.control(name) for name in self.then]
        self._changed.set()
        return "attached"

    def control(self, name: str) -> AnyTool:
        async def act() -> str:
            return f"did {name}"

        return tool(name=name, description="Controls the program.")(act)

    @property
    def tools(self) -> Iterable[AnyTool]:
        return self.offers

    async def changed(self) -> None:
        await self._changed.wait()
        self._changed = anyio.Event()

    @asynccontextmanager
    async def block(self) -> AsyncIterator[LiveTools]:
        yield self

    def source(self, **options: Any) -> ToolSource:  # Any: fields of the source
        return ToolSource(self.block, "debugger", **({"within_turn": True} | options))


def declared_names(server: LoopbackServer) -> list[list[str]]:
    """Return the tool names that each request declares, in any dialect."""
    return [[_name(each) for each in _declarations(body)] for body in bodies(server)]


def _declarations(body: dict[str, Any]) -> list[dict[str, Any]]:  # Any: JSON
    listed = cast("list[dict[str, Any]]", body.get("tools", []))
    return [each for entry in listed for each in entry.get("functionDeclarations", [entry])]


def _name(declaration: dict[str, Any]) -> str:  # Any: JSON
    name: str = declaration.get("function", declaration)["name"]
    return name


@EACH
async def test_changed_tools_are_declared_by_the_next_request_of_the_turn(wire: str) -> None:
    """Case new-tools-in-the-turn."""
    thought = [] if wire == "chat" else [Think("It has stopped.")]
    server = SERVERS[wire](DEBUG, Turn(*thought, *STEP.parts), DONE, DONE)
    async with scripted(server, tools=[Debugger().source()]) as (_, runtime, session):
        assert (await session.ask("Debug it.")).status == "complete"
        history = await session.history()
        assert "did step" in "".join(map(str, history))
        assert (await session.ask("Thanks.")).status == "complete"
        configured = [event.tools for event in log(runtime, session) if isinstance(event, Configured)]
        assert configured == [("step", "stop")]
        began = [event.reason for event in log(runtime, session) if isinstance(event, EpochBegan)]
        assert began == (["configured"] if wire in ("anthropic", "responses") else [])
    assert declared_names(server) == [["debug"], *[["step", "stop"]] * 3]


@pytest.mark.parametrize("wire", ["chat", "anthropic"])
async def test_changed_tools_are_declared_by_the_next_ask_if_within_turn_is_false(wire: str) -> None:
    server = SERVERS[wire](DEBUG, DONE, DONE)
    async with scripted(server, tools=[Debugger().source(within_turn=False)]) as (_, _, session):
        await session.ask("Debug it.")
        assert (await session.ask("Thanks.")).status == "complete"
    assert declared_names(server) == [["debug"], ["debug"], ["step", "stop"]]


async def test_the_within_turn_setting_of_one_toolset_does_not_apply_to_another_toolset() -> None:
    other = Debugger()
    other.offers = [other.control("print")]
    tools = [other.source(), Debugger().source(within_turn=False)]
    async with scripted("openai_chat", DEBUG, DONE, DONE, tools=tools) as (server, _, session):
        await session.ask("Debug it.")
        assert (await session.ask("Thanks.")).status == "complete"
    assert declared_names(server) == [*[["print", "debug"]] * 2, ["print", "step", "stop"]]


@pytest.mark.parametrize("wire", ["anthropic", "responses"])
async def test_reasoning_bound_to_the_tools_defers_a_tool_change_to_the_next_ask(
    wire: str,
) -> None:
    server = SERVERS[wire](Turn(Think("First attach."), *DEBUG.parts), DONE, DONE)
    async with scripted(server, tools=[Debugger().source()]) as (_, _, session):
        held = list[str]()
        async with session.stream("Debug it.") as events:
            async for event in events:
                if isinstance(event, ToolChangeDeferredEvent):
                    held.append(event.reason)
        assert len(held) == 1
        assert held[0].endswith("reasoned in this turn, and its reasoning is bound to the tools")
        assert (await session.ask("Thanks.")).status == "complete"
    assert declared_names(server) == [["debug"], ["debug"], ["step", "stop"]]


@EACH
async def test_reasoning_of_earlier_asks_does_not_defer_a_tool_change(wire: str) -> None:
    thought = [] if wire == "chat" else [Think("A greeting.")]
    server = SERVERS[wire](Turn(*thought, Say("Hello.")), DEBUG, STEP, DONE)
    async with scripted(server, tools=[Debugger().source()]) as (_, _, session):
        await session.ask("Hello?")
        assert (await session.ask("Debug it.")).status == "complete"
    assert declared_names(server) == [["debug"], ["debug"], ["step", "stop"], ["step", "stop"]]


@pytest.mark.parametrize("wire", ["chat", "gemini"])
async def test_reasoning_that_is_not_bound_to_tools_does_not_defer_a_tool_change(wire: str) -> None:
    thinks = [Think("First attach.")] if wire == "gemini" else []
    server = SERVERS[wire](Turn(*thinks, *DEBUG.parts), STEP, DONE)
    async with scripted(server, tools=[Debugger().source()]) as (_, _, session):
        assert (await session.ask("Debug it.")).status == "complete"
    assert declared_names(server) == [["debug"], ["step", "stop"], ["step", "stop"]]


async def test_a_call_of_a_removed_tool_does_not_run_and_returns_an_error() -> None:
    server = openai(DEBUG, DEBUG, DONE)
    async with scripted(server, tools=[Debugger().source()]) as (_, _, session):
        assert (await session.ask("Debug it.")).status == "complete"
    assert "debug" in list(results(bodies(server)[-1]).values())[-1]
    assert "attached" not in list(results(bodies(server)[-1]).values())[-1]


@pytest.mark.parametrize("wire", ["anthropic"])
async def test_at_the_round_limit_changed_tools_are_not_declared(wire: str) -> None:
    source = Debugger().source()
    async with scripted(SERVERS[wire](DEBUG, DONE), tools=[source]) as (server, _, session):
        assert (await session.ask("Debug it.", max_rounds=2)).status == "complete"
    assert declared_names(server) == [["debug"], ["debug"]]


async def test_a_forced_tool_is_not_removed_within_its_ask() -> None:
    server = openai(DEBUG, STEP, DONE, DONE)
    async with scripted(server, tools=[Debugger().source()]) as (_, _, session):
        assert (await session.ask("Debug it.", tool_choice=ToolChoice("debug"))).status == "complete"
        assert "did step" not in "".join(map(str, await session.history()))
        assert (await session.ask("Thanks.")).status == "complete"
    assert declared_names(server) == [*[["debug"]] * 3, ["step", "stop"]]


async def test_a_change_to_more_tools_than_the_backend_accepts_is_deferred() -> None:
    server = openai(DEBUG, DONE)
    names = [f"step_{number}" for number in range(200)]
    async with scripted(server, tools=[Debugger(*names).source()]) as (_, _, session):
        assert (await session.ask("Debug it.")).status == "complete"
    assert declared_names(server) == [["debug"], ["debug"]]


@pytest.mark.parametrize("to", SERVERS)
async def test_a_failover_backend_declares_the_changed_tools_too(to: str) -> None:
    one = openai(DEBUG, DONE, faults={1: SERVER_ERROR})
    two = SERVERS[to](STEP, DONE)
    pool = PoolSettings(members=("a", "b"))
    async with runtime_with(a=one, b=two, pools={"both": pool}) as runtime:
        session = await runtime.open("both", tools=[Debugger().source()])
        assert (await session.ask("Debug it.")).status == "complete"
    assert declared_names(one) == [["debug"], ["step", "stop"]]
    assert declared_names(two) == [["step", "stop"]] * 2
    assert two.refusals == []


@pytest.mark.parametrize("wire", ["anthropic", "responses"])
async def test_a_switch_after_the_turn_keeps_the_changed_tools(wire: str) -> None:
    one, two = openai(DEBUG, DONE), SERVERS[wire](STEP, DONE)
    async with runtime_with(a=one, b=two) as runtime:
        session = await runtime.open("a", tools=[Debugger().source()])
        await session.ask("Debug it.")
        await session.switch("b")
        assert (await session.ask("On.")).status == "complete"
    assert declared_names(two) == [["step", "stop"]] * 2
    assert (one.refusals, two.refusals) == ([], [])


@EACH
async def test_a_turn_resumed_by_another_runtime_uses_the_tools_in_its_log(wire: str) -> None:
    server = SERVERS[wire](DEBUG, Turn(Call("look", {})), DONE)
    debugger, storage = Debugger(), MemoryStorage()
    with anyio.fail_after(60):
        async with serve(server):
            config = Config(FileSettings(backends={"a": backend_at(server)}), {})
            async with Runtime(config, seed=1, journal=storage) as runtime:
                session = await runtime.open("a", tools=[LOOK, debugger.source()], id="one")
                assert (await session.ask("Debug it.")).status == "awaiting"
                (waits,) = session.pending
            async with Runtime(config, seed=1, journal=storage) as runtime:
                session = await runtime.resume("one", tools=[LOOK, debugger.source()])
                assert (await session.ask(results={waits.call.id: "found"})).status == "complete"
                configured = [event for event in log(runtime, session) if isinstance(event, Configured)]
                assert len(configured) == 1
    assert declared_names(server) == [["look", "debug"], *[["look", "step", "stop"]] * 2]
    assert server.refusals == []


class SlowDebugger(Debugger):
    """A debugger whose list of tools changes only after `read` is set, as that of a server does."""

    def __init__(self) -> None:
        super().__init__()
        self.is_changing, self.read = False, anyio.Event()
        self._shown: list[AnyTool] = self.offers

    async def debug(self) -> str:
        """Attach a debugger."""
        self.is_changing = True
        return await super().debug()

    @property
    def tools(self) -> Iterable[AnyTool]:
        return self._shown

    async def changed(self) -> None:
        await super().changed()
        await self.read.wait()
        self._shown, self.is_changing = self.offers, False


async def test_the_next_request_waits_while_a_changed_tool_list_is_read() -> None:
    server, slow = openai(DEBUG, STEP, DONE), SlowDebugger()
    slow.offers[:] = [tool(slow.debug)]
    async with scripted(server, tools=[slow.source()]) as (_, _, session), anyio.create_task_group() as tasks:
        tasks.start_soon(session.ask, "Debug it.")
        while not slow.is_changing:
            await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        slow.read.set()
    assert declared_names(server) == [["debug"], *[["step", "stop"]] * 2]


async def test_a_cancel_ends_the_wait_for_a_changed_tool_list() -> None:
    server, slow = openai(DEBUG, DONE), SlowDebugger()
    slow.offers[:] = [tool(slow.debug)]
    async with scripted(server, tools=[slow.source(waiting=1e6)]) as (_, _, session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Debug it.")
            while not slow.is_changing:
                await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()
            assert await session.cancel()
        assert (await session.ask("Again.")).status == "complete"
    assert declared_names(server)[0] == ["debug"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_tool_that_an_mcp_server_adds_in_a_call_is_declared_in_the_turn(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.tools.mcp.connection.Client", partial(Client, mode=mode))
    learn, add = Turn(Call("learn", {"name": "subtract"})), Turn(Call("add", {"one": 1, "other": 2}))
    server = anthropic(learn, add, Turn(Call("subtract", {})), DONE)
    program, *args = command()
    options: Any = {"only": ["add", "learn", "subtract"], "approval": "allow"}  # Any: options of a server
    source = mcp.stdio(program, args, name="ref", within_turn=True, waiting=60, **options)
    async with scripted(server, tools=[source]) as (_, _, session):
        assert (await session.ask("Learn.")).status == "complete"
        assert "subtract was learnt" in "".join(map(str, await session.history()))
    # the server may announce its new tool after the second request
    first, _, *others = declared_names(server)
    assert [first, *others] == [["add", "learn"], *[["add", "learn", "subtract"]] * 2]


def test_a_configuration_file_can_set_within_turn(tmp_path: Path) -> None:
    for line, is_within in (("within_turn = true", True), ("", False)):
        (tmp_path / "actors.toml").write_text(f'[mcp.ref]\ncommand = "ref"\n{line}\n')
        assert configured_toolset(load(tmp_path / "actors.toml", {}), "ref").within_turn is is_within


def test_within_turn_must_be_true_or_false() -> None:
    with pytest.raises(ToolDefinitionError, match="within_turn='yes'; use True or False"):
        Debugger().source(within_turn="yes")
