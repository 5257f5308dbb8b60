"""Submit an ask for a blocking caller, and cancel the ask if its caller is interrupted."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from actors.core.stream_events.ask_events import CompleteEvent, ErrorEvent
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.results import AskResult
from actors.errors import ActorsError
from actors.runtime.handle import Session
from actors.session.streams import AskStream

Prepare: TypeAlias = Callable[[], tuple[AskStream, Callable[[], Awaitable[None]]]]
"""A function that returns the stream of an ask, and the async function that submits the ask."""


class InterruptibleAsk:
    """An ask on the event loop's thread, which is cancelled if its blocking caller is interrupted.

    Args:
        session: The session of the ask.
        is_shared: True if the ask has a key. Other callers may wait for it, so an interrupt does not cancel it.
    """

    def __init__(self, session: Session, *, is_shared: bool = False) -> None:
        self._session, self._is_shared = session, is_shared
        self._stream: AskStream | None = None
        self._is_interrupted = False

    @property
    def has_begun(self) -> bool:
        """True if the ask is in flight or has ended."""
        return self._stream is not None and self._stream.has_begun

    def set_stream(self, stream: AskStream) -> None:
        """Set the ask's stream. The stream reports whether the ask has begun and ended."""
        self._stream = stream

    async def submit(self, prepare: Prepare) -> AskStream:
        """Submit the ask, and return its stream."""
        self._session._check_caller()
        stream, submit = prepare()
        self.set_stream(stream)
        try:
            await submit()
        except BaseException:
            stream.close()
            raise
        return stream

    async def interrupt(self) -> None:
        """Cancel this ask. If the ask is still queued, cancel it as soon as it begins; other asks continue."""
        stream = self._stream
        if stream is not None and not self._is_interrupted and not self._is_shared:
            self._is_interrupted = True
            await stream.wait_begun()
            if not stream.has_ended:
                with suppress(ActorsError):  # the session has ended
                    await self._session.cancel()

    async def outcome(self, prepare: Prepare) -> AskResult:
        """Submit the ask, and return its result when it has ended."""
        return await final_result(await self.submit(prepare))


async def final_result(events: AsyncIterator[SessionEvent]) -> AskResult:
    """Read all events of an ask, and return the result that the last event contains."""
    result: AskResult | None = None
    async for event in events:
        if isinstance(event, CompleteEvent | ErrorEvent):
            result = event.result
    assert result is not None  # if there is no final event, the loop above has raised the error of the stream
    return result
