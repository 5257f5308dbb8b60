"""Measure the memory of a live session in addition to its history, with a connection and a request in flight (B4).

Each measurement runs in a separate process. All sessions are measured in the middle of a turn: five tools have returned
1 KB each, and the second request waits for its answer. The stub answers only when `count` + 1 requests wait, and one
session never sends a second request, so no answer arrives. Baseline: hand-written conversations with a connection each.

    python -m benchmarks.live sessions 1000 asyncio URL       # prints the resident bytes per session
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
from benchmarks.http import stub_config
from benchmarks.memory import resident
from benchmarks.others import OtherLibraries
from benchmarks.start import ROOT
from benchmarks.stub import DESCRIPTORS, run_stub
from benchmarks.turn import RESULT, SEARCH

HISTORY = CALLS * (len(RESULT.encode()) + len('{"query":"part 0","limit":1}')) + len(QUESTION)
"""Bytes of content in a conversation up to the second request."""


@tool(name="search")
async def never(query: str, limit: int = 10) -> str:
    """Never return, so that the session sends no second request."""
    await anyio.sleep_forever()
    return query


async def sessions(count: int, url: str) -> float:
    """Return the resident bytes per session in the middle of a turn, without the bytes of its content."""
    import_module(
        "structlog"
    )  # otherwise imported by the first log event, such as a slow handler on a busy machine
    async with Runtime(stub_config(url, stream=True, connections=count + 1)) as runtime:
        async with anyio.create_task_group() as tasks:
            silent = await runtime.open("stub", tools=[never])
            tasks.start_soon(silent.ask, QUESTION)  # also triggers allocations made once per process
            await _wait_until_idle()
            before = resident()
            for _ in range(count):
                session = await runtime.open("stub", tools=[SEARCH])
                tasks.start_soon(session.ask, QUESTION)
            await _wait_until_idle()
            held = (resident() - before) / count
            tasks.cancel_scope.cancel()
        return held - HISTORY


async def conversations(count: int, url: str) -> float:
    """Return the resident bytes per hand-written conversation in the middle of a turn, without its content."""
    async with anyio.create_task_group() as tasks:

        async def converse() -> None:
            client = Client(url, stream=True)
            await client.open()
            await client.run_turn()

        silent = Client(url, stream=True)
        await silent.open()
        tasks.start_soon(silent.post, b'"role":"user" "stream":true')
        await _wait_until_idle()
        before = resident()
        for _ in range(count):
            tasks.start_soon(converse)
        await _wait_until_idle()
        held = (resident() - before) / count
        tasks.cancel_scope.cancel()
    return held - HISTORY


async def _wait_until_idle() -> None:
    """Wait until the process has been idle for half a second, then collect garbage.

    By then, every request has been sent and temporary memory has been freed.
    """
    quiet = 0
    while quiet < 5:
        began = time.process_time()
        await anyio.sleep(0.1)
        await anyio.wait_all_tasks_blocked()
        quiet = quiet + 1 if time.process_time() - began < _IDLE_CPU_SECONDS else 0
    gc.collect()


_IDLE_CPU_SECONDS = 0.005
"""The process is idle if it uses fewer CPU seconds than this in a tenth of a second."""


def _run_in_process(what: str, count: int, backend: Loop) -> float:
    with run_stub(together=count + 1) as url:
        command = (sys.executable, "-m", "benchmarks.live", what, str(count), backend, url)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return float(json.loads(done.stdout))


def _library_kb(count: int, library: Library) -> float:
    with run_stub() as warm, run_stub(together=count + 1) as url, _silent_connection(url):
        return (library.live_bytes(warm, url, count) - HISTORY) / 1e3


@contextmanager
def _silent_connection(url: str) -> Iterator[None]:
    """Inside the block, hold a connection that sends one request and never a second one."""
    parts, body = urlsplit(url), b'"role":"user" "stream":true'
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(b"POST /v1 HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        yield


def _measure_b4(options: Extent) -> list[Figure]:
    count = 100 if options.quick else 1000
    others = OtherLibraries(options.libraries)
    others.measure_each(partial(_library_kb, count))
    baseline = _run_in_process("conversations", count, "asyncio")
    note = f"{count:,} in mid-turn, without the {HISTORY / 1e3:.2g} KB of content; by hand {baseline / 1e3:.3g} KB"
    return [
        Figure(
            "B4",
            _QUESTION,
            backend,
            "KB",
            40.0,
            _run_in_process("sessions", count, backend) / 1e3,
            note=note,
            peers=others.peers(),
        )
        for backend in options.backends
    ]


_QUESTION = "a live session with its connection"
MEASURES = (Measure("B4", _QUESTION, _measure_b4),)


def main(what: str, count: str, backend: str, url: str) -> None:
    """Print the resident bytes per session or conversation, measured with `count` of them."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    work: Any = {"sessions": sessions, "conversations": conversations}[what]  # Any: a coroutine function
    print(json.dumps(anyio.run(work, int(count), url, backend=backend)))


if __name__ == "__main__":
    main(*sys.argv[1:])
