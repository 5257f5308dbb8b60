"""Soak: many sessions for a long time over loopback HTTP, while servers fail, callers cancel and tools misbehave.

The sessions are those of `actors.testing.stress`. The strict servers run in processes of their own, fail a share of
their requests by chance, and count each. What must hold is `Soaked.problems`.
"""

import logging
import os
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import anyio
from msgspec import Struct

from actors import tool
from actors.config import BackendLimits, BackendSettings, Config, FileSettings, PoolSettings, RuntimeLimits
from actors.config.providers import kind_of
from actors.core.dialects.profiles import dialect
from actors.testing import StressReport, stress
from actors.testing.stressing.resources import DESCRIPTORS, Held
from tests.commands.soak.servers import Seen, StrictProcess, serving

DIALECTS = ("openai_chat", "anthropic", "gemini", "mistral")
POOL = "all"
TICK = 0.02
"""Seconds between two looks at the event loop."""
LOOKS = 20
"""In the time for which no session must have connected anew."""
SHARE = 0.9
"""Of the sessions that must have had a connection of their own at once; some were cancelled at their first word."""
BREAKER = BackendLimits().failures
"""Faults in a row after which a backend is left alone for a while, and asks fail at once."""
PAGE = resource.getpagesize()


class Soak(Struct, frozen=True):
    """How it is done.

    Args:
        sessions: At once.
        seconds: When no more asks begin.
        think: Seconds between two asks of a session, on average.
        faults: Share of requests that are answered with a fault.
        gather: Seconds for which no session must have connected anew before servers answer at all.
        switching, cancelling: Chances, for each ask.
        seed: Of all chances.
    """

    sessions: int = 2000
    seconds: float = 300.0
    think: float = 30.0
    faults: float = 0.03
    gather: float = 10.0
    switching: float = 0.2
    cancelling: float = 0.05
    seed: int = 0


@dataclass
class Loop:
    """How late the event loop was, in seconds, and the memory in use, in bytes: before, at most, after."""

    late: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    async def watch(self) -> None:
        """Look at both until cancelled."""
        while True:
            began = anyio.current_time()
            await anyio.sleep(TICK)
            self.late.append(anyio.current_time() - began - TICK)
            self.memory.append(resident())

    def delay(self, share: float) -> float:
        """Return the delay that so large a share of the looks stayed within."""
        ranked = sorted(self.late) or [0.0]
        return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


@dataclass(frozen=True)
class Soaked:
    """What came of it.

    Args:
        sessions: How many there were at once.
        report: Of the load.
        seen: What the servers counted.
        held: What this process held before and after.
        loop: What was seen of it on the way.
    """

    sessions: int
    report: StressReport
    seen: Sequence[Seen]
    held: tuple[Held, Held]
    loop: Loop

    @property
    def faults(self) -> Counter[str]:
        """Faults that servers answered with, by the kind of failure."""
        return sum((Counter(each.faults) for each in self.seen), Counter())

    @property
    def most(self) -> int:
        """Connections at once, at all servers."""
        return sum(each.most for each in self.seen)

    def _explained(self, cause: str) -> float:
        """Return how many failed asks the faults explain: one each, and any number once they shut a backend off."""
        if cause == "circuit_open":
            return inf if self.faults["transient"] >= BREAKER else 0
        return self.faults[cause]

    @property
    def problems(self) -> list[str]:
        """A line for each thing that must not be."""
        refusals = sum((Counter(each.refusals) for each in self.seen), Counter[str]())
        return [
            *[f"{count} requests refused by {rule}" for rule, count in refusals.items()],
            *([f"{self.report.refusals} refused for structure"] if self.report.refusals else []),
            *[
                f"{count} asks failed for {cause}, which {self.faults[cause]} faults do not explain"
                for cause, count in self.report.failures.items()
                if count > self._explained(cause)
            ],
            *[f"{count} {what} leaked" for what, count in self.report.leaks.items() if count],
            *[f"{each.left} connections left at a server" for each in self.seen if each.left],
            *([] if self.report.asks.get("complete") else ["no ask completed"]),
            *([] if self.most >= SHARE * self.sessions else [f"only {self.most} connections at once"]),
        ]


@tool(effects="pure")
async def look(name: str) -> str:
    """Look something up."""
    await anyio.sleep(0.01)
    return f"{name} is there"


@tool
def count(text: str) -> int:
    """Count the letters of a text, in a thread."""
    return len(text)


@tool
async def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@tool(timeout=0.05)
async def hang(name: str) -> str:
    """Wait for longer than its time."""
    await anyio.sleep_forever()
    return name


def configured(servers: Sequence[StrictProcess], sessions: int) -> Config:
    """Return a configuration of these servers and a pool of all, with room for every session at once."""
    limits = BackendLimits(concurrency=sessions, connect_timeout=60, first_byte_timeout=120, idle_timeout=60)
    backends = {
        each.name: BackendSettings.model_validate(
            {"kind": kind_of(dialect(each.dialect)), "dialect": each.dialect}
            | {"model": "model", "base_url": each.endpoint, "limits": limits}
        )
        for each in servers
    }
    pools = {POOL: PoolSettings(members=tuple(backends), policy="round_robin")}
    whole = RuntimeLimits(connections=sessions)
    return Config(FileSettings(backends=backends, pools=pools, limits=whole), {})


async def _gathered(soak: Soak, servers: Sequence[StrictProcess]) -> None:
    """Have the servers answer once every session is connected, or no more come.

    The time is that of the loop in which the sessions run: while that is busy with all of them, none passes.
    """
    before = most = _descriptors()
    looks = 0
    while most < before + soak.sessions and looks < LOOKS:
        await anyio.sleep(soak.gather / LOOKS)
        now = _descriptors()
        looks = looks + 1 if before < now <= most else 0
        most = max(most, now)
    for each in servers:
        each.answer()


def _descriptors() -> int:
    return len(os.listdir(DESCRIPTORS))


async def _loaded(
    soak: Soak, servers: Sequence[StrictProcess]
) -> tuple[StressReport, tuple[Held, Held], Loop]:
    loop, before = Loop(memory=[resident()]), Held.now()
    logging.getLogger("actors").setLevel(logging.CRITICAL)  # some tools fail on purpose, many thousand times
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(loop.watch)
        tasks.start_soon(_gathered, soak, servers)
        report = await stress(
            POOL,
            config=configured(servers, soak.sessions),
            tools=(look, count, fail, hang),
            sessions=soak.sessions,
            turns=sys.maxsize,
            switches=(*DIALECTS, POOL),
            switching=soak.switching,
            cancelling=soak.cancelling,
            think=soak.think,
            seconds=soak.seconds,
            seed=soak.seed,
        )
        tasks.cancel_scope.cancel()
    loop.memory.append(resident())
    return report, (before, Held.now()), loop


def run(soak: Soak, backend: str) -> Soaked:
    """Do it on an event loop."""
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(name, soak.seed, soak.faults)) for name in DIALECTS]
        told = anyio.run(_loaded, soak, servers, backend=backend)
        return Soaked(soak.sessions, told[0], [each.seen() for each in servers], told[1], told[2])


def resident() -> int:
    """Return the bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
