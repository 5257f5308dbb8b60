"""The server of `raw` over HTTP, in this process, with answers as JSON, events or gzip."""

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc

from tests.tools.mcp_servers.raw import answer

Json = Any  # JSON


class RawHttp:
    """Answers by a table. `form` is `json`, `events` or `gzip`; `status` is the status of each answer."""

    def __init__(self, table: Json, form: str = "json", status: str = "200 OK") -> None:
        self.table, self.form, self.status = table, form, status
        self.heads: list[bytes] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @asynccontextmanager
    async def serve(self) -> AsyncIterator["RawHttp"]:
        problem: Exception | None = None
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as tasks,
        ):
            self.port = listener.extra(anyio.abc.SocketAttribute.local_port)
            tasks.start_soon(listener.serve, self._handle)
            try:
                yield self
            except Exception as error:  # raised outside of the task group
                problem = error
            tasks.cancel_scope.cancel()
        if problem is not None:
            raise problem

    async def _handle(self, client: anyio.abc.SocketStream) -> None:
        async with client:
            try:
                await client.send(await self._answer(client))
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return

    async def _answer(self, client: anyio.abc.SocketStream) -> bytes:
        said = b""
        while b"\r\n\r\n" not in said:
            said += await client.receive()
        head, _, body = said.partition(b"\r\n\r\n")
        self.heads.append(head)
        length = next(
            (
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            ),
            0,
        )
        while len(body) < length:
            body += await client.receive()
        if not head.startswith(b"POST"):
            return b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        found = answer(self.table, json.loads(body))
        if found is None:
            return b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        return self._encode(json.dumps(found).encode())

    def _encode(self, body: bytes) -> bytes:
        kind, more = b"application/json", b""
        if self.form == "events":
            kind, body = b"text/event-stream", b": hello\r\n\r\nevent: message\r\ndata: %b\r\n\r\n" % body
        elif self.form == "gzip":
            more, body = b"content-encoding: gzip\r\n", gzip.compress(body)
        head = b"HTTP/1.1 %b\r\ncontent-type: %b\r\n%bcontent-length: %d\r\nconnection: close\r\n\r\n"
        return head % (self.status.encode(), kind, more, len(body)) + body
