"""Run turns over HTTP with a hand-written loop: h11 over anyio streams, on either event loop.

This is the baseline of the HTTP measurements. Each conversation has one connection. The loop reads the same answers,
runs the same tools concurrently and encodes the same requests as a session. It validates nothing, keeps no log, and
sets no timeouts or size limits.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import anyio
import h11

from benchmarks.turn import search

QUESTION = "Please settle the question with five searches."
_FUNCTION = {"name": "search", "description": "Search the records.", "parameters": {"type": "object"}}
TOOLS = [{"type": "function", "function": _FUNCTION}]


class Client:
    """A client with one HTTP connection to a provider."""

    def __init__(self, url: str, *, stream: bool) -> None:
        self._parts, self._stream = urlsplit(url), stream
        self._http = h11.Connection(h11.CLIENT)

    async def open(self) -> None:
        """Open the connection."""
        assert self._parts.hostname is not None
        assert self._parts.port is not None
        self._socket = await anyio.connect_tcp(self._parts.hostname, self._parts.port)

    async def close(self) -> None:
        await self._socket.aclose()

    async def post(self, *pieces: bytes) -> bytes:
        """Send a request body, given in fragments, and return the response body."""
        http, size = self._http, sum(map(len, pieces))
        host = f"{self._parts.hostname}:{self._parts.port}"
        headers = [("host", host), ("content-type", "application/json"), ("content-length", str(size))]
        opening = http.send(h11.Request(method="POST", target="/v1/chat/completions", headers=headers))
        for piece in pieces:
            http.send_with_data_passthrough(h11.Data(data=piece))
        http.send(h11.EndOfMessage())
        await self._socket.send(b"".join((opening or b"", *pieces)))
        body = b""
        while not isinstance(event := http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                http.receive_data(await self._socket.receive())
            elif isinstance(event, h11.Data):
                body += event.data
        http.start_next_cycle()
        return body

    async def run_turn(self) -> None:
        """Run one turn of a new conversation: model, five concurrent tools, model."""
        await run_turn(self.post, stream=self._stream)


async def run_turn(post: Callable[[bytes], Awaitable[bytes]], *, stream: bool) -> None:
    """Run one turn of a new conversation. `post` sends a request body and returns the response body."""
    messages: list[Any] = [{"role": "user", "content": QUESTION}]  # Any: parsed JSON
    while True:
        request = {"model": "model-1", "messages": messages, "tools": TOOLS, "stream": stream}
        message = _answer_message(await post(json.dumps(request).encode()), stream)
        messages.append(message)
        if not (calls := message.get("tool_calls")):
            return
        results = await _run_calls(calls)
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": results[call["id"]]} for call in calls
        ]


async def _run_calls(calls: list[Any]) -> dict[str, str]:  # Any: parsed JSON
    """Run all tool calls concurrently, and return the results by call id."""
    results = dict[str, str]()

    async def run(call: dict[str, Any]) -> None:
        results[call["id"]] = await search(**json.loads(call["function"]["arguments"]))

    async with anyio.create_task_group() as tasks:
        for call in calls:
            tasks.start_soon(run, call)
    return results


def _answer_message(body: bytes, stream: bool) -> dict[str, Any]:  # Any: parsed JSON
    if not stream:
        message: dict[str, Any] = json.loads(body)["choices"][0]["message"]
        return message
    calls: list[Any] = []
    text = ""
    for line in body.split(b"\n\n"):
        if line.startswith(b"data: {") and (choices := json.loads(line[6:])["choices"]):
            delta = choices[0]["delta"]
            calls += delta.get("tool_calls", ())
            text += delta.get("content") or ""
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
