"""The sweep of idle connections: a connection closed by the server is closed here without another request."""

from typing import Any

import anyio
import pytest

from actors.transport import HttpTransport, client
from actors.transport.contract import Origin
from tests.transport.support import GOOD, Peer, answer_correctly, fetch, raw

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def frequent_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check idle connections all the time."""
    monkeypatch.setattr(client, "INTERVAL", 0.01)


async def test_an_idle_connection_closed_by_the_server_is_closed_before_the_next_request() -> None:
    closed = anyio.Event()

    async def answer(peer: Peer) -> None:
        await peer.request()
        await peer.say(GOOD)
        assert isinstance(peer.stream, anyio.abc.SocketStream)
        await peer.stream.send_eof()
        await peer.wait_closed()
        closed.set()

    transport = HttpTransport()
    with anyio.fail_after(30):
        async with raw(answer) as server:
            assert (await fetch(transport, server.url)).body == b"Yes."
            await closed.wait()
            assert (await fetch(transport, server.url)).body == b"Yes."  # over a new connection
            assert len(server.peers) == 2
            await transport.close()


async def test_removing_dead_connections_keeps_usable_connections_open() -> None:
    ended = anyio.Event()

    async def closes(peer: Peer) -> None:
        await peer.request()
        await peer.say(GOOD)
        assert isinstance(peer.stream, anyio.abc.SocketStream)
        await peer.stream.send_eof()
        await peer.wait_closed()
        ended.set()

    transport = HttpTransport()
    with anyio.fail_after(30):
        async with raw(answer_correctly) as lasting, raw(closes) as ending:
            await fetch(transport, lasting.url)
            await fetch(transport, ending.url)
            await ended.wait()  # the sweep has run
            await fetch(transport, lasting.url)
            assert len(lasting.peers) == 1
            await transport.close()


class SweptPool:
    """A pool whose sweep takes time, during which a connection of another pool becomes idle."""

    def __init__(self, other: "SweptPool | None" = None) -> None:
        self.has_idle, self._other = False, other

    async def sweep(self) -> None:
        if self._other is not None:
            self._other.has_idle = True


async def test_a_connection_that_becomes_idle_during_a_sweep_is_swept_later() -> None:
    transport = HttpTransport()
    first = SweptPool()
    pools: Any = {Origin("http", "a", 80): first, Origin("http", "b", 80): SweptPool(first)}
    transport._pools = pools
    assert await transport._sweep_pools()


async def test_closing_a_transport_stops_the_removal_of_idle_connections() -> None:
    transport = HttpTransport()
    with anyio.fail_after(30):
        async with raw(answer_correctly) as server:
            for _ in range(3):
                await fetch(transport, server.url)
                assert transport._sweep._tasks is not None
                await transport.close()
                assert transport._sweep._tasks is None
