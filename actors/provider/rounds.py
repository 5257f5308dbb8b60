"""A round: one request to a backend, tried until there is an answer or a failure that is final.

What a request is and what an answer's bytes mean is the adapter's; how they travel is the transport's. Once a byte of
an answer was shown, nothing is tried again: a retry would say things twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import aclosing, suppress
from math import inf
from random import Random
from time import time
from typing import TYPE_CHECKING, TypeAlias, assert_never

import anyio
from msgspec import Struct, field

from actors import telemetry
from actors.adapters.adapter import Adapter
from actors.adapters.failure import ACTIONS, BACKEND_KINDS, AnswerFault, Failure, Kind
from actors.adapters.request import Request
from actors.adapters.retry_after import used_up
from actors.core.data.segments import Segments
from actors.core.settings.asking import Asked
from actors.core.stats.measures import RequestCounts
from actors.core.stream_events.events import RequestFailedEvent, TextEvent, ThinkingEvent
from actors.core.stream_events.sink import Sink
from actors.core.values.content import Message
from actors.core.values.identity import Binding
from actors.core.values.progress import Cause
from actors.core.values.stream import (
    ArgumentsDelta,
    CallDone,
    CallStarted,
    Cut,
    Finish,
    LeftOut,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from actors.errors import CircuitOpen, ConfigError, CredentialFailed, Overloaded, ProviderFailed, StreamFault
from actors.kernel import Query
from actors.kernel.host_code import is_failure
from actors.kernel.parking import Scope, parking
from actors.provider.admission import Admission, Pace, Ticket
from actors.provider.attempts import Retries, Silence, merged_headers, timeouts_of, without_secrets
from actors.provider.credentials import Credentials, Headers, Keys, Outgoing, query_secrets, with_query
from actors.transport import Response, Timeouts, Transport

if TYPE_CHECKING:
    from actors.adapters.base import Decoder

ERROR_BODY = 256 * 1024
"""Bytes of an error response that are read."""
ERROR_TIME = 2.0
"""Seconds in which they are read: the status has said what matters, and some bodies never end."""
CONTINUATIONS = 8
"""Requests that go on with one answer that its provider pauses (`CONTINUATION`); then it stands as it is."""
LINGER = 0.5
"""Seconds that a server has to end its response after the answer's end marker; then the connection is closed."""


class Endpoint(Struct, frozen=True):
    """Where one backend is reached, and with what.

    Args:
        url: Base URL.
        credentials: Make the auth headers of each request; never logged.
        headers: Look up the headers that every request takes beside them; never logged. They replace the adapter's.
        query: Looks up the query that every request takes; never logged.
        timeouts, retries, pace: See there.
        stream: Whether answers are asked for as streams.
        answer_bytes: Of one answer, as it is on the wire; a larger one is given up, and the next backend asked.
        silence_timeout: Seconds for which a stream may say nothing, whatever else it sends; None for any time.
        clock: The wall clock, in seconds since 1970. Headers may name the time at which to try again.
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


class Tried(Struct, frozen=True):
    """A try that failed and was followed by another: why, and the seconds it had waited before it was sent."""

    failure: Failure
    wait: float


class Answer(Struct, frozen=True):
    """The model's whole message.

    Args:
        finish: Why it stopped, in the provider's word.
        calls: Canonical ids used.
        cut: Why it is not whole, though it is all there is.
        left_out: What the answer held and the message does not.
        tried: The tries before the last, and `wait` the seconds between the last of them and this one.
    """

    message: Message
    usage: Usage
    finish: str | None
    calls: int
    cut: Cut | None = None
    left_out: LeftOut = ()
    tried: tuple[Tried, ...] = ()
    wait: float = 0.0


class Unfinished(Struct, frozen=True):
    """The round ended without the model's whole message.

    Args:
        message: What could be kept of it, if anything.
        calls: Canonical ids used, those of calls that were dropped included.
        left_out: What the answer held as far as it came, and the message does not.
        tried, wait: As in `Answer`.
    """

    message: Message | None
    usage: Usage
    calls: int
    left_out: LeftOut = ()
    tried: tuple[Tried, ...] = ()
    wait: float = 0.0


class Aborted(Unfinished, frozen=True):
    """The round was stopped as asked."""


class Broken(Unfinished, frozen=True, kw_only=True):
    """The round failed for good.

    Args:
        failure: Why, classified.
        visible: Whether any of an answer was shown.
    """

    failure: Failure
    visible: bool


Generated: TypeAlias = Answer | Broken | Aborted


class Generate(Query[Generated], frozen=True):
    """Send a request and read the answer.

    Args:
        key: Names the round, for `Abort`.
        request: What to send.
        binding: Who answers: the message's origin.
        first_call: Number of the first canonical call id to mint.
        turn, round: Stamped on the message and on the deltas.
        sink: Where deltas go as they arrive, or None.
        session, tenant: Whose it is; requests that wait are served fairly among these.
        asked: Settings of the ask; its timeouts stand in place of the endpoint's.
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
    asked: Asked | None = None


