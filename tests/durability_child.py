"""Run one conversation on a durable journal, tell each durable event that is seen, and die at a given crossing.

    python -m tests.durability_child FILE BACKEND CROSSING

A crossing is a step of an append (before the write, before the fsync, after it), counted from 1; 0 lives.
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


async def converse(path: Path, crossing: int) -> None:
    """Hold two asks, and write the number of every durable event seen to stdout at once."""
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
        storage = FileStorage(path, lambda: crossed(countdown))
        async with Runtime(environ=environ, storage=storage) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[double], id=SESSION)
            for words in ("Double 1 and 2.", "Thanks."):
                async with session.stream(words) as events:
                    async for event in events:
                        if (seq := getattr(event, "seq", None)) is not None:
                            os.write(1, b"%d\n" % seq)


if __name__ == "__main__":
    anyio.run(converse, Path(sys.argv[1]), int(sys.argv[3]), backend=sys.argv[2])
