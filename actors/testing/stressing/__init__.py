"""Stress: many sessions at once over your own tools and backends, and what became of them.

report = await stress(tools=[weather], sessions=200, turns=10)      # the built-in servers of this machine
report = await stress("vllm", config="actors.toml", tools=[weather])
assert report.is_sound, report
"""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
from msgspec import Struct

from actors.config import Config, load
from actors.core.turn.batch import Approve
from actors.provider.provider_actor import Counters
from actors.runtime.collector import GcPolicy
from actors.runtime.runtime import Runtime
from actors.strict.faults import Faults
from actors.testing.stressing.resources import Held, leaked
from actors.testing.stressing.where import BUILT_IN, POOL, built_in, checked
from actors.testing.stressing.workload import Load, Loaded, LoadTally, Tools

__all__ = ["StressReport", "stress"]


class StressReport(Struct, frozen=True):
    """What became of a stress run.

    Args:
        asks: How many ended, by status: `complete`, `cancelled`, `failed`; and `refused` those nobody took.
        failures: Asks that failed or were refused, by cause.
        rounds, switches: How many there were.
        seconds: Of the whole run.
        latency: Seconds that completed asks took: `p50`, `p90`, `p99`.
        refusals: Requests that a provider or the judge refused for their structure: our bugs.
        counters: Of all backends together.
        leaks: Tasks, threads and descriptors that are left over.
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
        """Whether no request was refused, nothing leaked, and no ask failed."""
        return not (self.refusals or any(self.leaks.values()) or self.failures)


async def stress(
    target: str | None = None,
    *,
    config: "str | Path | Config | None" = None,
    tools: Tools = (),
    approve: Approve | None = None,
    faults: Faults | None = None,
    allow_network: bool = False,
    gc: GcPolicy | None = None,
    **options: Any,  # Any: the fields of `Load`
) -> StressReport:
    """Have many sessions use your tools and backends at once, and report what became of them.

    Args:
        target: Whom the sessions ask: as in `Runtime.open`. None asks strict servers that are started for the run.
        config: As in `Runtime`.
        tools: As in `Runtime.open`. The built-in servers' model calls one after the other.
        approve: As in `Runtime.open`.
        faults: Of the built-in servers, for their requests.
        allow_network: Whether backends may be asked that are not on this machine.
        gc: As in `Runtime`.
        options: Fields of `Load`: `sessions`, `turns`, `switches`, `switching`, `cancelling`, `think`, `seconds`,
            `prompt`, `seed`.

    Raises:
        ConfigError: A target, a tool or a figure cannot be used, or a target is not on this machine.
    """
    before = Held.now()
    if target is None:
        async with built_in(faults) as (made, counted):
            work = Load(POOL, **({"switches": (*BUILT_IN, POOL)} | options))
            told = await _loaded(made, work, tools, approve, gc)
            refused = counted.total()
    else:
        made = config if isinstance(config, Config) else load(config, os.environ)
        work = Load(target, **options)
        checked(made, (target, *work.switches), allow_network=allow_network)
        told, refused = await _loaded(made, work, tools, approve, gc), 0
    return _report(*told, refused, await leaked(before))


async def _loaded(
    config: Config, work: Load, tools: Tools, approve: Approve | None, gc: GcPolicy | None
) -> tuple[LoadTally, float, Counter[str], int]:
    """Run a load; return the tally, the seconds it took, the backends' counters and our refusals."""
    began = anyio.current_time()
    async with Runtime(config, gc=gc) as runtime:
        running = Loaded(runtime, work, tools, approve)
        await running.run()
        seconds = anyio.current_time() - began
        return running.tally, seconds, await _counters(runtime), runtime.refused


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
