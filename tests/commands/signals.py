"""SIGTERM and SIGINT at random instants, once or twice, to commands that share a journal; then it is opened again.

    python -m tests.commands.signals --count 200

Each command is `actors run --json` with tools in flight, forked from this process; four at a time share the journal. It
is signalled once it has printed so many lines, and some milliseconds later. What must be:

- it ends with the signal's code, 130 or 143, or with 0 if it was done before; after a second signal at once;
- after one signal all that its turn called is closed, and that it was cancelled is in the log;
- `actors sessions fsck` finds nothing, and every session goes on where its log ends.
"""

import argparse
import gc
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import anyio
import anyio.to_thread

import actors.cli
from actors import Runtime, tool
from actors.core.log.events import AskStarted, LogEvent, TurnEnded
from actors.core.session.state import SessionState
from actors.core.values.packed import unpack
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.check import JournalFile
from actors.testing import Call, OpenAIServer, Say, Turn, serve
from actors.tools import Tool
from tests.cli.forking import LOADED
from tests.runtime.forked import beside
from tests.runtime_support import Json
from tests.saying import say

TOGETHER, ROUNDS = 4, 8
SIGNALS = {signal.SIGTERM: 143, signal.SIGINT: 130}
"""With the exit code of a command that one ends."""
BEFORE, REFUSED = "ended before its signal", "was told that the journal is slow"
SLOW = b" has been writing for", b"The journal is slow"
"""What a command says that others, or a disk that stands still, kept from writing for seconds."""
MEMORY = Path("/dev/shm")
PATIENCE = 60
"""Seconds after which a command that has not ended is ended by another signal."""
LATER = 0.02
"""Seconds at most from a line to a signal."""


@tool(effects="pure")
async def quick(number: int) -> int:
    """Return at once."""
    return number


@tool
async def slow(number: int) -> int:
    """Return after a while."""
    await anyio.sleep(0.03)
    return number


@tool
def blocks(number: int) -> int:
    """Block a thread for a while."""
    sleep(0.03)
    return number


TOOLS: list[Tool[..., Any]] = [quick, slow, blocks]  # Any: any function


def spoken(request: Json) -> Turn:
    """Call every tool, so many times, and then say something."""
    rounds = sum(message["role"] == "assistant" for message in request["messages"])
    if rounds >= ROUNDS or "Work" not in str(request["messages"][0]["content"]):
        return Turn(Say("Done."))
    return Turn(*[Call(each.name, {"number": rounds}) for each in TOOLS])


@dataclass
class Trial:
    """One command, and its signals.

    Args:
        number: It is told that, so that its session is found.
        backend: It runs on.
        signals: It gets.
        lines: It prints before.
        pause: Seconds after that.
    """

    number: int
    backend: str
    signals: Sequence[signal.Signals]
    lines: int
    pause: float

    @classmethod
    def at_random(cls, number: int) -> "Trial":
        """Return one of these."""
        random = Random(number)
        signals = [random.choice([*SIGNALS])] * random.choice((1, 1, 2))
        backend = random.choice(("asyncio", "trio"))
        return cls(number, backend, signals, random.randrange(1, 30), random.uniform(0, LATER))

    def begin(self, journal: Path, url: str) -> None:
        """Fork it."""
        readable, writable = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            self._be(journal, url, writable)
        os.close(writable)
        self._pipe = os.fdopen(readable, "rb")

    def _be(self, journal: Path, url: str, pipe: int) -> None:
        """Be the command; do not return. What this process's streams were, perhaps files, is kept in them."""
        code = 1
        signal.alarm(PATIENCE)
        try:
            for number in (1, 2):
                os.dup2(pipe, number)
            sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
            os.environ["OPENAI_BASE_URL"] = url
            sys.argv = ["actors", "run", "--json", "-m", "openai:m", "--journal", str(journal)]
            sys.argv += [
                "--tools",
                "tests.commands.signals:TOOLS",
                "--approve",
                "allow",
                "--backend",
                self.backend,
            ]
            sys.argv.append(f"Work {self.number}")
            code = actors.cli.main()
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def end(self) -> str:
        """Signal it when it has come so far; return how it ended."""
        with self._pipe as pipe:
            before = b"".join(pipe.readline() for _ in range(self.lines))
            sleep(self.pause)
            for number in self.signals:
                os.kill(self.pid, number)  # its process is not waited for yet, so there is one
            after = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.judged(status, before, after)

    def judged(self, status: int, before: bytes, after: bytes) -> str:
        """Return how it ended, in a word. That of the signal itself comes when a command has nothing to do any more.

        Args:
            status: The exit code, or the signal that ended it, negative.
            before: What it printed before it was signalled, errors too.
            after: What it printed after.
        """
        (number, *_) = self.signals
        if status == 0:
            return BEFORE
        if status == 1 and any(words in before + after for words in SLOW):
            return REFUSED
        assert status in (SIGNALS[number], -number), (
            f"{self} ended with {status}, not with {SIGNALS[number]}. Printed before it was signalled:\n"
            f"{before.decode()}And after:\n{after.decode()}"
        )
        return f"{number.name} {'twice' if len(self.signals) > 1 else 'once'}"


