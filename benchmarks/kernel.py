"""Measure actors without a conversation (K1).

ask   send one query and get its reply; baseline: a queue and a future on the same loop. An idle receiver replies on
the caller's stack; a busy receiver leaves each query in its mailbox until the next iteration of the loop
tell  send one command and handle it
idle  resident bytes of an actor that has handled a message
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import anyio

from actors.kernel import Actor, Command, Context, Query, Ref, System
from benchmarks.figures import Extent, Figure, Loop, Measure
from benchmarks.memory import resident
from benchmarks.timing import Passes, async_calls, async_cpu_ms

TELL_US = 1e6 / 1_000_000


class Question(Query[None], frozen=True):
    """A query with an empty answer."""


class Tell(Command, frozen=True):
    """A command without an effect."""


class Echo(Actor[Question | Tell]):
    """An actor that replies at once."""

    def receive(self, command: Question | Tell) -> None:
        if isinstance(command, Question):
            command.reply.send(None)


class BusyEcho(Actor[Question | Tell]):
    """An actor that is busy after each reply, until the next iteration of the loop."""

    def on_start(self, context: Context[Question | Tell]) -> None:
        self._context = context

    def receive(self, command: Question | Tell) -> None:
        if isinstance(command, Question):
            command.reply.send(None)
            self._context.hold_messages()
            self._context.system.loop.next(self._context.release_messages)


async def _ask_repeatedly(ref: Ref[Question | Tell], count: int) -> None:
    for _ in range(count):
        await ref.ask(Question())


async def _tell_repeatedly(ref: Ref[Question | Tell], count: int) -> None:
    tell = Tell()
    for _ in range(count):
        await ref.send(tell)
    await ref.ask(Question())


# ---- the baselines


async def _asyncio_baseline(count: int) -> None:
    questions: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue(256)

    async def answer() -> None:
        while True:
            (await questions.get()).set_result(None)

    loop = asyncio.get_running_loop()
    answering = asyncio.create_task(answer())
    for _ in range(count):
        future: asyncio.Future[None] = loop.create_future()
        await questions.put(future)
        await future
    answering.cancel()


async def _trio_baseline(count: int) -> None:
    import trio

    sender, receiver = trio.open_memory_channel[trio.Event](256)

    async def answer() -> None:
        async for event in receiver:
            event.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        for _ in range(count):
            event = trio.Event()
            await sender.send(event)
            await event.wait()
        await sender.aclose()


_BASELINES: dict[Loop, Callable[[int], Awaitable[None]]] = {
    "asyncio": _asyncio_baseline,
    "trio": _trio_baseline,
}
_BASELINE_NOTES = {"asyncio": "asyncio.Queue and a future", "trio": "trio's memory channel and an event"}


async def _calls_per_ask() -> float:
    """Return the number of Python calls per ask of an idle actor."""
    async with System() as system:
        ref = system.spawn(Echo, "echo")
        return await async_calls(partial(_ask_repeatedly, ref, 1000)) / 1000


async def _message_costs_us(backend: Loop, passes: int, count: int) -> Passes:
    """Return the CPU microseconds of four works: an ask, its baseline, a tell, and an ask of a busy actor."""
    samples = []
    async with System() as system:
        ref = system.spawn(Echo, "echo")
        busy = system.spawn(BusyEcho, "busy")
        works = (
            partial(_ask_repeatedly, ref, count),
            partial(_BASELINES[backend], count),
            partial(_tell_repeatedly, ref, 20 * count),
            partial(_ask_repeatedly, busy, count),
        )
        for _ in range(passes):
            ask, baseline, tell, waits = [await async_cpu_ms(work) for work in works]
            samples.append([each * 1e3 / count for each in (ask, baseline, tell / 20, waits)])
    return Passes.of(samples)


async def _idle_actor_bytes(count: int) -> float:
    """Return the resident bytes of an actor that has handled a message."""
    async with System() as system:
        gc.collect()
        before = resident()
        for number in range(count):
            await system.spawn(Echo, f"echo/{number}").ask(
                Question()
            )  # an ask, because tells would fill mailboxes until the loop's next turn
        gc.collect()
        return (resident() - before) / count


def _measure_k1(options: Extent) -> list[Figure]:
    passes, count = (5, 1000) if options.quick else (15, 5000)
    return [row for backend in options.backends for row in _kernel_rows(backend, passes, count)]


def _kernel_rows(backend: Loop, passes: int, count: int) -> list[Figure]:
    taken = anyio.run(_message_costs_us, backend, passes, count, backend=backend)
    tell = taken.medians[2]
    ask = Figure(
        "K1",
        "an ask of an idle actor",
        backend,
        "us",
        0.4,
        note=f"baseline: {_BASELINE_NOTES[backend]}",
        calls=anyio.run(_calls_per_ask, backend=backend),
    )
    waits = replace(ask, question="an ask of a busy actor", limit=1.15, calls=None)
    tell_row = Figure("K1", "a tell", backend, "us", TELL_US, note=f"{1e6 / tell:,.0f} a second")
    held = anyio.run(_idle_actor_bytes, 20 * count, backend=backend) / 1024
    idle = Figure("K1", "an idle actor", backend, "KiB", 0.5, held, note=f"{20 * count:,} actors")
    return [taken.fill(ask), taken.fill(waits, 3), taken.fill(tell_row, 2, None), idle]


MEASURES = (Measure("K1", "asks, tells and idle actors", _measure_k1),)
