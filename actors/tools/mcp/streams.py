"""The two streams of a connection, between a transport and the SDK's session.

The SDK closes the stream of what a server says when the connection ends, and reports it only to pending requests. A
toolset has to know it before the next call, so `IncomingStream` watches the stream. It also brings each answer into the
form that the SDK accepts (`answers`), for which `OutgoingStream` notes the method of each request.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.client._transport import ReadStream, TransportStreams, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId

from actors import telemetry
from actors.errors import ToolDefinitionError
from actors.tools.mcp.answers import accept_result


class OpenRequests:
    """The methods of the requests that have no answer yet, by id."""

    def __init__(self) -> None:
        self._methods: dict[RequestId, str] = {}

    @property
    def ids(self) -> tuple[RequestId, ...]:
        return tuple(self._methods)

    def note(self, message: object) -> None:
        """Take note of a message that is sent."""
        if isinstance(message, JSONRPCRequest):
            self._methods[message.id] = message.method
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self.take((message.params or {}).get("requestId"))

    def take(self, request: Any) -> str:  # Any: an id, or what a server gave as one
        """Forget a request, and return its method, "" if it is not known."""
        return self._methods.pop(request, "") if isinstance(request, int | str) else ""


def watch(
    streams: TransportStreams, requests: OpenRequests, ended: Callable[[], None], server: str
) -> TransportStreams:
    """Return the streams of a transport as the session of the SDK gets them."""
    heard, said = streams
    return IncomingStream(heard, requests, ended, server), OutgoingStream(said, requests)


class OutgoingStream(WriteStream[SessionMessage]):
    """The stream of messages to a server."""

    def __init__(self, stream: WriteStream[SessionMessage], requests: OpenRequests) -> None:
        self._stream, self._requests = stream, requests

    async def send(self, item: SessionMessage, /) -> None:
        self._requests.note(item.message)
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
    """The stream of messages from a server. It calls `ended` when the stream has ended."""

    def __init__(
        self,
        stream: ReadStream[SessionMessage | Exception],
        requests: OpenRequests,
        ended: Callable[[], None],
        server: str,
    ) -> None:
        self._stream, self._requests = stream, requests
        self._ended, self._server = ended, server

    @property
    def last_context(self) -> Any:  # Any: the SDK looks for it by name
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            item = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ended()
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
        telemetry.tool_left_out(self._server, tool, ToolDefinitionError(f"Tool {tool[:80]!r}: {why}"))

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
