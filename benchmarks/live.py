"""B4: what a live session holds, with its connection and a request in flight on it.

Each measurement is a process of its own. The stub answers once all requests and one more wait, so that all sessions
are weighed while they wait for their answers. Floor: as many connections by hand, each with a request in flight.

python -m benchmarks.live sessions 1000 asyncio URL     # prints the resident bytes of one
python -m benchmarks.live connections 1000 asyncio URL  # the floor
"""

import gc
import json
import resource
import subprocess
import sys
from typing import Any

import anyio

from actors.runtime import Runtime
from benchmarks.by_hand import QUESTION, Client
from benchmarks.http import configured
from benchmarks.memory import resident
from benchmarks.start import ROOT
from benchmarks.stub import DESCRIPTORS, running
from benchmarks.table import Backend, Measure, Options, Row
from benchmarks.turn import SEARCH


async def sessions(count: int, url: str) -> float:
    """Weigh sessions that wait for their answers."""
    async with Runtime(configured(url, stream=True, connections=count + 1)) as runtime:
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                await (await runtime.open("stub", tools=[SEARCH])).ask(QUESTION)

            tasks.start_soon(ask)  # what the process makes at first use
            await _settled()
            before = resident()
            for _ in range(count):
                tasks.start_soon(ask)
            await _settled()
            held = (resident() - before) / count
            tasks.cancel_scope.cancel()
        return held


async def connections(count: int, url: str) -> float:
    """Weigh connections by hand that wait for their answers."""
    async with anyio.create_task_group() as tasks:

        async def ask() -> None:
            client = Client(url, stream=True)
            await client.open()
            await client.turn()

        tasks.start_soon(ask)
        await _settled()
        before = resident()
        for _ in range(count):
            tasks.start_soon(ask)
        await _settled()
        held = (resident() - before) / count
        tasks.cancel_scope.cancel()
    return held


async def _settled() -> None:
    """Return when every request is under way and what was only needed for that is given back."""
    for _ in range(20):
        await anyio.sleep(0.1)
        await anyio.wait_all_tasks_blocked()
    gc.collect()


def _measured(what: str, count: int, backend: Backend) -> float:
    with running(together=count + 2) as url:
        command = (sys.executable, "-m", "benchmarks.live", what, str(count), backend, url)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return float(json.loads(done.stdout))


def _b4(options: Options) -> list[Row]:
    count = 100 if options.quick else 1000
    floor = _measured("connections", count, "asyncio")
    note = f"{count:,} with a request in flight; floor: the connection by hand; goal 40 KB where it takes 33"
    return [
        Row(
            "B4",
            _QUESTION,
            backend,
            "KB",
            1.2,
            _measured("sessions", count, backend) / 1e3,
            floor / 1e3,
            note,
        )
        for backend in options.backends
    ]


_QUESTION = "a live session with its connection"
MEASURES = (Measure("B4", _QUESTION, _b4),)


def main(what: str, count: str, backend: str, url: str) -> None:
    """Print the resident bytes of one of `count` live sessions, or connections."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    work: Any = {"sessions": sessions, "connections": connections}[what]  # Any: a coroutine function
    print(json.dumps(anyio.run(work, int(count), url, backend=backend)))


if __name__ == "__main__":
    main(*sys.argv[1:])
