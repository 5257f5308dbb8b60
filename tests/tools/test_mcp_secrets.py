"""Secrets of MCP servers appear in no log, error, repr, event, record or command output.

A canary is in the address, headers, environment and arguments. All visible output is collected and searched for it,
whether the server works, is lost, does not answer or refuses.
"""

import base64
import json
import logging
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from actors import Runtime, ToolSource, mcp
from actors.cli import main
from actors.config import load
from actors.core.log.codec import encode_event
from actors.core.stream_events.event_json import event_json
from actors.errors import ActorsError
from actors.testing import Call, Say, Turn
from tests.cli.command import environ
from tests.runtime_support import openai, runtime_with
from tests.tools.mcp_servers.forking import command as forked
from tests.tools.test_mcp import collect_notes, environment, serve_http

pytestmark = pytest.mark.anyio

CANARY = "c4n4ry-5ecret"
ADD = Turn(Call("add", {"one": 1, "other": 2}))
LOST = (ADD, Turn(Call("hang", {})), ADD, Turn(Say("Three.")))


class OutputCollector(logging.Handler):
    """Collects all log records with tracebacks, and the values passed to `add`."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))

    def add(self, *values: object) -> None:
        for value in values:
            self.texts += [str(value), repr(value)]
            if isinstance(value, BaseException):
                self.texts += traceback.format_exception(value)

    def check(self) -> None:
        """Check that no text contains the canary, and that there are texts."""
        assert [text for text in self.texts if CANARY in text] == []
        assert self.texts != []


@pytest.fixture
def output() -> Iterator[OutputCollector]:
    """Collect the log records of all loggers at all levels."""
    handler, root = OutputCollector(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


def remote_source(port: int, name: str = "far") -> ToolSource:
    url = f"http://user:{CANARY}@127.0.0.1:{port}/mcp?key={CANARY}"
    headers = {"x-key": CANARY, "authorization": f"Bearer {CANARY}"}
    return mcp.http(url, headers, name=name, approval="allow", waiting=0.1, opening=20)


def program_source(*args: str, command: str = sys.executable, **env: str) -> ToolSource:
    options = {"TOKEN": CANARY, **env}
    return mcp.stdio(
        command, [*args, CANARY], env=options, name="near", approval="allow", waiting=0.1, opening=20
    )


async def run_session(runtime: Runtime, source: ToolSource, seen: OutputCollector) -> None:
    """Run a session with a server whose tools the model calls, and collect all output."""
    seen.add(source, runtime.config)
    try:
        session = await runtime.open("a", tools=[source])
    except ActorsError as error:
        seen.add(error, error.__cause__, error.__context__)
        return
    async with session.stream("Go.") as events:
        async for event in events:
            seen.add(event, json.dumps(event_json(event)))
    seen.add(session, await session.history(), await session.ledger(), await session.preview("a"))
    seen.add(*session._lifecycle.tools, *session._lifecycle.configuration.owners)
    seen.add(*[encode_event(event) for event in runtime._storage.read(session.id)])
    await session.close()


@asynccontextmanager
async def refusing_server(status: bytes, heard: list[bytes]) -> AsyncIterator[int]:
    """A server that refuses every request and repeats it in its answer."""

    async def handle(client: anyio.abc.SocketStream) -> None:
        async with client:
            asked = await client.receive()
            heard.append(asked)
            head = b"HTTP/1.1 %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % (status, len(asked))
            await client.send(head + asked)

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, handle)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    "status", [b"401 Unauthorized", b"404 Not Found", b"500 Internal Server Error", b"200 OK"]
)
async def test_an_mcp_server_that_refuses_a_request_reveals_no_secret(
    status: bytes, output: OutputCollector
) -> None:
    heard: list[bytes] = []
    async with (
        refusing_server(status, heard) as port,
        runtime_with(a=openai(ADD, Turn(Say("No.")))) as runtime,
    ):
        await run_session(runtime, remote_source(port), output)
    output.check()
    assert heard[0].startswith(f"POST /mcp?key={CANARY} HTTP/1.1".encode())
    assert f"x-key: {CANARY}".encode() in heard[0].lower()


async def test_user_and_password_of_an_address_become_basic_credentials(output: OutputCollector) -> None:
    heard: list[bytes] = []
    async with refusing_server(b"401 Unauthorized", heard) as port, runtime_with(a=openai()) as runtime:
        await run_session(
            runtime, mcp.http(f"http://us%40er:{CANARY}@127.0.0.1:{port}/mcp", name="far"), output
        )
    output.check()
    told = base64.b64encode(f"us@er:{CANARY}".encode())
    assert b"Basic " + told in heard[0]


async def test_an_unreachable_mcp_server_reveals_no_secret(output: OutputCollector) -> None:
    async with runtime_with(a=openai(ADD, Turn(Say("No.")))) as runtime:
        await run_session(runtime, remote_source(9), output)
    output.check()


async def test_an_mcp_server_lost_during_a_call_reveals_no_secret(output: OutputCollector) -> None:
    async with collect_notes() as notes, serve_http(notes) as server:
        async with runtime_with(a=openai(*LOST)) as runtime, anyio.create_task_group() as tasks:
            tasks.start_soon(run_session, runtime, remote_source(server.port), output)
            await notes.wait_for("hanging")
            await server.kill()
        await server.start()  # so that it can be ended like the others
    output.check()


@pytest.mark.parametrize("args", [("-c", "raise SystemExit(3)"), ("-c", "print('no protocol')"), ()])
async def test_a_failing_mcp_program_reveals_no_secret(
    args: tuple[str, ...], output: OutputCollector
) -> None:
    command = sys.executable if args else "no-such-program"
    async with runtime_with(a=openai(ADD, Turn(Say("No.")))) as runtime:
        await run_session(runtime, program_source(*args, command=command), output)
    output.check()


async def test_a_working_mcp_program_reveals_no_secret(output: OutputCollector) -> None:
    async with collect_notes() as notes, runtime_with(a=openai(ADD, Turn(Say("Three.")))) as runtime:
        name, *args = forked()
        await run_session(runtime, program_source(*args, command=name, **environment(notes)), output)
        assert int(await notes.wait_for("began")) > 0
    output.check()
    assert any("'Three.'" in text for text in output.texts)


FILE = f"""
[backends.a]
kind = "openai"
model = "m"
base_url = "http://127.0.0.1:9"

