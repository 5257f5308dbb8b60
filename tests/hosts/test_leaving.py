"""A host that leaves closes each connection after its next response, so that clients connect to other hosts."""

import anyio
import pytest

from actors import Runtime
from actors.hosts import ASGIMessage, Receive, Scope, Send, SessionRouter
from tests.hosts.support import respond

pytestmark = pytest.mark.anyio

CLOSE = ("connection", "close")


async def answer(_: Scope, __: Receive, send: Send) -> None:
    await respond(send, 200, {}, {"x-mine": "1", "connection": "keep-alive"})


async def never_receive() -> ASGIMessage:
    await anyio.sleep_forever()
    raise AssertionError


async def headers(router: SessionRouter, version: str) -> list[tuple[str, str]]:
    """Send a request without a session to the router, and return the headers of the response."""
    messages = list[ASGIMessage]()

    async def send(message: ASGIMessage) -> None:
        messages.append(message)

    scope = {"type": "http", "http_version": version, "method": "GET", "path": "/", "headers": []}
    await router(scope, never_receive, send)
    return [(name.decode(), value.decode()) for name, value in messages[0]["headers"]]


async def test_a_host_that_leaves_closes_each_connection_after_its_next_response() -> None:
    router = SessionRouter(answer, lambda _: None)
    async with Runtime() as runtime:
        async with router.serve(runtime):
            assert ("connection", "keep-alive") in await headers(router, "1.1")
        assert await headers(router, "1.1") == [("x-mine", "1"), CLOSE]


async def test_responses_over_http_2_have_no_header_for_their_connection() -> None:
    router = SessionRouter(answer, lambda _: None)
    async with Runtime() as runtime:
        async with router.serve(runtime):
            pass
        assert CLOSE not in await headers(router, "2")
