"""Conversations for a web application, independent of its framework."""

import asyncio
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from types import FrameType
from typing import TypeVar

from actors import Runtime
from actors.errors import SessionClosed
from actors.events import sse_frame

TARGET = "openai:gpt-5.2"
Piece = TypeVar("Piece")
QUIET = 15.0  # seconds of silence after which a comment keeps a stream's connection open


class Conversations:
    """The operations of the request handlers. Each opens, resumes or creates the conversation with an id."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def answer(self, name: str, message: str) -> str:
        async with self._runtime.open(TARGET, id=name, resume=True) as session:
            result = await session.ask(message)
        if result.status != "complete":  # for example cancelled by a shutdown
            raise SessionClosed(f"no answer: the ask was {result.status}")
        return result.text

    async def text(self, name: str, message: str) -> AsyncGenerator[str]:
        """Yield the answer as it arrives. A client that disconnects does not stop the turn."""
        async with self._runtime.open(TARGET, id=name, resume=True) as session:
            async for piece in session.stream_text(message):
                yield piece

    async def events(self, name: str, after: int = 0) -> AsyncGenerator[bytes]:
        """Yield the server-sent events after number `after`, until the client disconnects or the server stops."""
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


async def after_first_piece(pieces: AsyncGenerator[Piece]) -> AsyncIterator[Piece]:
    """Wait for the first piece, so that an earlier failure still determines the status of the response."""
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


@asynccontextmanager
async def conversations(journal: str) -> AsyncIterator[Conversations]:
    """Run a runtime for the lifespan of the application.

    At shutdown, a server first waits for open responses, but an event stream never ends by itself. So the runtime is
    left as soon as the signal arrives. That ends every ask and every stream, and the server has nothing to wait for.
    """
    ending, started = asyncio.Event(), asyncio.Event()
    call_at_signal(ending.set)
    running: list[Runtime] = []

    async def host() -> None:  # the task that enters a runtime must leave it
        async with Runtime(journal=journal) as runtime:
            running.append(runtime)
            started.set()
            await ending.wait()

    hosting = asyncio.create_task(host())
    hosting.add_done_callback(lambda _task: started.set())
    await started.wait()
    if not running:
        await hosting  # raises the error that prevented the start
    try:
        yield Conversations(running[0])
    finally:
        ending.set()
        await hosting


def call_at_signal(function: Callable[[], object]) -> None:
    """Call a function at SIGTERM and SIGINT, before the server's own handler."""
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
