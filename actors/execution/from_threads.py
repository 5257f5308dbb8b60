"""A tool's thread may have the event loop run something, with `anyio.from_thread` or `trio.from_thread`.

Both look in the thread for the loop that it belongs to, and only their own worker threads say so. Ours are threads of
their own, which no loop waits for, so they say it in the same place. Neither library has a public name for that.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from anyio._core._eventloop import claim_worker_thread
from anyio.lowlevel import EventLoopToken, current_token

Belonging = Callable[[], AbstractContextManager[None]]


def belonging() -> Belonging:
    """Return a context in which a thread belongs to the event loop that runs here."""
    return partial(_belongs, current_token())


@contextmanager
def _belongs(token: EventLoopToken) -> Iterator[None]:
    with claim_worker_thread(token.backend_class, token.native_token), _trios(token.native_token):
        yield


@contextmanager
def _trios(token: object) -> Iterator[None]:
    """Say so to trio, if the loop is trio's. What is run then is a task of its own, and no part of the tool's."""
    trio = sys.modules.get("trio")
    if trio is None or not isinstance(token, trio.lowlevel.TrioToken):
        yield
        return
    told = trio._threads.PARENT_TASK_DATA
    told.token, told.abandon_on_cancel = token, True
    try:
        yield
    finally:
        del told.token, told.abandon_on_cancel
