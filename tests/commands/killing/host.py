"""A process that does what scenarios say, tells each durable event that its client sees, and is killed.

Each is forked before there is an event loop, so that Python starts once.
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
from actors.core.stream_events.event_json import event_json
from actors.core.stream_events.events import DurableEvent, SessionEvent
from actors.journal.storage import Durability
from actors.journal.storage.sqlite import SqliteStorage
from actors.runtime.handle import Session
from actors.testing import OpenAIServer, serve
from tests.commands.killing.crossings import Crossings
from tests.commands.killing.scenarios import COMPACTION, TARGET, acted, spoken, tools

JOURNAL = "sessions.db"


class Work(Struct, frozen=True):
    """What a process does, and when it dies.

    Args:
        folder: Where its files are.
        sessions: The scenario of each, by name.
        crossing: At which it kills itself; 0 for none.
        events: After so many that its client has seen, of all sessions, it is killed from outside; 0 for never. Until
            then it goes on for ever.
        forks: Whether it has forked a worker, which lives on when it is killed.
    """

    folder: Path
    backend: str
    durability: Durability
    sessions: Mapping[str, str]
    crossing: int = 0
    events: int = 0
    forks: bool = False


class Workers:
    """The life of forked workers: each ends when `close` is called, or when its caller has ended."""

    def __init__(self) -> None:
        self._readable, self._writable = os.pipe()
        self._has_forked = False

    def fork(self, *inherited: int) -> None:
        """Fork one worker, the first time; it closes these descriptors, and does nothing else."""
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
    """Return a durable event as a line; None for any other."""
    if not isinstance(event, DurableEvent):
        return None
    return dump(event_json(event)) + b"\n"


async def host(work: Work, workers: Workers, pipe: int) -> None:
    """Do it, and write every durable event into the pipe as soon as it is seen: in its ask, and in its session."""
    crossings = Crossings(work.crossing)
    crossings.install()

    def seen(session: Session, event: SessionEvent) -> None:
        if (told := line(event)) is not None:
            crossings.cross()
            os.write(pipe, b"%b %b" % (session.id.encode(), told))
            crossings.cross()

    async def read(session: Session) -> None:
        async for event in session.events():
            seen(session, event)

    async def work_on(name: str, scenario: str) -> None:
        session = await runtime.open(TARGET, tools=tools(work.folder), id=name)
        if work.forks:  # now that there is something to inherit: the file, its locks, the host's lease
            workers.fork(pipe)
        async with anyio.create_task_group() as readers:
            readers.start_soon(read, session)
            for _ in count() if work.events else range(1):
                await acted(session, scenario, partial(seen, session))
            readers.cancel_scope.cancel()

    async with serve(OpenAIServer(spoken)) as (server,):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}
        journal = SqliteStorage(work.folder / JOURNAL, durability=work.durability)
        made = Runtime(environ=environ, journal=journal, compaction=COMPACTION)
        async with made as runtime, anyio.create_task_group() as tasks:
            for name, scenario in work.sessions.items():
                tasks.start_soon(work_on, name, scenario)


def hosted(work: Work, workers: Workers) -> int:
    """Do it in a process of its own, and keep what its client saw; return how it ended."""
    work.folder.mkdir()
    with (work.folder / "seen").open("wb") as seen:
        lines = count(1)

        def kept(said: bytes) -> bool:
            seen.write(said)
            return next(lines) == work.events

        return forked(lambda pipe: anyio.run(host, work, workers, pipe, backend=work.backend), kept)


def forked(function: Callable[[int], object], hear: Callable[[bytes], bool]) -> int:
    """Call a function in a process of its own, with a pipe; return its exit status, negative for a signal.

    Args:
        hear: Called with each whole line that it writes there; if that gives true, the process is killed.

    Raises:
        AssertionError: It ended otherwise than with 0 or killed.
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
