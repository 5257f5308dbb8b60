"""Decode the bytes of one answer into events and a message. The bytes may be split at any point.

Each wire family derives its decoder from `Decoder`, and defines how to process an event and how to process a complete
body. `Decoder` applies the rules that all families share. A stream without an end marker is a fault, never a success. A
finish reason may report a failure. Bytes after the end are ignored. Once a method has raised a fault, every further
call of a method raises the same fault.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import ClassVar, NoReturn, Protocol

from actors.adapters.assembly import MessageBuilder
from actors.adapters.document import MAX_VALUES, LongText, TooManyValues, load_document, load_json
from actors.adapters.failure import AnswerFault, answer_fault, failure_from_finish_reason
from actors.adapters.framing import DONE, NULL, EventParser, ServerEvent
from actors.adapters.partial import PartialText
from actors.adapters.wire import Fields, Long, LongJson, argument_text
from actors.core.values.content import Message
from actors.core.values.stream import StreamEvent
from actors.errors import StreamFault

_LARGE = 1024 * 1024  # bytes; in a larger answer, arguments are read in slices instead of being copied
MAX_ANSWER = 32 * 1024 * 1024
"""Default maximum size of an answer in bytes; a backend's `limits.answer_bytes` overrides it."""


class StreamParser(Protocol):
    """Splits the bytes of a stream into events. Raises `StreamFault` if the bytes are malformed.

    Args:
        max_event: Largest size of one event, in bytes.
    """

    def __init__(self, max_event: int) -> None: ...

    def feed(self, chunk: bytes) -> Sequence[ServerEvent]: ...

    def close(self) -> Sequence[ServerEvent]: ...


