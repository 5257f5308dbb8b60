"""Route the HTTP requests for a session to the host that owns the session: an ASGI middleware.

    app = SessionRouter(api, session_id=lambda scope: scope["path"].split("/")[2])

Any host may receive any request. `actors.hosts.routing` chooses the hosts to try, and this module sends the request to
them. A forwarded request is never forwarded again: the host that receives it answers it, or rejects it and names the
owner. After a rejection, the host that forwarded the request tries the next host.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio

from actors.errors import ActorsError, HostDraining, JournalError, RequestLost
from actors.hosts.asgi import (
    ASGIApp,
    ASGIMessage,
    BodyTooLarge,
    ClientDisconnected,
    MarkedResponse,
    Receive,
    Scope,
    Send,
    SessionRequest,
    TrackedResponse,
    close_when_leaving,
    error_messages,
    is_forwarded,
    json_messages,
    read_request,
    rejection_messages,
    run_while_connected,
)
from actors.hosts.attempts import Forwarder, UnroutedAnswer, run_app
from actors.hosts.directory import HostDirectory, HostSearch
from actors.hosts.membership import REBALANCE_PERIOD, call_at_signals, import_turn_modules, start_rebalancing
from actors.hosts.routing import Rejection, RouterLimits, RoutingTable
from actors.runtime.runtime import Runtime
from actors.runtime.session_host import HostTask
from actors.telemetry import logger
from actors.transport import HttpTransport

MAX_CONNECTIONS = 10_000
"""Maximum number of connections to one other host. Each stream of events uses one."""


class SessionRouter:
    """An ASGI middleware that forwards each request for a session to the host that owns the session.

    The middleware wraps the complete application. The application must open sessions with `Runtime.claim`, or with
    `open` and `resume=True`, and must pass the header `Idempotency-Key` to `ask` as `key`, because a request is
    repeated at another host if its host ends. The middleware adds the header if the client did not send it. A request
    is repeated only while the client has received no part of a response.

    If the application raises `SessionLeased`, `HostDraining`, `TooManySessions` or another error that means that this
    host cannot serve the session, or answers with `error_response` of such an error, the middleware tries other hosts.
    The middleware passes WebSocket connections, requests without a session, and the requests of clients outside of the
    block of `serve` to the application unchanged. Requests that other hosts have forwarded are answered outside of the
    block too; if the application rejects one, the host that forwarded it receives the rejection.

    Args:
        app: The application.
        session_id: Returns the id of the session of a request, from its ASGI scope; None for a request without one.
        limits: The limits of the router.
    """

    def __init__(
        self, app: ASGIApp, session_id: Callable[[Scope], str | None], *, limits: RouterLimits | None = None
    ) -> None:
        import_turn_modules()
        self._app, self._session_id = app, session_id
        self._limits = limits or RouterLimits()
        self._requests: _RequestRouter | None = None
        self._shutdown: _Shutdown | None = None
        self._lifespan_state: dict[str, object] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Servers call the router as an ASGI application."""
        if scope["type"] == "lifespan":
            self._lifespan_state = scope.get("state")
        elif self._lifespan_state and not scope.get("state"):
            scope["state"] = self._lifespan_state.copy()  # a request through `listen` has no state
        if scope["type"] == "http" and scope.get("http_version", "1.1").startswith("1"):
            send = close_when_leaving(send, self._is_leaving)
        requests = self._requests
        is_routed = scope["type"] == "http" and (requests is not None or is_forwarded(scope))
        session = self._session_id(scope) if is_routed else None
        if session is None:
            await self._app(scope, receive, send)
        elif requests is None or is_forwarded(scope):
            await self._answer_forwarded(session, scope, receive, MarkedResponse(send))
        else:
            await self._find_host(requests, session, scope, receive, TrackedResponse(send))

    def _is_leaving(self) -> bool:
        """Return True if this host has begun to leave."""
        return self._shutdown is not None and self._shutdown.leaving.is_set()

    async def _find_host(
        self,
        requests: "_RequestRouter",
        session: str,
        scope: Scope,
        receive: Receive,
        response: TrackedResponse,
    ) -> None:
        """Let a host answer a request. If the server cancels the request because this host leaves, answer it with
        status 503. Otherwise, some servers would answer with 500, after which clients do not repeat a request.
        """
        try:
            with suppress(ClientDisconnected):
                if (request := await self._read_request(session, scope, receive, response.send)) is not None:
                    await requests.find_host(request, receive, response.send)
        except anyio.get_cancelled_exc_class():
            if self._is_leaving() and not response.is_started:
                with anyio.CancelScope(shield=True):
                    await _send_all(response.send, error_messages(_left_error()))
            raise

    async def _answer_forwarded(
        self, session: str, scope: Scope, receive: Receive, response: MarkedResponse
    ) -> None:
        """Answer a request that another host has forwarded, or reject it."""
        with suppress(ClientDisconnected):
            if (request := await self._read_request(session, scope, receive, response.send)) is None:
                return
            try:
                rejection = await run_app(self._app, request, receive, response.send)
            except Exception:
                if not response.is_started:
                    # the error response of this host's server would lack the header `ANSWERED_HEADER`
                    await _send_all(response.send, json_messages(500, {"error": "Internal Server Error"}, []))
                raise
            if rejection is not None:
                await _send_all(response.send, rejection_messages(rejection))

    async def _read_request(
        self, session: str, scope: Scope, receive: Receive, send: Send
    ) -> SessionRequest | None:
        """Read a request. If it is invalid, answer it and return None.

        Raises:
            ClientDisconnected: The client closed the connection.
        """
        try:
            request = await read_request(session, scope, receive, self._limits.max_body)
        except BodyTooLarge:
            text = f"The body of a request for a session is limited to {self._limits.max_body} bytes"
            await _send_all(send, json_messages(413, {"error": text}, []))
            return None
        if not request.target.startswith("/"):
            # the path is appended to the address of a host, so this path could change the address
            text = "The path of a request for a session must begin with /"
            await _send_all(send, json_messages(400, {"error": text}, []))
            return None
        return request

    @asynccontextmanager
    async def serve(
        self,
        runtime: Runtime,
        *,
        rate: float = 100.0,
        timeout: float = 10.0,
        rebalance: float | None = REBALANCE_PERIOD,
    ) -> AsyncGenerator[None]:
        """Route requests during the block. Use this method in the lifespan of the application, inside the runtime.

        At SIGTERM or SIGINT, or else at the end of the block, the runtime is drained: its sessions move to other
        hosts, which ends their streams of events. Streams that this host forwards from other hosts end too. From then
        on, each response over HTTP/1 closes its connection, so that the client connects to another host.

        Args:
            runtime: The runtime of this host. Other hosts forward requests to its `address`, which is a URL.
            rate: Maximum number of sessions that leave per second, as for `Runtime.drain`.
            timeout: Seconds to wait for the turns in flight, and again for all sessions to leave. Sessions that are
                still open after that are released when the runtime exits.
            rebalance: Seconds between two calls of `Runtime.rebalance`, which moves idle sessions to hosts that have
                fewer sessions; None for no calls.
        """
        if rebalance is not None:
            start_rebalancing(runtime, rebalance)
        transport = HttpTransport(environ={}, connections=MAX_CONNECTIONS)
        self._shutdown = shutdown = _Shutdown(runtime, rate, timeout)
        try:
            with call_at_signals(shutdown.begin):
                self._requests = _RequestRouter(self._app, runtime, transport, self._limits, shutdown)
                yield
                await shutdown.finish()
        finally:
            self._requests = None
            await transport.close()


