"""Serve an application at an address of this process, in addition to the address that several processes share.

The worker processes of one server share a port, so another process cannot address one of them. Each worker needs a
port of its own. A container with an address of its own needs no additional listener.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

from uvicorn import Config, Server

from actors.hosts.asgi import ASGIApp

BACKLOG = 2048
"""Maximum number of connections that wait to be accepted."""


class _Listener(Server):
    """A uvicorn server that leaves the signals to the program's main server."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.is_listening = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle no signals."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets)
        self.is_listening.set()


@asynccontextmanager
async def listen(
    app: ASGIApp, *, host: str = "127.0.0.1", port: int = 0, root_path: str = "", timeout: float = 5.0
) -> AsyncGenerator[str]:
    """Serve an application with uvicorn during the block, and return its URL for `Runtime(address=...)`.

    The listener runs on asyncio. It does not handle signals and does not run the lifespan of the application.

    Args:
        app: The application, usually a `SessionRouter`.
        host: An address of this machine that the other hosts reach. Every program that reaches the address can use the
            application.
        port: The port; 0 for any free port.
        root_path: The same `root_path` as that of the main server.
        timeout: Seconds to wait for open responses at the end of the block.
    """
    config = Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        root_path=root_path,
        backlog=BACKLOG,
        timeout_graceful_shutdown=timeout,  # type: ignore[arg-type]  # only passed to `asyncio.wait_for`
    )
    server = _Listener(config)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=BACKLOG) as listening:
        bound = listening.getsockname()[1]
        serving = asyncio.create_task(server.serve([listening]))
        await server.is_listening.wait()
        try:
            yield f"http://[{host}]:{bound}" if ":" in host else f"http://{host}:{bound}"
        finally:
            server.should_exit = True
            await serving