def judge(trial: Trial, log: Sequence[LogEvent]) -> None:
    """After one signal nothing is open in a log."""
    state = SessionState()
    for event in log:
        state = state.apply(event)
    if len(trial.signals) == 1:
        assert state.bound is None, f"{trial}: its turn is open in its log, which ends {log[-3:]}"
        pending = [item for item in state.ledger.interactions() if item.status == "pending"]
        assert pending == [], f"{trial}: open in its log, which ends {log[-3:]}"
        ends = {event.status for event in log if isinstance(event, TurnEnded)}
        assert ends <= {"complete", "cancelled"}, f"{trial}: its turns ended {ends}"


async def gone_on(journal: Path, url: str) -> None:
    """Every session goes on."""
    async with Runtime(environ={"OPENAI_BASE_URL": url}, journal=journal) as runtime:
        for stored in await runtime.journal.list(limit=10_000):
            session = await runtime.resume(stored.id, tools=TOOLS)
            result = await session.ask("Where were we?")
            assert result.status == "complete", f"{stored.id} does not go on: {result.status}, {result.error}"
            await session.close()


async def served() -> None:
    """Be a strict server that refuses nothing."""
    server = OpenAIServer(spoken)
    async with serve(server):
        say(server.base_url)
        await anyio.to_thread.run_sync(sys.stdin.read)
    assert server.refusals == []


def tried(folder: Path, count: int, seed: int) -> Counter[str]:
    """Try so many, four at a time; return how they ended."""
    for name in LOADED:
        import_module(name)
    gc.freeze()
    ends, journal = Counter[str](), folder / "sessions.db"
    trials = [Trial.at_random(seed + number) for number in range(count)]
    with beside(partial(anyio.run, served)) as server:
        url = server.readline().strip()
        for start in range(0, count, TOGETHER):
            running = trials[start : start + TOGETHER]
            for trial in running:
                trial.begin(journal, url)
            ends.update([trial.end() for trial in running])
        with closing(JournalFile(journal)) as file:
            damage = list(file.damage())
            assert damage == [], f"After all commands the journal is damaged: {damage}"
        with closing(SqliteStorage(journal)) as storage:
            logs = [storage.read(stored.id) for stored in storage.sessions(limit=10_000)]
        by_words = {
            unpack(event.message).text: log for log in logs for event in log if isinstance(event, AskStarted)
        }
        for trial in trials:
            judge(trial, by_words.get(f"Work {trial.number}", []))
        anyio.run(gone_on, journal, url)
    return ends


def main() -> int:
    """Try them, and say how they ended; what does not hold raises."""
    parser = argparse.ArgumentParser(
        "python -m tests.commands.signals", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    try:
        ends = tried(folder, options.count, options.seed)
    except BaseException:
        say(f"The journal is kept: {folder}")
        raise
    shutil.rmtree(folder)
    say(", ".join(f"{count} {how}" for how, count in sorted(ends.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
