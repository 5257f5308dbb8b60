"""The two ways an answer arrives, over one reader a dialect.

A reader knows its dialect: what one event of the stream means, and what one whole body means. It feeds an
`Assembly`. The decoder adds what all dialects share: a stream without its end marker is a fault and never a success, a
reason to stop may be a failure, what follows the end is ignored, and after a fault every further call raises it again.
"""

from abc import ABC, abstractmethod
from typing import NoReturn, Protocol

from actors.adapters.assembly import Assembly
from actors.adapters.classify import cut, in_answer, unfinished
from actors.adapters.failure import AnswerFault, broken
from actors.adapters.sse import DONE, ServerEvent
from actors.adapters.wire import Fields, loaded
from actors.core.content import Message
from actors.core.dialect import Dialect
from actors.core.stream import Cut, Decoder, StreamEvent, Usage
from actors.errors import StreamFault

MAX_ANSWER = 32 * 1024 * 1024  # bytes


class AnswerReader(ABC):
    """One dialect's understanding of an answer. Raises nothing but `StreamFault`."""

    def __init__(self, assembly: Assembly, dialect: Dialect) -> None:
        self.assembly = assembly
        self.ended = False  # whether the dialect's end marker was read
        self._dialect = dialect

    @abstractmethod
    def event(self, name: str, payload: Fields) -> None:
        """Take one event of a stream. Sets `ended` at the dialect's end marker."""

    @abstractmethod
    def body(self, body: Fields) -> None:
        """Take a whole answer."""

    def done(self) -> None:  # noqa: B027  most need do nothing
        """Take `[DONE]`. Relays send it in any dialect, so by itself it says nothing."""

    def report(self, payload: Fields) -> NoReturn:
        """Raise the error that an answer reports."""
        raise AnswerFault(in_answer(payload, self._dialect))


class Frames(Protocol):
    """Splits the bytes of a stream into events."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes. Raises StreamFault for bytes that are no such stream."""

    def close(self) -> list[ServerEvent]:
        """Return what the end of the stream completes."""


class AnswerDecoder(Decoder):
    """Decodes one answer: a stream, which `frames` splits into events, or without them one JSON document.

    Nothing is known of a document before its last byte, so its events are in `late`.
    """

    def __init__(self, reader: AnswerReader, frames: Frames | None) -> None:
        self.usage = Usage()
        self.finish_reason: str | None = None
        self.late = []
        self.withheld: tuple[str, ...] = ()
        self.left_out = {}
        self._reader = reader
        self._frames = frames
        self._document: list[bytes] = []
        self._fault: StreamFault | None = None
        self._closed = False
        self._size = 0

    @property
    def ended(self) -> bool:
        return self._reader.ended

    @property
    def cut(self) -> Cut | None:
        return cut(self.finish_reason or "")

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        if self._fault is None and (self._reader.ended or self._closed):
            return []
        return self._read(chunk)

    def close(self) -> Message:
        if not self._closed:
            self._closed = True
            self.late = self._read(None)
        if self._fault is not None:
            raise self._fault
        return self._reader.assembly.message()

    def partial_message(self) -> Message:
        return self._reader.assembly.partial_message()

    def _read(self, chunk: bytes | None) -> list[StreamEvent]:
        """Read bytes, or the end. A fault is remembered, so that every further call raises it."""
        if self._fault is not None:
            raise self._fault
        assembly = self._reader.assembly
        try:
            if chunk is None:
                self._finish()
            else:
                self._take(chunk)
        except StreamFault as fault:
            self._fault = fault
            raise
        finally:
            self.usage, self.finish_reason = assembly.usage, assembly.finish_reason
            self.withheld, self.left_out = assembly.withheld, assembly.left_out
        return assembly.take()

    def _take(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > MAX_ANSWER:
            raise broken(f"the answer is larger than {MAX_ANSWER} bytes")
        if self._frames is None:
            self._document.append(chunk)
        else:
            self._events(self._frames.feed(chunk))

    def _events(self, events: list[ServerEvent]) -> None:
        for event in events:
            if self._reader.ended:
                return
            data = event.data.strip()
            if data == DONE:
                self._reader.done()
            elif data:
                self._reader.event(event.name, _document(data, "an event of the stream"))

    def _finish(self) -> None:
        if self._frames is None:
            text = b"".join(self._document).decode("utf-8-sig", "replace")
            self._document.clear()
            self._reader.body(_document(text, "the body"))
        elif not self._reader.ended:
            self._events([event for event in self._frames.close() if _is_whole(event.data)])
            if not self._reader.ended:
                raise broken("the stream ended without its end marker")
        _judge_end(self._reader.assembly)


def _judge_end(assembly: Assembly) -> None:
    """Raise the failure that the reason to stop stands for, unless there is an answer all the same.

    What was only cut short stands as far as it came, and calls are calls whatever the reason. Words beside a call that
    the model could not write are no answer.
    """
    failure = unfinished(assembly.finish_reason or "")
    if failure is None:
        return
    stands = {"transcript": False, "model_fault": assembly.calls}.get(failure.kind, assembly.says)
    if not stands:
        raise AnswerFault(failure)


def _is_whole(data: str) -> bool:
    """Say whether the event at the end of a stream is more than the beginning of one."""
    try:
        return data == DONE or loaded(data) is not None
    except ValueError:
        return False


def _document(text: str, what: str) -> Fields:
    """Return the JSON object that `text` is, alone or in a list of its own, as some relays wrap errors.

    Raises:
        StreamFault: It is none. The message quotes nothing of it.
    """
    try:
        value = loaded(text)
    except ValueError:
        raise broken(f"{what} is not JSON ({len(text)} characters)") from None
    if type(value) is list and len(value) == 1:
        value = value[0]
    if type(value) is not dict:
        raise broken(f"{what} is not a JSON object")
    return value
