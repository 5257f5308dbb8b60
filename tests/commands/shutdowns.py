"""Every way in which a program ends while a tool is in flight that does not want to: does it end, and what is left?

As a test each way is tried often inside one process (`tests/commands/test_shutdowns.py`). As a command each is tried in
processes of their own, which must exit:

    python -m tests.commands.shutdowns --count 200

A program is `python -m tests.commands.shutdowns --one WAY BACKEND TOOL...`. It ends with 0, and says nothing.
"""

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import anyio
import anyio.from_thread
import anyio.to_thread

from actors import Runtime
from actors.config import load
from actors.core.data.jsonio import dump
from actors.core.data.segments import Segments
from actors.testing import Call, OpenAIServer, Turn, serve
from actors.tools import Tool
from actors.transport import HttpTransport, Response, Timeouts, Transport
from tests.runtime.forked import beside
from tests.saying import say

PATIENCE = 60.0
"""Seconds until a program that has not ended is taken for one that never will."""

PAUSE = 0.01
"""Seconds of its loop that the tools of a program take each time they are told to end. Without that they would be told
ten thousand times a second, and the program would do nothing else."""

if TYPE_CHECKING:
    import trio

AnyTool = Tool[..., Any]  # Any: any function


@dataclass
class Program:
    """Runtimes with a tool in flight each, and what is done to them.

    Args:
        url: Where their model is.
        kinds: What their tools are like, one for each.
        transport: How they reach it.
    """

    url: str
    kinds: Sequence[str]
    transport: Callable[[], Transport] = HttpTransport
    released: threading.Event = field(default_factory=threading.Event)
    told: Callable[[], object] = lambda: None
    """Called when the first tool is told to end: by then its runtime is being left."""
    left: int = 0
    """Tasks that were left when all runtimes had been."""
    kept: list[object] = field(default_factory=list)
    """What must not be finalized before the event loop has ended."""
    _begun: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.config = load(None, {"OPENAI_BASE_URL": self.url})

    @property
    def begun(self) -> bool:
        """Whether every tool is in flight."""
        return len(self._begun) >= len(self.kinds)

    async def hold(self) -> None:
        """Hold the runtimes until something ends that, and count what is left of them."""
        before = tasks_living()
        try:
            if len(self.kinds) == 1:
                await self._one(self.kinds[0])
                return
            async with anyio.create_task_group() as tasks:
                for kind in self.kinds:
                    tasks.start_soon(self._one, kind)
        finally:
            self.left = len([name for name in tasks_living() - before if "once_begun" not in name])

    def runtime(self) -> Runtime:
        """Return a runtime, not entered yet."""
        return Runtime(self.config, transport=self.transport())

    async def _one(self, kind: str) -> None:
        """Hold one runtime while its tool runs."""
        async with self.runtime() as runtime:
            session = await runtime.open("openai:m", tools=[getattr(self, kind)()])
            async with session.stream("Begin."):
                await anyio.sleep_forever()

    def tell(self) -> None:
        """Say that a tool is told to end, the first time, and take a moment, each time."""
        told, self.told = self.told, lambda: None
        told()
        time.sleep(PAUSE / len(self.kinds))

    def waits(self) -> AnyTool:
        """Return a tool that ends when it is told to."""

        async def work() -> None:
            """Wait."""
            self._begun.append("")
            try:
                await anyio.sleep_forever()
            finally:
                self.tell()

        return offered(work)

    def swallows(self) -> AnyTool:
        """Return a tool that swallows its cancellation, each time."""

        async def work() -> None:
            """Go on."""
            self._begun.append("")
            while True:
                try:
                    await anyio.sleep_forever()
                except GeneratorExit:
                    raise
                except BaseException:
                    self.tell()

        return offered(work)

    def shields(self) -> AnyTool:
        """Return a tool that shields itself, and leaves a task group open besides."""

        async def background() -> None:
            self._begun.append(
                ""
            )  # before, a native cancellation would drop what has not begun, and Python warns
            await anyio.sleep_forever()

        async def work() -> None:
            """Go on."""
            group = anyio.create_task_group()
            await group.__aenter__()
            group.start_soon(background)
            with anyio.CancelScope(shield=True):
                await anyio.sleep_forever()

        return offered(work)

    def blocks(self) -> AnyTool:
        """Return a tool that blocks its thread."""

        def work() -> None:
            """Block."""
            self._begun.append("")
            self.released.wait()

        return offered(work)


