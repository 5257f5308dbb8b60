"""MCP servers as toolsets: tools, results, questions to the user, and recovery from lost servers.

The servers are made with the SDK. Tests of the protocol run them in this process; others run child processes, over
standard streams or HTTP, and kill them.
"""

import json
import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, cast

import anyio
import anyio.abc
import pytest
from anyio.streams.text import TextReceiveStream
from mcp import Client
from mcp_types import CallToolResult, ResourceLink, TextContent, ToolAnnotations
from mcp_types import Tool as Listed

from actors import Runtime, ToolSource, mcp
from actors.config import RuntimeLimits, load
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.round_events import ToolProgressEvent
from actors.core.values.content import Media
from actors.core.values.identity import content_digest
from actors.errors import ConfigError, MissingKey, ToolDefinitionError, ToolsetFailed, UnknownTarget
from actors.kernel import System
from actors.testing import Call, Say, Turn
from actors.tools import ToolContext
from actors.tools.mcp.answers import ServerToolError, tool_output
from actors.tools.mcp.connection import ServerTools, connect, effects_of
from actors.tools.mcp.options import (
    Elicitation,
    ElicitationAnswer,
    McpOptions,
    McpServer,
    Sampling,
    check_options,
)
from actors.tools.mcp.transports import Transport
from actors.tools.toolsets import SessionTools, Toolsets
from tests.runtime_support import bodies, openai, results, runtime_with, wait_for_toolsets
from tests.scripted import scripted
from tests.tools.mcp_servers import reference
from tests.tools.mcp_servers.forking import command

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
"""The protocol of 2026, which the SDK's servers speak, and its predecessor, which most servers speak."""


NOBODY = cast("Callable[[str], ToolSource]", None)


def in_process_source(name: str = "ref", **options: Any) -> ToolSource:  # Any: options of a server
    """Return a toolset for the reference server in this process."""
    made, server = check_options(name, cast("McpOptions", options))
    transport = cast("Transport", lambda _ended: reference.server)
    return made(lambda: connect(transport, server))


