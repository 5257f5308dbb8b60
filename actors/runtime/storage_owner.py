"""Open and close the storage of a runtime. An opened storage is closed even if a caller is cancelled.

A blocking storage is opened and closed in threads, and a thread continues when its caller is cancelled. So a lock
protects both operations: closing waits until a running `open` has finished, and an `open` that starts after closing
does nothing.
"""

import threading
from collections.abc import Callable

import anyio
import anyio.to_thread

from actors.journal.storage import Storage
from actors.journal.storage.directory import HostStatus
from actors.kernel.host_code import call_host
from actors.telemetry import logger


class StorageOwner:
    """Owns a runtime's storage, and opens and closes it at most once.

    If `address` is set, opening the storage registers this process as a host with that address.
    """

    def __init__(self, storage: Storage, address: str = "") -> None:
        self._storage, self._address = storage, address
        self._lock = threading.Lock()
        self._is_closed = False

    async def open(self) -> None:
        """Open the storage. The caller must call `close` later, even if this fails.

        Raises:
            JournalError: The storage cannot be used.
        """
        await self._run(self._open)

    async def close(self) -> None:
        """Close the storage. If the caller is cancelled, a thread closes it."""
        try:
            await self._run(self._close)
        finally:
            if not self._is_closed:
                threading.Thread(target=self._close, name="actors journal", daemon=True).start()

    async def _run(self, function: Callable[[], None]) -> None:
        """Call a function, in a thread if the storage blocks and in the event loop otherwise."""
        if self._storage.blocking:
            await anyio.to_thread.run_sync(function, limiter=anyio.CapacityLimiter(1))
        else:
            function()

    def _open(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._storage.open()
                if self._address:
                    self._storage.renew_lease(HostStatus(self._address))

    def _close(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                # All acknowledged events are written already. After a failed close, other hosts must wait until the
                # lease expires.
                call_host(self._storage.close, logger.journal_unclosed)
