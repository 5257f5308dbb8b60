"""Kill and restart the MCP project's own reference server (`python -m tests.commands.mcp`).

It installs `@modelcontextprotocol/server-everything` by npm into a temporary folder, which needs the npm registry, and
runs it as a child process and over HTTP, on asyncio and on trio. Not in CI. It prints one line per check, and exits
with 1 if a check fails.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import DEVNULL

import anyio
import anyio.abc

from actors import ToolSource, mcp
from actors.core.values.content import Media
from actors.errors import ToolsetDown
from actors.kernel import System
from actors.tools import ToolContext
from actors.tools.context import NoSession
from actors.tools.toolsets import SessionTools, Toolsets

PACKAGE = "@modelcontextprotocol/server-everything"
LONG = "trigger-long-running-operation"


class ProgressRecorder(NoSession):
    """A session stub that receives the progress of a call."""

    def __init__(self) -> None:
        self.heard = anyio.Event()

    def progress(self, message: str, fraction: float | None) -> None:
        self.heard.set()


async def call(
    offer: SessionTools, name: str, door: ProgressRecorder | None = None, /, **arguments: object
) -> object:
    context = ToolContext(None) if door is None else ToolContext(None, _link=door)
    result: object = await offer.tools[name].function(_tool_context=context, **arguments)
    return result


@asynccontextmanager
async def open_source(source: ToolSource) -> AsyncIterator[SessionTools]:
    async with System() as system:
        sets = Toolsets(system, lambda name: source)
        yield await sets.open([source], lambda _: None)
        await sets.close()


def children() -> list[int]:
    """Return the child processes of this process."""
    threads = Path("/proc/self/task").glob("*/children")  # trio starts children in a thread
    return [int(pid) for thread in threads for pid in thread.read_text().split()]


def kill_child() -> None:
    for pid in children():
        os.kill(pid, signal.SIGKILL)


async def check_results(offer: SessionTools) -> None:
    say("tools", len(offer.tools), len(offer.tools) > 10)
    effects = {tool.name: (tool.effects, tool.approval) for tool in offer.tools}
    say("effects of echo", effects["echo"], effects["echo"] == ("pure", "allow"))
    echo = await call(offer, "echo", message="hello")
    say("echo", echo, echo == "Echo: hello")
    image = await call(offer, "get-tiny-image")
    kinds = [type(part).__name__ for part in image] if isinstance(image, list) else []
    say("tiny image", kinds, isinstance(image, list) and any(isinstance(part, Media) for part in image))
    weather = await call(offer, "get-structured-content", location="Chicago")
    say("structured content", weather, "temperature" in str(weather))
    resource = await call(offer, "get-resource-reference", resourceType="Text", resourceId=1)
    say("embedded resource", type(resource).__name__, "[Resource " in str(resource))


async def check_kills(offer: SessionTools) -> None:
    """Kill the server during a call, twice: a read-only call is repeated once, and then its outcome is unknown."""
    door, ends = ProgressRecorder(), list[object]()

    async def long() -> None:
        try:
            ends.append(await call(offer, LONG, door, duration=20, steps=40))
        except ToolsetDown as error:
            ends.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(long)
        for _ in range(2):
            await door.heard.wait()
            door.heard = anyio.Event()
            kill_child()
    say("killed twice during a call", ends[0], "is not known" in str(ends[0]))
    echo = await call(offer, "echo", message="again")
    say("the next call", echo, echo == "Echo: again")


async def check_stdio(program: str) -> None:
    with anyio.fail_after(120):
        async with open_source(mcp.stdio(program, name="everything", waiting=60)) as offer:
            await check_results(offer)
            await check_kills(offer)
    say("children left", children(), children() == [])


async def check_http(program: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with anyio.fail_after(120):
        source = mcp.http(f"http://127.0.0.1:{port}/mcp", name="everything", waiting=60)
        async with run_server(program, port) as server, open_source(source) as offer:
            await check_results(offer)
            server.kill()
            await server.wait()
            async with run_server(program, port):
                echo = await call(offer, "echo", message="again")
                say("the next call", echo, echo == "Echo: again")


@asynccontextmanager
async def run_server(program: str, port: int) -> AsyncIterator[anyio.abc.Process]:
    """Yield the server over HTTP once it listens; kill it at the end in any case."""
    env = os.environ | {"PORT": str(port)}
    server = await anyio.open_process([program, "streamableHttp"], env=env, stdout=DEVNULL)
    try:
        assert server.stderr is not None
        said = b""
        while b"listening" not in said:
            said += await server.stderr.receive()
        yield server
    finally:
        if server.returncode is None:
            server.kill()
        with anyio.CancelScope(shield=True):
            await server.wait()


_wrong: list[str] = []


def say(what: str, seen: object, is_right: bool) -> None:
    sys.stdout.write(f"  {'ok   ' if is_right else 'WRONG'} {what}: {str(seen)[:100]}\n")
    if not is_right:
        _wrong.append(what)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        install = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", folder, PACKAGE]
        subprocess.run(install, check=True)
        program = str(Path(folder) / "node_modules" / ".bin" / "mcp-server-everything")
        for backend in ("asyncio", "trio"):
            for over in (check_stdio, check_http):
                sys.stdout.write(f"{over.__name__} on {backend}\n")
                anyio.run(partial(over, program), backend=backend)
    return 1 if _wrong else 0


if __name__ == "__main__":
    sys.exit(main())
