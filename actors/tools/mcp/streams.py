"""Wrap the two streams between a transport and the SDK's session.

The SDK reports the end of a connection only to pending requests, but a toolset must know it before the next call, so
`IncomingStream` watches for the end. It also cleans each answer (see `answers`), for which `OutgoingStream` records the
method of each request.
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
from actors.tools.mcp.answers import accept_result


class OpenRequests:
    """The methods of the unanswered requests, by request id."""

    def __init__(self) -> None:
        self._methods: dict[RequestId, str] = {}

    @property
    def ids(self) -> tuple[RequestId, ...]:
        return tuple(self._methods)

    def record(self, message: object) -> None:
        """Record a message that is being sent."""
        if isinstance(message, JSONRPCRequest):
            self._methods[message.id] = message.method
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self.take((message.params or {}).get("requestId"))

    def take(self, request: Any) -> str:  # Any: an id from a server, unchecked
        """Remove a request and return its method; "" if the id is unknown."""
        return self._methods.pop(request, "") if isinstance(request, int | str) else ""


def watch(
    streams: TransportStreams, requests: OpenRequests, on_end: Callable[[], None], server: str
) -> TransportStreams:
    """Return a transport's streams, wrapped for the SDK's session."""
    incoming, outgoing = streams
    return IncomingStream(incoming, requests, on_end, server), OutgoingStream(outgoing, requests)


class OutgoingStream(WriteStream[SessionMessage]):
    """The stream of messages to a server."""

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
    """The stream of messages from a server. It calls `on_end` when the stream has ended."""

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
    def last_context(self) -> Any:  # Any: the SDK looks for it by name
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            item = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end()
            raise
        return item if isinstance(item, Exception) else self._accept(item)

    def _accept(self, item: SessionMessage) -> SessionMessage:
        message = item.message
        if isinstance(message, JSONRPCResponse):
            method = self._requests.take(message.id)
            result = accept_result(method, message.result, self._leave_out)
            answer = JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)
            return SessionMessage(answer, metadata=item.metadata)
        if isinstance(message, JSONRPCError):
            self._requests.take(message.id)
        return item

    def _leave_out(self, tool: str, why: str) -> None:
        logger.tool_left_out(self._server, tool, ToolDefinitionError(f"Tool {tool[:80]!r}: {why}"))

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
