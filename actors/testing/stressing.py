"""Run stress tests: many concurrent sessions with your own tools and backends.

    report = await stress(tools=[weather], sessions=200, turns=10)      # built-in servers on this machine
    report = await stress("vllm", config="actors.toml", tools=[weather])
    assert report.is_sound, report

The sessions ask, pause, switch and cancel. By default, only backends on this machine are allowed. The report counts
failed asks, requests that were rejected for their structure, and leaked tasks, threads and descriptors.
"""

import gc
import os
import sys
import threading
from asyncio import all_tasks
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from math import ceil, inf
from pathlib import Path
from random import Random
from typing import Any, Self
from urllib.parse import urlsplit

import anyio
from msgspec import Struct

from actors.config import BackendSettings, Config, FileSettings, PoolSettings, load
from actors.config.providers import kind_of
from actors.core.dialects.profiles import dialect
from actors.core.stream_events.ask_events import AskResult
from actors.core.turn.batch import Approve
from actors.errors import ActorsError, ConfigError
from actors.kernel.event_loop import running_loop
from actors.provider.provider_actor import Counters
from actors.runtime.collector import GcPolicy
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.strict.dialects import strict_server
from actors.strict.faults import InjectedFaults
from actors.strict.rules.base import Json
from actors.strict.script import Turn
from actors.strict.server import Exchange, LoopbackServer, ServerLimits, serve
from actors.testing.standin import answer
from actors.tools.toolset import ToolLike

__all__ = ["StressReport", "stress"]

BUILT_IN = ("openai_chat", "anthropic", "gemini", "mistral")
"""Dialects of the strict servers that form the pool `built-in`, the default target."""
POOL = "built-in"
DESCRIPTORS = Path("/proc/self/fd")
LOOP_THREADS = ("asyncio_", "AnyIO worker", "Trio thread")
"""Name prefixes of threads that the event loop keeps for itself, for example for name resolution."""
CLOSE_TIMEOUT = 3.0
"""Maximum seconds to wait for threads and sockets that are still closing."""


class Load(Struct, frozen=True):
    """The load of a stress test.

    Args:
        target: Initial target of each session.
        sessions: Number of concurrent sessions.
        turns: Asks per session.
        switches: Targets for random switches before asks.
        switching: Probability of a switch before each ask.
        cancelling: Probability of cancelling each ask.
        think: Mean pause between two asks, in seconds.
        seconds: Seconds after which no new ask begins; None for no limit.
        prompt: The user message of each ask.
        seed: Seed of the random choices.

    Raises:
        ConfigError: A value is out of range.
    """

    target: str
    sessions: int = 100
    turns: int = 10
    switches: Sequence[str] = ()
    switching: float = 0.2
    cancelling: float = 0.02
    think: float = 0.0
    seconds: float | None = None
    prompt: str = "Go on, please."
    seed: int = 0

    def __post_init__(self) -> None:
        for name, (takes, fits) in _FIGURES.items():
            if not fits(value := getattr(self, name)):
                raise ConfigError(f"{name}= must be {takes}, not {value!r}")


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_probability(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


_FIGURES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "sessions": ("an integer of at least 1", _is_count),
    "turns": ("an integer of at least 1", _is_count),
    "switching": ("a probability from 0 to 1", _is_probability),
    "cancelling": ("a probability from 0 to 1", _is_probability),
    "think": (
        "a number of seconds, at least 0",
        lambda value: isinstance(value, int | float) and 0 <= value < inf,
    ),
    "seconds": ("a number of seconds above 0, or None", lambda value: value is None or _is_positive(value)),
}


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and value > 0


