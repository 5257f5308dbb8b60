"""Split the bytes of server-sent events or of an AWS event stream into events, without I/O.

**Server-sent events.** A line ends in CR, LF or CRLF. A blank line ends an event. The `data` lines of one event are
joined by LF. A byte order mark at the beginning, comments and unknown fields are skipped. Lines are decoded as a unit,
so a chunk may end inside a character. There are two deviations from the standard:

- The standard drops an event that is not followed by a blank line. But some providers end their streams with a bare
  `data: [DONE]`, so `close` returns that event.
- The standard skips lines without a field name. But some servers, when they fail, write an error between the events as
  plain JSON, so `close` returns these lines as one more event.

The decoder parses these additional events as JSON, and checks whether they are complete.

**AWS event streams.** A frame has these fields, with all numbers big-endian:

    total length    4 bytes, the length of the complete frame
    headers length  4 bytes
    prelude CRC     4 bytes, CRC32 of the eight bytes before it
    headers         each: length of the name (1 byte), name, type (1 byte), value
    payload         JSON
    message CRC     4 bytes, CRC32 of all bytes before it

The header `:message-type` is `event`, with the name in `:event-type`; or `exception`, with the name in
`:exception-type`; or `error`, without a payload. Exceptions and errors become an event named `exception`, whose JSON
contains the name as `type`. A frame with a wrong checksum is a fault, because nothing after it can be trusted.
InvokeModel wraps each event of Anthropic Messages in a frame of type `chunk`: `{"bytes": BASE64, "p": PADDING}`.

Memory is limited by the maximum size of an event, and time is proportional to the number of bytes.
"""

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from struct import error as StructError
from struct import unpack_from
from zlib import crc32

from msgspec import Struct

from actors.adapters.document import load_json
from actors.adapters.failure import answer_fault
from actors.adapters.wire import as_object, as_string
from actors.errors import StreamFault

MAX_OTHER = 1024 * 1024
"""Maximum size in bytes of a line that is not data, and of all lines outside events together. No server has a reason to
send more.
"""

