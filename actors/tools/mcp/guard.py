"""The HTTP transport below the SDK's: no answer is read that is encoded, or above a limit.

292 KB of gzip became 1.5 GB in the SDK's client. So no encoding is asked for, and none is accepted. A body of JSON and
an event of a stream are collected here, up to the limit, and judged before the SDK sees them. In place of one that is
refused the SDK gets a JSON-RPC error for the request, so the connection stays usable.
"""

import json
import re
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from httpx2 import AsyncBaseTransport, AsyncByteStream, Headers, Request, Response
from mcp_types import INVALID_REQUEST, ErrorData, RequestId

from actors import telemetry
from actors.errors import AnswerTooLarge
from actors.tools.mcp.limits import McpLimits
from actors.tools.mcp.refusals import error_answer, error_data

_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r|\r\n\n|\n\r\n")  # ends an event
_FRAMING = ("content-length", "transfer-encoding", "content-encoding")


class GuardedTransport(AsyncBaseTransport):
    """Sends requests without encodings, and answers within the limits.

    Args:
        below: What sends them.
        limits: Of a body or an event.
        name: Names the server in the log.
        query: Added to the address of each request; the SDK logs the address without it.
    """

    def __init__(self, below: AsyncBaseTransport, limits: McpLimits, name: str, query: str) -> None:
        self._below, self._limits, self._name = below, limits, name
        self._query = query.encode()
        self.status: int | None = None
        """The status of the last answer, if it was an error."""

    async def handle_async_request(self, request: Request) -> Response:
        headers = request.headers.copy()
        headers["accept-encoding"] = "identity"
        url = request.url.copy_with(query=self._query) if self._query else request.url
        sent = Request(
            request.method, url, headers=headers, stream=request.stream, extensions=request.extensions
        )
        response = await self._below.handle_async_request(sent)
        self.status = response.status_code if response.status_code >= 400 else None
        asked = _request_id(request)
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity"):
            await response.aclose()
            said = f"The server sent an answer with the encoding {encoding[:40]!r}, which was not asked for"
            return _error(asked, ErrorData(code=INVALID_REQUEST, message=said))
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and response.status_code < 300:
            events = BoundedEvents(response, self._limits, self._name, asked)
            return Response(
                response.status_code, headers=_plain(response), stream=events, extensions=response.extensions
            )
        return await self._judge(response, asked)

    async def _judge(self, response: Response, asked: RequestId | None) -> Response:
        """Return an answer with all of its body, or the error that takes its place."""
        body, parts = bytearray(), _parts(response)
        try:
            async for part in parts:
                body += part
                if len(body) > self._limits.max_bytes:
                    break
        finally:
            await _end(response, parts)
        if (problem := self._limits.excess(bytes(body))) is None:
            return Response(
                response.status_code,
                headers=_plain(response),
                content=bytes(body),
                extensions=response.extensions,
            )
        telemetry.answer_refused(self._name, problem)
        return _error(asked, error_data(problem))

    async def aclose(self) -> None:
        await self._below.aclose()


class BoundedEvents(AsyncByteStream):
    """A stream of server-sent events, passed on event by event.

    An event above a limit is the last one if it would have answered a request: the error takes its place. Of a stream
    that answers nothing, it is left out.
    """

    def __init__(self, response: Response, limits: McpLimits, name: str, asked: RequestId | None) -> None:
        self._response, self._limits, self._name, self._asked = response, limits, name, asked
        self._parts = _parts(response)
        self._buffer, self._searched = (
            bytearray(),
            0,
        )  # what came of the next event, and how much of it was searched
        self._ready: deque[bytes] = deque()
        self._is_dropping = self._is_over = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._ready:
            if self._is_over:
                raise StopAsyncIteration
            try:
                self._take(await anext(self._parts))
            except StopAsyncIteration:
                self._is_over = True
        return self._ready.popleft()

    def _take(self, part: bytes) -> None:
        """Take more of the stream, and make the events ready that are complete with it."""
        self._buffer += part
        while not self._is_over and (found := _BLANK.search(self._buffer, max(self._searched - 3, 0))):
            event, self._searched = bytes(self._buffer[: found.end()]), 0
            del self._buffer[: found.end()]
            if self._is_dropping:
                self._is_dropping = False
            elif (problem := self._problem(event)) is None:
                self._ready.append(event)
            else:
                self._refuse(problem)
        self._searched = len(self._buffer)
        if self._searched > self._limits.max_bytes and not self._is_dropping:
            self._is_dropping = True
            self._refuse(self._limits.too_long(self._searched))
        if self._is_dropping:
            del self._buffer[:-3]
            self._searched = len(self._buffer)

    def _problem(self, event: bytes) -> AnswerTooLarge | None:
        lines = [line.removeprefix(b"data:") for line in event.splitlines() if line.startswith(b"data:")]
        return self._limits.excess(b"\n".join(lines).strip())

    def _refuse(self, problem: AnswerTooLarge) -> None:
        telemetry.answer_refused(self._name, problem)
        if self._asked is not None:
            answer = error_answer(self._asked, error_data(problem))
            self._ready.append(b"event: message\ndata: %b\n\n" % answer)
            self._is_over = True

    async def aclose(self) -> None:
        self._is_over = True
        await _end(self._response, self._parts)


def _parts(response: Response) -> AsyncIterator[bytes]:
    """Return the body of an answer as it comes."""
    assert isinstance(response.stream, AsyncByteStream)  # as of any async transport
    return aiter(response.stream)


async def _end(response: Response, parts: AsyncIterator[bytes]) -> None:
    """Close an answer, and have the iterator of its body end: a generator that is only dropped is a warning on trio."""
    await response.aclose()
    with suppress(Exception):
        while True:
            await anext(parts)


def _request_id(request: Request) -> RequestId | None:
    """Return the id of the JSON-RPC request in a request, if there is one."""
    try:
        said: Any = json.loads(request.content)  # Any: a message of the SDK
    except (RuntimeError, ValueError):  # a body that is not there, or none
        return None
    found = said.get("id") if isinstance(said, dict) and "method" in said else None
    return found if isinstance(found, int | str) else None


def _plain(response: Response) -> Headers:
    """Return the headers of an answer without those that say how its body was sent."""
    return Headers([(key, value) for key, value in response.headers.multi_items() if key not in _FRAMING])


def _error(asked: RequestId | None, error: ErrorData) -> Response:
    """Return the answer that takes the place of one that is refused."""
    if asked is None:
        return Response(202)
    return Response(200, headers={"content-type": "application/json"}, content=error_answer(asked, error))
