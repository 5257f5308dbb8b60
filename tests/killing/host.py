"""A process that does what a scenario says, tells each durable event that its client sees, and is killed at a crossing.

    python -m tests.killing.host FOLDER BACKEND LEVEL SCENARIO CROSSING...

A crossing is a place before or behind an append of the journal, counted from 1; at 0 nothing is killed. Each process is
forked before there is an event loop, so that Python starts once; its files are in `FOLDER/CROSSING`. A line of output
says how each ended.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from actors import Runtime
from actors.handle import Session
from actors.storage import Appended, Entry, Level
from actors.storage.sqlite import SqliteStorage
from actors.testing import OpenAIServer, serve
from tests.killing.scenarios import SCENARIOS, SESSION, Scenario, brought, tools


class Killing(SqliteStorage):
    """A storage whose process is killed at a crossing."""

    def __init__(self, path: Path, level: Level, crossing: int) -> None:
        super().__init__(path, level=level)
        self._left = crossing

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        self._cross()
        appended = super().append(entries)
        self._cross()
        return appended

    def _cross(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


async def host(folder: Path, level: Level, scenario: Scenario, crossing: int) -> None:
    """Do it, and write down the number of every durable event as soon as it is seen."""
    async with serve(OpenAIServer(list(scenario.script))) as (server,):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}
        journal = Killing(folder / "sessions.db", level, crossing)
        async with Runtime(environ=environ, journal=journal) as runtime, anyio.create_task_group() as readers:
            session = await runtime.open("openai:gpt-5.2", tools=tools(folder), id=SESSION)
            readers.start_soon(_see, session, folder / "seen")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.ask, "Do it.")
                if scenario.switches:
                    await session.switch("openai:gpt-5.2-mini")
            await brought(session)
            await session.ask("Thank you.")
            readers.cancel_scope.cancel()


async def _see(session: Session, path: Path) -> None:
    seen = os.open(path, os.O_WRONLY | os.O_CREAT)
    async for event in session.events():
        if (seq := getattr(event, "seq", None)) is not None:
            os.write(seen, b"%d\n" % seq)


def ended(folder: Path, backend: str, level: Level, scenario: Scenario, crossing: int) -> int:
    """Do it in a process of its own; return its exit status, or the signal it died of as a negative."""
    folder.mkdir()
    child = os.fork()
    if child == 0:
        anyio.run(host, folder, level, scenario, crossing, backend=backend)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    root, backend, level, name, *crossings = sys.argv[1:]
    for each in map(int, crossings):
        kept: Level = "process" if level == "process" else "power"
        sys.stdout.write(f"{ended(Path(root, str(each)), backend, kept, SCENARIOS[name], each)}\n")
        sys.stdout.flush()  # or the next process would write it too
