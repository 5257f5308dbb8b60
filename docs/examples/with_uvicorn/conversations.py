"""Conversations for a web application, whatever its framework."""

import asyncio
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from types import FrameType
from typing import TypeVar

from actors import ActorsError, AskFailed, Runtime
from actors.errors import KernelError, OverBudget, QueueFull, SessionClosed, TooManySessions
from actors.events import sse_frame

TARGET = "openai:gpt-5.2"
Piece = TypeVar("Piece")
QUIET = 15.0  # seconds after which a comment keeps the connection of a silent stream open


class Conversations:
    """What the handlers use. Each names a conversation by its id; nobody has to know whether it exists yet."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def answer(self, name: str, message: str) -> str:
        async with self._runtime.open(TARGET, id=name, resume=True) as session:
            result = await session.ask(message)
        if result.status != "complete":  # such as cancelled, because the server ends
            raise SessionClosed(f"no answer: the ask was {result.status}")
        return result.text

    async def text(self, name: str, message: str) -> AsyncGenerator[str]:
        """The answer as it arrives. A client that leaves does not stop it."""
        async with self._runtime.open(TARGET, id=name, resume=True) as session:
            async for piece in session.stream_text(message):
                yield piece

    async def events(self, name: str, after: int = 0) -> AsyncGenerator[bytes]:
        """Server-sent events of a conversation, from number `after` on, until the client or the server goes."""
        async with self._runtime.open(TARGET, id=name, resume=True) as session:
            events = session.events(after)
            yield b": open\n\n"
            while True:
                try:
                    async with asyncio.timeout(QUIET):
                        event = await anext(events)
                except TimeoutError:
                    yield b": still here\n\n"
                except (StopAsyncIteration, SessionClosed):
                    return
                else:
                    yield sse_frame(event)


async def begun(pieces: AsyncGenerator[Piece]) -> AsyncIterator[Piece]:
    """Wait for the first piece, so that what fails before it is a response with a status of its own."""
    try:
        first = await anext(pieces)
    except StopAsyncIteration:
        return pieces

    async def stream() -> AsyncIterator[Piece]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    return stream()


def http_status(error: ActorsError) -> int:
    """The status of a response for an error. Its text may be shown: it has no secrets."""
    if isinstance(error, AskFailed):
        return 503 if error.can_retry else 502
    if isinstance(error, QueueFull | TooManySessions | OverBudget):
        return 429
    return 503 if isinstance(error, KernelError | SessionClosed) else 500


@asynccontextmanager
async def conversations(journal: str) -> AsyncIterator[Conversations]:
    """For the lifespan of the application.

    A server that is told to end waits for open responses first, and a stream of events has no end of its own. So the
    runtime is left as soon as the signal comes: that ends every ask and every stream, and the server has nothing to
    wait for.
    """
    ending, started = asyncio.Event(), asyncio.Event()
    call_at_signal(ending.set)
    running: list[Runtime] = []

    async def host() -> None:  # a runtime is left by the task that entered it
        async with Runtime(journal=journal) as runtime:
            running.append(runtime)
            started.set()
            await ending.wait()

    hosting = asyncio.create_task(host())
    hosting.add_done_callback(lambda _task: started.set())
    await started.wait()
    if not running:
        await hosting  # it could not be entered: this raises why
    try:
        yield Conversations(running[0])
    finally:
        ending.set()
        await hosting


def call_at_signal(function: Callable[[], object]) -> None:
    """Call a function when the process is told to end, before the server does what it does then."""
    loop = asyncio.get_running_loop()

    def chain(number: signal.Signals) -> None:
        server = signal.getsignal(number)

        def handle(received: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(function)
            if callable(server):
                server(received, frame)

        signal.signal(number, handle)

    for each in (signal.SIGTERM, signal.SIGINT):
        chain(each)