[mcp.near]
command = "no-such-program"
args = ["--token", "{CANARY}"]
env = ["NEAR_TOKEN"]

[mcp.far]
url = "http://127.0.0.1:9/{CANARY}/mcp"
bearer = "FAR_TOKEN"
headers = {{ x-key = "{CANARY}" }}
"""


def run_command(capfd: pytest.CaptureFixture[str], seen: OutputCollector, *line: str) -> int:
    """Run the command line in this process, and collect its output and exceptions; return the exit code."""
    try:
        code = main(line)
    except Exception as error:  # shown when a command runs with --debug
        seen.add(error)
        code = 1
    seen.add(*capfd.readouterr())
    return code


def test_the_configuration_and_the_command_line_reveal_no_secret(
    tmp_path: Path,
    output: OutputCollector,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name, value in (("propagate", True), ("handlers", []), ("level", logging.NOTSET)):
        monkeypatch.setattr(logging.getLogger("actors"), name, value)
    file, env = tmp_path / "actors.toml", {"NEAR_TOKEN": CANARY, "FAR_TOKEN": CANARY, "OPENAI_API_KEY": "k"}
    file.write_text(FILE)
    for variable, given in environ(env).items():
        monkeypatch.setenv(variable, given)
    config = load(file, env)
    output.add(config, config.settings, *config.settings.mcp.values())
    for command in (["doctor"], ["doctor", "--network"], ["models"]):
        run_command(capfd, output, *command, "--config", str(file))
    for name in ("near", "far"):
        for debug in ([], ["--debug"]):
            asked = ("run", "hi", "--config", str(file), "-m", "a", "--mcp", name, "--json", *debug)
            assert run_command(capfd, output, *asked) != 0
    run_command(capfd, output, "explain", "ToolsetFailed")
    output.check()
