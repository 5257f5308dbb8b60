"""Send a request to the application of this host, and detect that the application rejects the request.

An application rejects a request by raising an error of `actors.hosts.rejections`, or by answering as `error_response`
says. A rejection is not sent to the client, so the request can be repeated at another host.

The error middleware of some frameworks answers with status 500 before it raises the error. So a response with a status
of 500 or more is held back until the application returns.
"""

from actors.errors import ActorsError
from actors.hosts.asgi import ASGIApp, ASGIMessage, Receive, Send
from actors.hosts.rejections import Rejection, rejection_of
from actors.hosts.requests import SessionRequest
from actors.hosts.responses import rejection_in
from actors.interrupts import is_group

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
        self.is_started = False
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
        rejection = rejection_of(_single_error(error))
        if rejection is not None and not response.is_started:
            return rejection
        if rejection is not None and await response.end_event_stream():
            return None
        await response.flush()
        raise
    if response.rejection is None:
        await response.flush()
    return response.rejection


def _single_error(error: BaseException) -> BaseException:
    """Return the only `ActorsError` of an exception group; task groups in middleware wrap the errors of handlers."""
    while is_group(error) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if is_group(error):
        return next((each for each in error.exceptions if isinstance(each, ActorsError)), error)
    return error
