"""Move sessions to hosts that have joined, so that the load becomes even again."""

from contextlib import suppress
from functools import partial

import anyio

from actors.errors import ActorsError
from actors.runtime.runtime import Runtime

PERIOD = 60.0
"""Default number of seconds between two times at which a host compares its load with the others."""


def start_rebalancing(runtime: Runtime, period: float) -> None:
    """Call `Runtime.rebalance` every `period` seconds, until the runtime exits. A draining runtime moves nothing."""
    runtime._running_host().start(partial(_rebalance, runtime, period), "hosts/rebalance")


async def _rebalance(runtime: Runtime, period: float) -> None:
    while True:
        await anyio.sleep(period)
        with suppress(ActorsError):  # the next time may succeed
            await runtime.rebalance()
