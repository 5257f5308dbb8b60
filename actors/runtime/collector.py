"""Tune Python's cyclic garbage collector for a process with many sessions.

Sessions and turns create no reference cycles, so reference counting frees them at once
(`tests/runtime/test_garbage.py`), and the collector finds almost nothing. By default, the collector still runs whenever
700 more objects have been created than freed. If thousands of sessions ask at once, these runs take a third of the CPU
time. With larger thresholds, the collector runs less often, and memory use stays the same.

The collector belongs to the process, so the library changes it only on request: `Runtime(gc="tuned")`. The previous
thresholds are restored when the last runtime with this setting exits.
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
"""With `tuned`, the garbage collector runs less often."""

Thresholds: TypeAlias = tuple[int, int, int]

TUNED: Final[Thresholds] = (50_000, 20, 20)
"""The thresholds that `tuned` sets: new objects per collection, and collections per collection of an older generation.

With 1,500 concurrent turns, a turn takes 3.1 ms with these thresholds, 3.5 ms with 10,000, 10 and 10, and 4.4 ms with
the defaults (Python 3.11).
"""
MANY_SESSIONS = 500
"""If at least this many sessions have actors, the runtime logs advice about the collector."""
LOW_THRESHOLD = 5_000
"""The advice about the collector is logged only if the first threshold is lower than this number."""


class CollectorTuning:
    """Raises the garbage collector's thresholds while a runtime with the policy `tuned` exists, then restores them.

    `TUNING` is the only instance outside tests.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before: Thresholds = (0, 0, 0)
        self._set: Thresholds = (0, 0, 0)
        self._has_advised = False

    def begin_tuning(self, policy: GcPolicy | None) -> None:
        """If `policy` is `tuned`, count the runtime, and raise the thresholds if no other runtime has raised them.

        No threshold is lowered, and a disabled collector stays disabled.
        """
        if policy is None:
            return
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = before = gc.get_threshold()
                first, second, third = map(max, before, TUNED)
                self._set = (first, second, third) if before[0] else before
                gc.set_threshold(*self._set)

    def end_tuning(self, policy: GcPolicy | None) -> None:
        """Restore the thresholds if this is the last runtime with the policy `tuned`.

        If other code has changed the thresholds in the meantime, keep its values.
        """
        if policy is None:
            return
        with self._lock:
            self._users -= 1
            if not self._users and gc.get_threshold() == self._set:
                gc.set_threshold(*self._before)

    @contextmanager
    def tuning(self) -> Generator[None]:
        """Tune the garbage collector inside the `with` block."""
        self.begin_tuning("tuned")
        try:
            yield
        finally:
            self.end_tuning("tuned")

    def advise(self, sessions: int) -> None:
        """Log once how to tune the collector, if many sessions have actors and the thresholds are low."""
        if sessions < MANY_SESSIONS or self._has_advised:
            return
        self._has_advised = True
        if gc.isenabled() and 0 < gc.get_threshold()[0] < LOW_THRESHOLD:
            logger.collector_untuned(sessions)

    def reset_after_fork(self) -> None:
        """Reset the state in a forked child process, where the parent's runtimes do not run."""
        if self._users and gc.get_threshold() == self._set:
            gc.set_threshold(*self._before)
        self.__init__()  # type: ignore[misc]  # resets also the lock, which another thread may have held at the fork


def checked_policy(policy: GcPolicy | None) -> GcPolicy | None:
    """Check the `gc=` argument of a runtime, and return it.

    Raises:
        ConfigError: The argument is neither a policy nor None.
    """
    if policy is not None and policy not in get_args(GcPolicy):
        raise ConfigError(
            f"gc= takes 'tuned', or None to leave the garbage collector unchanged, not {policy!r:.40}"
        )
    return policy


TUNING = CollectorTuning()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TUNING.reset_after_fork)