@pytest.fixture
def protocol_mode(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setattr("actors.tools.mcp.connection.Client", partial(Client, mode=mode))


@asynccontextmanager
async def open_tools(*sources: ToolSource) -> AsyncIterator[SessionTools]:
    with anyio.fail_after(60):
        async with System() as system:
            sets = Toolsets(system, NOBODY)
            yield await sets.open(sources, lambda _: None)
            await sets.close()


async def call(offer: SessionTools, name: str, /, **arguments: object) -> object:
    result: object = await offer.tools[name].function(_tool_context=ToolContext(None), **arguments)
    return result


@ERAS
@pytest.mark.usefixtures("protocol_mode")
async def test_hints_of_an_mcp_server_set_the_effects_and_approvals_of_its_tools() -> None:
    async with open_tools(in_process_source()) as offer:
        said = {tool.name: (tool.effects, tool.approval) for tool in offer.tools}
        assert said["add"] == ("pure", "allow")
        assert said["store"] == ("idempotent", "ask")
        assert said["hang"] == ("once", "ask")
        assert offer.tools["add"].description == "Add two numbers."
        assert offer.tools["add"].schema["required"] == ["one", "other"]
        assert offer.tools["add"]._check.errors({"one": 1}) != ()


@pytest.mark.parametrize(
    ("hints", "effects"),
    [
        (None, "once"),
        (ToolAnnotations(), "once"),
        (ToolAnnotations(read_only_hint=True), "pure"),
        (ToolAnnotations(read_only_hint=True, idempotent_hint=True), "pure"),
        (ToolAnnotations(idempotent_hint=True, destructive_hint=True), "idempotent"),
        (ToolAnnotations(read_only_hint=False, destructive_hint=False), "once"),
    ],
)
def test_tool_annotations_of_an_mcp_server_are_mapped_to_effects(
    hints: ToolAnnotations | None, effects: str
) -> None:
    assert effects_of(Listed(name="any", input_schema={"type": "object"}, annotations=hints)) == effects


async def test_options_of_the_program_override_approvals_and_select_tools_of_an_mcp_server() -> None:
    async with open_tools(
        in_process_source(only=["add", "store", "absent"], approval={"store": "allow"})
    ) as offer:
        assert [(tool.name, tool.approval) for tool in offer.tools] == [("add", "allow"), ("store", "allow")]
    async with open_tools(in_process_source(only=["add"], approval="deny")) as offer:
        assert offer.tools["add"].approval == "deny"
    async with open_tools(
        in_process_source(only=["add", "store"], approval={"store": "ask", "*": "deny"})
    ) as offer:
        assert [(tool.name, tool.approval) for tool in offer.tools] == [("add", "deny"), ("store", "ask")]


@ERAS
@pytest.mark.usefixtures("protocol_mode")
async def test_mcp_results_contain_text_and_media_and_do_not_repeat_structured_content() -> None:
    async with open_tools(in_process_source()) as offer:
        assert await call(offer, "add", one=1, other=2) == "3"
        assert await call(offer, "picture") == [
            "A pixel.",
            Media("image/png", reference.PIXEL),
            "[Resource memo://one]\nUnder the picture.",
        ]
        with pytest.raises(ServerToolError, match="the disk is full"):
            await call(offer, "fail")


def test_structured_content_is_appended_unless_a_text_repeats_it() -> None:
    text = TextContent(type="text", text="Two.")
    made = partial(CallToolResult, content=[text])
    assert tool_output(made(structured_content={"count": 2})) == ["Two.", '{"count":2}']
    assert tool_output(made(structured_content={"result": "Two."})) == "Two."
    same = TextContent(type="text", text='{ "count": 2 }')
    assert tool_output(CallToolResult(content=[same], structured_content={"count": 2})) == '{ "count": 2 }'
    assert tool_output(CallToolResult(content=[], structured_content=[1])) == "[1]"
    assert tool_output(CallToolResult(content=[])) == ""
    link = ResourceLink(type="resource_link", uri="memo://two", name="Two")
    assert tool_output(CallToolResult(content=[link])) == "[Resource Two: memo://two]"
    with pytest.raises(ServerToolError, match="the tool gave no reason"):
        tool_output(CallToolResult(content=[], is_error=True))


@ERAS
@pytest.mark.usefixtures("protocol_mode")
async def test_a_tool_added_by_a_server_is_appended_to_the_other_tools() -> None:
    name = f"learnt_{id(object())}"
    async with open_tools(in_process_source()) as offer:
        before = offer.tools.names
        assert await call(offer, "learn", name=name) == "learnt"
        (owner,) = offer.owners
        await owner._changes.wait_until(lambda: owner.version > 1)
        assert offer.refresh()
        assert offer.tools.names == (*before, name)
        assert await call(offer, name) == f"{name} was learnt"
    reference.server.remove_tool(name)


@ERAS
@pytest.mark.usefixtures("protocol_mode")
async def test_an_mcp_server_can_ask_the_user_and_the_user_may_decline() -> None:
    asked: list[Elicitation] = []
    answers: list[ElicitationAnswer] = [{"colour": "red"}, None]

    async def elicit(question: Elicitation) -> ElicitationAnswer:
        asked.append(question)
        if not answers:
            raise ValueError("nobody is there")
        return answers.pop(0)

    async with open_tools(in_process_source(elicit=elicit)) as offer:
        assert await call(offer, "favourite") == "accept: red"
        assert await call(offer, "favourite") == "decline"
        with pytest.raises(Exception, match="could not answer"):
            await call(offer, "favourite")
    assert (asked[0].server, asked[0].message) == ("ref", "Which colour?")
    assert "colour" in str(asked[0].schema)


@ERAS
@pytest.mark.usefixtures("protocol_mode")
async def test_an_mcp_server_can_sample_from_the_model_of_the_host_if_the_host_has_a_model() -> None:
    asked: list[Sampling] = []

    def sample(question: Sampling) -> str | None:
        asked.append(question)
        return "Roses." if len(asked) == 1 else None

    async with open_tools(in_process_source(sample=sample)) as offer:
        assert await call(offer, "poem") == "host: Roses."
        with pytest.raises(Exception, match="declined this request"):
            await call(offer, "poem")
    (message,) = asked[0].messages
    assert (message.role, message.text, asked[0].system) == ("user", "Write a poem.", "Rhyme.")
    async with open_tools(in_process_source()) as offer:
        for name in ("poem", "favourite"):
            with pytest.raises(Exception, match=r"(?i)not support|capabilit|required"):
                await call(offer, name)


@ERAS
@pytest.mark.usefixtures("protocol_mode")
async def test_an_invalid_answer_of_a_host_callback_is_rejected_redacted() -> None:
    def answer(_: object) -> Any:  # Any: an invalid answer
        return 20261123

    async with open_tools(in_process_source(elicit=answer, sample=answer)) as offer:
        for name in ("favourite", "poem"):
            with pytest.raises(Exception, match="could not answer") as raised:
                await call(offer, name)
            assert "20261123" not in str(raised.value)


async def test_equal_tool_names_of_two_servers_are_disambiguated() -> None:
    async with open_tools(
        in_process_source("one", only=["add", "pid"]), in_process_source("two.x", only=["add"])
    ) as offer:
        assert offer.tools.names == ("add", "pid", "two_x__add")
        assert await call(offer, "two_x__add", one=2, other=3) == "5"


def test_unusable_mcp_tools_are_omitted_and_invalid_tool_names_are_changed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection = ServerTools(McpServer("any"))
    remote = {"$ref": "https://example.com/schema.json"}
    listed = [
        Listed(name="a.b", input_schema={"type": "object"}, description="x" * 100_000),
        Listed(name="a/b", input_schema={}),
        Listed(name="bad", input_schema={"type": "object", "properties": {"x": remote}}),
        Listed(name="", input_schema={"type": "object"}),
        Listed(name="c.d", input_schema={"type": "object"}),
    ]
    made = connection._build_tools(listed)
    dotted, slashed = (f"a_b_{content_digest(name)[:8]}" for name in ("a.b", "a/b"))
    assert [tool.name for tool in made] == [dotted, slashed, "t_", "c_d"]
    assert len(made[0].description) == 64 * 1024
    assert "tool_left_out" in caplog.text
    assert "'bad'" in caplog.text


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"approval": "maybe"}, "approval 'maybe'; use one of allow, ask, deny"),
        ({"approval": {"add": "yes"}}, "approval 'yes'"),
        ({"only": "add"}, "only= takes a list of names"),
        ({"onyl": ["add"]}, "unknown option 'onyl'"),
        ({"waiting": 0}, "waiting=0; use a number of seconds above 0"),
    ],
)
def test_an_invalid_option_of_an_mcp_server_raises_a_typed_error(
    options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ToolDefinitionError, match=re.escape(problem)):
        mcp.stdio("server", **options)


