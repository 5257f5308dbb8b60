"""Run stress tests: many concurrent sessions over your own tools and backends.

report = await stress(tools=[weather], sessions=200, turns=10)      # the built-in servers of this machine
report = await stress("vllm", config="actors.toml", tools=[weather])
assert report.is_sound, report
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
from actors.testing.stressing.resources import Held, find_leaks
from actors.testing.stressing.where import BUILT_IN, POOL, built_in, check_targets
from actors.testing.stressing.workload import Load, Loaded, LoadTally
from actors.tools.toolsets.source import ToolLike

__all__ = ["StressReport", "stress"]


class StressReport(Struct, frozen=True):
    """The result of a stress run.

    Args:
        asks: Number of asks by status: `complete`, `cancelled`, `failed`, or `refused` if the runtime rejected the ask.
        failures: Number of failed or refused asks, by cause.
        rounds, switches: Number of rounds and of switches.
        seconds: Duration of the run.
        latency: Seconds per completed ask: `p50`, `p90`, `p99`.
        refusals: Requests that a provider or the judge refused for their structure, which are bugs of this library.
        counters: Sums of the counters of all backends.
        leaks: Tasks, threads and descriptors that remain after the run.
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
        """True if no request was refused, nothing leaked, and no ask failed."""
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
    **options: Any,  # Any: the fields of `Load`
) -> StressReport:
    """Run many concurrent sessions over your tools and backends, and report the results.

    Args:
        target: The target of the sessions, as in `Runtime.open`. None starts strict servers for the run.
        config: As in `Runtime`.
        tools: As in `Runtime.open`. The model of the built-in servers calls them in turn.
        approve: As in `Runtime.open`.
        faults: Faults of the built-in servers.
        allow_network: Whether to allow backends that are not on this machine.
        gc: As in `Runtime`.
        options: Fields of `Load`: `sessions`, `turns`, `switches`, `switching`, `cancelling`, `think`, `seconds`,
            `prompt`, `seed`.

    Raises:
        ConfigError: A target, a tool or an option is invalid, or a target is not on this machine.
    """
    before = Held.now()
    if target is None:
        async with built_in(faults) as (made, counted):
            fields: dict[str, Any] = {"switches": (*BUILT_IN, POOL)}  # Any: as in `Load`
            work = Load(POOL, **(fields | options))
            told = await _run_load(made, work, tools, approve, gc)
            refused = counted.total()
    else:
        made = config if isinstance(config, Config) else load(config, os.environ)
        work = Load(target, **options)
        check_targets(made, (target, *work.switches), allow_network=allow_network)
        told, refused = await _run_load(made, work, tools, approve, gc), 0
    return _report(*told, refused, await find_leaks(before))


async def _run_load(
    config: Config, work: Load, tools: Iterable[ToolLike], approve: Approve | None, gc: GcPolicy | None
) -> tuple[LoadTally, float, Counter[str], int]:
    """Run a load; return its tally, its seconds, the counters of the backends and the structural refusals."""
    began = anyio.current_time()
    async with Runtime(config, gc=gc) as runtime:
        running = Loaded(runtime, work, tools, approve)
        await running.run()
        seconds = anyio.current_time() - began
        return running.tally, seconds, await _counters(runtime), runtime._refusal_count


async def _counters(runtime: Runtime) -> Counter[str]:
    counters = Counter[str]()
    for ref in tuple(runtime._backends.providers.made.values()):
        counters.update(await ref.ask(Counters()))
    return counters


def _report(
    tally: LoadTally, seconds: float, counters: Counter[str], ours: int, refused: int, leaks: dict[str, int]
) -> StressReport:
    latency = {f"p{share}": tally.percentile(share / 100) for share in (50, 90, 99)}
    return StressReport(
        dict(tally.statuses),
        dict(tally.failures),
        tally.rounds,
        tally.switches,
        seconds,
        latency,
        max(ours, refused),
        dict(sorted(counters.items())),
        leaks,
    )
