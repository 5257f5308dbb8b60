"""Connect to MCP servers: `ChildServer` starts a program, `RemoteServer` uses a URL (streamable HTTP).

`RemoteServer` gives the SDK an HTTP transport that limits answers, because the SDK's default client expanded 292 KB of
gzip to 1.5 GB. Requests ask for uncompressed answers, and compressed answers are rejected. A JSON body or an event of a
stream is buffered up to the limit and checked before the SDK reads it. The SDK receives a JSON-RPC error in place of a
rejected answer, so the connection stays usable.
"""

import json
import os
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from httpx2 import (
    AsyncBaseTransport,
    AsyncByteStream,
    AsyncClient,
    AsyncHTTPTransport,
    Headers,
    Proxy,
    Request,
    Response,
    Timeout,
)
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp_types import INVALID_REQUEST, ErrorData, RequestId

from actors.core.data.jsonio import is_object
from actors.errors import AnswerTooLarge, ToolsetDown
from actors.telemetry import logger
from actors.tools.mcp.answers import encode_error, error_answer
from actors.tools.mcp.child import ChildServer, public_url
from actors.tools.mcp.options import McpLimits
from actors.tools.mcp.streams import OpenRequests, wrap_streams
from actors.tools.toolset_owner import failure_reason
from actors.transport.contract import parse_target
from actors.transport.dial import proxy_for

__all__ = ["ChildServer", "RemoteServer", "Transport"]

Transport: TypeAlias = Callable[[Callable[[], None]], AbstractAsyncContextManager[TransportStreams]]
"""Opens a connection. The argument is a function to call when the server ends the connection."""
CONNECT_TIMEOUT = 30.0  # maximum seconds to connect, or to send a request
READ_TIMEOUT = 300.0  # maximum seconds without data from a server while a request is pending
_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r|\r\n\n|\n\r\n")  # matches the blank line at the end of an event
# These headers describe the received body, not the body that is passed on.
_FRAMING = ("content-length", "transfer-encoding", "content-encoding")


class RemoteServer:
    """An MCP server at a URL.

    The SDK and its HTTP client write URLs to logs and errors. So they receive the URL without its user, password and
    query, and the transport adds the query to each request.
    """

    def __init__(self, url: str, headers: Mapping[str, str], limits: McpLimits, name: str) -> None:
        self._url, self._headers, self._limits, self._name = url, headers, limits, name

    @asynccontextmanager
    async def open(self, on_end: Callable[[], None]) -> AsyncGenerator[TransportStreams]:
        """Return the streams to the server. `on_end` is called when the server ends the connection.

        Raises:
            ToolsetDown: The connection failed. The message contains the address, and the HTTP status if it is an error.
        """
        parts, requests = urlsplit(self._url), OpenRequests()
        plain = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        guarded = GuardedTransport(_http_transport(plain), self._limits, self._name, parts.query)
        user, timeout = (parts.username, parts.password), Timeout(CONNECT_TIMEOUT, read=READ_TIMEOUT)
        auth = None if user == (None, None) else (unquote(user[0] or ""), unquote(user[1] or ""))
        try:
            async with (
                AsyncClient(
                    headers=dict(self._headers), timeout=timeout, auth=auth, transport=guarded
                ) as client,
                # None switches off the SDK's limit; `GuardedTransport` limits the events
                streamable_http_client(plain, http_client=client, max_sse_event_size=None) as streams,
            ):
                yield wrap_streams(streams, requests, on_end, self._name)
        except Exception as error:
            status = f"HTTP {guarded.status} from " if guarded.status is not None else ""
            raise ToolsetDown(f"{failure_reason(error)} ({status}{public_url(self._url)})") from error


def _http_transport(url: str) -> AsyncHTTPTransport:
    """Return a transport to a URL, through a proxy if the environment configures one for the URL."""
    found = proxy_for(parse_target(url).origin, os.environ)
    if found is None:
        return AsyncHTTPTransport()
    return AsyncHTTPTransport(
        proxy=Proxy(f"{found.origin.scheme}://{found.origin.authority}", headers=[*found.headers])
    )


