"""Call the program's callbacks, and log the exceptions that they raise."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from actors.kernel.host_code import Listener
from actors.telemetry import logger

T = TypeVar("T")


def create_listener(name: str) -> Listener:
    """Return an object that calls callbacks until one of them raises.

    `name` is the name of the callbacks in the log.
    """
    return Listener(partial(logger.host_code_failed, name, consequence="switched off"))


def guard_callback(name: str, callback: Callable[[T], object]) -> Callable[[T], object]:
    """Wrap one of the program's callbacks so that it never raises, and is disabled after its first exception."""
    safe = create_listener(name)
    return lambda event: safe.call(lambda: callback(event))
