"""Execute orders from standard input; every program in this folder uses this module.

An order is a line of JSON, and so is its answer, `{"value": 12.3}` or `{"error": ...}`. Times are CPU times of the
process.

    {"do": "turns", "url": ..., "stream": false, "count": 20, "at_once": false}    mean milliseconds per turn
    {"do": "event", "url": ..., "words": 200}                    microseconds per streamed event
    {"do": "live", "warm": ..., "url": ..., "count": 100}        resident bytes per conversation in mid-turn
    {"do": "render", "path": ..., "more": true}                  milliseconds to render a history
    {"do": "hold", "path": ...}                                  memory of idle histories

The file runs in the environment of each library, so it imports only the standard library.
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
"""Histories loaded before the measurement."""
WARM = 3
"""Turns run before the measurement."""
SECONDS = 60.0
"""Timeout of an order, in seconds."""

Turn = Callable[[], Awaitable[str]]
"""Runs one turn of a new conversation and returns the answer."""

ran: list[str] = []
"""Queries that the tool received since the last turns began."""


async def search(query: str, limit: int = 10) -> str:
    """Search the records.

    Args:
        query: Words to look for.
        limit: Most results.
    """
    ran.append(query)
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


async def by_loop(complete: Callable[[list[Any]], Awaitable[dict[str, Any]]]) -> str:
    """Run a turn with a client that has no tool loop."""
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
    """Return the CPU milliseconds of `work`."""
    gc.collect()
    gc.freeze()
    began = time.process_time()
    await work()
    took = (time.process_time() - began) * 1e3
    gc.unfreeze()
    return took


async def _turns(turn: Turn, count: int, at_once: bool) -> float:
    await _run_turns(turn, count if at_once else WARM, at_once)
    return await _cpu_ms(lambda: _run_turns(turn, count, at_once)) / count


async def _run_turns(turn: Turn, count: int, at_once: bool) -> None:
    ran.clear()
    turns = (turn() for _ in range(count))
    answers = await asyncio.gather(*turns) if at_once else [await each for each in turns]
    for answer in answers:
        if answer != ANSWER:
            raise ValueError(f"the answer is {answer!r}")
    if len(ran) != count * CALLS:
        raise ValueError(f"{len(ran)} calls ran in {count} turns")


async def _event(turn: Turn, words: int) -> float:
    async def read_text() -> None:
        if (found := (await turn()).count("word ")) != words:
            raise ValueError(f"the answer has {found} of {words} words")

    await read_text()
    return await _cpu_ms(read_text) * 1e3 / words


async def _live(turn: Turn, count: int) -> float:
    """Return the resident bytes per conversation that waits for its second answer, which never comes."""
    ran.clear()
    gc.collect()
    before = _resident()
    tasks = [asyncio.ensure_future(turn()) for _ in range(count)]
    await _wait_until_idle()
    gc.collect()
    held = (_resident() - before) / count
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    if len(ran) != count * CALLS:
        raise ValueError(f"{len(ran)} calls ran in {count} turns, {ends[0]!r}")
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
    """Renders histories of the library's own messages to the wire messages that its client sends.

    Args:
        made: Converts wire messages to messages of the library.
        mapped: Converts messages of the library to wire messages, as for a request.
    """

    def __init__(self, made: Callable[[list[Any]], list[Any]], mapped: Callable[[list[Any]], Any]) -> None:
        self._run_turns, self._mapped = made, mapped
        self._held: dict[str, tuple[list[Any], list[Any], int]] = {}

    def _load(self, path: str) -> None:
        said = json.loads(Path(path).read_bytes())
        self._held[path] = self._run_turns(said["messages"]), said["more"], _results(said["messages"])

    async def render(self, path: str, more: bool) -> float:
        """Return the milliseconds until a history is JSON; with `more`, messages are appended each time."""
        if path not in self._held:
            self._load(path)
        history, new, results = self._held[path]
        gc.collect()
        gc.freeze()
        began = time.process_time()
        if more:
            history.extend(self._run_turns(new))
        mapped = self._mapped(history)
        wire = await mapped if inspect.isawaitable(mapped) else mapped
        size = len(json.dumps(wire, ensure_ascii=False, separators=(",", ":")).encode())
        took = (time.process_time() - began) * 1e3
        gc.unfreeze()
        results += _results(new) if more else 0
        self._held[path] = history, new, results
        if _results(wire) != results or size < 500 * results:
            raise ValueError(f"{_results(wire)} of {results} results, {size} bytes, were rendered")
        return took

    async def hold(self, path: str) -> list[float]:
        """Return bytes and tracked objects per idle history, and the milliseconds of a collection over all."""
        lines = _lines(path)
        kept = [self._run_turns(json.loads(line)) for line in islice(lines, FIRST)]
        gc.collect()
        before, tracked, first = _resident(), len(gc.get_objects()), len(kept)
        kept.extend(self._run_turns(json.loads(line)) for line in lines)
        count = len(kept) - first
        gc.collect()
        took = median([_collection_ms() for _ in range(5)])
        return [(_resident() - before) / count, (len(gc.get_objects()) - tracked) / count, took]


def _lines(path: str) -> Iterator[bytes]:
    with Path(path).open("rb") as lines:
        yield from lines


def _results(messages: list[Any]) -> int:
    return sum(message["role"] == "tool" for message in messages)


def serve(prepare: Callable[[str, bool], Awaitable[Turn]], histories: Histories) -> None:
    """Execute orders until standard input ends. `prepare` runs once per address and mode."""
    made: dict[tuple[str, bool], Turn] = {}

    async def turn_at(url: str, stream: bool) -> Turn:
        if (url, stream) not in made:
            made[url, stream] = await prepare(url, stream)
        return made[url, stream]

    async def turns(url: str, stream: bool, count: int, at_once: bool) -> float:
        return await _turns(await turn_at(url, stream), count, at_once)

    async def event(url: str, words: int) -> float:
        return await _event(await turn_at(url, True), words)

    async def live(warm: str, url: str, count: int) -> float:
        await _run_turns(await turn_at(warm, True), WARM, False)
        return await _live(await turn_at(url, True), count)

    known = {"turns": turns, "event": event, "live": live, "render": histories.render, "hold": histories.hold}

    async def execute(do: str, **order: Any) -> Any:
        async with asyncio.timeout(SECONDS):
            return await known[do](**order)

    with asyncio.Runner() as runner:
        for order in _orders():
            try:
                answer: dict[str, Any] = {"value": runner.run(execute(**order))}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"[:300]}
            print(json.dumps(answer), file=_answers, flush=True)


def _orders() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


_answers, sys.stdout = sys.stdout, sys.stderr  # libraries print greetings and warnings
