"""Run work that outlives a cancelled caller, such as deletions and backups, in a task of the session host.

A task that is cancelled before its first step never runs its work, but the event loop still reports that the task has
ended. `HostTask` takes the outcome from this report, so callers never wait for work that did not start.
"""

import anyio

from actors.errors import ActorsError, ShuttingDown
from actors.kernel import System
from actors.kernel.tasks import Work
from actors.session.pending import copy_error
from actors.telemetry import logger


class HostTask:
    """A task that runs `work` until it ends or the runtime exits.

    An error that `work` raises is logged unless it is an `ActorsError`.
    """

    __slots__ = ("_error", "_is_done", "_name", "_over", "_work")

    def __init__(self, system: System, work: Work, name: str) -> None:
        self._work, self._name = work, name
        self._over, self._is_done = anyio.Event(), False
        self._error: Exception | None = None
        system.launch(self._run_work, self._handle_end, name)

    async def _run_work(self) -> None:
        await self._work()
        self._is_done = True

    def _handle_end(self, error: BaseException | None) -> None:
        """Store the error that the work raised, if any, and wake the callers that wait for its end."""
        # The work may refer to an object that refers to this task; drop it to break the reference cycle.
        del self._work
        if isinstance(error, Exception):
            self._error = copy_error(error)  # a copy, because the error's traceback refers to this task
        if error is not None and not isinstance(error, ActorsError):
            logger.actor_crashed(self._name, error)
        self._over.set()

    @property
    def has_failed(self) -> bool:
        """True if the work raised an error or was cancelled."""
        return self._over.is_set() and not self._is_done

    async def wait(self) -> None:
        """Wait until the work has ended. Unlike `result`, do not raise the work's error."""
        await self._over.wait()

    async def result(self) -> None:
        """Wait until the work has ended. If it raised an error, raise a copy of the error for each caller.

        Raises:
            Exception: Raised by the work.
            ShuttingDown: The work was cancelled before it was done.
        """
        await self._over.wait()
        if self._error is not None:
            raise copy_error(self._error) or self._error
        if not self._is_done:
            raise ShuttingDown(f"{self._name} was cancelled before it was done, because the runtime exited")
