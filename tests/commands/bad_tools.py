"""A tool of each bad kind in one of many sessions: results, logs and request bodies of the others do not change.

    python -m tests.commands.bad_tools

This plays every kind in one of 100 sessions on both backends and compares the other 99 with a clean run.
`tests/commands/test_bad_tools.py` plays some of them.
"""

import argparse
import json
import logging
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from actors.config import RuntimeLimits
from actors.core.data.record import replace
from actors.core.log.codec import encode_event
from actors.core.log.events import LogEvent, Opened
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.testing import Call, OpenAIServer, Say, Turn
from actors.tools import Tool, tool
from tests.runtime_support import runtime_with
from tests.scheduler.test_isolation import HOSTILE, TOOLS

AnyTool = Tool[..., Any]  # Any: any function
Json = dict[str, Any]  # Any: a request body

BAD = "s7"
"""The session that has the bad tool."""
ASKS = 2
PAUSE = 0.01
"""Seconds between two cancellations that a tool swallows; it is cancelled at each wait."""
BLOCKED = 0.05
"""Seconds for which a tool blocks the event loop."""


@dataclass
class Lasting:
    """Tools that run until they are released, each in its own way; `begun` is set once one of them runs.

    A new `released` event controls the tools that start after it is set.
    """

    released: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)

    def tools(self) -> list[AnyTool]:
        """Return one tool of each kind."""
        return [
            tool(self.hangs),
            tool(self.blocks),
            tool(self.shields),
            tool(self.swallows),
            tool(self.holds_the_loop),
        ]

    async def hangs(self) -> str:
        """Wait forever."""
        self.begun.set()
        await anyio.sleep_forever()
        return "never"

    def blocks(self) -> str:
        """Block a thread."""
        self.begun.set()
        self.released.wait()
        return "late"

    async def shields(self) -> str:
        """Ignore cancellation."""
        self.begun.set()
        with anyio.CancelScope(shield=True):
            await _until(self.released)
        return "late"

    async def swallows(self) -> str:
        """Swallow each cancellation."""
        released = self.released
        self.begun.set()
        while not released.is_set():
            try:
                await _until(released)
            except GeneratorExit:
                raise
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(PAUSE)
        return "late"

    async def holds_the_loop(self) -> str:
        """Block the event loop for a while, and then wait."""
        self.begun.set()
        time.sleep(BLOCKED)  # noqa: ASYNC251  blocking is the fault under test
        await anyio.sleep_forever()
        return "never"


async def _until(released: threading.Event) -> None:
    while not released.is_set():  # noqa: ASYNC110  a thread's event, which a blocked thread waits for too
        await anyio.sleep(PAUSE)


LASTING = tuple(made.name for made in Lasting().tools())
KINDS: dict[str, Call] = {
    **{f"{call.name} {next(iter(call.arguments.values()))}": call for call in HOSTILE},
    **{name: Call(name) for name in LASTING},
}
"""The call of the bad session's model, by the name of its kind."""


@dataclass
class Seen:
    """The observations of the sessions without a bad tool: ask results, logs, and request bodies."""

    answers: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    logs: dict[str, list[bytes]] = field(default_factory=dict)
    bodies: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    bad: list[str] = field(default_factory=list)
    """The statuses of the asks of the bad session."""
    open_calls: int = 0
    refusals: int = 0

    def differs(self, clean: "Seen") -> list[str]:
        """Return a line for each session that differs from the clean run."""
        problems = [
            f"{name}: its {what} differ" for name in clean.logs for what in self._changes(clean, name)
        ]
        problems += [f"{self.open_calls} calls are open"] * bool(self.open_calls)
        return problems + [f"{self.refusals} requests were refused"] * bool(self.refusals)

    def _changes(self, clean: "Seen", name: str) -> list[str]:
        parts = ("answers", "logs", "bodies")
        return [part for part in parts if getattr(self, part)[name] != getattr(clean, part)[name]]


def _session_of(request: Json) -> tuple[str, bool]:
    """Return the session of a request, and whether its tools have been called."""
    words = next(said["content"] for said in request["messages"] if said["role"] == "user")
    return words.split()[-1], request["messages"][-1]["role"] == "tool"


