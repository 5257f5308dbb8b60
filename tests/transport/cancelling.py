"""Cancel requests at random moments and check the pool: every slot is free, no descriptor leaks, no answers mix.

python -m tests.transport.cancelling              10,000 cancels on each backend
python -m tests.transport.cancelling --count N    N cancels
"""

import argparse
import asyncio
import sys
from random import Random

import anyio
import anyio.lowlevel
import sniffio

from actors.core.data.persistent import Segments
from actors.transport import HttpTransport, Timeouts
from tests.transport.support import Peer, Raw, descriptors, raw, read_body

PLACES = 8
WORKERS = 24
MOST_STEPS = 90
"""The most rounds of the event loop before a request is cancelled; some requests end earlier."""


async def echo(peer: Peer) -> None:
    """Answer each request with its own body, in many pieces, so that there are many points of interruption."""
    while (request := await peer.request()) is not None:
        body = request.partition(b"\r\n\r\n")[2]
        await peer.say(b"HTTP/1.1 200 OK\r\n")
        await peer.say(b"transfer-encoding: chunked\r\n\r\n")
        for at in range(0, len(body), max(1, len(body) // 6)):
            piece = body[at : at + max(1, len(body) // 6)]
            await peer.say(b"%x\r\n%b\r\n" % (len(piece), piece))
            await anyio.lowlevel.checkpoint()
        await peer.say(b"0\r\n\r\n")


class Storm:
    """Workers that send requests and are cancelled at random moments; each complete answer must match its request."""

    def __init__(self, server: Raw, count: int, seed: int) -> None:
        self.transport = HttpTransport(connections=PLACES, connecting=3)
        self.cancelled = self.whole = 0
        self._server, self._left, self._random = server, count, Random(seed)

    async def work(self) -> None:
        """Send and cancel requests until there were enough."""
        while self.cancelled < self._left:
            size = self._random.choice((10, 1000, 200_000))
            segments = Segments.of(self._random.randbytes(8).hex().encode(), b"x" * size)
            steps = self._random.randrange(MOST_STEPS)
            native = sniffio.current_async_library() == "asyncio" and self._random.random() < 0.5
            await (self._cut_natively if native else self._cut)(segments, steps)

    async def _cut(self, segments: Segments, steps: int) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.ask, segments)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    async def _cut_natively(self, segments: Segments, steps: int) -> None:
        task = asyncio.ensure_future(self.ask(segments))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    async def ask(self, segments: Segments) -> None:
        """Send one request; a complete answer must match it."""
        body = b""
        try:
            async with self.transport.send(self._server.url, (), segments, Timeouts()) as response:
                body = await read_body(response)
        finally:
            if body:
                assert body == b"".join(segments)
                self.whole += 1
            else:
                self.cancelled += 1


async def storm(count: int, seed: int) -> Storm:
    """Cancel `count` requests. Afterwards all slots are free: as many requests as there are slots are open at once."""
    is_over, arrived, all_there = False, 0, anyio.Event()

    async def answer(peer: Peer) -> None:
        nonlocal arrived
        if not is_over:
            await echo(peer)
            return
        request = await peer.request() or b""
        arrived += 1
        if arrived == PLACES:
            all_there.set()
        await all_there.wait()
        await peer.say(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + request.partition(b"\r\n\r\n")[2])

    before = descriptors()
    async with raw(answer) as server:
        work = Storm(server, count, seed)
        async with anyio.create_task_group() as tasks:
            for _ in range(WORKERS):
                tasks.start_soon(work.work)
        (pool,) = work.transport._pools.values()
        while pool._idle:  # close idle connections, so that each answered request has its own
            await pool.drop(pool._idle.pop())
        assert pool.free_slots == PLACES
        is_over = True
        with anyio.fail_after(300):
            async with anyio.create_task_group() as tasks:
                for number in range(PLACES):
                    tasks.start_soon(work.ask, Segments.of(b"%d" % number))
        await work.transport.close()
        with anyio.fail_after(300):
            while server.now:
                await anyio.lowlevel.checkpoint()
    with anyio.fail_after(300):
        while descriptors() > before:
            await anyio.lowlevel.checkpoint()
    return work


def main() -> int:
    """Run the storm on both backends."""
    parser = argparse.ArgumentParser(prog="python -m tests.transport.cancelling")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for backend in ("asyncio", "trio"):
        work = anyio.run(storm, options.count, options.seed, backend=backend)
        sys.stdout.write(f"{backend}: {work.cancelled} cancelled, {work.whole} answered, all places free\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
