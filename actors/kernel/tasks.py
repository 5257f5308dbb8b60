"""Tasks that stand alone: what one of them does reaches no other.

A task in one of anyio's groups takes the group down if it fails, or if it merely leaves a cancel scope open, and costs
several times as much as one of the event loop's own. These are the loop's own. Each has a cancel scope, and tells its
starter how it ended; together they can be cancelled and waited for.

They are ours alone to cancel: on trio their scopes are shielded from the end of the run, which would otherwise cancel
them while they end in order. For code that is not ours there is `actors.kernel.contained`.
"""

import contextvars
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeAlias

from actors.kernel.parking import Changes, EventLoop, Scope

Work: TypeAlias = Callable[[], Coroutine[Any, Any, object]]  # Any: the event loop's own traps and answers
Ended: TypeAlias = Callable[[BaseException | None], None]


@types.coroutine
def begun() -> Generator[None, None, None]:
    """Mark the place up to which `primed` runs a coroutine."""
    yield


def primed(coroutine: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:  # Any: as in `Work`
    """Run a coroutine up to its `begun`, which must be what it awaits first.

    asyncio throws a native cancellation that comes before a task's first step into a coroutine that has not begun, so
    that none of it runs, neither `except` nor `finally`. One that has begun can say that it ended.
    """
    coroutine.send(None)
    return coroutine


class Tasks:
    """The tasks of one owner. `cancelled`: they were told to end, and so is each that is started from then on."""

    __slots__ = ("_changes", "_parking", "_running", "cancelled")

    def __init__(self, parking: EventLoop) -> None:
        self._parking = parking
        self._changes = Changes(parking)
        self._running: dict[Scope, object] = {}  # the loop itself holds a task only weakly
        self.cancelled = False

    def start(
        self,
        work: Work,
        ended: Ended,
        name: str,
        context: contextvars.Context | None = None,
        *,
        shielded: bool = True,
    ) -> Scope:
        """Start `work` in a task, and return the scope that cancels it.

        `ended` is called at the end with what was raised, or None, and must not raise; being cancelled by the scope
        raises nothing. `context` is a copy of the caller's if not given. `shielded`: only their owner cancels it, and
        not the end of trio's run.
        """
        scope = self._parking.scope(shield=shielded)
        if self.cancelled:
            scope.cancel()
        run = primed(self._run(scope, work, ended))
        self._running[scope] = self._parking.spawn(run, name, context or contextvars.copy_context())
        return scope

    def cancel(self) -> None:
        self.cancelled = True
        for scope in tuple(self._running):
            scope.cancel()

    async def join(self) -> None:
        await self._changes.until(lambda: not self._running)

    async def _run(self, scope: Scope, work: Work, ended: Ended) -> None:
        raised: BaseException | None = None
        try:
            await begun()
            with scope:
                await work()
        except BaseException as error:  # it ends here, whatever it is
            raised = error
        del self._running[scope]
        try:
            ended(raised)
        finally:
            del raised  # its traceback holds this frame
            if not self._running:
                self._changes.tell()
