"""Run stress tests: many concurrent sessions with your own tools and backends.

    report = await stress(tools=[weather], sessions=200, turns=10)      # built-in servers on this machine
    report = await stress("vllm", config="actors.toml", tools=[weather])
    assert report.is_sound, report

The report counts failed asks, requests that were rejected for their structure, and leaked resources.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import anyio
from msgspec import Struct

from actors.config import Config, load
from actors.core.turn.batch import Approve
from actors.provider.provider_actor import Counters
from actors.runtime.collector import GcPolicy
from actors.runtime.runtime import Runtime
from actors.strict.faults import InjectedFaults
from actors.testing.stressing.resources import ResourceCounts, find_leaks
from actors.testing.stressing.where import BUILT_IN, POOL, check_targets, run_built_in_servers
from actors.testing.stressing.workload import Load, LoadRunner, LoadTally
from actors.tools.toolset import ToolLike

__all__ = ["StressReport", "stress"]


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
        options: Fields of `Load`: `sessions`, `turns`, `switches`, `switching`, `cancelling`, `think`, `seconds`,
            `prompt`, `seed`.

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
    for ref in tuple(runtime._backends.providers.made.values()):
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
