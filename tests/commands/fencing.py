"""Exclusive writers: one of a thousand concurrent openers, one of two processes, and never a host after its takeover.

    python -m tests.commands.fencing --opens 1000 --races 50 --stops 20

The two processes of a race are `python -m tests.commands.fencing --others JOURNAL SERVER BACKEND STREAMS`. Each reads
lines: `open ID`, `resume ID`, or `leave` once it has the session.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from random import Random
from time import sleep

import anyio
import anyio.to_thread

from actors import Runtime
from actors.core.log.events import AskStarted, Opened, SwitchApplied, TurnEnded
from actors.errors import SessionExists, SessionLeased
from actors.journal.storage import Entry
from actors.journal.storage.sqlite import SqliteStorage
from actors.runtime.handle import Session
from actors.testing import OpenAIServer, serve
from tests.journal.storages import to
from tests.runtime.test_takeover import Child, take_over
from tests.saying import say

TARGET = "openai:gpt-5.2"
LEASE = 0.3
"""Seconds of the lease of a stopped process."""


def runtime(path: Path, server: str) -> Runtime:
    """Return a runtime that shares the file."""
    return Runtime(environ={"OPENAI_BASE_URL": server}, journal=SqliteStorage(path, durability="process"))


async def try_open(made: Runtime, how: str, name: str) -> Session | None:
    """Open or resume a session; return None if another host has it."""
    try:
        return await (made.open(TARGET, id=name) if how == "open" else made.resume(name))
    except (SessionExists, SessionLeased):
        return None


async def open_concurrently(folder: Path, count: int) -> None:
    """Open one session from many tasks of two runtimes, and then resume it; exactly one task succeeds each time."""
    path = folder / "sessions.db"
    for how in ("open", "resume"):
        async with (
            serve(OpenAIServer()) as (server,),
            runtime(path, server.base_url) as one,
            runtime(path, server.base_url) as other,
        ):
            sessions = list[Session | None]()

            async def take(made: Runtime, how: str = how, sessions: list[Session | None] = sessions) -> None:
                sessions.append(await try_open(made, how, "one"))

            async with anyio.create_task_group() as tasks:
                for number in range(count):
                    tasks.start_soon(take, (one, other)[number % 2])
            (session,) = filter(None, sessions)
            assert len(sessions) == count
            assert (await session.ask("Are you there?")).status == "complete"
    with closing(SqliteStorage(path)) as storage:
        log = Counter(type(event) for event in storage.read("one"))
    assert (log[Opened], log[AskStarted], log[TurnEnded]) == (1, 2, 2)


class Other:
    """A runtime in another process, at the other ends of two pipes: `streams`, its input and its output."""

    def __init__(self) -> None:
        (reads, words), (said, writes) = os.pipe(), os.pipe()
        self.streams = reads, writes
        self._words, self._said = os.fdopen(words, "w"), os.fdopen(said)

    def send(self, words: str) -> None:
        """Send a command to the other process."""
        self._words.write(f"{words}\n")
        self._words.flush()

    def receive(self) -> str:
        """Return a line from the other process."""
        return self._said.readline().strip()

    def close(self) -> None:
        """Close the input of the other process, so that it ends."""
        self._words.close()
        self._said.close()


@contextmanager
def fork_two(path: Path, server: str, backend: str) -> Iterator[list[Other]]:
    """Yield two processes, the second forked from the first, so that modules are imported once."""
    others = Other(), Other()
    streams = [stream for each in others for stream in each.streams]
    line = [sys.executable, "-m", "tests.commands.fencing", "--others", str(path), server, backend]
    process = subprocess.Popen([*line, *map(str, streams)], pass_fds=streams)
    for stream in streams:
        os.close(stream)
    try:
        yield [*others]
    finally:
        for each in others:
            each.close()
        assert process.wait() == 0


@asynccontextmanager
async def two(folder: Path, backend: str) -> AsyncIterator[list[Other]]:
    """Yield two processes that share a file."""
    async with serve(OpenAIServer()) as (server,):
        with fork_two(folder / "sessions.db", server.base_url, backend) as others:
            for each in others:
                assert await anyio.to_thread.run_sync(each.receive) == "ready"
            yield others


async def race(folder: Path, races: int, backend: str) -> None:
    """Let two processes open a session at once, and then resume it; exactly one succeeds each time."""
    async with two(folder, backend) as others:
        for number in range(races):
            for how in ("open", "resume"):
                for each in others:
                    each.send(f"{how} r{number}")
                said = [await anyio.to_thread.run_sync(each.receive) for each in others]
                assert sorted(said) == ["elsewhere", "has it"], said
                for each in others:
                    each.send("leave")
                assert [await anyio.to_thread.run_sync(each.receive) for each in others] == ["left", "left"]
    with closing(SqliteStorage(folder / "sessions.db")) as storage:
        for number in range(races):
            log = Counter(type(event) for event in storage.read(f"r{number}"))
            assert (log[Opened], log[AskStarted], log[TurnEnded]) == (1, 2, 2)


async def run_other(path: Path, server: str) -> None:
    """Race until the input ends."""
    say("ready")
    while words := (await anyio.to_thread.run_sync(sys.stdin.readline)).split():
        async with runtime(path, server) as made:
            session = await try_open(made, *words)
            say("has it" if session else "elsewhere")
            assert (await anyio.to_thread.run_sync(sys.stdin.readline)).strip() == "leave"
            if session:
                assert (await session.ask("Are you there?")).status == "complete"
        say("left")


def run_two(path: Path, server: str, backend: str, streams: Sequence[int]) -> int:
    """Run as one of two processes, and fork the other before an event loop exists."""
    child = os.fork()
    for number, stream in enumerate(streams[:2] if child else streams[2:]):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)  # otherwise one process would keep the other's pipe open
    anyio.run(run_other, path, server, backend=backend)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else 0


def stop_and_take_over(folder: Path, seed: int) -> None:
    """Stop a process while it writes, take over its session, and resume the process: it writes nothing more."""
    path = folder / "sessions.db"
    child = Child(str(path), "tests.runtime.takeover_child", str(LEASE))
    try:
        take_over_while_stopped(path, child, seed)
    finally:
        child.end()


def take_over_while_stopped(path: Path, child: Child, seed: int) -> None:
    assert child.read_words() == ["open"]
    assert child.ask("claim", "one") == ["claimed", "1", "0"]
    child.tell("load", "one", 1)
    for _ in range(Random(seed).randrange(1, 60)):
        child.read_words()
    child.stop(str(path))
    with closing(SqliteStorage(path, durability="process", lease=600)) as mine:
        sleep(LEASE)
        claim = take_over(mine, "one")
        child.signal(signal.SIGCONT)
        while (said := child.read_words()) != ["fenced"]:
            assert int(said[0]) <= claim.last
        assert mine.append([Entry("one", claim.fence, (to("live"),))]) == [claim.last + 1]
        for _ in range(20):
            assert child.read_words() == ["fenced"]
        log = [event.target for event in mine.read("one") if isinstance(event, SwitchApplied)]
    assert log == [*map(str, range(claim.last)), "live"]


def main() -> int:
    """Run all checks and print a summary; a failed check raises."""
    parser = argparse.ArgumentParser(
        "python -m tests.commands.fencing", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--opens", type=int, default=1000, help="concurrent openers of one session on each backend"
    )
    parser.add_argument(
        "--races", type=int, default=50, help="races of two processes, half of them on each backend"
    )
    parser.add_argument(
        "--stops", type=int, default=20, help="stopped processes that are taken over and resume"
    )
    parser.add_argument("--others", nargs=7, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.others:
        path, server, backend, *streams = options.others
        return run_two(Path(path), server, backend, [int(stream) for stream in streams])
    with tempfile.TemporaryDirectory() as root:
        for backend in ("asyncio", "trio"):
            folder = Path(root, backend)
            folder.mkdir()
            anyio.run(open_concurrently, folder, options.opens, backend=backend)
            say(
                f"{backend}: one of {options.opens:,} concurrent openers got the session, and one of as many resumers"
            )
            anyio.run(race, folder, options.races // 2, backend, backend=backend)
            say(
                f"{backend}: one of two processes got the session, {options.races // 2} times, and resumed it"
            )
        for seed in range(options.stops):
            folder = Path(root, str(seed))
            folder.mkdir()
            stop_and_take_over(folder, seed)
        say(f"a stopped process that was taken over wrote nothing after it resumed, {options.stops} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
