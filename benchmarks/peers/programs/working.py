"""Execute orders from standard input. Every program in this folder uses this module.

An order is one line of JSON, and its answer is one line too: `{"value": 12.3}` or `{"error": ...}`. Times are CPU times
of the process.

    {"do": "turns", "url": ..., "stream": false, "count": 20, "at_once": false}    mean milliseconds per turn
    {"do": "event", "url": ..., "words": 200}                    microseconds per streamed event
    {"do": "live", "warm": ..., "url": ..., "count": 100}        resident bytes per conversation in the middle of a turn
    {"do": "render", "path": ..., "more": true}                  milliseconds to render a history
    {"do": "hold", "path": ...}                                  memory of idle histories

The module runs in the environment of each library, so it imports only the standard library.
"""

import asyncio
import gc
import inspect
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

QUESTION, RESULT, ANSWER = json.loads(sys.argv[1]) if len(sys.argv) > 1 else ("", "", "")
CALLS = 5
FIRST = 20
"""Number of histories loaded before the measurement."""
WARM = 3
"""Number of turns run before the measurement."""
SECONDS = 60.0
"""Timeout of an order, in seconds."""

Turn = Callable[[], Awaitable[str]]
"""Runs one turn of a new conversation and returns the answer."""

queries: list[str] = []
"""The arguments `query` that the tool has received since the current measurement began."""


async def search(query: str, limit: int = 10) -> str:
    """Search the records.

    Args:
        query: Words to look for.
        limit: Most results.
    """
    queries.append(query)
    return RESULT


SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}},
    "required": ["query"],
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": "search", "description": "Search the records.", "parameters": SCHEMA},
    }
]


