"""The connection pool: its limits, the order of waiters, and the cost of a request beside many idle connections."""

import sys
from types import FrameType

import anyio
import anyio.abc
import pytest

from actors.core.data.persistent import Segments
from actors.errors import ConfigError, ProviderFailed
from actors.runtime.runtime import Runtime
from actors.transport import HttpTransport, Timeouts
from actors.transport.connection import ExchangeDeadlines
from actors.transport.pool import ConnectionPool
from tests.transport.support import GOOD, Peer, answer_correctly, descriptors, fetch, raw, read_body

pytestmark = pytest.mark.anyio


async def test_connections_per_origin_are_limited_and_every_request_is_served() -> None:
    transport, bodies = HttpTransport(connections=5), list[bytes]()

    async def ask(url: str) -> None:
        bodies.append((await fetch(transport, url)).body)

    async with raw(answer_correctly) as server:
        async with anyio.create_task_group() as tasks:
            for _ in range(60):
                tasks.start_soon(ask, server.url)
        await transport.close()
    assert bodies == [b"Yes."] * 60
    assert 1 < server.most <= 5


async def test_origins_do_not_share_connections() -> None:
    transport = HttpTransport(connections=1)
    async with raw(answer_correctly) as one, raw(answer_correctly) as two:
        async with transport.send(one.url, (), Segments.of(b"{}"), Timeouts()) as held:
            assert (await fetch(transport, two.url)).body == b"Yes."
            assert await read_body(held) == b"Yes."
        await transport.close()


async def test_waiting_for_a_connection_times_out_without_side_effects() -> None:
    transport = HttpTransport(connections=1)
    async with raw(answer_correctly) as server:
        async with transport.send(server.url, (), Segments.of(b"{}"), Timeouts()) as held:
            with pytest.raises(
                ProviderFailed, match=r"waiting for a free connection took longer than 0.05 s"
            ):
                await fetch(transport, server.url, Timeouts(pool=0.05))
            assert await read_body(held) == b"Yes."
        assert (await fetch(transport, server.url)).body == b"Yes."
        await transport.close()
    assert len(server.peers) == 1


async def test_waiting_requests_are_served_in_order() -> None:
    transport, served = HttpTransport(connections=1), list[int]()

    async def ask(url: str, number: int) -> None:
        await fetch(transport, url)
        served.append(number)

    async with raw(answer_correctly) as server:
        async with (
            anyio.create_task_group() as tasks,
            transport.send(server.url, (), Segments.of(b"{}"), Timeouts()) as held,
        ):
            for number in range(8):
                tasks.start_soon(ask, server.url, number)
                await anyio.wait_all_tasks_blocked()
            await read_body(held)
        await transport.close()
    assert served == list(range(8))


async def test_the_number_of_concurrent_connects_is_limited() -> None:
    under_way = most = 0
    go = anyio.Event()

    async def dial() -> anyio.abc.ByteStream:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await go.wait()
        under_way -= 1
        raise OSError("nobody there")

    pool, failed = ConnectionPool(dial, connections=20, connecting=3), list[str]()

    async def take() -> None:
        try:
            with ExchangeDeadlines(None) as deadlines:
                await pool.acquire(deadlines, Timeouts())
        except OSError as error:
            failed.append(str(error))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(30):
                tasks.start_soon(take)
            await anyio.wait_all_tasks_blocked()
            assert under_way == 3
            go.set()
    assert (most, len(failed), pool.free_slots) == (3, 30, 20)


async def test_the_cost_of_a_request_is_independent_of_idle_connections() -> None:
    async def answer(peer: Peer) -> None:
        while await peer.request() is not None:
            await arrived.wait()
            await peer.say(GOOD)

    costs = []
    for idle in (2, 60):
        transport, arrived = HttpTransport(), anyio.Event()
        async with raw(answer) as server:
            async with anyio.create_task_group() as tasks:
                for _ in range(idle):
                    tasks.start_soon(fetch, transport, server.url)
                with anyio.fail_after(60):
                    while server.most < idle:  # noqa: ASYNC110  a server reports no connection
                        await anyio.sleep(0.001)
                arrived.set()
            (pool,) = transport._pools.values()
            with anyio.fail_after(60):
                costs.append(await _cost(pool))
            await transport.close()
    assert costs[0] == costs[1]


