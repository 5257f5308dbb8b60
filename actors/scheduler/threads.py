"""Run blocking code in bounded pools of daemon threads, which all runtimes of the process share.

A thread cannot be killed. If tools ran in worker threads of the event loop, exiting a runtime or the process would wait
for them. So tools run in daemon threads, for which nothing waits. The number of threads is bounded by slots. A call
acquires a slot before it starts. The slot becomes free when the thread has returned, even if the call was closed long
before. If no slot is free, the call waits. If threads of closed calls occupy all slots, the call fails immediately.

A free slot goes to one waiting call, in turn among tenants and their sessions, and only this call wakes up. If every
waiting call woke up to check for a slot, n calls would need n * n checks.
"""

import threading
from collections.abc import Callable

from actors.core.policy.fair import FairQueue
from actors.errors import ThreadsBusy
from actors.kernel.event_loop import reset_after_fork

JOIN_TIMEOUT = 1.0
"""Maximum seconds to wait for each idle thread to end after the last runtime has exited."""


class ThreadSlot:
    """The right to use one thread of a pool. Use the slot with `run`, or return it unused with `give_back`."""

    __slots__ = ("_pool", "is_over", "is_stuck")

    is_over: bool
    is_stuck: bool

    def __init__(self, pool: "Threads") -> None:
        self._pool = pool
        self.is_stuck = self.is_over = False

    def run(self, work: Callable[[], object]) -> None:
        """Run `work` in a thread, then return the slot to the pool. `work` must not raise."""
        self._pool.begin(self, work)

    def give_back(self) -> None:
        """Return the slot to the pool."""
        self._pool._free_slot(self)

    def abandon(self) -> None:
        """Record that the call of this slot was closed while the slot's thread still runs."""
        self._pool._mark_abandoned(self)


class SlotRequest:
    """A call's request for a thread slot.

    Args:
        tenant, session: The tenant and the session of the call.
        limit: Maximum number of slots that may be in use, including the requested slot.
        notify: Called in any thread when a request that had to wait receives a slot or is rejected.
    """

    __slots__ = ("_notify", "error", "limit", "session", "slot", "tenant")

    limit: int
    session: str
    tenant: str

    def __init__(self, tenant: str, session: str, limit: int, notify: Callable[[], object]) -> None:
        self.tenant, self.session, self.limit, self._notify = tenant, session, limit, notify
        self.slot: ThreadSlot | None = None
        self.error: ThreadsBusy | None = None

    @property
    def is_answered(self) -> bool:
        """True if the request has received a slot or was rejected."""
        return self.slot is not None or self.error is not None

    def result(self) -> ThreadSlot:
        """Return the slot of an answered request.

        Raises:
            ThreadsBusy: The request was rejected.
        """
        if self.error is not None:
            raise self.error
        assert self.slot is not None
        return self.slot

    def notify(self) -> bool:
        """Notify the call that its request is answered. Return False if the call's event loop has ended."""
        try:
            self._notify()
        except RuntimeError:  # the event loop has ended
            return False
        return True


