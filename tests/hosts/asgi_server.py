"""A small ASGI server on asyncio and trio, to test the router on both. Each connection has one request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import cast

import anyio
import h11
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from actors.hosts import ASGIApp, ASGIMessage, Scope

BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, h11.RemoteProtocolError)


class Connection:
    """The request of one connection, as an ASGI server passes it to an application."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream, self._http = stream, h11.Connection(h11.SERVER)
        self._is_chunked = False

    async def run(self, app: ASGIApp) -> None:
        """Read the request and run the application. Close the connection early if the application raises."""
        request = await self._next()
        if not isinstance(request, h11.Request):
            return
        with suppress(Exception):  # the client sees a broken connection
            await app(self._scope(request), self.receive, self.send)

    def _scope(self, request: h11.Request) -> Scope:
        path, _, query = request.target.partition(b"?")
        return {
            "type": "http",
            "method": request.method.decode(),
            "path": path.decode(),
            "raw_path": path,
            "query_string": query,
            "scheme": "http",
            "headers": [*request.headers],
            "client": ("192.0.2.1", 1),
        }

    async def _next(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            try:
                self._http.receive_data(await self._stream.receive())
            except anyio.EndOfStream:
                return h11.ConnectionClosed()
        return event

    async def receive(self) -> ASGIMessage:
        """Return the next part of the body, and then wait until the client closes the connection."""
        if self._http.their_state is h11.SEND_BODY:
            event = await self._next()
            if isinstance(event, h11.Data):
                return {"type": "http.request", "body": bytes(event.data), "more_body": True}
            if isinstance(event, h11.EndOfMessage):
                return {"type": "http.request", "body": b"", "more_body": False}
            return {"type": "http.disconnect"}
        with suppress(*BROKEN):
            while True:
                await self._stream.receive()
        return {"type": "http.disconnect"}

    async def send(self, message: ASGIMessage) -> None:
        """Send a part of the response."""
        if message["type"] == "http.response.start":
            headers = [*message["headers"], (b"connection", b"close")]
            await self._write(h11.Response(status_code=message["status"], headers=headers))
            return
        if body := message["body"]:
            await self._write(h11.Data(data=body))
        if not message["more_body"]:
            await self._write(h11.EndOfMessage())

    async def _write(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        if data := self._http.send(event):
            with suppress(*BROKEN):
                await self._stream.send(data)


@asynccontextmanager
async def serve_app(app: ASGIApp) -> AsyncIterator[str]:
    """Serve an application on a loopback port, and return its URL. Connections are closed at the end of the block."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", backlog=512)

    async def handle(stream: SocketStream) -> None:
        async with stream:
            with suppress(*BROKEN):
                await Connection(stream).run(app)

    port: int = listener.extra(SocketAttribute.local_port)
    accepting_socket = cast(SocketListener, listener.listeners[0])
    is_closing = False

    async def accept() -> None:
        while True:
            stream = await accepting_socket.accept()
            if is_closing:
                await stream.aclose()
                return
            tasks.start_soon(handle, stream)

    async with listener, anyio.create_task_group() as accepting, anyio.create_task_group() as tasks:
        accepting.start_soon(accept)
        yield f"http://127.0.0.1:{port}"
        is_closing = True
        # asyncio raises an error if a client connects while `accept` is being cancelled, so end `accept` in order
        with suppress(OSError):
            await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
        tasks.cancel_scope.cancel()
