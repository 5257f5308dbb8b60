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
from struct import error as CutShort
from struct import unpack_from
from zlib import crc32

from actors.adapters.document import loaded
from actors.adapters.failure import broken
from actors.adapters.sse import DONE, ServerEvent
from actors.adapters.wire import fields
from actors.errors import StreamFault

END = ServerEvent("", DONE)
"""What `close` gives: the bytes have ended on the border of a frame, or inside one that is dropped."""

_PRELUDE = 12
_CRC = 4
_MAX_HEADERS = 128 * 1024
_BYTES, _STRING = 6, 7  # preceded by two bytes of length
_FIXED = dict(zip((0, 1, 2, 3, 4, 5, 8, 9), (0, 0, 1, 2, 4, 8, 8, 16), strict=True))
"""Bytes of a value, by type: true, false, byte, short, integer, long, timestamp, UUID."""


class FrameParser:
    """Splits a stream into events, none of them in a frame larger than `max_event` bytes."""

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
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
        if size > self._max_event:
            raise broken(f"a frame of the stream is larger than {self._max_event} bytes")
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
    try:
        while place < len(data):
            start = place + 2 + data[place]
            name, kind = data[place + 1 : start - 1], data[start - 1]
            if kind in (_BYTES, _STRING):
                size, start = unpack_from(">H", data, start)[0], start + 2
            elif kind in _FIXED:
                size = _FIXED[kind]
            else:
                raise broken(f"a frame of the stream has a header of type {kind}")
            if kind == _STRING:
                value = data[start : start + size]
                headers[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
            place = start + size
    except (IndexError, CutShort):
        place = len(data) + 1
    if place > len(data):
        raise broken("a frame of the stream has a header that is cut")
    return headers
