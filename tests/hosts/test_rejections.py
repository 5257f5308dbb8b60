"""An application rejects a request by an error or by a response. The client sees neither."""

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from actors import Runtime, Session
from actors.core.stream_events.ask_events import AskResult
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.errors import (
    ActorsError,
    AskFailed,
    ConfigError,
    DecisionRefused,
    HostDraining,
    HostUnavailable,
    InvalidIdentifier,
    JournalBehind,
    JournalUnavailable,
    KeyReused,
    MediaError,
    NotAwaited,
    QueueFull,
    RequestLost,
    SessionClosed,
    SessionClosedForGood,
    SessionLeased,
    SessionUnknown,
    ShuttingDown,
    TooManySessions,
    TranscriptError,
    UnknownSeq,
)
from actors.hosts import ASGIApp, ASGIMessage, Receive, Scope, Send, SessionRouter, error_response
from actors.hosts.asgi import (
    BodyTooLarge,
    ClientDisconnected,
    SessionRequest,
    error_messages,
    read_request,
    rejection_in,
    rejection_messages,
)
from actors.hosts.attempts import MAX_HELD, ensure_answered, run_app
from actors.hosts.routing import Rejection, rejection_of
from actors.runtime.lifecycle import SessionLifecycle

pytestmark = pytest.mark.anyio

OWNER = "http://b"
ERRORS: dict[str, tuple[ActorsError, str, int]] = {
    "leased": (SessionLeased("elsewhere", address=OWNER), "leased", 421),
    "draining": (HostDraining("draining"), "refused", 503),
    "full": (TooManySessions("full"), "refused", 503),
    "outage": (JournalUnavailable("down"), "refused", 503),
    "closed": (SessionClosed("closed"), "ended", 503),
}


class Client:
    """The server's side of one request: the events to receive, and the messages that the client gets."""

    def __init__(self, *events: ASGIMessage) -> None:
        self._events = list(events)
        self.messages = list[ASGIMessage]()

    async def receive(self) -> ASGIMessage:
        return self._events.pop(0) if self._events else {"type": "http.disconnect"}

    async def send(self, message: ASGIMessage) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int | None:
        return self.messages[0]["status"] if self.messages else None

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


def scope(**fields: Any) -> Scope:  # Any: the values of a scope differ
    return {
        "type": "http",
        "method": "POST",
        "path": "/ask",
        "raw_path": b"/ask",
        "query_string": b"",
        "headers": [],
        **fields,
    }


def request(**fields: Any) -> SessionRequest:  # Any: as above
    return SessionRequest("one", scope(**fields), b"hello", lambda: "key")


async def run(app: ASGIApp) -> tuple[Rejection | None, Client]:
    client = Client()
    return await run_app(app, request(), client.receive, client.send), client


def raising(error: Exception) -> Starlette:
    async def handler(_: Request) -> Response:
        raise error

    return Starlette(routes=[Route("/ask", handler, methods=["POST"])])


@pytest.mark.parametrize("name", ERRORS)
async def test_a_rejection_raised_by_the_application_is_not_sent_to_the_client(name: str) -> None:
    """Starlette answers with status 500 first, and then raises the error."""
    error, kind, _ = ERRORS[name]
    for raised in (error, ExceptionGroup("tasks", [error]), ExceptionGroup("tasks", [ValueError(), error])):
        rejection, client = await run(raising(raised))
        assert rejection is not None
        assert (rejection.kind, rejection.error) == (kind, error)
        assert rejection.owner == (OWNER if kind == "leased" else "")
        assert client.messages == []


@pytest.mark.parametrize("name", ERRORS)
async def test_a_rejection_answered_by_an_error_handler_is_not_sent_to_the_client(name: str) -> None:
    error, kind, status = ERRORS[name]

    async def handle(_: Request, error: Exception) -> Response:
        assert isinstance(error, ActorsError)
        response = error_response(error)
        assert response.status == status
        return JSONResponse({"error": str(error)}, response.status, {**response.headers})

    app = raising(error)
    app.add_exception_handler(ActorsError, handle)
    rejection, client = await run(app)
    assert rejection is not None
    assert (rejection.kind, rejection.owner) == (kind, OWNER if kind == "leased" else "")
    assert client.messages == []
    assert "'one'" in str(rejection.error)


async def test_an_error_of_the_application_is_raised_after_its_response() -> None:
    client = Client()
    with pytest.raises(ValueError, match="a bug"):
        await run_app(raising(ValueError("a bug")), request(), client.receive, client.send)
    assert client.status == 500
    assert client.body == b"Internal Server Error"


@pytest.mark.parametrize("size", [10, 2 * MAX_HELD])
async def test_a_response_with_an_error_status_reaches_the_client(size: int) -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 500, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * size, "more_body": True})
        await send({"type": "http.response.body", "body": b"end", "more_body": False})

    rejection, client = await run(app)
    assert rejection is None
    assert client.status == 500
    assert client.body == b"x" * size + b"end"


