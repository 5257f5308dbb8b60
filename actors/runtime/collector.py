"""Python's cyclic garbage collector, tuned for a process of many sessions.

Sessions and turns create no reference cycles, so reference counting frees them at once
(`tests/runtime/test_garbage.py`), and the collector finds almost nothing. It still runs, by default whenever 700 more
objects have been created than freed, which takes a third of the time if thousands of sessions ask at once. With larger
thresholds it runs less often, and memory use stays the same.

The collector belongs to the process, so the library changes it only on request: `Runtime(gc="tuned")`. The earlier
thresholds are restored when the last runtime with this setting is left.
"""

import gc
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias, get_args

from actors.errors import ConfigError
from actors.telemetry import logger

GcPolicy: TypeAlias = Literal["tuned"]
"""`tuned` raises the thresholds at which the garbage collector runs."""

Thresholds: TypeAlias = tuple[int, int, int]

TUNED: Final[Thresholds] = (50_000, 20, 20)
"""New objects before the youngest generation is collected, and collections before each older generation is.

A turn among 1,500 takes 3.1 ms with these, 3.5 ms with 10,000, 10, 10 and 4.4 ms with the default (Python 3.11).
"""
CROWD = 500
"""Number of sessions with actors from which the runtime logs advice about the collector."""
LOW = 5_000
"""The advice is logged only if the first threshold is below this number."""


class CollectorTuning:
    """Counts the runtimes that tune the collector. `TUNING` is the only instance outside tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before: Thresholds = (0, 0, 0)
        self._set: Thresholds = (0, 0, 0)
        self._has_advised = False

    def enter(self, policy: GcPolicy | None) -> None:
        """Raise the thresholds for the first user. No threshold is lowered, and a disabled collector stays disabled."""
        if policy is None:
            return
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = before = gc.get_threshold()
                first, second, third = map(max, before, TUNED)
                self._set = (first, second, third) if before[0] else before
                gc.set_threshold(*self._set)

    def leave(self, policy: GcPolicy | None) -> None:
        """Restore the thresholds after the last user, unless other code has changed them in the meantime."""
        if policy is None:
            return
        with self._lock:
            self._users -= 1
            if not self._users and gc.get_threshold() == self._set:
                gc.set_threshold(*self._before)

    @contextmanager
    def tuning(self) -> Generator[None]:
        """Tune the garbage collector inside the block."""
        self.enter("tuned")
        try:
            yield
        finally:
            self.leave("tuned")

    def advise(self, sessions: int) -> None:
        """Log once how to tune the collector, if many sessions have actors and the thresholds are low."""
        if sessions < CROWD or self._has_advised:
            return
        self._has_advised = True
        if gc.isenabled() and 0 < gc.get_threshold()[0] < LOW:
            logger.collector_untuned(sessions)

    def forget_parent(self) -> None:
        """Reset the state in a forked child, which has none of its parent's runtimes."""
        if self._users and gc.get_threshold() == self._set:
            gc.set_threshold(*self._before)
        self.__init__()  # type: ignore[misc]  # everything, including the lock, which another thread may have held


def checked_policy(given: GcPolicy | None) -> GcPolicy | None:
    """Return the `gc` argument of a runtime, checked.

    Raises:
        ConfigError: The argument is neither a policy nor None.
    """
    if given is not None and given not in get_args(GcPolicy):
        raise ConfigError(
            f"gc= takes 'tuned', or None to leave the garbage collector alone, not {given!r:.40}"
        )
    return given


TUNING = CollectorTuning()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TUNING.forget_parent)
