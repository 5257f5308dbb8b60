"""Run functions on the event loop's thread while their callers wait in other threads."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar
from weakref import finalize

from actors.errors import ActorsError
from actors.kernel.loop_thread import LoopThread
from actors.sync.ask import InterruptibleAsk

R = TypeVar("R")

INTERRUPT_TIMEOUT = 5.0
"""Seconds that an interrupted caller waits until the calls of its ask are closed."""


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

        An interrupt of the caller cancels `ask`. If there is no `ask`, it cancels the function.
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
