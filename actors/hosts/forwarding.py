"""Forward a request to another host over HTTP, and stream the response to the client.

A host that was killed closes its connections. A host that is suspended, or that the network does not reach, does not.
So while a response is awaited or streamed, the list of hosts is watched, and the attempt ends when the host's lease
has expired.
"""

from contextlib import aclosing, suppress
from functools import partial

import anyio

from actors.core.data.segments import Segments
from actors.errors import ConfigError, HostUnavailable, ProviderFailed
from actors.hosts.asgi import Send
from actors.hosts.directory import HostDirectory
from actors.hosts.limits import RouterLimits
from actors.hosts.local import EVENT_STREAM, ResponseFilter
from actors.hosts.race import Interrupted, run_unless
from actors.hosts.rejections import Rejection
from actors.hosts.requests import SessionRequest, end_to_end
from actors.hosts.responses import ANSWERED, json_messages, rejection_in
from actors.transport import ForwardedRequest, ForwardedResponse, HttpTransport, Timeouts
from actors.transport.origin import parse_target

OMITTED = frozenset({b"date", b"server", ANSWERED})
"""Headers of a response that the server of this host adds, or that only routers read."""


GATEWAY_TIMEOUT = 504
"""The status with which a proxy answers if the host behind it did not answer in time. With 502, the proxy may have had
no connection to the host."""


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

    async def forward(self, address: str, request: SessionRequest, send: Send) -> Rejection | None:
        """Let another host answer a request. Return a rejection if the host rejects the request or is unreachable.

        Raises:
            HostUnavailable: The connection to the host broke after the response had started.
        """
        try:
            parse_target(address)
        except ConfigError as error:
            return _failure(request, address, str(error))
        try:
            exchange = self._prepare(address, request)
        except ConfigError as error:  # the server of this host accepts more characters than the client
            for message in json_messages(400, {"error": str(error)}, []):
                await send(message)
            return None
        response = ResponseFilter(request.session, send)
        try:
            failure = await run_unless(
                partial(self._directory.wait_gone, address),
                partial(self._exchange, address, request, exchange, response),
            )
        except Interrupted:
            failure = _failure(request, address, "its lease has expired", exchange)
        if failure is None or not response.is_started:
            return failure
        if await response.end_event_stream():
            return None
        raise failure.error

    def _prepare(self, address: str, request: SessionRequest) -> ForwardedRequest:
        """Return the exchange with another host, which begins when it is entered."""
        url, headers = address.rstrip("/") + request.target, request.forwarded_headers()
        body = Segments.of(request.body) if request.body else Segments()
        return self._transport.forward(request.method, url, headers, body, self._timeouts)

    async def _exchange(
        self, address: str, request: SessionRequest, exchange: ForwardedRequest, response: ResponseFilter
    ) -> Rejection | None:
        """Send the request and stream the response. Return the rejection or the failure."""
        try:
            async with exchange as answer:
                if all(name != ANSWERED for name, _ in answer.raw_headers):
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
        kept = [header for header in end_to_end([*answer.raw_headers]) if header[0] not in OMITTED]
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
    """Return the rejection for a host that did not answer. It depends on whether the request was sent."""
    text = f"No answer from the host at {address} for session {request.session!r}: {reason}"
    is_sent = exchange is not None and exchange.is_sent
    return Rejection("lost" if is_sent else "unreachable", HostUnavailable(text))
