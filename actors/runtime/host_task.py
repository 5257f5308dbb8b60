"""Run work in a task of the session host, for deletions, backups and other work that outlives a cancelled caller.

The event loop reports the end of each task, even if the task was cancelled before its first step. The outcome is taken
from that report and not from the work itself, so a caller never waits for work that did not start.
"""

import anyio

from actors.errors import ActorsError, ShuttingDown
from actors.kernel import System
from actors.kernel.tasks import Work
from actors.session.pending import copy_error
from actors.telemetry import logger


class HostTask:
    """Runs `work` until it ends or the runtime has been left. An error that is not an `ActorsError` is logged."""

    __slots__ = ("_error", "_is_done", "_name", "_over", "_work")

    def __init__(self, system: System, work: Work, name: str) -> None:
        self._work, self._name = work, name
        self._over, self._is_done = anyio.Event(), False
        self._error: Exception | None = None
        system.launch(self._run, self._end, name)

    async def _run(self) -> None:
        await self._work()
        self._is_done = True

    def _end(self, error: BaseException | None) -> None:
        del self._work  # it may belong to the owner of this task
        if isinstance(error, Exception):
            self._error = copy_error(error)  # without its traceback, which holds this task
        if error is not None and not isinstance(error, ActorsError):
            logger.actor_crashed(self._name, error)
        self._over.set()

    @property
    def has_failed(self) -> bool:
        """True if the work has ended before it was done."""
        return self._over.is_set() and not self._is_done

    async def wait(self) -> None:
        """Wait for the end of the work, including an end by an exception."""
        await self._over.wait()

    async def result(self) -> None:
        """Wait for the end, and raise the error of the work. Each of several callers raises its own copy.

        Raises:
            Exception: Raised by the work.
            ShuttingDown: The work was cancelled before it was done.
        """
        await self._over.wait()
        if self._error is not None:
            raise copy_error(self._error) or self._error
        if not self._is_done:
            raise ShuttingDown(f"{self._name} was cancelled before it was done: the runtime has been left")
