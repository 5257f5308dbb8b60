"""Cancels at random moments, with uncooperative tools: every call is closed, and the pool continues to serve.

    python -m tests.commands.cancels --count 1000

This prints, for both backends, the duration of cancels in each phase, the calls that remained open, and whether 50
concurrent fresh requests were served afterwards. `tests/commands/test_cancels.py` makes a few cancels and looks at no
clock.
"""

import argparse
import json
import re
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel

from actors.config import BackendLimits, Config, FileSettings, RuntimeLimits
from actors.core.data.persistent import Segments
from actors.journal.storage import Appended, Entry
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.scheduler.threads import THREADS
from actors.testing import Call, InjectedFault, OpenAIServer, Say, Stall, Turn, serve
from actors.tools import tool
from actors.transport import HttpTransport, Response, Timeouts
from tests.commands.bad_tools import LASTING, Lasting
from tests.runtime_support import assert_paired, backend_at, bodies

Json = dict[str, Any]  # Any: a request body
Held: TypeAlias = tuple[threading.Event, threading.Event]

PHASES = ("queued", "connecting", "first byte", "in arguments", "tools", "journal commit", "any moment")
SESSIONS = 12
_WORDS = re.compile(rf"(?:{'|'.join((*PHASES, 'fresh'))}) \w+ \d+")
FRESH = 50
PATIENCE = 120.0
"""Seconds after which an ask has failed to reach its phase."""
STEPS = 60
"""The most rounds of the event loop before an ask is cancelled, in the phase `any`."""
COMMITS = 5
"""The number of writes of an ask, one of which is held."""
LONG = {"text": "x" * 4000}


@tool
async def work() -> str:
    """Do a piece of work."""
    return "done"


@dataclass
class Moments:
    """Signals from an ask in progress: `notify` is called with its words when the ask reaches its phase."""

    waiting: dict[str, anyio.Event] = field(default_factory=dict)

    def expect(self, words: str) -> anyio.Event:
        """Return an event that is set when the ask with these words reaches its phase."""
        event = self.waiting[words] = anyio.Event()
        return event

    def notify(self, words: str) -> None:
        """Report that the ask has reached its phase."""
        if words in self.waiting:
            self.waiting[words].set()


class Connecting(HttpTransport):
    """The real transport, except that a request with certain words never gets a connection."""

    def __init__(self, moments: Moments) -> None:
        super().__init__(connections=SESSIONS)
        self._moments = moments

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        """Send as the real transport does."""
        words = _final_text(b"".join(segments).decode())
        if words.startswith("connecting"):
            self._moments.notify(words)
            await anyio.sleep_forever()
        async with super().send(url, headers, segments, timeouts) as response:
            yield response


class Committing(MemoryStorage):
    """A storage that blocks: the write of a held session waits until it is released, and signals that it waits."""

    blocking = True

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, tuple[int, threading.Event, threading.Event]] = {}

    def hold(self, session: str, commits: int) -> Held:
        """Hold the next write of a session after `commits` others; return the events of its arrival and release."""
        begun, released = threading.Event(), threading.Event()
        self.held[session] = commits, begun, released
        return begun, released

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Append all entries once none is held."""
        for name in {entry.session for entry in entries} & self.held.keys():
            left, begun, released = self.held.pop(name)
            if left:
                self.held[name] = left - 1, begun, released
            else:
                begun.set()
                assert released.wait(60)
        return super().append(entries)


@dataclass
class Outcome:
    """The result of the cancels: seconds by phase, and the calls that were left open."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    ends: Counter[str] = field(default_factory=Counter)
    open_calls: int = 0
    fresh: int = 0
    in_flight: int = 0
    quarantined: int = 0
    threads: int = 0
    refused: int = 0

    @property
    def problems(self) -> list[str]:
        """Return the violated expectations, apart from times."""
        wrong = {
            "calls are open": self.open_calls,
            "fresh requests were not served": FRESH - self.fresh,
            "requests are in flight": self.in_flight,
            "calls are in quarantine": self.quarantined,
            "places for threads are taken": self.threads,
            "requests were refused": self.refused,
            "asks failed": self.ends.total() - self.ends["cancelled"] - self.ends["complete"],
        }
        return [f"{count} {what}" for what, count in wrong.items() if count]


