"""Wrap the two streams of messages between a server's transport and the SDK's session.

The SDK reports the end of a connection only to pending requests. A toolset must know of the end before the next call,
so `IncomingStream` reports it. `IncomingStream` also cleans each answer (`actors.tools.mcp.answers`), depending on the
method of the request, which `OutgoingStream` records.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.client._transport import ReadStream, TransportStreams, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId

from actors.errors import ToolDefinitionError
from actors.telemetry import logger
from actors.tools.mcp.answers import clean_result


class OpenRequests:
    """The requests that the server has not answered yet, with the method of each."""

    def __init__(self) -> None:
        self._methods: dict[RequestId, str] = {}

    @property
    def ids(self) -> tuple[RequestId, ...]:
        """The ids of the requests, oldest first."""
        return tuple(self._methods)

    def record(self, message: object) -> None:
        """Record a message to the server: add a request, or remove the request that a notification cancels."""
        if isinstance(message, JSONRPCRequest):
            self._methods[message.id] = message.method
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self.remove((message.params or {}).get("requestId"))

    def remove(self, request: Any) -> str:  # Any: an id from a server, which may be any JSON value
        """Remove a request, and return its method; "" if there is no request with this id."""
        return self._methods.pop(request, "") if isinstance(request, int | str) else ""


def wrap_streams(
    streams: TransportStreams, requests: OpenRequests, on_end: Callable[[], None], server: str
) -> TransportStreams:
    """Wrap a transport's streams, so that requests are recorded, answers are cleaned and `on_end` reports the end."""
    incoming, outgoing = streams
    return IncomingStream(incoming, requests, on_end, server), OutgoingStream(outgoing, requests)


class OutgoingStream(WriteStream[SessionMessage]):
    """The stream of messages to a server, which records each request before sending it."""

    def __init__(self, stream: WriteStream[SessionMessage], requests: OpenRequests) -> None:
        self._stream, self._requests = stream, requests

    async def send(self, item: SessionMessage, /) -> None:
        self._requests.record(item.message)
        await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


class IncomingStream(ReadStream[SessionMessage | Exception]):
    """The stream of messages from a server.

    The stream cleans each answer, and calls `on_end` when the server's messages end.
    """

    def __init__(
        self,
        stream: ReadStream[SessionMessage | Exception],
        requests: OpenRequests,
        on_end: Callable[[], None],
        server: str,
    ) -> None:
        self._stream, self._requests = stream, requests
        self._on_end, self._server = on_end, server

    @property
    def last_context(self) -> Any:  # Any: a value of the SDK, which reads this attribute by name
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            item = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end()
            raise
        return item if isinstance(item, Exception) else self._clean_answer(item)

    def _clean_answer(self, item: SessionMessage) -> SessionMessage:
        """Return an answer with a result that the SDK accepts (`actors.tools.mcp.answers`)."""
        message = item.message
        if isinstance(message, JSONRPCResponse):
            method = self._requests.remove(message.id)
            result = clean_result(method, message.result, self._log_dropped_tool)
            answer = JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)
            return SessionMessage(answer, metadata=item.metadata)
        if isinstance(message, JSONRPCError):
            self._requests.remove(message.id)
        return item

    def _log_dropped_tool(self, tool: str, reason: str) -> None:
        """Log that a tool of the server was dropped, and the reason."""
        logger.tool_left_out(self._server, tool, ToolDefinitionError(f"Tool {tool[:80]!r}: {reason}"))

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> "IncomingStream":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)
