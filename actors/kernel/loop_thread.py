"""Run an event loop in a thread of its own, for callers without a loop or with a busy one.

A call runs on the loop while the caller's thread waits, with the caller's context variables. So it works in scripts
and plain threads, and below a running loop, as in a notebook.

The thread is not a daemon, so the loop ends in order. When the main thread ends, every loop is stopped, and the
interpreter then waits for their threads as for any other. (`atexit` runs only after that wait, which is too late.) So
a loop does not serve other threads after the main one: threads that may still call it cannot be told from threads
that wait for its end.
"""

import os
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import copy_context
from typing import Any, Literal, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskGroup

from actors.errors import KernelError, WrongEventLoop
from actors.kernel.event_loop import event_loop
from actors.kernel.forking import reset_after_fork

R = TypeVar("R")
Backend: TypeAlias = Literal["asyncio", "trio"]
Outcome: TypeAlias = tuple[R, None] | tuple[None, BaseException]

CLOSING = 60.0
"""Seconds for the thread to end: more than a runtime needs to leave."""
ENDING = 0.5
"""Seconds for calls to end by themselves, after the hosted context was left."""


class LoopThread:
    """A thread with an event loop that keeps a context manager open until it is stopped.

    Args:
        hosted: Entered when the thread starts, and left when it stops. An error on entering is raised here.
        backend: The library of the event loop.
        name: The name of the hosted object, for messages.
    """

    def __init__(
        self, hosted: AbstractAsyncContextManager[object], backend: Backend = "asyncio", name: str = "runtime"
    ) -> None:
        self._hosted, self._backend, self._name = hosted, backend, name
        self._process = os.getpid()
        self._soon: Callable[[Callable[[], None]], object] = lambda _function: None
        self._stopped: anyio.Event | None = None
        self._tasks: TaskGroup
        self._entered: Future[None] = Future()
        self._failure: BaseException | None = None
        self._is_stopped = False
        self._calls: set[Future[Any]] | None = set()  # None once the loop has ended
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name=f"actors sync {name}")
        self._thread.start()
        try:
            self._entered.result()
        except BaseException:
            self.stop()
            self._thread.join(CLOSING)  # so that the thread has ended when the caller sees the error
            raise

    def call(self, function: Callable[[], Awaitable[R]]) -> R:
        """Run an async function on the loop and return its result; raise its exception.

        If the caller is interrupted, the call is cancelled and the interrupt propagates at once.

        Raises:
            WrongEventLoop: The caller is on this loop, which would wait for itself, or in a forked process.
            KernelError: The loop has been stopped.
        """
        return self.result(self.start(function))

    def start(self, function: Callable[[], Awaitable[R]]) -> "Future[Outcome[R]]":
        """Start a call, and return a future for `result`. Raises as `call` does."""
        self._check()
        call: Future[Outcome[R]] = Future()
        context = copy_context()
        with self._lock:
            if self._calls is None:
                raise self._closed_error()
            self._calls.add(call)
            self._soon(lambda: context.run(self._begin, function, call))
        return call

    def result(self, call: "Future[Outcome[R]]", *, keep: bool = False) -> R:
        """Wait for a call. With `keep`, the call continues if the caller is interrupted."""
        try:
            value, error = call.result()
        except CancelledError:
            raise self._closed_error() from None
        except BaseException:
            if not keep:
                call.cancel()
            raise
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback refers to this frame
        return value  # type: ignore[return-value]  # None is a value of R here

    def stop(self) -> None:
        """Ask the thread to end soon. May be called in any thread, and from a finalizer."""
        self._is_stopped = True
        with suppress(RuntimeError):  # the loop has ended
            self._soon(self._set_stopped)

    def close(self) -> None:
        """Stop the loop, and wait until the hosted context was left. Repeated calls have no effect.

        Raises the error of leaving, if any; `KernelError` if it takes longer than `CLOSING`.
        """
        if os.getpid() != self._process:
            return  # the thread belongs to the parent process
        if threading.current_thread() is self._thread:
            raise self._own_loop()
        self.stop()
        self._thread.join(CLOSING)
        if self._thread.is_alive():
            raise KernelError(
                f"This {self._name} is not closed after {CLOSING:g} s; call close() again to continue waiting"
            )
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise WrongEventLoop(
                f"This {self._name} belongs to the process from which this one was forked; create a new one here"
            )
        if threading.current_thread() is self._thread:
            raise self._own_loop()
        if self._is_stopped:
            raise self._closed_error()

    def _own_loop(self) -> WrongEventLoop:
        return WrongEventLoop(
            f"A call of this {self._name} from its own event loop would wait for itself; in an async tool or callback "
            "await the async API (ToolContext), or make it a plain function, which runs in another thread"
        )

    def _closed_error(self) -> KernelError:
        return KernelError(f"This {self._name} was closed; create a new one")

    def _set_stopped(self) -> None:
        if self._stopped is not None:
            self._stopped.set()

    def _serve(self) -> None:
        try:
            RUNNING.add(self)
            anyio.run(self._host, backend=self._backend)
        except BaseException as error:  # any exception is raised by the thread that closes
            self._fail(error)
        with self._lock:
            calls, self._calls = self._calls, None
        for call in calls or ():
            call.cancel()
        RUNNING.discard(self)

    async def _host(self) -> None:
        self._soon, self._stopped = event_loop().soon, anyio.Event()
        async with anyio.create_task_group() as self._tasks:
            try:
                async with self._hosted:
                    self._entered.set_result(None)
                    if not self._is_stopped:
                        await self._stopped.wait()
            except Exception as error:
                self._fail(error)
            self._tasks.cancel_scope.deadline = anyio.current_time() + ENDING

    def _fail(self, error: BaseException) -> None:
        if self._entered.done():
            self._failure = error
        else:
            self._entered.set_exception(error)

    def _begin(self, function: Callable[[], Awaitable[R]], call: "Future[Outcome[R]]") -> None:
        """Start the task of a call, in the context of its caller."""
        if (
            sniffio := sys.modules.get("sniffio")
        ) is not None:  # the caller may run below another library's loop
            sniffio.current_async_library_cvar.set(self._backend)
        try:
            self._tasks.start_soon(self._run, function, call)
        except RuntimeError:  # all tasks have ended, and the loop is ending
            self._end(call, None)

    async def _run(self, function: Callable[[], Awaitable[R]], call: "Future[Outcome[R]]") -> None:
        outcome: Outcome[R] | None = None
        try:
            with anyio.CancelScope() as scope:
                call.add_done_callback(lambda call: self._soon(scope.cancel) if call.cancelled() else None)
                outcome = await _outcome(function)
        finally:
            self._end(call, outcome)

    def _end(self, call: "Future[Outcome[R]]", outcome: Outcome[R] | None) -> None:
        """Set the outcome of a call; without an outcome, it was cancelled."""
        with self._lock:
            if self._calls is not None:
                self._calls.discard(call)
        if outcome is None:
            call.cancel()
        elif call.set_running_or_notify_cancel():
            call.set_result(outcome)


