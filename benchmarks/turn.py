"""Measure a turn through all actors with the model in this process (B1, C1).

    B1   first turn of a session: model, 5 parallel tools with validation, model; baseline: a hand-written asyncio loop
    C1   turn 500 of one session against turn 10

A tool returns 1 KB. The baseline reads the same streams, runs the same tools concurrently and encodes the same
requests. It validates nothing, keeps no log and has no actors.
"""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import anyio

from actors.config import Config, FileSettings, RuntimeLimits
from actors.journal.storage import Storage
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.tools import Tool, tool
from benchmarks.canned import ANSWERING, CALLING, Canned
from benchmarks.figures import Extent, Figure, Loop, Measure
from benchmarks.timing import Passes, async_calls, async_cpu_ms, on_loop
from benchmarks.workload import Author, binding

RESULT = Author(binding("openai_chat")).text(1000, 1024)
TARGET = "openai_chat:model-1"
OTHER = "deepseek:model-1"
ENVIRON = {"OPENAI_API_KEY": "none", "DEEPSEEK_API_KEY": "none"}


async def search(query: str, limit: int = 10) -> str:
    """Search the records.

    Args:
        query: Words to look for.
        limit: Most results.
    """
    return RESULT


SEARCH: Tool[..., Any] = tool(search)  # Any: the function's own result


@asynccontextmanager
async def open_runtime(
    limits: RuntimeLimits | None = None, journal: Storage | None = None
) -> AsyncIterator[Runtime]:
    """Open a runtime whose model is in this process."""
    config = Config(FileSettings(limits=limits or RuntimeLimits()), ENVIRON, "a measurement")
    async with Runtime(config, environ=ENVIRON, transport=Canned(), journal=journal) as runtime:
        yield runtime


async def _ask(session: Session) -> None:
    result = await session.ask("Please settle the question with five searches.")
    assert (result.status, result.rounds) == ("complete", 2), result


async def _turns(count: int) -> float:
    """Return the CPU milliseconds of the first turn of a session, as a mean over `count` sessions."""
    async with open_runtime() as runtime:
        await _ask(await runtime.open(TARGET, tools=[SEARCH]))
        sessions = [await runtime.open(TARGET, tools=[SEARCH]) for _ in range(count)]
        return await async_cpu_ms(partial(_each, sessions)) / count


async def _calls() -> float:
    """Return the Python calls of the first turn of a session, as a mean over two."""
    async with open_runtime() as runtime:
        for _ in range(3):  # warm up: objects created at first use
            await _ask(await runtime.open(TARGET, tools=[SEARCH]))
        sessions = [await runtime.open(TARGET, tools=[SEARCH]) for _ in range(2)]
        return await async_calls(partial(_each, sessions)) / len(sessions)


async def _each(sessions: list[Session]) -> None:
    for session in sessions:
        await _ask(session)


# ---- the baseline


async def _model(body: bytes) -> dict[str, Any]:  # Any: JSON as any client would hold it
    await asyncio.sleep(0)
    stream = CALLING if b'"role": "tool"' not in body else ANSWERING
    calls: list[Any] = []  # Any: as above
    text = ""
    for line in stream.split(b"\n\n"):
        if line.startswith(b"data: {") and (choices := json.loads(line[6:])["choices"]):
            delta = choices[0]["delta"]
            calls += delta.get("tool_calls", ())
            text += delta.get("content") or ""
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


async def _by_hand() -> None:
    messages: list[Any] = [{"role": "user", "content": "Please settle the question with five searches."}]
    while True:
        message = await _model(json.dumps({"model": "model-1", "messages": messages}).encode())
        messages.append(message)
        if not (calls := message.get("tool_calls")):
            return
        given = [json.loads(call["function"]["arguments"]) for call in calls]
        results = await asyncio.gather(*(search(**arguments) for arguments in given))
        for call, result in zip(calls, results, strict=True):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


async def _baseline(count: int) -> float:
    async def turns() -> None:
        for _ in range(count):
            await _by_hand()

    return await async_cpu_ms(turns) / count


def _b1(options: Extent) -> list[Figure]:
    passes, count = (3, 20) if options.quick else (9, 50)
    works: list[tuple[Loop, Callable[[], Awaitable[float]]]] = [("asyncio", partial(_baseline, count))]
    works += [(backend, partial(_turns, count)) for backend in options.backends]
    taken = Passes.of([on_loop(backend, work) for backend, work in works] for _ in range(passes))
    by_hand = anyio.run(async_calls, _by_hand)
    row = Figure("B1", _QUESTIONS["B1"], "", "ms", 5.0, note="goal 1.0 ms where the baseline takes 0.2")
    return [
        taken.fill(
            replace(row, case=backend, calls=on_loop(backend, _calls), baseline_calls=by_hand), work, 0
        )
        for work, backend in enumerate(options.backends, 1)
    ]


# ---- a long session


async def _long(turns: int) -> tuple[float, float]:
    """Return the median CPU milliseconds of the last turns of a long session, and of turns around 10."""
    async with open_runtime() as runtime:
        session = await runtime.open(TARGET, tools=[SEARCH])
        gc.collect()
        took = [await async_cpu_ms(partial(_ask, session)) for _ in range(turns)]
    return median(took[-15:]), median(took[3:18])


def _c1(options: Extent) -> list[Figure]:
    passes, turns = (1, 100) if options.quick else (3, 500)
    rows = []
    for backend in options.backends:
        pairs = Passes.of(_run_long(backend, turns) for _ in range(passes))
        note = f"turn {turns}; baseline: turn 10"
        rows.append(pairs.fill(Figure("C1", _QUESTIONS["C1"], backend, "ms", 1.2, note=note)))
    return rows


def _run_long(backend: Loop, turns: int) -> tuple[float, float]:
    return anyio.run(_long, turns, backend=backend)


_QUESTIONS = {
    "B1": "a turn: model, 5 tools at once, model",
    "C1": "a late turn of one session against turn 10",
}
MEASURES = (Measure("B1", _QUESTIONS["B1"], _b1), Measure("C1", _QUESTIONS["C1"], _c1))
