"""Send a request to one host: to the application of this host, or over HTTP to another host.

An application rejects a request by raising an error that `actors.hosts.routing` lists, or by sending the response that
`error_response` returns for this error. A rejection is not sent to the client, so the request can be repeated at
another host.

The error middleware of some frameworks answers with status 500 before it raises the error. So a response with a status
of 500 or more is held back until the application returns.

A host that was killed closes its connections. A host that is suspended, or that the network does not reach, does not
close them. So while the router waits for a response of another host or streams it, the router watches the list of
hosts, and ends the attempt when the host's lease has expired.
"""

from contextlib import aclosing, suppress
from functools import partial

import anyio
from msgspec import Struct

from actors.core.data.persistent import Segments
from actors.core.stream_events.ask_events import AskResult
from actors.errors import ConfigError, HostUnavailable, ProviderFailed, SessionClosed
from actors.hosts.asgi import (
    ANSWERED_HEADER,
    ASGIApp,
    ASGIMessage,
    Receive,
    Send,
    SessionRequest,
    end_to_end,
    rejection_in,
)
from actors.hosts.directory import HostDirectory
from actors.hosts.race import Interrupted, run_unless
from actors.hosts.routing import Rejection, RouterLimits, rejection_of
from actors.interrupts import is_group
from actors.runtime.handle import Session
from actors.transport import ForwardedRequest, ForwardedResponse, HttpTransport, Timeouts
from actors.transport.contract import parse_target

MAX_HELD = 64 * 1024
"""Maximum size of a body that is held back, in bytes."""
EVENT_STREAM = b"text/event-stream"
OMITTED_HEADERS = frozenset({b"date", b"server", ANSWERED_HEADER})
"""Headers of a response that the server of this host adds, or that only routers read."""
REFUSAL_STATUSES = frozenset({400, 413, 414, 431, 501, 505})
"""Statuses with which a server or a proxy refuses a request before a router sees it, for example because its headers
are too long. The servers of other hosts would refuse the request too."""
GATEWAY_TIMEOUT = 504
"""The status with which a proxy answers if it sent the request to the host, but the host did not answer in time. The
status 502 does not show this, because a proxy without a connection to the host answers with 502 too."""


class UnroutedAnswer(Struct, frozen=True):
    """The answer to a request that did not reach the router of another host.

    The answer does not show which host owns the session.

    Args:
        status: The HTTP status for the client.
        text: The reason.
    """

    status: int
    text: str


class ResponseFilter:
    """Sends the response of an application or of another host to the client, unless the response is a rejection.

    Attributes:
        rejection: The rejection that the response contains; None if it contains none or has not started.
        is_started: Whether the client has received a part of the response.
    """

    def __init__(self, session: str, send: Send) -> None:
        self.rejection: Rejection | None = None
        self.is_started: bool = False
        self._session, self._send = session, send
        self._held, self._size = list[ASGIMessage](), 0
        self._is_event_stream = False

    async def send(self, message: ASGIMessage) -> None:
        """Send a message of the response to the client, hold it back, or drop it."""
        if message["type"] == "http.response.start":
            headers = [(name.lower(), value) for name, value in message.get("headers", ())]
            self.rejection = rejection_in(headers, self._session, "")
            self._is_event_stream = dict(headers).get(b"content-type", b"").startswith(EVENT_STREAM)
        if self.rejection is not None:
            return
        if self._held or (message["type"] == "http.response.start" and message["status"] >= 500):
            self._held.append(message)
            self._size += len(message.get("body", b""))
            if self._size > MAX_HELD:
                await self.flush()
        else:
            await self._pass(message)

    async def flush(self) -> None:
        """Send the messages that were held back."""
        held, self._held, self._size = self._held, [], 0
        for message in held:
            await self._pass(message)

    async def end_event_stream(self) -> bool:
        """End a stream of events that has started, so that the client reconnects. Return False for other responses."""
        if not (self.is_started and self._is_event_stream):
            return False
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        return True

    async def _pass(self, message: ASGIMessage) -> None:
        self.is_started = True
        await self._send(message)


async def run_app(app: ASGIApp, request: SessionRequest, receive: Receive, send: Send) -> Rejection | None:
    """Let the application of this host answer a request. Return the rejection if the application rejects it.

    Raises:
        Exception: The error of the application, if the error is not a rejection or the response has started.
    """
    response = ResponseFilter(request.session, send)
    try:
        await app(request.scope(), request.replay(receive), response.send)
    except Exception as error:
        rejection = _find_rejection(error)
        if rejection is not None and not response.is_started:
            return rejection
        if rejection is not None and await response.end_event_stream():
            return None
        await response.flush()
        raise
    if response.rejection is None:
        await response.flush()
    return response.rejection


def _find_rejection(error: BaseException) -> Rejection | None:
    """Return the rejection that corresponds to an error, to an error inside its group, or to its cause.

    Task groups in middleware wrap the errors of handlers in a group. If an error has an exception handler but the
    response has started, some frameworks raise another error from it.
    """
    if (rejection := rejection_of(error)) is not None:
        return rejection
    nested = error.exceptions if is_group(error) else [error.__cause__] if error.__cause__ else []
    return next((found for each in nested if (found := _find_rejection(each)) is not None), None)


