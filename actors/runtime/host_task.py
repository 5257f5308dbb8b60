"""A task of a session host, and how it ended: used for deletions, backups and other work that no caller takes back.

The event loop ends each task, and reports that end even if the task was cancelled before its first step. So the outcome
is taken from that report and not from the work itself, and a caller never waits for work that did not begin.
"""

import anyio

from actors import telemetry
from actors.errors import ActorsError, Draining
from actors.kernel import System
from actors.kernel.tasks import Work


class HostTask:
    """Runs `work` until it ends or the runtime has been left. An error that is not an `ActorsError` is logged."""

    __slots__ = ("_errors", "_is_done", "_name", "_over", "_work")

    def __init__(self, system: System, work: Work, name: str) -> None:
        self._work, self._name = work, name
        self._over, self._errors, self._is_done = anyio.Event(), list[BaseException](), False
        system.launch(self._run, self._end, name)

    async def _run(self) -> None:
        await self._work()
        self._is_done = True

    def _end(self, error: BaseException | None) -> None:
        if error is not None:
            self._errors.append(error)
            if not isinstance(error, ActorsError):
                telemetry.crashed(self._name, error)
        self._over.set()

    async def ended(self) -> None:
        """Wait for the end, however the work ended."""
        await self._over.wait()

    async def result(self) -> None:
        """Wait for the end, and raise what the work raised.

        Raises:
            Exception: Raised by the work.
            Draining: The work was cancelled before it was done.
        """
        await self._over.wait()
        error = self._errors.pop() if self._errors else None
        try:
            if isinstance(error, Exception):
                raise error
            if not self._is_done:
                raise Draining(
                    f"{self._name} was cancelled before it was done: the runtime has been left"
                ) from error
        finally:
            del error  # its traceback holds this frame
