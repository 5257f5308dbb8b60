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
from benchmarks.canned import CALLS_ANSWER, TEXT_ANSWER, CannedTransport
from benchmarks.figures import Extent, Figure, Loop, Measure
from benchmarks.timing import Passes, async_calls, async_cpu_ms, run_on_loop
from benchmarks.workload import Author, dialect_binding

RESULT = Author(dialect_binding("openai_chat")).text(1000, 1024)
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


SEARCH: Tool[..., Any] = tool(search)  # Any: the tool's result


@asynccontextmanager
async def open_runtime(
    limits: RuntimeLimits | None = None, journal: Storage | None = None
) -> AsyncIterator[Runtime]:
    """Yield a runtime whose model is in this process."""
    config = Config(FileSettings(limits=limits or RuntimeLimits()), ENVIRON, "a measurement")
    async with Runtime(config, environ=ENVIRON, transport=CannedTransport(), journal=journal) as runtime:
        yield runtime


async def _ask_once(session: Session) -> None:
    result = await session.ask("Please settle the question with five searches.")
    assert (result.status, result.rounds) == ("complete", 2), result


async def _first_turn_ms(count: int) -> float:
    """Return the mean CPU milliseconds of the first turn of a session, over `count` sessions."""
    async with open_runtime() as runtime:
        await _ask_once(await runtime.open(TARGET, tools=[SEARCH]))
        sessions = [await runtime.open(TARGET, tools=[SEARCH]) for _ in range(count)]
        return await async_cpu_ms(partial(_ask_each, sessions)) / count


async def _first_turn_calls() -> float:
    """Return the mean number of Python calls in the first turn of a session, over two sessions."""
    async with open_runtime() as runtime:
        for _ in range(3):  # warm up: objects created at first use
            await _ask_once(await runtime.open(TARGET, tools=[SEARCH]))
        sessions = [await runtime.open(TARGET, tools=[SEARCH]) for _ in range(2)]
        return await async_calls(partial(_ask_each, sessions)) / len(sessions)


async def _ask_each(sessions: list[Session]) -> None:
    for session in sessions:
        await _ask_once(session)


# ---- the baseline


async def _model_answer(body: bytes) -> dict[str, Any]:  # Any: parsed JSON
    await asyncio.sleep(0)
    stream = CALLS_ANSWER if b'"role": "tool"' not in body else TEXT_ANSWER
    calls: list[Any] = []  # Any: parsed JSON
    text = ""
    for line in stream.split(b"\n\n"):
        if line.startswith(b"data: {") and (choices := json.loads(line[6:])["choices"]):
            delta = choices[0]["delta"]
            calls += delta.get("tool_calls", ())
            text += delta.get("content") or ""
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


async def _turn_by_hand() -> None:
    messages: list[Any] = [{"role": "user", "content": "Please settle the question with five searches."}]
    while True:
        message = await _model_answer(json.dumps({"model": "model-1", "messages": messages}).encode())
        messages.append(message)
        if not (calls := message.get("tool_calls")):
            return
        given = [json.loads(call["function"]["arguments"]) for call in calls]
        results = await asyncio.gather(*(search(**arguments) for arguments in given))
        for call, result in zip(calls, results, strict=True):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


async def _baseline_ms(count: int) -> float:
    async def turns() -> None:
        for _ in range(count):
            await _turn_by_hand()

    return await async_cpu_ms(turns) / count


def _measure_b1(options: Extent) -> list[Figure]:
    passes, count = (3, 20) if options.quick else (9, 50)
    works: list[tuple[Loop, Callable[[], Awaitable[float]]]] = [("asyncio", partial(_baseline_ms, count))]
    works += [(backend, partial(_first_turn_ms, count)) for backend in options.backends]
    taken = Passes.of([run_on_loop(backend, work) for backend, work in works] for _ in range(passes))
    by_hand = anyio.run(async_calls, _turn_by_hand)
    row = Figure("B1", _QUESTIONS["B1"], "", "ms", 7.0, note="goal also 3.5 x in instructions")
    return [
        taken.fill(
            replace(row, case=backend, calls=run_on_loop(backend, _first_turn_calls), baseline_calls=by_hand),
            work,
            0,
        )
        for work, backend in enumerate(options.backends, 1)
    ]


# ---- a long session


async def _long_session_ms(turns: int) -> tuple[float, float]:
    """Return the median CPU milliseconds of the last turns of a long session, and of the turns around turn 10."""
    async with open_runtime() as runtime:
        session = await runtime.open(TARGET, tools=[SEARCH])
        gc.collect()
        took = [await async_cpu_ms(partial(_ask_once, session)) for _ in range(turns)]
    return median(took[-15:]), median(took[3:18])


def _measure_c1(options: Extent) -> list[Figure]:
    passes, turns = (1, 100) if options.quick else (3, 500)
    rows = []
    for backend in options.backends:
        pairs = Passes.of(_run_long(backend, turns) for _ in range(passes))
        note = f"turn {turns}; baseline: turn 10"
        rows.append(pairs.fill(Figure("C1", _QUESTIONS["C1"], backend, "ms", 1.2, note=note)))
    return rows


def _run_long(backend: Loop, turns: int) -> tuple[float, float]:
    return anyio.run(_long_session_ms, turns, backend=backend)


_QUESTIONS = {
    "B1": "a turn: model, 5 tools at once, model",
    "C1": "a late turn of one session against turn 10",
}
MEASURES = (Measure("B1", _QUESTIONS["B1"], _measure_b1), Measure("C1", _QUESTIONS["C1"], _measure_c1))
