"""Run a simulation's work for threads in the event loop, at times that the seed decides.

Real threads do not use virtual time, and a seed cannot schedule them. The runtime passes some work to threads: sync
tools and approval functions, and the conversion of large results. A simulation calls this work in the event loop after
a
delay, in one step that takes no virtual time. Two effects of threads are kept: the work may begin after its call was
cancelled or closed, so that its result is late, and pending work occupies a thread slot.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from random import Random

import anyio

from actors.scheduler.threads import READERS, THREADS, ThreadSlot

LATE = 0.1
"""Probability that work is delayed so long that its call is probably closed by then."""
LONG = 8.0
"""Additional delay of late work in seconds."""


@asynccontextmanager
async def inline_threads(random: Random, running: Counter[str]) -> AsyncGenerator[None]:
    """Run work for threads in the event loop until the block ends. Work that has not begun by then never begins.

    Args:
        random: Decides the delays.
        running: Counts pending work under the key `threads`.
    """

    async def run_later(slot: ThreadSlot, work: Callable[[], object], seconds: float) -> None:
        try:
            await anyio.sleep(seconds)
            work()
        finally:
            running["threads"] -= 1
            slot.give_back()

    def start_work(slot: ThreadSlot, work: Callable[[], object]) -> None:
        running["threads"] += 1
        seconds = random.expovariate(2.0) + (LONG if random.random() < LATE else 0.0)
        tasks.start_soon(run_later, slot, work, seconds)

    before = THREADS.begin, READERS.begin
    async with anyio.create_task_group() as tasks:
        THREADS.begin = READERS.begin = start_work
        try:
            yield
        finally:
            THREADS.begin, READERS.begin = before
            tasks.cancel_scope.cancel()
