"""Count the tasks, threads and descriptors of a process, to find leaks of a stress run."""

import gc
import os
import sys
import threading
from asyncio import all_tasks
from pathlib import Path
from typing import Self

import anyio
from msgspec import Struct

from actors.kernel.event_loop import running_loop

DESCRIPTORS = Path("/proc/self/fd")
OF_THE_LOOP = ("asyncio_", "AnyIO worker", "Trio thread")
"""Prefixes of the names of threads that belong to the event loop, for instance for name resolution."""
PATIENCE = 3.0
"""Seconds to wait for threads and sockets that are closing."""


class Held(Struct, frozen=True):
    """Numbers of resources. Descriptors are -1 if the system does not provide the number."""

    tasks: int
    threads: int
    descriptors: int

    @classmethod
    def now(cls) -> Self:
        """Count the resources of the process. Call this in the event loop."""
        gc.collect()
        descriptors = len(os.listdir(DESCRIPTORS)) if DESCRIPTORS.exists() else -1
        threads = [each for each in threading.enumerate() if not each.name.startswith(OF_THE_LOOP)]
        return cls(_tasks(), len(threads), descriptors)

    def exceeds(self, before: "Held") -> bool:
        """Return True if any number is larger than before."""
        return any(self.over(before).values())

    def over(self, before: "Held") -> dict[str, int]:
        """Return the positive differences, by kind of resource."""
        return {name: max(0, getattr(self, name) - getattr(before, name)) for name in self.__struct_fields__}


async def find_leaks(before: Held) -> dict[str, int]:
    """Return the resources in excess of `before`, after waiting for those that are closing."""
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
