"""Answer requests with prepared bytes in this process, without a provider.

The transport alternates between five parallel tool calls and a text, so an ask is one turn of two requests.
Measurements of turns without a network use it.
"""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from actors.core.data.persistent import Segments
from actors.transport import Response, Timeouts

CALLS = 5
ANSWER = "The five results agree, so the question is settled."


def _chunk_event(**choice: object) -> bytes:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "model-1"}
    return b"data: " + json.dumps(chunk | choice).encode() + b"\n\n"


def _delta_event(delta: Mapping[str, object], finish: str | None = None) -> bytes:
    return _chunk_event(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])


def _call_event(index: int) -> bytes:
    function = {"name": "search", "arguments": json.dumps({"query": f"part {index}", "limit": index + 1})}
    call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
    return _delta_event({"tool_calls": [call]})


def _answer_stream(deltas: list[bytes], finish: str) -> bytes:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    opening = _delta_event({"role": "assistant", "content": ""})
    end = (_delta_event({}, finish), _chunk_event(choices=[], usage=usage), b"data: [DONE]\n\n")
    return b"".join((opening, *deltas, *end))


def calls_stream(calls: int) -> bytes:
    """Return the streamed answer that contains `calls` parallel tool calls."""
    return _answer_stream([_call_event(index) for index in range(calls)], "tool_calls")


CALLS_ANSWER = calls_stream(CALLS)
TEXT_ANSWER = _answer_stream(
    [_delta_event({"content": ANSWER[:20]}), _delta_event({"content": ANSWER[20:]})], "stop"
)


def text_stream(words: int) -> bytes:
    """Return the streamed answer that contains a text of `words` words, with one event per word."""
    return _answer_stream([_delta_event({"content": f"word {number} "}) for number in range(words)], "stop")


class _CannedResponse:
    """A response with a prepared body, which is also its own context manager."""

    status = 200
    headers: Mapping[str, str] = {"content-type": "text/event-stream"}

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aenter__(self) -> Response:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing: there is no connection."""

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self._body


class CannedTransport:
    """A transport that answers every other request with tool calls. Only one session at a time may use it."""

    def __init__(self) -> None:
        self._requests = 0

    def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Response]:
        """Return a prepared response; see `Transport.send`."""
        self._requests += 1
        return _CannedResponse(CALLS_ANSWER if self._requests % 2 else TEXT_ANSWER)

    async def close(self) -> None:
        """Do nothing: there is no connection."""