def test_without_the_mcp_sdk_the_error_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.tools.mcp.options.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r'install it: pip install "llm-actors\[mcp\]"'):
        mcp.http("http://127.0.0.1:9/mcp")


async def test_a_missing_mcp_program_or_server_raises_a_short_error() -> None:
    async with runtime_with(a=openai()) as runtime:
        with pytest.raises(
            ToolsetFailed, match=r"^Toolset 'nope' cannot be opened: FileNotFoundError: .*nope'$"
        ):
            await runtime.open("a", tools=[mcp.stdio("/nope")])
        with pytest.raises(
            ToolsetFailed, match=r"^Toolset '127.0.0.1' cannot be opened: \w+: [^\n]+$"
        ) as raised:
            await runtime.open("a", tools=[mcp.http("http://127.0.0.1:9/mcp", {"Authorization": "s3cret"})])
        assert "s3cret" not in str(raised.value) + repr(raised.value)
        assert runtime._system.contained_tasks.names == []


async def test_configured_servers_are_opened_by_name_with_their_secrets(tmp_path: Path) -> None:
    program, *args = command()
    (tmp_path / "actors.toml").write_text(f"""
        [backends.a]
        kind = "openai"
        model = "gpt"
        base_url = "http://127.0.0.1:9"

        [mcp.ref]
        command = {json.dumps(program)}
        args = {json.dumps(args)}
        env = ["NOTES"]
        tools = ["add", "pid"]
        approval = {{ pid = "deny" }}

        [mcp.far]
        url = "http://127.0.0.1:9/mcp"
        bearer = "FAR_TOKEN"
    """)
    async with (
        collect_notes() as notes,
        Runtime(tmp_path / "actors.toml", environ=environment(notes)) as runtime,
    ):
        one, two = [await runtime.open("a", tools=["ref"]) for _ in range(2)]
        said = [(tool.name, tool.approval) for tool in one._lifecycle.tools]
        assert said == [("add", "allow"), ("pid", "deny")]
        assert (
            one._lifecycle.configuration.session_tools.owners
            == two._lifecycle.configuration.session_tools.owners
        )
        with pytest.raises(UnknownTarget, match=r"No MCP server 'fra' in actors.toml; there are: ref, far"):
            await runtime.open("a", tools=["fra"])
        with pytest.raises(MissingKey, match="MCP server 'far' needs the environment variable FAR_TOKEN"):
            await runtime.open("a", tools=["far"])


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('url = "https://x"\ncommand = "x"', "an MCP server must have either a command or a url"),
        ('url = "https://x"\nargs = ["x"]', "args, env and cwd are only for a server with a command"),
        ('command = "x"\nbearer = "X"', "bearer and headers are only for a server with a url"),
        ('command = "x"\nenv = ["x=s3cret"]', "environment variable in capitals"),
    ],
)
def test_an_invalid_server_table_raises_a_short_config_error(
    table: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "actors.toml").write_text(f"[mcp.any]\n{table}\n")
    with pytest.raises(ConfigError, match=problem) as raised:
        load(tmp_path / "actors.toml", {})
    assert "s3cret" not in str(raised.value)


