"""Soak: many sessions over loopback HTTP for a long time, with failing servers, cancels and misbehaving tools.

The sessions are those of `actors.testing.stress`. The strict servers run in separate processes, fail a random share of
their requests, and count each. `Soaked.problems` lists the violated expectations.
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
from actors.testing.stressing import DESCRIPTORS, ResourceCounts
from tests.commands.soak.servers import Seen, StrictProcess, run_server

DIALECTS = ("openai_chat", "anthropic", "gemini", "mistral")
POOL = "all"
TICK = 0.02
"""Seconds between two checks of the event loop."""
LOOKS = 20
"""The number of checks within the gathering time; each must find no new connection."""
SHARE = 0.9
"""The share of sessions that must have had their own connection at once; some were cancelled at their first text."""
BREAKER = BackendLimits().failures
"""Consecutive faults after which a backend pauses and asks fail at once."""
PAGE = resource.getpagesize()


class Soak(Struct, frozen=True):
    """The parameters of a soak.

    Args:
        sessions: The number of concurrent sessions.
        seconds: The time after which no more asks start.
        think: The mean seconds between two asks of a session.
        faults: The share of requests answered with a fault.
        gather: The seconds without a new connection after which servers start to answer.
        switching, cancelling: The probabilities for each ask.
        seed: The seed of all random choices.
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
    """The delay of the event loop in seconds, and the memory use in bytes: before, at most, after."""

    late: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    async def watch(self) -> None:
        """Sample both until cancelled."""
        while True:
            began = anyio.current_time()
            await anyio.sleep(TICK)
            self.late.append(anyio.current_time() - began - TICK)
            self.memory.append(resident())

    def delay(self, share: float) -> float:
        """Return the delay that this share of the samples did not exceed."""
        ranked = sorted(self.late) or [0.0]
        return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


@dataclass(frozen=True)
class Soaked:
    """The result of a soak.

    Args:
        sessions: The number of concurrent sessions.
        report: The report of the load.
        counts: The counts of the servers.
        held: The resources of this process before and after.
        loop: Samples of the event loop.
    """

    sessions: int
    report: StressReport
    counts: Sequence[Seen]
    held: tuple[ResourceCounts, ResourceCounts]
    loop: Loop

    @property
    def faults(self) -> Counter[str]:
        """The faults that servers injected, by kind of failure."""
        return sum((Counter(each.faults) for each in self.counts), Counter())

    @property
    def most(self) -> int:
        """The highest number of simultaneous connections, over all servers."""
        return sum(each.most for each in self.counts)

    def _explained_failures(self, cause: str) -> float:
        """Return the number of failed asks that the faults explain.

        Each fault explains one; once the faults of a backend have opened its circuit, they explain any number.
        """
        if cause == "circuit_open":
            return inf if self.faults["transient"] >= BREAKER else 0
        return self.faults[cause]

    @property
    def problems(self) -> list[str]:
        """One line for each violated expectation."""
        refusals = sum((Counter(each.refusals) for each in self.counts), Counter[str]())
        return [
            *[f"{count} requests refused by {rule}" for rule, count in refusals.items()],
            *([f"{self.report.refusals} refused for structure"] if self.report.refusals else []),
            *[
                f"{count} asks failed for {cause}, which {self.faults[cause]} faults do not explain"
                for cause, count in self.report.failures.items()
                if count > self._explained_failures(cause)
            ],
            *[f"{count} {what} leaked" for what, count in self.report.leaks.items() if count],
            *[f"{each.left} connections left at a server" for each in self.counts if each.left],
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
    """Wait beyond the timeout."""
    await anyio.sleep_forever()
    return name


def configuration(servers: Sequence[StrictProcess], sessions: int) -> Config:
    """Return a configuration with these servers, a pool of all of them, and capacity for every session at once."""
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


async def _await_connections(soak: Soak, servers: Sequence[StrictProcess]) -> None:
    """Let the servers answer once every session is connected or no more arrive, after 20 times `gather` at the latest.

    The time is that of the sessions' event loop: while it is busy with all of them, no time passes.
    """
    before = most = _descriptors()
    unchanged = 0
    for _ in range(20 * LOOKS):
        if most >= before + soak.sessions or unchanged == LOOKS:
            break
        await anyio.sleep(soak.gather / LOOKS)
        now = _descriptors()
        if now < before:  # descriptors of earlier work were closed
            before = most = now
        unchanged = unchanged + 1 if before < now <= most else 0
        most = max(most, now)
    for each in servers:
        each.answer()


def _descriptors() -> int:
    return len(os.listdir(DESCRIPTORS))


async def _run_load(
    soak: Soak, servers: Sequence[StrictProcess]
) -> tuple[StressReport, tuple[ResourceCounts, ResourceCounts], Loop]:
    loop, before = Loop(memory=[resident()]), ResourceCounts.now()
    logging.getLogger("actors").setLevel(
        logging.CRITICAL
    )  # some tools fail intentionally, many thousand times
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(loop.watch)
        tasks.start_soon(_await_connections, soak, servers)
        report = await stress(
            POOL,
            config=configuration(servers, soak.sessions),
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
    return report, (before, ResourceCounts.now()), loop


def run(soak: Soak, backend: str) -> Soaked:
    """Run the soak on an event loop."""
    with ExitStack() as stack:
        servers = [stack.enter_context(run_server(name, soak.seed, soak.faults)) for name in DIALECTS]
        told = anyio.run(_run_load, soak, servers, backend=backend)
        return Soaked(soak.sessions, told[0], [each.counts() for each in servers], told[1], told[2])


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
