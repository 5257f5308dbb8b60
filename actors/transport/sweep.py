"""Resting connections that the other side has closed: a timer finds them, and closes them on this side too.

Until then each holds a descriptor, here and in the kernel (`CLOSE_WAIT`), and a program that asks nothing for hours
would keep them all. The timer runs only while connections rest.
"""

from collections.abc import Awaitable, Callable

import anyio

from actors.kernel.parking import parking
from actors.kernel.tasks import Tasks

INTERVAL = 5.0
"""Seconds between two looks at the connections that rest."""


class Sweep:
    """The timer.

    Args:
        sweep: Closes what cannot be used again, and says whether any connection still rests.
    """

    def __init__(self, sweep: Callable[[], Awaitable[bool]]) -> None:
        self._sweep = sweep
        self._tasks: Tasks | None = None

    def begin(self) -> None:
        """Note that a connection rests."""
        if self._tasks is None:
            self._tasks = Tasks(parking())
            self._tasks.start(self._run, self._ended, "actors connections", shielded=False)

    async def end(self) -> None:
        """Stop, and wait for it."""
        if (tasks := self._tasks) is not None:
            tasks.cancel()
            await tasks.join()

    async def _run(self) -> None:
        rests = True
        while rests:
            await anyio.sleep(INTERVAL)
            rests = await self._sweep()

    def _ended(self, _error: BaseException | None) -> None:
        self._tasks = None
