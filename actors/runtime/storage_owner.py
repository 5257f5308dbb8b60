"""The owner of a runtime's storage: what was opened is closed, wherever those who waited for it were cancelled.

A storage that blocks is opened and closed in threads, and a thread goes on when its caller has gone. So a lock orders
the two, in the threads themselves: the close waits for an opening that is under way, and one that comes later opens
nothing.
"""

import threading
from collections.abc import Callable

import anyio
import anyio.to_thread

from actors.journal.storage import Storage
from actors.kernel.host_code import call_host
from actors.telemetry import logger


class StorageOwner:
    """Opens a storage once and closes it once."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._is_closed = False

    async def open(self) -> None:
        """Open it. `close` has to follow, whether or not this succeeds.

        Raises:
            JournalError: It cannot be used.
        """
        await self._run(self._open)

    async def close(self) -> None:
        """Close it. If this is cancelled, a thread closes it all the same."""
        try:
            await self._run(self._close)
        finally:
            if not self._is_closed:
                threading.Thread(target=self._close, name="actors journal", daemon=True).start()

    async def _run(self, use: Callable[[], None]) -> None:
        """Do something with the storage where it cannot hold up the loop."""
        if self._storage.blocking:
            await anyio.to_thread.run_sync(use, limiter=anyio.CapacityLimiter(1))
        else:
            use()

    def _open(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._storage.open()

    def _close(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                # what was told is written; others may have to wait for the lease
                call_host(self._storage.close, logger.journal_unclosed)
