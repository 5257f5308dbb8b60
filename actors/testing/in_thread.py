"""Run strict servers for programs without an event loop, such as tests and examples of `actors.sync`."""

from collections.abc import Generator
from contextlib import contextmanager

from actors.kernel.loop_thread import LoopThread
from actors.strict.server import LoopbackServer, serve


@contextmanager
def serve_in_thread(*servers: LoopbackServer) -> Generator[tuple[LoopbackServer, ...]]:
    """Run servers in a separate thread during the block, each on a free loopback port; see `serve`."""
    thread = LoopThread(serve(*servers), name="server")
    try:
        yield servers
    finally:
        thread.close()