class Storm:
    """Sessions that ask and are cancelled, each at random moments of its own."""

    def __init__(self, count: int, seed: int) -> None:
        self.moments = Moments()
        self.storage = Committing()
        self.transport = Connecting(self.moments)
        self.server = OpenAIServer(self._turn, faults=self._fault)
        self.full = OpenAIServer(faults=self._fault)
        self.outcome = Outcome()
        self._random, self._left, self._number = Random(seed), count, 0
        self._tools: dict[str, Lasting] = {}
        self._threads = THREADS.taken  # taken by earlier work in this process

    async def run(self) -> Outcome:
        """Cancel this many asks, and check for leaks."""
        async with serve(self.server, self.full):
            return await self._run_storm()

    async def _run_storm(self) -> Outcome:
        backends = {
            "a": backend_at(self.server, BackendLimits(attempts=1)),
            "full": backend_at(self.full, BackendLimits(attempts=1, concurrency=1)),
        }
        limits = RuntimeLimits(tool_threads=256, max_abandoned_calls=256)
        config = Config(FileSettings(backends=backends, limits=limits), {})
        async with Runtime(config, journal=self.storage, transport=self.transport, seed=1) as runtime:
            async with self._full_backend(runtime), anyio.create_task_group() as tasks:
                for number in range(SESSIONS):
                    tasks.start_soon(self._session, runtime, f"s{number}", Random(self._random.random()))
            await self._judge(runtime)
        for body in bodies(self.server):
            assert_paired(body)
        return self.outcome

    @asynccontextmanager
    async def _full_backend(self, runtime: Runtime) -> AsyncIterator[None]:
        """Occupy the only slot of a backend, so that other asks of it wait."""
        holder = await runtime.open("full", id="holder")
        arrived = self.moments.expect("first byte holder 0")
        async with holder.stream("first byte holder 0"):
            await arrived.wait()
            yield
            await holder.cancel()

    async def _session(self, runtime: Runtime, name: str, random: Random) -> None:
        lasting = self._tools[name] = Lasting()
        session = await runtime.open("a", tools=[work, *lasting.tools()], id=name)
        while self._left > 0:
            self._left -= 1
            lasting.released = threading.Event()
            lasting.begun.clear()
            phase = random.choice(PHASES)
            await session.switch("full" if phase == "queued" else "a")
            await self._ask_and_cancel(runtime, session, phase, random)
            ledger = await session.ledger()
            self.outcome.open_calls += sum(known.status == "pending" for known in ledger.interactions())
            lasting.released.set()

    async def _ask_and_cancel(self, runtime: Runtime, session: Session, phase: str, random: Random) -> None:
        """Ask, and cancel once the ask has reached its phase or ended."""
        self._number += 1
        words = f"{phase} {random.choice(LASTING)} {self._number}"
        reached = self.moments.expect(words)
        held = self.storage.hold(session.id, random.randrange(COMMITS)) if phase == "journal commit" else None
        async with session.stream(words) as events, anyio.create_task_group() as tasks:
            with anyio.fail_after(PATIENCE):
                await self._reach_phase(runtime, session, phase, random, reached, held)
            began = time.perf_counter()
            if held is not None:
                tasks.start_soon(_soon, held[1])
            await session.cancel()
            self.outcome.seconds[phase].append(time.perf_counter() - began)
            ends = [event async for event in events if event.type in ("complete", "error")]
        assert len(ends) == 1
        self.outcome.ends[ends[0].result.status] += 1

    async def _reach_phase(
        self,
        runtime: Runtime,
        session: Session,
        phase: str,
        random: Random,
        reached: anyio.Event,
        held: Held | None,
    ) -> None:
        match phase:
            case "queued":
                await _until(lambda: runtime.stats().backends["full"].waiting > 0)
            case "tools":
                await _until(self._tools[session.id].begun.is_set)
            case "journal commit":
                assert held is not None
                await _until(lambda: held[0].is_set() or not session.busy)
                self.storage.held.pop(session.id, None)
            case "any moment" | "in arguments":
                if phase == "in arguments":
                    await reached.wait()
                for _ in range(random.randrange(STEPS)):
                    await anyio.lowlevel.checkpoint()
            case _:
                await reached.wait()

    async def _judge(self, runtime: Runtime) -> None:
        """Let 50 fresh sessions ask at once, and check for leaks."""

        async def ask(name: str) -> None:
            answer = await (await runtime.open("a", tools=[work], id=name)).ask("fresh work 0")
            self.outcome.fresh += answer.status == "complete"

        async with anyio.create_task_group() as tasks:
            for number in range(FRESH):
                tasks.start_soon(ask, f"fresh{number}")
        with anyio.move_on_after(30):
            await _until(lambda: not runtime._quarantine.size and THREADS.taken <= self._threads)
        self.outcome.quarantined = runtime._quarantine.size
        self.outcome.threads = max(0, THREADS.taken - self._threads)
        self.outcome.in_flight = sum(now.in_flight + now.waiting for now in runtime.stats().backends.values())
        self.outcome.refused = len(self.server.refusals) + len(self.full.refusals)

    def _fault(self, number: int, request: Json) -> InjectedFault | None:
        """Fall silent if the user's words request it."""
        words = _words(request)
        if request["messages"][-1]["role"] == "tool" or not words.startswith(("first byte", "in arguments")):
            return None
        self.moments.notify(words)
        return Stall() if words.startswith("first byte") else Stall(after_bytes=3000)

    def _turn(self, request: Json) -> Turn:
        if request["messages"][-1]["role"] == "tool":
            return Turn(Say("Done."))
        phase, kind = _words(request).rsplit(" ", 2)[:2]
        match phase:
            case "in arguments":
                return Turn(Say("I begin."), Call(kind, LONG))
            case "journal commit" | "fresh":
                return Turn(Say("I begin."), Call("work"))
            case _:
                return Turn(Say("I begin."), Call("work"), Call(kind), Call(kind))