class Round:
    """One round while it runs: the tries, the decoder of the current one, and what was shown."""

    def __init__(
        self,
        command: Generate,
        adapter: Adapter,
        endpoint: Endpoint,
        transport: Transport,
        counters: Counter[str],
        requests: RequestCounts,
        admission: Admission,
    ) -> None:
        self._command = command
        self._adapter = adapter
        self._endpoint = endpoint
        self._transport = transport
        self._counters = counters
        self._requests = requests
        self._admission = admission
        self._here = parking()
        self._timeouts = timeouts_of(endpoint.timeouts, command.asked)
        self._decoder = self._fresh(stream=endpoint.stream)
        self._message: Message | None = None
        self._failure: Failure | None = None
        self._auth_headers: Headers = ()  # the credential's headers, as they were sent last
        self._extra: Headers = ()  # and the backend's own
        self._query = ""
        self.aborted = self.has_ended = False
        self._ticket: Ticket  # of the try that is under way
        self._tries = self._answers = 0
        self._passed_over = 0  # tries that were refused for the rate while others were served
        self._tried: list[Tried] = []
        self._wait = 0.0
        self._was_renewed = self._visible = False
        self._calls = 0  # canonical ids that tries before this one have used
        self._offset = 0
        self._continued = 0  # requests that went on with the answer
        self._sent = 0  # requests of this try
        self._began = 0.0  # when it began, by the loop's clock
        self._is_heard = False  # whether a piece of its answer has come

    async def run(self, random: Random) -> None:
        """Try until there is an answer, or a failure that is final. Others have its place while it waits."""
        while True:
            failure = await self._admitted()
            if failure is None:
                return
            failure = without_secrets(failure, query_secrets(self._query))
            wait = self._judged(without_secrets(failure, (*self._auth_headers, *self._extra)), random)
            assert self._failure is not None
            self._report(self._failure, wait)
            if wait is None:
                return
            self._tried.append(Tried(self._failure, self._wait))
            self._wait = wait
            await anyio.sleep(wait)
            self._calls = max(self._calls, self._decoder.minted)
            self._decoder = self._fresh(stream=self._endpoint.stream)
            self._continued = 0

    async def _admitted(self) -> Failure | None:
        """Try once, as soon as there is a place."""
        command, admission = self._command, self._admission
        ticket = self._ticket = Ticket(
            command.tenant, command.session, command.request.segments.size, not self._tried, command.round > 1
        )
        try:
            await admission.enter(ticket)
        except (Overloaded, CircuitOpen) as refused:
            kind: Kind = "overloaded" if isinstance(refused, Overloaded) else "circuit_open"
            self._counters[kind] += 1
            error = type(refused).__name__
            return Failure(kind, ACTIONS[kind], str(refused), retry_after=refused.retry_after, error=error)
        failure, usage = None, None
        self._sent, self._began, self._is_heard = 0, self._here.now(), False
        try:
            failure = await self._attempt()
            usage = self._decoder.usage
        finally:
            self._leave(ticket, failure, usage)
        return failure

    def _leave(self, ticket: Ticket, failure: Failure | None, usage: Usage | None) -> None:
        """Give the place of a try back, and count its requests; `usage` is None if it was stopped."""
        self._admission.leave(ticket, failure, usage)
        status = 200 if failure is None else failure.status
        self._requests.end(self._sent, status, stopped=usage is None)

    def _judged(self, failure: Failure, random: Random) -> float | None:
        """Take note of how a try failed; return the seconds until the next, or None if there is none."""
        self._failure = self._endpoint.retries.told(failure)
        if self._renewed(failure):
            return 0.0
        if failure.action == "our_bug":
            self._counters["tool_api_400_total"] += 1
        elif failure.action == "leave_out":
            self._counters[f"refused_{failure.kind}"] += 1
        wait = self._next_try(failure, random)
        if wait is None and failure.kind in BACKEND_KINDS:
            self._admission.gave_up()
        return wait

    def _next_try(self, failure: Failure, random: Random) -> float | None:
        if failure.action != "retry" or self._visible:
            return None
        wait = self._endpoint.retries.wait(self._counted(failure), failure.retry_after, random)
        if wait is None:
            return None
        if not self._admission.may_retry(failure):
            self._counters["retries_denied"] += 1
            return None
        return wait

    def _counted(self, failure: Failure) -> int:
        """Return how many tries of the request count, the one that failed just now included."""
        if failure.kind == "rate_limit" and self._was_passed_over():
            self._passed_over = min(self._passed_over + 1, self._endpoint.retries.passes)
        return self._tries - self._passed_over

    def _was_passed_over(self) -> bool:
        """Say whether the backend has answered others since this request was refused last."""
        before, self._answers = self._answers, self._admission.answers
        return self._tries > 1 and self._answers > before

    def _renewed(self, failure: Failure) -> bool:
        """Say whether a token was taken back and the next may be good. Asked for once in a round."""
        if failure.status != 401 or self._was_renewed:
            return False
        self._was_renewed = self._endpoint.credentials.refused(self._auth_headers)
        return self._was_renewed

    def outcome(self) -> Generated:
        """Return how the round ended."""
        decoder, usage = self._decoder, self._decoder.usage
        self._requests.use(usage)
        calls = max(self._calls, decoder.minted)
        if (whole := self._message) is not None:
            calls = max(calls, len(whole.calls))
            left_out = self._left_out()
            return Answer(whole, usage, decoder.finish_reason, calls, decoder.cut, left_out, *self._before())
        kept = decoder.partial_message()  # and what is not, is left out
        unfinished = (kept if kept.blocks else None, usage, calls, self._left_out(), *self._before())
        if self.aborted or self._failure is None:
            return Aborted(*unfinished)
        return Broken(*unfinished, failure=self._failure, visible=self._visible)

    def _before(self) -> tuple[tuple[Tried, ...], float]:
        return tuple(self._tried), self._wait

    def _left_out(self) -> LeftOut:
        """Return what the answer held beside the message, counted and logged."""
        if not (counts := self._decoder.left_out):
            return ()
        self._counters["left_out"] += sum(counts.values())
        telemetry.left_out(self._command.key, counts)
        return tuple(counts.items())

    def _fresh(self, *, stream: bool) -> "Decoder":
        from actors.adapters.codec import decode  # only when the first answer comes

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

    async def _attempt(self) -> Failure | None:
        """Send the request once and read what comes; None if it was a whole answer."""
        self._tries += 1
        try:
            failure = await self._exchange(self._command.request.segments)
            while failure is None and (token := self._decoder.end_response()):
                if self._continued == CONTINUATIONS:
                    break
                self._continued += 1
                self._decoder.resume(stream=self._endpoint.stream)
                failure = await self._exchange(self._command.request.continued(token))
            if failure is None:
                self._take()
            return failure
        except AnswerFault as fault:
            return fault.failure
        except (ConfigError, CredentialFailed) as error:
            return Failure("config", ACTIONS["config"], str(error), error=type(error).__name__)
        except (ProviderFailed, StreamFault) as error:
            return Failure("transient", "retry", str(error), error=type(error).__name__)
        except BaseException as error:  # an answer nobody thought of ends its own round, not those of others
            if not is_failure(error):
                raise
            telemetry.crashed(f"round {self._command.key}", error)
            name = type(error).__name__
            return Failure("transient", "retry", f"The answer could not be read: {name}", error=name)

    async def _exchange(self, segments: Segments) -> Failure | None:
        request, endpoint, total = self._command.request, self._endpoint, self._timeouts.total
        until = inf if total is None else self._here.now() + total
        self._query = endpoint.query()
        url = with_query(endpoint.url.rstrip("/") + request.path, self._query)
        outgoing = Outgoing(url, segments)
        self._auth_headers = await endpoint.credentials.headers(outgoing)
        self._extra = endpoint.headers()
        headers = (*merged_headers(request.headers, self._extra), *self._auth_headers)
        self._sent += 1
        self._counters["requests"] += 1
        self._counters["retries"] += self._tries > 1
        async with self._transport.send(url, headers, segments, self._timeouts) as response:
            if (wait := used_up(response.headers, self._endpoint.clock())) > 0:
                self._admission.hold(wait)
            if response.status != 200:
                return await self._refusal(response)
            with self._here.scope(deadline=until) as patience:  # until here the transport sees to that
                silence = Silence(
                    patience, self._here.now, endpoint.silence_timeout if endpoint.stream else None
                )
                await self._read(response, patience, silence)
            if patience.cancelled_caught and not self._decoder.ended:
                why = silence.why or f"The answer took longer than {total} s."
                return Failure("transient", "retry", why, error="TimeoutError")
        return None

    def _take(self) -> None:
        """Take the message that was read. What is known only at its end is shown now."""
        self._message = self._decoder.close()
        self._show(self._decoder.late)
        self._hear()
        self._requests.answer.note(self._here.now() - self._began)
        if withheld := self._decoder.withheld:  # it took the request, and yet something in it was wrong
            self._counters["tool_api_400_total"] += 1
            telemetry.withheld(f"round {self._command.key}", withheld)

    async def _read(self, response: Response, patience: Scope, silence: Silence) -> None:
        """Read the answer to its end. If the connection fails after that, the answer is whole."""
        is_begun = False
        try:
            async with aclosing(response.chunks()) as chunks:
                async for chunk in chunks:
                    if not is_begun and (begun := chunk.lstrip()):
                        is_begun = True
                        if begun.startswith(b"{"):  # as some answer whatever was asked for
                            self._read_whole()
                            silence.allow()
                    self._show(events := self._decoder.feed(chunk))
                    silence.hear(events)
                    if events and (self._ticket.probes or self._ticket.is_in_doubt):
                        self._admission.begun(self._ticket)
                    if self._decoder.ended:
                        patience.deadline = min(patience.deadline, self._here.now() + LINGER)
        except ProviderFailed:
            if not self._decoder.ended:
                raise

    def _read_whole(self) -> None:
        """Read this response as one document."""
        if self._continued:
            self._decoder.resume(stream=False)
        else:
            self._decoder = self._fresh(stream=False)

    async def _refusal(self, response: Response) -> Failure:
        body = bytearray()
        with self._here.scope(deadline=self._here.now() + ERROR_TIME), suppress(ProviderFailed):
            async with aclosing(response.chunks()) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) >= ERROR_BODY:
                        break
        from actors.adapters.classify import classify  # only when the first request is refused

        return classify(
            response.status, response.headers, bytes(body), self._adapter.dialect, now=self._endpoint.clock()
        )

    def _show(self, events: Iterable[StreamEvent]) -> None:
        """Pass deltas on, numbered."""
        for event in events:
            match event:
                case TextDelta(text=text):
                    self._emit(TextEvent(text, self._command.turn, self._command.round, self._offset))
                case ThinkingDelta(text=text):
                    self._emit(ThinkingEvent(text, self._command.turn, self._command.round, self._offset))
                case CallStarted():
                    self._hear()  # the decoder keeps it, as the others
                case ArgumentsDelta() | CallDone() | Usage() | Finish():
                    pass
                case _:
                    assert_never(event)

    def _report(self, failure: Failure, wait: float | None) -> None:
        """Log that the request failed, and tell a watcher: with the seconds until it is sent again, if it is."""
        command, cause = self._command, Cause(failure.kind, failure.status)
        telemetry.request_failed(command.session, command.binding, cause, failure.error_type, wait)
        if command.sink is not None and command.sink.is_watched:
            place = command.turn, command.round, failure.error_type
            command.sink.put(RequestFailedEvent(*place, cause, wait))

    def _hear(self) -> None:
        """Note that a piece of the answer has come."""
        if not self._is_heard:
            self._is_heard = True
            self._requests.first_token.note(self._here.now() - self._began)

    def _emit(self, event: TextEvent | ThinkingEvent) -> None:
        if not self._is_heard:
            self._hear()
        self._visible = True
        self._offset += len(event.text)
        sink = self._command.sink
        if sink is not None and sink.is_watched:  # a reader may come in the midst of an answer
            sink.put(event)
