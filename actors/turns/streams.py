"""Where the events of an ask go: to a caller who waits for its result only, or to the reader of its stream."""

from collections.abc import Callable

import anyio

from actors.core.feed import CompleteEvent, ErrorEvent, SessionEvent, StatusEvent, TurnResult, droppable
from actors.errors import ActorsError
from actors.kernel import Lost, Subscription
from actors.kernel.parking import parking, wake

BUFFER = 1024
"""Events a stream holds for a slow reader before it drops deltas."""


class AnswerSink:
    """How an ask comes out, for a caller who waits for no more than that."""

    is_watched = False

    def __init__(self, gone: Callable[[], ActorsError]) -> None:
        self._gone, self._ended = gone, parking().waiter()
        self._result: TurnResult | None = None
        self._error: Exception | None = None

    async def outcome(self) -> TurnResult:
        """Wait for it. Raises what the stream was closed with, or that the session has gone."""
        await self._ended
        if self._result is None:
            raise self._error or self._gone()
        return self._result

    def put(self, event: SessionEvent) -> None:
        if isinstance(event, CompleteEvent | ErrorEvent):
            self._result = event.result
            self.close()

    def close(self, error: Exception | None = None) -> None:
        self._error = self._error or error
        wake(self._ended)


class AskStream:
    """An ask's stream. The terminal event has a place of its own, so that no overflow can lose it."""

    is_watched = True

    def __init__(self, gone: Callable[[], ActorsError], check: Callable[[], None]) -> None:
        self._gone, self._check = gone, check
        self._terminal: CompleteEvent | ErrorEvent | None = None
        self._error: Exception | None = None
        self._ended = False
        self._seq = 0
        self._events: Subscription[SessionEvent] = Subscription(BUFFER, droppable=droppable)

    def put(self, event: SessionEvent) -> None:
        if isinstance(event, CompleteEvent | ErrorEvent):
            self._terminal = event
            self._events.close()
        else:
            self._events.put(event)

    def close(self, error: Exception | None = None) -> None:
        self._error = self._error or error
        self._events.close()

    def leave(self) -> None:
        self._events.leave()

    def __aiter__(self) -> "AskStream":
        return self

    async def __anext__(self) -> SessionEvent:  # no generator: one that is left early would have to be closed
        self._check()
        while True:
            try:
                item = await self._events.receive()
            except anyio.EndOfStream:
                return self._last()
            except anyio.ClosedResourceError:  # its block was left
                raise StopAsyncIteration from None
            if not isinstance(item, Lost):
                self._seq = getattr(item, "seq", None) or self._seq
                return item
            if item.resync:
                return StatusEvent("resync", self._seq, detail=f"{item.count} events were missed")

    def _last(self) -> SessionEvent:
        """Return the terminal event once, then end."""
        if self._ended:
            raise StopAsyncIteration
        self._ended = True
        if self._terminal is None:
            raise self._error or self._gone()
        return self._terminal
