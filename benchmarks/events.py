"""Measure the cost of one streamed event from the socket to the reader of the stream (B5).

The stub writes each event separately. So each event wakes the loop, is parsed as an HTTP chunk, a server-sent event and
a JSON document, is buffered as a delta, and wakes the reader. The baseline does the same with h11, a queue and asyncio.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import anyio
import h11

from actors.core.stream_events.round_events import TextEvent
from actors.runtime.runtime import Runtime
from benchmarks.by_hand import QUESTION, TOOLS, Client
from benchmarks.figures import Extent, Figure, Loop, Measure
from benchmarks.http import stub_config
from benchmarks.others import OtherLibraries
from benchmarks.stub import run_stub
from benchmarks.timing import Passes, async_calls, async_cpu_ms


async def _read_stream(runtime: Runtime, words: int) -> None:
    """Ask once and read every delta of the answer, which must have `words` deltas."""
    session = await runtime.open("stub")
    async with session.stream(QUESTION) as events:
        texts = sum([isinstance(event, TextEvent) async for event in events])
    assert texts == words, texts


async def _event_cost(url: str, words: int) -> tuple[float, float]:
    """Return the CPU microseconds and the number of Python calls per event of a session's stream."""
    async with Runtime(stub_config(url, stream=True)) as runtime:
        read = partial(_read_stream, runtime, words)
        await read()
        took = await async_cpu_ms(read)
        return took * 1e3 / words, await async_calls(read) / words


class _Listener(Client):
    """A hand-written client that forwards each event as it arrives."""

    async def listen(self, texts: "asyncio.Queue[str | None]") -> None:
        """Send one request and put each text of the answer into the queue, then None."""
        request = {"model": "model-1", "messages": [{"role": "user", "content": QUESTION}], "tools": TOOLS}
        body = json.dumps(request | {"stream": True}).encode()
        headers = [("host", "stub"), ("content-length", str(len(body)))]
        http = self._http
        opening = http.send(h11.Request(method="POST", target="/v1", headers=headers))
        await self._socket.send((opening or b"") + (http.send(h11.Data(data=body)) or b""))
        http.send(h11.EndOfMessage())
        while not isinstance(event := http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                http.receive_data(await self._socket.receive())
            elif isinstance(event, h11.Data):
                for line in bytes(event.data).split(b"\n\n"):
                    if text := _delta_text(line):
                        texts.put_nowait(text)
        http.start_next_cycle()
        texts.put_nowait(None)


def _delta_text(line: bytes) -> str | None:
    choices = json.loads(line[6:])["choices"] if line.startswith(b"data: {") else ()
    return choices[0]["delta"].get("content") if choices else None


async def _read_by_hand(listener: _Listener, words: int) -> None:
    texts: asyncio.Queue[str | None] = asyncio.Queue()
    task = asyncio.create_task(listener.listen(texts))
    count = 0
    while await texts.get() is not None:
        count += 1
    await task
    assert count == words, count


async def _baseline_cost(url: str, words: int) -> tuple[float, float]:
    listener = _Listener(url, stream=True)
    await listener.open()
    read = partial(_read_by_hand, listener, words)
    await read()
    took = await async_cpu_ms(read)
    calls = await async_calls(read)
    await listener.close()
    return took * 1e3 / words, calls / words


def _measure_b5(options: Extent) -> list[Figure]:
    passes, words = (3, 100) if options.quick else (5, 1000)
    with run_stub(words=words) as url:
        works: list[tuple[Loop, Callable[[], Awaitable[tuple[float, float]]]]]
        works = [("asyncio", partial(_baseline_cost, url, words))]
        works += [(backend, partial(_event_cost, url, words)) for backend in options.backends]
        others, samples = OtherLibraries(options.libraries), list[list[tuple[float, float]]]()
        for _ in range(passes):
            samples.append([anyio.run(work, backend=backend) for backend, work in works])
            others.measure_each(lambda library: library.event_us(url, words))
    taken = Passes.of([us for us, _ in costs] for costs in samples)
    calls = Passes.of([each for _, each in costs] for costs in samples).medians
    note = f"{words} events, each sent separately"
    row = Figure("B5", _QUESTION, "", "us", 1.6, note=note, baseline_calls=calls[0], peers=others.peers())
    return [
        taken.fill(replace(row, case=backend, calls=calls[work]), work, 0)
        for work, backend in enumerate(options.backends, 1)
    ]


_QUESTION = "one streamed event, from the socket to its reader"
MEASURES = (Measure("B5", _QUESTION, _measure_b5),)
