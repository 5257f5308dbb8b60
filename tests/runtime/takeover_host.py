"""A runtime in a process of its own, with a journal that others share.

    python -m tests.runtime.takeover_host LEASE BACKEND SERVER FILE [forking] < the journal's path or address

Opens the sessions `trip` and `spare`. Asks in `trip`, where two tools run in turn, and says so when the second waits
until it is told to end; says how that ask ended. Then asks in `spare`, and says how that did. Each run of a tool
is a line in FILE, too. If it is forking, the second tool has a pool of processes, and says first what its worker's
process id is; that lives for five minutes at most.
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
from actors.journal.storage.named import storage_at
from actors.runtime.handle import Session
from actors.tools import Tool


def outlive() -> None:
    """Let go of the output of the host, which others read to its end, and live on for a while."""
    os.close(1)
    signal.alarm(300)


def fork() -> ProcessPoolExecutor:
    """Return a pool of one forked process, which runs; say its process id."""
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("fork"), outlive)
    say("worker", pool.submit(os.getpid).result())
    return pool


def tools(file: Path, is_forking: bool = False) -> list[Tool[..., Any]]:
    """Return the tools, which write down that they ran."""
    pools = list[ProcessPoolExecutor]()

    def ran(name: str) -> None:
        with file.open("a") as lines:
            lines.write(f"{name}\n")

    @tool
    async def note(text: str) -> str:
        """Return at once."""
        ran("note")
        return text

    @tool
    async def pay(amount: int) -> str:
        """Return when it is told to."""
        ran("pay")
        if is_forking:
            pools.append(fork())
        say("paying")
        await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
        return f"paid {amount}"

    return [note, pay]


def say(*words: object) -> None:
    """Tell whoever started this."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def asked(session: Session, words: str) -> None:
    try:
        result = await session.ask(words)
    except ActorsError as error:
        say(session.id, type(error).__name__)
    else:
        say(session.id, result.status)


async def main(where: str, lease: float, server: str, file: Path, is_forking: bool) -> None:
    async with Runtime(
        environ={"OPENAI_BASE_URL": server}, journal=storage_at(where, lease=lease)
    ) as runtime:
        trip = await runtime.open("openai:gpt-5.2", tools=tools(file, is_forking), id="trip")
        spare = await runtime.open("openai:gpt-5.2", id="spare")
        await asked(trip, "Note it and pay.")
        await asked(spare, "Are you there?")


if __name__ == "__main__":
    _, _lease, _backend, _server, _file, *_forking = sys.argv
    _where = sys.stdin.readline().strip()
    anyio.run(main, _where, float(_lease), _server, Path(_file), bool(_forking), backend=_backend)