class _Shutdown:
    """Drains a runtime once. The arguments are those of `SessionRouter.serve`."""

    def __init__(self, runtime: Runtime, rate: float, timeout: float) -> None:
        self._runtime, self._rate, self._timeout = runtime, rate, timeout
        self._task: HostTask | None = None
        self.leaving, self.left = anyio.Event(), anyio.Event()
        """Set when the drain has begun, and when it has ended."""

    def begin(self) -> HostTask:
        """Start to drain the runtime, unless the drain has begun before."""
        if self._task is None:
            self._task = self._runtime._running_host().launch(self._drain, "hosts/drain")
            self.leaving.set()
        return self._task

    async def finish(self) -> None:
        """Drain the runtime, and wait until its sessions have left."""
        await self.begin().wait()

    async def _drain(self) -> None:
        try:
            with anyio.move_on_after(2 * self._timeout), suppress(JournalError):
                await self._runtime.drain(rate=self._rate, timeout=self._timeout)
        finally:
            self.left.set()


class _RequestRouter:
    """Routes the requests for the sessions of one runtime.

    Args:
        app: The application of this host.
        runtime: The runtime of this host.
        transport: Sends requests to other hosts.
        limits: The limits of the router.
        shutdown: Drains the runtime.
    """

    def __init__(
        self,
        app: ASGIApp,
        runtime: Runtime,
        transport: HttpTransport,
        limits: RouterLimits,
        shutdown: _Shutdown,
    ) -> None:
        self._app, self._runtime, self._limits, self._shutdown = app, runtime, limits, shutdown
        self._table = RoutingTable(limits)
        self._directory = HostDirectory(partial(runtime.journal.hosts, count_sessions=False))
        self._forwarder = Forwarder(transport, self._directory, limits, shutdown.leaving)

    async def find_host(self, request: SessionRequest, receive: Receive, send: Send) -> None:
        """Try hosts until one of them answers the request, or the limits are reached. Once the sessions of this host
        have left, give up instead of waiting for other hosts, because the server of this host waits for the request.

        Raises:
            ClientDisconnected: The client closed the connection.
        """
        session, here = request.session, self._runtime.address
        if session in self._runtime.sessions:
            self._table.record_owner(session, here)

        async def pause(seconds: float) -> None:
            if self._shutdown.left.is_set():
                raise _left_error()
            await run_while_connected(receive, partial(anyio.sleep, seconds))

        search = HostSearch(session, here, self._table, self._directory, pause)
        while True:
            try:
                address = await search.next_address()
            except ActorsError as error:
                _log_given_up(session, error)
                await _send_all(send, error_messages(error))
                return
            outcome = await self._answer_at(address, request, receive, send)
            if isinstance(outcome, Rejection):
                search.reject(outcome)
                continue
            if isinstance(outcome, UnroutedAnswer):
                await _send_all(send, json_messages(outcome.status, {"error": outcome.text}, []))
            elif address != here or session in self._runtime.sessions:
                # a host that answers without opening the session is not its owner
                search.accept()
            return

    async def _answer_at(
        self, address: str, request: SessionRequest, receive: Receive, send: Send
    ) -> Rejection | UnroutedAnswer | None:
        """Let one host answer the request. Return None if the application of that host has answered.

        Raises:
            ClientDisconnected: The client closed the connection while another host worked on the request.
        """
        if address in ("", self._runtime.address):
            return await run_app(self._app, request, receive, send)
        return await run_while_connected(receive, partial(self._forwarder.forward, address, request, send))


def _left_error() -> HostDraining:
    return HostDraining("This host is ending, so a request cannot wait here until another host can answer it")


def _log_given_up(session: str, error: ActorsError) -> None:
    if isinstance(error, RequestLost):
        logger.request_lost(session)
    else:
        logger.request_given_up(session, error)


async def _send_all(send: Send, messages: Sequence[ASGIMessage]) -> None:
    for message in messages:
        await send(message)
