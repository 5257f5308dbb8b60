"""Run the methods of a blocking storage in two threads: one for writes and one for reads.

The journal actor uses these threads. Each thread runs one method at a time, and the threads do not wait for each other.
So reading a page or listing sessions does not delay a write, except through the interpreter lock
(`actors.journal.read_throttle`).
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread

from actors.journal.health import JournalHealth
from actors.journal.storage import Storage
from actors.journal.storage.calls import call_and_renew_lease, call_storage
from actors.kernel.shared import SystemState

R = TypeVar("R")


class StorageThreads:
    """Runs a storage's methods in two threads: one for writes, one for reads.

    The runtime renews the host's lease regularly. In addition, a write renews it if more than half of the lease has
    passed since the last renewal.

    Args:
        storage: The storage whose lease is renewed.
        meter: Records when the lease was renewed.
        system: Provides the event loop's clock.
    """

    def __init__(self, storage: Storage, meter: JournalHealth, system: SystemState) -> None:
        self._storage, self._meter, self._system = storage, meter, system
        self._writing, self._reading = anyio.CapacityLimiter(1), anyio.CapacityLimiter(1)
        self._renewed_at = meter.renewed_at = system.now()

    def begin_renewal(self) -> None:
        """Store the current time. Must be called before the lease is renewed."""
        self._renewed_at = self._system.now()

    def record_renewal(self) -> None:
        """Record that the lease was renewed at the time of the last `begin_renewal` call."""
        self._meter.record_renewal_time(self._renewed_at)

    async def write(self, work: Callable[[], R]) -> R:
        """Call `work` in the writing thread, and return the result. `work` may change the storage."""
        lease = self._storage.lease
        if lease is not None and self._system.now() - self._renewed_at > lease / 2:
            self.begin_renewal()
            work = partial(call_and_renew_lease, work, self._storage, self.record_renewal)
        return await anyio.to_thread.run_sync(call_storage, work, limiter=self._writing)

    async def read(self, work: Callable[[], R]) -> R:
        """Call `work` in the reading thread, and return the result. `work` must only read the storage."""
        return await anyio.to_thread.run_sync(call_storage, work, limiter=self._reading)