# --- servers in child processes


class Notes:
    """LineParser that a server process reports."""

    def __init__(self, listener: anyio.abc.Listener[anyio.abc.SocketStream]) -> None:
        self._listener = listener
        self._send, self._lines = anyio.create_memory_object_stream[str](100)
        self.port = listener.extra(anyio.abc.SocketAttribute.local_port)

    async def run(self) -> None:
        await self._listener.serve(self._hear)

    async def _hear(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            text = "".join([part async for part in TextReceiveStream(stream)])
        for line in text.splitlines():
            await self._send.send(line)

    async def wait_for(self, word: str) -> str:
        """Wait for a line that begins with a word, and return the rest of it."""
        async for line in self._lines:
            if line.split()[0] == word:
                return line.removeprefix(word).strip()
        raise AssertionError(word)

    def close(self) -> None:
        self._send.close()
        self._lines.close()


@asynccontextmanager
async def collect_notes() -> AsyncIterator[Notes]:
    with anyio.fail_after(120):
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as tasks,
        ):
            notes = Notes(listener)
            tasks.start_soon(notes.run)
            yield notes
            tasks.cancel_scope.cancel()
            notes.close()


def environment(notes: Notes, **more: str) -> dict[str, str]:
    return {"NOTES": str(notes.port), **more}


def child_source(notes: Notes) -> ToolSource:
    program, *args = command()
    return mcp.stdio(program, args, name="ref", env=environment(notes), approval="allow", waiting=60)


