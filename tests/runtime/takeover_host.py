"""A runtime in its own process, with a journal that other processes share.

    python -m tests.runtime.takeover_host LEASE BACKEND SERVER FILE [forking] < the journal's path or address

Opens the sessions `trip` and `spare`. Asks `trip`, where two tools run one after the other, and prints `paying` when
the second waits for a line of input; then prints how that ask ended. Then asks `spare` and prints how that ask ended.
Each run of a tool adds a line to FILE. With `forking`, the second tool starts a process pool, and the process id of
its worker is printed first; the worker lives for at most five minutes.
"""

import multiprocessing
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from actors import Runtime, tool
from actors.errors import ActorsError
from actors.journal.storage.named import create_storage
from actors.runtime.handle import Session
from actors.tools import Tool


def outlive() -> None:
    """Close the inherited output of the host, which others read to its end, and stay alive for a while."""
    os.close(1)
    signal.alarm(300)


def fork() -> ProcessPoolExecutor:
    """Return a pool of one forked process, and print its process id."""
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("fork"), outlive)
    say("worker", pool.submit(os.getpid).result())
    return pool


def tools(file: Path, is_forking: bool = False) -> list[Tool[..., Any]]:
    """Return the tools, which record their runs in a file."""
    pools = list[ProcessPoolExecutor]()

    def note_run(name: str) -> None:
        with file.open("a") as lines:
            lines.write(f"{name}\n")

    @tool
    async def note(text: str) -> str:
        """Return at once."""
        note_run("note")
        return text

    @tool
    async def pay(amount: int) -> str:
        """Return when a line is read from stdin."""
        note_run("pay")
        if is_forking:
            pools.append(fork())
        say("paying")
        await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
        return f"paid {amount}"

    return [note, pay]


def say(*words: object) -> None:
    """Print a line for the parent process."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def ask_and_say(session: Session, words: str) -> None:
    try:
        result = await session.ask(words)
    except ActorsError as error:
        say(session.id, type(error).__name__)
    else:
        say(session.id, result.status)


async def main(where: str, lease: float, server: str, file: Path, is_forking: bool) -> None:
    async with Runtime(
        environ={"OPENAI_BASE_URL": server}, journal=create_storage(where, lease=lease)
    ) as runtime:
        trip = await runtime.open("openai:gpt-5.2", tools=tools(file, is_forking), id="trip")
        spare = await runtime.open("openai:gpt-5.2", id="spare")
        await ask_and_say(trip, "Note it and pay.")
        await ask_and_say(spare, "Are you there?")


if __name__ == "__main__":
    _, _lease, _backend, _server, _file, *_forking = sys.argv
    _where = sys.stdin.readline().strip()
    anyio.run(main, _where, float(_lease), _server, Path(_file), bool(_forking), backend=_backend)
