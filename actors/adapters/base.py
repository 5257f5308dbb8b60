"""The two ways an answer arrives, over one reader a dialect.

A reader knows its dialect: what one event of the stream means, and what one whole body means. It feeds an
`Assembly`. The decoders here add what all dialects share: a stream without its end marker is a fault and
never a success, a reason to stop may be a failure, what follows the end is ignored, and after a fault every
further call raises it again.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import NoReturn, Protocol, TypeVarTuple

from actors.adapters.assembly import Assembly
from actors.adapters.classify import cut, in_answer, unfinished
from actors.adapters.failure import AnswerFault, broken
from actors.adapters.sse import DONE, ServerEvent
from actors.adapters.wire import Fields, loaded
from actors.core.content import Message
from actors.core.dialect import Dialect
from actors.core.stream import Cut, StreamEvent, Usage
from actors.errors import StreamFault

Args = TypeVarTuple("Args")

MAX_ANSWER = 32 * 1024 * 1024
"""Bytes of one answer."""


class AnswerReader(ABC):
    """One dialect's understanding of an answer. Raises nothing but `StreamFault`.

    Attributes:
        ended: Whether the dialect's end marker was read.
    """

    def __init__(self, assembly: Assembly, dialect: Dialect) -> None:
        self.assembly = assembly
        self.ended = False
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


class _Decoder:
    """What both decoders answer."""

    def __init__(self, reader: AnswerReader) -> None:
        self.usage = Usage()
        self.finish_reason: str | None = None
        self.late: list[StreamEvent] = []
        """Events that became known only by `close`."""
        self.withheld: tuple[str, ...] = ()
        """Why the provider hid parts of our request from its model, a reason for each. None is expected."""
        self.left_out: Mapping[str, int] = {}
        """What the answer held that the message does not, by the provider's word for it, and how many."""
        self._reader = reader
        self._fault: StreamFault | None = None
        self._closed = False
        self._size = 0

    @property
    def ended(self) -> bool:
        """Whether the dialect's end marker was read: what follows it is no part of the answer."""
        return self._reader.ended

    @property
    def cut(self) -> Cut | None:
        """Why the answer is not whole, as far as its reason to stop says."""
        return cut(self.finish_reason or "")

    def close(self) -> Message:
        """Return the model's message. Events of the last bytes are in `late`.

        Raises:
            StreamFault: The answer ended without the dialect's end marker, or for a reason that leaves no answer,
                or had failed before.
        """
        if not self._closed:
            self._closed = True
            self._reading(self._finish)
            self.late = self._reader.assembly.take()
        if self._fault is not None:
            raise self._fault
        return self._reader.assembly.message()

    def partial_message(self) -> Message:
        """Return what may be kept of an answer that broke off: text, sealed thinking, finished calls.

        A call or a thinking block counts as finished when the provider said so. Text is kept as far as
        it came.
        """
        return self._reader.assembly.partial_message()

    def _end(self) -> None:
        raise NotImplementedError

    def _counted(self, chunk: bytes) -> bytes:
        """Return bytes of the answer. Raises StreamFault if it is larger than an answer may be."""
        self._size += len(chunk)
        if self._size > MAX_ANSWER:
            raise broken(f"the answer is larger than {MAX_ANSWER} bytes")
        return chunk

    def _finish(self) -> None:
        self._end()
        _judge_end(self._reader.assembly)

    def _reading(self, work: Callable[[*Args], None], *args: *Args) -> None:
        """Read something, remember a fault, so that every further call raises it, and keep the figures up to date."""
        if self._fault is not None:
            raise self._fault
        try:
            work(*args)
        except StreamFault as fault:
            self._fault = fault
            raise
        finally:
            self.usage = self._reader.assembly.usage
            self.finish_reason = self._reader.assembly.finish_reason
            self.withheld = self._reader.assembly.withheld
            self.left_out = self._reader.assembly.left_out


class StreamDecoder(_Decoder):
    """Decodes a stream, which `frames` splits into events."""

    def __init__(self, reader: AnswerReader, frames: Frames) -> None:
        super().__init__(reader)
        self._parser = frames

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """Take bytes cut anywhere and return what became known. What follows the end is ignored.

        `Usage` events carry the figures so far: the last one counts, they are not to be summed.

        Raises:
            StreamFault: The provider reported an error inside the answer, or the bytes are no stream
                of this dialect. Deltas of the same chunk are lost; what they said is in `partial_message`.
        """
        if self._fault is not None:
            raise self._fault
        if self._reader.ended or self._closed:
            return []
        self._reading(self._take, chunk)
        return self._reader.assembly.take()

    def _take(self, chunk: bytes) -> None:
        self._read(self._parser.feed(self._counted(chunk)))

    def _read(self, events: list[ServerEvent]) -> None:
        for event in events:
            if self._reader.ended:
                return
            data = event.data.strip()
            if data == DONE:
                self._reader.done()
            elif data:
                self._reader.event(event.name, document(data, "an event of the stream"))

    def _end(self) -> None:
        if not self._reader.ended:
            self._read([event for event in self._parser.close() if _is_whole(event.data)])
        if not self._reader.ended:
            raise broken("the stream ended without its end marker")


class BodyDecoder(_Decoder):
    """Decodes an answer that comes as one JSON document. Its events are in `late` after `close`."""

    def __init__(self, reader: AnswerReader) -> None:
        super().__init__(reader)
        self._chunks: list[bytes] = []

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """Collect bytes. Nothing is known before the last one, so this returns no events.

        Raises:
            StreamFault: The body is larger than an answer may be.
        """
        if self._fault is not None:
            raise self._fault
        if self._closed:
            return []
        self._reading(self._take, chunk)
        return []

    def _take(self, chunk: bytes) -> None:
        self._chunks.append(self._counted(chunk))

    def _end(self) -> None:
        text = b"".join(self._chunks).decode("utf-8-sig", "replace")
        self._chunks.clear()
        self._reader.body(document(text, "the body"))


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


def document(text: str, what: str) -> Fields:
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
