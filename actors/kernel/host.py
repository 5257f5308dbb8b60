"""The host: the one task that owns what a system starts, and ends it whatever is cancelled.

The task that enters the system asks the host to begin, and to leave. Three things may strike while it leaves: a
cancelled scope of the caller, which is shielded from that; a native cancellation of the caller or of the host, as in a
shutdown that cancels every task and then waits for all; and an interrupt. None of them stops the leaving. A second one
hurries it, and the caller gets it once everything has ended.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from types import TracebackType

import anyio

from actors.kernel.parking import Changes, EventLoop
from actors.kernel.tasks import Tasks

HURRY = 0.2  # seconds that a step of the leaving may take once it is hurried


class SystemHost:
    """Runs `leave` once it is asked to, or once its task is cancelled.

    `room` is open while it runs, in its own task. `leave` ends everything, by `step`s of the host, and says whether the
    room can be left now.
    """

    def __init__(
        self,
        parking: EventLoop,
        room: Callable[[], AbstractAsyncContextManager[None]],
        leave: "Callable[[SystemHost], Awaitable[bool]]",
        context: Context,
    ) -> None:
        self._parking, self._room, self._leave, self._context = parking, room, leave, context
        self._tasks = Tasks(parking)
        self._news = Changes(parking)
        self._block = anyio.CancelScope()
        self._entered_by: object = None
        self._step: anyio.CancelScope | None = None
        self.is_open = self._is_leaving = self._is_hurried = self._is_over = False
        self._failure: BaseException | None = None
        self._interrupt: BaseException | None = None  # that struck while it left

    async def enter(self) -> None:
        """Begin to run. A caller that is cancelled meanwhile has entered nothing."""
        # not shielded, so that it hears of the end of trio's run
        self._tasks.start(self._run, self._ended, "host", self._context.copy(), shielded=False)
        self._entered_by = self._parking.task()
        self._block.__enter__()
        try:
            await self._news.until(lambda: self.is_open or self._is_over)
        except BaseException as error:
            await self.leave(type(error), error, None)
            raise

    async def leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Have everything ended, and return when it has. As `__aexit__`."""
        self._is_leaving = True
        self._news.tell()
        struck: BaseException | None = None
        with anyio.CancelScope(shield=True):
            while not self._is_over:
                try:
                    await self._news.next()
                except GeneratorExit:  # the event loop is gone
                    raise
                except BaseException as raised:  # a native cancellation or an interrupt; scopes are shut out
                    if struck is not None:
                        self._hurry()
                    struck = raised
        is_own = self._parking.task() is self._entered_by  # no other task can leave its scope
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
        """Leave; the system's block then raises this error, which came from outside the actors."""
        if error is None or self._failure is not None or self._is_over:
            return
        if self._is_leaving and isinstance(error, self._parking.cancelled):
            return
        self._failure = error
        self._block.cancel()
        self._is_leaving = True
        self._news.tell()

    def interrupt(self, error: BaseException) -> None:
        """Leave because of an interrupt that struck foreign code; if it leaves already, hurry."""
        if self._is_leaving:
            self._interrupt = error
            self._hurry()
        else:
            self.fail(error)

    async def step(self, work: Callable[[], Awaitable[object]], seconds: float) -> None:
        """Do a part of the leaving in so many seconds, in a task that no cancellation of the host reaches."""
        done: list[BaseException | None] = []

        def ended(error: BaseException | None) -> None:
            done.append(error)
            self._news.tell()

        async def limited() -> None:
            with anyio.move_on_after(HURRY if self._is_hurried else seconds) as self._step:
                await work()

        self._tasks.start(limited, ended, "leaving", self._context.copy())
        with anyio.move_on_after(seconds + HURRY) as limit:  # what shields itself is not waited for
            while not done:
                try:
                    await self._news.next()
                except BaseException as error:
                    if limit.cancel_called or isinstance(error, GeneratorExit):
                        raise
                    self._hurry()  # a native cancellation asks the host to leave, and it is leaving already
        self._step = None
        if done and isinstance(done[0], Exception):
            self.fail(done[0])

    async def _run(self) -> None:
        async with self._room():
            self.is_open = True
            self._news.tell()
            try:
                await self._news.until(lambda: self._is_leaving)
            except self._parking.cancelled:  # the loop is being shut down
                self._is_leaving = True
                self._parking.uncancel()
            with anyio.CancelScope(shield=True):
                is_empty = await self._leave(self)
            if not is_empty:
                self._ended(None)  # nobody waits for what does not end; on trio this task has to

    def _ended(self, error: BaseException | None) -> None:
        self.fail(error)
        self._is_over = True
        self._news.tell()
