"""Limit the answers that the SDK's HTTP client reads: none that is compressed, none above a limit.

`RemoteServer` puts this transport below the SDK: in its client, 292 KB of gzip became 1.5 GB. No encoding is requested,
and none is accepted. A JSON body or an event of a stream is buffered up to the limit and checked before the SDK reads
it. The SDK receives a JSON-RPC error in place of a rejected answer, so the connection stays usable.
"""

import json
import re
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from httpx2 import AsyncBaseTransport, AsyncByteStream, Headers, Request, Response
from mcp_types import INVALID_REQUEST, ErrorData, RequestId

from actors.core.data.jsonio import is_object
from actors.errors import AnswerTooLarge
from actors.telemetry import logger
from actors.tools.mcp.limits import McpLimits
from actors.tools.mcp.refusals import error_answer, error_data

_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r|\r\n\n|\n\r\n")  # ends an event
_FRAMING = ("content-length", "transfer-encoding", "content-encoding")


class GuardedTransport(AsyncBaseTransport):
    """A transport that requests no encoding and returns only answers within the limits.

    Args:
        below: The transport that sends the requests.
        limits: Limits of a body or an event.
        name: The server's name in the log.
        query: Added to the address of each request; the SDK logs the address without it.
    """

    def __init__(self, below: AsyncBaseTransport, limits: McpLimits, name: str, query: str) -> None:
        self._below, self._limits, self._name = below, limits, name
        self._query = query.encode()
        self.status: int | None = None
        """The status of the last answer if it was an error, else None."""

    async def handle_async_request(self, request: Request) -> Response:
        headers = request.headers.copy()
        headers["accept-encoding"] = "identity"
        url = request.url.copy_with(query=self._query) if self._query else request.url
        forwarded = Request(
            request.method, url, headers=headers, stream=request.stream, extensions=request.extensions
        )
        response = await self._below.handle_async_request(forwarded)
        self.status = response.status_code if response.status_code >= 400 else None
        request_id = _request_id(request)
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity"):
            await response.aclose()
            message = (
                f"The server sent an answer with the encoding {encoding[:40]!r}, which was not requested"
            )
            return _error(request_id, ErrorData(code=INVALID_REQUEST, message=message))
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and response.status_code < 300:
            events = BoundedEvents(response, self._limits, self._name, request_id)
            return Response(
                response.status_code, headers=_plain(response), stream=events, extensions=response.extensions
            )
        return await self._judge(response, request_id)

    async def _judge(self, response: Response, request_id: RequestId | None) -> Response:
        """Return an answer with its complete body, or the error that replaces it."""
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
        logger.answer_refused(self._name, problem)
        return _error(request_id, error_data(problem))

    async def aclose(self) -> None:
        await self._below.aclose()


class BoundedEvents(AsyncByteStream):
    """A stream of server-sent events, forwarded one by one.

    An event above a limit ends the stream with an error if the stream answers a request. Otherwise the event is
    dropped.
    """

    def __init__(
        self, response: Response, limits: McpLimits, name: str, request_id: RequestId | None
    ) -> None:
        self._response, self._limits, self._name, self._asked = response, limits, name, request_id
        self._parts = _parts(response)
        self._buffer, self._searched = (
            bytearray(),
            0,
        )  # bytes of the next event, and the number of bytes already searched for its end
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
        """Add received bytes, and queue the complete events."""
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
        logger.answer_refused(self._name, problem)
        if self._asked is not None:
            answer = error_answer(self._asked, error_data(problem))
            self._ready.append(b"event: message\ndata: %b\n\n" % answer)
            self._is_over = True

    async def aclose(self) -> None:
        self._is_over = True
        await _end(self._response, self._parts)


def _parts(response: Response) -> AsyncIterator[bytes]:
    """Return the body of an answer as an iterator of parts."""
    assert isinstance(response.stream, AsyncByteStream)  # true of every async transport
    return aiter(response.stream)


async def _end(response: Response, parts: AsyncIterator[bytes]) -> None:
    """Close an answer and finish the iterator of its body: trio warns about generators that are dropped."""
    await response.aclose()
    with suppress(Exception):
        while True:
            await anext(parts)


def _request_id(request: Request) -> RequestId | None:
    """Return the JSON-RPC id of a request, if there is one."""
    try:
        message: Any = json.loads(request.content)  # Any: a message of the SDK
    except (RuntimeError, ValueError):  # a streamed body, or not JSON
        return None
    found = message.get("id") if is_object(message) and "method" in message else None
    return found if isinstance(found, int | str) else None


def _plain(response: Response) -> Headers:
    """Return the headers of an answer without those that describe the encoding of its body."""
    return Headers([(key, value) for key, value in response.headers.multi_items() if key not in _FRAMING])


def _error(request_id: RequestId | None, error: ErrorData) -> Response:
    """Return the answer that replaces a rejected one."""
    if request_id is None:
        return Response(202)
    return Response(
        200, headers={"content-type": "application/json"}, content=error_answer(request_id, error)
    )