@dataclass(slots=True)
class LoadTally:
    """The counts of asks by status and of failures by cause, and the latencies of completed asks in seconds."""

    statuses: Counter[str] = field(default_factory=Counter[str])
    failures: Counter[str] = field(default_factory=Counter[str])
    latencies: list[float] = field(default_factory=list[float])
    rounds: int = 0
    switches: int = 0

    def count_result(self, result: AskResult, seconds: float) -> None:
        """Count the result of an ask that took `seconds`."""
        self.statuses[result.status] += 1
        self.rounds += result.rounds
        if result.status == "complete":
            self.latencies.append(seconds)
        elif result.status in ("failed", "interrupted"):
            causes = [each.cause.kind for each in result.attempts if each.cause is not None]
            self.failures[causes[-1] if causes else "other"] += 1

    def count_rejection(self, error: ActorsError) -> None:
        """Count an ask that the runtime rejected."""
        self.statuses["refused"] += 1
        self.failures[type(error).__name__] += 1

    def percentile(self, share: float) -> float:
        """Return a percentile of the latency of completed asks, in seconds; 0 if no ask has completed.

        `share` is a number from 0 to 1, such as 0.9 for the 90th percentile.
        """
        ranked = sorted(self.latencies)
        return ranked[max(0, ceil(share * len(ranked)) - 1)] if ranked else 0.0


class LoadRunner:
    """Runs a load on a runtime, and counts the results."""

    def __init__(
        self, runtime: Runtime, load: Load, tools: Iterable[ToolLike], approve: Approve | None
    ) -> None:
        self._runtime = runtime
        self._load = load
        self._tools = tuple(tools)
        self._approve = approve
        self.tally: LoadTally = LoadTally()

    async def run(self) -> None:
        """Run all sessions to completion."""
        seconds = self._load.seconds
        self._until = None if seconds is None else anyio.current_time() + seconds
        async with anyio.create_task_group() as tasks:
            for number in range(self._load.sessions):
                tasks.start_soon(self._run_session, Random(f"{self._load.seed}/{number}"))  # noqa: S311  must be reproducible

    async def _run_session(self, random: Random) -> None:
        session = await self._runtime.open(self._load.target, tools=self._tools, approve=self._approve)
        for _ in range(self._load.turns):
            if self._remaining_seconds() <= 0:
                break
            try:
                await self._maybe_switch(session, random)
                await self._run_ask(session, random)
            except ActorsError as error:
                self.tally.count_rejection(error)
            if self._load.think:
                pause = random.expovariate(1 / self._load.think)
                await anyio.sleep(min(pause, self._remaining_seconds()))
        await session.close()

    def _remaining_seconds(self) -> float:
        """Return the seconds until no new ask may begin; infinity without a limit."""
        return inf if self._until is None else max(0.0, self._until - anyio.current_time())

    async def _maybe_switch(self, session: Session, random: Random) -> None:
        if self._load.switches and random.random() < self._load.switching:
            await session.switch(random.choice(self._load.switches))
            self.tally.switches += 1

    async def _run_ask(self, session: Session, random: Random) -> None:
        began = anyio.current_time()
        if random.random() >= self._load.cancelling:
            self.tally.count_result(
                await session.ask(self._load.prompt, check=False), anyio.current_time() - began
            )
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cancel_after, session, random.uniform(0, 0.05))
            result = await session.ask(self._load.prompt, check=False)
            self.tally.count_result(result, anyio.current_time() - began)

    async def _cancel_after(self, session: Session, seconds: float) -> None:
        await anyio.sleep(seconds)
        await session.cancel()


class StressReport(Struct, frozen=True):
    """The result of a stress test.

    Args:
        asks: Number of asks by status: `complete`, `cancelled`, `failed`, or `refused` if the runtime rejected the ask.
        failures: Number of failed or refused asks, by cause.
        rounds: Number of rounds.
        switches: Number of switches.
        seconds: Duration of the run.
        latency: Seconds per completed ask, as percentiles `p50`, `p90` and `p99`.
        refusals: Number of requests whose structure was rejected, by a provider or by this library's own check. Each of
            them is a bug in this library.
        counters: Sums of the counters of all backends.
        leaks: Number of tasks, threads and descriptors that are left over after the run.
    """

    asks: Mapping[str, int]
    failures: Mapping[str, int]
    rounds: int
    switches: int
    seconds: float
    latency: Mapping[str, float]
    refusals: int
    counters: Mapping[str, int]
    leaks: Mapping[str, int]

    @property
    def is_sound(self) -> bool:
        """True if no request was rejected for its structure, no ask failed, and no resource leaked."""
        return not (self.refusals or any(self.leaks.values()) or self.failures)


