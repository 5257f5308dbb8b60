"""Start independent tasks, which cannot affect each other.

The kernel uses this module instead of anyio's task groups. A task in a group cancels the group if it fails, or even if
it leaves a cancel scope open. It also costs several times as much as a native task of the event loop, so this module
starts native tasks. Each has a cancel scope and reports its end to its starter. An owner can cancel and await all of
its tasks together.

Only the owner cancels these tasks. On trio, their scopes are shielded from the end of the run, which would otherwise
cancel all of them at once. Foreign code runs in `actors.kernel.contained` instead.
"""

import contextvars
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeAlias

from actors.kernel.event_loop import Changes, EventLoop, Scope

Work: TypeAlias = Callable[[], Coroutine[Any, Any, object]]  # Any: seen by the event loop only
OnEnd: TypeAlias = Callable[[BaseException | None], None]


@types.coroutine
def priming_point() -> Generator[None, None, None]:
    """Suspend a coroutine until its task starts. `prime` runs the coroutine up to this point."""
    yield


def prime(coroutine: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:  # Any: as in `Work`
    """Run a coroutine up to its `priming_point`, which must be its first await, and return the coroutine.

    If asyncio natively cancels a task before its first step, it throws the cancellation into the unstarted coroutine,
    so none of the coroutine's `except` and `finally` blocks run. A primed coroutine is already inside these blocks.
    """
    coroutine.send(None)
    return coroutine


class Tasks:
    """The tasks of one owner. Once `cancelled` is True, a task that starts later is cancelled immediately."""

    __slots__ = ("_changes", "_loop", "_running", "cancelled")

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._changes = Changes(loop)
        self._running: dict[Scope, object] = {}  # asyncio keeps only weak references to tasks
        self.cancelled: bool = False

    def start(
        self,
        work: Work,
        on_end: OnEnd,
        name: str,
        context: contextvars.Context | None = None,
        *,
        shielded: bool = True,
    ) -> Scope:
        """Start `work` in a task, and return the scope that cancels the task.

        When the task ends, `on_end` is called with its exception. It is called with None after a normal end or a
        cancellation by the scope. It must not raise. `context` defaults to a copy of the caller's. If `shielded` is
        True, the end of trio's run does not cancel the task.
        """
        scope = self._loop.scope(shield=shielded)
        if self.cancelled:
            scope.cancel()
        run = prime(self._run(scope, work, on_end))
        self._running[scope] = self._loop.spawn(run, name, context or contextvars.copy_context())
        return scope

    def cancel(self) -> None:
        """Cancel all tasks, and every task that starts later."""
        self.cancelled = True
        for scope in tuple(self._running):
            scope.cancel()

    async def join(self) -> None:
        """Wait until all tasks have ended."""
        await self._changes.wait_until(lambda: not self._running)

    async def _run(self, scope: Scope, work: Work, on_end: OnEnd) -> None:
        raised: BaseException | None = None
        try:
            await priming_point()
            with scope:
                await work()
        except BaseException as error:  # no exception may leave the task
            raised = error
        del self._running[scope]
        try:
            on_end(raised)
        finally:
            del raised  # the traceback of `raised` refers to this frame
            if not self._running:
                self._changes.notify()
