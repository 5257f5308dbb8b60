"""Run blocking code in a bounded pool of daemon threads, one pool for the process.

A thread cannot be killed. So neither a runtime that is left nor the exit of the process waits for these threads, as it
would for the threads of the event loop's own pools. The number of threads is bounded by slots: a call takes a slot
before it starts, and the slot is free when the thread has returned, even if the call was closed long before. A call
without a free slot waits for one. If all slots are held by threads of closed calls, it fails at once.

A free slot is handed to one waiting call, in turn among tenants and their sessions, and wakes only this call. If every
waiting call were woken to look for a slot, n calls would cost n * n checks.
"""

import threading
from collections.abc import Callable

from actors.core.policy.fair import FairQueue
from actors.errors import ThreadsBusy
from actors.kernel.forking import reset_after_fork

LINGER = 1.0
"""Seconds to wait for each idle thread to end when the last runtime is left."""


class ThreadSlot:
    """The right to use one thread. Use it with `run`, or return it unused with `give_back`."""

    __slots__ = ("_pool", "is_over", "is_stuck")

    is_over: bool
    is_stuck: bool

    def __init__(self, pool: "Threads") -> None:
        self._pool = pool
        self.is_stuck = self.is_over = False

    def run(self, work: Callable[[], object]) -> None:
        """Run `work` in a thread. It must not raise."""
        self._pool.begin(self, work)

    def give_back(self) -> None:
        """Return the slot to the pool."""
        self._pool._free_slot(self)

    def abandon(self) -> None:
        """Record that the call was closed, so nothing waits for the thread any more."""
        self._pool._mark_abandoned(self)


class SlotRequest:
    """A call's request for a slot.

    Args:
        tenant, session: The tenant and the session of the call.
        limit: Most slots that may be in use, including this one.
        notify: Called once if the request had to wait, when it receives a slot or is rejected. It may run in any
            thread.
    """

    __slots__ = ("_notify", "error", "limit", "place", "session", "tenant")

    limit: int
    session: str
    tenant: str

    def __init__(self, tenant: str, session: str, limit: int, notify: Callable[[], object]) -> None:
        self.tenant, self.session, self.limit, self._notify = tenant, session, limit, notify
        self.place: ThreadSlot | None = None
        self.error: ThreadsBusy | None = None

    @property
    def is_answered(self) -> bool:
        """True if the request has a slot or was rejected."""
        return self.place is not None or self.error is not None

    def result(self) -> ThreadSlot:
        """Return the slot of an answered request.

        Raises:
            ThreadsBusy: The request was rejected.
        """
        if self.error is not None:
            raise self.error
        assert self.place is not None
        return self.place

    def notify(self) -> bool:
        """Notify the call that the request is answered. Return False if its event loop has ended."""
        try:
            self._notify()
        except RuntimeError:  # the event loop has ended
            return False
        return True


