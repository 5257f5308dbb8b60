"""Call the methods of a storage, which may block and may be custom code.

The methods of a blocking storage run in two threads: one for writes and one for reads. Each thread runs one method at a
time, and the threads do not wait for each other. So reading a page or listing sessions does not delay a write, except
through the interpreter lock (`actors.journal.pages`). Exit exceptions such as `SystemExit` become a `JournalError`.

The journal actor queues reads. A read is urgent if a session cannot continue without its result. The number of queued
non-urgent reads is limited. Urgent and non-urgent reads alternate while both are queued, so the first urgent read waits
for at most one non-urgent read.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar

import anyio
import anyio.to_thread

from actors.errors import JournalError, JournalUnavailable
from actors.journal.health import JournalHealth
from actors.journal.storage import Storage
from actors.kernel.host_code import call_host
from actors.kernel.shared import SystemState

if TYPE_CHECKING:
    from pathlib import Path

R = TypeVar("R")
Q = TypeVar("Q")


def call_storage(work: Callable[[], R]) -> R:
    """Call a method of a storage.

    If the method raises an exit exception such as `SystemExit`, raise a `JournalError` instead.
    """
    return call_host(work, _reraise)


def back_up(storage: Storage, path: "Path", stop: Event) -> None:
    """Copy a journal to the file `path`. Must be called in an anyio worker thread.

    Copying stops when `stop` is set, or when the task that waits for the thread is cancelled.

    Raises:
        JournalUnavailable: `stop` was set.
    """
    # Imported here, because it is slow to import and rarely needed.
    from anyio.from_thread import check_cancelled

    def check_stopped() -> None:
        check_cancelled()
        if stop.is_set():
            raise JournalUnavailable(f"The backup to {path} was stopped because its caller was cancelled")

    def raise_error(error: BaseException) -> Never:
        check_stopped()  # if the caller was cancelled, raise the cancellation instead
        _reraise(error)

    call_host(partial(storage.backup, path, check_stopped), raise_error)


def _reraise(error: BaseException) -> Never:
    # A future cannot carry a StopIteration from a thread to the event loop.
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        raise error
    raise JournalError(
        f"The storage raised {type(error).__name__}; it may raise ordinary exceptions only"
    ) from error


def call_and_renew_lease(function: Callable[[], R], storage: Storage, on_renewal: Callable[[], None]) -> R:
    """Call `function`, renew the lease of the storage, and return the result of `function`.

    The regular renewal may be delayed in the journal actor's queue until the lease has expired. `on_renewal` is called
    after a successful renewal.
    """
    result = function()
    with suppress(JournalError):  # the call itself succeeded, and its result must not be lost
        storage.renew_lease()
        on_renewal()
    return result


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
        """Store the time at which a renewal of the lease begins. Call this method before each renewal."""
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


class ReadQueue(Generic[Q]):
    """A queue of reads, which a task performs one at a time. The task ends when the queue is empty.

    Args:
        capacity: Maximum number of queued non-urgent reads.
        read: Performs one read.
        start: Starts the task that performs the reads.
    """

    def __init__(
        self,
        capacity: int,
        read: Callable[[Q], Coroutine[Any, Any, None]],
        start: Callable[[Callable[[], Coroutine[Any, Any, None]]], object],
    ) -> None:
        self._capacity, self._read, self._start = capacity, read, start
        self._waiting, self._urgent = deque[Q](), deque[Q]()
        self._is_reading = self._was_urgent = False

    @property
    def is_full(self) -> bool:
        """True if the queue accepts urgent reads only."""
        return len(self._waiting) >= self._capacity

    def add(self, read: Q, *, urgent: bool = False) -> None:
        """Add a read to the queue. Callers must check `is_full` before they add a non-urgent read."""
        (self._urgent if urgent else self._waiting).append(read)
        if not self._is_reading:
            self._is_reading = True
            self._start(self._run)

    async def _run(self) -> None:
        """Perform the queued reads, alternating between urgent and non-urgent reads, until the queue is empty."""
        while self._waiting or self._urgent:
            self._was_urgent = bool(self._urgent) and not (self._was_urgent and self._waiting)
            await self._read((self._urgent if self._was_urgent else self._waiting).popleft())
        self._is_reading = False
