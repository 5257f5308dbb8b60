"""Split the bytes of a stream into events, without I/O: server-sent events, and the event stream of AWS.

**Server-sent events.** A line ends in CR, LF or CRLF; a blank line ends an event; `data` lines of one event are joined
by LF. A byte order mark at the beginning, comments and unknown fields are skipped. Lines are decoded whole, so a chunk
may end inside a character. There are two deviations from the standard. The standard drops an event that is not followed
by a blank line; providers do end their streams on a bare `data: [DONE]`, so `close` returns that event. The standard
skips lines without a field name; failing servers write their error among the events as plain JSON, so `close` returns
those lines as one more event. The decoder reads both as JSON anyway, and judges whether they are complete.

**The event stream of AWS.** A frame has four parts. All numbers are big-endian.

    total length    4 bytes, of the whole frame
    headers length  4 bytes
    prelude CRC     4 bytes, CRC32 of the eight bytes before
    headers         each: length of the name (1 byte), name, type (1 byte), value
    payload         JSON
    message CRC     4 bytes, CRC32 of all bytes before

The header `:message-type` is `event`, with the kind in `:event-type`; or `exception`, with the kind in
`:exception-type`; or `error`, without a payload. The last two become one event named `exception`, whose JSON holds the
kind as `type`. A frame that fails a checksum is a fault, because nothing after it can be trusted. InvokeModel wraps
each event of Anthropic Messages in a frame of type `chunk`: `{"bytes": BASE64, "p": PADDING}`.

Memory is bounded by the cap on an event, and time by the bytes fed.
"""

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from struct import error as CutShort
from struct import unpack_from
from zlib import crc32

from msgspec import Struct

from actors.adapters.document import load
from actors.adapters.failure import answer_fault
from actors.adapters.wire import fields, string
from actors.errors import StreamFault

MAX_OTHER = 1024 * 1024
"""Most bytes of a line other than data, and of all lines outside any event: no server has a reason to send more."""

MAX_LINES = 100_000
"""Most data lines of one event. Each line takes memory of its own, however short it is."""

_MARK = b"\xef\xbb\xbf"  # the byte order mark

DONE = "[DONE]"
"""The data of an event that only marks the end of the stream."""


class ServerEvent(Struct, frozen=True, gc=False):
    """One event. `name` is empty if the server sent none."""

    name: str
    data: str


class EventParser:
    """Splits a stream of server-sent events.

    Args:
        max_event: Most bytes of one event. The last event of an answer may repeat all of it, and an image is one
            event, so the limit is that of the answer.
    """

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
        self._begun = bytearray()  # the line that has not ended
        self._size = 0  # bytes of the current event's lines
        self._name = ""
        self._data: list[str] = []
        self._stray = bytearray()  # lines of JSON outside any field
        self._after_cr = False  # an LF at the start of the next chunk belongs to this CR
        self._at_start = True

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes.

        Raises:
            StreamFault: An event is too large, or has too many lines.
        """
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        *lines, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events: list[ServerEvent] = []
        if lines and (self._begun or self._at_start):
            lines[0] = self._whole_line(lines[0])
        for line in lines:
            if line:
                self._take(line)
            else:
                self._dispatch(events)
        if rest:
            self._begun += rest
            if self._at_start and self._begun.startswith(_MARK):
                self._at_start = False
                del self._begun[: len(_MARK)]
            self._check(self._begun)
        return events

    def close(self) -> list[ServerEvent]:
        """Return the events left at the end of the stream: one without its blank line, and JSON outside of events."""
        events: list[ServerEvent] = []
        if line := self._whole_line(b""):
            self._take(line)
        self._dispatch(events)
        if self._stray:
            events.append(ServerEvent("", self._stray[:-1].decode("utf-8", "replace")))
            self._stray.clear()
        return events

    def _whole_line(self, end: bytes) -> bytes:
        """Return the pending line completed by `end`, and start a new one."""
        line = bytes(self._begun) + end
        self._begun.clear()
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_MARK)
        return line

    def _check(self, line: bytes | bytearray) -> None:
        """Raise if a line, complete or pending, makes the event or the text outside of events too large."""
        if self._size + len(line) > self._max_event:
            raise answer_fault(f"an event of the stream is larger than {self._max_event} bytes")
        if len(self._stray) + len(line) > MAX_OTHER and not line.startswith(b"data"):
            raise answer_fault(f"a line of the stream is no data and larger than {MAX_OTHER} bytes")

    def _take(self, line: bytes) -> None:
        """Process a complete line that is not blank."""
        self._check(line)
        field, _, value = line.partition(b":")
        if not field:
            return  # keep-alives inside an event do not make it larger
        self._size += len(line)
        if field == b"data":
            if len(self._data) == MAX_LINES:
                raise answer_fault(f"an event of the stream has more than {MAX_LINES} lines")
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
        elif field == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")
        elif self._stray or line.startswith((b"{", b"[")):
            self._stray += line + b"\n"

    def _dispatch(self, events: list[ServerEvent]) -> None:
        if data := self._data:
            events.append(ServerEvent(self._name, data[0] if len(data) == 1 else "\n".join(data)))
            self._data = []
        self._name, self._size = "", len(self._stray)


END = ServerEvent("", DONE)
"""The result of `close`. The bytes ended between two frames, or inside one, which is dropped."""

_PRELUDE = 12
_CRC = 4
_MAX_HEADERS = 128 * 1024
_BYTES, _STRING = 6, 7  # preceded by two bytes of length
_FIXED = dict(zip((0, 1, 2, 3, 4, 5, 8, 9), (0, 0, 1, 2, 4, 8, 8, 16), strict=True))
"""Bytes of a value, by type: true, false, byte, short, integer, long, timestamp, UUID."""


class FrameParser:
    """Splits an AWS event stream into events. A frame has at most `max_event` bytes."""

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
        self._held = bytearray()
        self._fault: StreamFault | None = None

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes.

        A fault after complete frames is raised by the next call, so the result does not depend on how the bytes are
        split.

        Raises:
            StreamFault: A checksum is wrong, or a frame is malformed or too large.
        """
        if self._fault is not None:
            raise self._fault
        self._held += chunk
        events: list[ServerEvent] = []
        place = 0
        try:
            while (size := self._size(place)) and len(self._held) - place >= size:
                events.append(_event(bytes(self._held[place : place + size])))
                place += size
        except StreamFault as fault:
            if not events:
                raise
            self._fault = fault
        del self._held[:place]
        return events

    def close(self) -> list[ServerEvent]:
        """Return `END`. An incomplete frame is dropped, since its checksum cannot be verified.

        Raises:
            StreamFault: The last bytes hold a malformed frame.
        """
        if self._fault is not None:
            raise self._fault
        self._held.clear()
        return [END]

    def _size(self, place: int) -> int:
        """Return the length of the frame at `place`, or 0 if its prelude is incomplete."""
        if len(self._held) - place < _PRELUDE:
            return 0
        size, headers, checksum = unpack_from(">III", self._held, place)
        if crc32(self._held[place : place + 8]) != checksum:
            raise answer_fault("a frame of the stream has a wrong prelude checksum")
        if size > self._max_event:
            raise answer_fault(f"a frame of the stream is larger than {self._max_event} bytes")
        if headers > _MAX_HEADERS or size < _PRELUDE + headers + _CRC:
            raise answer_fault("a frame of the stream has lengths that do not fit")
        return int(size)