async def test_a_rejection_after_the_response_has_started_is_raised() -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise SessionClosed("moved")

    client = Client()
    with pytest.raises(SessionClosed, match="moved"):
        await run_app(app, request(), client.receive, client.send)
    assert client.status == 200


@pytest.mark.parametrize("has_handler", [False, True])
async def test_an_event_stream_ends_normally_if_its_session_moves(has_handler: bool) -> None:
    """If an error has a handler and the response has started, Starlette raises a `RuntimeError` from the error."""

    async def handler(_: Request) -> Response:
        async def events() -> AsyncIterator[bytes]:
            yield b"data: 1\n\n"
            raise SessionLeased("moved", address=OWNER)

        return StreamingResponse(events(), media_type="text/event-stream")

    async def handle(_: Request, error: Exception) -> Response:
        raise AssertionError from error

    app = Starlette(routes=[Route("/ask", handler, methods=["POST"])])
    if has_handler:
        app.add_exception_handler(ActorsError, handle)
    rejection, client = await run(app)
    assert rejection is None
    assert client.body == b"data: 1\n\n"
    assert client.messages[-1]["more_body"] is False


async def test_a_runtime_that_was_left_rejects_requests() -> None:
    async with Runtime(environ={}) as runtime:
        assert runtime.address == ""
    with pytest.raises(ShuttingDown, match="has exited; create a new Runtime") as refused:
        await runtime.open("openai:gpt-5.2", resume=True, id="one")
    rejection = rejection_of(refused.value)
    assert rejection is not None
    assert rejection.kind == "refused"


async def test_each_try_receives_the_complete_request_with_the_same_key() -> None:
    seen = list[tuple[bytes, bytes]]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        scope["headers"].append((b"idempotency-key", b"changed by the application"))
        event = await receive()
        assert event["more_body"] is False
        seen.append((event["body"], headers[b"idempotency-key"]))
        assert (await receive())["type"] == "http.disconnect"
        raise HostDraining("draining")

    found, client = request(), Client()
    for _ in range(2):
        assert await run_app(app, found, client.receive, client.send) is not None
    assert seen == [(b"hello", b"key")] * 2


@pytest.mark.parametrize(
    ("method", "headers", "key"),
    [
        ("POST", [], b"key"),
        ("POST", [(b"Idempotency-Key", b"mine")], b"mine"),
        ("DELETE", [], b"key"),
        ("GET", [], None),
    ],
)
async def test_a_request_with_effects_has_one_key(
    method: str, headers: list[tuple[bytes, bytes]], key: bytes | None
) -> None:
    found = dict(request(method=method, headers=headers).headers)
    assert found.get(b"idempotency-key") == key


async def test_a_client_cannot_remove_the_key_from_forwarded_requests() -> None:
    headers = [
        (b"Connection", b"close, Idempotency-Key, x-hop"),
        (b"Idempotency-Key", b"mine"),
        (b"x-hop", b"1"),
    ]
    forwarded = dict(request(headers=headers).forwarded_headers())
    assert forwarded[b"idempotency-key"] == b"mine"
    assert b"x-hop" not in forwarded


@pytest.mark.parametrize(
    ("fields", "target"),
    [
        ({"raw_path": b"/a%2Fb", "query_string": b"x=%20"}, "/a%2Fb?x=%20"),
        ({"raw_path": None, "path": "/ä b"}, "/%C3%A4%20b"),
        ({"raw_path": b"/api/ask", "root_path": "/api"}, "/ask"),
        ({"raw_path": b"/api", "root_path": "/api"}, "/"),
        ({"raw_path": b"/ask#x", "query_string": b"a#b"}, "/ask%23x?a%23b"),
    ],
)
async def test_the_path_and_query_of_a_request_are_kept(fields: dict[str, Any], target: str) -> None:
    assert request(**fields).target == target


@pytest.mark.parametrize(
    "fields",
    [
        {"raw_path": b".evil.example/ask"},
        {"raw_path": b"@evil.example/ask"},
        {"raw_path": b"/api.evil.example/ask", "root_path": "/api"},
    ],
)
async def test_a_path_that_would_extend_the_address_of_a_host_is_rejected(fields: dict[str, Any]) -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    router, client = SessionRouter(app, lambda scope: "one"), Client({"type": "http.request"})
    async with Runtime(environ={}) as runtime, router.serve(runtime, rebalance=None):
        await router(scope(**fields), client.receive, client.send)
    assert client.status == 400


async def test_the_response_to_an_application_error_is_marked_as_a_response_of_the_router() -> None:
    """Otherwise, the router that forwarded the request would repeat it elsewhere."""

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("a bug")

    router, client = SessionRouter(app, lambda scope: "one"), Client({"type": "http.request"})
    async with Runtime(environ={}) as runtime, router.serve(runtime, rebalance=None):
        with pytest.raises(ValueError, match="a bug"):
            await router(scope(headers=[(b"actors-forwards", b"1")]), client.receive, client.send)
    assert client.status == 500
    assert (b"actors-host", b"1") in client.messages[0]["headers"]


