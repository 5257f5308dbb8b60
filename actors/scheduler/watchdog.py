"""Watch event loops from a thread, and log which tool blocks a loop, and at which line of its code.

An async tool that blocks (with `time.sleep`, or a query of a library that is not async) stops every session of its
loop, and no code inside the loop can report it before the tool continues. One thread watches all runtimes of the
process. It ends when no tool runs, and is started again by the next tool.
"""

import sys
import threading
from contextlib import suppress
from time import monotonic, sleep
from weakref import WeakSet

from msgspec import Struct

from actors.core.stats.stats import Stalls
from actors.kernel.contained import ContainedTask, Containment
from actors.kernel.forking import reset_after_fork
from actors.telemetry import logger

LOOK = 0.25
"""Seconds between two checks of a tool that has been reported."""
SHORTEST = 0.01
"""Minimum seconds between two checks."""
STALL = 1.0
"""Seconds that a tool may block the loop before it is reported."""


class CallLabel(Struct, frozen=True):
    """Identifies the call that a contained task runs."""

    session: str
    call_id: str
    tool: str


class LoopWatch:
    """Watches one runtime, until `close` or until this object is garbage collected. Create it in the loop's thread.

    Args:
        containment: Runs the tools of the runtime.
    """

    def __init__(self, containment: Containment) -> None:
        self._containment = containment
        self._loop = threading.get_ident()
        self._told: tuple[ContainedTask, float] | None = None
        self._looked = 0.0
        self.seen: Stalls = Stalls()
        """The number and total time of the stalls so far."""
        containment.on_start = WATCHDOG.wake
        WATCHDOG.add(self)

    @property
    def is_needed(self) -> bool:
        """True if a tool runs. An open toolset does not count."""
        return self._containment.named > 0

    def close(self) -> None:
        """Stop watching."""
        WATCHDOG.discard(self)

    def look(self) -> float:
        """Report a tool that blocks the loop; return the seconds until the next check. Runs in the watchdog thread."""
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
        """Return the file, line and function that the loop's thread executes now."""
        if (frame := sys._current_frames().get(self._loop)) is None:
            return "unknown"
        code = frame.f_code
        return f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"


class Watchdog:
    """The watching thread. `WATCHDOG` is the only instance outside tests."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the thread and the watched runtimes, in a forked child, which has neither."""
        self._watches: WeakSet[LoopWatch] = WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, watch: LoopWatch) -> None:
        """Start to watch a runtime."""
        with self._lock:
            self._watches.add(watch)

    def discard(self, watch: LoopWatch) -> None:
        """Stop watching a runtime."""
        with self._lock:
            self._watches.discard(watch)

    def wake(self) -> None:
        """Start the thread if it does not run: a tool has started."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._look, name="actors watchdog", daemon=True)
                with suppress(RuntimeError):  # the system refuses another thread, so tools run unwatched
                    thread.start()
                    self._thread = thread

    def _look(self) -> None:
        wait = STALL  # for the first check too, so that a series of short tools shares one thread
        while True:
            sleep(wait)
            with self._lock:
                watches = tuple(self._watches)
            wait = min((watch.look() for watch in watches), default=STALL)
            watches = ()
            if not self._is_needed():
                return

    def _is_needed(self) -> bool:
        """Return True if any tool runs. Otherwise the thread must end, and the next tool starts another."""
        with self._lock:
            thread, self._thread = self._thread, None
            # Check after `_thread` is cleared, so that a tool that starts now starts a new thread.
            if any(watch.is_needed for watch in self._watches):
                self._thread = thread
            return self._thread is not None


WATCHDOG = Watchdog()
reset_after_fork(WATCHDOG.reset)
