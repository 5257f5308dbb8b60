"""What every program here shares: the tool, the question, and the loop that takes orders on standard input.

An order is a line of JSON, and so is its answer, `{"value": 12.3}` or `{"error": ...}`. Times are its CPU time.

    {"do": "turns", "url": ..., "stream": false, "count": 20, "at_once": false}    milliseconds of a turn, as a mean
    {"do": "event", "url": ..., "words": 200}                    microseconds of a streamed event
    {"do": "live", "warm": ..., "url": ..., "count": 100}        resident bytes of a conversation in mid-turn
    {"do": "render", "path": ..., "more": true}                  milliseconds of a history as JSON, or with 8 messages
    {"do": "hold", "path": ...}                                  what idle histories hold, a line of JSON for each

This file is run by each library's own environment, so it imports nothing but the standard library.
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
"""Histories that are there before others are weighed."""
WARM = 3
"""Turns before those that are measured."""
SECONDS = 60.0
"""That one order may take."""

Turn = Callable[[], Awaitable[str]]
"""Makes one turn of a fresh conversation and returns its answer."""

ran: list[str] = []
"""What the tool was asked, since the last turns began."""


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
    """Make a turn with a client that has no loop of its own."""
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


async def _taken(work: Callable[[], Awaitable[object]]) -> float:
    """Return the CPU milliseconds of a work."""
    gc.collect()
    gc.freeze()
    began = time.process_time()
    await work()
    took = (time.process_time() - began) * 1e3
    gc.unfreeze()
    return took


async def _turns(turn: Turn, count: int, at_once: bool) -> float:
    await _made(turn, count if at_once else WARM, at_once)
    return await _taken(lambda: _made(turn, count, at_once)) / count


async def _made(turn: Turn, count: int, at_once: bool) -> None:
    ran.clear()
    turns = (turn() for _ in range(count))
    answers = await asyncio.gather(*turns) if at_once else [await each for each in turns]
    for answer in answers:
        if answer != ANSWER:
            raise ValueError(f"the answer is {answer!r}")
    if len(ran) != count * CALLS:
        raise ValueError(f"{len(ran)} calls ran in {count} turns")


async def _event(turn: Turn, words: int) -> float:
    async def read() -> None:
        if (found := (await turn()).count("word ")) != words:
            raise ValueError(f"the answer has {found} of {words} words")

    await read()
    return await _taken(read) * 1e3 / words


async def _live(turn: Turn, count: int) -> float:
    """Return what conversations hold that wait for their second answer, which does not come."""
    ran.clear()
    gc.collect()
    before = _resident()
    tasks = [asyncio.ensure_future(turn()) for _ in range(count)]
    await _settled()
    gc.collect()
    held = (_resident() - before) / count
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    if len(ran) != count * CALLS:
        raise ValueError(f"{len(ran)} calls ran in {count} turns, {ends[0]!r}")
    return held


async def _settled() -> None:
    """Return when the process has had nothing to do for half a second."""
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
    """Renders what was said, as the library's own messages, to the wire messages that its client would send.

    Args:
        made: Makes the library's messages of wire messages.
        mapped: Makes wire messages of those, as for each request.
    """

    def __init__(self, made: Callable[[list[Any]], list[Any]], mapped: Callable[[list[Any]], Any]) -> None:
        self._made, self._mapped = made, mapped
        self._held: dict[str, tuple[list[Any], list[Any], int]] = {}

    def _load(self, path: str) -> None:
        said = json.loads(Path(path).read_bytes())
        self._held[path] = self._made(said["messages"]), said["more"], _results(said["messages"])

    async def render(self, path: str, more: bool) -> float:
        """Return the milliseconds until a history is JSON; with `more`, messages are appended each time."""
        if path not in self._held:
            self._load(path)
        history, new, results = self._held[path]
        gc.collect()
        gc.freeze()
        began = time.process_time()
        if more:
            history.extend(self._made(new))
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
        """Return what idle histories hold: bytes and tracked objects of one, and milliseconds to collect with all."""
        lines = _lines(path)
        kept = [self._made(json.loads(line)) for line in islice(lines, FIRST)]
        gc.collect()
        before, tracked, first = _resident(), len(gc.get_objects()), len(kept)
        kept.extend(self._made(json.loads(line)) for line in lines)
        count = len(kept) - first
        gc.collect()
        took = median([_collection_ms() for _ in range(5)])
        return [(_resident() - before) / count, (len(gc.get_objects()) - tracked) / count, took]


def _lines(path: str) -> Iterator[bytes]:
    with Path(path).open("rb") as lines:
        yield from lines


def _results(messages: list[Any]) -> int:
    return sum(message["role"] == "tool" for message in messages)


def serve(prepared: Callable[[str, bool], Awaitable[Turn]], histories: Histories) -> None:
    """Take orders until standard input ends. What a library keeps for an address is made once."""
    made: dict[tuple[str, bool], Turn] = {}

    async def turn_at(url: str, stream: bool) -> Turn:
        if (url, stream) not in made:
            made[url, stream] = await prepared(url, stream)
        return made[url, stream]

    async def turns(url: str, stream: bool, count: int, at_once: bool) -> float:
        return await _turns(await turn_at(url, stream), count, at_once)

    async def event(url: str, words: int) -> float:
        return await _event(await turn_at(url, True), words)

    async def live(warm: str, url: str, count: int) -> float:
        await _made(await turn_at(warm, True), WARM, False)
        return await _live(await turn_at(url, True), count)

    known = {"turns": turns, "event": event, "live": live, "render": histories.render, "hold": histories.hold}

    async def done(do: str, **order: Any) -> Any:
        async with asyncio.timeout(SECONDS):
            return await known[do](**order)

    with asyncio.Runner() as runner:
        for order in _orders():
            try:
                told: dict[str, Any] = {"value": runner.run(done(**order))}
            except Exception as error:
                told = {"error": f"{type(error).__name__}: {error}"[:300]}
            print(json.dumps(told), file=_answers, flush=True)


def _orders() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


_answers, sys.stdout = sys.stdout, sys.stderr  # some print greetings and warnings