class HttpServerProcess:
    """The reference server over HTTP, in a process that can be killed and restarted on the same port."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self.port = self.pid = 0
        self.process: anyio.abc.Process

    async def start(self, *args: str) -> None:
        line = [*command(), str(self.port), *args]
        env = os.environ | environment(self._notes)
        self.process = await anyio.open_process(line, env=env, stdin=DEVNULL, stderr=DEVNULL)
        assert self.process.stdout is not None
        self.port, self.pid = map(int, (await self.process.stdout.receive()).split())

    async def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        await self.process.wait()
        await self.process.aclose()


@asynccontextmanager
async def serve_http(notes: Notes) -> AsyncIterator[HttpServerProcess]:
    server = HttpServerProcess(notes)
    await server.start()
    try:
        yield server
    finally:
        with anyio.CancelScope(shield=True):
            await server.kill()


HANG_THEN_ADD = (
    Turn(Call("hang", {})),
    Turn(Say("I see.")),
    Turn(Call("add", {"one": 1, "other": 2})),
    Turn(Say("Three.")),
)


async def test_a_call_has_an_unknown_outcome_if_its_server_process_is_killed() -> None:
    server = openai(*HANG_THEN_ADD)
    async with collect_notes() as notes, scripted(server, tools=[child_source(notes)]) as (_, _, session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Hang.")
            pid = int(await notes.wait_for("hanging"))
            os.kill(pid, signal.SIGKILL)
        (result,) = results(bodies(server)[1]).values()
        assert "It is not known whether the call took effect" in result
        assert (await session.ask("And now?")).text == "Three."
        assert list(results(bodies(server)[-1]).values())[-1] == "3"
        assert int(await notes.wait_for("began")) != pid


async def test_a_server_over_http_killed_in_a_call_is_reconnected() -> None:
    model = openai(*HANG_THEN_ADD)
    async with collect_notes() as notes, serve_http(notes) as server, runtime_with(a=model) as runtime:
        url = f"http://127.0.0.1:{server.port}/mcp"
        source = mcp.http(url, name="ref", approval="allow", waiting=60)
        session = await runtime.open("a", tools=[source])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Hang.")
            await notes.wait_for("hanging")
            await server.kill()
        (result,) = results(bodies(model)[1]).values()
        assert "It is not known whether the call took effect" in result
        await server.start()
        assert (await session.ask("And now?")).text == "Three."
        assert list(results(bodies(model)[-1]).values())[-1] == "3"
    assert model.refusals == []


async def test_a_read_only_call_is_repeated_after_its_server_restarts() -> None:
    async with collect_notes() as notes, serve_http(notes) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        async with open_tools(mcp.http(url, name="ref", waiting=60)) as offer:
            found: list[object] = []

            async def look() -> None:
                found.append(await call(offer, "look"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(look)
                await notes.wait_for("looking")
                await server.kill()
                await server.start("found")
            assert found == ["found"]


async def until_progress(events: AsyncIterator[SessionEvent]) -> AsyncIterator[SessionEvent]:
    async for event in events:
        yield event
        if isinstance(event, ToolProgressEvent):
            return


@pytest.mark.alternating
@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_a_cancelled_call_is_cancelled_at_the_server(over: str) -> None:
    model = openai(Turn(Call("look", {})), Turn(Say("ok")))
    async with collect_notes() as notes, serve_http(notes) as server, runtime_with(a=model) as runtime:
        remote = mcp.http(f"http://127.0.0.1:{server.port}/mcp", name="ref")
        session = await runtime.open("a", tools=[child_source(notes) if over == "stdio" else remote])
        async with session.stream("Look.") as events:
            shown = [event async for event in until_progress(events)]
            await notes.wait_for("looking")
            assert await session.cancel()
        assert isinstance(shown[-1], ToolProgressEvent)
        assert shown[-1].message == "looking"
        await notes.wait_for("cancelled")
        assert (await session.ask("Go on.")).status == "complete"


def is_alive(pid: int) -> bool:
    """Return True if a process with this id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_the_process_of_an_mcp_server_ends_with_its_session() -> None:
    model = openai(Turn(Call("pid", {})), Turn(Say("ok")))
    async with collect_notes() as notes, runtime_with(a=model, limits=RuntimeLimits()) as runtime:
        server = child_source(notes)  # also starts the forking process
        before = len(os.listdir("/proc/self/fd"))
        session = await runtime.open("a", tools=[server])
        pid = int(await notes.wait_for("began"))
        assert (await session.ask("Who?")).status == "complete"
        assert list(results(bodies(model)[-1]).values()) == [str(pid)]
        await session.close()
        await wait_for_toolsets(runtime)
        while is_alive(pid):  # noqa: ASYNC110  on a busy machine, a slow server is killed a moment later
            await anyio.sleep(0.001)
        assert runtime._system.contained_tasks.names == []
        # the connection to the model is kept, and counts twice here
        assert len(os.listdir("/proc/self/fd")) <= before + 2
