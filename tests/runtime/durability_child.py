"""Run one conversation on a durable journal, record each durable event that the client sees, and die at a crossing.

A crossing is a step of an append (before the write, before the fsync, after it), counted from 1; with 0 the process
survives. The log is `CROSSING.log` in a folder, and the sequence numbers of the events seen are in `CROSSING.seen`.
`tests.cli.command.python` calls `live` for each crossing, in its own process.
"""

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import anyio

from actors import Runtime, tool
from actors.testing import Call, OpenAIServer, Say, Turn, serve
from tests.journal.file_storage import FileStorage

SESSION = "durable"


@tool
async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def countdown_from(at: int) -> "list[int]":
    """Return a countdown for `count_crossing`."""
    return [at]


def count_crossing(countdown: list[int]) -> None:
    """Count one crossing. At the last one, kill this process."""
    countdown[0] -= 1
    if countdown[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)


async def converse(folder: Path, crossing: int) -> None:
    """Run two asks, and write down the number of every durable event as soon as it is seen."""
    seen = os.open(folder / f"{crossing}.seen", os.O_WRONLY | os.O_CREAT)
    countdown = countdown_from(crossing)
    server = OpenAIServer(
        [
            Turn(Call("double", {"number": 1}), Call("double", {"number": 2})),
            Turn(Say("2 and 4.")),
            Turn(Say("You are welcome.")),
        ]
    )
    async with serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        storage = FileStorage(folder / f"{crossing}.log", lambda: count_crossing(countdown))
        async with Runtime(environ=environ, journal=storage) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[double], id=SESSION)
            for words in ("Double 1 and 2.", "Thanks."):
                async with session.stream(words) as events:
                    async for event in events:
                        if (seq := getattr(event, "seq", None)) is not None:
                            os.write(seen, b"%d\n" % seq)


def live(folder: str, backend: str, crossing: int) -> NoReturn:
    """Hold the conversation; end the process if it survives."""
    anyio.run(converse, Path(folder), crossing, backend=backend)
    sys.exit()
