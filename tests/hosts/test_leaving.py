"""A host that leaves closes the connections of its clients, and keeps no request waiting."""

import anyio
import pytest

from actors import Runtime
from actors.errors import HostDraining
from actors.hosts import ASGIMessage, Receive, RouterLimits, Scope, Send, SessionRouter
from tests.hosts.support import respond

pytestmark = pytest.mark.anyio

CLOSE = ("connection", "close")


async def answer(_: Scope, __: Receive, send: Send) -> None:
    await respond(send, 200, {}, {"x-mine": "1", "connection": "keep-alive"})


class Exchange:
    """A request for a session or without one, and its response."""

    def __init__(self, router: SessionRouter, version: str = "1.1") -> None:
        self._router, self._bodies = router, [b""]
        self._scope = {"type": "http", "http_version": version, "method": "GET", "path": "/", "headers": []}
        self.messages = list[ASGIMessage]()

    async def run(self) -> None:
        await self._router(self._scope, self._receive, self._send)

    async def _receive(self) -> ASGIMessage:
        if not self._bodies:
            await anyio.sleep_forever()
        return {"type": "http.request", "body": self._bodies.pop(), "more_body": False}

    async def _send(self, message: ASGIMessage) -> None:
        self.messages.append(message)

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [(name.decode(), value.decode()) for name, value in self.messages[0]["headers"]]


async def headers(router: SessionRouter, version: str) -> list[tuple[str, str]]:
    """Send a request without a session to the router, and return the headers of the response."""
    exchange = Exchange(router, version)
    await exchange.run()
    return exchange.headers


async def test_a_host_that_leaves_closes_each_connection_after_its_next_response() -> None:
    router = SessionRouter(answer, lambda _: None)
    async with Runtime() as runtime:
        async with router.serve(runtime):
            assert ("connection", "keep-alive") in await headers(router, "1.1")
        assert await headers(router, "1.1") == [("x-mine", "1"), CLOSE]


async def test_http_2_responses_have_no_connection_header() -> None:
    router = SessionRouter(answer, lambda _: None)
    async with Runtime() as runtime:
        async with router.serve(runtime):
            pass
        assert CLOSE not in await headers(router, "2")


async def test_no_request_waits_for_another_host_once_the_sessions_have_left() -> None:
    """Otherwise, the server of the last host would end only after the deadline of the request."""

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        raise HostDraining("draining")

    router = SessionRouter(refuse, lambda _: "one", limits=RouterLimits(max_attempts=10**9, deadline=3600.0))
    exchange = Exchange(router)
    with anyio.fail_after(15):
        async with Runtime() as runtime, router.serve(runtime), anyio.create_task_group() as tasks:
            tasks.start_soon(exchange.run)
            await anyio.wait_all_tasks_blocked()
            assert exchange.messages == []
            assert router._shutdown is not None
            router._shutdown.begin()
    assert exchange.messages[0]["status"] == 503
    assert {CLOSE, ("retry-after", "1")} < {*exchange.headers}


@pytest.mark.parametrize("leaves", [True, False])
async def test_a_request_cancelled_by_the_server_of_a_leaving_host_can_be_repeated(leaves: bool) -> None:
    called = anyio.Event()

    async def work(scope: Scope, receive: Receive, send: Send) -> None:
        called.set()
        await anyio.sleep_forever()

    router = SessionRouter(work, lambda _: "one")
    exchange = Exchange(router)
    async with Runtime() as runtime, router.serve(runtime), anyio.create_task_group() as tasks:
        tasks.start_soon(exchange.run)
        await called.wait()
        if leaves:
            assert router._shutdown is not None
            await router._shutdown.finish()
        tasks.cancel_scope.cancel()
    assert [message["status"] for message in exchange.messages[:1]] == [503] * leaves
