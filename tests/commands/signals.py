"""SIGTERM and SIGINT at random moments, once or twice, to commands that share a journal, which is then opened again.

    python -m tests.commands.signals --count 200

Each command is `actors run --json` with running tools, forked from this process; four at a time share the journal. A
command receives its signal some milliseconds after a given number of printed lines. The requirements:

- It exits with the signal's code, 130 or 143, or with 0 if it had completed; after a second signal at once.
- After one signal, all calls of its turn are closed, and the log records the cancellation.
- `actors sessions fsck` finds no damage, and every session continues at the end of its log.
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
from tests.runtime.forked import run_in_fork
from tests.runtime_support import Json
from tests.saying import say

TOGETHER, ROUNDS = 4, 8
SIGNALS = {signal.SIGTERM: 143, signal.SIGINT: 130}
"""The signals, with the exit code of a command that ends by each."""
BEFORE, REFUSED = "ended before its signal", "refused because the journal is slow"
SLOW = b" has been writing for", b"The journal is slow"
"""The message of a command whose writes were delayed for seconds by other commands or a stalled disk."""
MEMORY = Path("/dev/shm")
PATIENCE = 60
"""Seconds after which a running command receives another signal."""
LATER = 0.02
"""The longest delay, in seconds, from a line to a signal."""


@tool(effects="pure")
async def quick(number: int) -> int:
    """Return at once."""
    return number


@tool
async def slow(number: int) -> int:
    """Return after a delay."""
    await anyio.sleep(0.03)
    return number


@tool
def blocks(number: int) -> int:
    """Block a thread for a while."""
    sleep(0.03)
    return number


TOOLS: list[Tool[..., Any]] = [quick, slow, blocks]  # Any: any function


def answer(request: Json) -> Turn:
    """Call every tool, a given number of times, and then answer with text."""
    rounds = sum(message["role"] == "assistant" for message in request["messages"])
    if rounds >= ROUNDS or "Work" not in str(request["messages"][0]["content"]):
        return Turn(Say("Done."))
    return Turn(*[Call(each.name, {"number": rounds}) for each in TOOLS])


@dataclass
class Trial:
    """One command and its signals.

    Args:
        number: The number of the command, part of its prompt, by which its session is found.
        backend: The event loop.
        signals: The signals that it receives.
        lines: The lines that it prints before the first signal.
        pause: The seconds between the last line and the signal.
    """

    number: int
    backend: str
    signals: Sequence[signal.Signals]
    lines: int
    pause: float

    @classmethod
    def at_random(cls, number: int) -> "Trial":
        """Return a random trial."""
        random = Random(number)
        signals = [random.choice([*SIGNALS])] * random.choice((1, 1, 2))
        backend = random.choice(("asyncio", "trio"))
        return cls(number, backend, signals, random.randrange(1, 30), random.uniform(0, LATER))

    def begin(self, journal: Path, url: str) -> None:
        """Fork the command."""
        readable, writable = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            self._run(journal, url, writable)
        os.close(writable)
        self._pipe = os.fdopen(readable, "rb")

    def _run(self, journal: Path, url: str, pipe: int) -> None:
        """Run as the command, and do not return. The original streams of this process stay referenced."""
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
        """Send the signals at their time; return the kind of end."""
        with self._pipe as pipe:
            before = b"".join(pipe.readline() for _ in range(self.lines))
            sleep(self.pause)
            for number in self.signals:
                os.kill(self.pid, number)  # the process has not been waited for yet, so its id is valid
            after = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.judge_end(status, before, after)

    def judge_end(self, status: int, before: bytes, after: bytes) -> str:
        """Return the kind of end as a word. A command that has no work left ends by the signal itself.

        Args:
            status: The exit code, or the signal that ended the command, negative.
            before: The output before the signal, errors included.
            after: The output after the signal.
        """
        (number, *_) = self.signals
        if status == 0:
            return BEFORE
        if status == 1 and any(words in before + after for words in SLOW):
            return REFUSED
        assert status in (SIGNALS[number], -number), (
            f"{self} ended with {status}, not with {SIGNALS[number]}. Its output before the signal:\n"
            f"{before.decode()}After the signal:\n{after.decode()}"
        )
        return f"{number.name} {'twice' if len(self.signals) > 1 else 'once'}"


def judge(trial: Trial, log: Sequence[LogEvent]) -> None:
    """Check that nothing is open in a log after one signal."""
    state = SessionState()
    for event in log:
        state = state.apply(event)
    if len(trial.signals) == 1:
        assert state.bound is None, f"{trial}: its turn is open in its log, which ends {log[-3:]}"
        pending = [item for item in state.ledger.interactions() if item.status == "pending"]
        assert pending == [], f"{trial}: open in its log, which ends {log[-3:]}"
        ends = {event.status for event in log if isinstance(event, TurnEnded)}
        assert ends <= {"complete", "cancelled"}, f"{trial}: its turns ended {ends}"


async def check_sessions(journal: Path, url: str) -> None:
    """Check that every session continues."""
    async with Runtime(environ={"OPENAI_BASE_URL": url}, journal=journal) as runtime:
        for stored in await runtime.journal.list(limit=10_000):
            session = await runtime.resume(stored.id, tools=TOOLS)
            result = await session.ask("Where were we?")
            assert result.status == "complete", (
                f"{stored.id} does not continue: {result.status}, {result.error}"
            )
            await session.close()


async def serve_model() -> None:
    """Run as a strict server that refuses nothing."""
    server = OpenAIServer(answer)
    async with serve(server):
        say(server.base_url)
        await anyio.to_thread.run_sync(sys.stdin.read)
    assert server.refusals == []


def run_trials(folder: Path, count: int, seed: int) -> Counter[str]:
    """Make this many trials, four at a time; return the counts of their ends."""
    for name in LOADED:
        import_module(name)
    gc.freeze()
    ends, journal = Counter[str](), folder / "sessions.db"
    trials = [Trial.at_random(seed + number) for number in range(count)]
    with run_in_fork(partial(anyio.run, serve_model)) as server:
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
        anyio.run(check_sessions, journal, url)
    return ends


def main() -> int:
    """Make the trials, and print their ends; a failed check raises."""
    parser = argparse.ArgumentParser(
        "python -m tests.commands.signals", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    try:
        ends = run_trials(folder, options.count, options.seed)
    except BaseException:
        say(f"The journal is kept: {folder}")
        raise
    shutil.rmtree(folder)
    say(", ".join(f"{count} {how}" for how, count in sorted(ends.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
