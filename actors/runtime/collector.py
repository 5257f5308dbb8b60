"""Python's cyclic garbage collector, tuned for a process of many sessions.

What a session and a turn leave behind is freed at once, by counting references (`tests/runtime/test_garbage.py`), so
the collector finds next to nothing. It looks all the same: by default each time that 700 more objects are made than
are freed, which takes a third of the time where thousands of sessions ask at once. With larger thresholds it looks
less often, and memory stays the same.

The collector belongs to the process, so a library leaves it alone unless it is told otherwise: `Runtime(gc="tuned")`.
The thresholds from before come back when the last runtime that wanted others is left.
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
"""`tuning` raises the thresholds at which the garbage collector looks for cycles."""

Thresholds: TypeAlias = tuple[int, int, int]

TUNED: Final[Thresholds] = (50_000, 20, 20)
"""Objects that were made and not freed until the youngest are looked through, and rounds until the older ones are.

A turn among 1,500 takes 3.1 ms with these, 3.5 ms with 10,000, 10, 10 and 4.4 ms with the default (Python 3.11).
"""
CROWD = 500
"""Sessions with actors from which the collector takes so much time that it is worth a line of advice."""
LOW = 5_000
"""First threshold below which that line is logged."""


class CollectorTuning:
    """Counts who wants the collector tuned. `TUNING` is that of the process; others are for tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before: Thresholds = (0, 0, 0)
        self._set: Thresholds = (0, 0, 0)
        self._has_advised = False

    def enter(self, policy: GcPolicy | None) -> None:
        """Raise the thresholds, unless somebody has. None is lowered, and a collector that is off stays off."""
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
        """Give the thresholds back with the last user, if nobody else has changed them meanwhile."""
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
        """Log how to tune it, once, if many sessions have actors and the thresholds are low."""
        if sessions < CROWD or self._has_advised:
            return
        self._has_advised = True
        if gc.isenabled() and 0 < gc.get_threshold()[0] < LOW:
            logger.collector_untuned(sessions)

    def forget_parent(self) -> None:
        """Begin anew in a forked child, which has none of its parent's runtimes."""
        if self._users and gc.get_threshold() == self._set:
            gc.set_threshold(*self._before)
        self.__init__()  # type: ignore[misc]  # all of it, the lock that another thread may have held included


def checked_policy(given: GcPolicy | None) -> GcPolicy | None:
    """Return what a runtime was given as `gc`.

    Raises:
        ConfigError: It is neither a policy nor None.
    """
    if given is not None and given not in get_args(GcPolicy):
        raise ConfigError(
            f"gc= takes 'tuned', or None to leave the garbage collector alone, not {given!r:.40}"
        )
    return given


TUNING = CollectorTuning()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TUNING.forget_parent)
