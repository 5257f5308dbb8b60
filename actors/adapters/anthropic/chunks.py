"""The stream of Bedrock's InvokeModel: frames of AWS's event stream, each with one event of Messages in base64.

In:  bytes cut anywhere.
Out: the events, as Anthropic's own stream has them.

A frame of the type `chunk` holds `{"bytes": BASE64, "p": PADDING}`. An exception may come at any time after the 200;
it is passed on as the event `error`.
"""

from base64 import b64decode
from collections.abc import Iterable, Iterator

from actors.adapters.converse.frames import FrameParser
from actors.adapters.document import loaded
from actors.adapters.failure import broken
from actors.adapters.sse import ServerEvent
from actors.adapters.wire import fields, string
from actors.errors import StreamFault


class ChunkParser:
    """Splits a stream into events, none of them in a frame larger than `max_event` bytes."""

    def __init__(self, max_event: int) -> None:
        self._frames = FrameParser(max_event)
        self._fault: StreamFault | None = None

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes.

        A fault after whole events is raised by the next call, so that bytes mean the same in any pieces.

        Raises:
            StreamFault: A frame is malformed, or the chunk in it is not base64.
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
        return b64decode(string(fields(loaded(payload)).get("bytes")), validate=True).decode(
            "utf-8", "replace"
        )
    except ValueError:  # binascii's error is one
        raise broken("a frame of the stream holds no chunk in base64") from None