async def stress(
    target: str | None = None,
    *,
    config: "str | Path | Config | None" = None,
    tools: Iterable[ToolLike] = (),
    approve: Approve | None = None,
    faults: InjectedFaults | None = None,
    allow_network: bool = False,
    gc: GcPolicy | None = None,
    **options: Any,  # Any: each field of `Load` has its own type
) -> StressReport:
    """Run many concurrent sessions with your tools and backends, and report the results.

    Args:
        target: The target of the sessions, as in `Runtime.open`. With None, the stress test starts strict servers and
            uses them.
        config: As in `Runtime`.
        tools: As in `Runtime.open`. The model of the built-in servers calls them in turn.
        approve: As in `Runtime.open`.
        faults: Faults that the built-in servers inject.
        allow_network: True to allow backends on other machines.
        gc: As in `Runtime`.
        options: The load: the number of concurrent `sessions`, the asks per session (`turns`), the targets of random
            switches (`switches`), the probabilities of a switch (`switching`) and of a cancel (`cancelling`) per ask,
            the mean pause between asks in seconds (`think`), the time limit in seconds (`seconds`), the user message
            (`prompt`) and the `seed`.

    Raises:
        ConfigError: A target, a tool or an option is invalid, or a target is on another machine although the network is
            not allowed.
    """
    before = ResourceCounts.now()
    if target is None:
        async with run_built_in_servers(faults) as (made, counted):
            fields: dict[str, Any] = {"switches": (*BUILT_IN, POOL)}  # Any: each field has its own type
            work = Load(POOL, **(fields | options))
            outcome = await _run_load(made, work, tools, approve, gc)
            refused = counted.total()
    else:
        made = config if isinstance(config, Config) else load(config, os.environ)
        work = Load(target, **options)
        check_targets(made, (target, *work.switches), allow_network=allow_network)
        outcome, refused = await _run_load(made, work, tools, approve, gc), 0
    return _build_report(*outcome, refused, await find_leaks(before))


async def _run_load(
    config: Config, workload: Load, tools: Iterable[ToolLike], approve: Approve | None, gc: GcPolicy | None
) -> tuple[LoadTally, float, Counter[str], int]:
    """Run a load, and return its results.

    Returns:
        The counts of the asks, the duration in seconds, the counters of the backends, and the number of requests that
        the runtime rejected for their structure.
    """
    began = anyio.current_time()
    async with Runtime(config, gc=gc) as runtime:
        running = LoadRunner(runtime, workload, tools, approve)
        await running.run()
        seconds = anyio.current_time() - began
        return running.tally, seconds, await _counters(runtime), runtime._refused_requests.count


async def _counters(runtime: Runtime) -> Counter[str]:
    """Return the sums of the counters of all backends."""
    counters = Counter[str]()
    for ref in tuple(runtime._backends.providers.actors.values()):
        counters.update(await ref.ask(Counters()))
    return counters


def _build_report(
    tally: LoadTally,
    seconds: float,
    counters: Counter[str],
    runtime_refusals: int,
    server_refusals: int,
    leaks: dict[str, int],
) -> StressReport:
    latency = {f"p{share}": tally.percentile(share / 100) for share in (50, 90, 99)}
    return StressReport(
        dict(tally.statuses),
        dict(tally.failures),
        tally.rounds,
        tally.switches,
        seconds,
        latency,
        max(runtime_refusals, server_refusals),
        dict(sorted(counters.items())),
        leaks,
    )