class Threads:
    """A pool of threads. `THREADS` and `CONVERSION_THREADS` are the only pools outside tests."""

    users: int
    taken: int
    stuck: int

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Empty the pool. This is called for a new pool, and in a forked child.

        A forked child has none of the parent's threads, and a lock that was held during the fork would never be
        released.
        """
        self._lock = threading.Lock()
        self.begin: Callable[[ThreadSlot, Callable[[], object]], None] = self._run
        """Runs work in a thread, then returns the slot. The simulator replaces this function."""
        self._idle: list[_Worker] = []
        self.users = 0
        """Number of runtimes that may need threads."""
        self._waiting: dict[int, FairQueue[SlotRequest]] = {}  # the waiting requests, by their `limit`
        self.taken = 0
        """Number of slots in use."""
        self.stuck = 0
        """Number of slots whose call was closed while its thread still runs."""

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a slot."""
        with self._lock:
            return sum(queue.size for queue in self._waiting.values())

    def register_runtime(self) -> None:
        """Register a runtime that may need threads."""
        with self._lock:
            self.users += 1

    def unregister_runtime(self) -> None:
        """Unregister a runtime. When no runtime remains, end the idle threads."""
        with self._lock:
            self.users -= 1
            idle, self._idle = ([], self._idle) if self.users else (self._idle, [])
        for worker in idle:
            worker.work_queue.put(None)
        for worker in idle:
            worker.join(JOIN_TIMEOUT)

    def try_take_slot(self, limit: int) -> ThreadSlot | None:
        """Return a slot if fewer than `limit` slots are in use, else None."""
        with self._lock:
            return self._take_slot() if self.taken < limit else None

    def request_slot(self, request: SlotRequest) -> None:
        """Answer a request immediately, or queue it until a slot is free.

        If threads of closed calls occupy all slots up to the limit, reject the request, because it might wait forever.
        """
        with self._lock:
            if self.taken < request.limit:
                request.slot = self._take_slot()
            elif self.stuck >= request.limit:
                request.error = self._blocked_error(request.limit)
            else:
                queue = self._waiting.setdefault(request.limit, FairQueue({}))
                queue.put(request.tenant, request.session, request)

    def withdraw(self, request: SlotRequest) -> None:
        """Remove a request from the queue. If the request has received a slot, return the slot to the pool."""
        # Until this thread holds the lock, another thread may give the request a slot. That slot is returned below.
        with self._lock:
            slot, request.slot = request.slot, None
            if slot is None and (queue := self._waiting.get(request.limit)) is not None:
                queue.remove(request.tenant, request.session, request)
        if slot is not None:
            slot.give_back()

    def _run(self, slot: ThreadSlot, work: Callable[[], object]) -> None:
        """Run `work` in an idle thread, or in a new thread if none is idle."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self)
            try:
                worker.start()
            except RuntimeError:  # the operating system does not allow another thread
                slot.give_back()
                raise
        worker.work_queue.put((slot, work))

    def _free_slot(self, slot: ThreadSlot) -> None:
        """Count a slot as free, and answer waiting requests."""
        with self._lock:
            slot.is_over = True
            self.taken -= 1
            self.stuck -= slot.is_stuck
        self._answer_requests()

    def _mark_abandoned(self, slot: ThreadSlot) -> None:
        """Count a slot as occupied by a closed call, and reject requests that can no longer get a slot."""
        with self._lock:
            if slot.is_over or slot.is_stuck:
                return
            slot.is_stuck = True
            self.stuck += 1
        self._answer_requests()

    def _answer_requests(self) -> None:
        """Give free slots to waiting requests, reject requests that can get no slot, and notify their calls."""
        while True:
            with self._lock:
                answered = self._answer_waiting()
            unreachable = [request for request in answered if not request.notify()]
            if not unreachable:
                return
            with self._lock:  # the event loops of these requests have ended
                self.taken -= sum(request.slot is not None for request in unreachable)

    def _answer_waiting(self) -> list[SlotRequest]:
        """Assign free slots to waiting requests, and return the answered requests. The caller must hold the lock.

        Requests with low limits come first, because requests with high limits would otherwise starve them.
        """
        answered: list[SlotRequest] = []
        for limit in sorted(self._waiting):
            queue = self._waiting[limit]
            while queue.size and self.taken < limit:
                request = queue.pop(1.0)
                request.slot = self._take_slot()
                answered.append(request)
            if self.stuck >= limit:
                for request in queue.clear():
                    request.error = self._blocked_error(limit)
                    answered.append(request)
            if not queue.size:
                del self._waiting[limit]
        return answered

    def _take_slot(self) -> ThreadSlot:
        """Count a slot as in use, and return the slot. The caller must hold the lock."""
        self.taken += 1
        return ThreadSlot(self)

    def _blocked_error(self, limit: int) -> ThreadsBusy:
        """Return the error for a request that is rejected because closed calls occupy all slots up to the limit."""
        return ThreadsBusy(
            f"{self.stuck} threads are blocked by tools whose calls have ended, and limits.tool_threads is "
            f"{limit}; fix the tools that block, or increase limits.tool_threads"
        )

    def _keep_idle(self, worker: "_Worker") -> bool:
        """Keep an idle thread for the next call. Return False if the thread must end because no runtime remains."""
        with self._lock:
            if self.users:
                self._idle.append(worker)
            return bool(self.users)


class _Worker(threading.Thread):
    """A thread of a pool. It runs the work that it receives through `work_queue`."""

    def __init__(self, pool: Threads) -> None:
        from queue import SimpleQueue  # imported lazily, when a tool first runs in a thread

        super().__init__(name="actors tool", daemon=True)
        self._pool = pool
        self.work_queue: SimpleQueue[tuple[ThreadSlot, Callable[[], object]] | None] = SimpleQueue()

    def run(self) -> None:
        """Run work from the queue until the queue delivers None or no runtime uses the pool."""
        while (given := self.work_queue.get()) is not None:
            slot, work = given
            work()
            del work, given
            goes_on = self._pool._keep_idle(self)
            slot.give_back()
            if not goes_on:
                return


THREADS = Threads()

CONVERSION_THREADS = Threads()
"""The pool of threads that convert large results. No tool runs in these threads, so no tool can block them."""
reset_after_fork(THREADS.reset)
reset_after_fork(CONVERSION_THREADS.reset)
