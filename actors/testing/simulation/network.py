"""Strict servers without sockets: a transport that asks them in the same process and hands on what they answer.

It is the same server object that listens on a port elsewhere: the same rules, the same faults, the same bytes. Only the
way is another: an answer comes in pieces cut anywhere, after delays that the seed decides, on the loop's own clock.
"""

import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Never
from urllib.parse import urlsplit

import anyio

from actors.core.data.segments import Segments
from actors.errors import ProviderFailed
from actors.strict.loopback import HttpRequest, LoopbackAnswer
from actors.strict.server import LoopbackServer
from actors.transport.contract import Response, Timeouts

Seen = Callable[[str, bytes], None]
"""Called with a server's name and a body, before the server is asked."""


LATER = 0.5
"""How often a piece of an answer comes after the one before it, and not together with it."""


class SimulatedNetwork:
    """A transport to servers of this process.

    Args:
        servers: By name. Each is given an address here.
        random: Decides on delays and cuts.
        seen: Told of each request.
    """

    def __init__(self, servers: Mapping[str, LoopbackServer], random: Random, seen: Seen) -> None:
        self._random = random
        self._seen = seen
        self._at: dict[int, tuple[str, LoopbackServer]] = {}
        self.requests: dict[str, int] = dict.fromkeys(servers, 0)
        for port, (name, server) in enumerate(servers.items(), 1):
            server.port = port
            self._at[port] = name, server

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        """Ask the server; see `Transport.send`."""
        where = urlsplit(url)
        name, server = self._at[where.port or 0]
        body = b"".join(segments)
        self.requests[name] += 1
        self._seen(name, body)
        named = {key.lower(): value for key, value in headers}
        answer = server.answer(HttpRequest("POST", where.path, named, body, False))
        if answer.over is not None:
            answer.over()
        wait = self._random.expovariate(2.0)
        await _passed(wait if answer.sent or answer.then != "stall" else math.inf, timeouts, first=True)
        if not answer.sent:
            raise ProviderFailed(f"No answer from {name}: the connection was closed")
        yield _Answered(answer, self._random, timeouts)

    async def close(self) -> None:
        """Nothing is open."""


class _Answered:
    """A response on its way."""

    def __init__(self, answer: LoopbackAnswer, random: Random, timeouts: Timeouts) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in answer.headers}
        self._answer = answer
        self._random = random
        self._timeouts = timeouts

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Give the body, cut anywhere."""
        for chunk in _cut(self._answer, self._random):
            if self._random.random() < LATER:
                await _passed(self._random.expovariate(10.0), self._timeouts)
            yield chunk
        if self._answer.then == "stall":
            await _passed(math.inf, self._timeouts)
        if self._answer.then != "end":
            raise ProviderFailed("No answer: the connection broke in the middle of it")


def _cut(answer: LoopbackAnswer, random: Random) -> Iterator[bytes]:
    """Return the body as far as it comes, in pieces of any size: an event may be cut, and several may come at once."""
    body = b"".join(answer.parts)
    if answer.then != "end":
        body = body[: answer.cut or 0]
    at = 0
    while at < len(body):
        size = random.choice((7, 160, 1000, 4000))
        yield body[at : at + size]
        at += size


async def _passed(seconds: float, timeouts: Timeouts, *, first: bool = False) -> None:
    """Wait, as long as the timeouts allow."""
    most = timeouts.first_byte if first else timeouts.idle
    await anyio.sleep(min(seconds, most))
    if seconds > most:
        _too_long(most)


def _too_long(seconds: float) -> Never:
    raise ProviderFailed(f"No answer: waiting for it took longer than {seconds:g} s")
