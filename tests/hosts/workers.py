"""Run the documented application under `uvicorn --workers`, for tests that kill, suspend and restart processes."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import Process
from httpx2 import AsyncClient, TransportError

ROOT = Path(__file__).resolve().parents[2]
APP = "tests.hosts.worker_app:app"
STARTED = 60.0
"""The longest time until a server answers, in seconds."""


class Workers:
    """A server with several worker processes that share a port."""

    def __init__(self, process: Process, port: int) -> None:
        self.process, self.url = process, f"http://127.0.0.1:{port}"
        self.log = ""
        self.changed = anyio.Event()

    async def read_log(self) -> None:
        """Read the output of all processes until they have ended."""
        assert self.process.stdout is not None
        async for data in self.process.stdout:
            self.log += data.decode()
            self.changed.set()
            self.changed = anyio.Event()

    async def wait_started(self, count: int) -> None:
        """Wait until so many workers have started, since the server started."""
        while self.log.count("Application startup complete") < count:
            await self.changed.wait()

    async def ask(self, session: str, text: str, key: str) -> str:
        """Ask through any worker, over a new connection. A worker that is killed may break the connection once."""
        for _ in range(3):
            async with AsyncClient(timeout=60) as client:
                try:
                    response = await client.post(
                        f"{self.url}/sessions/{session}/messages",
                        params={"text": text},
                        headers={"idempotency-key": key},
                    )
                except TransportError:
                    continue  # the worker that received the request was killed
                assert response.status_code == 200, response.text
                return str(response.json())
        raise AssertionError(f"no answer for {session}")

    async def owner(self, session: str) -> int:
        """Return the process that owns a session."""
        async with AsyncClient(timeout=60) as client:
            return int((await client.get(f"{self.url}/sessions/{session}/process")).text)

    async def end(self) -> int:
        """Terminate the server and wait for its end. Return its status."""
        self.process.send_signal(signal.SIGTERM)
        return await self.process.wait()


@asynccontextmanager
async def uvicorn_workers(count: int, journal: str, base_url: str) -> AsyncIterator[Workers]:
    """Start a server with `count` workers. Kill its processes at the end of the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": base_url, "JOURNAL": journal, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "uvicorn", APP, "--workers", str(count), "--port", str(port)]
    command += ["--timeout-graceful-shutdown", "20", "--no-access-log"]
    process = await anyio.open_process(
        command, env={**os.environ, **env}, stderr=subprocess.STDOUT, start_new_session=True
    )
    async with process, anyio.create_task_group() as tasks:
        found = Workers(process, port)
        tasks.start_soon(found.read_log)
        try:
            with anyio.fail_after(STARTED):
                await found.wait_started(count)
            yield found
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