def ensure_answered(session: Session, result: AskResult) -> AskResult:
    """Return the result of an ask, unless the ask was cancelled because its session left this host.

    The ask continues at another host when it is repeated with the same key, as a `SessionRouter` does.

    Args:
        session: The session that was asked.
        result: The result of the ask, which had a key.

    Raises:
        SessionClosed: The ask was interrupted, or was cancelled by a handover, a drain or the end of the runtime.
    """
    lifecycle = session._lifecycle
    is_departing = lifecycle.is_departing
    is_leaving = is_departing or lifecycle.is_over or not lifecycle.host.running
    if result.status == "interrupted" or (result.status == "cancelled" and is_leaving):
        raise SessionClosed(
            f"An ask of session {session.id!r} was {result.status}, because the session left its host; repeat the ask "
            "with the same key"
        )
    return result


class Forwarder:
    """Forwards requests to other hosts.

    Args:
        transport: Sends the requests.
        directory: The live hosts.
        limits: The limits of the router.
        leaving: Set when this host begins to leave, which ends the streams of events.
    """

    def __init__(
        self, transport: HttpTransport, directory: HostDirectory, limits: RouterLimits, leaving: anyio.Event
    ) -> None:
        self._transport, self._directory, self._leaving = transport, directory, leaving
        seconds = limits.idle_timeout
        self._timeouts = Timeouts(connect=limits.connect_timeout, first_byte=seconds, idle=seconds)

    async def forward(
        self, address: str, request: SessionRequest, send: Send
    ) -> Rejection | UnroutedAnswer | None:
        """Let another host answer a request.

        Return a rejection if the host rejects the request or is unreachable, an unrouted answer if the request cannot
        be sent or is refused before the router of the host sees it, and None if the host has answered.

        Raises:
            HostUnavailable: The connection to the host broke after the response had started.
        """
        try:
            parse_target(address)
        except ConfigError as error:
            return _failure(request, address, str(error))
        try:
            exchange = self._prepare(address, request)
        except ConfigError as error:  # this host's server accepts characters that the client rejects
            return UnroutedAnswer(400, str(error))
        response = ResponseFilter(request.session, send)
        try:
            failure = await run_unless(
                partial(self._directory.wait_gone, address),
                partial(self._exchange, address, request, exchange, response),
            )
        except Interrupted:
            failure = _failure(request, address, "its lease has expired", exchange)
        if not isinstance(failure, Rejection) or not response.is_started:
            return failure
        if await response.end_event_stream():
            return None
        raise failure.error

    def _prepare(self, address: str, request: SessionRequest) -> ForwardedRequest:
        """Return the exchange with another host. The request is sent when the exchange is entered as a context."""
        url, headers = address.rstrip("/") + request.target, request.forwarded_headers()
        body = Segments.of(request.body) if request.body else Segments()
        return self._transport.forward(request.method, url, headers, body, self._timeouts)

    async def _exchange(
        self, address: str, request: SessionRequest, exchange: ForwardedRequest, response: ResponseFilter
    ) -> Rejection | UnroutedAnswer | None:
        """Send the request and stream the response. Return None if the other host answered the request."""
        try:
            async with exchange as answer:
                if all(name != ANSWERED_HEADER for name, _ in answer.raw_headers):
                    if answer.status in REFUSAL_STATUSES:
                        reason = f"The server of the host for this request has refused it with status {answer.status}"
                        return UnroutedAnswer(answer.status, reason)
                    sent = exchange if answer.status == GATEWAY_TIMEOUT else None
                    return _failure(request, address, "no SessionRouter answers at this address", sent)
                rejection = rejection_in(answer.raw_headers, request.session, address)
                if rejection is None:
                    await self._stream(answer, response)
                return rejection
        except ProviderFailed as error:
            return _failure(request, address, str(error), exchange)

    async def _stream(self, answer: ForwardedResponse, response: ResponseFilter) -> None:
        """Send the response of another host to the client. A stream of events ends early if this host leaves."""
        kept = [header for header in end_to_end([*answer.raw_headers]) if header[0] not in OMITTED_HEADERS]
        await response.send({"type": "http.response.start", "status": answer.status, "headers": kept})
        send_chunks = partial(_send_chunks, answer, response)
        if dict(kept).get(b"content-type", b"").startswith(EVENT_STREAM):
            with suppress(Interrupted):
                await run_unless(self._leaving.wait, send_chunks)
        else:
            await send_chunks()
        await response.send({"type": "http.response.body", "body": b"", "more_body": False})
        await response.flush()


async def _send_chunks(answer: ForwardedResponse, response: ResponseFilter) -> None:
    """Send the body of another host's response to the client as it arrives."""
    async with aclosing(answer.raw_chunks()) as chunks:
        async for chunk in chunks:
            await response.send({"type": "http.response.body", "body": chunk, "more_body": True})


def _failure(
    request: SessionRequest, address: str, reason: str, exchange: ForwardedRequest | None = None
) -> Rejection:
    """Return the rejection for a host that did not answer. Its kind depends on whether the request was sent."""
    text = f"No answer from the host at {address} for session {request.session!r}: {reason}"
    is_sent = exchange is not None and exchange.is_sent
    return Rejection("lost" if is_sent else "unreachable", HostUnavailable(text))
