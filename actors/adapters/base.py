"""A decoder of one answer: bytes cut anywhere in, events and a message out.

A family says what an event of its stream means, and what a whole body means. What all of them share is here: a stream
without its end marker is a fault and never a success, a reason to stop may be a failure, what follows the end is
ignored, and after a fault every further call raises it again.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import ClassVar, NoReturn, Protocol

from actors.adapters.arriving import Words
from actors.adapters.assembly import MessageBuilder
from actors.adapters.classify import in_answer, unfinished
from actors.adapters.document import MAX_VALUES, LongText, TooManyValues, load_document, loaded
from actors.adapters.failure import AnswerFault, broken
from actors.adapters.framing import DONE, EventParser, ServerEvent
from actors.adapters.wire import Fields, Long, LongJson, argument_text
from actors.core.values.content import Message
from actors.core.values.stream import StreamEvent
from actors.errors import StreamFault

_LARGE = 1024 * 1024  # bytes of an answer from which no copy of an argument is made that need not be
MAX_ANSWER = 32 * 1024 * 1024
"""Bytes of an answer, unless a backend's `limits.answer_bytes` says otherwise."""


class Frames(Protocol):
    """Splits the bytes of a stream into events. Raises StreamFault for bytes that are no such stream.

    `max_event`: bytes of one event.
    """

    def __init__(self, max_event: int) -> None: ...

    def feed(self, chunk: bytes) -> Sequence[ServerEvent]: ...

    def close(self) -> Sequence[ServerEvent]: ...


