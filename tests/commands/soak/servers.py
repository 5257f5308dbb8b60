"""A strict server in a separate process, with random faults, that counts requests.

    python -m tests.commands.soak.servers DIALECT SEED FAULTS

It prints its address as one line of JSON. After the line `answer` on standard input it starts to answer; at `seen` it
waits until all clients have disconnected and prints its counts. It ends with its input.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import anyio
import anyio.to_thread
from anyio.abc import SocketAttribute, SocketStream, TaskGroup
from msgspec import Struct
from msgspec.json import decode, encode

from actors.strict.dialects import strict_server
from actors.strict.loopback import serve_connection
from actors.strict.rules.base import Json
from actors.strict.server import Exchange, LoopbackServer
from actors.testing import Call, Disconnect, ErrorInStream, Garbage, InjectedFault, ServerLimits, Status, Turn
from actors.testing.standin import answer
from tests.runtime.forked import Forked
from tests.transport.crowd import has_descriptors

SLOW_DOWN = Status(429, retry_after_ms="200")
WEIGHTS: dict[InjectedFault, float] = {
    SLOW_DOWN: 0.1,  # each slows all clients down for a while, as intended
    Status(500): 1,
    Status(529): 1,
    Disconnect(): 1,
    Disconnect(after_bytes=300): 1,
    Disconnect(after_bytes=200, reset=True): 1,
    ErrorInStream(after_events=2): 1,
    Garbage(): 1,
}
"""The faults and their relative frequencies."""
KINDS = {fault: "rate_limit" if fault == SLOW_DOWN else "transient" for fault in WEIGHTS}
"""The kind of failure that each fault causes in a turn."""
MOST = 32_000_000
"""The size limit of a request body in bytes."""
PATIENCE = 30.0
"""Seconds that connections may take to close."""


class Seen(Struct, frozen=True):
    """The counts of a server.

    Args:
        requests: The number of requests.
        refusals: Refused requests by rule.
        faults: Injected faults by kind of failure.
        most: The highest number of simultaneous connections.
        left: Connections that were still open at the end.
    """

    requests: int
    refusals: dict[str, int]
    faults: dict[str, int]
    most: int
    left: int


class _Model:
    """A model that calls the tools of a request in turn, sometimes several at once or an unknown one."""

    def __init__(self, random: Random) -> None:
        self._random, self._calls = random, 0

    def __call__(self, request: Json) -> Turn:
        turn = answer(request, tool_index=self._calls)
        self._calls += len(turn.calls)
        if not turn.calls:
            return turn
        more = [turn.calls[0]] * self._random.choice((0, 0, 1, 2))
        wrong = [Call(turn.calls[0].name, {"no": "such"})] if self._random.random() < 0.05 else []
        return Turn(*turn.parts, *more, *wrong)


class _Served:
    """A strict server with its connections and counts.

    Requests wait until `all_there` is set, so that sessions that start together each have their own connection.
    """

    def __init__(self, server: LoopbackServer) -> None:
        self._server = server
        self.all_there = anyio.Event()
        self._requests, self._now, self._most = 0, 0, 0
        self._refusals, self._faults = Counter[str](), Counter[str]()
        server.on_exchange = self._exchange

    async def listen(self, tasks: TaskGroup) -> None:
        """Start to listen."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self._server.port = listener.extra_attributes[SocketAttribute.local_port]()
        tasks.start_soon(listener.serve, self._handle_connection)

    async def counts(self) -> Seen:
        """Return the counts once all clients have disconnected."""
        with anyio.move_on_after(PATIENCE):
            while self._now:  # noqa: ASYNC110  no event reports disconnections
                await anyio.sleep(0.05)
        return Seen(self._requests, dict(self._refusals), dict(self._faults), self._most, self._now)

    async def _handle_connection(self, stream: SocketStream) -> None:
        self._now += 1
        self._most = max(self._most, self._now)
        try:
            await self.all_there.wait()
            await serve_connection(stream, self._server.answer, max_body=MOST, write_bytes=None)
        finally:
            self._now -= 1

    def _exchange(self, exchange: Exchange) -> None:
        self._requests += 1
        if exchange.verdict is not None:
            self._refusals[exchange.verdict.rule] += 1
        if exchange.fault is not None:
            self._faults[KINDS[exchange.fault]] += 1


async def _serve(name: str, seed: int, rate: float) -> None:
    random = Random(f"{name}/{seed}")

    def faults(number: int, request: Json) -> InjectedFault | None:
        return random.choices(*zip(*WEIGHTS.items(), strict=True))[0] if random.random() < rate else None

    server = strict_server(name, _Model(random), faults=faults, limits=ServerLimits(recordings=1))
    served = _Served(server)
    async with anyio.create_task_group() as tasks:
        await served.listen(tasks)
        _say({"name": name, "dialect": server.dialect, "endpoint": server.endpoint})
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            served.all_there.set()
            if line == "seen\n":
                _say(await served.counts())
        tasks.cancel_scope.cancel()


def _say(told: object) -> None:
    sys.stdout.write(f"{encode(told).decode()}\n")
    sys.stdout.flush()


@dataclass
class StrictProcess:
    """A running server process."""

    name: str
    dialect: str
    endpoint: str
    process: Forked

    def answer(self) -> None:
        """Let the server answer from now on."""
        self._send("answer")

    def counts(self) -> Seen:
        """Return the server's counts once all clients have disconnected."""
        self._send("seen")
        return decode(self.process.stdout.readline(), type=Seen)

    def _send(self, word: str) -> None:
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()


@contextmanager
def run_server(name: str, seed: int, faults: float) -> Iterator[StrictProcess]:
    """Run the strict server of a dialect until the end of the block.

    The server fails the given share of its requests, and answers none before `answer` is called.
    """
    process = Forked("tests.commands.soak.servers", name, str(seed), str(faults))
    try:
        yield StrictProcess(**json.loads(process.stdout.readline()), process=process)
    finally:
        process.end()


if __name__ == "__main__":
    has_descriptors(0)
    anyio.run(_serve, sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
