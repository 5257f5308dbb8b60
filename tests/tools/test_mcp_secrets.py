"""What is secret of an MCP server is shown nowhere: in no log, error, repr, event, record, nor on the command line.

A canary stands in its address, headers, environment and arguments. Everything that can be seen is gathered and searched
for it, whether the server works, is lost, does not answer, or refuses.
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
from tests.runtime_support import hosting, openai
from tests.tools.mcp_servers.forking import command as forked
from tests.tools.test_mcp import environment, noting, served

pytestmark = pytest.mark.anyio

CANARY = "c4n4ry-5ecret"
ADD = Turn(Call("add", {"one": 1, "other": 2}))
LOST = (ADD, Turn(Call("hang", {})), ADD, Turn(Say("Three.")))


class Gathered(logging.Handler):
    """Everything that was seen: what anybody logs, with tracebacks, and what `saw` is given."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))

    def saw(self, *values: object) -> None:
        for value in values:
            self.texts += [str(value), repr(value)]
            if isinstance(value, BaseException):
                self.texts += traceback.format_exception(value)

    def check(self) -> None:
        """Nothing of it holds the canary, and something was seen."""
        assert [text for text in self.texts if CANARY in text] == []
        assert self.texts != []


@pytest.fixture
def gathered() -> Iterator[Gathered]:
    """Gather what is logged, at any level and by anybody."""
    handler, root = Gathered(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


def remote(port: int, name: str = "far") -> ToolSource:
    url = f"http://user:{CANARY}@127.0.0.1:{port}/mcp?key={CANARY}"
    headers = {"x-key": CANARY, "authorization": f"Bearer {CANARY}"}
    return mcp.http(url, headers, name=name, approval="allow", waiting=0.1, opening=20)


def program(*args: str, command: str = sys.executable, **env: str) -> ToolSource:
    options = {"TOKEN": CANARY, **env}
    return mcp.stdio(
        command, [*args, CANARY], env=options, name="near", approval="allow", waiting=0.1, opening=20
    )


async def talked(runtime: Runtime, source: ToolSource, seen: Gathered) -> None:
    """Open a session with a server, have the model call its tools, and see all that comes of it."""
    seen.saw(source, runtime.config)
    try:
        session = await runtime.open("a", tools=[source])
    except ActorsError as error:
        seen.saw(error, error.__cause__, error.__context__)
        return
    async with session.stream("Go.") as events:
        async for event in events:
            seen.saw(event, json.dumps(event_json(event)))
    seen.saw(session, await session.history(), await session.ledger(), await session.preview("a"))
    seen.saw(*session._lifecycle.tools, *session._lifecycle.configuration.owners)
    seen.saw(*[encode_event(event) for event in runtime._storage.read(session.id)])
    await session.close()


@asynccontextmanager
async def refusing(status: bytes, heard: list[bytes]) -> AsyncIterator[int]:
    """A server that refuses whatever it is asked, and repeats it."""

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
async def test_an_address_that_refuses(status: bytes, gathered: Gathered) -> None:
    heard: list[bytes] = []
    async with refusing(status, heard) as port, hosting(a=openai(ADD, Turn(Say("No.")))) as runtime:
        await talked(runtime, remote(port), gathered)
    gathered.check()
    assert heard[0].startswith(f"POST /mcp?key={CANARY} HTTP/1.1".encode())
    assert f"x-key: {CANARY}".encode() in heard[0].lower()


async def test_a_user_and_a_password_of_an_address_are_its_credentials(gathered: Gathered) -> None:
    heard: list[bytes] = []
    async with refusing(b"401 Unauthorized", heard) as port, hosting(a=openai()) as runtime:
        await talked(runtime, mcp.http(f"http://us%40er:{CANARY}@127.0.0.1:{port}/mcp", name="far"), gathered)
    gathered.check()
    told = base64.b64encode(f"us@er:{CANARY}".encode())
    assert b"Basic " + told in heard[0]


async def test_an_address_where_nobody_is(gathered: Gathered) -> None:
    async with hosting(a=openai(ADD, Turn(Say("No.")))) as runtime:
        await talked(runtime, remote(9), gathered)
    gathered.check()


async def test_an_address_that_works_and_is_lost_in_mid_call(gathered: Gathered) -> None:
    async with noting() as notes, served(notes) as server:
        async with hosting(a=openai(*LOST)) as runtime, anyio.create_task_group() as tasks:
            tasks.start_soon(talked, runtime, remote(server.port), gathered)
            await notes.until("hanging")
            await server.kill()
        await server.start()  # to be ended as the others are
    gathered.check()


@pytest.mark.parametrize("args", [("-c", "raise SystemExit(3)"), ("-c", "print('no protocol')"), ()])
async def test_a_program_that_does_not_work(args: tuple[str, ...], gathered: Gathered) -> None:
    command = sys.executable if args else "no-such-program"
    async with hosting(a=openai(ADD, Turn(Say("No.")))) as runtime:
        await talked(runtime, program(*args, command=command), gathered)
    gathered.check()


async def test_a_program_that_works(gathered: Gathered) -> None:
    async with noting() as notes, hosting(a=openai(ADD, Turn(Say("Three.")))) as runtime:
        name, *args = forked()
        await talked(runtime, program(*args, command=name, **environment(notes)), gathered)
        assert int(await notes.until("began")) > 0
    gathered.check()
    assert any("'Three.'" in text for text in gathered.texts)


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


def said(capfd: pytest.CaptureFixture[str], seen: Gathered, *line: str) -> int:
    """Have the command line see to it, in this process, and see what it writes and raises; return how it ends."""
    try:
        code = main(line)
    except Exception as error:  # as Python shows it when a command is run with --debug
        seen.saw(error)
        code = 1
    seen.saw(*capfd.readouterr())
    return code


def test_a_configuration_and_what_the_command_line_says_of_it(
    tmp_path: Path, gathered: Gathered, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("propagate", True), ("handlers", []), ("level", logging.NOTSET)):
        monkeypatch.setattr(logging.getLogger("actors"), name, value)
    file, env = tmp_path / "actors.toml", {"NEAR_TOKEN": CANARY, "FAR_TOKEN": CANARY, "OPENAI_API_KEY": "k"}
    file.write_text(FILE)
    for variable, given in environ(env).items():
        monkeypatch.setenv(variable, given)
    config = load(file, env)
    gathered.saw(config, config.settings, *config.settings.mcp.values())
    for command in (["doctor"], ["doctor", "--network"], ["models"]):
        said(capfd, gathered, *command, "--config", str(file))
    for name in ("near", "far"):
        for debug in ([], ["--debug"]):
            asked = ("run", "hi", "--config", str(file), "-m", "a", "--mcp", name, "--json", *debug)
            assert said(capfd, gathered, *asked) != 0
    said(capfd, gathered, "explain", "ToolsetFailed")
    gathered.check()
