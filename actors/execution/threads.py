"""Threads for code that blocks: one pool for the process, with a limit, of daemon threads.

A thread cannot be ended from outside. So none of these keeps anything else from ending: a runtime that is left does not
wait for them, nor does the process when it exits, as it would for those of the event loop's own pools. What stays is
counted: a place is taken before a call begins and given back when its thread has returned, however long ago the call
was closed. A call that finds no place free waits for one, or is refused at once if closed calls whose threads
run on hold all of them.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from actors.errors import ThreadsBusy
from actors.kernel.forking import reset_after_fork

LINGER = 1.0
"""Seconds that idle threads may take to end when the last runtime is left."""


class Place:
    """The right to use one thread. It ends with `run`, or with `give_back` if it was not used."""

    __slots__ = ("_pool", "is_over", "is_stuck")

    def __init__(self, pool: "Threads") -> None:
        self._pool = pool
        self.is_stuck = self.is_over = False

    def run(self, work: Callable[[], object]) -> None:
        """Run `work` in a thread. It must not raise."""
        self._pool.begin(self, work)

    def give_back(self) -> None:
        """Give the place to others."""
        self._pool._freed(self)

    def forsake(self) -> None:
        """Note that nobody waits for the thread any more."""
        self._pool._forsaken(self)


class Threads:
    """The pool. `THREADS` is the process's own; others are for tests."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget every thread and place. A forked child has none of them, and nobody there releases the lock."""
        self._lock = threading.Lock()
        self.begin: Callable[[Place, Callable[[], object]], None] = self._run
        """Runs a piece of work in a thread, and gives its place back then. Simulations have something else there."""
        self._idle: list[_Worker] = []
        self.users = 0
        """Runtimes that may need threads."""
        self._waiting: deque[Callable[[], object]] = deque()
        self.taken = 0
        """Places in use."""
        self.stuck = 0
        """Places whose call was closed while its thread ran on."""

    def enter(self) -> None:
        """Note one more runtime that may need threads."""
        with self._lock:
            self.users += 1

    def leave(self) -> None:
        """Note one runtime less. With the last one idle threads end."""
        with self._lock:
            self.users -= 1
            idle, self._idle = ([], self._idle) if self.users else (self._idle, [])
        for worker in idle:
            worker.box.put(None)
        for worker in idle:
            worker.join(LINGER)

    def take(self, limit: int, wake: Callable[[], object] | None = None) -> Place | None:
        """Return a place if fewer than `limit` are in use; None if it has to be waited for.

        `wake` is called then, once and in any thread, when it is worth asking again.

        Raises:
            ThreadsBusy: Waiting is of no use: that many threads run for calls that were closed.
        """
        with self._lock:
            if self.taken < limit:
                self.taken += 1
                return Place(self)
            if self.stuck >= limit:
                raise ThreadsBusy(
                    f"{self.stuck} threads are blocked by tools whose calls have ended, and limits.tool_threads is "
                    f"{limit}; find what blocks them, or raise it"
                )
            if wake is not None:
                self._waiting.append(wake)
        return None

    def withdraw(self, wake: Callable[[], object]) -> None:
        """Call `wake` no more."""
        with self._lock, suppress(ValueError):
            self._waiting.remove(wake)

    def _run(self, place: Place, work: Callable[[], object]) -> None:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self)
            try:
                worker.start()
            except RuntimeError:  # the system gives no more threads
                place.give_back()
                raise
        worker.box.put((place, work))

    def _freed(self, place: Place) -> None:
        with self._lock:
            place.is_over = True
            self.taken -= 1
            self.stuck -= place.is_stuck
        self._wake()

    def _forsaken(self, place: Place) -> None:
        with self._lock:
            if place.is_over or place.is_stuck:
                return
            place.is_stuck = True
            self.stuck += 1
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
        for wake in waiting:
            with suppress(RuntimeError):  # its loop has ended
                wake()

    def _rests(self, worker: "_Worker") -> bool:
        """Keep an idle thread for the next call, if there may be one."""
        with self._lock:
            if self.users:
                self._idle.append(worker)
            return bool(self.users)


class _Worker(threading.Thread):
    """One thread."""

    def __init__(self, pool: Threads) -> None:
        from queue import SimpleQueue  # only where a tool runs in a thread

        super().__init__(name="actors tool", daemon=True)
        self._pool = pool
        self.box: SimpleQueue[tuple[Place, Callable[[], object]] | None] = SimpleQueue()

    def run(self) -> None:
        """Do one piece of work after another."""
        while (given := self.box.get()) is not None:
            place, work = given
            work()
            del work, given
            goes_on = self._pool._rests(self)
            place.give_back()
            if not goes_on:
                return


THREADS = Threads()

READERS = Threads()
"""Those that read large results. No tool runs in them, so none can hold them up."""
reset_after_fork(THREADS.reset)
reset_after_fork(READERS.reset)
