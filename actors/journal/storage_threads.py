"""The two threads in which a storage that blocks is used: one writes, the other reads.

Each does one thing at a time, and neither waits for the other. So a long log that is read page by page, or a directory
that is listed, holds up no write; and no read waits for more than what is ahead of it.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread

from actors.journal.outage import JournalMeter
from actors.journal.storage import Storage
from actors.journal.storage.calls import call_and_beat, call_storage
from actors.kernel.shared import Shared

R = TypeVar("R")


class StorageThreads:
    """Runs a storage's methods, and prolongs its lease after a write where the heartbeat itself would come late.

    Args:
        storage: The storage.
        meter: Where a prolonged lease is noted.
        system: Has the clock.
    """

    def __init__(self, storage: Storage, meter: JournalMeter, system: Shared) -> None:
        self._storage, self._meter, self._system = storage, meter, system
        self._writing, self._reading = anyio.CapacityLimiter(1), anyio.CapacityLimiter(1)
        self._beaten = meter.beaten = system.now()

    def begin_beat(self) -> None:
        """Note that the lease is about to be prolonged."""
        self._beaten = self._system.now()

    def end_beat(self) -> None:
        """Note that it was."""
        self._meter.beat(self._beaten)

    async def write(self, work: Callable[[], R]) -> R:
        """Do something that may change the storage."""
        lease = self._storage.lease
        if lease is not None and self._system.now() - self._beaten > lease / 2:
            self.begin_beat()
            work = partial(call_and_beat, work, self._storage, self.end_beat)
        return await anyio.to_thread.run_sync(call_storage, work, limiter=self._writing)

    async def read(self, work: Callable[[], R]) -> R:
        """Do something that only reads."""
        return await anyio.to_thread.run_sync(call_storage, work, limiter=self._reading)
