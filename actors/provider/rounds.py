"""Run a round: send a request to a backend, and retry it until it is answered or finally fails.

The provider actor runs each round in a child task. The adapter builds requests and decodes answers, and the transport
sends and receives bytes. A request that fails after part of its answer was visible is not retried, because text would
appear twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import aclosing, suppress
from math import inf
from random import Random
from time import time
from typing import TYPE_CHECKING, assert_never

import anyio
from msgspec import Struct, field

from actors.adapters.adapter import Adapter
from actors.adapters.failure import ACTIONS, BACKEND_KINDS, AnswerFault, Failure, Kind
from actors.adapters.request import Request
from actors.adapters.retry_after import seconds_until_quota
from actors.core.data.persistent import Segments
from actors.core.settings.asking import StoredAskSettings
from actors.core.stats.measures import RequestCounts
from actors.core.stream_events.events import Sink
from actors.core.stream_events.round_events import RequestFailedEvent, TextEvent, ThinkingEvent
from actors.core.values.content import Message
from actors.core.values.identity import Binding
from actors.core.values.progress import Cause
from actors.core.values.stream import (
    ArgumentsDelta,
    CallDone,
    CallStarted,
    Finish,
    LeftOut,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from actors.errors import CircuitOpen, ConfigError, CredentialFailed, Overloaded, ProviderFailed, StreamFault
from actors.kernel import Query
from actors.kernel.event_loop import EventLoop, Scope, event_loop
from actors.kernel.host_code import is_failure
from actors.provider.admission import Admission, Pace, Ticket
from actors.provider.attempts import (
    AbortedAnswer,
    Answer,
    BrokenAnswer,
    FailedTry,
    Generated,
    Retries,
    SilenceTimeout,
    merged_headers,
    timeouts_of,
    without_secrets,
)
from actors.provider.credentials import Credentials, Headers, Keys, OutgoingRequest, query_secrets, with_query
from actors.telemetry import logger
from actors.transport import Response, Timeouts, Transport

if TYPE_CHECKING:
    from actors.adapters.base import Decoder

MAX_ERROR_BODY = 256 * 1024
"""Maximum number of bytes that are read from an error response."""
MAX_ERROR_SECONDS = 2.0
"""Maximum number of seconds for reading an error response. Its status is already known, and some bodies never end."""
MAX_CONTINUATIONS = 8
"""Maximum number of continuation requests for an answer that the provider pauses (`CONTINUATION`). After that, the
answer stays incomplete.
"""
LINGER = 0.5
"""Seconds that a server has to end its response after the end marker, before the connection is closed."""


class Endpoint(Struct, frozen=True):
    """The address, credentials and limits of one backend.

    Args:
        url: Base URL.
        credentials: Creates the auth headers of each request, which are never logged.
        headers: Returns additional headers for every request. They override the adapter's headers, and are never
            logged.
        query: Returns the query string for every request. It is never logged.
        timeouts, retries, pace: See `Timeouts`, `Retries` and `Pace`.
        stream: Whether answers are requested as streams.
        answer_bytes: Maximum size of one answer on the wire, in bytes. If an answer is larger, the request fails, and
            the next backend is tried.
        silence_timeout: Seconds without content after which a stream fails. `None` means no limit.
        clock: Returns the wall-clock time in seconds since 1970. It is needed for headers that contain the time at
            which a retry is allowed.
    """

    url: str
    credentials: Credentials = field(default_factory=Keys)
    headers: Callable[[], Headers] = tuple
    query: Callable[[], str] = str
    timeouts: Timeouts = field(default_factory=Timeouts)
    retries: Retries = field(default_factory=Retries)
    pace: Pace = field(default_factory=Pace)
    stream: bool = True
    answer_bytes: int = 32 * 1024 * 1024
    silence_timeout: float | None = None
    clock: Callable[[], float] = time


class Generate(Query[Generated], frozen=True):
    """Send a request and read the answer.

    Args:
        key: Id of this command, which `Abort` refers to.
        request: The request.
        binding: The backend and model that should answer. The message records them as its origin.
        first_call: Number for the first tool call id to assign.
        turn, round: Numbers of the turn and the round, which are recorded in the message and in its deltas.
        sink: Receives deltas as they arrive. `None` means that nothing subscribes to them.
        session, tenant: The owners of the request. Queued requests are served fairly among tenants and sessions.
        asked: Settings of the ask, whose timeouts override the endpoint's.
    """

    key: str
    request: Request
    binding: Binding
    first_call: int
    turn: int
    round: int
    sink: Sink | None = None
    session: str = ""
    tenant: str = ""
    asked: StoredAskSettings | None = None


class Round(Struct, eq=False):
    """A running round: one request with its retries. It owns the decoder of the current try."""

    _command: Generate
    _adapter: Adapter
    _endpoint: Endpoint
    _transport: Transport
    _counters: Counter[str]
    _requests: RequestCounts
    _admission: Admission
    aborted: bool = False
    has_ended: bool = False
    _loop: EventLoop = field(default_factory=event_loop)
    _made_decoder: "Decoder | None" = None  # created when the response arrives, to save memory until then
    _message: Message | None = None
    _failure: Failure | None = None
    _auth_headers: Headers = ()  # the auth headers of the last request
    _extra_headers: Headers = ()  # the additional headers of the last request
    _query: str = ""
    _ticket: Ticket | None = None  # the ticket of the current try
    _tries: int = 0
    _answers: int = 0  # the backend's answers at the last rate limit error of this round
    _passed_over: int = 0  # number of rate limit errors while other requests were answered
    _tried: tuple[FailedTry, ...] = ()
    _wait: float = 0.0
    _was_renewed: bool = False
    _visible: bool = False
    _calls: int = 0  # number of tool call ids that earlier tries assigned
    _offset: int = 0
    _continued: int = 0  # number of continuation requests
    _sent: int = 0  # number of requests of this try
    _began: float = 0.0  # when this try started, by the loop's clock, in seconds
    _has_content: bool = False  # whether any content of this answer has arrived

    def __repr__(self) -> str:  # the fields contain credentials and the request
        return f"<Round {self._command.key}>"

    @property
    def _decoder(self) -> "Decoder":
        """The decoder of the current try."""
        if self._made_decoder is None:
            self._made_decoder = self._new_decoder(stream=self._endpoint.stream)
        return self._made_decoder

    async def run(self, random: Random) -> None:
        """Send the request, and retry it until it is answered or finally fails.

        While this request waits before a retry, other requests may run.
        """
        while True:
            failure = await self._try_once()
            if failure is None:
                return
            failure = without_secrets(failure, query_secrets(self._query))
            wait = self._next_wait(
                without_secrets(failure, (*self._auth_headers, *self._extra_headers)), random
            )
            assert self._failure is not None
            self._report_failure(self._failure, wait)
            if wait is None:
                return
            self._tried += (FailedTry(self._failure, self._wait),)
            self._wait = wait
            await anyio.sleep(wait)
            self._calls = max(self._calls, self._decoder.minted_id_count)
            self._made_decoder = None
            self._continued = 0

    async def _try_once(self) -> Failure | None:
        """Wait until the request may start, and send it once. Return the failure, or None after a complete answer."""
        command, admission = self._command, self._admission
        ticket = self._ticket = Ticket(
            command.tenant, command.session, command.request.segments.size, not self._tried, command.round > 1
        )
        try:
            await admission.wait_to_start(ticket)
        except (Overloaded, CircuitOpen) as refused:
            kind: Kind = "overloaded" if isinstance(refused, Overloaded) else "circuit_open"
            self._counters[kind] += 1
            error = type(refused).__name__
            return Failure(kind, ACTIONS[kind], str(refused), retry_after=refused.retry_after, error=error)
        failure, usage = None, None
        self._sent, self._began, self._has_content = 0, self._loop.now(), False
        try:
            failure = await self._send_once()
            usage = self._decoder.usage
        finally:
            self._end_try(ticket, failure, usage)
        return failure

    def _end_try(self, ticket: Ticket, failure: Failure | None, usage: Usage | None) -> None:
        """Record the end of a try, so that another request may start, and count the requests of the try. `usage` is
        None if the try was stopped.
        """
        self._admission.record_end(ticket, failure, usage)
        status = 200 if failure is None else failure.status
        self._requests.record_end(self._sent, status, stopped=usage is None)

    def _next_wait(self, failure: Failure, random: Random) -> float | None:
        """Record a failed try. Return the seconds until the next try, or None if the failure is final."""
        self._failure = self._endpoint.retries.mention_wait(failure)
        if self._renew_token(failure):
            return 0.0
        if failure.action == "our_bug":
            self._counters["tool_api_400_total"] += 1
        elif failure.action == "leave_out":
            self._counters[f"refused_{failure.kind}"] += 1
        wait = self._retry_wait(failure, random)
        if wait is None and failure.kind in BACKEND_KINDS:
            self._admission.record_give_up()
        return wait

    def _retry_wait(self, failure: Failure, random: Random) -> float | None:
        """Return the seconds until a retry, or None if the failure must not be retried."""
        if failure.action != "retry" or self._visible:
            return None
        wait = self._endpoint.retries.wait_seconds(self._counted_tries(failure), failure.retry_after, random)
        if wait is None:
            return None
        if not self._admission.may_retry(failure):
            self._counters["retries_denied"] += 1
            return None
        return wait

    def _counted_tries(self, failure: Failure) -> int:
        """Return the number of tries that count towards the limit, including the failed try.

        A rate limit error does not count if the backend answered other requests meanwhile (`Retries.extra_attempts`).
        """
        if failure.kind == "rate_limit" and self._were_others_answered():
            self._passed_over = min(self._passed_over + 1, self._endpoint.retries.extra_attempts)
        return self._tries - self._passed_over

    def _were_others_answered(self) -> bool:
        """Return True if the backend has answered other requests since this request's previous rate limit error."""
        before, self._answers = self._answers, self._admission.answers
        return self._tries > 1 and self._answers > before

    def _renew_token(self, failure: Failure) -> bool:
        """Return True if the provider rejected a token and a retry with a new token may succeed. Return False after a
        second rejection.
        """
        if failure.status != 401 or self._was_renewed:
            return False
        self._was_renewed = self._endpoint.credentials.record_rejection(self._auth_headers)
        return self._was_renewed

    def outcome(self) -> Generated:
        """Return the result of the round: a complete, an aborted or a broken answer."""
        decoder, usage = self._decoder, self._decoder.usage
        self._requests.add_usage(usage)
        calls = max(self._calls, decoder.minted_id_count)
        if (whole := self._message) is not None:
            calls = max(calls, len(whole.calls))
            left_out = self._report_left_out()
            return Answer(
                whole,
                usage,
                decoder.finish_reason,
                calls,
                decoder.cut_reason,
                left_out,
                *self._earlier_tries(),
            )
        kept = decoder.partial_message()  # updates `decoder.left_out`, which is read below
        unfinished = (
            kept if kept.blocks else None,
            usage,
            calls,
            self._report_left_out(),
            *self._earlier_tries(),
        )
        if self.aborted or self._failure is None:
            return AbortedAnswer(*unfinished)
        return BrokenAnswer(*unfinished, failure=self._failure, visible=self._visible)

    def _earlier_tries(self) -> tuple[tuple[FailedTry, ...], float]:
        """Return the failed tries, and the seconds waited before the last try."""
        return self._tried, self._wait

    def _report_left_out(self) -> LeftOut:
        """Count, log and return the content of the answer that is missing from the message."""
        if not (counts := self._decoder.left_out):
            return ()
        self._counters["left_out"] += sum(counts.values())
        logger.answer_left_out(self._command.key, counts)
        return tuple(counts.items())

    def _new_decoder(self, *, stream: bool) -> "Decoder":
        from actors.adapters.codec import decode  # imported lazily, at the first answer

        command = self._command
        return decode(
            self._adapter.dialect,
            command.binding,
            stream=stream,
            first_call=command.first_call,
            turn=command.turn,
            names=command.request.names,
            keys=command.request.keys,
            tools=command.request.tools,
            max_bytes=self._endpoint.answer_bytes,
        )

    async def _send_once(self) -> Failure | None:
        """Send the request once and read its response. Return the failure, or None after a complete answer."""
        self._tries += 1
        try:
            failure = await self._send_and_read(self._command.request.segments)
            while failure is None and (token := self._decoder.end_response()):
                if self._continued == MAX_CONTINUATIONS:
                    break
                self._continued += 1
                self._decoder.resume(stream=self._endpoint.stream)
                failure = await self._send_and_read(self._command.request.continuation_body(token))
            if failure is None:
                self._complete_message()
            return failure
        except AnswerFault as fault:
            return fault.failure
        except (ConfigError, CredentialFailed) as error:
            return Failure("config", ACTIONS["config"], str(error), error=type(error).__name__)
        except (ProviderFailed, StreamFault) as error:
            return Failure("transient", "retry", str(error), error=type(error).__name__)
        except BaseException as error:  # an unexpected error makes only this round fail
            if not is_failure(error):
                raise
            logger.actor_crashed(f"round {self._command.key}", error)
            name = type(error).__name__
            return Failure("transient", "retry", f"The answer could not be read: {name}", error=name)

    async def _send_and_read(self, segments: Segments) -> Failure | None:
        """Send the request body `segments`, and read the complete response. Return the failure, or None after a
        success.
        """
        request, endpoint = self._command.request, self._endpoint
        timeouts = timeouts_of(endpoint.timeouts, self._command.asked)
        until = inf if timeouts.total is None else self._loop.now() + timeouts.total
        self._query = endpoint.query()
        url = with_query(endpoint.url.rstrip("/") + request.path, self._query)
        outgoing = OutgoingRequest(url, segments)
        self._auth_headers = await endpoint.credentials.headers(outgoing)
        self._extra_headers = endpoint.headers()
        headers = (*merged_headers(request.headers, self._extra_headers), *self._auth_headers)
        self._sent += 1
        self._counters["requests"] += 1
        self._counters["retries"] += self._tries > 1
        async with self._transport.send(url, headers, segments, timeouts) as response:
            if (wait := seconds_until_quota(response.headers, self._endpoint.clock())) > 0:
                self._admission.pause(wait)
            if response.status != 200:
                return await self._read_rejection(response)
            # the transport enforces this limit until the response's head arrives
            with self._loop.scope(deadline=until) as scope:
                silence = SilenceTimeout(
                    scope, self._loop.now, endpoint.silence_timeout if endpoint.stream else None
                )
                await self._read_answer(response, scope, silence)
            if scope.cancelled_caught and not self._decoder.ended:
                why = silence.error_message or f"The answer took longer than {timeouts.total} s."
                return Failure("transient", "retry", why, error="TimeoutError")
        return None

    def _complete_message(self) -> None:
        """Complete the message, and emit the events that can be decoded only at the end of the answer."""
        decoder = self._decoder
        self._message = decoder.close()
        self._emit_deltas(decoder.late)
        self._record_first_token()
        self._requests.answer.record(self._loop.now() - self._began)
        if withheld := decoder.withheld:  # the provider hid invalid parts of the request from its model
            self._counters["tool_api_400_total"] += 1
            logger.input_withheld(f"round {self._command.key}", withheld)

    async def _read_answer(self, response: Response, scope: Scope, silence: SilenceTimeout) -> None:
        """Read the complete answer. A connection error after the end marker is ignored."""
        is_begun, ticket = False, self._ticket
        assert ticket is not None
        try:
            async with aclosing(response.chunks()) as chunks:
                async for chunk in chunks:
                    if not is_begun and (begun := chunk.lstrip()):
                        is_begun = True
                        # some servers send a document although a stream was requested
                        if begun.startswith(b"{"):
                            self._use_document_decoder()
                            silence.disable()
                    decoder = self._decoder
                    self._emit_deltas(events := decoder.feed(chunk))
                    silence.record_events(events)
                    if events and (ticket.is_probe or ticket.is_in_doubt):
                        self._admission.record_answer_start(ticket)
                    if decoder.ended:
                        scope.deadline = min(scope.deadline, self._loop.now() + LINGER)
        except ProviderFailed:
            if not self._decoder.ended:
                raise

    def _use_document_decoder(self) -> None:
        """Decode this response as one JSON document, even though a stream was requested."""
        if self._continued:
            self._decoder.resume(stream=False)
        else:
            self._made_decoder = self._new_decoder(stream=False)

    async def _read_rejection(self, response: Response) -> Failure:
        """Read an error response up to `MAX_ERROR_BODY` bytes and `MAX_ERROR_SECONDS` seconds, and classify it."""
        body = bytearray()
        with self._loop.scope(deadline=self._loop.now() + MAX_ERROR_SECONDS), suppress(ProviderFailed):
            async with aclosing(response.chunks()) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) >= MAX_ERROR_BODY:
                        break
        from actors.adapters.classify import classify  # imported lazily, because most requests are accepted

        return classify(
            response.status, response.headers, bytes(body), self._adapter.dialect, now=self._endpoint.clock()
        )

    def _emit_deltas(self, events: Iterable[StreamEvent]) -> None:
        """Emit an event for each text or thinking delta, with the delta's offset in the answer."""
        for event in events:
            match event:
                case TextDelta(text=text):
                    self._emit(TextEvent(text, self._command.turn, self._command.round, self._offset))
                case ThinkingDelta(text=text):
                    self._emit(ThinkingEvent(text, self._command.turn, self._command.round, self._offset))
                case CallStarted():
                    # A started call counts as the first token. No event is emitted, because the decoder collects calls.
                    self._record_first_token()
                case ArgumentsDelta() | CallDone() | Usage() | Finish():
                    pass
                case _:
                    assert_never(event)

    def _report_failure(self, failure: Failure, wait: float | None) -> None:
        """Log a failed request, and notify the subscriber, if any. `wait` is the number of seconds until the retry, or
        None if there is no retry.
        """
        command, cause = self._command, Cause(failure.kind, failure.status)
        logger.request_failed(command.session, command.binding, cause, failure.error_type, wait)
        if command.sink is not None and command.sink.is_watched:
            place = command.turn, command.round, failure.error_type
            command.sink.put(RequestFailedEvent(*place, cause, wait))

    def _record_first_token(self) -> None:
        """Measure the time to the first token when the first delta of the answer arrives."""
        if not self._has_content:
            self._has_content = True
            self._requests.first_token.record(self._loop.now() - self._began)

    def _emit(self, event: TextEvent | ThinkingEvent) -> None:
        if not self._has_content:
            self._record_first_token()
        self._visible = True
        self._offset += len(event.text)
        sink = self._command.sink
        # checked for each event, because a subscriber may join during an answer
        if sink is not None and sink.is_watched:
            sink.put(event)
