"""What a process holds: tasks, threads, descriptors. What is held after a run and was not before has leaked."""

import gc
import os
import sys
import threading
from asyncio import all_tasks
from pathlib import Path
from typing import Self

import anyio
from msgspec import Struct

from actors.kernel.parking import running_loop

DESCRIPTORS = Path("/proc/self/fd")
OF_THE_LOOP = ("asyncio_", "AnyIO worker", "Trio thread")
"""How the threads are called that an event loop keeps for itself, for looking up names and the like."""
PATIENCE = 3.0
"""Seconds in which threads and sockets that are just ending may do so."""


class Held(Struct, frozen=True):
    """How many there are. Descriptors are -1 where the system does not tell."""

    tasks: int
    threads: int
    descriptors: int

    @classmethod
    def now(cls) -> Self:
        """Return what the process holds now. Call it in the event loop."""
        gc.collect()
        descriptors = len(os.listdir(DESCRIPTORS)) if DESCRIPTORS.exists() else -1
        threads = [each for each in threading.enumerate() if not each.name.startswith(OF_THE_LOOP)]
        return cls(_tasks(), len(threads), descriptors)

    def exceeds(self, before: "Held") -> bool:
        """Say whether there is more of anything than before."""
        return any(self.over(before).values())

    def over(self, before: "Held") -> dict[str, int]:
        """Return how much more there is than before, by what it is."""
        return {name: max(0, getattr(self, name) - getattr(before, name)) for name in self.__struct_fields__}


async def leaked(before: Held) -> dict[str, int]:
    """Return what is held beyond what was held before, once what is just ending has had its time."""
    until = anyio.current_time() + PATIENCE
    while Held.now().exceeds(before) and anyio.current_time() < until:  # noqa: ASYNC110  no event tells of these
        await anyio.sleep(0.05)
    return Held.now().over(before)


def _tasks() -> int:
    loop = running_loop()
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        tasks: int = trio.lowlevel.current_statistics().tasks_living
        return tasks
    assert loop is not None
    return len(all_tasks())
