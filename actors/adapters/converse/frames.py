"""The binary event stream of AWS: bytes cut anywhere in, events out, no I/O.

A frame is four parts: a prelude, headers, a payload, a checksum.

    total length    4 bytes, of the whole frame
    headers length  4 bytes
    prelude CRC     4 bytes, CRC32 of the eight bytes before
    headers         each: length of the name (1 byte), name, type (1 byte), value
    payload         JSON
    message CRC     4 bytes, CRC32 of all bytes before

All numbers are big-endian. The header `:message-type` says what a frame is: an `event`, whose kind is in
`:event-type`, an `exception` of the kind in `:exception-type`, or an `error` without a payload. The last two
become one event named `exception`, whose JSON holds the kind as `type`. A frame that fails a checksum is a
fault: nothing behind it can be trusted. Memory is bounded by the cap on a frame.
"""

import json
from struct import unpack_from
from zlib import crc32

from actors.adapters.failure import broken
from actors.adapters.sse import DONE, MAX_EVENT, ServerEvent
from actors.adapters.wire import fields, loaded
from actors.errors import StreamFault

END = ServerEvent("", DONE)
"""What `close` gives: the bytes have ended on the border of a frame, or inside one that is dropped."""

_PRELUDE = 12
_CRC = 4
_MAX_HEADERS = 128 * 1024
_FIXED = {
    0: 0,
    1: 0,
    2: 1,
    3: 2,
    4: 4,
    5: 8,
    8: 8,
    9: 16,
}  # bytes of a value, by type: true, false, byte, ...
_BYTES, _STRING = 6, 7  # preceded by two bytes of length


class FrameParser:
    """Splits a stream into events."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._fault: StreamFault | None = None

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes.

        A fault behind whole frames is raised by the next call, so that bytes mean the same in any pieces.

        Raises:
            StreamFault: A checksum is wrong, or a frame is malformed or larger than its cap.
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
        """Return `END`. What is left of a frame that was cut is dropped: it cannot be checked.

        Raises:
            StreamFault: The bytes fed last hold one.
        """
        if self._fault is not None:
            raise self._fault
        self._held.clear()
        return [END]

    def _size(self, place: int) -> int:
        """Return the length of the frame that begins at `place`, 0 if its prelude is not there yet."""
        if len(self._held) - place < _PRELUDE:
            return 0
        size, headers, checksum = unpack_from(">III", self._held, place)
        if crc32(self._held[place : place + 8]) != checksum:
            raise broken("a frame of the stream has a wrong prelude checksum")
        if size > MAX_EVENT:
            raise broken(f"a frame of the stream is larger than {MAX_EVENT} bytes")
        if headers > _MAX_HEADERS or size < _PRELUDE + headers + _CRC:
            raise broken("a frame of the stream has lengths that do not fit")
        return int(size)


def _event(frame: bytes) -> ServerEvent:
    """Return the event that a whole frame is."""
    if crc32(frame[:-_CRC]) != unpack_from(">I", frame, len(frame) - _CRC)[0]:
        raise broken("a frame of the stream has a wrong message checksum")
    end = _PRELUDE + unpack_from(">I", frame, 4)[0]
    headers = _headers(frame[_PRELUDE:end])
    payload = frame[end:-_CRC].decode("utf-8", "replace")
    match headers.get(":message-type"):
        case "exception":
            return _failed(headers.get(":exception-type", ""), payload)
        case "error":
            words = json.dumps({"message": headers.get(":error-message", "")})
            return _failed(headers.get(":error-code", ""), words)
        case _:
            return ServerEvent(headers.get(":event-type", ""), payload)


def _failed(kind: str, payload: str) -> ServerEvent:
    try:
        told = fields(loaded(payload))
    except ValueError:
        told = {"message": payload}
    return ServerEvent("exception", json.dumps({**told, "type": kind}))


def _headers(data: bytes) -> dict[str, str]:
    """Return the headers that are strings; the others are stepped over."""
    headers: dict[str, str] = {}
    place = 0
    while place < len(data):
        name_end = place + 1 + data[place]
        if name_end >= len(data):
            raise broken("a frame of the stream has a header that is cut")
        kind, start = data[name_end], name_end + 1
        if kind in (_BYTES, _STRING):
            if start + 2 > len(data):
                raise broken("a frame of the stream has a header that is cut")
            size, start = unpack_from(">H", data, start)[0], start + 2
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise broken(f"a frame of the stream has a header of type {kind}")
        if start + size > len(data):
            raise broken("a frame of the stream has a header that is cut")
        if kind == _STRING:
            name = data[place + 1 : name_end].decode("utf-8", "replace")
            headers[name] = data[start : start + size].decode("utf-8", "replace")
        place = start + size
    return headers
