"""Connections that the other side closes while they rest are closed on this side, without another request."""

import anyio
import pytest

from actors.transport import HttpTransport, sweep
from tests.transport.support import GOOD, Peer, asked, polite, raw

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at what rests all the time."""
    monkeypatch.setattr(sweep, "INTERVAL", 0.01)


async def test_a_connection_that_its_server_closes_is_closed_without_another_request() -> None:
    closed = anyio.Event()

    async def answer(peer: Peer) -> None:
        await peer.request()
        await peer.say(GOOD)
        assert isinstance(peer.stream, anyio.abc.SocketStream)
        await peer.stream.send_eof()
        await peer.gone()
        closed.set()

    transport = HttpTransport()
    with anyio.fail_after(30):
        async with raw(answer) as server:
            assert (await asked(transport, server.url)).body == b"Yes."
            await closed.wait()
            assert (await asked(transport, server.url)).body == b"Yes."  # over a new one
            assert len(server.peers) == 2
            await transport.close()


async def test_a_connection_that_can_be_used_again_rests_on() -> None:
    ended = anyio.Event()

    async def closes(peer: Peer) -> None:
        await peer.request()
        await peer.say(GOOD)
        assert isinstance(peer.stream, anyio.abc.SocketStream)
        await peer.stream.send_eof()
        await peer.gone()
        ended.set()

    transport = HttpTransport()
    with anyio.fail_after(30):
        async with raw(polite) as lasting, raw(closes) as ending:
            await asked(transport, lasting.url)
            await asked(transport, ending.url)
            await ended.wait()  # what rests was looked at
            await asked(transport, lasting.url)
            assert len(lasting.peers) == 1
            await transport.close()


async def test_a_transport_that_is_closed_looks_at_nothing_any_more() -> None:
    transport = HttpTransport()
    with anyio.fail_after(30):
        async with raw(polite) as server:
            for _ in range(3):
                await asked(transport, server.url)
                assert transport._sweep._tasks is not None
                await transport.close()
                assert transport._sweep._tasks is None