async def _cost(pool: ConnectionPool) -> int:
    """Return the number of function calls for taking a connection and giving it back."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call") and "actors/transport" in frame.f_code.co_filename

    with ExchangeDeadlines(None) as deadlines:
        sys.setprofile(count)
        try:
            connection = await pool.acquire(deadlines, Timeouts())
            connection.prepare_reuse = lambda: True  # type: ignore[method-assign]  # as after an exchange
            await pool.release(connection)
        finally:
            sys.setprofile(None)
    return calls


async def test_a_connection_idle_for_too_long_is_closed_and_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transport = HttpTransport()
    async with raw(answer_correctly) as server:
        await fetch(transport, server.url)
        monkeypatch.setattr("actors.transport.connection.MAX_IDLE", -1.0)
        await fetch(transport, server.url)
        assert len(server.peers) == 2
        await transport.close()


async def test_a_closed_transport_closes_idle_connections_and_connections_returned_later() -> None:
    transport = HttpTransport()
    async with raw(answer_correctly) as server:
        before = descriptors()
        async with transport.send(server.url, (), Segments.of(b"{}"), Timeouts()) as held:
            await fetch(transport, server.url)
            await transport.close()
            assert await read_body(held) == b"Yes."
        with anyio.fail_after(60):
            while server.now or descriptors() > before:
                await anyio.lowlevel.checkpoint()


async def test_a_connection_is_closed_despite_cancellation() -> None:
    closed = anyio.Event()

    async def answer(peer: Peer) -> None:
        await peer.request()
        await peer.wait_closed()
        closed.set()

    transport = HttpTransport()
    async with raw(answer) as server:
        with anyio.move_on_after(0.1):
            await fetch(transport, server.url)
        with anyio.fail_after(60):
            await closed.wait()
        await transport.close()


async def test_a_transport_has_the_settings_of_its_runtime() -> None:
    from actors.config import Config
    from actors.config.settings import FileSettings, RuntimeLimits

    limits = RuntimeLimits(connections=7, connecting=2)
    runtime = Runtime(Config(FileSettings(limits=limits), {}))
    assert isinstance(runtime._transport, HttpTransport)
    runtime._transport.send("http://127.0.0.1:1/", (), Segments.of(b"{}"), Timeouts())
    (pool,) = runtime._transport._pools.values()
    assert (pool.free_slots, pool._connects.value) == (7, 2)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/v1",
        "host/v1",
        "http://",
        "http://user:sk-secret@host/v1",
        "http://host:99999/v1",
        "http://host:0/v1",
        "http://[::1/v1",
        "http://host/a b",
        "http://h\u00f6st/",
        f"http://{'a' * 64}.test/",
    ],
)
def test_an_invalid_url_is_refused_before_sending(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        HttpTransport().send(url, (), Segments.of(b"{}"), Timeouts())
    assert "secret" not in repr(refused.value)


@pytest.mark.parametrize("value", ["Bearer sk-secret\n", "Bearer sk-\x00secret", "Bearer sk-secr\u20act"])
def test_an_invalid_header_is_refused_and_its_value_is_not_shown(value: str) -> None:
    with pytest.raises(ConfigError, match="line break") as refused:
        HttpTransport().send(
            "http://127.0.0.1:1/", [("authorization", value)], Segments.of(b"{}"), Timeouts()
        )
    chain = f"{refused.value!r} {refused.value.__cause__!r} {refused.value.__context__!r}"
    assert "sk-" not in chain


async def test_the_query_of_a_url_is_sent_but_never_shown_in_errors() -> None:
    requests: list[bytes] = []

    async def answer(peer: Peer) -> None:
        requests.append(await peer.request() or b"")

    async with raw(answer) as server:
        with pytest.raises(ProviderFailed) as failed:
            await fetch(HttpTransport(), server.url + "?key=sk-secret")
    assert requests[0].startswith(b"POST /v1/chat?key=sk-secret HTTP/1.1\r\n")
    assert "sk-" not in str(failed.value)


async def test_headers_of_the_caller_replace_the_defaults() -> None:
    requests: list[bytes] = []

    async def answer(peer: Peer) -> None:
        requests.append(await peer.request() or b"")
        await peer.say(GOOD)

    transport = HttpTransport()
    async with raw(answer) as server:
        await fetch(transport, server.url, headers=[("User-Agent", "mine"), ("x-trace", "1")])
        await transport.close()
    lines = requests[0].partition(b"\r\n\r\n")[0].lower().split(b"\r\n")[1:]
    assert dict(line.split(b": ") for line in lines) == {
        b"host": f"127.0.0.1:{server.port}".encode(),
        b"user-agent": b"mine",
        b"x-trace": b"1",
        b"content-type": b"application/json",
        b"accept-encoding": b"identity",
        b"content-length": str(len(requests[0].partition(b"\r\n\r\n")[2])).encode(),
    }
    assert len(lines) == 6


async def test_a_connection_serves_requests_in_sequence() -> None:
    transport = HttpTransport()
    async with raw(answer_correctly) as server:
        for _ in range(20):
            assert (await fetch(transport, server.url)).body == b"Yes."
        await transport.close()
    assert len(server.peers) == 1
