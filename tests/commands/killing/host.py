"""A process that runs scenarios, reports each durable event that its client sees, and is killed.

Each process is forked before an event loop exists, so that Python starts only once.
"""

import os
import signal
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from pathlib import Path

import anyio
from msgspec import Struct

from actors import Runtime
from actors.core.data.jsonio import dump
from actors.core.stream_events.ask_events import DurableEvent
from actors.core.stream_events.event_json import event_json
from actors.core.stream_events.events import SessionEvent
from actors.journal.storage import Durability
from actors.journal.storage.sqlite import SqliteStorage
from actors.runtime.handle import Session
from actors.testing import OpenAIServer, serve
from tests.commands.killing.crossings import Crossings
from tests.commands.killing.scenarios import COMPACTION, TARGET, act, answer, tools

JOURNAL = "sessions.db"


class Work(Struct, frozen=True):
    """The work of a process, and the time of its death.

    Args:
        folder: The folder of its files.
        sessions: The scenario of each session, by name.
        crossing: The crossing at which it kills itself; 0 for none.
        events: The number of events, over all sessions, that the client sees before an outside kill; 0 for none. Until
            then the scenarios repeat.
        forks: Whether it has forked a worker, which survives the kill.
    """

    folder: Path
    backend: str
    durability: Durability
    sessions: Mapping[str, str]
    crossing: int = 0
    events: int = 0
    forks: bool = False


class Workers:
    """The lifetime of forked workers: each ends when `close` is called or when its parent has ended."""

    def __init__(self) -> None:
        self._readable, self._writable = os.pipe()
        self._has_forked = False

    def fork(self, *inherited: int) -> None:
        """Fork a worker on the first call; it closes these descriptors and does nothing else."""
        if self._has_forked:
            return
        self._has_forked = True
        if not os.fork():
            for each in (*inherited, self._writable):
                os.close(each)
            os.read(self._readable, 1)
            os._exit(0)

    def close(self) -> None:
        """End the workers."""
        os.close(self._readable)
        os.close(self._writable)


def line(event: SessionEvent) -> bytes | None:
    """Return a durable event as a line, or None for any other event."""
    if not isinstance(event, DurableEvent):
        return None
    return dump(event_json(event)) + b"\n"


async def host(work: Work, workers: Workers, pipe: int) -> None:
    """Run the work, and write every durable event into the pipe as soon as the ask or the session shows it."""
    crossings = Crossings(work.crossing)
    crossings.install()

    def report(session: Session, event: SessionEvent) -> None:
        if (told := line(event)) is not None:
            crossings.cross()
            os.write(pipe, b"%b %b" % (session.id.encode(), told))
            crossings.cross()

    async def read(session: Session) -> None:
        async for event in session.events():
            report(session, event)

    async def work_on(name: str, scenario: str) -> None:
        session = await runtime.open(TARGET, tools=tools(work.folder), id=name)
        if work.forks:  # after there is something to inherit: the file, its locks, the host's lease
            workers.fork(pipe)
        async with anyio.create_task_group() as readers:
            readers.start_soon(read, session)
            for _ in count() if work.events else range(1):
                await act(session, scenario, partial(report, session))
            readers.cancel_scope.cancel()

    async with serve(OpenAIServer(answer)) as (server,):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}
        journal = SqliteStorage(work.folder / JOURNAL, durability=work.durability)
        made = Runtime(environ=environ, journal=journal, compaction=COMPACTION)
        async with made as runtime, anyio.create_task_group() as tasks:
            for name, scenario in work.sessions.items():
                tasks.start_soon(work_on, name, scenario)


def run_host(work: Work, workers: Workers) -> int:
    """Run the work in a separate process, and store the events that its client saw; return its exit status."""
    work.folder.mkdir()
    with (work.folder / "seen").open("wb") as seen:
        lines = count(1)

        def keep(said: bytes) -> bool:
            seen.write(said)
            return next(lines) == work.events

        return run_forked(lambda pipe: anyio.run(host, work, workers, pipe, backend=work.backend), keep)


def run_forked(function: Callable[[int], object], hear: Callable[[bytes], bool]) -> int:
    """Call a function in a separate process with a pipe; return its exit status, negative for a signal.

    Args:
        function: Called with the writing end of the pipe.
        hear: Called with each complete line; if it returns True, the process is killed.

    Raises:
        AssertionError: The process neither exited with 0 nor was killed.
    """
    readable, writable = os.pipe()
    if not (child := os.fork()):
        status = 1
        try:
            function(writable)
            status = 0
        except BaseException:
            os.write(writable, b"\n" + traceback.format_exc().encode())
        finally:
            os._exit(status)
    os.close(writable)
    said = list[bytes]()
    with open(readable, "rb") as pipe:
        for each in pipe:
            said = [*said[-60:], each]
            if each.endswith(b"\n") and hear(each):
                os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), b"".join(said).decode()
    return status