class Threads:
    """A pool of threads. `THREADS` and `READERS` are the pools of the process; tests create others."""

    users: int
    taken: int
    stuck: int

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset the pool in a forked child, which has none of the threads, and where the lock may never be released."""
        self._lock = threading.Lock()
        self.begin: Callable[[ThreadSlot, Callable[[], object]], None] = self._run
        """Runs work in a thread, then returns its slot. The simulator replaces this function."""
        self._idle: list[_Worker] = []
        self.users = 0
        """Number of runtimes that may need threads."""
        self._waiting: dict[int, FairQueue[SlotRequest]] = {}  # by limit
        self.taken = 0
        """Number of slots in use."""
        self.stuck = 0
        """Number of slots whose call was closed while its thread still runs."""

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a slot."""
        with self._lock:
            return sum(queue.size for queue in self._waiting.values())

    def enter(self) -> None:
        """Register a runtime that may need threads."""
        with self._lock:
            self.users += 1

    def leave(self) -> None:
        """Unregister a runtime. After the last one, the idle threads end."""
        with self._lock:
            self.users -= 1
            idle, self._idle = ([], self._idle) if self.users else (self._idle, [])
        for worker in idle:
            worker.box.put(None)
        for worker in idle:
            worker.join(LINGER)

    def take(self, limit: int) -> ThreadSlot | None:
        """Return a slot if fewer than `limit` are in use, else None."""
        with self._lock:
            return self._new_place() if self.taken < limit else None

    def ask(self, request: SlotRequest) -> None:
        """Answer a request at once, or queue it until a slot is free.

        Reject the request if waiting is pointless, because closed calls hold as many slots as its limit.
        """
        with self._lock:
            if self.taken < request.limit:
                request.place = self._new_place()
            elif self.stuck >= request.limit:
                request.error = self._busy(request.limit)
            else:
                queue = self._waiting.setdefault(request.limit, FairQueue({}))
                queue.put(request.tenant, request.session, request)

    def withdraw(self, request: SlotRequest) -> None:
        """Withdraw a request. A slot that it received is returned to the pool."""
        with self._lock:
            place, request.place = request.place, None
            if place is None and (queue := self._waiting.get(request.limit)) is not None:
                queue.remove(request.tenant, request.session, request)
        if place is not None:
            place.give_back()

    def _run(self, place: ThreadSlot, work: Callable[[], object]) -> None:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self)
            try:
                worker.start()
            except RuntimeError:  # the operating system refuses another thread
                place.give_back()
                raise
        worker.box.put((place, work))

    def _free_slot(self, place: ThreadSlot) -> None:
        with self._lock:
            place.is_over = True
            self.taken -= 1
            self.stuck -= place.is_stuck
        self._serve()

    def _mark_abandoned(self, place: ThreadSlot) -> None:
        with self._lock:
            if place.is_over or place.is_stuck:
                return
            place.is_stuck = True
            self.stuck += 1
        self._serve()

    def _serve(self) -> None:
        """Answer the waiting requests for which there is a slot now, or no hope of one."""
        while True:
            with self._lock:
                answered = self._answer_waiting()
            deaf = [request for request in answered if not request.notify()]
            if not deaf:
                return
            with self._lock:
                self.taken -= sum(request.place is not None for request in deaf)

    def _answer_waiting(self) -> list[SlotRequest]:
        """Assign the free slots to requests with low limits first, which high limits would otherwise starve."""
        answered: list[SlotRequest] = []
        for limit in sorted(self._waiting):
            queue = self._waiting[limit]
            while queue.size and self.taken < limit:
                request = queue.pop(1.0)
                request.place = self._new_place()
                answered.append(request)
            if self.stuck >= limit:
                for request in queue.clear():
                    request.error = self._busy(limit)
                    answered.append(request)
            if not queue.size:
                del self._waiting[limit]
        return answered

    def _new_place(self) -> ThreadSlot:
        self.taken += 1
        return ThreadSlot(self)

    def _busy(self, limit: int) -> ThreadsBusy:
        return ThreadsBusy(
            f"{self.stuck} threads are blocked by tools whose calls have ended, and limits.tool_threads is "
            f"{limit}; find what blocks them, or raise it"
        )

    def _keep_idle(self, worker: "_Worker") -> bool:
        """Keep an idle thread for the next call. Return False if no runtime is left, so that the thread ends."""
        with self._lock:
            if self.users:
                self._idle.append(worker)
            return bool(self.users)


class _Worker(threading.Thread):
    """A thread of a pool."""

    def __init__(self, pool: Threads) -> None:
        from queue import SimpleQueue  # imported only when a tool runs in a thread

        super().__init__(name="actors tool", daemon=True)
        self._pool = pool
        self.box: SimpleQueue[tuple[ThreadSlot, Callable[[], object]] | None] = SimpleQueue()

    def run(self) -> None:
        """Run work from the queue until the thread is told to end."""
        while (given := self.box.get()) is not None:
            place, work = given
            work()
            del work, given
            goes_on = self._pool._keep_idle(self)
            place.give_back()
            if not goes_on:
                return


THREADS = Threads()

READERS = Threads()
"""Threads that convert large results. No tool runs in them, so no tool can block them."""
reset_after_fork(THREADS.reset)
reset_after_fork(READERS.reset)
