"""Import the MCP SDK in a thread when the first server is opened, so that the event loop keeps running.

The import takes about a second. All waiting tasks share one import, even in different event loops. Cancelling a waiting
task does not stop the import, and the next task uses its result. If the import fails, the next task tries again. The
time counts towards the toolset's `opening` timeout.
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
    """Import the modules of this package that import the SDK."""
    import_module("actors.tools.mcp.connection")
    import_module("actors.tools.mcp.transports")  # imports the SDK


class SdkImport:
    """The import of the SDK in this process. `SDK` is the only instance outside tests.

    Args:
        load: Imports the SDK. Called in a separate thread; if it raises, called again when the SDK is next needed.
    """

    def __init__(self, load: Callable[[], None]) -> None:
        self._load = load
        self.reset()

    def reset(self) -> None:
        """Return to the state before the import.

        A forked child process calls this, because the thread of its parent does not exist in the child.
        """
        self._lock = threading.Lock()
        self._is_done = False
        self._waiting: list[Callable[[BaseException | None], None]] = []

    async def ready(self) -> None:
        """Wait until the SDK is imported. If the import fails, raise its exception."""
        if self._is_done:
            return
        here = event_loop()
        waiter: Waiter = here.waiter()

        def notify(error: BaseException | None) -> None:
            here.soon(partial(wake, waiter, copy(error)))

        self._add_waiter(notify)
        if (error := await waiter) is not None:
            raise error

    def _add_waiter(self, notify: Callable[[BaseException | None], None]) -> None:
        """Start the import unless it is running. The import thread calls `notify` when the import has ended."""
        with self._lock:
            self._waiting.append(notify)
            is_first = len(self._waiting) == 1
        if is_first:
            threading.Thread(target=self._run, name="actors mcp import", daemon=True).start()

    def _run(self) -> None:
        """Import the SDK in the thread, and notify the waiting tasks."""
        error: BaseException | None = None
        try:
            self._load()
        except BaseException as raised:  # every waiting task raises a copy of this exception
            error = raised
        with self._lock:
            self._is_done = error is None
            waiting, self._waiting = self._waiting, []
        for notify in waiting:
            try:
                notify(error)
            except RuntimeError:  # the event loop of the waiting task has ended
                continue


SDK = SdkImport(_import_sdk)
reset_after_fork(SDK.reset)


@asynccontextmanager
async def with_sdk(
    open_server: Callable[[], AbstractAsyncContextManager[OpenedTools]],
) -> AsyncGenerator[OpenedTools]:
    """Import the SDK, and then open a server's tools."""
    await SDK.ready()
    async with open_server() as given:
        yield given
