"""A uvicorn server that its program stops, and that reports to systemd (`Type=notify`) if systemd started it.

Before the server stops, `drain` moves the sessions of its host, also after an outage of the journal.
"""

import asyncio
import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

import uvicorn
from fastapi import FastAPI

from actors import Runtime
from actors.errors import JournalError


def notify(state: str) -> None:
    """Send `READY=1`, `STOPPING=1` or `WATCHDOG=1` to systemd."""
    if path := os.environ.get("NOTIFY_SOCKET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.connect("\0" + path[1:] if path.startswith("@") else path)
            manager.send(state.encode())


async def report_life(interval: float) -> None:
    """Report that the event loop runs, at this interval in seconds."""
    while True:
        notify("WATCHDOG=1")
        await asyncio.sleep(interval)


async def drain(runtime: Runtime, rate: float, timeout: float) -> None:
    """Move all sessions to other hosts. If the journal fails, try again until `timeout` seconds have passed."""
    end = time.monotonic() + timeout
    while timeout >= 0:
        with suppress(JournalError):
            await runtime.drain(rate=rate, timeout=timeout)
            return
        await asyncio.sleep(1)
        timeout = end - time.monotonic()


class Server(uvicorn.Server):
    """A server of an app on all interfaces. To stop it, set `should_exit`."""

    def __init__(self, app: FastAPI, port: int) -> None:
        super().__init__(uvicorn.Config(app, "0.0.0.0", port, timeout_graceful_shutdown=5))

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        interval = int(os.environ.get("WATCHDOG_USEC", "0")) / 2_000_000  # half of `WatchdogSec`
        watching = asyncio.create_task(report_life(interval or 3600))
        try:
            await super().serve(sockets)
        finally:
            watching.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        notify("READY=1")  # the port is open, and the runtime was entered before

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # uvicorn would close its connections at SIGTERM, before the sessions have moved