@dataclass(eq=False)
class Decoder(MessageBuilder, ABC):
    """Decodes one answer. Create it with `actors.adapters.codec.decode`, feed it the bytes, then close it once.

    Attributes:
        max_bytes: Largest size of the answer on the wire, in bytes. A larger answer raises `StreamFault`.
        ended: True once the end marker was read. Later bytes are not part of the answer.
        late: Events that were decoded only in `close`.
    """

    parser_type: ClassVar[type[StreamParser]] = EventParser
    stream: bool = field(default=True, kw_only=True)
    max_bytes: int = field(default=MAX_ANSWER, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ended: bool = False
        self.late: Iterable[StreamEvent] = ()
        self._parser = self.new_parser() if self.stream else None
        self._written = BytesIO()  # the bytes received so far, if the body is not streamed
        self._size = 0
        self._fault: StreamFault | None = None
        self._closed = self._is_at_end = False

    def new_parser(self) -> StreamParser:
        """Return a new parser for a stream. One event may be as large as the complete answer."""
        return self.parser_type(self.max_bytes)

    @abstractmethod
    def process_event(self, name: str, payload: Fields) -> None:
        """Process one event of the stream, and set `ended` at the end marker. Raise only `StreamFault`."""

    @abstractmethod
    def process_body(self, body: Fields) -> None:
        """Process the body of an answer that was not streamed. Raise only `StreamFault`."""

    def on_done(self) -> None:
        """Process `[DONE]`. Some relays send this marker in every dialect, so by default it is ignored."""

    def on_stream_end(self) -> None:
        """Process the end of a stream without an end marker. Set `ended` if the answer may end without one."""

    def arguments_text(self, value: object) -> str | Long:
        """Return a call's arguments as text. Some servers send JSON where a string is documented, or the reverse."""
        if self._size < _LARGE or not value or isinstance(value, str | LongText):
            return argument_text(value)
        return LongJson(value)

    def raise_reported_error(self, payload: Fields) -> NoReturn:
        """Raise the error that the provider reports inside an answer."""
        from actors.adapters.classify import classify_in_answer  # imported lazily, because errors are rare

        raise AnswerFault(classify_in_answer(payload, self.dialect))

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """Decode bytes, split at any point, and return the new events. Bytes after the end of the answer are ignored.

        The figures of `Usage` events are cumulative: use the last event, and do not sum them.

        Raises:
            StreamFault: The provider reported an error inside the answer, the answer is too large, or the bytes are not
                a stream of this dialect. The deltas of this chunk are lost; `partial_message` contains their content.
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
                self._process_events(self._parser.feed(chunk))
        except StreamFault as fault:
            self._fault = fault
            raise
        return self.take_events()

    def end_response(self) -> str:
        """End the current response. If the provider paused the answer, return the token that requests its rest;
        otherwise "".

        With a token, call `resume` before the next response of the same answer. After the last response, call `close`.

        Raises:
            StreamFault: The response is incomplete or malformed.
        """
        try:
            self._finish_response()
        except StreamFault as fault:
            self._fault = fault
            raise
        return self.continuation

    def resume(self, *, stream: bool) -> None:
        """Start decoding the next response of the same answer: a stream, or one JSON document."""
        self._parser = self.new_parser() if stream else None
        self._figures.begin_response(self.usage)
        self.continuation: str = ""
        self.finish_reason: str | None = None
        self.ended = self._is_at_end = False
        if self._parts and isinstance(last := self._parts[-1], PartialText):
            last.done = last.seal is not None  # text without a signature may continue in the next response

    def close(self) -> Message:
        """End the answer and return the model's message. Events from the last bytes are in `late`.

        Raises:
            StreamFault: The answer lacks its end marker; its finish reason reports a failure and the answer is not
                usable; or `feed` or `end_response` raised this fault before.
        """
        if not self._closed and self._fault is None:
            try:
                self._finish_response()
                self._check_finish_reason()
                self.late = self.take_events_lazily()
            except StreamFault as fault:
                self._fault = fault
        self._closed = True
        if self._fault is not None:
            raise self._fault
        return self._build_message(is_complete=True)

    def _process_events(self, events: Sequence[ServerEvent]) -> None:
        for event in events:
            if self.ended:
                return
            data = event.data.strip()
            if data == DONE:
                self.on_done()
            elif data:
                no_payload: dict[str, object] = {}
                payload = no_payload if data == NULL else _parse_object(data, "an event of the stream")
                self.process_event(event.name, payload)

    def _finish_response(self) -> None:
        """Process the end of the current response, once. Raise a fault if the end marker is missing."""
        if self._is_at_end:
            return
        self._is_at_end = True
        if self._parser is None:
            self._read_body()
        elif not self.ended:
            self._process_events([event for event in self._parser.close() if _is_complete(event.data)])
            if not self.ended:
                self.on_stream_end()
        if not self.ended:
            raise answer_fault("the stream ended without its end marker")

    def _read_body(self) -> None:
        """Decode the body of an answer that was not streamed. To save memory, release its bytes before decoding."""
        written, self._written = self._written, BytesIO()
        document = _parse_object(written.getvalue().removeprefix(b"\xef\xbb\xbf"), "the body")
        written.close()
        self.process_body(document)

    def _check_finish_reason(self) -> None:
        """Raise the failure that the finish reason reports, unless the answer is usable.

        An answer with text or tool calls is usable, with two exceptions. After a `transcript` failure, no answer is
        usable. After a `model_fault`, only an answer with tool calls is usable, because the model failed to write a
        call.
        """
        failure = failure_from_finish_reason(self.finish_reason or "")
        if failure is None:
            return
        stands = {"transcript": False, "model_fault": self.has_calls}.get(failure.kind, self.has_content)
        if not stands:
            raise AnswerFault(failure)


def _is_complete(data: str) -> bool:
    """Return True if the last event of a stream is complete: `[DONE]` or valid JSON."""
    try:
        return data == DONE or load_json(data) is not None
    except TooManyValues:
        return True  # `_parse_object` raises the error when the event is processed
    except ValueError:
        return False


def _parse_object(text: str | bytes, label: str) -> Fields:
    """Return the JSON object in `text`. A list of one object is accepted as well, because some relays wrap errors in a
    list.

    Strings of a large object may be `LongText`. `label` names the text in error messages, which never quote it.

    Raises:
        StreamFault: The text is not a JSON object, or contains too many values.
    """
    try:
        is_short = isinstance(text, str) and len(text) < _LARGE
        value = (
            load_json(text) if is_short else load_document(text.encode() if isinstance(text, str) else text)
        )
    except TooManyValues:
        raise answer_fault(f"{label} contains more than {MAX_VALUES} JSON values", "too_long") from None
    except ValueError:
        raise answer_fault(f"{label} is not JSON; its length is {len(text)}") from None
    whole: dict[str, object] = value
    several: list[dict[str, object]] = value
    if type(value) is list and len(several) == 1:
        whole = several[0]
    if type(whole) is not dict:
        raise answer_fault(f"{label} is not a JSON object")
    return whole