async def _outcome(function: Callable[[], Awaitable[R]]) -> Outcome[R]:
    """Run a function. Its error becomes a value, so that an exit exception of host code does not end the loop."""
    try:
        return await function(), None
    except anyio.get_cancelled_exc_class():
        raise
    except BaseException as error:
        return None, error


class RunningLoops:
    """The loops of this process, which are stopped when its main thread ends."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Reset the state in a forked child, which has none of the threads."""
        self._is_over = False
        self._lock = threading.Lock()
        self._loops: set[LoopThread] = set()
        self._watch: threading.Thread | None = None

    @property
    def count(self) -> int:
        """The number of running loops."""
        return len(self._loops)

    def add(self, loop: LoopThread) -> None:
        """Stop a loop when the main thread ends.

        Raises:
            KernelError: The main thread has ended.
            RuntimeError: The watching thread cannot be started.
        """
        with self._lock:
            if self._is_over:
                raise KernelError(
                    "The program's main thread has ended, and its event loops with it; create this object earlier, and "
                    "let the main thread wait (Thread.join)"
                )
            if self._watch is None:
                watch = threading.Thread(target=self._stop_at_exit, name="actors sync exit")
                watch.start()
                self._watch = watch  # only after the start, which may fail
            self._loops.add(loop)

    def discard(self, loop: LoopThread) -> None:
        with self._lock:
            self._loops.discard(loop)

    def _stop_at_exit(self) -> None:
        threading.main_thread().join()
        with self._lock:
            loops, self._is_over = [*self._loops], True
        for loop in loops:
            loop.stop()


RUNNING = RunningLoops()
reset_after_fork(RUNNING.forget)