@pytest.mark.parametrize("answers", [False, True])
@pytest.mark.parametrize("name", ERRORS)
async def test_the_rejection_of_a_forwarded_request_reaches_its_router(name: str, answers: bool) -> None:
    """The application raises the error, or answers it, as an error handler does."""
    error, kind, _ = ERRORS[name]

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        if not answers:
            raise error
        response = error_response(error)
        headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    router, client = SessionRouter(app, lambda scope: "one"), Client({"type": "http.request"})
    await router(scope(headers=[(b"actors-forwards", b"1")]), client.receive, client.send)
    rejection = rejection_in(client.messages[0]["headers"], "one", "")
    assert rejection is not None
    assert (rejection.kind, rejection.owner) == (kind, OWNER if kind == "leased" else "")


async def test_a_host_that_has_left_rejects_forwarded_requests() -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await runtime.open("openai:gpt-5.2", resume=True, id="one")

    router, client = SessionRouter(app, lambda scope: "one"), Client({"type": "http.request"})
    async with Runtime(environ={}) as runtime, router.serve(runtime, rebalance=None):
        pass
    await router(scope(headers=[(b"actors-forwards", b"1")]), client.receive, client.send)
    headers = client.messages[0]["headers"]
    assert (client.status, dict(headers)[b"actors-host"]) == (503, b"1")
    rejection = rejection_in(headers, "one", "")
    assert rejection is not None
    assert rejection.kind == "refused"


async def test_a_body_is_read_up_to_its_limit() -> None:
    def parts() -> Client:
        return Client(
            {"type": "http.request", "body": b"12345", "more_body": True},
            {"type": "http.request", "body": b"678", "more_body": False},
        )

    assert (await read_request("one", scope(), parts().receive, 8)).body == b"12345678"
    with pytest.raises(BodyTooLarge):
        await read_request("one", scope(), parts().receive, 7)
    with pytest.raises(ClientDisconnected), anyio.fail_after(10):
        await read_request("one", scope(), Client().receive, 7)


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_cancelled_ask_is_repeated_only_if_its_session_leaves(has_failed: bool) -> None:
    """A departure that has failed leaves the session at its host, where a user may cancel an ask."""

    class Lifecycle(SimpleNamespace):
        is_departing: Any = SessionLifecycle.is_departing

    lifecycle = Lifecycle(
        departure=SimpleNamespace(has_failed=has_failed), is_over=False, host=SimpleNamespace(running=True)
    )
    session = cast(Session, SimpleNamespace(id="one", _lifecycle=lifecycle))
    result = AskResult("", "cancelled", Binding("b", "openai_chat"), (), 1, Usage())
    if has_failed:
        assert ensure_answered(session, result) is result
    else:
        with pytest.raises(SessionClosed, match="repeat the ask with the same key"):
            ensure_answered(session, result)


async def test_other_errors_are_sent_to_the_client_as_responses() -> None:
    statuses = {
        SessionUnknown("x"): 404,
        KeyReused("x"): 409,
        NotAwaited("x"): 409,
        QueueFull("x"): 429,
        HostUnavailable("x"): 503,
        RequestLost("x"): 502,
        JournalBehind("x"): 503,
        ConfigError("x"): 500,
        InvalidIdentifier("x"): 400,
        MediaError("x"): 400,
        TranscriptError("x"): 400,
        UnknownSeq("x"): 404,
        DecisionRefused("x"): 409,
        SessionClosedForGood("x"): 410,
    }
    for error, status in statuses.items():
        assert rejection_of(error) is None
        response = error_response(error)
        assert response.status == status
        assert (
            rejection_in([(k.encode(), v.encode()) for k, v in response.headers.items()], "one", "") is None
        )


@pytest.mark.parametrize("can_retry", [False, True])
def test_a_failed_ask_must_not_be_repeated_with_its_key(can_retry: bool) -> None:
    """A repeat with the same key returns the recorded failure."""
    response = error_response(AskFailed("overloaded", can_retry=can_retry))
    assert (response.status, response.headers) == (502, {})


async def test_the_final_error_response_names_no_other_host_and_suggests_a_later_retry() -> None:
    error = SessionLeased(f"Session 'one' belongs to the host at {OWNER}", address=OWNER)
    begin, body = error_messages(error)
    assert begin["status"] == 503
    headers = dict(begin["headers"])
    assert headers[b"retry-after"] == b"1"
    assert not {b"actors-owner", b"actors-rejection"} & {*headers}
    assert OWNER not in body["body"].decode()
    assert "repeat it, with its Idempotency-Key" in json.loads(body["body"])["error"]
    _, body = error_messages(SessionClosed(f"Session 'one' has ended at {OWNER}"))
    assert json.loads(body["body"]) == {"error": "The session ended during the request"}
    begin, _ = rejection_messages(Rejection("leased", error, OWNER))
    found = rejection_in(begin["headers"], "one", "http://a")
    assert found is not None
    assert (begin["status"], found.kind, found.owner) == (421, "leased", OWNER)
