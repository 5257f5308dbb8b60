"""Hosts as uvicorn processes, each at an address of its own."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import Process, TaskGroup

from tests.saying import say

ROOT = Path(__file__).resolve().parents[3]
APP = "tests.hosts.host_app:app"
LEASE = 2.0
"""Seconds of the lease of a host."""
STARTED = 60.0
"""The longest time until a host answers, in seconds."""


class HostProcess:
    """A uvicorn process at an address that stays the same when the process is started again."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._environ = {
            **os.environ,
            **environ,
            "ADDRESS": self.url,
            "LEASE": str(LEASE),
            "PYTHONPATH": str(ROOT),
        }
        self._process: Process
        self.log = ""

    async def start(self, tasks: TaskGroup) -> None:
        """Start the process, and wait until it accepts requests."""
        command = [sys.executable, "-m", "uvicorn", APP, "--port", str(self._port)]
        command += ["--timeout-graceful-shutdown", "20", "--no-access-log"]
        self._process = await anyio.open_process(command, env=self._environ, stderr=subprocess.STDOUT)
        started = anyio.Event()
        tasks.start_soon(self._read_log, self._process, started)
        with anyio.fail_after(STARTED):
            await started.wait()

    async def _read_log(self, process: Process, started: anyio.Event) -> None:
        assert process.stdout is not None
        async for data in process.stdout:
            self.log += data.decode()
            if b"Uvicorn running" in data:
                started.set()

    async def end(self, number: signal.Signals) -> int:
        """Send a signal that ends the process, and return its status."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        return await self._process.wait()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)


@asynccontextmanager
async def running(processes: Sequence[HostProcess], tasks: TaskGroup) -> AsyncIterator[None]:
    """Start the processes at once. Terminate them at the end of the block.

    If the block raises, kill them, and print the output of those that printed a traceback.
    """
    started = list[HostProcess]()
    number = signal.SIGKILL
    try:
        async with anyio.create_task_group() as starting:
            for each in processes:
                started.append(each)
                starting.start_soon(each.start, tasks)
        yield
        number = signal.SIGTERM
    finally:
        with anyio.CancelScope(shield=True):
            for each in {*started, *processes}:
                await each.end(number)
            if number is signal.SIGKILL:
                say(
                    *(f"{each.url}\n{each.log}" for each in {*started, *processes} if "Traceback" in each.log)
                )
