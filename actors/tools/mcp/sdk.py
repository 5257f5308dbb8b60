"""Import the MCP SDK in a thread when the first toolset is opened, so that the event loop keeps running.

The import takes about a second. All tasks that need it share it, in every event loop. Cancelling a waiting task does
not stop the import: the next toolset uses its result. After a failed import, the next toolset tries again. The wait
counts towards the toolset's `opening` timeout.
"""

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from functools import partial
from importlib import import_module

from actors.kernel.event_loop import Waiter, event_loop, wake
from actors.kernel.forking import reset_after_fork
from actors.tools.toolsets.source import OpenedTools


def _import_sdk() -> None:
    import_module("actors.tools.mcp.connection")
    import_module("actors.tools.mcp.transports")  # imports the SDK


class SdkImport:
    """The import of the SDK in this process. `SDK` is the process's instance; tests create others.

    Args:
        load: Imports the SDK. Called in a separate thread, and again after it has raised.
    """

    def __init__(self, load: Callable[[], None]) -> None:
        self._load = load
        self.reset()

    def reset(self) -> None:
        """Forget the thread, as a forked child must, because threads do not survive a fork."""
        self._lock = threading.Lock()
        self._is_done = False
        self._waiting: list[Callable[[BaseException | None], None]] = []

    async def ready(self) -> None:
        """Return when the SDK is imported. Raises the exception of the import."""
        if self._is_done:
            return
        here = event_loop()
        waiter: Waiter = here.waiter()

        def notify(error: BaseException | None) -> None:
            here.soon(partial(wake, waiter, copy(error)))

        self._join(notify)
        if (error := await waiter) is not None:
            raise error

    def _join(self, notify: Callable[[BaseException | None], None]) -> None:
        """Call `notify` in the import's thread when the import has ended; start the import unless it is running."""
        with self._lock:
            self._waiting.append(notify)
            is_first = len(self._waiting) == 1
        if is_first:
            threading.Thread(target=self._run, name="actors mcp import", daemon=True).start()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._load()
        except BaseException as raised:  # re-raised in the waiting tasks
            error = raised
        with self._lock:
            self._is_done = error is None
            waiting, self._waiting = self._waiting, []
        for notify in waiting:
            try:
                notify(error)
            except RuntimeError:  # its loop has ended
                continue


SDK = SdkImport(_import_sdk)
reset_after_fork(SDK.reset)


@asynccontextmanager
async def with_sdk(
    open_: Callable[[], AbstractAsyncContextManager[OpenedTools]],
) -> AsyncGenerator[OpenedTools]:
    """Open a server's tools after the SDK is imported."""
    await SDK.ready()
    async with open_() as given:
        yield given
