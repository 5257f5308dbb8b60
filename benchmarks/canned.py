"""Answer requests in this process with prepared bytes instead of a provider.

The transport alternates between five parallel tool calls and a text, so an ask is one turn of two requests. The
measurements of turns without a network use it.
"""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from actors.core.data.segments import Segments
from actors.transport import Response, Timeouts

CALLS = 5
ANSWER = "The five results agree, so the question is settled."


def _chunk(**choice: object) -> bytes:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "model-1"}
    return b"data: " + json.dumps(chunk | choice).encode() + b"\n\n"


def _delta(delta: Mapping[str, object], finish: str | None = None) -> bytes:
    return _chunk(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])


def _call(index: int) -> bytes:
    function = {"name": "search", "arguments": json.dumps({"query": f"part {index}", "limit": index + 1})}
    call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
    return _delta({"tool_calls": [call]})


def _stream(deltas: list[bytes], finish: str) -> bytes:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    opening = _delta({"role": "assistant", "content": ""})
    end = (_delta({}, finish), _chunk(choices=[], usage=usage), b"data: [DONE]\n\n")
    return b"".join((opening, *deltas, *end))


def calling(calls: int) -> bytes:
    """Return the stream of an answer with `calls` parallel tool calls."""
    return _stream([_call(index) for index in range(calls)], "tool_calls")


CALLING = calling(CALLS)
ANSWERING = _stream([_delta({"content": ANSWER[:20]}), _delta({"content": ANSWER[20:]})], "stop")


def text_stream(words: int) -> bytes:
    """Return the stream of a text of `words` words, one event per word."""
    return _stream([_delta({"content": f"word {number} "}) for number in range(words)], "stop")


class _Answer:
    """A response and its own context manager."""

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


class Canned:
    """A transport that answers every other request with tool calls. Use it with one session at a time."""

    def __init__(self) -> None:
        self._requests = 0

    def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Response]:
        """Answer a request; see `Transport.send`."""
        self._requests += 1
        return _Answer(CALLING if self._requests % 2 else ANSWERING)

    async def close(self) -> None:
        """Do nothing: there is no connection."""
