"""Close idle connections that the server has closed, on a timer. `HttpTransport` uses this module.

Until then, each one holds a descriptor in the process and a socket in the kernel (`CLOSE_WAIT`), and a program without
requests for hours would keep them all. The timer runs only while there are idle connections.
"""

from collections.abc import Awaitable, Callable

import anyio

from actors.kernel.event_loop import event_loop
from actors.kernel.tasks import Tasks

INTERVAL = 5.0
"""Seconds between two sweeps."""


class Sweep:
    """The timer that sweeps idle connections.

    Args:
        sweep: Closes unusable idle connections, and returns True if idle connections remain.
    """

    def __init__(self, sweep: Callable[[], Awaitable[bool]]) -> None:
        self._sweep = sweep
        self._tasks: Tasks | None = None

    def begin(self) -> None:
        """Start the timer if it does not run, because a connection has become idle."""
        if self._tasks is None:
            self._tasks = Tasks(event_loop())
            self._tasks.start(self._run, self._on_end, "actors connections", shielded=False)

    async def end(self) -> None:
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
