"""Where the events of an ask go: to a caller who waits for its result only, or to the reader of its stream."""

from collections.abc import Awaitable, Callable

import anyio

from actors.core.stream_events.events import (
    CompleteEvent,
    ErrorEvent,
    MessageEvent,
    ResyncEvent,
    SessionEvent,
    TextEvent,
    ThinkingEvent,
    droppable,
)
from actors.core.stream_events.results import AskResult
from actors.core.stream_events.round_text import RoundText
from actors.errors import ActorsError
from actors.kernel import Lost, Subscription
from actors.kernel.event_loop import event_loop, wake

BUFFER = 1024
"""Events a stream holds for a slow reader before it drops deltas."""


class AnswerSink:
    """How an ask comes out, for a caller who waits for no more than that."""

    is_watched = False

    def __init__(self, gone: Callable[[], ActorsError]) -> None:
        self._gone, self._ended = gone, event_loop().waiter()
        self._result: AskResult | None = None
        self._error: Exception | None = None

    async def outcome(self) -> AskResult:
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
        self._ended = self._is_closed = False
        self._seq = 0
        self._events: Subscription[SessionEvent] = Subscription(BUFFER, droppable=droppable)
        self._begun = event_loop().waiter()

    @property
    def has_begun(self) -> bool:
        """True if the ask is the one in flight, or was."""
        return self._begun.done()

    @property
    def has_ended(self) -> bool:
        """True if its last event is there, or none will come."""
        return self._terminal is not None or self._is_closed

    async def wait_begun(self) -> None:
        """Wait until the ask is the one in flight, or has ended. One task at a time may wait."""
        if not self.has_begun:
            await self._begun

    def put(self, event: SessionEvent) -> None:
        wake(self._begun)
        if isinstance(event, CompleteEvent | ErrorEvent):
            self._terminal = event
            self._events.close()
        else:
            self._events.put(event)

    def close(self, error: Exception | None = None) -> None:
        self._error, self._is_closed = self._error or error, True
        wake(self._begun)
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
                return ResyncEvent(self._seq, item.count)

    def _last(self) -> SessionEvent:
        """Return the terminal event once, then end."""
        if self._ended:
            raise StopAsyncIteration
        self._ended = True
        if self._terminal is None:
            raise self._error or self._gone()
        return self._terminal


BETWEEN = "\n\n"
"""Stands between the texts of two rounds, or of two backends."""


class TextStream:
    """The text of an answer as it arrives, as an async iterator of strings.

    Args:
        events: The ask's stream.
        begin: Submits the ask; called with the first step.
        checked: Raises `AskFailed` for a result that is one.
    """

    def __init__(
        self,
        events: AskStream,
        begin: Callable[[], Awaitable[None]],
        checked: Callable[[AskResult], AskResult],
    ) -> None:
        self._events, self._begin, self._checked = events, begin, checked
        self._round = RoundText()
        self._has_begun = False
        self._place: tuple[int, ...] = (0, 0)
        self.result: AskResult | None = None
        """How the ask came out, once its text has ended; None before."""

    def __aiter__(self) -> "TextStream":
        return self

    async def __anext__(self) -> str:  # no generator, as `AskStream` is none
        if not self._has_begun:
            await self._submit()
        while True:
            event = await anext(self._events)
            if isinstance(event, CompleteEvent | ErrorEvent):
                self.result = self._checked(event.result)
            elif text := self._text(event):
                return text

    async def aclose(self) -> None:
        """Stop reading. The turn goes on: `Session.cancel` stops it."""
        self._has_begun = True
        self._events.leave()

    async def _submit(self) -> None:
        self._has_begun = True
        try:
            await self._begin()
        except BaseException:
            self._events.close()
            self._events.leave()
            raise

    def _text(self, event: SessionEvent) -> str:
        """Return the text that an event brings. A round's message ends the round."""
        match event:
            case TextEvent() | ThinkingEvent():
                return self._separate(self._round.delta(event), event.turn, event.round)
            case MessageEvent(message=message):
                text = self._round.rest(message.text, broken=bool(event.error))
                return self._separate(text, event.turn, event.round)
            case _:
                return ""

    def _separate(self, text: str, *place: int) -> str:
        """Put a blank line before the first text of a round, if a text of another round came before."""
        if not text:
            return ""
        is_further = self._place not in ((0, 0), place)
        self._place = place
        return f"{BETWEEN}{text}" if is_further else text
