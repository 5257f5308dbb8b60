"""Threads of a simulation: what would run in one runs in the event loop, at a moment that the seed decides.

A thread knows nothing of virtual time, and no seed decides when it runs. So all that the runtime hands to threads
(tools and approvals that are not async, the reading of large results) is called in the loop instead, some time later,
in one step for which time stands still. What a thread may do otherwise stays as it is: it begins late, after its call
was told to end or closed, and what it returns then is late; while it is to come its place is taken.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

import anyio

from actors.scheduler.threads import READERS, THREADS, ThreadSlot

LATE = 0.1
"""How often a thread begins only when its call is likely to have been closed."""
LONG = 8.0
"""Seconds until then."""


@asynccontextmanager
async def inline_threads(random: Random, running: Counter[str]) -> AsyncIterator[None]:
    """Have no threads until the block is left. What has not begun by then does not begin.

    Args:
        random: Decides when what is run.
        running: Counts under `threads` what is to come.
    """

    async def later(place: ThreadSlot, work: Callable[[], object], seconds: float) -> None:
        try:
            await anyio.sleep(seconds)
            work()
        finally:
            running["threads"] -= 1
            place.give_back()

    def begin(place: ThreadSlot, work: Callable[[], object]) -> None:
        running["threads"] += 1
        seconds = random.expovariate(2.0) + (LONG if random.random() < LATE else 0.0)
        tasks.start_soon(later, place, work, seconds)

    before = THREADS.begin, READERS.begin
    async with anyio.create_task_group() as tasks:
        THREADS.begin = READERS.begin = begin
        try:
            yield
        finally:
            THREADS.begin, READERS.begin = before
            tasks.cancel_scope.cancel()
