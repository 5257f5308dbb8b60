"""Run one conversation on a durable journal, tell each durable event that is seen, and die at a given crossing.

    python -m tests.durability_child FOLDER BACKEND CROSSING...

A crossing is a step of an append (before the write, before the fsync, after it), counted from 1; 0 lives. Each has a
process of its own, forked before there is an event loop, so that Python starts once; its log is `FOLDER/CROSSING.log`,
and what it saw is in `FOLDER/CROSSING.seen`. A line of output says how each process ended.
"""

import os
import signal
import sys
from pathlib import Path

import anyio

from actors import Runtime, tool
from actors.testing import Call, OpenAIServer, Say, Turn, serve
from tests.file_storage import FileStorage

SESSION = "durable"


@tool
async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def dying(at: int) -> "list[int]":
    """Return a countdown that `crossed` counts down."""
    return [at]


def crossed(countdown: list[int]) -> None:
    """Count one crossing; at the last, die as by a power switch."""
    countdown[0] -= 1
    if countdown[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)


async def converse(folder: Path, crossing: int) -> None:
    """Hold two asks, and write down the number of every durable event as soon as it is seen."""
    seen = os.open(folder / f"{crossing}.seen", os.O_WRONLY | os.O_CREAT)
    countdown = dying(crossing)
    server = OpenAIServer(
        [
            Turn(Call("double", {"number": 1}), Call("double", {"number": 2})),
            Turn(Say("2 and 4.")),
            Turn(Say("You are welcome.")),
        ]
    )
    async with serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        storage = FileStorage(folder / f"{crossing}.log", lambda: crossed(countdown))
        async with Runtime(environ=environ, journal=storage) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[double], id=SESSION)
            for words in ("Double 1 and 2.", "Thanks."):
                async with session.stream(words) as events:
                    async for event in events:
                        if (seq := getattr(event, "seq", None)) is not None:
                            os.write(seen, b"%d\n" % seq)


def ended(folder: Path, backend: str, crossing: int) -> int:
    """Hold the conversation in a process of its own; return its exit status, or the signal it died of as a negative."""
    child = os.fork()
    if child == 0:
        anyio.run(converse, folder, crossing, backend=backend)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    for argument in sys.argv[3:]:
        sys.stdout.write(f"{ended(Path(sys.argv[1]), sys.argv[2], int(argument))}\n")
        sys.stdout.flush()  # or the next process would write it too
