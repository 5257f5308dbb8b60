"""Server-sent events: bytes cut anywhere in, events out, no I/O.

A line ends in CR, LF or CRLF; a blank line ends an event; `data` lines of one event are joined by LF. A
byte order mark at the beginning, comments and unknown fields are skipped. Lines are decoded whole, so a chunk may
end inside a character. Memory is bounded by the cap on an event, and time by the bytes fed.

Two deviations from the standard. It drops an event that is not followed by a blank line; providers do end their
streams on a bare `data: [DONE]`, so `close` hands that event out. It skips lines that are no field; servers that fail
write their error among the events as plain JSON, so `close` hands those lines out as one event more. Whether either is
complete is for the decoder to judge, which has to read it as JSON anyway.
"""

from msgspec import Struct

from actors.adapters.failure import broken

MAX_OTHER = 1024 * 1024
"""Bytes of a line that is no data, and of all lines outside any event: no server has a reason to write more."""

MAX_LINES = 100_000
"""Lines of data of one event: each takes memory of its own, however short it is."""

_MARK = b"\xef\xbb\xbf"  # the byte order mark

DONE = "[DONE]"
"""The data of an event that says nothing but that the stream ends."""


class ServerEvent(Struct, frozen=True, gc=False):
    """One event. `name` is empty where the server gave none."""

    name: str
    data: str


class EventParser:
    """Splits a stream into events.

    Args:
        max_event: Bytes of one event. The last event of an answer may repeat all of it, and an image is one event, so
            there is no smaller bound than that of the answer.
    """

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
        self._begun = bytearray()  # of the line that has not ended
        self._size = 0  # bytes of the current event's lines
        self._name = ""
        self._data: list[str] = []
        self._stray = bytearray()  # lines of JSON that are no field
        self._after_cr = False  # an LF that comes next belongs to the CR before it
        self._at_start = True

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes.

        Raises:
            StreamFault: An event is larger than its cap, or has too many lines.
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
        """Return what the end of the stream left: an event without its blank line, and JSON outside of events."""
        events: list[ServerEvent] = []
        if line := self._whole_line(b""):
            self._take(line)
        self._dispatch(events)
        if self._stray:
            events.append(ServerEvent("", self._stray[:-1].decode("utf-8", "replace")))
            self._stray.clear()
        return events

    def _whole_line(self, end: bytes) -> bytes:
        """Return the line that was begun, with its end, and begin another."""
        line = bytes(self._begun) + end
        self._begun.clear()
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_MARK)
        return line

    def _check(self, line: bytes | bytearray) -> None:
        """Refuse a line, whole or begun, that makes the event or what is outside of events too large."""
        if self._size + len(line) > self._max_event:
            raise broken(f"an event of the stream is larger than {self._max_event} bytes")
        if len(self._stray) + len(line) > MAX_OTHER and not line.startswith(b"data"):
            raise broken(f"a line of the stream is no data and larger than {MAX_OTHER} bytes")

    def _take(self, line: bytes) -> None:
        """Take a whole line that is not blank."""
        self._check(line)
        field, _, value = line.partition(b":")
        if not field:
            return  # keep-alives inside an event do not make it larger
        self._size += len(line)
        if field == b"data":
            if len(self._data) == MAX_LINES:
                raise broken(f"an event of the stream has more than {MAX_LINES} lines")
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
