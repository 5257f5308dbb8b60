"""Threads for code that blocks: one pool for the process, with a limit, of daemon threads.

A thread cannot be ended from outside. So none of these keeps anything else from ending: a runtime that is left does not
wait for them, nor does the process when it exits, as it would for those of the event loop's own pools. What stays is
counted: a place is taken before a call begins and given back when its thread has returned, however long ago the call
was closed. A call that finds no place free waits for one, or is refused at once if closed calls whose threads
run on hold all of them.

A place that is given back goes to one of those who wait, in turn among tenants and their sessions, and wakes nobody
else: if all looked for themselves, n calls would cost n * n looks.
"""

import threading
from collections.abc import Callable

from actors.core.policy.fair import FairQueue
from actors.errors import ThreadsBusy
from actors.kernel.forking import reset_after_fork

LINGER = 1.0
"""Seconds that idle threads may take to end when the last runtime is left."""


class ThreadSlot:
    """The right to use one thread. It ends with `run`, or with `give_back` if it was not used."""

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
        """Give the place to others."""
        self._pool._free_slot(self)

    def abandon(self) -> None:
        """Note that nobody waits for the thread any more."""
        self._pool._mark_abandoned(self)


class SlotRequest:
    """A call that needs a place.

    Args:
        tenant, session: Whose it is.
        limit: Places that may be in use, this one included.
        notify: Called once, in any thread, if it had to wait: when it has a place, or is refused.
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
        """True if it has a place, or is refused."""
        return self.place is not None or self.error is not None

    def result(self) -> ThreadSlot:
        """Return the place of a request that is answered.

        Raises:
            ThreadsBusy: It is refused.
        """
        if self.error is not None:
            raise self.error
        assert self.place is not None
        return self.place

    def notify(self) -> bool:
        """Tell the call that there is an answer; say whether it can hear it."""
        try:
            self._notify()
        except RuntimeError:  # its loop has ended
            return False
        return True


class Threads:
    """The pool. `THREADS` is the process's own; others are for tests."""

    users: int
    taken: int
    stuck: int

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget every thread and place. A forked child has none of them, and nobody there releases the lock."""
        self._lock = threading.Lock()
        self.begin: Callable[[ThreadSlot, Callable[[], object]], None] = self._run
        """Runs a piece of work in a thread, and gives its place back then. Simulations have something else there."""
        self._idle: list[_Worker] = []
        self.users = 0
        """Runtimes that may need threads."""
        self._waiting: dict[int, FairQueue[SlotRequest]] = {}  # by limit
        self.taken = 0
        """Places in use."""
        self.stuck = 0
        """Places whose call was closed while its thread ran on."""

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        with self._lock:
            return sum(queue.size for queue in self._waiting.values())

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

    def take(self, limit: int) -> ThreadSlot | None:
        """Return a place if fewer than `limit` are in use. Nobody who waits could have it."""
        with self._lock:
            return self._new_place() if self.taken < limit else None

    def ask(self, request: SlotRequest) -> None:
        """Answer a request at once, or as soon as a place is free and its turn has come.

        It is refused if waiting is of no use: as many threads as its limit run for calls that were closed.
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
        """Drop a request. If it has a place that it did not use, another gets it."""
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
            except RuntimeError:  # the system gives no more threads
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
        """Answer those who wait, as far as that can be done now."""
        while True:
            with self._lock:
                answered = self._answer_waiting()
            deaf = [request for request in answered if not request.notify()]
            if not deaf:
                return
            with self._lock:
                self.taken -= sum(request.place is not None for request in deaf)

    def _answer_waiting(self) -> list[SlotRequest]:
        """Hand out what is free, to small limits first: they would not see what larger ones leave them."""
        answered: list[SlotRequest] = []
        for limit in sorted(self._waiting):
            queue = self._waiting[limit]
            while queue.size and self.taken < limit:
                request = queue.take(1.0)
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
        self.box: SimpleQueue[tuple[ThreadSlot, Callable[[], object]] | None] = SimpleQueue()

    def run(self) -> None:
        """Do one piece of work after another."""
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
"""Those that read large results. No tool runs in them, so none can hold them up."""
reset_after_fork(THREADS.reset)
reset_after_fork(READERS.reset)