class GuardedTransport(AsyncBaseTransport):
    """A transport that requests uncompressed answers, and replaces answers that are compressed or exceed a limit.

    Args:
        inner: The transport that sends the requests.
        limits: Size limits for one body or event.
        name: The server's name in the log.
        query: The query string, which is added to the URL of each request. The SDK does not receive it, because it logs
            URLs.
    """

    def __init__(self, inner: AsyncBaseTransport, limits: McpLimits, name: str, query: str) -> None:
        self._inner, self._limits, self._name = inner, limits, name
        self._query = query.encode()
        self.status: int | None = None
        """The HTTP status of the last answer if it is an error; None otherwise."""

    async def handle_async_request(self, request: Request) -> Response:
        headers = request.headers.copy()
        headers["accept-encoding"] = "identity"
        url = request.url.copy_with(query=self._query) if self._query else request.url
        forwarded = Request(
            request.method, url, headers=headers, stream=request.stream, extensions=request.extensions
        )
        response = await self._inner.handle_async_request(forwarded)
        self.status = response.status_code if response.status_code >= 400 else None
        request_id = _request_id(request)
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity"):
            await response.aclose()
            message = (
                f"The server sent an answer with the encoding {encoding[:40]!r}, which was not requested"
            )
            return _error_response(request_id, ErrorData(code=INVALID_REQUEST, message=message))
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and response.status_code < 300:
            events = BoundedEvents(response, self._limits, self._name, request_id)
            return Response(
                response.status_code,
                headers=_unframed_headers(response),
                stream=events,
                extensions=response.extensions,
            )
        return await self._check_body(response, request_id)

    async def _check_body(self, response: Response, request_id: RequestId | None) -> Response:
        """Read the body of an answer. Return an answer with this body, or an error if the body exceeds a limit."""
        body, chunks = bytearray(), _body_chunks(response)
        try:
            async for chunk in chunks:
                body += chunk
                if len(body) > self._limits.max_bytes:
                    break
        finally:
            await _close_answer(response, chunks)
        if (problem := self._limits.excess_error(bytes(body))) is None:
            return Response(
                response.status_code,
                headers=_unframed_headers(response),
                content=bytes(body),
                extensions=response.extensions,
            )
        logger.answer_refused(self._name, problem)
        return _error_response(request_id, encode_error(problem))

    async def aclose(self) -> None:
        await self._inner.aclose()


class BoundedEvents(AsyncByteStream):
    """A stream of server-sent events that forwards each event once it is complete and within the limits.

    An event above a limit ends the stream with an error if the stream answers a request. Otherwise the event is
    dropped.
    """

    def __init__(
        self, response: Response, limits: McpLimits, name: str, request_id: RequestId | None
    ) -> None:
        self._response, self._limits, self._name, self._request = response, limits, name, request_id
        self._chunks = _body_chunks(response)
        # Received bytes of the next event, and how many of them were already searched for its end.
        self._buffer, self._searched = bytearray(), 0
        self._ready: deque[bytes] = deque()
        self._is_dropping = self._is_over = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._ready:
            if self._is_over:
                raise StopAsyncIteration
            try:
                self._add_chunk(await anext(self._chunks))
            except StopAsyncIteration:
                self._is_over = True
        return self._ready.popleft()

    def _add_chunk(self, chunk: bytes) -> None:
        """Add received bytes to the buffer, and queue the events that are complete."""
        self._buffer += chunk
        # a blank line has up to 4 bytes, so up to 3 of them may have arrived before
        while not self._is_over and (found := _BLANK.search(self._buffer, max(self._searched - 3, 0))):
            event, self._searched = bytes(self._buffer[: found.end()]), 0
            del self._buffer[: found.end()]
            if self._is_dropping:
                self._is_dropping = False
            elif (problem := self._event_error(event)) is None:
                self._ready.append(event)
            else:
                self._reject_event(problem)
        self._searched = len(self._buffer)
        if self._searched > self._limits.max_bytes and not self._is_dropping:
            self._is_dropping = True
            self._reject_event(self._limits.too_long_error(self._searched))
        if self._is_dropping:
            del self._buffer[:-3]
            self._searched = len(self._buffer)

    def _event_error(self, event: bytes) -> AnswerTooLarge | None:
        """Return an error if the data of an event exceed a limit; otherwise None."""
        lines = [line.removeprefix(b"data:") for line in event.splitlines() if line.startswith(b"data:")]
        return self._limits.excess_error(b"\n".join(lines).strip())

    def _reject_event(self, problem: AnswerTooLarge) -> None:
        """Log a rejected event. If the stream answers a request, queue an error answer and end the stream."""
        logger.answer_refused(self._name, problem)
        if self._request is not None:
            answer = error_answer(self._request, encode_error(problem))
            self._ready.append(b"event: message\ndata: %b\n\n" % answer)
            self._is_over = True

    async def aclose(self) -> None:
        self._is_over = True
        await _close_answer(self._response, self._chunks)


def _body_chunks(response: Response) -> AsyncIterator[bytes]:
    """Return an iterator over the chunks of an answer's body."""
    assert isinstance(response.stream, AsyncByteStream)  # every async transport returns such a stream
    return aiter(response.stream)


async def _close_answer(response: Response, chunks: AsyncIterator[bytes]) -> None:
    """Close an answer, and exhaust the iterator over its body, because trio warns about unfinished generators."""
    await response.aclose()
    with suppress(Exception):
        while True:
            await anext(chunks)


def _request_id(request: Request) -> RequestId | None:
    """Return the JSON-RPC id of a request, or None if the message expects no answer."""
    try:
        message: Any = json.loads(request.content)  # Any: JSON values have many types
    except (RuntimeError, ValueError):  # the body is a stream, or is not JSON
        return None
    found = message.get("id") if is_object(message) and "method" in message else None
    return found if isinstance(found, int | str) else None


def _unframed_headers(response: Response) -> Headers:
    """Return the headers of an answer, except those that describe the length or the encoding of its body."""
    return Headers([(key, value) for key, value in response.headers.multi_items() if key not in _FRAMING])


def _error_response(request_id: RequestId | None, error: ErrorData) -> Response:
    """Return an answer with a JSON-RPC error, or an empty answer if there is no request id."""
    if request_id is None:
        return Response(202)
    return Response(
        200, headers={"content-type": "application/json"}, content=error_answer(request_id, error)
    )
