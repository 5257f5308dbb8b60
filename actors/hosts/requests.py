"""Read the request of a client into memory, so that it can be repeated at several hosts."""

from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import quote
from uuid import uuid4

from actors.hosts.asgi import ASGIMessage, RawHeaders, Receive, Scope
from actors.hosts.race import Interrupted, run_unless
from actors.hosts.responses import FORWARDS

T = TypeVar("T")

KEY = b"idempotency-key"
"""The header with the key of an ask."""
WITHOUT_EFFECT = ("GET", "HEAD", "OPTIONS")
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
CLIENTS = b"x-forwarded-for"
"""The header with the addresses of the client and of each proxy, from the client to this host."""
REPLACED = frozenset({b"content-length", b"expect", CLIENTS, b"x-forwarded-proto", FORWARDS})
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
        if KEY not in names and scope["method"] not in WITHOUT_EFFECT:
            self.headers.append((KEY, make_key().encode()))

    @property
    def method(self) -> str:
        """The HTTP method."""
        return str(self._scope["method"])

    @property
    def target(self) -> str:
        """The path and query, without the prefix that the server of each host adds to all paths (`root_path`)."""
        root = quote(self._scope.get("root_path") or "").encode()
        path: bytes = self._scope.get("raw_path") or quote(self._scope["path"]).encode()
        query: bytes = self._scope.get("query_string") or b""
        path = path.removeprefix(root) or b"/"
        return (path + b"?" + query if query else path).decode("latin-1")

    def scope(self) -> Scope:
        """Return a new scope for the application, which may change it."""
        return {**self._scope, "headers": [*self.headers]}

    def replay(self, receive: Receive) -> Receive:
        """Return a function that returns the body first, and then the further events from the server."""
        events: list[ASGIMessage] = [{"type": "http.request", "body": self.body, "more_body": False}]

        async def receive_again() -> ASGIMessage:
            return events.pop() if events else await receive()

        return receive_again

    def forwarded_headers(self) -> RawHeaders:
        """Return the headers for another host."""
        client, scheme = self._scope.get("client"), self._scope.get("scheme", "http")
        added: RawHeaders = [(FORWARDS, b"1"), (b"x-forwarded-proto", str(scheme).encode("latin-1"))]
        addresses = [value for name, value in self.headers if name == CLIENTS]
        if client is not None:
            addresses.append(str(client[0]).encode("latin-1"))
        if addresses:
            added.append((CLIENTS, b", ".join(addresses)))
        kept = [header for header in end_to_end(self.headers) if header[0] not in REPLACED]
        if all(name != b"host" for name, _ in kept):
            added.append((b"host", b"actors"))
        return [*kept, *added]


def is_forwarded(scope: Scope) -> bool:
    """Return True if a router of another host forwarded the request to this host."""
    return any(name.lower() == FORWARDS for name, _ in scope["headers"])


def end_to_end(headers: RawHeaders) -> RawHeaders:
    """Return the headers without those that concern only one connection."""
    listed = b",".join(value for name, value in headers if name == b"connection")
    omitted = HOP_BY_HOP | {name.strip().lower() for name in listed.split(b",")}
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
    """Run work after the complete body was received, and cancel the work if the client closes the connection.

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
