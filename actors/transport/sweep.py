"""Close idle connections that the server has already closed, on a timer. `HttpTransport` uses this module.

A connection that the server has closed still occupies a descriptor of the process and a socket of the operating system
(in the state `CLOSE_WAIT`) until it is closed here. A program that sends no requests for hours would keep all of these
connections. The timer runs only while there are idle connections.
"""

from collections.abc import Awaitable, Callable

import anyio

from actors.kernel.event_loop import event_loop
from actors.kernel.tasks import Tasks

INTERVAL = 5.0
"""Seconds between two sweeps."""


class Sweep:
    """A timer that regularly closes unusable idle connections.

    Args:
        sweep: Closes unusable idle connections, and returns True if other idle connections remain.
    """

    def __init__(self, sweep: Callable[[], Awaitable[bool]]) -> None:
        self._sweep = sweep
        self._tasks: Tasks | None = None

    def start(self) -> None:
        """Start the timer unless it is running. Called when a connection becomes idle."""
        if self._tasks is None:
            self._tasks = Tasks(event_loop())
            self._tasks.start(self._run, self._on_end, "actors connections", shielded=False)

    async def stop(self) -> None:
        """Stop the timer, and wait until its task has ended."""
        if (tasks := self._tasks) is not None:
            tasks.cancel()
            await tasks.join()

    async def _run(self) -> None:
        has_idle = True
        while has_idle:
            await anyio.sleep(INTERVAL)
            has_idle = await self._sweep()

    def _on_end(self, _error: BaseException | None) -> None:
        self._tasks = None
