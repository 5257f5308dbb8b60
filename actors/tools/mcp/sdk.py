"""The MCP SDK, imported in a thread when the first toolset is opened, so that the event loop goes on meanwhile.

The import takes about a second. All who need it while it goes on share it, whatever their event loops. A task that is
cancelled stops to wait, and the import goes on: the next toolset finds it done. An import that fails is tried again by
the next toolset. A toolset waits for it no longer than for its server (`opening`).
"""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from functools import partial

from actors.kernel.forking import reset_after_fork
from actors.kernel.parking import Waiter, parking, wake
from actors.tools.toolsets.source import Given


def _import_sdk() -> None:
    import actors.tools.mcp.connection
    import actors.tools.mcp.transports  # noqa: F401  # for what they import


class SdkImport:
    """The import of the SDK by this process. `SDK` is the process's own; others are for tests.

    Args:
        load: Imports it. Called in a thread of its own, again if it has raised.
    """

    def __init__(self, load: Callable[[], None]) -> None:
        self._load = load
        self.reset()

    def reset(self) -> None:
        """Forget the thread, as a forked child must, which has none."""
        self._lock = threading.Lock()
        self._is_done = False
        self._waiting: list[Callable[[BaseException | None], None]] = []

    async def ready(self) -> None:
        """Return when the SDK is imported. Raises what the import raised."""
        if self._is_done:
            return
        here = parking()
        waiter: Waiter = here.waiter()

        def notify(error: BaseException | None) -> None:
            here.soon(partial(wake, waiter, copy(error)))

        self._join(notify)
        if (error := await waiter) is not None:
            raise error

    def _join(self, notify: Callable[[BaseException | None], None]) -> None:
        """Have `notify` called when the import has ended, in its thread; begin the import if it does not go on."""
        with self._lock:
            self._waiting.append(notify)
            is_first = len(self._waiting) == 1
        if is_first:
            threading.Thread(target=self._run, name="actors mcp import", daemon=True).start()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._load()
        except BaseException as raised:  # whoever waits raises it
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
async def with_sdk(open_: Callable[[], AbstractAsyncContextManager[Given]]) -> AsyncIterator[Given]:
    """Open a server's tools once the SDK is imported."""
    await SDK.ready()
    async with open_() as given:
        yield given
