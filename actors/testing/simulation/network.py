"""Connect a simulation to strict servers without sockets, through a transport in the same process.

The servers are the same objects that otherwise listen on ports, so rules, faults and bytes are the same. An answer
arrives in chunks of random size, after delays that the seed decides.
"""

import math
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
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

OnRequest = Callable[[str, bytes], None]
"""Called with the name of a server and a request body, before the server handles the request."""


LATER = 0.5
"""Probability of a delay before each chunk of an answer."""


class SimulatedNetwork:
    """A transport to servers in the same process.

    Args:
        servers: The servers by name. The transport assigns their ports.
        random: Decides delays and sizes of chunks.
        on_request: Called with each request before its server handles the request.
    """

    def __init__(self, servers: Mapping[str, LoopbackServer], random: Random, on_request: OnRequest) -> None:
        self._random = random
        self._on_request = on_request
        self._at: dict[int, tuple[str, LoopbackServer]] = {}
        self.requests: dict[str, int] = dict.fromkeys(servers, 0)
        for port, (name, server) in enumerate(servers.items(), 1):
            server.port = port
            self._at[port] = name, server

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncGenerator[Response]:
        """Send a request to its server; see `Transport.send`."""
        where = urlsplit(url)
        name, server = self._at[where.port or 0]
        body = b"".join(segments)
        self.requests[name] += 1
        self._on_request(name, body)
        named = {key.lower(): value for key, value in headers}
        answer = server.answer(HttpRequest("POST", where.path, named, body, False))
        if answer.on_sent is not None:
            answer.on_sent()
        wait = self._random.expovariate(2.0)
        await _wait_or_time_out(
            wait if answer.is_sent or answer.then != "stall" else math.inf, timeouts, first=True
        )
        if not answer.is_sent:
            raise ProviderFailed(f"No answer from {name}: the connection was closed")
        yield _SimulatedResponse(answer, self._random, timeouts)

    async def close(self) -> None:
        """Do nothing, because there is no connection."""


class _SimulatedResponse:
    """A response of a simulated server, whose body arrives over time."""

    def __init__(self, answer: LoopbackAnswer, random: Random, timeouts: Timeouts) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in answer.headers}
        self._answer = answer
        self._random = random
        self._timeouts = timeouts

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body in chunks of random size. Then stall or fail if the simulated fault says so."""
        for chunk in _split_body(self._answer, self._random):
            if self._random.random() < LATER:
                await _wait_or_time_out(self._random.expovariate(10.0), self._timeouts)
            yield chunk
        if self._answer.then == "stall":
            await _wait_or_time_out(math.inf, self._timeouts)
        if self._answer.then != "end":
            raise ProviderFailed("No complete answer: the connection was lost during the answer")


def _split_body(answer: LoopbackAnswer, random: Random) -> Iterator[bytes]:
    """Yield the transmitted body in chunks of random size, which may split or join events."""
    body = b"".join(answer.parts)
    if answer.then != "end":
        body = body[: answer.cut or 0]
    at = 0
    while at < len(body):
        size = random.choice((7, 160, 1000, 4000))
        yield body[at : at + size]
        at += size


async def _wait_or_time_out(seconds: float, timeouts: Timeouts, *, first: bool = False) -> None:
    """Sleep for `seconds`. If the timeout is shorter, raise a timeout error after the timeout.

    `first` is True for the wait for the first byte.
    """
    most = timeouts.first_byte if first else timeouts.idle
    await anyio.sleep(min(seconds, most))
    if seconds > most:
        _raise_timeout(most)


def _raise_timeout(seconds: float) -> Never:
    raise ProviderFailed(f"No answer within {seconds:g} s")
