"""Decode one answer: bytes split at any point go in, events and a message come out.

Each family derives its decoder from `Decoder` and defines the meaning of an event and of a complete body. The shared
rules are here: a stream without its end marker is a fault, never a success; a finish reason may be a failure; bytes
after the end are ignored; after a fault, every further call raises it again.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import ClassVar, NoReturn, Protocol

from actors.adapters.assembly import MessageBuilder
from actors.adapters.classify import finish_failure, in_answer
from actors.adapters.document import MAX_VALUES, LongText, TooManyValues, load, load_document
from actors.adapters.failure import AnswerFault, answer_fault
from actors.adapters.framing import DONE, EventParser, ServerEvent
from actors.adapters.partial import PartialText
from actors.adapters.wire import Fields, Long, LongJson, argument_text
from actors.core.values.content import Message
from actors.core.values.stream import StreamEvent
from actors.errors import StreamFault

_LARGE = 1024 * 1024  # bytes of an answer; above this, avoidable copies of arguments are not made
MAX_ANSWER = 32 * 1024 * 1024
"""Default limit on the bytes of an answer; `limits.answer_bytes` of a backend overrides it."""


class Frames(Protocol):
    """Splits the bytes of a stream into events. Raises StreamFault if the bytes do not have the expected framing.

    `max_event`: most bytes of one event.
    """

    def __init__(self, max_event: int) -> None: ...

    def feed(self, chunk: bytes) -> Sequence[ServerEvent]: ...

    def close(self) -> Sequence[ServerEvent]: ...


@dataclass(eq=False)
class Decoder(MessageBuilder, ABC):
    """The decoder of one answer: feed it bytes, read events, close it once. `actors.adapters.codec` creates one.

    Attributes:
        max_bytes: Most bytes of the answer on the wire; a larger answer is a fault.
        ended: Whether the end marker was read. Later bytes are not part of the answer.
        late: Events that became known only in `close`.
    """

    frames: ClassVar[type[Frames]] = EventParser
    stream: bool = field(default=True, kw_only=True)
    max_bytes: int = field(default=MAX_ANSWER, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ended: bool = False
        self.late: Iterable[StreamEvent] = ()
        self._parser = self.framing() if self.stream else None
        self._written = BytesIO()  # of a body
        self._size = 0
        self._fault: StreamFault | None = None
        self._closed = self._is_at_end = False

    def framing(self) -> Frames:
        """Return a new parser of the stream's framing. One event may be as large as the answer."""
        return self.frames(self.max_bytes)

    @abstractmethod
    def event(self, name: str, payload: Fields) -> None:
        """Process one event of a stream. Set `ended` at the end marker. Raise only `StreamFault`."""

    @abstractmethod
    def body(self, body: Fields) -> None:
        """Process a complete answer. Raise only `StreamFault`."""

    def on_done(self) -> None:
        """Process `[DONE]`. Relays send it in any dialect, so by default it has no meaning."""

    def stream_end(self) -> None:
        """Process the end of a stream without an end marker. Set `ended` if the answer may end there."""

    def arguments(self, value: object) -> str | Long:
        """Return arguments as text. Servers send text or a JSON value, each in place of the other."""
        if self._size < _LARGE or not value or isinstance(value, str | LongText):
            return argument_text(value)
        return LongJson(value)

    def report(self, payload: Fields) -> NoReturn:
        """Raise the error that an answer reports."""
        raise AnswerFault(in_answer(payload, self.dialect))

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """Decode bytes split at any point and return the new events. Bytes after the end are ignored.

        `Usage` events carry cumulative figures: the last one counts, and they must not be summed.

        Raises:
            StreamFault: The provider reported an error inside the answer, the answer is too large, or the bytes are
                not a stream of this dialect. The deltas of this chunk are lost; their content is in
                `partial_message`.
        """
        if self._fault is not None:
            raise self._fault
        if self.ended or self._closed:
            return []
        try:
            self._size += len(chunk)
            if self._size > self.max_bytes:
                raise answer_fault(f"the answer is larger than {self.max_bytes} bytes", "too_long")
            if self._parser is None:
                self._written.write(chunk)
            else:
                self._process(self._parser.feed(chunk))
        except StreamFault as fault:
            self._fault = fault
            raise
        return self.take()

    def end_response(self) -> str:
        """End a response and return the token that continues the answer; empty if the answer is complete.

        `resume` then reads the next response as a part of the same answer; `close` ends the answer in any case.

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
        """Start reading a response that continues the answer, streamed or as one document."""
        self._parser = self.framing() if stream else None
        self._usage_before, self._figures = self.usage, {}
        self.continuation: str = ""
        self.finish_reason: str | None = None
        self.ended = self._is_at_end = False
        if self._parts and isinstance(last := self._parts[-1], PartialText):
            last.done = last.seal is not None

    def close(self) -> Message:
        """Return the model's message. Events of the last bytes are in `late`.

        Raises:
            StreamFault: The answer ended without its end marker, its finish reason means that there is no answer, or
                it had failed before.
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

    def _process(self, events: Sequence[ServerEvent]) -> None:
        for event in events:
            if self.ended:
                return
            data = event.data.strip()
            if data == DONE:
                self.on_done()
            elif data:
                self.event(event.name, _document(data, "an event of the stream"))

    def _end(self) -> None:
        if self._is_at_end:
            return
        self._is_at_end = True
        if self._parser is None:
            self._read_body()
        elif not self.ended:
            self._process([event for event in self._parser.close() if _is_whole(event.data)])
            if not self.ended:
                self.stream_end()
        if not self.ended:
            raise answer_fault("the stream ended without its end marker")

    def _read_body(self) -> None:
        """Decode a complete answer. The bytes of a large one are released before it is processed."""
        written, self._written = self._written, BytesIO()
        document = _document(written.getvalue().removeprefix(b"\xef\xbb\xbf"), "the body")
        written.close()
        self.body(document)

    def _judge_end(self) -> None:
        """Raise the failure that the finish reason stands for, unless the answer is usable.

        A cut answer counts as far as it arrived, and calls count for any reason. Text next to a call that the model
        could not write is not an answer.
        """
        failure = finish_failure(self.finish_reason or "")
        if failure is None:
            return
        stands = {"transcript": False, "model_fault": self.calls}.get(failure.kind, self.has_content)
        if not stands:
            raise AnswerFault(failure)


def _is_whole(data: str) -> bool:
    """Return True if the last event of a stream is complete."""
    try:
        return data == DONE or load(data) is not None
    except TooManyValues:
        return True  # the reader of the event raises the error
    except ValueError:
        return False


def _document(text: str | bytes, what: str) -> Fields:
    """Return the JSON object in `text`, alone or in a list of one, as some relays wrap errors.

    A large object may hold `LongText`.

    Raises:
        StreamFault: It is not an object, or holds too many values. The message quotes nothing of it.
    """
    try:
        is_short = isinstance(text, str) and len(text) < _LARGE
        value = load(text) if is_short else load_document(text.encode() if isinstance(text, str) else text)
    except TooManyValues:
        raise answer_fault(f"{what} holds more than {MAX_VALUES} values", "too_long") from None
    except ValueError:
        raise answer_fault(f"{what} is not JSON (of length {len(text)})") from None
    whole: dict[str, object] = value
    several: list[dict[str, object]] = value
    if type(value) is list and len(several) == 1:
        whole = several[0]
    if type(whole) is not dict:
        raise answer_fault(f"{what} is not a JSON object")
    return whole
