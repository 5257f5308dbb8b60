"""A forwarded request ends when its host ends, is suspended, or answers; only the response may reach the client."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketAttribute, SocketStream

from actors.core.data.record import replace
from actors.errors import HostUnavailable
from actors.hosts import ASGIApp, ASGIMessage, Receive, RouterLimits, Scope, Send
from actors.hosts.asgi import ClientDisconnected, MarkedResponse, SessionRequest, run_while_connected
from actors.hosts.attempts import Forwarder, UnroutedAnswer
from actors.hosts.directory import HostDirectory
from actors.hosts.routing import Rejection
from actors.journal.storage.directory import Host
from actors.transport import HttpTransport
from tests.hosts.asgi_server import serve_app

pytestmark = pytest.mark.anyio

HEADERS = [(b"content-type", b"text/plain")]
EVENTS = [(b"content-type", b"text/event-stream")]


@pytest.fixture(autouse=True)
def frequent_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the list of hosts more often."""
    monkeypatch.setattr("actors.hosts.directory.PERIOD", 0.01)


class Neighbour:
    """A router's view of another host, and the response that its client receives."""

    def __init__(self, transport: HttpTransport, address: str) -> None:
        self.address = address
        self.live: Sequence[Host] = [Host("b", address, "serving", 0, 0.0, 10.0)]
        directory = HostDirectory(self._read)
        self.leaving = anyio.Event()
        self._forwarder = Forwarder(transport, directory, RouterLimits(), self.leaving)
        self.messages = list[ASGIMessage]()
        self.started = anyio.Event()

    async def _read(self) -> Sequence[Host]:
        return self.live

    async def _send(self, message: ASGIMessage) -> None:
        self.messages.append(message)
        if message.get("body"):
            self.started.set()

    async def forward(
        self, method: str = "POST", headers: list[tuple[bytes, bytes]] | None = None
    ) -> Rejection | UnroutedAnswer | None:
        scope = {
            "type": "http",
            "method": method,
            "path": "/ask",
            "raw_path": b"/ask",
            "query_string": b"",
            "headers": headers or [],
        }
        request = SessionRequest("one", scope, b"hello", lambda: "key")
        return await self._forwarder.forward(self.address, request, self._send)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


