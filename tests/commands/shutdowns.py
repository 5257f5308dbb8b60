"""End a program in every possible way while an uncooperative tool is running: does it end, and is anything left?

As a test, each way is tried often inside one process (`tests/commands/test_shutdowns.py`). As a command, each is tried
in separate processes, which must exit:

    python -m tests.commands.shutdowns --count 200

A program is `python -m tests.commands.shutdowns --one WAY BACKEND TOOL...`. It exits with 0 and prints nothing.
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
from actors.core.data.persistent import Segments
from actors.testing import Call, OpenAIServer, Turn, serve
from actors.tools import Tool
from actors.transport import HttpTransport, Response, Timeouts, Transport
from tests.runtime.forked import run_in_fork
from tests.saying import say

PATIENCE = 60.0
"""Seconds after which a running program counts as hung."""

PAUSE = 0.01
"""Seconds of event loop time that the tools take at each cancellation. Without this, trio and asyncio would cancel them
ten thousand times a second, and the program would do nothing else.
"""

if TYPE_CHECKING:
    import trio

AnyTool = Tool[..., Any]  # Any: any function


@dataclass
class Program:
    """Runtimes with one running tool each, and the way to end them.

    Args:
        url: The address of their model.
        kinds: The kind of each tool.
        transport: The transport of the runtimes.
    """

    url: str
    kinds: Sequence[str]
    transport: Callable[[], Transport] = HttpTransport
    released: threading.Event = field(default_factory=threading.Event)
    told: Callable[[], object] = lambda: None
    """Called when the first tool is cancelled; by then its runtime is being left."""
    left: int = 0
    """The number of tasks that remained after all runtimes were left."""
    kept: list[object] = field(default_factory=list)
    """Objects that must not be finalized before the event loop has ended."""
    _begun: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.config = load(None, {"OPENAI_BASE_URL": self.url})

    @property
    def all_running(self) -> bool:
        """True if every tool is running."""
        return len(self._begun) >= len(self.kinds)

    async def hold(self) -> None:
        """Hold the runtimes until the program ends, and count the remaining tasks."""
        before = count_tasks()
        try:
            if len(self.kinds) == 1:
                await self._one(self.kinds[0])
                return
            async with anyio.create_task_group() as tasks:
                for kind in self.kinds:
                    tasks.start_soon(self._one, kind)
        finally:
            self.left = len([name for name in count_tasks() - before if "once_begun" not in name])

    def runtime(self) -> Runtime:
        """Return a runtime that is not entered yet."""
        return Runtime(self.config, transport=self.transport())

    async def _one(self, kind: str) -> None:
        """Hold one runtime while its tool runs."""
        async with self.runtime() as runtime:
            session = await runtime.open("openai:m", tools=[getattr(self, kind)()])
            async with session.stream("Begin."):
                await anyio.sleep_forever()

    def tell(self) -> None:
        """Call the callback at the first cancellation of a tool, and take a moment at each."""
        told, self.told = self.told, lambda: None
        told()
        time.sleep(PAUSE / len(self.kinds))

    def waits(self) -> AnyTool:
        """Return a tool that ends when it is cancelled."""

        async def work() -> None:
            """Wait."""
            self._begun.append("")
            try:
                await anyio.sleep_forever()
            finally:
                self.tell()

        return make_tool(work)

    def swallows(self) -> AnyTool:
        """Return a tool that swallows each cancellation."""

        async def work() -> None:
            """Continue."""
            self._begun.append("")
            while True:
                try:
                    await anyio.sleep_forever()
                except GeneratorExit:
                    raise
                except BaseException:
                    self.tell()

        return make_tool(work)

    def shields(self) -> AnyTool:
        """Return a tool that shields itself and leaves a task group open."""

        async def background() -> None:
            self._begun.append(
                ""
            )  # before it starts, a native cancellation would drop the coroutine, and Python warns
            await anyio.sleep_forever()

        async def work() -> None:
            """Continue."""
            group = anyio.create_task_group()
            await group.__aenter__()
            group.start_soon(background)
            with anyio.CancelScope(shield=True):
                await anyio.sleep_forever()

        return make_tool(work)

    def blocks(self) -> AnyTool:
        """Return a tool that blocks its thread."""

        def work() -> None:
            """Block."""
            self._begun.append("")
            self.released.wait()

        return make_tool(work)


def make_tool(function: Callable[[], object]) -> AnyTool:
    """Return a tool without the cost of inspecting a signature."""
    return Tool.from_schema("work", "Work.", {"type": "object"}, function)


def count_tasks() -> Counter[str]:
    """Return the tasks of the running loop, counted by name."""
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
    """The block is cancelled natively, as by `asyncio.timeout`, and again while it exits."""
    task = asyncio.create_task(program.hold())
    program.told = task.cancel
    while not program.all_running:
        await anyio.lowlevel.checkpoint()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def an_error(program: Program) -> None:
    """The block ends with an error."""
    with suppress(BaseExceptionGroup, ZeroDivisionError):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(program.hold)
            while not program.all_running:
                await anyio.lowlevel.checkpoint()
            raise ZeroDivisionError


async def every_task_cancelled(program: Program) -> None:
    """A shutdown cancels every task, then waits for them."""
    task = asyncio.create_task(program.hold())
    while not program.all_running:
        await anyio.lowlevel.checkpoint()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    assert task.done()


async def every_task_cancelled_twice(program: Program) -> None:
    """A shutdown cancels every task, and again while the runtime exits."""

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
    """Ctrl-C, twice; the second time while the runtime exits."""
    program.told = _interrupt
    await an_interrupt(program)


async def never_left(program: Program) -> None:
    """The runtime is entered and never exits."""
    for kind in program.kinds:
        runtime = await program.runtime().__aenter__()
        session = await runtime.open("openai:m", tools=[getattr(program, kind)()])
        program.kept.append(stream := session.stream("Begin."))
        await stream.__aenter__()
    while not program.all_running:
        await anyio.lowlevel.checkpoint()


async def _cancel_once_begun(program: Program, scope: anyio.CancelScope) -> None:
    while not program.all_running:
        await anyio.lowlevel.checkpoint()
    scope.cancel()


async def _interrupt_once_begun(program: Program) -> None:
    while not program.all_running:
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
    """Serve a model that calls the tool, in a separate thread; yield its address."""
    server = tool_caller()
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve(server)),
    ):
        yield server.base_url


async def serve_model() -> None:
    """Serve a model that calls the tool; print its address."""
    async with serve(server := tool_caller()):
        say(server.base_url)
        await anyio.to_thread.run_sync(sys.stdin.read)


def tool_caller() -> OpenAIServer:
    """Return a server with a model that calls the tool."""
    return OpenAIServer(lambda _: Turn(Call("work", {})))


class Calls:
    """A transport without a network: every answer calls the tool. Two hundred HTTP clients would take minutes."""

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
        """Answer with a call of the tool."""
        yield self

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the answer."""
        yield self.BODY

    async def close(self) -> None:
        """Do nothing."""