async def run_tool_loop(complete: Callable[[list[Any]], Awaitable[dict[str, Any]]]) -> str:
    """Run a turn with a client that has no tool loop: call the model, run its calls, and repeat until it answers."""
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        message = await complete(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        calls = message["tool_calls"]
        given = [json.loads(call["function"]["arguments"]) for call in calls]
        results = await asyncio.gather(*(search(**arguments) for arguments in given))
        for call, result in zip(calls, results, strict=True):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


async def _cpu_ms(work: Callable[[], Awaitable[object]]) -> float:
    """Return the CPU milliseconds of `work`. Existing objects are hidden from the garbage collector meanwhile."""
    gc.collect()
    gc.freeze()
    began = time.process_time()
    await work()
    took = (time.process_time() - began) * 1e3
    gc.unfreeze()
    return took


async def _turn_ms(turn: Turn, count: int, at_once: bool) -> float:
    await _run_turns(turn, count if at_once else WARM, at_once)
    return await _cpu_ms(lambda: _run_turns(turn, count, at_once)) / count


async def _run_turns(turn: Turn, count: int, at_once: bool) -> None:
    queries.clear()
    turns = (turn() for _ in range(count))
    answers = await asyncio.gather(*turns) if at_once else [await each for each in turns]
    for answer in answers:
        if answer != ANSWER:
            raise ValueError(f"the answer is {answer!r}, not {ANSWER!r}")
    if len(queries) != count * CALLS:
        raise ValueError(f"{len(queries)} calls ran in {count} turns, not {count * CALLS}")


async def _event_us(turn: Turn, words: int) -> float:
    async def read_text() -> None:
        if (found := (await turn()).count("word ")) != words:
            raise ValueError(f"the answer has {found} of {words} words")

    await read_text()
    return await _cpu_ms(read_text) * 1e3 / words


async def _live_bytes(turn: Turn, count: int) -> float:
    """Return the resident bytes per conversation that waits for its second answer, which never comes."""
    queries.clear()
    gc.collect()
    before = _resident()
    tasks = [asyncio.ensure_future(turn()) for _ in range(count)]
    await _wait_until_idle()
    gc.collect()
    held = (_resident() - before) / count
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    if len(queries) != count * CALLS:
        raise ValueError(
            f"{len(queries)} calls ran in {count} turns, not {count * CALLS}; one ended with {ends[0]!r}"
        )
    return held


async def _wait_until_idle() -> None:
    """Wait until the process has been idle for half a second."""
    quiet = 0
    while quiet < 5:
        began = time.process_time()
        await asyncio.sleep(0.1)
        quiet = quiet + 1 if time.process_time() - began < 0.005 else 0


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _collection_ms() -> float:
    began = time.thread_time()
    gc.collect()
    return (time.thread_time() - began) * 1e3


class Histories:
    """Conversations as the library's own messages, and their conversion to wire messages.

    Args:
        to_library: Converts wire messages to messages of the library.
        to_wire: Converts messages of the library to wire messages, as for a request.
    """

    def __init__(
        self, to_library: Callable[[list[Any]], list[Any]], to_wire: Callable[[list[Any]], Any]
    ) -> None:
        self._to_library, self._to_wire = to_library, to_wire
        self._held: dict[str, tuple[list[Any], list[Any], int]] = {}

    def _load(self, path: str) -> None:
        said = json.loads(Path(path).read_bytes())
        self._held[path] = self._to_library(said["messages"]), said["more"], _result_count(said["messages"])

    async def render(self, path: str, more: bool) -> float:
        """Return the milliseconds to convert a history to JSON.

        With `more`, messages are appended before each conversion.
        """
        if path not in self._held:
            self._load(path)
        history, new, results = self._held[path]
        gc.collect()
        gc.freeze()
        began = time.process_time()
        if more:
            history.extend(self._to_library(new))
        mapped = self._to_wire(history)
        wire = await mapped if inspect.isawaitable(mapped) else mapped
        size = len(json.dumps(wire, ensure_ascii=False, separators=(",", ":")).encode())
        took = (time.process_time() - began) * 1e3
        gc.unfreeze()
        results += _result_count(new) if more else 0
        self._held[path] = history, new, results
        if _result_count(wire) != results or size < 500 * results:
            raise ValueError(f"{_result_count(wire)} of {results} results, in {size} bytes, were rendered")
        return took

    async def hold(self, path: str) -> list[float]:
        """Return resident bytes and tracked objects per idle history, and the milliseconds of a collection over all."""
        lines = _read_lines(path)
        kept = [self._to_library(json.loads(line)) for line in islice(lines, FIRST)]
        gc.collect()
        before, tracked, first = _resident(), len(gc.get_objects()), len(kept)
        kept.extend(self._to_library(json.loads(line)) for line in lines)
        count = len(kept) - first
        gc.collect()
        took = median([_collection_ms() for _ in range(5)])
        return [(_resident() - before) / count, (len(gc.get_objects()) - tracked) / count, took]


def _read_lines(path: str) -> Iterator[bytes]:
    with Path(path).open("rb") as lines:
        yield from lines


def _result_count(messages: list[Any]) -> int:
    return sum(message["role"] == "tool" for message in messages)


def execute_orders(prepare_turn: Callable[[str, bool], Awaitable[Turn]], histories: Histories) -> None:
    """Execute orders until standard input ends. `prepare_turn` runs once per address and mode (streamed or not)."""
    made: dict[tuple[str, bool], Turn] = {}

    async def turn_at(url: str, stream: bool) -> Turn:
        if (url, stream) not in made:
            made[url, stream] = await prepare_turn(url, stream)
        return made[url, stream]

    async def turns(url: str, stream: bool, count: int, at_once: bool) -> float:
        return await _turn_ms(await turn_at(url, stream), count, at_once)

    async def event(url: str, words: int) -> float:
        return await _event_us(await turn_at(url, True), words)

    async def live(warm: str, url: str, count: int) -> float:
        await _run_turns(await turn_at(warm, True), WARM, False)
        return await _live_bytes(await turn_at(url, True), count)

    known = {"turns": turns, "event": event, "live": live, "render": histories.render, "hold": histories.hold}

    async def execute(do: str, **order: Any) -> Any:
        async with asyncio.timeout(SECONDS):
            return await known[do](**order)

    with asyncio.Runner() as runner:
        for order in _read_orders():
            try:
                answer: dict[str, Any] = {"value": runner.run(execute(**order))}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"[:300]}
            print(json.dumps(answer), file=_answers, flush=True)


def _read_orders() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


_answers, sys.stdout = sys.stdout, sys.stderr  # keep greetings and warnings of libraries out of the answers
