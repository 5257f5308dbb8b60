"""Count the tasks, threads and descriptors of a process, to find resources that a stress test leaked."""

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
"""Name prefixes of threads that the event loop keeps for itself, for example for name resolution."""
CLOSE_TIMEOUT = 3.0
"""Maximum seconds to wait for threads and sockets that are still closing."""


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
        threads = [each for each in threading.enumerate() if not each.name.startswith(OF_THE_LOOP)]
        return cls(_count_tasks(), len(threads), descriptors)

    def exceeds(self, before: "ResourceCounts") -> bool:
        """Return True if any number is larger than in `before`."""
        return any(self.increase_since(before).values())

    def increase_since(self, before: "ResourceCounts") -> dict[str, int]:
        """Return the increase since `before` for each kind of resource; 0 for a decrease."""
        return {name: max(0, getattr(self, name) - getattr(before, name)) for name in self.__struct_fields__}


async def find_leaks(before: ResourceCounts) -> dict[str, int]:
    """Return the increase of each resource since `before`.

    Wait up to `CLOSE_TIMEOUT` seconds for resources that are closing.
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
