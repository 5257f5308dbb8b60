"""Read the ASGI requests of clients, and send errors as responses.

A request is read into memory, so that it can be repeated at several hosts.

A host that rejects a request answers with a status and the headers `actors-rejection` and `actors-owner`. The router
that forwarded the request reads the headers and tries the next host. A handler of the application can answer in the
same way with `error_response`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from json import dumps
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote
from uuid import uuid4

from msgspec import Struct

from actors.errors import (
    ActorsError,
    AskFailed,
    DecisionRefused,
    HostUnavailable,
    InvalidIdentifier,
    JournalBehind,
    KernelError,
    KeyReused,
    MediaError,
    NotAwaited,
    OverBudget,
    QueueFull,
    RequestLost,
    SessionClosed,
    SessionClosedForGood,
    SessionExists,
    SessionLeased,
    SessionUnknown,
    TooManySessions,
    TranscriptError,
    UnknownSeq,
)
from actors.hosts.race import Interrupted, run_unless
from actors.hosts.routing import Rejection, rejection_of

Scope: TypeAlias = MutableMapping[str, Any]  # Any: the values differ per key and kind of connection
"""The description of a connection, as ASGI defines it."""
ASGIMessage: TypeAlias = MutableMapping[str, Any]  # Any: as above
"""An event between a server and an application, as ASGI defines it."""
Receive: TypeAlias = Callable[[], Awaitable[ASGIMessage]]
"""Waits for the next event from the server."""
Send: TypeAlias = Callable[[ASGIMessage], Awaitable[None]]
"""Sends an event to the server."""
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""
RawHeaders: TypeAlias = list[tuple[bytes, bytes]]
"""The headers of a request or response, with names in lower case."""
T = TypeVar("T")
KEY_HEADER = b"idempotency-key"
"""The header with the key of an ask."""
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""The methods of requests that need no key."""
HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers that concern one connection, and are not forwarded (RFC 9110, 7.6.1)."""
CLIENTS_HEADER = b"x-forwarded-for"
"""The header with the addresses of the client and of each proxy, from the client to this host."""
REJECTION_HEADER = b"actors-rejection"
"""The header with the kind of a rejection."""
OWNER_HEADER = b"actors-owner"
"""The header with the address of the session's owner."""
FORWARDED_HEADER = b"actors-forwards"
"""The request header that marks a forwarded request, which is not forwarded again."""
ANSWERED_HEADER = b"actors-host"
"""The response header that marks the answer of a router to a forwarded request. Clients do not receive it."""
RETRY_AFTER = "1"
"""Seconds after which a client should repeat a request that no host accepted."""
NO_HOST = "No host can answer this request at the moment; repeat it, with its Idempotency-Key if it has one"
SESSION_ENDED = "The session ended during the request"
"""The error messages for a client. They replace the errors' own messages, which name hosts."""
MISDIRECTED = 421
"""The status of a request that reached a host which does not own the session."""
_STATUSES: tuple[tuple[type[ActorsError], int], ...] = (
    (SessionLeased, MISDIRECTED),
    (InvalidIdentifier, 400),
    (MediaError, 400),
    (TranscriptError, 400),
    (SessionUnknown, 404),
    (UnknownSeq, 404),
    (SessionExists, 409),
    (KeyReused, 409),
    (NotAwaited, 409),
    (DecisionRefused, 409),
    (SessionClosedForGood, 410),
    (AskFailed, 502),
    (RequestLost, 502),
    (QueueFull, 429),
    (OverBudget, 429),
    (TooManySessions, 503),
    (HostUnavailable, 503),
    (SessionClosed, 503),
    (JournalBehind, 503),
    (KernelError, 503),
)
"""The first entry that matches an error determines its status."""
REPLACED_HEADERS = frozenset(
    {b"content-length", b"expect", CLIENTS_HEADER, b"x-forwarded-proto", FORWARDED_HEADER}
)
"""Headers of a request that this host sets, because the client's values do not apply to the forwarded request."""


class BodyTooLarge(Exception):
    """The body of a request exceeds the limit."""


class ClientDisconnected(Exception):
    """The client closed the connection."""


