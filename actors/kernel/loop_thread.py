"""Run an event loop in a separate thread, for synchronous callers.

`actors.sync` uses this. A call runs on that loop, with the context variables of the caller, while the caller's thread
waits. So calls work in scripts, in plain threads, and inside a running event loop, as in a notebook.

The thread is not a daemon, so that the loop can shut down in order. When the main thread ends, every loop is stopped,
and the interpreter waits for the loops' threads. (`atexit` callbacks run only after that wait, which is too late.) The
loops are stopped even if other threads still use them, because a thread that uses a loop cannot be distinguished from a
thread that waits for the loop to end.
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
from actors.kernel.event_loop import event_loop, reset_after_fork

R = TypeVar("R")
Backend: TypeAlias = Literal["asyncio", "trio"]
Outcome: TypeAlias = tuple[R, None] | tuple[None, BaseException]

CLOSE_TIMEOUT = 60.0
"""Maximum seconds that `close` waits for the thread to end. A runtime needs less to close."""
CALL_GRACE = 0.5
"""Seconds for running calls to end by themselves after the hosted context has exited. Later, they are cancelled."""


class LoopThread:
    """A thread with an event loop that keeps a context manager open until the thread is stopped.

    Args:
        hosted: The context manager, which is entered when the thread starts and exited when the thread stops. If
            entering fails, the constructor raises the error.
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
        self._thread = threading.Thread(target=self._run_thread, name=f"actors sync {name}")
        self._thread.start()
        try:
            self._entered.result()
        except BaseException:
            self.stop()
            self._thread.join(CLOSE_TIMEOUT)  # so that the thread has ended when the caller sees the error
            raise

    def call(self, function: Callable[[], Awaitable[R]]) -> R:
        """Run an async function on the loop, and return its result or raise its exception.

        If the caller is interrupted, the call is cancelled and the interrupt propagates immediately.

        Raises:
            WrongEventLoop: The caller is the loop's own thread, which would wait for itself, or a forked process.
            KernelError: The loop has been stopped.
        """
        return self.result(self.start(function))

    def start(self, function: Callable[[], Awaitable[R]]) -> "Future[Outcome[R]]":
        """Start a call without waiting for it. Pass the returned future to `result`.

        Raises the same errors as `call`.
        """
        self._check_caller()
        call: Future[Outcome[R]] = Future()
        context = copy_context()
        with self._lock:  # the end of the loop cancels all registered calls, so none may be added later
            if self._calls is None:
                raise self._closed_error()
            self._calls.add(call)
            self._soon(lambda: context.run(self._start_call, function, call))
        return call

    def result(self, call: "Future[Outcome[R]]", *, keep_running: bool = False) -> R:
        """Wait for a call, and return its result or raise its exception.

        If the caller is interrupted, the call is cancelled, unless `keep_running` is True.
        """
        try:
            value, error = call.result()
        except CancelledError:
            raise self._closed_error() from None
        except BaseException:
            if not keep_running:
                call.cancel()
            raise
        if error is not None:
            try:
                raise error
            finally:
                del error  # the error's traceback refers to this frame
        return value  # type: ignore[return-value]  # without an error, `value` is of type R even if it is None

    def stop(self) -> None:
        """Ask the thread to end, without waiting. May be called in any thread, and from a finalizer."""
        self._is_stopped = True
        with suppress(RuntimeError):  # the loop has ended
            self._soon(self._set_stopped)

    def close(self) -> None:
        """Stop the loop, and wait until the hosted context has exited. Repeated calls have no effect.

        If exiting the context fails, the first call of `close` raises the error. If the exit takes longer than
        `CLOSE_TIMEOUT` seconds, `close` raises `KernelError`.
        """
        if os.getpid() != self._process:
            return  # the thread belongs to the parent process
        if threading.current_thread() is self._thread:
            raise self._own_loop_error()
        self.stop()
        self._thread.join(CLOSE_TIMEOUT)
        if self._thread.is_alive():
            raise KernelError(
                f"This {self._name} has not closed within {CLOSE_TIMEOUT:g} s; call close() again to continue waiting"
            )
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _check_caller(self) -> None:
        """Raise an error in a forked process, on the loop's own thread, or after the loop was stopped."""
        if os.getpid() != self._process:
            raise WrongEventLoop(
                f"This {self._name} belongs to the parent of this forked process; create a new one in this process"
            )
        if threading.current_thread() is self._thread:
            raise self._own_loop_error()
        if self._is_stopped:
            raise self._closed_error()

    def _own_loop_error(self) -> WrongEventLoop:
        return WrongEventLoop(
            f"A call of this {self._name} from its own event loop would wait for itself; in an async tool or callback, "
            "await the async API (ToolContext), or make the tool a plain function, which runs in another thread"
        )

    def _closed_error(self) -> KernelError:
        return KernelError(f"This {self._name} was closed; create a new one")

    def _set_stopped(self) -> None:
        if self._stopped is not None:
            self._stopped.set()

    def _run_thread(self) -> None:
        try:
            RUNNING.add(self)
            anyio.run(self._run_hosted, backend=self._backend)
        except BaseException as error:  # the constructor or `close` raises it again, in its caller's thread
            self._report_error(error)
        with self._lock:
            calls, self._calls = self._calls, None
        for call in calls or ():
            call.cancel()
        RUNNING.discard(self)

    async def _run_hosted(self) -> None:
        self._soon, self._stopped = event_loop().soon, anyio.Event()
        async with anyio.create_task_group() as self._tasks:
            try:
                async with self._hosted:
                    self._entered.set_result(None)
                    if not self._is_stopped:
                        await self._stopped.wait()
            except Exception as error:
                self._report_error(error)
            self._tasks.cancel_scope.deadline = anyio.current_time() + CALL_GRACE

    def _report_error(self, error: BaseException) -> None:
        """Store `error`, so that another thread raises it.

        The constructor raises it, or `close` if the hosted context was already entered.
        """
        if self._entered.done():
            self._failure = error
        else:
            self._entered.set_exception(error)

    def _start_call(self, function: Callable[[], Awaitable[R]], call: "Future[Outcome[R]]") -> None:
        """Start the task of a call, in the context variables of its caller."""
        # the caller may run in another library's event loop, and its context variables would name that library
        if (sniffio := sys.modules.get("sniffio")) is not None:
            sniffio.current_async_library_cvar.set(self._backend)
        try:
            self._tasks.start_soon(self._run_call, function, call)
        except RuntimeError:  # all tasks have ended, and the loop is ending
            self._finish_call(call, None)

    async def _run_call(self, function: Callable[[], Awaitable[R]], call: "Future[Outcome[R]]") -> None:
        outcome: Outcome[R] | None = None
        try:
            with anyio.CancelScope() as scope:
                call.add_done_callback(lambda call: self._soon(scope.cancel) if call.cancelled() else None)
                outcome = await _outcome_of(function)
        finally:
            self._finish_call(call, outcome)

    def _finish_call(self, call: "Future[Outcome[R]]", outcome: Outcome[R] | None) -> None:
        """Set the outcome of a call. None means that the call was cancelled."""
        with self._lock:
            if self._calls is not None:
                self._calls.discard(call)
        if outcome is None:
            call.cancel()
        elif call.set_running_or_notify_cancel():
            call.set_result(outcome)