def offered(function: Callable[[], object]) -> AnyTool:
    """Return a tool, at less cost than by reading its signature."""
    return Tool.from_schema("work", "Work.", {"type": "object"}, function)


def tasks_living() -> Counter[str]:
    """Return the tasks of the running loop, by name."""
    try:
        return Counter(f"{task.get_name()} {task.get_coro()!r}"[:200] for task in asyncio.all_tasks())
    except RuntimeError:
        import trio

        return Counter(task.name for task in _all(trio.lowlevel.current_root_task()))


def _all(task: "trio.lowlevel.Task | None") -> "Iterator[trio.lowlevel.Task]":
    if task is not None:
        yield task
        for nursery in task.child_nurseries:
            for child in nursery.child_tasks:
                yield from _all(child)


# --- ways to end ---------------------------------------------------------------------------------------


async def a_timeout_around(program: Program) -> None:
    """The block is cancelled by a timeout around it."""
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_once_begun, program, scope)
            await program.hold()


async def a_timeout_of_asyncio(program: Program) -> None:
    """The block is cancelled natively, as `asyncio.timeout` does, and again while it is being left."""
    task = asyncio.create_task(program.hold())
    program.told = task.cancel
    while not program.begun:
        await anyio.lowlevel.checkpoint()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def an_error(program: Program) -> None:
    """The block ends with an error."""
    with suppress(BaseExceptionGroup, ZeroDivisionError):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(program.hold)
            while not program.begun:
                await anyio.lowlevel.checkpoint()
            raise ZeroDivisionError


async def every_task_cancelled(program: Program) -> None:
    """A shutdown cancels every task, then waits for them."""
    task = asyncio.create_task(program.hold())
    while not program.begun:
        await anyio.lowlevel.checkpoint()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    assert task.done()


async def every_task_cancelled_twice(program: Program) -> None:
    """The same, and once more while the runtime is being left."""

    def cancel() -> None:
        for other in asyncio.all_tasks() - {main}:
            other.cancel()

    main = asyncio.current_task()
    program.told = cancel
    await every_task_cancelled(program)


async def an_interrupt(program: Program) -> None:
    """Ctrl-C."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_interrupt_once_begun, program)
        await program.hold()


async def two_interrupts(program: Program) -> None:
    """Ctrl-C, and again while the runtime is being left."""
    program.told = _interrupt
    await an_interrupt(program)


async def never_left(program: Program) -> None:
    """The runtime is entered and never left."""
    for kind in program.kinds:
        runtime = await program.runtime().__aenter__()
        session = await runtime.open("openai:m", tools=[getattr(program, kind)()])
        program.kept.append(stream := session.stream("Begin."))
        await stream.__aenter__()
    while not program.begun:
        await anyio.lowlevel.checkpoint()


async def _cancel_once_begun(program: Program, scope: anyio.CancelScope) -> None:
    while not program.begun:
        await anyio.lowlevel.checkpoint()
    scope.cancel()


async def _interrupt_once_begun(program: Program) -> None:
    while not program.begun:
        await anyio.lowlevel.checkpoint()
    _interrupt()


def _interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


BOTH = (a_timeout_around, an_error, an_interrupt, two_interrupts, never_left)
ASYNCIO = (a_timeout_of_asyncio, every_task_cancelled, every_task_cancelled_twice)
WAYS: dict[str, Callable[[Program], Awaitable[None]]] = {way.__name__: way for way in (*BOTH, *ASYNCIO)}
TOOLS = ("waits", "swallows", "shields", "blocks")
CASES = [
    *product([way.__name__ for way in BOTH], ("asyncio", "trio")),
    *product([way.__name__ for way in ASYNCIO], ("asyncio",)),
]


@contextmanager
def model() -> Iterator[str]:
    """Serve a model that calls the tool, from a thread of its own; give its address."""
    server = calling()
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve(server)),
    ):
        yield server.base_url


async def served() -> None:
    """Serve such a model; print its address."""
    async with serve(server := calling()):
        say(server.base_url)
        await anyio.to_thread.run_sync(sys.stdin.read)


def calling() -> OpenAIServer:
    """Return a server whose model calls the tool."""
    return OpenAIServer(lambda _: Turn(Call("work", {})))


class Calls:
    """A transport without a network: every answer is a call of the tool. Two hundred clients of HTTP take minutes."""

    BODY: ClassVar[bytes] = dump(
        {
            "id": "1",
            "object": "chat.completion",
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {"id": "c", "type": "function", "function": {"name": "work", "arguments": "{}"}}
                        ],
                    },
                }
            ],
        }
    )

    def __init__(self) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {}

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        """Answer."""
        yield self

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Give the answer."""
        yield self.BODY

    async def close(self) -> None:
        """Close nothing."""


