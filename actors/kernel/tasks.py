"""Start independent tasks, which cannot affect each other.

The kernel uses them. A task in an anyio task group cancels the group if it fails, or even if it leaves a cancel scope
open, and costs several times as much as a native task of the event loop. These are native tasks. Each has a cancel
scope and reports its end to its starter; together they can be cancelled and awaited.

Only their owner cancels them: on trio, their scopes are shielded from the end of the run, which would otherwise
cancel them while they end in order. Foreign code runs in `actors.kernel.contained` instead.
"""

import contextvars
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeAlias

from actors.kernel.event_loop import Changes, EventLoop, Scope

Work: TypeAlias = Callable[[], Coroutine[Any, Any, object]]  # Any: the event loop's own traps and answers
Ended: TypeAlias = Callable[[BaseException | None], None]


@types.coroutine
def priming_point() -> Generator[None, None, None]:
    """Suspend a coroutine at the point up to which `prime` runs it."""
    yield


def prime(coroutine: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:  # Any: as in `Work`
    """Run a coroutine up to its `priming_point`, which must be its first await.

    asyncio throws a native cancellation that precedes a task's first step into the unstarted coroutine, so that none
    of its `except` and `finally` blocks run. A started coroutine can report its end.
    """
    coroutine.send(None)
    return coroutine


class Tasks:
    """The tasks of one owner. `cancelled`: they were cancelled, and later ones are cancelled when they start."""

    __slots__ = ("_changes", "_loop", "_running", "cancelled")

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._changes = Changes(loop)
        self._running: dict[Scope, object] = {}  # the loop holds only weak references to tasks
        self.cancelled: bool = False

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

        `ended` is called at the end with the exception or None, and must not raise. Cancellation by the scope raises
        nothing. `context` defaults to a copy of the caller's. `shielded`: only the owner cancels the task, not the
        end of trio's run.
        """
        scope = self._loop.scope(shield=shielded)
        if self.cancelled:
            scope.cancel()
        run = prime(self._run(scope, work, ended))
        self._running[scope] = self._loop.spawn(run, name, context or contextvars.copy_context())
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
            await priming_point()
            with scope:
                await work()
        except BaseException as error:  # any exception ends here
            raised = error
        del self._running[scope]
        try:
            ended(raised)
        finally:
            del raised  # its traceback holds this frame
            if not self._running:
                self._changes.tell()
