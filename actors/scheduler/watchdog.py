"""Watch tools that harm other sessions: tools that block the event loop, and tools that still run after their calls
were closed.

An async tool that blocks (for example, with `time.sleep` or a sync library) stops every session of its event loop, and
no code inside the loop can report the tool until the tool continues. So one thread watches all runtimes of the process,
and logs the tool and the line of code. The thread ends when no tool runs, and the next tool starts it again.

A tool that ignores its cancellation may use the CPU, and a tool that blocks occupies a thread, so these tools slow down
all sessions. For each tool of a runtime, the closed calls that still run are counted. While a tool has too many of
them, it is disabled.
"""

import sys
import threading
from collections import Counter
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakSet

from msgspec import Struct

from actors.core.stats.stats import Stalls
from actors.kernel.event_loop import reset_after_fork
from actors.kernel.tasks import ContainedTask, ContainedTasks
from actors.telemetry import logger

if TYPE_CHECKING:
    from actors.tools import Tool

RECHECK = 0.25
"""Seconds between two checks while a reported tool still blocks the loop."""
MIN_WAIT = 0.01
"""Minimum seconds between two checks."""
STALL = 1.0
"""Seconds that a tool may block the event loop before the watchdog reports the tool."""
AnyTool: TypeAlias = "Tool[..., Any]"  # Any: tool signatures differ


class CallLabel(Struct, frozen=True):
    """The identity of the tool call that a contained task runs."""

    session: str
    call_id: str
    tool: str


class LoopWatch:
    """Watches the event loop of one runtime until `close` is called or this object is garbage-collected.

    Create the watch in the thread of the event loop.

    Args:
        contained_tasks: The tasks that run the tools of the runtime.
    """

    def __init__(self, contained_tasks: ContainedTasks) -> None:
        self._contained_tasks = contained_tasks
        self._loop = threading.get_ident()
        self._reported: tuple[ContainedTask, float] | None = None
        self._last_check = 0.0
        self.stalls: Stalls = Stalls()
        """The number and total time of the stalls so far."""
        contained_tasks.on_start = WATCHDOG.ensure_running
        WATCHDOG.add(self)

    @property
    def is_needed(self) -> bool:
        """True if a tool runs. An open toolset does not count as a running tool."""
        return self._contained_tasks.described_count > 0

    def close(self) -> None:
        """Stop watching the runtime."""
        WATCHDOG.discard(self)

    def check(self) -> float:
        """Report a tool that blocks the event loop, and return the seconds until the next check.

        Runs in the watchdog thread.
        """
        step, now = self._contained_tasks.step, monotonic()
        if step is None:
            return STALL
        contained, since = step
        if now - since < STALL:
            return max(since + STALL - now, MIN_WAIT)
        if step is self._reported:  # the reported tool still blocks the loop
            self.stalls = Stalls(self.stalls.count, self.stalls.seconds + now - self._last_check)
        else:
            self._reported = step
            self.stalls = Stalls(self.stalls.count + 1, self.stalls.seconds + now - since)
            if isinstance(about := contained.about, CallLabel):
                logger.loop_stalled(
                    about.session, about.call_id, about.tool, now - since, self._current_line()
                )
        self._last_check = now
        return RECHECK

    def _current_line(self) -> str:
        """Return the file, line and function that the event loop's thread executes now."""
        if (frame := sys._current_frames().get(self._loop)) is None:
            return "unknown"
        code = frame.f_code
        return f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"


class Watchdog:
    """The thread that watches all runtimes of the process. `WATCHDOG` is the only instance outside tests."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the thread and the watched runtimes. This is called in a forked child, which has neither."""
        self._watches: WeakSet[LoopWatch] = WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, watch: LoopWatch) -> None:
        """Start watching a runtime."""
        with self._lock:
            self._watches.add(watch)

    def discard(self, watch: LoopWatch) -> None:
        """Stop watching a runtime."""
        with self._lock:
            self._watches.discard(watch)

    def ensure_running(self) -> None:
        """Start the watching thread if it does not run. This is called when a tool starts."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._watch, name="actors watchdog", daemon=True)
                # If the operating system allows no more threads, no thread watches the tools.
                with suppress(RuntimeError):
                    thread.start()
                    self._thread = thread

    def _watch(self) -> None:
        """Check all runtimes repeatedly until no tool runs. This is the main function of the watching thread."""
        wait = STALL  # wait before the first check too, so that a series of short tools shares one thread
        while True:
            sleep(wait)
            with self._lock:
                watches = tuple(self._watches)
            wait = min((watch.check() for watch in watches), default=STALL)
            watches = ()
            if not self._is_needed():
                return

    def _is_needed(self) -> bool:
        """Return True if any tool runs. Otherwise, the thread must end, and the next tool starts a new thread."""
        with self._lock:
            thread, self._thread = self._thread, None
            # Check after `_thread` is cleared, so that a tool that starts during the check starts a new thread.
            if any(watch.is_needed for watch in self._watches):
                self._thread = thread
            return self._thread is not None


WATCHDOG = Watchdog()
reset_after_fork(WATCHDOG.reset)


class Quarantine:
    """The closed calls of a runtime whose tools still run.

    Args:
        limit: A tool is disabled while it has at least this many closed calls that still run.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: Counter[tuple[str, int]] = Counter()
        self.entered: int = 0
        """Number of calls that have entered quarantine since the runtime started."""

    @property
    def size(self) -> int:
        """Number of calls in quarantine."""
        return self._held.total()

    def by_tool(self) -> dict[str, int]:
        """Return the number of calls in quarantine for each tool name."""
        held = Counter[str]()
        for (name, _), count in self._held.items():
            held[name] += count
        return dict(held)

    def add(self, tool: AnyTool) -> None:
        """Count a closed call whose tool still runs. The tool is disabled if it has too many such calls."""
        key = _tool_key(tool)
        self._held[key] += 1
        self.entered += 1
        if self._held[key] == self._limit:
            logger.tool_barred(tool.name, self._limit)

    def remove(self, tool: AnyTool) -> None:
        """Stop counting a closed call, because its tool has ended."""
        key = _tool_key(tool)
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]

    def is_disabled(self, tool: AnyTool) -> bool:
        """Return True if the tool must not be called now, because too many of its closed calls still run."""
        return bool(self._held) and self._held[_tool_key(tool)] >= self._limit


def _tool_key(tool: AnyTool) -> tuple[str, int]:
    """Return a key that distinguishes tools of the same name with different functions."""
    return tool.name, id(tool.function)
