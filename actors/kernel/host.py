"""Run the host of a system: a task that owns everything that the system starts, and ends it even if it is cancelled.

The task that enters the system asks the host to start, and later to shut down. No interruption stops the shutdown:

- A cancelled scope of the caller does not reach the shutdown, which is shielded.
- A native cancellation of the caller, or an interrupt, is raised in the caller after everything has ended. A second one
  shortens the remaining steps.
- A native cancellation of the host, as when a program cancels every task, starts the shutdown. During the shutdown, it
  shortens the remaining steps.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from types import TracebackType

import anyio

from actors.kernel.event_loop import Changes, EventLoop
from actors.kernel.tasks import Tasks

HURRY = 0.2  # seconds for each step of the shutdown after a second interruption


class SystemHost:
    """A task that owns a system. When it is asked to shut down or is cancelled, it calls `end_everything`.

    Args:
        loop: The event loop of the system.
        open_context: Returns a context manager. The host enters it, and exits it when the system has ended.
        end_everything: Ends everything that the system started, with calls of `run_step`. Returns False if foreign code
            is still running.
        context: Context variables of the host.
    """

    is_open: bool

    def __init__(
        self,
        loop: EventLoop,
        open_context: Callable[[], AbstractAsyncContextManager[None]],
        end_everything: "Callable[[SystemHost], Awaitable[bool]]",
        context: Context,
    ) -> None:
        self._loop, self._open_context, self._end_everything, self._context = (
            loop,
            open_context,
            end_everything,
            context,
        )
        self._tasks = Tasks(loop)
        self._changes = Changes(loop)
        self._block = anyio.CancelScope()
        self._entered_by: object = None
        self._step: anyio.CancelScope | None = None
        self.is_open = self._is_leaving = self._is_hurried = self._is_over = False
        self._failure: BaseException | None = None
        self._interrupt: BaseException | None = None  # an interrupt during the shutdown

    async def start(self) -> None:
        """Start the host. If the caller is cancelled meanwhile, the host is stopped again."""
        # not shielded, so that the end of trio's run cancels the host
        self._tasks.start(self._run, self._on_end, "host", self._context.copy(), shielded=False)
        self._entered_by = self._loop.task()
        self._block.__enter__()
        try:
            await self._changes.wait_until(lambda: self.is_open or self._is_over)
        except BaseException as error:
            await self.shut_down(type(error), error, None)
            raise

    async def shut_down(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Ask the host to end everything, and wait until everything has ended.

        This takes the arguments of `__aexit__` and returns its result.
        """
        self._is_leaving = True
        self._changes.notify()
        struck: BaseException | None = None
        with anyio.CancelScope(shield=True):
            while not self._is_over:
                try:
                    await self._changes.wait_for_change()
                except GeneratorExit:  # the event loop is gone
                    raise
                except (
                    BaseException
                ) as raised:  # a native cancellation or an interrupt; cancelled scopes do not reach this
                    if struck is not None:
                        self._shorten_steps()
                    struck = raised
        is_own = self._loop.task() is self._entered_by  # only the task that entered a scope can exit it
        swallowed = self._block.__exit__(kind, error, trace) if is_own else None
        if self._failure is not None:
            raise self._failure
        if struck is not None:
            raise struck
        if self._interrupt is not None and error is None:
            raise self._interrupt
        return swallowed

    def _shorten_steps(self) -> None:
        """Shorten the current step and all later steps to `HURRY` seconds."""
        self._is_hurried = True
        if self._step is not None:
            self._step.deadline = min(self._step.deadline, anyio.current_time() + HURRY)

    def fail(self, error: BaseException | None) -> None:
        """End the system because of `error`, which no actor caused. The `async with` block of the system raises it.

        If `error` is None, nothing happens.
        """
        if error is None or self._failure is not None or self._is_over:
            return
        if self._is_leaving and isinstance(error, self._loop.cancelled):
            return
        self._failure = error
        self._block.cancel()
        self._is_leaving = True
        self._changes.notify()

    def interrupt(self, error: BaseException) -> None:
        """End the system after an interrupt in foreign code. If it is already ending, shorten the remaining steps."""
        if self._is_leaving:
            self._interrupt = error
            self._shorten_steps()
        else:
            self.fail(error)

    async def run_step(self, work: Callable[[], Awaitable[object]], seconds: float) -> None:
        """Run one step of the shutdown for at most `seconds`. Cancellations of the host do not reach the step."""
        done: list[BaseException | None] = []

        def on_end(error: BaseException | None) -> None:
            done.append(error)
            self._changes.notify()

        async def work_within_limit() -> None:
            with anyio.move_on_after(HURRY if self._is_hurried else seconds) as self._step:
                await work()

        self._tasks.start(work_within_limit, on_end, "leaving", self._context.copy())
        with anyio.move_on_after(seconds + HURRY) as limit:  # do not wait for work that shields itself
            while not done:
                try:
                    await self._changes.wait_for_change()
                except BaseException as error:
                    if limit.cancel_called or isinstance(error, GeneratorExit):
                        raise
                    self._shorten_steps()  # a native cancellation of the host during the shutdown
        self._step = None
        if done and isinstance(done[0], Exception):
            self.fail(done[0])

    async def _run(self) -> None:
        async with self._open_context():
            self.is_open = True
            self._changes.notify()
            try:
                await self._changes.wait_until(lambda: self._is_leaving)
            except self._loop.cancelled:  # the loop is shutting down
                self._is_leaving = True
                self._loop.uncancel()
            is_empty = False
            with anyio.CancelScope(shield=True):
                is_empty = await self._end_everything(self)
            if not is_empty:
                # let the caller continue; on trio, exiting the context waits for the remaining foreign code
                self._on_end(None)

    def _on_end(self, error: BaseException | None) -> None:
        self.fail(error)
        self._is_over = True
        self._changes.notify()
