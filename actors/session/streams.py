"""Receive the events of an ask, for callers that await only the result and for readers of a stream."""

from collections.abc import Awaitable, Callable

import anyio

from actors.core.stream_events.ask_events import AskResult, CompleteEvent, ErrorEvent
from actors.core.stream_events.events import ResyncEvent, SessionEvent, is_droppable
from actors.core.stream_events.round_events import MessageEvent, RoundTextAssembler, TextEvent, ThinkingEvent
from actors.errors import ActorsError
from actors.kernel import LostItems, Subscription
from actors.kernel.event_loop import event_loop, wake

BUFFER = 1024
"""Maximum number of events that a stream buffers for a slow reader before it drops deltas."""


class AnswerSink:
    """A sink that keeps the result of an ask and ignores all other events.

    `ended_error` returns the error to raise if the session ended before the ask had a result.
    """

    is_watched = False

    def __init__(self, ended_error: Callable[[], ActorsError]) -> None:
        self._ended_error, self._ended = ended_error, event_loop().waiter()
        self._result: AskResult | None = None
        self._error: Exception | None = None

    async def outcome(self) -> AskResult:
        """Wait for the result of the ask and return it.

        If the sink was closed with an error, raise that error. If it was closed without an error, raise the error that
        `ended_error` returns.
        """
        await self._ended
        if self._result is None:
            raise self._error or self._ended_error()
        return self._result

    def put(self, event: SessionEvent) -> None:
        if isinstance(event, CompleteEvent | ErrorEvent):
            self._result = event.result
            self.close()

    def close(self, error: Exception | None = None) -> None:
        self._error = self._error or error
        wake(self._ended)


class AskStream:
    """The event stream of an ask.

    The terminal event is kept outside the buffer, so that no overflow can drop it.

    Args:
        ended_error: Returns the error to raise if the session ended before the ask had a result.
        check_reader: Raises an error if the reader runs in a foreign thread or event loop.
    """

    is_watched = True

    def __init__(self, ended_error: Callable[[], ActorsError], check_reader: Callable[[], None]) -> None:
        self._ended_error, self._check = ended_error, check_reader
        self._terminal: CompleteEvent | ErrorEvent | None = None
        self._error: Exception | None = None
        self._ended = self._is_closed = False
        self._seq = 0
        self._events: Subscription[SessionEvent] = Subscription(BUFFER, droppable=is_droppable)
        self._begun = event_loop().waiter()

    @property
    def has_begun(self) -> bool:
        """True if the ask is in flight or has ended."""
        return self._begun.done()

    @property
    def has_ended(self) -> bool:
        """True if the terminal event has arrived, or the stream was closed without a terminal event."""
        return self._terminal is not None or self._is_closed

    async def wait_for_room(self, events: int) -> None:
        """Wait until the buffer has room for this many events, or until the reader stops reading."""
        await self._events.wait_for_room(events)

    async def wait_begun(self) -> None:
        """Wait until the ask is in flight or has ended. Only one task may wait at a time."""
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

    def close_reader(self) -> None:
        self._events.close_reader()

    def __aiter__(self) -> "AskStream":
        return self

    # This is not a generator, because a reader that stops early would have to close a generator.
    async def __anext__(self) -> SessionEvent:
        self._check()
        while True:
            try:
                item = await self._events.receive()
            except anyio.EndOfStream:
                return self._end_of_stream()
            except anyio.ClosedResourceError:  # the reader has exited the `async with` block
                raise StopAsyncIteration from None
            if not isinstance(item, LostItems):
                self._seq = getattr(item, "seq", None) or self._seq  # only durable events have a number
                return item
            if item.resync:
                return ResyncEvent(self._seq, item.count)

    def _end_of_stream(self) -> SessionEvent:
        """Return the terminal event on the first call, and raise `StopAsyncIteration` on later calls.

        If the stream was closed without a terminal event, the first call raises the error with which the ask or the
        session ended.
        """
        if self._ended:
            raise StopAsyncIteration
        self._ended = True
        if self._terminal is None:
            raise self._error or self._ended_error()
        return self._terminal


BETWEEN = "\n\n"
"""Separates the text of an answer from the text of an earlier round or backend."""


class TextStream:
    """The text of an answer while it arrives, as an async iterator of strings.

    Args:
        events: The event stream of the ask.
        submit: Submits the ask. The first iteration calls this function.
        check_result: Returns a result unchanged, or raises `AskFailed` if the ask failed.
    """

    def __init__(
        self,
        events: AskStream,
        submit: Callable[[], Awaitable[None]],
        check_result: Callable[[AskResult], AskResult],
    ) -> None:
        self._events, self._begin, self._checked = events, submit, check_result
        self._round = RoundTextAssembler()
        self._has_begun = False
        self._place: tuple[int, ...] = (0, 0)
        self.result: AskResult | None = None
        """The result of the ask, set when the text is complete."""

    def __aiter__(self) -> "TextStream":
        return self

    # This is not a generator, because a reader that stops early would have to close a generator.
    async def __anext__(self) -> str:
        if not self._has_begun:
            await self._submit()
        while True:
            event = await anext(self._events)
            if isinstance(event, CompleteEvent | ErrorEvent):
                self.result = self._checked(event.result)
            elif text := self._new_text(event):
                return text

    async def aclose(self) -> None:
        """Stop reading. The turn continues, unless `Session.cancel` stops the turn."""
        self._has_begun = True
        self._events.close_reader()

    async def _submit(self) -> None:
        """Submit the ask. If that fails, close the event stream."""
        self._has_begun = True
        try:
            await self._begin()
        except BaseException:
            self._events.close()
            self._events.close_reader()
            raise

    def _new_text(self, event: SessionEvent) -> str:
        """Return the new text in an event, or an empty string.

        The message at the end of a round supplies the text of missed deltas.
        """
        match event:
            case TextEvent() | ThinkingEvent():
                return self._with_separator(self._round.add_delta(event), event.turn, event.round)
            case MessageEvent(message=message):
                text = self._round.end_round(message.text, interrupted=bool(event.error))
                return self._with_separator(text, event.turn, event.round)
            case _:
                return ""

    def _with_separator(self, text: str, *turn_and_round: int) -> str:
        """Put a blank line before the first text of a round, if other text precedes it.

        `turn_and_round` contains the numbers of the turn and the round.
        """
        if not text:
            return ""
        is_further = self._place not in ((0, 0), turn_and_round)
        self._place = turn_and_round
        return f"{BETWEEN}{text}" if is_further else text