def _model(bad: Call | None) -> Callable[[Json], Turn]:
    def turn(request: Json) -> Turn:
        name, is_done = _session_of(request)
        if is_done:
            return Turn(Say(f"Done for {name}."))
        work = Call("work", {"name": name})
        return Turn(bad, work, ids="restart") if bad and name == BAD else Turn(work, ids="restart")

    return turn


async def _work(session: Session, seen: Seen) -> None:
    """Ask a good session once."""
    answer = await session.ask(f"Work for {session.id}", check=False)
    seen.answers[session.id].append((answer.status, answer.text))


async def _misbehave(session: Session, seen: Seen) -> None:
    for _ in range(ASKS):
        seen.bad.append((await session.ask(f"Work for {session.id}", check=False)).status)


async def play(kind: str | None, sessions: int) -> Seen:
    """Play this many sessions, one of which has a bad tool of the kind; None is the clean run."""
    bad = KINDS[kind] if kind is not None else None
    server, seen, lasting = OpenAIServer(_model(bad)), Seen(), Lasting()

    @tool
    async def work(name: str) -> str:
        """Do a piece of work."""
        await anyio.lowlevel.checkpoint()
        return f"{name} is done"

    async with runtime_with(a=server, limits=RuntimeLimits(tool_threads=128)) as runtime:
        try:
            opened = [
                await runtime.open("a", tools=[work], id=f"s{at}")
                for at in range(sessions)
                if f"s{at}" != BAD
            ]
            spoilt = await runtime.open("a", tools=[work, *TOOLS, *lasting.tools()], id=BAD)
            await _ask_all(
                opened, spoilt, seen, lasts=bad is not None and bad.name in LASTING, lasting=lasting
            )
        finally:
            lasting.released.set()
        await _collect_logs(runtime, opened, seen, f":{server.port}/".encode())
    seen.refusals = len(server.refusals)
    for exchange in server.requests:
        body = json.loads(exchange.body)
        del body["prompt_cache_key"]  # depends on the endpoint too, whose port differs between runs
        seen.bodies[_session_of(body)[0]].append(json.dumps(body))
    return seen


async def _ask_all(
    opened: list[Session], spoilt: Session, seen: Seen, *, lasts: bool, lasting: Lasting
) -> None:
    """Let the good sessions ask while the bad tool runs: first alone, then together with tools in quarantine."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_misbehave, spoilt, seen)
        for number in range(ASKS):
            while lasts and not lasting.begun.is_set() and len(seen.bad) == number:
                await anyio.lowlevel.checkpoint()
            async with anyio.create_task_group() as good:
                for session in opened:
                    good.start_soon(_work, session, seen)
            lasting.begun.clear()
            if lasts:
                await spoilt.cancel()


async def _collect_logs(runtime: Runtime, opened: list[Session], seen: Seen, port: bytes) -> None:
    for name in runtime.sessions:
        ledger = await runtime.session(name).ledger()
        seen.open_calls += sum(known.status == "pending" for known in ledger.interactions())
    for session in opened:
        events = runtime._storage.read(session.id)
        seen.logs[session.id] = [encode_event(_keyless(event)).replace(port, b":1/") for event in events]


def _keyless(event: LogEvent) -> LogEvent:
    """Return an event without the session's key, which differs between runs."""
    return replace(event, key="") if isinstance(event, Opened) else event


def main() -> int:
    """Play every kind on both backends."""
    parser = argparse.ArgumentParser(prog="python -m tests.commands.bad_tools")
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--only", default="", help="a word in the names of the kinds to play")
    options = parser.parse_args()
    logging.disable()  # the tools' exceptions are expected
    failed, chosen = 0, [kind for kind in KINDS if options.only in kind]
    for backend in ("asyncio", "trio"):
        clean = anyio.run(play, None, options.sessions, backend=backend)
        for kind in chosen:
            seen = anyio.run(play, kind, options.sessions, backend=backend)
            problems = seen.differs(clean)
            failed += bool(problems)
            said = "; ".join(problems[:5]) or f"the other {len(clean.logs)} are unchanged"
            sys.stdout.write(f"{backend:8}{kind:40}{'/'.join(seen.bad):22}{said}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{2 * len(chosen)} runs of {options.sessions} sessions: {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
