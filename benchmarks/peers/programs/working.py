"""What every program here shares: the tool, the question, and the loop that takes orders on standard input.

An order is a line of JSON, and so is its answer: `{"ms": 12.3}`, CPU milliseconds of this process, or `{"error": ...}`.

    {"do": "turns", "url": ..., "stream": false, "count": 20}    a turn, as a mean
    {"do": "render", "path": ..., "more": true}                  a history as JSON, or with 8 messages more

This file is run by each library's own environment, so it imports nothing but the standard library.
"""

import asyncio
import gc
import inspect
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

QUESTION, RESULT, ANSWER = json.loads(sys.argv[1]) if len(sys.argv) > 1 else ("", "", "")
CALLS = 5
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


async def _measured(turn: Turn, count: int) -> float:
    await _made(turn, WARM)
    gc.collect()
    gc.freeze()
    began = time.process_time()
    await _made(turn, count)
    took = (time.process_time() - began) * 1e3 / count
    gc.unfreeze()
    return took


async def _made(turn: Turn, count: int) -> None:
    ran.clear()
    for _ in range(count):
        if (answer := await turn()) != ANSWER:
            raise ValueError(f"the answer is {answer!r}")
    if len(ran) != count * CALLS:
        raise ValueError(f"{len(ran)} calls ran in {count} turns")


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


def _results(messages: list[Any]) -> int:
    return sum(message["role"] == "tool" for message in messages)


def serve(prepared: Callable[[str, bool], Awaitable[Turn]], histories: Histories) -> None:
    """Take orders until standard input ends. What a library keeps for an address is made once."""
    turns: dict[tuple[str, bool], Turn] = {}

    async def measured(url: str, stream: bool, count: int) -> float:
        if (url, stream) not in turns:
            turns[url, stream] = await prepared(url, stream)
        return await _measured(turns[url, stream], count)

    async def done(do: str, **order: Any) -> float:
        async with asyncio.timeout(SECONDS):
            return await (histories.render(**order) if do == "render" else measured(**order))

    with asyncio.Runner() as runner:
        for order in _orders():
            try:
                told: dict[str, Any] = {"ms": runner.run(done(**order))}
            except Exception as error:
                told = {"error": f"{type(error).__name__}: {error}"[:300]}
            print(json.dumps(told), file=_answers, flush=True)


def _orders() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


_answers, sys.stdout = sys.stdout, sys.stderr  # some print greetings and warnings