def marked(app: ASGIApp) -> ASGIApp:
    """Return an application whose responses are marked as those of a router."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, MarkedResponse(send).send)

    return answer


@asynccontextmanager
async def neighbour(app: ASGIApp, *, is_router: bool = True) -> AsyncIterator[Neighbour]:
    transport = HttpTransport(environ={})
    with anyio.fail_after(30):
        async with serve_app(marked(app) if is_router else app) as url:
            yield Neighbour(transport, url)
            await transport.close()


@asynccontextmanager
async def silent_neighbour(*, ends: bool = False) -> AsyncIterator[Neighbour]:
    """A host that accepts connections and never answers, as a suspended process does.

    Args:
        ends: Whether the host closes each connection after it has received data, as a process that is killed.
    """
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    transport = HttpTransport(environ={})
    connected = anyio.Event()

    async def handle(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            connected.set()
            if not ends:
                await anyio.sleep_forever()

    with anyio.fail_after(30):
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, handle)
            found = Neighbour(transport, f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}")
            found.started = connected
            yield found
            await transport.close()
            tasks.cancel_scope.cancel()


def streaming(headers: list[tuple[bytes, bytes]], *, breaks: bool = False) -> ASGIApp:
    """Return an application that begins a response, and then breaks the connection or waits."""

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"begin", "more_body": True})
        if breaks:
            raise ValueError("the host ends")
        while (await receive())["type"] != "http.disconnect":
            pass

    return app


async def test_a_response_is_streamed_with_its_status_and_headers() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        event = await receive()
        assert event["body"] == b"hello"
        headers = [
            (b"set-cookie", b"a=1"),
            (b"set-cookie", b"b=2"),
            (b"content-encoding", b"gzip"),
            (b"date", b"now"),
        ]
        headers += [(b"connection", b"x-hop"), (b"x-hop", b"1"), (b"x-method", scope["method"].encode())]
        await send({"type": "http.response.start", "status": 404, "headers": headers})
        await send({"type": "http.response.body", "body": b"not here", "more_body": False})

    async with neighbour(app) as found:
        assert await found.forward("PUT") is None
        assert found.messages[0]["status"] == 404
        headers = found.messages[0]["headers"]
        assert [value for name, value in headers if name == b"set-cookie"] == [b"a=1", b"b=2"]
        assert (b"content-encoding", b"gzip") in headers
        assert (b"x-method", b"PUT") in headers
        omitted = {b"connection", b"x-hop", b"date", b"transfer-encoding", b"actors-host"}
        assert not omitted & {name for name, _ in headers}
        assert found.body == b"not here"
        assert found.messages[-1]["more_body"] is False


async def test_a_response_to_head_has_no_body() -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async with neighbour(app) as found:
        assert await found.forward("HEAD") is None
        assert (b"content-length", b"5") in found.messages[0]["headers"]
        assert found.body == b""


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "worker-7", ""])
async def test_a_request_to_an_unreachable_host_is_rejected(address: str) -> None:
    async with neighbour(streaming(HEADERS)) as found:
        found.address = address
        rejection = await found.forward()
        assert isinstance(rejection, Rejection)
        assert rejection.kind == "unreachable"
        assert isinstance(rejection.error, HostUnavailable)
        assert found.messages == []


async def test_a_host_counts_as_unreachable_if_no_router_answers_at_its_address() -> None:
    async with neighbour(streaming(HEADERS, breaks=True), is_router=False) as found:
        rejection = await found.forward()
        assert isinstance(rejection, Rejection)
        assert rejection.kind == "unreachable"
        assert "no SessionRouter answers" in str(rejection.error)
        assert found.messages == []


@pytest.mark.parametrize(("status", "kind"), [(502, "unreachable"), (503, "unreachable"), (504, "lost")])
async def test_a_request_counts_as_lost_only_if_the_proxy_may_have_sent_it(status: int, kind: str) -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": HEADERS})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async with neighbour(app, is_router=False) as found:
        rejection = await found.forward()
        assert isinstance(rejection, Rejection)
        assert rejection.kind == kind


@pytest.mark.parametrize("status", [400, 413, 431, 501])
async def test_a_request_refused_by_the_server_of_a_host_is_not_repeated(status: int) -> None:
    """The router of the host has not seen the request, so the answer has no mark."""

    async def server(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": HEADERS})
        await send({"type": "http.response.body", "body": b"Invalid request.", "more_body": False})

    async with neighbour(server, is_router=False) as found:
        answer = await found.forward()
        assert isinstance(answer, UnroutedAnswer)
        assert answer.status == status
        assert answer.text == f"The server of the host for this request has refused it with status {status}"
        assert found.messages == []


async def test_a_header_that_http_does_not_allow_is_reported_as_an_error_of_the_client() -> None:
    async with neighbour(streaming(HEADERS)) as found:
        answer = await found.forward(headers=[(b"x-bad", b"a\x00b")])
        assert isinstance(answer, UnroutedAnswer)
        assert answer.status == 400


async def test_a_request_is_not_repeated_after_its_response_broke_off() -> None:
    async with neighbour(streaming(HEADERS, breaks=True)) as found:
        with pytest.raises(HostUnavailable, match="No answer from the host at"):
            await found.forward()
        assert found.body == b"begin"


async def test_a_broken_event_stream_ends_so_that_the_client_reconnects() -> None:
    async with neighbour(streaming(EVENTS, breaks=True)) as found:
        assert await found.forward() is None
        assert found.body == b"begin"
        assert found.messages[-1]["more_body"] is False


async def test_a_suspended_host_rejects_the_request_when_its_lease_has_expired() -> None:
    rejections = list[Rejection | UnroutedAnswer | None]()
    async with silent_neighbour() as found, anyio.create_task_group() as tasks:

        async def forward() -> None:
            rejections.append(await found.forward())

        tasks.start_soon(forward)
        await found.started.wait()
        found.live = [replace(found.live[0], address="http://other")]
    (rejection,) = rejections
    assert isinstance(rejection, Rejection)
    assert rejection.kind == "lost"
    assert "its lease has expired" in str(rejection.error)


async def test_a_request_counts_as_lost_if_its_host_ends_after_receiving_the_request() -> None:
    async with silent_neighbour(ends=True) as found:
        rejection = await found.forward()
        assert isinstance(rejection, Rejection)
        assert rejection.kind == "lost"
        assert isinstance(rejection.error, HostUnavailable)
        assert found.messages == []


async def test_the_stream_of_a_suspended_host_ends_when_its_lease_has_expired() -> None:
    async with neighbour(streaming(EVENTS)) as found, anyio.create_task_group() as tasks:
        tasks.start_soon(found.forward)
        await found.started.wait()
        assert found.messages[-1]["more_body"] is True
        found.live = []
    assert found.messages[-1]["more_body"] is False


async def test_work_for_a_client_ends_when_the_client_disconnects_and_raises_unwrapped_errors() -> None:
    leaving, ended = anyio.Event(), list[str]()

    async def receive() -> ASGIMessage:
        await leaving.wait()
        return {"type": "http.disconnect"}

    async def stay() -> ASGIMessage:
        await anyio.sleep_forever()
        raise AssertionError

    async def work() -> str:
        leaving.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("work")
        return "done"

    async def fail() -> str:
        raise ValueError("a bug")

    async def finish() -> str:
        return "done"

    with anyio.fail_after(30):
        assert await run_while_connected(stay, finish) == "done"
        with pytest.raises(ValueError, match="a bug"):
            await run_while_connected(stay, fail)
        with pytest.raises(ClientDisconnected):
            await run_while_connected(receive, work)
    assert ended == ["work"]


async def test_an_event_stream_ends_when_the_host_that_forwards_the_stream_leaves() -> None:
    async with neighbour(streaming(EVENTS)) as found, anyio.create_task_group() as tasks:

        async def leave() -> None:
            await found.started.wait()
            found.leaving.set()

        tasks.start_soon(leave)
        assert await found.forward() is None
        assert found.body == b"begin"
        assert found.messages[-1]["more_body"] is False


async def test_other_responses_continue_while_the_host_that_forwards_them_leaves() -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": b"begin", "more_body": True})
        await found.started.wait()
        found.leaving.set()
        await anyio.lowlevel.checkpoint()
        await send({"type": "http.response.body", "body": b" end", "more_body": False})

    async with neighbour(app) as found:
        assert await found.forward() is None
        assert found.body == b"begin end"
