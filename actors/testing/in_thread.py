"""Strict servers for programs without an event loop: tests and examples of `actors.sync`."""

from collections.abc import Iterator
from contextlib import contextmanager

from actors.kernel.loop_thread import LoopThread
from actors.strict.server import LoopbackServer, serve


@contextmanager
def serve_in_thread(*servers: LoopbackServer) -> Iterator[tuple[LoopbackServer, ...]]:
    """Run servers on free loopback ports for the time of the block, as `serve` does, in a thread of their own."""
    thread = LoopThread(serve(*servers), name="server")
    try:
        yield servers
    finally:
        thread.close()