@dataclass(eq=False)
class Decoder(MessageBuilder, ABC):
    """Feed it bytes, read events, close it once. `actors.adapters.codec` makes one.

    Attributes:
        max_bytes: Of the answer, as it is on the wire; one that is larger is a fault.
        ended: Whether the dialect's end marker was read: what follows it is not part of the answer.
        late: What became known only by `close`.
    """

    frames: ClassVar[type[Frames]] = EventParser
    stream: bool = field(default=True, kw_only=True)
    max_bytes: int = field(default=MAX_ANSWER, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ended = False
        self.late: Iterable[StreamEvent] = ()
        self._parser = self.framing() if self.stream else None
        self._written = BytesIO()  # of a body
        self._size = 0
        self._fault: StreamFault | None = None
        self._closed = self._is_at_end = False

    def framing(self) -> Frames:
        """Return a new parser of the framing of the dialect's streams; one event may be as large as the answer."""
        return self.frames(self.max_bytes)

    @abstractmethod
    def event(self, name: str, payload: Fields) -> None:
        """Take one event of a stream. Sets `ended` at the dialect's end marker. Raises nothing but `StreamFault`."""

    @abstractmethod
    def body(self, body: Fields) -> None:
        """Take a whole answer. Raises nothing but `StreamFault`."""

    def done(self) -> None:
        """Take `[DONE]`. Relays send it in any dialect, so by itself it says nothing."""

    def stream_end(self) -> None:
        """Take the end of a stream that has no end marker. Sets `ended` if the answer may end there."""

    def arguments(self, value: object) -> str | Long:
        """Return arguments as text that are given as text, or as a value: each where the other is documented."""
        if self._size < _LARGE or not value or isinstance(value, str | LongText):
            return argument_text(value)
        return LongJson(value)

    def report(self, payload: Fields) -> NoReturn:
        """Raise the error that an answer reports."""
        raise AnswerFault(in_answer(payload, self.dialect))

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """Take bytes cut anywhere and return what became known. What follows the end is ignored.

        `Usage` events carry the figures so far: the last one counts, they are not to be summed.

        Raises:
            StreamFault: The provider reported an error inside the answer, it is larger than an answer may be, or the
                bytes are no stream of this dialect. Deltas of the same chunk are lost; what they said is in
                `partial_message`.
        """
        if self._fault is not None:
            raise self._fault
        if self.ended or self._closed:
            return []
        try:
            self._size += len(chunk)
            if self._size > self.max_bytes:
                raise broken(f"the answer is larger than {self.max_bytes} bytes", "too_long")
            if self._parser is None:
                self._written.write(chunk)
            else:
                self._read(self._parser.feed(chunk))
        except StreamFault as fault:
            self._fault = fault
            raise
        return self.take()

    def end_response(self) -> str:
        """Read the end of a response, and return by which token the provider goes on; empty if the answer ends here.

        `resume` then reads the next response as a part of the same answer; `close` ends it in any case.

        Raises:
            StreamFault: As `close`, for the bytes.
        """
        try:
            self._end()
        except StreamFault as fault:
            self._fault = fault
            raise
        return self.continuation

    def resume(self, *, stream: bool) -> None:
        """Begin to read a response that goes on with the answer, streamed or as one document."""
        self._parser = self.framing() if stream else None
        self._usage_before, self._figures = self.usage, {}
        self.continuation, self.finish_reason = "", None
        self.ended = self._is_at_end = False
        if self._parts and isinstance(last := self._parts[-1], Words):
            last.done = last.seal is not None

    def close(self) -> Message:
        """Return the model's message. Events of the last bytes are in `late`.

        Raises:
            StreamFault: The answer ended without the dialect's end marker, or for a reason that leaves no answer,
                or had failed before.
        """
        if not self._closed and self._fault is None:
            try:
                self._end()
                self._judge_end()
                self.late = self.take_lazily()
            except StreamFault as fault:
                self._fault = fault
        self._closed = True
        if self._fault is not None:
            raise self._fault
        return self._message(whole=True)

    def _read(self, events: Sequence[ServerEvent]) -> None:
        for event in events:
            if self.ended:
                return
            data = event.data.strip()
            if data == DONE:
                self.done()
            elif data:
                self.event(event.name, _document(data, "an event of the stream"))

    def _end(self) -> None:
        if self._is_at_end:
            return
        self._is_at_end = True
        if self._parser is None:
            self._read_body()
        elif not self.ended:
            self._read([event for event in self._parser.close() if _is_whole(event.data)])
            if not self.ended:
                self.stream_end()
        if not self.ended:
            raise broken("the stream ended without its end marker")

    def _read_body(self) -> None:
        """Read a whole answer. Of a large one no copy is kept beside what it is read into."""
        written, self._written = self._written, BytesIO()
        document = _document(written.getvalue().removeprefix(b"\xef\xbb\xbf"), "the body")
        written.close()
        self.body(document)

    def _judge_end(self) -> None:
        """Raise the failure that the reason to stop stands for, unless there is an answer all the same.

        What was only cut short stands as far as it came, and calls are calls whatever the reason. Words beside a call
        that the model could not write are not an answer.
        """
        failure = unfinished(self.finish_reason or "")
        if failure is None:
            return
        stands = {"transcript": False, "model_fault": self.calls}.get(failure.kind, self.says)
        if not stands:
            raise AnswerFault(failure)


def _is_whole(data: str) -> bool:
    """Return whether the event at the end of a stream is more than the beginning of one."""
    try:
        return data == DONE or loaded(data) is not None
    except TooManyValues:
        return True  # whoever reads it says so
    except ValueError:
        return False


def _document(text: str | bytes, what: str) -> Fields:
    """Return the JSON object that `text` is, alone or in a list of its own, as some relays wrap errors.

    A large one may hold long texts.

    Raises:
        StreamFault: It is something else, or holds too many values. The message quotes nothing of it.
    """
    try:
        is_short = isinstance(text, str) and len(text) < _LARGE
        value = loaded(text) if is_short else load_document(text.encode() if isinstance(text, str) else text)
    except TooManyValues:
        raise broken(f"{what} holds more than {MAX_VALUES} values", "too_long") from None
    except ValueError:
        raise broken(f"{what} is not JSON (of length {len(text)})") from None
    if type(value) is list and len(value) == 1:
        value = value[0]
    if type(value) is not dict:
        raise broken(f"{what} is not a JSON object")
    return value
