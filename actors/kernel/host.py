"""The host: the task that owns everything a system starts, and ends it in spite of cancellations.

The task that enters the system asks the host to start, and to leave. Leaving may be interrupted by a cancelled scope
of the caller, against which it is shielded; by a native cancellation of the caller or the host, as in a shutdown that
cancels every task and awaits all; and by an interrupt. None of these stops the leaving. A second one hurries it, and
is raised in the caller after everything has ended.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from types import TracebackType

import anyio

from actors.kernel.event_loop import Changes, EventLoop
from actors.kernel.tasks import Tasks

HURRY = 0.2  # seconds for a step of the leaving after it was hurried


class SystemHost:
    """Runs `leave` when asked to, or when its task is cancelled.

    `room` is open while the host runs, in its own task. `leave` ends everything in `step`s, and returns True if the
    room can be left.
    """

    is_open: bool

    def __init__(
        self,
        loop: EventLoop,
        room: Callable[[], AbstractAsyncContextManager[None]],
        leave: "Callable[[SystemHost], Awaitable[bool]]",
        context: Context,
    ) -> None:
        self._loop, self._room, self._leave, self._context = loop, room, leave, context
        self._tasks = Tasks(loop)
        self._news = Changes(loop)
        self._block = anyio.CancelScope()
        self._entered_by: object = None
        self._step: anyio.CancelScope | None = None
        self.is_open = self._is_leaving = self._is_hurried = self._is_over = False
        self._failure: BaseException | None = None
        self._interrupt: BaseException | None = None  # an interrupt during the leaving

    async def enter(self) -> None:
        """Start the host. If the caller is cancelled in the meantime, nothing stays entered."""
        # not shielded, so that it learns of the end of trio's run
        self._tasks.start(self._run, self._on_end, "host", self._context.copy(), shielded=False)
        self._entered_by = self._loop.task()
        self._block.__enter__()
        try:
            await self._news.until(lambda: self.is_open or self._is_over)
        except BaseException as error:
            await self.leave(type(error), error, None)
            raise

    async def leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """End everything, and return afterwards. Arguments and result as in `__aexit__`."""
        self._is_leaving = True
        self._news.tell()
        struck: BaseException | None = None
        with anyio.CancelScope(shield=True):
            while not self._is_over:
                try:
                    await self._news.next()
                except GeneratorExit:  # the event loop is gone
                    raise
                except BaseException as raised:  # a native cancellation or an interrupt; scopes are shielded
                    if struck is not None:
                        self._hurry()
                    struck = raised
        is_own = self._loop.task() is self._entered_by  # no other task can leave its scope
        swallowed = self._block.__exit__(kind, error, trace) if is_own else None
        if self._failure is not None:
            raise self._failure
        if struck is not None:
            raise struck
        if self._interrupt is not None and error is None:
            raise self._interrupt
        return swallowed

    def _hurry(self) -> None:
        self._is_hurried = True
        if self._step is not None:
            self._step.deadline = min(self._step.deadline, anyio.current_time() + HURRY)

    def fail(self, error: BaseException | None) -> None:
        """Leave. The system's block then raises this error, which came from outside the actors."""
        if error is None or self._failure is not None or self._is_over:
            return
        if self._is_leaving and isinstance(error, self._loop.cancelled):
            return
        self._failure = error
        self._block.cancel()
        self._is_leaving = True
        self._news.tell()

    def interrupt(self, error: BaseException) -> None:
        """Leave because of an interrupt in foreign code; hurry if already leaving."""
        if self._is_leaving:
            self._interrupt = error
            self._hurry()
        else:
            self.fail(error)

    async def step(self, work: Callable[[], Awaitable[object]], seconds: float) -> None:
        """Do a part of the leaving within a time limit, in a task that cancellations of the host do not reach."""
        done: list[BaseException | None] = []

        def on_end(error: BaseException | None) -> None:
            done.append(error)
            self._news.tell()

        async def work_within_limit() -> None:
            with anyio.move_on_after(HURRY if self._is_hurried else seconds) as self._step:
                await work()

        self._tasks.start(work_within_limit, on_end, "leaving", self._context.copy())
        with anyio.move_on_after(seconds + HURRY) as limit:  # work that shields itself is not awaited
            while not done:
                try:
                    await self._news.next()
                except BaseException as error:
                    if limit.cancel_called or isinstance(error, GeneratorExit):
                        raise
                    self._hurry()  # a native cancellation asks the host to leave, which it already does
        self._step = None
        if done and isinstance(done[0], Exception):
            self.fail(done[0])

    async def _run(self) -> None:
        async with self._room():
            self.is_open = True
            self._news.tell()
            try:
                await self._news.until(lambda: self._is_leaving)
            except self._loop.cancelled:  # the loop is shutting down
                self._is_leaving = True
                self._loop.uncancel()
            is_empty = False
            with anyio.CancelScope(shield=True):
                is_empty = await self._leave(self)
            if not is_empty:
                self._on_end(None)  # remaining pieces are not awaited here; on trio, this task waits for them

    def _on_end(self, error: BaseException | None) -> None:
        self.fail(error)
        self._is_over = True
        self._news.tell()
