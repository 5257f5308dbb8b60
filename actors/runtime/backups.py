"""Back up a journal. If the caller is cancelled, the backup stops and its file is removed.

anyio notifies a worker thread if a cancel scope is cancelled, but not of a native cancellation, for example by
`asyncio.timeout`, which ends only the caller's wait. So a task of the host waits for the thread, and the caller waits
for this task. A second native cancellation ends the caller's wait at once; the host still waits for the thread, which
removes its copy.
"""

from threading import Event, Lock
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from actors.errors import JournalUnavailable, ShuttingDown
from actors.journal.storage_calls import back_up
from actors.runtime.session_host import SessionHost

if TYPE_CHECKING:
    from pathlib import Path


class _Backup:
    """A backup that a thread is making. If the backup is abandoned, no file remains, even if the thread has just
    finished.
    """

    def __init__(self, host: SessionHost, path: "Path") -> None:
        self._host, self._path = host, path
        self._unwanted, self._lock, self._is_complete = Event(), Lock(), False

    async def run(self) -> None:
        """Copy the journal in a thread, and return when the thread has finished."""
        try:
            await anyio.to_thread.run_sync(self._copy_journal, limiter=anyio.CapacityLimiter(1))
        except BaseException:
            self.abandon()
            raise

    def _copy_journal(self) -> None:
        back_up(self._host.storage, self._path, self._unwanted)
        with self._lock:
            self._is_complete = True
            if self._unwanted.is_set():
                self._path.unlink(missing_ok=True)

    def abandon(self) -> None:
        """Stop the thread, and remove the copy."""
        with self._lock:
            if not self._unwanted.is_set() and self._is_complete:
                self._path.unlink(missing_ok=True)
            self._unwanted.set()


async def make_backup(host: SessionHost, path: "Path") -> None:
    """Copy the journal to a new file at `path`. See `JournalAdmin.backup`."""
    backup = _Backup(host, path)
    task = host.launch(backup.run, "journal/backup")
    try:
        await task.result()
    except ShuttingDown:
        raise JournalUnavailable(f"{path}: the runtime exited before this backup was complete") from None
    except BaseException:
        backup.abandon()
        with anyio.CancelScope(shield=True):
            await task.wait()
        raise