class SessionRequest:
    """A request for a session, with its complete body and a key.

    Attributes:
        session: Id of the session.
        body: The body.
        headers: The headers of the client, with a key if the request may have an effect.
    """

    def __init__(self, session: str, scope: Scope, body: bytes, make_key: Callable[[], str]) -> None:
        self.session: str = session
        self.body: bytes = body
        self._scope = scope
        self.headers: RawHeaders = [(name.lower(), value) for name, value in scope["headers"]]
        names = {name for name, _ in self.headers}
        if KEY_HEADER not in names and scope["method"] not in SAFE_METHODS:
            self.headers.append((KEY_HEADER, make_key().encode()))

    @property
    def method(self) -> str:
        """The HTTP method."""
        return str(self._scope["method"])

    @property
    def target(self) -> str:
        """The path and query, without the mount prefix (`root_path`).

        "#" is escaped: some servers accept it in a path, but the HTTP client that forwards the request would treat it
        as the start of a fragment.
        """
        root = quote(self._scope.get("root_path") or "").encode()
        path: bytes = self._scope.get("raw_path") or quote(self._scope["path"]).encode()
        query: bytes = self._scope.get("query_string") or b""
        path = path.removeprefix(root) or b"/"
        return (path + b"?" + query if query else path).replace(b"#", b"%23").decode("latin-1")

    def scope(self) -> Scope:
        """Return a new scope for the application, which may change it."""
        return {**self._scope, "headers": [*self.headers]}

    def replay(self, receive: Receive) -> Receive:
        """Return an ASGI `receive` function that returns the body first, and then further events from the server."""
        events: list[ASGIMessage] = [{"type": "http.request", "body": self.body, "more_body": False}]

        async def receive_again() -> ASGIMessage:
            return events.pop() if events else await receive()

        return receive_again

    def forwarded_headers(self) -> RawHeaders:
        """Return the headers of the request that is sent to another host."""
        client, scheme = self._scope.get("client"), self._scope.get("scheme", "http")
        added: RawHeaders = [(FORWARDED_HEADER, b"1"), (b"x-forwarded-proto", str(scheme).encode("latin-1"))]
        addresses = [value for name, value in self.headers if name == CLIENTS_HEADER]
        if client is not None:
            addresses.append(str(client[0]).encode("latin-1"))
        if addresses:
            added.append((CLIENTS_HEADER, b", ".join(addresses)))
        kept = [header for header in end_to_end(self.headers) if header[0] not in REPLACED_HEADERS]
        if all(name != b"host" for name, _ in kept):
            added.append((b"host", b"actors"))
        return [*kept, *added]


def is_forwarded(scope: Scope) -> bool:
    """Return True if a router of another host forwarded the request to this host."""
    return any(name.lower() == FORWARDED_HEADER for name, _ in scope["headers"])


def end_to_end(headers: RawHeaders) -> RawHeaders:
    """Return the headers except those that concern only one connection.

    The idempotency key is kept even if the header `connection` lists it. Otherwise, each attempt would get a new key
    and could start a separate ask.
    """
    listed = b",".join(value for name, value in headers if name == b"connection")
    omitted = HOP_BY_HOP | {name.strip().lower() for name in listed.split(b",")} - {KEY_HEADER}
    return [header for header in headers if header[0] not in omitted]


async def read_request(session: str, scope: Scope, receive: Receive, limit: int) -> SessionRequest:
    """Read a request with its body.

    Args:
        session: Id of the session.
        scope: The scope of the request.
        receive: Receives the events of the request.
        limit: Maximum size of the body in bytes.

    Raises:
        BodyTooLarge: The body is larger than `limit`.
        ClientDisconnected: The client closed the connection before the end of the body.
    """
    parts, size, more = list[bytes](), 0, True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ClientDisconnected
        part: bytes = event.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > limit:
            raise BodyTooLarge
        more = bool(event.get("more_body", False))
    return SessionRequest(session, scope, b"".join(parts), lambda: uuid4().hex)


async def run_while_connected(receive: Receive, work: Callable[[], Awaitable[T]]) -> T:
    """Run `work`, and cancel it if the client closes the connection.

    Call this function only after the complete body was received.

    Raises:
        Exception: Raised by `work`.
        ClientDisconnected: The client closed the connection before the work was done.
    """

    async def wait_disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    try:
        return await run_unless(wait_disconnected, work)
    except Interrupted:
        raise ClientDisconnected from None


class ErrorResponse(Struct, frozen=True):
    """The status and the headers of the HTTP response for an error. The application can send the error's message as
    the body.

    Args:
        status: The HTTP status.
        headers: Headers by name.
    """

    status: int
    headers: Mapping[str, str]


