"""Run the methods of a blocking storage in two threads: one writes, the other reads.

Used by the journal actor. Each thread runs one method at a time, and neither waits for the other. So a page of a log or
a list of sessions that is being read delays no write, except for the interpreter lock (`actors.journal.read_throttle`).
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread

from actors.journal.health import JournalHealth
from actors.journal.storage import Storage
from actors.journal.storage.calls import call_and_beat, call_storage
from actors.kernel.shared import SystemState

R = TypeVar("R")


class StorageThreads:
    """Runs methods of a storage, and renews its lease after a write if the heartbeat is late.

    Args:
        storage: The storage.
        meter: Records renewals of the lease.
        system: Provides the clock.
    """

    def __init__(self, storage: Storage, meter: JournalHealth, system: SystemState) -> None:
        self._storage, self._meter, self._system = storage, meter, system
        self._writing, self._reading = anyio.CapacityLimiter(1), anyio.CapacityLimiter(1)
        self._beaten = meter.beaten = system.now()

    def begin_beat(self) -> None:
        """Record that the lease is about to be renewed."""
        self._beaten = self._system.now()

    def end_beat(self) -> None:
        """Record that the lease was renewed."""
        self._meter.record_beat(self._beaten)

    async def write(self, work: Callable[[], R]) -> R:
        """Run a method that may change the storage, in the thread that writes."""
        lease = self._storage.lease
        if lease is not None and self._system.now() - self._beaten > lease / 2:
            self.begin_beat()
            work = partial(call_and_beat, work, self._storage, self.end_beat)
        return await anyio.to_thread.run_sync(call_storage, work, limiter=self._writing)

    async def read(self, work: Callable[[], R]) -> R:
        """Run a method that only reads, in the thread that reads."""
        return await anyio.to_thread.run_sync(call_storage, work, limiter=self._reading)
