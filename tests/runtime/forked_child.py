"""Fork a child from a runtime with busy threads, and let the child run its own runtime.

    python -m tests.runtime.forked_child BACKEND

The parent has idle and busy threads, for tools and for large results, and watches its event loop. The child is forked
in the thread of a blocking tool, and prints a line for each step of its own runtime. A child that hangs is killed
after `PATIENCE` seconds, and the lines of its missing steps are absent.
"""

import os
import select
import signal
import sys
import threading
import time
import traceback
from contextvars import Context
from typing import Any

import anyio

from actors import Runtime, tool
from actors.config import BackendSettings, Config, FileSettings, RuntimeLimits
from actors.testing import Call, OpenAIServer, Say, Turn, serve

PATIENCE = 60
"""Seconds that the child may take."""
LARGE = ["a result of many parts"] * 20_000
BOTH = threading.Barrier(2)


@tool
def together() -> str:
    """Return once two calls run, so that there are two threads."""
    BOTH.wait(PATIENCE)
    return "together"


@tool
def block() -> str:
    """Run in a thread."""
    return "blocked"


@tool
async def large() -> list[str]:
    """Return a result so large that it is processed in a thread."""
    return LARGE


def runtime_at(url: str) -> Runtime:
    """Return a runtime with few threads."""
    backend = BackendSettings.model_validate({"kind": "openai", "model": "gpt-5.2", "base_url": url})
    limits = RuntimeLimits(tool_threads=2, thread_wait_timeout=3600)
    return Runtime(Config(FileSettings(backends={"a": backend}, limits=limits), {}))


async def ask(*calls: Call, tools: list[Any]) -> list[str]:  # Any: any functions
    """Run one ask in a new runtime; return the status of each call."""
    server = OpenAIServer([Turn(*calls), Turn(Say("Done."))])
    async with serve(server), runtime_at(server.base_url) as runtime:
        session = await runtime.open("a", tools=tools)
        await session.ask("Go.")
        ledger = await session.ledger()
        return [each.completion.status for each in ledger.interactions() if each.completion is not None]


async def stall() -> bool:
    """Hold up the loop in a tool; say whether that was seen."""
    server = OpenAIServer([Turn(Call("hold", {})), Turn(Say("Done."))])
    async with serve(server), runtime_at(server.base_url) as runtime:

        @tool
        async def hold() -> str:
            """Hold up the loop until that is seen."""
            until = time.monotonic() + PATIENCE / 2
            while not runtime._watch.stalls.count and time.monotonic() < until:
                time.sleep(0.01)  # noqa: ASYNC251  the stall under test
            return "held"

        session = await runtime.open("a", tools=[hold])
        await session.ask("Go.")
        return runtime._watch.stalls.count > 0


async def live(told: int) -> None:
    """Be the child."""
    os.write(told, f"blocking: {await ask(Call('block', {}), tools=[block])}\n".encode())
    os.write(told, f"large: {await ask(Call('large', {}), tools=[large])}\n".encode())
    os.write(told, f"stall seen: {await stall()}\n".encode())


def child(backend: str, told: int) -> None:
    """Run the child to its end, and end the process."""
    try:
        Context().run(lambda: anyio.run(live, told, backend=backend))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def report_from(from_: int) -> str:
    """Return the output of the child, until it ends or its time is over."""
    said, until = b"", time.monotonic() + PATIENCE
    while select.select([from_], [], [], max(0.0, until - time.monotonic()))[0]:
        if not (more := os.read(from_, 4096)):
            break
        said += more
    return said.decode()


def forking_tool(backend: str) -> Any:  # Any: a tool
    """Return a tool that forks the child and prints its output."""

    @tool
    def fork() -> str:
        """Fork a child, wait for it, and print its output."""
        from_, told = os.pipe()
        if (pid := os.fork()) == 0:
            child(backend, told)
        os.close(told)
        said = report_from(from_)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        sys.stdout.write(said)
        return "forked"

    return fork


async def main(backend: str) -> None:
    """Be the parent."""
    script = [
        Turn(Call("together", {}), Call("together", {}), Call("large", {})),
        Turn(Call("fork", {})),
        Turn(Say("Done.")),
    ]
    server = OpenAIServer(script)
    async with serve(server), runtime_at(server.base_url) as runtime:
        session = await runtime.open("a", tools=[together, large, forking_tool(backend)])
        await session.ask("Go.")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], backend=sys.argv[1])