def check_targets(config: Config, targets: Iterable[str], *, allow_network: bool) -> None:
    """Check that all targets are on this machine.

    Raises:
        ConfigError: A target is on another machine, and the network is not allowed.
    """
    for target in targets:
        for backend in config.resolve(target).members:
            if not allow_network and not _is_loopback(backend.endpoint):
                raise ConfigError(
                    f"Backend {backend.name!r} is at {urlsplit(backend.endpoint).hostname}, where a stress test may "
                    "cost money; to use it anyway, pass --allow-network (allow_network=True)"
                )


def _is_loopback(url: str) -> bool:
    """Return True if the host of a URL is this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@asynccontextmanager
async def run_built_in_servers(faults: InjectedFaults | None) -> AsyncGenerator[tuple[Config, Counter[str]]]:
    """Run strict servers until the block ends. Yield a configuration with a pool of these servers, and a counter.

    The counter contains the number of rejected requests for each rule. The model of the servers calls the tools of a
    request in turn, with arguments generated from the schemas.
    """
    servers, refused = [_create_server(name, faults) for name in BUILT_IN], Counter[str]()

    def count_refusal(exchange: Exchange) -> None:
        if exchange.verdict is not None:
            refused[exchange.verdict.rule] += 1

    for server in servers:
        server.on_exchange = count_refusal
    async with serve(*servers):
        backends: dict[str, BackendSettings] = dict(
            zip(BUILT_IN, map(_backend_settings, servers), strict=True)
        )
        pools = {POOL: PoolSettings(members=BUILT_IN, policy="round_robin")}
        yield Config(FileSettings(backends=backends, pools=pools), {}, "the built-in servers"), refused


def _create_server(name: str, faults: InjectedFaults | None) -> LoopbackServer:
    limits, calls = ServerLimits(connections=4096, recordings=1), 0

    def answer_request(request: Json) -> Turn:
        nonlocal calls
        turn = answer(request, tool_index=calls)
        calls += len(turn.calls)
        return turn

    return strict_server(name, answer_request, faults=faults, limits=limits)


def _backend_settings(server: LoopbackServer) -> BackendSettings:
    speaks = {"kind": kind_of(dialect(server.dialect)), "dialect": server.dialect}
    return BackendSettings.model_validate({"model": "model", "base_url": server.endpoint, **speaks})


class ResourceCounts(Struct, frozen=True):
    """The numbers of resources that a process uses. `descriptors` is -1 if the system does not report the number."""

    tasks: int
    threads: int
    descriptors: int

    @classmethod
    def now(cls) -> Self:
        """Count the resources of this process. Call this method in the event loop."""
        gc.collect()
        descriptors = len(os.listdir(DESCRIPTORS)) if DESCRIPTORS.exists() else -1
        threads = [each for each in threading.enumerate() if not each.name.startswith(LOOP_THREADS)]
        return cls(_count_tasks(), len(threads), descriptors)

    def exceeds(self, before: "ResourceCounts") -> bool:
        """Return True if any number is larger than in `before`."""
        return any(self.increase_since(before).values())

    def increase_since(self, before: "ResourceCounts") -> dict[str, int]:
        """Return the increase since `before` for each kind of resource; 0 for a decrease."""
        return {name: max(0, getattr(self, name) - getattr(before, name)) for name in self.__struct_fields__}


async def find_leaks(before: ResourceCounts) -> dict[str, int]:
    """Return the increase of each resource since `before`, after waiting up to `CLOSE_TIMEOUT` seconds for resources to
    close.
    """
    until = anyio.current_time() + CLOSE_TIMEOUT
    while ResourceCounts.now().exceeds(before) and anyio.current_time() < until:  # noqa: ASYNC110  no event reports their end
        await anyio.sleep(0.05)
    return ResourceCounts.now().increase_since(before)


def _count_tasks() -> int:
    loop = running_loop()
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        tasks: int = trio.lowlevel.current_statistics().tasks_living
        return tasks
    assert loop is not None
    return len(all_tasks())