async def _outcome_of(function: Callable[[], Awaitable[R]]) -> Outcome[R]:
    """Run an async function, and return its result or its error as a value.

    An exit exception of host code is also returned, because it would end the event loop if it were raised here.
    """
    try:
        return await function(), None
    except anyio.get_cancelled_exc_class():
        raise
    except BaseException as error:
        return None, error


class RunningLoops:
    """The loop threads of this process, which are stopped when its main thread ends."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all loops. A forked child process calls this, because the loops' threads do not exist there."""
        self._is_over = False
        self._lock = threading.Lock()
        self._loops: set[LoopThread] = set()
        self._watch: threading.Thread | None = None

    @property
    def count(self) -> int:
        """Number of loop threads that have not ended."""
        return len(self._loops)

    def add(self, loop: LoopThread) -> None:
        """Register a loop, to stop it when the main thread ends.

        Raises:
            KernelError: The main thread has ended.
            RuntimeError: The thread that watches the main thread cannot be started.
        """
        with self._lock:
            if self._is_over:
                raise KernelError(
                    "The program's main thread has ended, which stopped its event loops; create this object earlier, "
                    "and let the main thread wait for this one (Thread.join)"
                )
            if self._watch is None:
                watch = threading.Thread(target=self._stop_at_exit, name="actors sync exit")
                watch.start()
                self._watch = watch  # set only after the start, because the start may fail
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
reset_after_fork(RUNNING.reset)
