"""Prepare a host, move sessions to hosts with fewer sessions, and react to signals that end the program.

Before a host serves, it imports the modules that a turn needs. Otherwise, the first ask of the process would import
them. This takes 0.1 s of CPU time and blocks the event loop, so all sessions that have moved to the new host would
wait.

A router handles the signals that end the program before the server's own handlers do. A server that shuts down first
waits for its open responses, and a stream of events never ends by itself. So the router moves its sessions to other
hosts as soon as the signal arrives, which ends their streams.
"""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from types import FrameType

import anyio

from actors.errors import ActorsError
from actors.kernel.event_loop import event_loop
from actors.runtime.runtime import Runtime

TURN_MODULES = (
    "actors.adapters.codec",
    "actors.provider.configured_credentials",
    "actors.session.session_actor",
    "actors.transport.exchange",
)
"""These modules import all modules that a turn needs, except for the adapter of the wire family."""
REBALANCE_PERIOD = 60.0
"""Default number of seconds between two calls of `Runtime.rebalance`."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""The signals that end a server."""


def import_turn_modules() -> None:
    """Import the modules that a turn needs. Call this function before the runtime of the host is entered."""
    for name in TURN_MODULES:
        import_module(name)


def start_rebalancing(runtime: Runtime, period: float) -> None:
    """Call `Runtime.rebalance` every `period` seconds, until the runtime exits. A draining runtime moves nothing."""
    runtime._running_host().start(partial(_rebalance, runtime, period), "hosts/rebalance")


async def _rebalance(runtime: Runtime, period: float) -> None:
    while True:
        await anyio.sleep(period)
        with suppress(ActorsError):  # the next time may succeed
            await runtime.rebalance()


@contextmanager
def call_at_signals(function: Callable[[], object]) -> Generator[None]:
    """Call a function in the event loop at each signal that ends the program, before the server's own handler.

    Outside of the main thread, where signals cannot be handled, the function is never called.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    soon = event_loop().soon

    def call() -> None:
        function()

    earlier = {number: signal.getsignal(number) for number in SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        soon(call)
        handler = earlier[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)
        elif handler == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    for number in SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            if signal.getsignal(number) is handle:
                signal.signal(number, handler)
