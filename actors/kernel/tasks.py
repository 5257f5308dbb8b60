"""Tasks that stand alone: what one of them does reaches no other.

A task of the portable layer's groups takes its group down if it fails, or if it merely leaves a cancel scope open,
and costs several times what the event loop asks for one. These are the loop's own tasks. Each has a cancel scope,
and says to whoever started it how it ended; together they can be cancelled and waited for.
"""

import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import anyio

from actors.kernel.parking import Parking, Waiter

Work: TypeAlias = Callable[[], Coroutine[Any, Any, object]]  # Any: the event loop's own traps and answers


class Tasks:
    """The tasks of one owner.

    `cancelled`: they were told to end, and so is each that is started from then on.
    """

    __slots__ = ("_gone", "_parking", "_running", "cancelled")

    def __init__(self, parking: Parking) -> None:
        self._parking = parking
        self._running: dict[anyio.CancelScope, object] = {}  # the loop itself holds a task only weakly
        self._gone: Waiter | None = None
        self.cancelled = False

    def start(
        self,
        work: Work,
        ended: Callable[[BaseException | None], None],
        name: str,
        context: contextvars.Context | None = None,
    ) -> anyio.CancelScope:
        """Start `work` in a task, and return the scope that cancels it.

        Args:
            work: What to do.
            ended: Called at the end with what was raised, or None; being cancelled by the scope raises nothing.
                It must not raise.
            name: Shown by debuggers.
            context: What it runs in; a copy of the caller's if not given.
        """
        scope = anyio.CancelScope()
        if self.cancelled:
            scope.cancel()
        run = self._run(scope, work, ended)
        self._running[scope] = self._parking.spawn(run, name, context or contextvars.copy_context())
        return scope

    def cancel(self) -> None:
        """Cancel all of them."""
        self.cancelled = True
        for scope in tuple(self._running):
            scope.cancel()

    async def join(self) -> None:
        """Wait until all of them have ended, whatever cancels the caller meanwhile."""
        cancelled: BaseException | None = None
        with anyio.CancelScope(shield=True):
            while self._running:
                self._gone = self._parking.waiter()
                try:
                    await self._gone
                except self._parking.cancelled as error:  # natively: no scope shields from that
                    cancelled = error
        if cancelled is not None:
            raise cancelled

    async def _run(
        self, scope: anyio.CancelScope, work: Work, ended: Callable[[BaseException | None], None]
    ) -> None:
        raised: BaseException | None = None
        try:
            with scope:
                await work()
        except BaseException as error:  # it ends here, whatever it is
            raised = error
        del self._running[scope]
        try:
            ended(raised)
        finally:
            del raised  # its traceback holds this frame
            if not self._running and self._gone is not None and not self._gone.done():
                self._gone.set_result(None)
