"""Send a request to the application of this host, and detect that the application rejects the request.

An application rejects a request by raising an error of `actors.hosts.rejections`, or by answering as `error_response`
says. A rejection is not sent to the client, so the request can be repeated at another host.

The error middleware of some frameworks answers with status 500 before it raises the error. So a response with a status
of 500 or more is held back until the application returns.
"""

from actors.core.stream_events.results import AskResult
from actors.errors import SessionClosed
from actors.hosts.asgi import ASGIApp, ASGIMessage, Receive, Send
from actors.hosts.rejections import Rejection, rejection_of
from actors.hosts.requests import SessionRequest
from actors.hosts.responses import rejection_in
from actors.interrupts import is_group
from actors.runtime.handle import Session

HELD = 64 * 1024
"""Maximum size of a body that is held back, in bytes."""
EVENT_STREAM = b"text/event-stream"


class ResponseFilter:
    """The response of an application or of another host, of which rejections are not sent to the client.

    Attributes:
        rejection: The rejection that the response contains.
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
            if self._size > HELD:
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
    """Return the rejection that an error means.

    Task groups in middleware wrap the errors of handlers in a group. Some frameworks raise another error from an error
    that has a handler, if the response has started.
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
    is_departing = lifecycle.departure is not None and not lifecycle.departure.has_failed
    is_leaving = is_departing or lifecycle.is_over or not lifecycle.host.running
    if result.status == "interrupted" or (result.status == "cancelled" and is_leaving):
        raise SessionClosed(
            f"An ask of session {session.id!r} was {result.status}, because the session left its host; repeat the ask "
            "with the same key"
        )
    return result
