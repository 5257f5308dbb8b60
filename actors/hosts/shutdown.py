"""Notify a program of the signals that end it, in addition to the server's own handlers.

A server first waits for its open responses, and a stream of events never ends by itself. So a router must move its
sessions as soon as the signal arrives, which ends their streams.
"""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from actors.kernel.event_loop import event_loop

SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""The signals that end a server."""


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
