"""B4: what a live session holds beside its history, with its connection and a request in flight on it.

Each measurement is a process of its own. All sessions are weighed in mid-turn: five tools have returned 1 KB each, and
the second request waits for its answer. It waits because the stub answers so many requests at once as were sent first,
and one session asks no second time. Baseline: as many conversations by hand, each on a connection of its own.

python -m benchmarks.live sessions 1000 asyncio URL       # prints the resident bytes of one
python -m benchmarks.live conversations 1000 asyncio URL  # the baseline
"""

import gc
import json
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import anyio

from actors.runtime.runtime import Runtime
from actors.tools import tool
from benchmarks.by_hand import QUESTION, Client
from benchmarks.canned import CALLS
from benchmarks.figures import Extent, Figure, Library, Loop, Measure
from benchmarks.http import configured
from benchmarks.memory import resident
from benchmarks.others import Others
from benchmarks.start import ROOT
from benchmarks.stub import DESCRIPTORS, running
from benchmarks.turn import RESULT, SEARCH

HISTORY = CALLS * (len(RESULT.encode()) + len('{"query":"part 0","limit":1}')) + len(QUESTION)
"""Bytes of what is said until then."""


@tool(name="search")
async def never(query: str, limit: int = 10) -> str:
    """Return nothing, so that no second request is sent."""
    await anyio.sleep_forever()
    return query


async def sessions(count: int, url: str) -> float:
    """Weigh sessions in mid-turn."""
    import_module("structlog")  # the first log event does, and a busy machine logs slow handlers
    async with Runtime(configured(url, stream=True, connections=count + 1)) as runtime:
        async with anyio.create_task_group() as tasks:
            silent = await runtime.open("stub", tools=[never])
            tasks.start_soon(silent.ask, QUESTION)  # and what the process makes at first use
            await _settled()
            before = resident()
            for _ in range(count):
                session = await runtime.open("stub", tools=[SEARCH])
                tasks.start_soon(session.ask, QUESTION)
            await _settled()
            held = (resident() - before) / count
            tasks.cancel_scope.cancel()
        return held - HISTORY


async def conversations(count: int, url: str) -> float:
    """Weigh conversations by hand in mid-turn."""
    async with anyio.create_task_group() as tasks:

        async def converse() -> None:
            client = Client(url, stream=True)
            await client.open()
            await client.turn()

        silent = Client(url, stream=True)
        await silent.open()
        tasks.start_soon(silent.post, b'"role":"user" "stream":true')
        await _settled()
        before = resident()
        for _ in range(count):
            tasks.start_soon(converse)
        await _settled()
        held = (resident() - before) / count
        tasks.cancel_scope.cancel()
    return held - HISTORY


async def _settled() -> None:
    """Return when every request is under way and what was only needed for that is given back.

    That is when the process has had nothing to do for half a second.
    """
    quiet = 0
    while quiet < 5:
        began = time.process_time()
        await anyio.sleep(0.1)
        await anyio.wait_all_tasks_blocked()
        quiet = quiet + 1 if time.process_time() - began < _NOTHING else 0
    gc.collect()


_NOTHING = 0.005
"""Seconds of CPU time that a process takes in a tenth of a second with nothing to do."""


def _measured(what: str, count: int, backend: Loop) -> float:
    with running(together=count + 1) as url:
        command = (sys.executable, "-m", "benchmarks.live", what, str(count), backend, url)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return float(json.loads(done.stdout))


def _of_library(count: int, library: Library) -> float:
    with running() as warm, running(together=count + 1) as url, _silent(url):
        return (library.live_bytes(warm, url, count) - HISTORY) / 1e3


@contextmanager
def _silent(url: str) -> Iterator[None]:
    """Hold a connection that asks once and no second time."""
    parts, body = urlsplit(url), b'"role":"user" "stream":true'
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(b"POST /v1 HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        yield


def _b4(options: Extent) -> list[Figure]:
    count = 100 if options.quick else 1000
    others = Others(options.libraries)
    others.take(partial(_of_library, count))
    baseline = _measured("conversations", count, "asyncio")
    note = (
        f"{count:,} in mid-turn, without the {HISTORY / 1e3:.2g} KB said; baseline: by hand; goal also 40 KB"
    )
    return [
        Figure(
            "B4",
            _QUESTION,
            backend,
            "KB",
            1.2,
            _measured("sessions", count, backend) / 1e3,
            baseline / 1e3,
            note,
            peers=others.peers(),
        )
        for backend in options.backends
    ]


_QUESTION = "a live session with its connection"
MEASURES = (Measure("B4", _QUESTION, _b4),)


def main(what: str, count: str, backend: str, url: str) -> None:
    """Print the resident bytes of one of `count` live sessions, or conversations."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    work: Any = {"sessions": sessions, "conversations": conversations}[what]  # Any: a coroutine function
    print(json.dumps(anyio.run(work, int(count), url, backend=backend)))


if __name__ == "__main__":
    main(*sys.argv[1:])