MAX_LINES = 100_000
"""Maximum number of data lines in one event, because even a short line takes a fixed amount of memory."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

DONE = "[DONE]"
"""The data of the event that marks the end of a stream."""
NULL = "null"
"""The data of an event without content. Some gateways send such events between others (anomalyco/opencode#50314)."""


class ServerEvent(Struct, frozen=True, gc=False):
    """One event of a stream. `name` is empty if the server sent no name."""

    name: str
    data: str


class EventParser:
    """Splits a stream of server-sent events.

    Args:
        max_event: Largest size of one event, in bytes. It equals the limit of the complete answer, because the last
            event may repeat the complete answer, and an image is a single event.
    """

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
        self._begun = bytearray()  # the incomplete last line
        self._size = 0  # bytes of the current event so far
        self._name = ""
        self._data: list[str] = []
        self._stray = bytearray()  # lines of JSON without a field name
        # Whether the last chunk ended in CR, so that a leading LF belongs to the line before it.
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes.

        Raises:
            StreamFault: An event is too large, or has too many data lines.
        """
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        *lines, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events: list[ServerEvent] = []
        if lines and (self._begun or self._at_start):
            lines[0] = self._complete_line(lines[0])
        for line in lines:
            if line:
                self._process_line(line)
            else:
                self._dispatch_event(events)
        if rest:
            self._begun += rest
            if self._at_start and self._begun.startswith(_BYTE_ORDER_MARK):
                self._at_start = False
                del self._begun[: len(_BYTE_ORDER_MARK)]
            self._check_size(self._begun)
        return events

    def close(self) -> list[ServerEvent]:
        """End the stream and return its last events: an event without a final blank line, and JSON outside events."""
        events: list[ServerEvent] = []
        if line := self._complete_line(b""):
            self._process_line(line)
        self._dispatch_event(events)
        if self._stray:
            events.append(ServerEvent("", self._stray[:-1].decode("utf-8", "replace")))
            self._stray.clear()
        return events

    def _complete_line(self, end: bytes) -> bytes:
        """Return the pending line with `end` appended, and start a new pending line."""
        line = bytes(self._begun) + end
        self._begun.clear()
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        return line

    def _check_size(self, line: bytes | bytearray) -> None:
        """Raise a fault if `line` would make the current event or the text outside events too large."""
        if self._size + len(line) > self._max_event:
            raise answer_fault(f"an event of the stream is larger than {self._max_event} bytes")
        if len(self._stray) + len(line) > MAX_OTHER and not line.startswith(b"data"):
            raise answer_fault(f"a line of the stream that is not data is larger than {MAX_OTHER} bytes")

    def _process_line(self, line: bytes) -> None:
        """Process a complete line that is not blank."""
        self._check_size(line)
        field, _, value = line.partition(b":")
        if not field:
            return  # comments serve as keep-alives, so they do not count towards the event's size
        self._size += len(line)
        if field == b"data":
            if len(self._data) == MAX_LINES:
                raise answer_fault(f"an event of the stream has more than {MAX_LINES} data lines")
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
        elif field == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")
        elif self._stray or line.startswith((b"{", b"[")):
            self._stray += line + b"\n"

    def _dispatch_event(self, events: list[ServerEvent]) -> None:
        if data := self._data:
            events.append(ServerEvent(self._name, data[0] if len(data) == 1 else "\n".join(data)))
            self._data = []
        self._name, self._size = "", len(self._stray)


END = ServerEvent("", DONE)
"""The event that `close` returns at the end of a frame stream."""

_PRELUDE = 12
_CRC = 4
_MAX_HEADERS = 128 * 1024
_BYTES, _STRING = 6, 7  # header types whose value is preceded by its length in two bytes
_VALUE_SIZES = dict(zip((0, 1, 2, 3, 4, 5, 8, 9), (0, 0, 1, 2, 4, 8, 8, 16), strict=True))
"""Bytes of a header's value, by its type: true, false, byte, short, integer, long, timestamp, UUID."""


class FrameParser:
    """Splits an AWS event stream into events. A frame may have at most `max_event` bytes."""

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
        self._held = bytearray()
        self._fault: StreamFault | None = None

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes.

        If a chunk contains valid frames before a malformed one, their events are returned, and the next call raises the
        fault. So the result does not depend on how the bytes are split.

        Raises:
            StreamFault: A frame has a wrong checksum, is malformed, or is too large.
        """
        if self._fault is not None:
            raise self._fault
        self._held += chunk
        events: list[ServerEvent] = []
        place = 0
        try:
            while (size := self._frame_length(place)) and len(self._held) - place >= size:
                events.append(_decode_frame(bytes(self._held[place : place + size])))
                place += size
        except StreamFault as fault:
            if not events:
                raise
            self._fault = fault
        del self._held[:place]
        return events

    def close(self) -> list[ServerEvent]:
        """Return the event that marks the end of the stream. An incomplete frame is dropped, because its checksum is
        missing.

        Raises:
            StreamFault: The last bytes contained a malformed frame.
        """
        if self._fault is not None:
            raise self._fault
        self._held.clear()
        return [END]

    def _frame_length(self, start: int) -> int:
        """Return the length of the frame that begins at `start`, or 0 if its prelude is incomplete."""
        if len(self._held) - start < _PRELUDE:
            return 0
        size, headers, checksum = unpack_from(">III", self._held, start)
        if crc32(self._held[start : start + 8]) != checksum:
            raise answer_fault("a frame of the stream has a wrong prelude checksum")
        if size > self._max_event:
            raise answer_fault(f"a frame of the stream is larger than {self._max_event} bytes")
        if headers > _MAX_HEADERS or size < _PRELUDE + headers + _CRC:
            raise answer_fault("a frame of the stream has inconsistent lengths")
        return int(size)


def _decode_frame(frame: bytes) -> ServerEvent:
    """Verify the checksum of a complete frame, and return its event."""
    if crc32(frame[:-_CRC]) != unpack_from(">I", frame, len(frame) - _CRC)[0]:
        raise answer_fault("a frame of the stream has a wrong message checksum")
    end = _PRELUDE + unpack_from(">I", frame, 4)[0]
    headers = _string_headers(frame[_PRELUDE:end])
    payload = frame[end:-_CRC].decode("utf-8", "replace")
    match headers.get(":message-type"):
        case "exception":
            return _exception_event(headers.get(":exception-type", ""), payload)
        case "error":
            words = json.dumps({"message": headers.get(":error-message", "")})
            return _exception_event(headers.get(":error-code", ""), words)
        case _:
            return ServerEvent(headers.get(":event-type", ""), payload)


def _exception_event(kind: str, payload: str) -> ServerEvent:
    try:
        told = as_object(load_json(payload))
    except ValueError:
        told = {"message": payload}
    return ServerEvent("exception", json.dumps({**told, "type": kind}))


def _string_headers(data: bytes) -> dict[str, str]:
    """Return the headers whose values are strings."""
    headers: dict[str, str] = {}
    place = 0
    try:
        while place < len(data):
            start = place + 2 + data[place]
            name, kind = data[place + 1 : start - 1], data[start - 1]
            if kind in (_BYTES, _STRING):
                size, start = unpack_from(">H", data, start)[0], start + 2
            elif kind in _VALUE_SIZES:
                size = _VALUE_SIZES[kind]
            else:
                raise answer_fault(f"a frame of the stream has a header of the unknown type {kind}")
            if kind == _STRING:
                value = data[start : start + size]
                headers[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
            place = start + size
    except (IndexError, StructError):
        place = len(data) + 1
    if place > len(data):
        raise answer_fault("a frame of the stream has a truncated header")
    return headers


class ChunkParser:
    """Splits an InvokeModel stream into Anthropic's events. A frame may have at most `max_event` bytes."""

    def __init__(self, max_event: int) -> None:
        self._frames = FrameParser(max_event)
        self._fault: StreamFault | None = None

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes.

        If a chunk contains valid events before a malformed frame, they are returned, and the next call raises the
        fault. So the result does not depend on how the bytes are split.

        Raises:
            StreamFault: A frame is malformed, or its chunk is not base64.
        """
        if self._fault is not None:
            raise self._fault
        events: list[ServerEvent] = []
        try:
            # With an iterator, `extend` keeps the events before a fault.
            events.extend(_unwrap_chunks(self._frames.feed(chunk)))
        except StreamFault as fault:
            if not events:
                raise
            self._fault = fault
        return events

    def close(self) -> list[ServerEvent]:
        """Return the event that marks the end of the stream; see `FrameParser.close`."""
        if self._fault is not None:
            raise self._fault
        return self._frames.close()


def _unwrap_chunks(frames: Iterable[ServerEvent]) -> Iterator[ServerEvent]:
    for frame in frames:
        if frame.name == "exception":
            yield ServerEvent("error", frame.data)
        elif frame.name == "chunk":
            yield ServerEvent("", _chunk_text(frame.data))


def _chunk_text(payload: str) -> str:
    try:
        return b64decode(as_string(as_object(load_json(payload)).get("bytes")), validate=True).decode(
            "utf-8", "replace"
        )
    except ValueError:  # includes binascii.Error
        raise answer_fault("a frame of the stream contains no base64 chunk") from None
