"""Watches event loops from a thread, and says which tool holds one up, and where in its code.

An async tool that blocks (a `time.sleep`, a query by a library that is not async) stops every session of its loop, and
nothing inside the loop can say so until it is over. One thread of the process looks after all of its runtimes; it ends
when no tool runs, and is begun again with the next one.
"""

import sys
import threading
from contextlib import suppress
from time import monotonic, sleep
from weakref import WeakSet

from msgspec import Struct

from actors.core.stats.stats import Stalls
from actors.kernel.contained import Contained, Containment
from actors.kernel.forking import reset_after_fork
from actors.telemetry import logger

LOOK = 0.25
"""Seconds between two looks at a tool that was told of."""
SHORTEST = 0.01
"""Seconds between two looks at least."""
STALL = 1.0
"""Seconds without a wait after which a tool is told of."""


class CallLabel(Struct, frozen=True):
    """Which call a contained piece of code is."""

    session: str
    call_id: str
    tool: str


class LoopWatch:
    """One runtime, watched. Made in the thread of its loop; what it watches is no longer watched when it is gone.

    Args:
        containment: Where its tools run.
    """

    def __init__(self, containment: Containment) -> None:
        self._containment = containment
        self._loop = threading.get_ident()
        self._told: tuple[Contained, float] | None = None
        self._looked = 0.0
        self.seen: Stalls = Stalls()
        """What was seen so far."""
        containment.on_start = WATCHDOG.wake
        WATCHDOG.add(self)

    @property
    def is_needed(self) -> bool:
        """True if a tool runs. A toolset that is open is none."""
        return self._containment.named > 0

    def close(self) -> None:
        """Watch no more."""
        WATCHDOG.discard(self)

    def look(self) -> float:
        """See whether a tool holds up the loop; return the seconds until one can. Called in another thread."""
        step, now = self._containment.step, monotonic()
        if step is None:
            return STALL
        contained, since = step
        if now - since < STALL:
            return max(since + STALL - now, SHORTEST)
        if step is self._told:
            self.seen = Stalls(self.seen.count, self.seen.seconds + now - self._looked)
        else:
            self._told = step
            self.seen = Stalls(self.seen.count + 1, self.seen.seconds + now - since)
            if isinstance(about := contained.about, CallLabel):
                logger.loop_stalled(about.session, about.call_id, about.tool, now - since, self._place())
        self._looked = now
        return LOOK

    def _place(self) -> str:
        """Return where the loop's thread is now."""
        if (frame := sys._current_frames().get(self._loop)) is None:
            return "unknown"
        code = frame.f_code
        return f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"


class Watchdog:
    """The thread. `WATCHDOG` is the process's own."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the thread and what it watches. A forked child has neither."""
        self._watches: WeakSet[LoopWatch] = WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, watch: LoopWatch) -> None:
        """Look after one more runtime."""
        with self._lock:
            self._watches.add(watch)

    def discard(self, watch: LoopWatch) -> None:
        """Look after it no longer."""
        with self._lock:
            self._watches.discard(watch)

    def wake(self) -> None:
        """Look from now on: a tool has begun."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._look, name="actors watchdog", daemon=True)
                with suppress(RuntimeError):  # the system gives no more threads: tools run unwatched
                    thread.start()
                    self._thread = thread

    def _look(self) -> None:
        wait = STALL  # at first too: tools that take less than that begin one thread between them
        while True:
            sleep(wait)
            with self._lock:
                watches = tuple(self._watches)
            wait = min((watch.look() for watch in watches), default=STALL)
            watches = ()
            if not self._is_needed():
                return

    def _is_needed(self) -> bool:
        """Say whether any tool runs. If none does, the thread ends, and the next tool begins another."""
        with self._lock:
            thread, self._thread = self._thread, None
            if any(watch.is_needed for watch in self._watches):  # after that, so that no start is overseen
                self._thread = thread
            return self._thread is not None


WATCHDOG = Watchdog()
reset_after_fork(WATCHDOG.reset)
