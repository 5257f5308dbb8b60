"""Resending: a request without an answer on a kept connection is sent once more; no other request is.

An answer is used as received, or not at all.
"""

import gzip
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack

import anyio
import pytest

from actors.core.data.persistent import Segments
from actors.errors import ProviderFailed
from actors.strict.server import OpenAIServer
from actors.testing import Disconnect, InjectedFault, Say, Script, Turn, serve
from actors.transport import HttpTransport, Response, Timeouts
from actors.transport.exchange import ClientExchange

pytestmark = pytest.mark.anyio

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi."}], "stream": True}).encode()
CLOSED = pytest.mark.parametrize("closed", [Disconnect(), Disconnect(reset=True)], ids=["end", "reset"])


async def send_requests(
    faults: Mapping[int, InjectedFault], *, requests: int
) -> tuple[list[int], OpenAIServer]:
    """Send requests one after the other; return the status of each (0: no answer) and their server."""
    server = OpenAIServer(Script([Turn(Say("Yes."))] * 9), faults=faults)
    transport, statuses = HttpTransport(), list[int]()
    async with serve(server):
        for _ in range(requests):
            try:
                url = f"{server.base_url}/chat/completions"
                async with transport.send(url, [], Segments.of(BODY), Timeouts()) as response:
                    assert b"".join([chunk async for chunk in response.chunks()])
                    statuses.append(response.status)
            except ProviderFailed:
                statuses.append(0)
        await transport.close()
    return statuses, server


async def read(response: Response) -> None:
    assert b"".join([chunk async for chunk in response.chunks()])


@CLOSED
async def test_a_request_on_a_closed_kept_connection_is_sent_again(
    closed: InjectedFault,
) -> None:
    statuses, server = await send_requests({1: closed}, requests=2)
    assert statuses == [200, 200]
    assert [exchange.body for exchange in server.requests] == [BODY] * 3


async def test_the_head_of_a_request_is_dropped_once_it_is_sent() -> None:
    transport = HttpTransport()
    async with serve(OpenAIServer(Script([Turn(Say("Yes."))]))) as (server,):
        url = f"{server.base_url}/chat/completions"
        async with transport.send(url, [], Segments.of(BODY), Timeouts()) as response:
            assert isinstance(response, ClientExchange)
            assert response._request_head is None
            await read(response)
    await transport.close()


@CLOSED
async def test_an_unanswered_request_on_a_new_connection_is_not_sent_again(
    closed: InjectedFault,
) -> None:
    statuses, server = await send_requests({0: closed}, requests=1)
    assert statuses == [0]
    assert server.received == 1


@CLOSED
async def test_a_request_is_retried_on_at_most_one_new_connection(
    closed: InjectedFault,
) -> None:
    statuses, server = await send_requests({1: closed, 2: closed, 3: closed}, requests=2)
    assert statuses == [200, 0]
    assert server.received == 3


async def test_a_request_is_sent_at_most_twice_over_kept_connections() -> None:
    kept = 6
    server = OpenAIServer(
        Script([Turn(Say("Yes."))] * kept), faults=dict.fromkeys(range(kept, 99), Disconnect())
    )
    transport = HttpTransport()
    async with serve(server):
        url = f"{server.base_url}/chat/completions"
        async with AsyncExitStack() as stack:  # concurrently, so that each has its own connection
            for _ in range(kept):
                response = await stack.enter_async_context(
                    transport.send(url, [], Segments.of(BODY), Timeouts())
                )
                stack.push_async_callback(read, response)
        with anyio.fail_after(60), pytest.raises(ProviderFailed):
            async with transport.send(url, [], Segments.of(BODY), Timeouts()):
                pass
        await transport.close()
    assert server.received == kept + 2


async def test_a_request_with_an_incomplete_answer_is_not_sent_again() -> None:
    server = OpenAIServer(Script([Turn(Say("Yes."))] * 9), faults={1: Disconnect(after_bytes=5)})
    transport = HttpTransport()
    async with serve(server):
        for is_broken in (False, True):
            async with transport.send(
                f"{server.base_url}/chat/completions", [], Segments.of(BODY), Timeouts()
            ) as response:
                if is_broken:
                    with pytest.raises(ProviderFailed):
                        [chunk async for chunk in response.chunks()]
                else:
                    assert [chunk async for chunk in response.chunks()]
        await transport.close()
    assert server.received == 2


async def test_compression_is_neither_requested_nor_decoded() -> None:
    packed = gzip.compress(b" " * 50_000_000)
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    asked = bytearray()

    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            while b"\r\n\r\n" not in asked:
                asked.extend(await stream.receive())
            await stream.send(head + packed)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/v1"
    transport = HttpTransport()
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        with anyio.fail_after(60), pytest.raises(ProviderFailed, match="content-encoding is 'gzip'"):
            async with transport.send(url, [], Segments.of(BODY), Timeouts()) as response:
                [chunk async for chunk in response.chunks()]
        tasks.cancel_scope.cancel()
    await transport.close()
    assert b"accept-encoding: identity" in bytes(asked).lower()