def _words(request: Json) -> str:
    return _final_text(json.dumps(request["messages"]))


def _final_text(body: str) -> str:
    """Return the words of the last ask, without the notes that the library puts before them."""
    return str(_WORDS.findall(body)[-1])


async def _until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110
        await anyio.sleep(0.001)  # a thread may set the condition


async def _soon(event: threading.Event) -> None:
    for _ in range(10):
        await anyio.lowlevel.checkpoint()
    event.set()


def report_lines(outcome: Outcome, backend: str) -> list[str]:
    """Return the lines of the report."""
    lines = [f"{backend}: {sum(map(len, outcome.seconds.values()))} cancels: {dict(outcome.ends)}"]
    everything = [second for seconds in outcome.seconds.values() for second in seconds]
    for phase, seconds in (*sorted(outcome.seconds.items()), ("all", everything)):
        p50, p99 = (sorted(seconds)[int(len(seconds) * part)] for part in (0.5, 0.99))
        lines.append(f"  {phase:16}{len(seconds):>6}   p50 {p50 * 1000:8.1f} ms   p99 {p99 * 1000:8.1f} ms")
    lines.append(f"  open calls {outcome.open_calls}, fresh requests served {outcome.fresh} of {FRESH}")
    return lines + [f"  WRONG: {problem}" for problem in outcome.problems]


def main() -> int:
    """Cancel on both backends, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.commands.cancels")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = False
    for backend in ("asyncio", "trio"):
        outcome = anyio.run(Storm(options.count, options.seed).run, backend=backend)
        failed |= bool(outcome.problems)
        sys.stdout.writelines(f"{line}\n" for line in report_lines(outcome, backend))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