def _event(frame: bytes) -> ServerEvent:
    """Return the event in a complete frame."""
    if crc32(frame[:-_CRC]) != unpack_from(">I", frame, len(frame) - _CRC)[0]:
        raise answer_fault("a frame of the stream has a wrong message checksum")
    end = _PRELUDE + unpack_from(">I", frame, 4)[0]
    headers = _headers(frame[_PRELUDE:end])
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
        told = fields(load(payload))
    except ValueError:
        told = {"message": payload}
    return ServerEvent("exception", json.dumps({**told, "type": kind}))


def _headers(data: bytes) -> dict[str, str]:
    """Return the headers of type string; skip the others."""
    headers: dict[str, str] = {}
    place = 0
    try:
        while place < len(data):
            start = place + 2 + data[place]
            name, kind = data[place + 1 : start - 1], data[start - 1]
            if kind in (_BYTES, _STRING):
                size, start = unpack_from(">H", data, start)[0], start + 2
            elif kind in _FIXED:
                size = _FIXED[kind]
            else:
                raise answer_fault(f"a frame of the stream has a header of type {kind}")
            if kind == _STRING:
                value = data[start : start + size]
                headers[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
            place = start + size
    except (IndexError, CutShort):
        place = len(data) + 1
    if place > len(data):
        raise answer_fault("a frame of the stream has a header that is cut")
    return headers


class ChunkParser:
    """Splits a stream of InvokeModel into events. A frame has at most `max_event` bytes."""

    def __init__(self, max_event: int) -> None:
        self._frames = FrameParser(max_event)
        self._fault: StreamFault | None = None

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes.

        A fault after complete events is raised by the next call, so the result does not depend on how the bytes are
        split.

        Raises:
            StreamFault: A frame is malformed, or its chunk is not base64.
        """
        if self._fault is not None:
            raise self._fault
        events: list[ServerEvent] = []
        try:
            events.extend(_events(self._frames.feed(chunk)))  # keeps those before a fault
        except StreamFault as fault:
            if not events:
                raise
            self._fault = fault
        return events

    def close(self) -> list[ServerEvent]:
        """Return the end of the stream; see `FrameParser.close`."""
        if self._fault is not None:
            raise self._fault
        return self._frames.close()


def _events(frames: Iterable[ServerEvent]) -> Iterator[ServerEvent]:
    for frame in frames:
        if frame.name == "exception":
            yield ServerEvent("error", frame.data)
        elif frame.name == "chunk":
            yield ServerEvent("", _text(frame.data))


def _text(payload: str) -> str:
    try:
        return b64decode(string(fields(load(payload)).get("bytes")), validate=True).decode("utf-8", "replace")
    except ValueError:  # binascii's error is a ValueError
        raise answer_fault("a frame of the stream holds no chunk in base64") from None
