"""Run a stub provider: an HTTP server in a separate process that answers with prepared bytes.

    with run_stub(together=100) as url: ...

The stub answers a request that ends in a user message with five tool calls, and a request that ends in tool results
with a text. It neither validates nor parses requests. `Behaviour` defines variants: answers that wait until a number of
requests have arrived, so that as many connections are open concurrently; a delay; another number of tool calls; or a
text that is streamed with a pause after each event, so that each event arrives separately.
"""

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import asdict

from benchmarks.canned import ANSWER, CALLS, TEXT_ANSWER, calls_stream, text_stream
from benchmarks.start import ROOT

DESCRIPTORS = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
_TAIL = 64 * 1024
"""Number of bytes at the end of a request body that surely contain the start of its last message."""
_EDGE = 4096
"""Number of bytes at both ends of a request body that contain its settings. Some clients send the messages last."""
PAUSE = 0.0005
"""Seconds between two events of a text that is streamed word by word."""


def _plain_response(message: dict[str, object], finish: str) -> bytes:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    choice = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": finish}
    body = json.dumps(
        {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "model-1"}
        | {"choices": [choice], "usage": usage}
    ).encode()
    opening = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    return opening + body


def _wire_call(index: int) -> dict[str, object]:
    arguments = json.dumps({"query": f"part {index}", "limit": index + 1})
    return {"id": f"call_{index}", "type": "function", "function": {"name": "search", "arguments": arguments}}


def _stream_chunks(events: bytes) -> tuple[bytes, ...]:
    opening = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    chunks = [event + b"\n\n" for event in events.split(b"\n\n") if event]
    return (opening, *(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks), b"0\r\n\r\n")


Pieces: TypeAlias = tuple[bytes, ...]
"""An answer as the byte strings that are written separately."""


class Behaviour(Struct, frozen=True):
    """Settings of a stub provider.

    Args:
        together: Number of waiting requests at which all of them are answered.
        words: Number of events of a text that answers every request; 0 for tool calls followed by a text.
        delay: Seconds from a request to its answer.
        calls: Number of tool calls in the first answer.
    """

    together: int = 1
    words: int = 0
    delay: float = 0.0
    calls: int = CALLS


class Answers:
    """The prepared answers, by two flags: whether the answer is streamed, and whether it follows tool results."""

    def __init__(self, behaviour: Behaviour) -> None:
        calls = [_wire_call(number) for number in range(behaviour.calls)]
        called: dict[str, object] = {"content": None, "tool_calls": calls}
        self._answers: dict[tuple[bool, bool], Pieces] = {
            (False, False): (_plain_response(called, "tool_calls"),),
            (False, True): (_plain_response({"content": ANSWER}, "stop"),),
            (True, False): _stream_chunks(calls_stream(behaviour.calls)),
            (True, True): _stream_chunks(TEXT_ANSWER),
        }
        self.words = _stream_chunks(text_stream(behaviour.words)) if behaviour.words else ()
        self.together, self.delay = behaviour.together, behaviour.delay

    def answer(self, start: bytes, tail: bytes) -> Pieces:
        """Return the answer to a request, given the start and the end of the request's body."""
        last = tail.rfind(b'"role":')
        edges = start + tail[-_EDGE:]
        streams = b'"stream":true' in edges.replace(b" ", b"")
        return self._answers[streams, b'"tool"' in tail[last : last + 20]]


Waiting: TypeAlias = tuple[asyncio.Transport, Pieces]


class Stub(asyncio.Protocol):
    """A connection of the stub server."""

    def __init__(self, answers: Answers, waiting: list[Waiting]) -> None:
        self._answers, self._waiting = answers, waiting
        self._head, self._left, self._start, self._tail = b"", 0, b"", b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._left:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            at = self._head.lower().index(b"content-length:") + 15
            self._left = int(self._head[at : self._head.index(b"\r\n", at)])
            data, self._head, self._start, self._tail = self._head[end + 4 :], b"", b"", b""
        self._left -= len(data)
        self._start = (self._start + data)[:_EDGE]
        self._tail = (self._tail + data)[-_TAIL:]
        if not self._left:
            self._send_answer(self._tail)

    def _send_answer(self, tail: bytes) -> None:
        if self._answers.words:
            self._write_events(iter(self._answers.words))
        elif self._answers.delay:
            loop, pieces = asyncio.get_running_loop(), self._answers.answer(self._start, tail)
            loop.call_later(self._answers.delay, self._write, self._transport, pieces)
        else:
            self._waiting.append((self._transport, self._answers.answer(self._start, tail)))
            if len(self._waiting) >= self._answers.together:
                for transport, pieces in self._waiting:
                    self._write(transport, pieces)
                self._waiting.clear()

    @staticmethod
    def _write(transport: asyncio.Transport, pieces: Pieces) -> None:
        for piece in pieces:
            transport.write(piece)

    def _write_events(self, words: Iterator[bytes]) -> None:
        """Write one event, and schedule the next one after a pause."""
        if word := next(words, b""):
            self._transport.write(word)
            asyncio.get_running_loop().call_later(PAUSE, self._write_events, words)


async def _serve(behaviour: Behaviour) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    waiting: list[Waiting] = []
    loop, answers = asyncio.get_running_loop(), Answers(behaviour)
    server = await loop.create_server(lambda: Stub(answers, waiting), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def run_stub(together: int = 1, words: int = 0, *, delay: float = 0.0, calls: int = CALLS) -> Iterator[str]:
    """Run a stub in a separate process, and yield its base URL; see `Behaviour` for the arguments."""
    behaviour = json.dumps(asdict(Behaviour(together, words, delay, calls)))
    command = (sys.executable, "-m", "benchmarks.stub", behaviour)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(_serve(decode(sys.argv[1], type=Behaviour)))