def run(
    way: str, backend: str, url: str, kinds: Sequence[str], transport: Callable[[], Transport] = HttpTransport
) -> Program:
    """Run a program to its end, in this process."""
    program = Program(url, kinds, transport)
    try:
        anyio.run(WAYS[way], program, backend=backend)
    except* KeyboardInterrupt:  # trio's nurseries give it in a group
        pass
    return program


def main() -> int:
    """Try every way in processes of their own; say which did not end."""
    options = argparse.ArgumentParser(description="Every way to end, in processes of their own.")
    options.add_argument("--count", type=int, default=200, help="processes for each way and backend")
    options.add_argument("--workers", type=int, default=8, help="at the same time; they mostly wait")
    options.add_argument("--one", nargs="+", metavar="WAY BACKEND TOOL", help="be one of them")
    given = options.parse_args()
    logging.getLogger("actors").addHandler(logging.NullHandler())
    if given.one:
        way, backend, *kinds = given.one
        with model() as url:
            run(way, backend, url, kinds)
        return 0
    failures = list[str]()
    with beside(partial(anyio.run, served)) as printed:  # `model` has a thread, and what forks must have none
        url = printed.readline().strip()
        for way, backend in (("every_task_cancelled", "asyncio"), ("an_error", "trio")):
            run(way, backend, url, ["waits"])
        gc.collect()
        gc.freeze()
        for done in range(0, given.count, 10):
            times = min(10, given.count - done)
            failures += tried([(*case, url, TOOLS) for case in CASES] * times, given.workers)
            sys.stdout.write(f"{done + times} of {given.count} times: {len(failures)} failed\n")
            sys.stdout.flush()
    sys.stdout.write(("\n".join(failures) or "every program ended as it should") + "\n")
    return int(bool(failures))


Case: TypeAlias = tuple[str, str, str, Sequence[str]]


def tried(cases: Sequence[Case], workers: int) -> list[str]:
    """Fork a process for each case; return what was wrong with their ends.

    If a program was run before, on each backend, a fork has imported all there is to import; and what is frozen it does
    not look through at its end. These are what most of such a program's time goes to. It exits as any program does, by
    the end of its main module.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    waiting, running, failures = list(cases), dict[int, _Forked](), list[str]()
    while waiting or running:
        while waiting and len(running) < workers:
            forked = _Forked(waiting.pop())
            running[forked.pid] = forked
        signal.sigtimedwait({signal.SIGCHLD}, 1.0)
        for forked in list(running.values()):
            if forked.is_over:
                del running[forked.pid]
                failures += forked.problem
    return failures


class _Forked:
    """One process, from its fork to its end."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._until = time.monotonic() + PATIENCE
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed when it is over
        self.problem: list[str] = []
        self.pid = os.fork()
        if not self.pid:
            os.dup2(self._said.fileno(), 2)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            run(*case)
            sys.exit(0)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or been ended because it did not; `problem` says what was wrong with that."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid and time.monotonic() < self._until:
            return False
        if not pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self._said.seek(0)
        said = self._said.read().decode()
        self._said.close()
        if not pid or status or said:
            ended = (
                f"exit code {os.waitstatus_to_exitcode(status)}" if pid else f"did not end in {PATIENCE:g} s"
            )
            self.problem = [f"{' '.join(self._case[:2])}: {ended}\n{said}"]
        return True


def descriptors() -> int:
    """Return how many files, sockets and pipes this process has open."""
    return len(os.listdir("/proc/self/fd"))


if __name__ == "__main__":
    sys.exit(main())