def run(
    way: str, backend: str, url: str, kinds: Sequence[str], transport: Callable[[], Transport] = HttpTransport
) -> Program:
    """Run a program to its end, in this process."""
    program = Program(url, kinds, transport)
    try:
        anyio.run(WAYS[way], program, backend=backend)
    except* KeyboardInterrupt:  # trio's nurseries raise it in a group
        pass
    return program


def main() -> int:
    """Try every way in separate processes; print the ones that failed."""
    options = argparse.ArgumentParser(description="Every way to end, in processes of their own.")
    options.add_argument("--count", type=int, default=200, help="processes for each way and backend")
    options.add_argument("--workers", type=int, default=8, help="at the same time; they mostly wait")
    options.add_argument("--one", nargs="+", metavar="WAY BACKEND TOOL", help="run one program")
    given = options.parse_args()
    logging.getLogger("actors").addHandler(logging.NullHandler())
    if given.one:
        way, backend, *kinds = given.one
        with model() as url:
            run(way, backend, url, kinds)
        return 0
    failures = list[str]()
    with run_in_fork(
        partial(anyio.run, serve_model)
    ) as printed:  # `model` starts a thread; a forking process must not
        url = printed.readline().strip()
        for way, backend in (("every_task_cancelled", "asyncio"), ("an_error", "trio")):
            run(way, backend, url, ["waits"])
        gc.collect()
        gc.freeze()
        for done in range(0, given.count, 10):
            times = min(10, given.count - done)
            failures += run_cases([(*case, url, TOOLS) for case in CASES] * times, given.workers)
            sys.stdout.write(f"{done + times} of {given.count} times: {len(failures)} failed\n")
            sys.stdout.flush()
    sys.stdout.write(("\n".join(failures) or "every program ended correctly") + "\n")
    return int(bool(failures))


Case: TypeAlias = tuple[str, str, str, Sequence[str]]


def run_cases(cases: Sequence[Case], workers: int) -> list[str]:
    """Fork a process for each case; return the problems.

    After a program has run on each backend, a fork needs no further imports, and frozen objects are skipped at its end.
    Most of a program's time goes to these two. A fork exits as any program does, at the end of its main module.
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
    """One forked process, until its end."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._until = time.monotonic() + PATIENCE
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed at the end of the process
        self.problem: list[str] = []
        self.pid = os.fork()
        if not self.pid:
            os.dup2(self._said.fileno(), 2)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            run(*case)
            sys.exit(0)

    @property
    def is_over(self) -> bool:
        """Return True once it has ended or was killed for not ending; `problem` then describes any failure."""
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
    """Return the number of open files, sockets and pipes of this process."""
    return len(os.listdir("/proc/self/fd"))


if __name__ == "__main__":
    sys.exit(main())
