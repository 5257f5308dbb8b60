"""A provider that does not think: an HTTP server of its own process that answers with bytes made beforehand.

    with running(together=100) as url: ...

A request that ends in a user message is answered with five tool calls, one that ends in tool results with a text. The
stub checks nothing and parses nothing. `Behaviour` has its settings: to answer only once so many requests wait, so that
as many connections are in use at once; to answer after a delay; to call fewer tools; or to stream a text of so many
events, each written on its own, so that it arrives on its own.
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

from benchmarks.canned import ANSWER, ANSWERING, CALLS, calling, worded
from benchmarks.start import ROOT

DESCRIPTORS = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
_TAIL = 64 * 1024
"""Bytes of a body's end in which its last message begins."""
_EDGE = 4096
"""Bytes of either end of a body in which its settings are: some clients send the messages last."""
PAUSE = 0.0005
"""Seconds between two events of a text that is sent word by word."""


def _whole(message: dict[str, object], finish: str) -> bytes:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    choice = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": finish}
    body = json.dumps(
        {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "model-1"}
        | {"choices": [choice], "usage": usage}
    ).encode()
    opening = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    return opening + body


def _call(index: int) -> dict[str, object]:
    arguments = json.dumps({"query": f"part {index}", "limit": index + 1})
    return {"id": f"call_{index}", "type": "function", "function": {"name": "search", "arguments": arguments}}


def _streamed(events: bytes) -> tuple[bytes, ...]:
    opening = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    chunks = [event + b"\n\n" for event in events.split(b"\n\n") if event]
    return (opening, *(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks), b"0\r\n\r\n")


Pieces: TypeAlias = tuple[bytes, ...]
"""An answer in the pieces in which it is written."""


class Behaviour(Struct, frozen=True):
    """How a stub answers.

    Args:
        together: Requests that must wait before any of them is answered.
        words: Events of a text that is the only answer; 0 for tool calls and then a text.
        delay: Seconds from a request to its answer.
        calls: Tool calls of the first answer.
    """

    together: int = 1
    words: int = 0
    delay: float = 0.0
    calls: int = CALLS


class Answers:
    """The answers of a stub, made beforehand: by whether they are streamed and whether tool results came."""

    def __init__(self, behaviour: Behaviour) -> None:
        calls = [_call(number) for number in range(behaviour.calls)]
        called: dict[str, object] = {"content": None, "tool_calls": calls}
        self._answers: dict[tuple[bool, bool], Pieces] = {
            (False, False): (_whole(called, "tool_calls"),),
            (False, True): (_whole({"content": ANSWER}, "stop"),),
            (True, False): _streamed(calling(behaviour.calls)),
            (True, True): _streamed(ANSWERING),
        }
        self.words = _streamed(worded(behaviour.words)) if behaviour.words else ()
        self.together, self.delay = behaviour.together, behaviour.delay

    def answer(self, start: bytes, tail: bytes) -> Pieces:
        """Return the answer to a request, of whose body these are the two ends."""
        last = tail.rfind(b'"role":')
        edges = start + tail[-_EDGE:]
        streams = b'"stream":true' in edges.replace(b" ", b"")
        return self._answers[streams, b'"tool"' in tail[last : last + 20]]


Waiting: TypeAlias = tuple[asyncio.Transport, Pieces]


class Stub(asyncio.Protocol):
    """One connection."""

    def __init__(self, answers: Answers, waiting: list[Waiting]) -> None:
        self._answers, self._waiting = answers, waiting
        self._session, self._left, self._start, self._tail = b"", 0, b"", b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._left:
            self._session += data
            end = self._session.find(b"\r\n\r\n")
            if end < 0:
                return
            at = self._session.lower().index(b"content-length:") + 15
            self._left = int(self._session[at : self._session.index(b"\r\n", at)])
            data, self._session, self._start, self._tail = self._session[end + 4 :], b"", b"", b""
        self._left -= len(data)
        self._start = (self._start + data)[:_EDGE]
        self._tail = (self._tail + data)[-_TAIL:]
        if not self._left:
            self._asked(self._tail)

    def _asked(self, tail: bytes) -> None:
        if self._answers.words:
            self._say(iter(self._answers.words))
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

    def _say(self, words: Iterator[bytes]) -> None:
        """Send one event, and the next after a pause."""
        if word := next(words, b""):
            self._transport.write(word)
            asyncio.get_running_loop().call_later(PAUSE, self._say, words)


async def _serve(behaviour: Behaviour) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    waiting: list[Waiting] = []
    loop, answers = asyncio.get_running_loop(), Answers(behaviour)
    server = await loop.create_server(lambda: Stub(answers, waiting), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def running(together: int = 1, words: int = 0, *, delay: float = 0.0, calls: int = CALLS) -> Iterator[str]:
    """Give the base URL of a stub that runs in a process of its own; the arguments are those of `Behaviour`."""
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