def error_response(error: ActorsError) -> ErrorResponse:
    """Return the HTTP response for an error, for the error handler of an application.

    If the session has moved, or this host accepts no more sessions, a `SessionRouter` reads the headers of the response
    and repeats the request at another host. The client does not see the response.

    The status of `AskFailed` is 502 without `Retry-After`: the same key returns the same failure. If `can_retry` is
    true, the client can repeat the request with a new key. The status of `RequestLost` is 502 too, because the request
    may crash each host that receives it.
    """
    return _response(error, rejection_of(error))


def _response(error: ActorsError, rejection: Rejection | None) -> ErrorResponse:
    headers = dict[str, str]()
    if rejection is not None:
        headers[REJECTION_HEADER.decode()] = rejection.kind
        if rejection.owner.isascii() and rejection.owner.isprintable():
            headers[OWNER_HEADER.decode()] = rejection.owner
    status = _status(error, is_rejection=rejection is not None)
    if status in (429, 503):
        headers["retry-after"] = RETRY_AFTER
    return ErrorResponse(status, headers)


def _status(error: ActorsError, *, is_rejection: bool) -> int:
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status
    return 503 if is_rejection else 500


def close_when_leaving(send: Send, is_leaving: Callable[[], bool]) -> Send:
    """Return a function that sends a response, and asks the server to close the connection if this host is leaving.

    A server that shuts down closes its connections, but may miss a connection that it has just accepted. While a client
    uses that connection, the server does not exit, and finally it cancels the client's request.
    """

    async def send_and_close(message: ASGIMessage) -> None:
        if message["type"] == "http.response.start" and is_leaving():
            kept = [header for header in message.get("headers", ()) if header[0].lower() != b"connection"]
            message = {**message, "headers": [*kept, (b"connection", b"close")]}
        await send(message)

    return send_and_close


class TrackedResponse:
    """The response to a request, which records whether it has started.

    Attributes:
        is_started: Whether a part of the response was sent.
    """

    def __init__(self, send: Send) -> None:
        self.is_started: bool = False
        self._send = send

    async def send(self, message: ASGIMessage) -> None:
        """Send a message of the response."""
        self.is_started = self.is_started or message["type"] == "http.response.start"
        await self._send(message)


class MarkedResponse(TrackedResponse):
    """The response to a forwarded request, marked with the header `ANSWERED_HEADER`."""

    async def send(self, message: ASGIMessage) -> None:
        """Send a message of the response."""
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (ANSWERED_HEADER, b"1")]}
        await super().send(message)


def error_messages(error: ActorsError) -> Sequence[ASGIMessage]:
    """Return the ASGI messages that report an error to a client. They contain no addresses of hosts."""
    response = error_response(error)
    if response.status not in (MISDIRECTED, 503):  # so the error is no rejection
        return json_messages(response.status, {"error": str(error)}, _raw(response.headers))
    text = SESSION_ENDED if isinstance(error, SessionClosed) else NO_HOST
    return json_messages(503, {"error": text}, [(b"retry-after", RETRY_AFTER.encode())])


def rejection_messages(rejection: Rejection) -> Sequence[ASGIMessage]:
    """Return the ASGI messages of a rejection, for the router that has forwarded the request."""
    response = _response(rejection.error, rejection)
    return json_messages(response.status, {"error": str(rejection.error)}, _raw(response.headers))


def _raw(headers: Mapping[str, str]) -> RawHeaders:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


def json_messages(status: int, value: object, headers: RawHeaders) -> Sequence[ASGIMessage]:
    """Return the ASGI messages of a response with a JSON body."""
    body = dumps(value).encode()
    length = (b"content-length", str(len(body)).encode())
    return (
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", b"application/json"), length, *headers],
        },
        {"type": "http.response.body", "body": body, "more_body": False},
    )


def rejection_in(headers: Iterable[tuple[bytes, bytes]], session: str, address: str) -> Rejection | None:
    """Return the rejection that the headers of a response contain, or None if they contain none.

    Args:
        headers: The headers of the response.
        session: Id of the session.
        address: Address of the host that sent the response; empty for this host.
    """
    found = {name.lower(): value.decode("latin-1") for name, value in headers}
    host = f"the host at {address}" if address else "this host"
    match found.get(REJECTION_HEADER):
        case "leased":
            owner = found.get(OWNER_HEADER, "")
            text = (
                f"Session {session!r} belongs to the host at {owner or 'an unknown address'}, not to {host}"
            )
            return Rejection("leased", SessionLeased(text, address=owner), owner)
        case "refused":
            return Rejection(
                "refused", HostUnavailable(f"No host for session {session!r}: {host} refuses it")
            )
        case "ended":
            return Rejection("ended", SessionClosed(f"Session {session!r} has ended at {host}"))
        case _:
            return None
