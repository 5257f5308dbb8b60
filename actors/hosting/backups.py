"""Back up a journal for a caller that may be cancelled in any way: what nobody waits for ends, and leaves no file.

anyio tells a worker thread of a cancelled scope. It does not tell it of a native cancellation, as by `asyncio.timeout`,
which ends the wait alone. So a task of the host waits for the thread, and the caller for that task.
"""

from functools import partial
from threading import Event
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from actors.errors import JournalUnavailable
from actors.hosting.session_host import SessionHost
from actors.storage.calls import back_up

if TYPE_CHECKING:
    from pathlib import Path


class _Backup:
    """One backup, and how its thread ended: with an error, or as `is_complete` says."""

    def __init__(self, host: SessionHost, path: "Path") -> None:
        self._unwanted, self.ended = Event(), anyio.Event()
        self._path = path
        self._work = partial(back_up, host.storage, path, self._unwanted)
        self.error: Exception | None = None
        self.is_complete = False

    async def run(self) -> None:
        """Run the thread, and wait for it."""
        try:
            await anyio.to_thread.run_sync(self._work, limiter=anyio.CapacityLimiter(1))
            self.is_complete = True
        except Exception as error:  # a storage may raise any
            self.error = error
        finally:
            self.ended.set()

    async def stop(self) -> None:
        """End the thread, and wait for it, although the caller is cancelled."""
        self._unwanted.set()
        with anyio.CancelScope(shield=True):
            await self.ended.wait()

    def remove(self) -> None:
        """Remove a copy that was complete just before it was to be ended."""
        if self.is_complete:
            self._path.unlink(missing_ok=True)


async def make_backup(host: SessionHost, path: "Path") -> None:
    """Copy the journal to a new file; see `JournalAdmin.backup`."""
    backup = _Backup(host, path)
    try:
        await host.carry_out(backup.run, "journal/backup")
    except BaseException:
        await backup.stop()
        backup.remove()
        raise
    if backup.error is not None:
        raise backup.error
    if not backup.is_complete:
        raise JournalUnavailable(f"{path}: the runtime was left before this backup was complete")
