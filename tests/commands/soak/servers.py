"""A strict server in a process of its own, with faults by chance; it counts what it saw.

    python -m tests.commands.soak.servers DIALECT SEED FAULTS

It prints where it listens as one line of JSON. At the line `answer` on its standard input it begins to answer; at
`seen` it waits until nobody is connected, and prints what it has counted. It ends with its input.
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
from tests.transport.crowd import roomy

SLOW_DOWN = Status(429, retry_after_ms="200")
WEIGHTS: dict[InjectedFault, float] = {
    SLOW_DOWN: 0.1,  # each makes everybody slower for a while, as it should
    Status(500): 1,
    Status(529): 1,
    Disconnect(): 1,
    Disconnect(after_bytes=300): 1,
    Disconnect(after_bytes=200, reset=True): 1,
    ErrorInStream(after_events=2): 1,
    Garbage(): 1,
}
"""What goes wrong, and how often beside the others."""
KINDS = {fault: "rate_limit" if fault == SLOW_DOWN else "transient" for fault in WEIGHTS}
"""As which kind of failure a turn is told that it ends."""
MOST = 32_000_000
"""Bytes of a request's body."""
PATIENCE = 30.0
"""Seconds that connections may take to close."""


class Seen(Struct, frozen=True):
    """What a server has counted.

    Args:
        requests: That it received.
        refusals: By the rule that refused them.
        faults: That it answered with, by the kind of failure that they are.
        most: Connections at once.
        left: Connections that stayed open when everything was over.
    """

    requests: int
    refusals: dict[str, int]
    faults: dict[str, int]
    most: int
    left: int


class _Model:
    """Calls the tools of a request one after the other, now and then several at once or a wrong one."""

    def __init__(self, random: Random) -> None:
        self._random, self._calls = random, 0

    def __call__(self, request: Json) -> Turn:
        turn = answer(request, number=self._calls)
        self._calls += len(turn.calls)
        if not turn.calls:
            return turn
        more = [turn.calls[0]] * self._random.choice((0, 0, 1, 2))
        wrong = [Call(turn.calls[0].name, {"no": "such"})] if self._random.random() < 0.05 else []
        return Turn(*turn.parts, *more, *wrong)


class _Served:
    """A strict server, who is connected to it, and what it has counted.

    Nobody is answered before `all_there` is set: so each session that begins at once has a connection of its own.
    """

    def __init__(self, server: LoopbackServer) -> None:
        self._server = server
        self.all_there = anyio.Event()
        self._requests, self._now, self._most = 0, 0, 0
        self._refusals, self._faults = Counter[str](), Counter[str]()
        server.on_exchange = self._exchange

    async def listen(self, tasks: TaskGroup) -> None:
        """Listen from now on."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self._server.port = listener.extra_attributes[SocketAttribute.local_port]()
        tasks.start_soon(listener.serve, self._connected)

    async def seen(self) -> Seen:
        """Return what was counted, once nobody is connected."""
        with anyio.move_on_after(PATIENCE):
            while self._now:  # noqa: ASYNC110  no event tells of these
                await anyio.sleep(0.05)
        return Seen(self._requests, dict(self._refusals), dict(self._faults), self._most, self._now)

    async def _connected(self, stream: SocketStream) -> None:
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
                _say(await served.seen())
        tasks.cancel_scope.cancel()


def _say(told: object) -> None:
    sys.stdout.write(f"{encode(told).decode()}\n")
    sys.stdout.flush()


@dataclass
class StrictProcess:
    """One that runs."""

    name: str
    dialect: str
    endpoint: str
    process: Forked

    def answer(self) -> None:
        """Have it answer from now on."""
        self._tell("answer")

    def seen(self) -> Seen:
        """Return what it has counted, once nobody is connected."""
        self._tell("seen")
        return decode(self.process.stdout.readline(), type=Seen)

    def _tell(self, word: str) -> None:
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()


@contextmanager
def serving(name: str, seed: int, faults: float) -> Iterator[StrictProcess]:
    """Have the strict server of a dialect run for the time of the block.

    It fails a share of its requests, and answers none before it is told to.
    """
    process = Forked("tests.commands.soak.servers", name, str(seed), str(faults))
    try:
        yield StrictProcess(**json.loads(process.stdout.readline()), process=process)
    finally:
        process.end()


if __name__ == "__main__":
    roomy(0)
    anyio.run(_serve, sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
