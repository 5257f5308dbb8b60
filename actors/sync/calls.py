"""Run asks, calls and streams on the event loop's thread while their callers wait in other threads.

An ask is cancelled if its caller is interrupted. A blocking variant of an async method has the method's signature.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from inspect import signature
from typing import Generic, TypeAlias, TypeVar
from weakref import finalize

from actors.core.stream_events.ask_events import AskResult, CompleteEvent, ErrorEvent
from actors.core.stream_events.events import SessionEvent
from actors.errors import ActorsError
from actors.kernel.loop_thread import LoopThread
from actors.runtime.handle import Session
from actors.session.streams import AskStream

Prepare: TypeAlias = Callable[[], tuple[AskStream, Callable[[], Awaitable[None]]]]
"""A function that returns the stream of an ask, and the async function that submits the ask."""
R = TypeVar("R")
INTERRUPT_TIMEOUT = 5.0
"""Seconds that an interrupted caller waits until the calls of its ask are closed."""


class InterruptibleAsk:
    """An ask on the event loop's thread, which is cancelled if its blocking caller is interrupted.

    Args:
        session: The session of the ask.
        is_shared: True if the ask has a key. Other callers may wait for the ask, so an interrupt does not cancel it.
    """

    def __init__(self, session: Session, *, is_shared: bool = False) -> None:
        self._session, self._is_shared = session, is_shared
        self._stream: AskStream | None = None
        self._is_interrupted = False

    @property
    def has_begun(self) -> bool:
        """True if the ask is in flight or has ended."""
        return self._stream is not None and self._stream.has_begun

    def set_stream(self, stream: AskStream) -> None:
        """Set the ask's stream. The stream reports whether the ask has begun and ended."""
        self._stream = stream

    async def submit(self, prepare: Prepare) -> AskStream:
        """Submit the ask, and return its stream."""
        self._session._check_caller()
        stream, submit = prepare()
        self.set_stream(stream)
        try:
            await submit()
        except BaseException:
            stream.close()
            raise
        return stream

    async def interrupt(self) -> None:
        """Cancel this ask. If the ask is still queued, cancel it as soon as it begins; other asks continue."""
        stream = self._stream
        if stream is not None and not self._is_interrupted and not self._is_shared:
            self._is_interrupted = True
            await stream.wait_begun()
            if not stream.has_ended:
                with suppress(ActorsError):  # the session has ended
                    await self._session.cancel()

    async def outcome(self, prepare: Prepare) -> AskResult:
        """Submit the ask, and return its result when it has ended."""
        return await final_result(await self.submit(prepare))


async def final_result(events: AsyncIterator[SessionEvent]) -> AskResult:
    """Read all events of an ask, and return the result that the last event contains."""
    result: AskResult | None = None
    async for event in events:
        if isinstance(event, CompleteEvent | ErrorEvent):
            result = event.result
    assert result is not None  # if there is no final event, the loop above has raised the error of the stream
    return result


class BlockingCalls:
    """The blocking calls of one runtime: each runs a function on the event loop's thread while its caller waits.

    The runtime and its sessions share this object. When the program has no reference to them any more, the loop stops.
    """

    def __init__(self, loop: LoopThread) -> None:
        self._loop = loop
        # `LoopThread` stops the loop when the main thread ends; exit handlers would run too late
        finalize(self, loop.stop).atexit = False

    def wait(self, function: Callable[[], Awaitable[R]], ask: InterruptibleAsk | None = None) -> R:
        """Run an async function on the loop, and return its result.

        If the caller is interrupted, `ask` is cancelled, or the function if there is no `ask`.
        """
        if ask is None:
            return self._loop.call(function)
        try:
            # An interrupted ask is cancelled through its session, which also closes its calls, so keep it running.
            return self._loop.result(self._loop.start(function), keep_running=True)
        except Exception:
            raise
        except BaseException:  # an interrupt, or an exception that another signal handler raised
            with suppress(ActorsError, TimeoutError):
                cancelling = self._loop.start(ask.interrupt)
                if ask.has_begun:
                    cancelling.result(INTERRUPT_TIMEOUT)
            raise

    def wait_plain(self, function: Callable[[], R]) -> R:
        """Call a plain function on the loop, and return its result."""
        return self.wait(partial(_call_in_coroutine, function))


async def _call_in_coroutine(function: Callable[[], R]) -> R:
    """Call a plain function in a coroutine, because `BlockingCalls.wait` accepts only async functions."""
    return function()


class Steps(Iterator[R], Generic[R]):
    """A blocking iterator over the items of a stream. Each iteration waits for the next item.

    Leaving the loop early does not stop the turn of the ask.
    """

    def __init__(
        self,
        calls: BlockingCalls,
        step: Callable[[], Awaitable[R | None]],
        ask: InterruptibleAsk | None = None,
    ) -> None:
        self._calls, self._step, self._ask = calls, step, ask
        self._is_closed = False

    def __next__(self) -> R:
        if self._is_closed:
            raise StopIteration
        try:
            step = self._calls.wait(self._step, self._ask)
        except BaseException:
            self._is_closed = True
            raise
        if step is None:
            self._is_closed = True
            raise StopIteration
        return step

    def close(self) -> None:
        """End the iteration. The turn continues; to stop the turn, call `BlockingSession.cancel`."""
        self._is_closed = True


def copy_documentation(
    call: Callable[..., object], owner: str, method: Callable[..., object], result: str | None = None
) -> None:
    """Copy the name, the signature and the first line of the docstring of an async method to its blocking variant.

    Args:
        call: The blocking variant.
        owner: The public class of the method, to which the copied docstring refers.
        method: The async method.
        result: The return annotation of the blocking variant; by default, the annotation of the method.
    """
    about = signature(method)
    call.__dict__["__signature__"] = about if result is None else about.replace(return_annotation=result)
    call.__name__, call.__qualname__ = method.__name__, method.__qualname__
    summary = (method.__doc__ or "").partition("\n")[0]
    call.__doc__ = f"{summary}\n\nThe call waits for the result. See `actors.{owner}.{method.__name__}`."
