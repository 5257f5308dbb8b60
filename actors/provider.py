"""The provider actor: one per backend. It sends requests, reads answers, and says what a failure means.

What a request is and what an answer's bytes mean is the adapter's; how they travel is the transport's. This
actor owns what several sessions share: how many requests run at once, how often one is tried again and how
long to wait, and the counters. Once a byte of an answer was shown, nothing is tried again: a retry would say
things twice.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from random import Random
from typing import ClassVar, TypeAlias, assert_never

import anyio

from actors import telemetry
from actors.adapters.adapter import Adapter
from actors.adapters.failure import ACTIONS, AnswerFault, Failure
from actors.adapters.request import Request
from actors.core.content import Message
from actors.core.feed import Outlet, TextEvent, ThinkingEvent
from actors.core.identity import Binding
from actors.core.stream import Decoder, StreamEvent, TextDelta, ThinkingDelta, Usage
from actors.credentials import Credentials, Headers, Keys, Outgoing
from actors.errors import ConfigError, CredentialFailed, ProviderFailed, StreamFault
from actors.kernel import Actor, Child, Command, Context, Query
from actors.transport import Response, Timeouts, Transport

SECRET = 6
"""Characters from which a header that proves who asks is taken out of a provider's words."""
ERROR_BODY = 256 * 1024
"""Bytes of an error response that are read."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How a failed request is tried again, before anything of an answer was shown.

    Args:
        attempts: Tries in all.
        base, ceiling: Seconds of the first wait and of the longest; doubling in between, with jitter.
        budget: Longest wait, in seconds, that a provider may ask for and is granted here; beyond it the
            request fails, and another backend may serve it sooner.
    """

    attempts: int = 3
    base: float = 0.5
    ceiling: float = 8.0
    budget: float = 20.0

    def wait(self, attempt: int, asked: float | None, random: Random) -> float | None:
        """Return the seconds to wait after failed attempt number `attempt`, or None to give up."""
        if attempt >= self.attempts or (asked is not None and asked > self.budget):
            return None
        if asked is not None:
            return asked + random.uniform(0, self.base)
        return min(self.ceiling, self.base * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one backend is reached, and with what.

    Args:
        url: Base URL.
        credentials: Make the headers that prove who asks, for each request; never logged.
        timeouts, retries: See there.
        concurrency: Requests at once.
        stream: Whether answers are asked for as streams.
    """

    url: str
    credentials: Credentials = field(default_factory=Keys)
    timeouts: Timeouts = field(default_factory=Timeouts)
    retries: Retries = field(default_factory=Retries)
    concurrency: int = 256
    stream: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's whole message."""

    message: Message
    usage: Usage
    finish: str | None
    calls: int


@dataclass(frozen=True, slots=True)
class Broken:
    """The round failed for good.

    Args:
        failure: Why, classified.
        shown: Whether any of an answer was shown.
        message: What could be kept of it, if anything.
        calls: Canonical ids used, those of calls that were dropped included.
    """

    failure: Failure
    shown: bool
    message: Message | None
    usage: Usage
    calls: int


@dataclass(frozen=True, slots=True)
class Aborted:
    """The round was stopped as asked. Fields as in `Broken`."""

    message: Message | None
    usage: Usage
    calls: int


Generated: TypeAlias = Answer | Broken | Aborted


@dataclass(frozen=True)
class Generate(Query[Generated]):
    """Send a request and read the answer.

    Args:
        key: Names the round, for `Abort`.
        request: What to send.
        binding: Who answers: the message's origin.
        first_call: Number of the first canonical call id to mint.
        turn, round: Stamped on the message and on the deltas.
        outlet: Where deltas go as they arrive, or None.
    """

    key: str
    request: Request
    binding: Binding
    first_call: int
    turn: int
    round: int
    outlet: Outlet | None = None


@dataclass(frozen=True)
class Abort(Command):
    """Stop a round. Its `Generate` is answered with what could be kept; nothing happens if it has ended.

    It travels as mail, so that it cannot overtake the `Generate` it stops.
    """

    key: str


@dataclass(frozen=True)
class Counters(Query[Mapping[str, int]]):
    """Ask for the counters: requests, retries, rounds by how they ended, refusals."""


ProviderCommand: TypeAlias = Generate | Abort | Counters


class ProviderActor(Actor[ProviderCommand]):
    """Serves one backend's requests. A crash fails those in flight, as if the provider had."""

    level: ClassVar[int] = 3

    def __init__(
        self, adapter: Adapter, endpoint: Endpoint, transport: Transport, random: Random | None = None
    ) -> None:
        self._adapter = adapter
        self._endpoint = endpoint
        self._transport = transport
        self._random = random or Random()  # noqa: S311  jitter, not secrets
        self._places = anyio.Semaphore(endpoint.concurrency, fast_acquire=True)
        self._rounds: dict[str, tuple[_Round, Child]] = {}
        self._counters: Counter[str] = Counter()
        self._context: Context[ProviderCommand] | None = None

    async def started(self, context: Context[ProviderCommand]) -> None:
        """Keep the context: rounds are its children."""
        self._context = context

    async def receive(self, command: ProviderCommand) -> None:
        match command:
            case Generate(key=key):
                assert self._context is not None
                round_ = _Round(command, self._adapter, self._endpoint, self._transport, self._counters)
                self._rounds[key] = (round_, self._context.start(self._serve, command, round_, name=key))
            case Abort(key=key):
                if key in self._rounds:
                    round_, child = self._rounds[key]
                    round_.aborted = True
                    child.cancel()
            case Counters():
                command.reply.send(dict(self._counters))
            case _:
                assert_never(command)

    async def _serve(self, command: Generate, round_: "_Round") -> None:
        try:
            async with self._places:
                await round_.run(self._random)
                round_.has_ended = True
        finally:
            del self._rounds[command.key]
            if round_.aborted or round_.has_ended:  # else this actor is going down, and its asker is told
                generated = round_.outcome()
                self._counters[type(generated).__name__.lower()] += 1
                command.reply.send(generated)


class _Round:
    """One round while it runs: the tries, the decoder of the current one, and what was shown."""

    def __init__(
        self,
        command: Generate,
        adapter: Adapter,
        endpoint: Endpoint,
        transport: Transport,
        counters: Counter[str],
    ) -> None:
        self._command = command
        self._adapter = adapter
        self._endpoint = endpoint
        self._transport = transport
        self._counters = counters
        self._decoder = self._fresh()
        self._message: Message | None = None
        self._failure: Failure | None = None
        self._proof: Headers = ()  # the credential's headers, as they were sent last
        self.aborted = self.has_ended = False
        self._shown = False
        self._begun: set[str] = set()
        self._offset = 0

    async def run(self, random: Random) -> None:
        """Try until there is an answer, or a failure that is final."""
        attempt, renewed = 0, False
        while True:
            attempt += 1
            self._counters["requests"] += 1
            before, self._failure = self._failure, await self._attempt()
            if self._failure is None:
                return
            self._failure = _without_secrets(self._failure, self._proof)
            if (
                self._failure.status == 401 and not renewed
            ):  # a token that was taken back: the next may be good
                renewed = self._endpoint.credentials.refused(self._proof)
                if renewed:
                    continue
            if self._failure.action == "our_bug":
                self._counters["tool_api_400_total"] += 1
            wait = self._wait(attempt, self._failure, random)
            if wait is None or (_capped(self._failure) and before is not None and _capped(before)):
                return
            self._counters["retries"] += 1
            await anyio.sleep(wait)
            self._decoder = self._fresh()

    def outcome(self) -> Generated:
        """Return how the round ended."""
        decoder = self._decoder
        calls = len(self._begun)
        if self._message is not None:
            return Answer(
                self._message, decoder.usage, decoder.finish_reason, max(calls, len(self._message.calls))
            )
        kept = decoder.rescued()
        message = kept if kept.blocks else None
        if self.aborted or self._failure is None:
            return Aborted(message, decoder.usage, calls)
        return Broken(self._failure, self._shown, message, decoder.usage, calls)

    def _fresh(self) -> Decoder:
        command = self._command
        return self._adapter.decoder(
            command.binding,
            command.first_call,
            command.turn,
            stream=self._endpoint.stream,
            names=command.request.names,
        )

    def _wait(self, attempt: int, failure: Failure, random: Random) -> float | None:
        if failure.action != "retry" or self._shown:
            return None
        return self._endpoint.retries.wait(attempt, failure.retry_after, random)

    async def _attempt(self) -> Failure | None:
        """Send the request once and read what comes; None if it was a whole answer."""
        total = self._endpoint.timeouts.total
        try:
            with anyio.move_on_after(total):
                return await self._exchange()
            return Failure("transient", "retry", f"The answer took longer than {total} s.")
        except AnswerFault as fault:
            return fault.failure
        except (ConfigError, CredentialFailed) as error:
            return Failure("config", ACTIONS["config"], str(error))
        except (ProviderFailed, StreamFault) as error:
            return Failure("transient", "retry", str(error))
        except Exception as error:  # an answer nobody thought of ends its own round, not those of others
            telemetry.crashed(f"round {self._command.key}", error)
            return Failure("transient", "retry", f"The answer could not be read: {type(error).__name__}")

    async def _exchange(self) -> Failure | None:
        request, endpoint = self._command.request, self._endpoint
        url = endpoint.url.rstrip("/") + request.path
        outgoing = Outgoing(url, request.segments)
        self._proof = await endpoint.credentials.headers(outgoing)
        headers = (*request.headers, *self._proof)
        async with self._transport.send(url, headers, request.segments, endpoint.timeouts) as response:
            if response.status != 200:
                return await self._refusal(response)
            async with aclosing(response.chunks()) as chunks:
                async for chunk in chunks:
                    self._show(self._decoder.feed(chunk))
        self._message = self._decoder.close()
        self._show(getattr(self._decoder, "late", ()))
        return None

    async def _refusal(self, response: Response) -> Failure:
        body = bytearray()
        async with aclosing(response.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) >= ERROR_BODY:
                    break
        return self._adapter.classify(response.status, response.headers, bytes(body), time.time())

    def _show(self, events: Sequence[StreamEvent]) -> None:
        """Pass deltas on, numbered; remember which calls have begun."""
        for event in events:
            match event:
                case TextDelta(text=text):
                    self._emit(TextEvent(text, self._command.turn, self._command.round, self._offset))
                case ThinkingDelta(text=text):
                    self._emit(ThinkingEvent(text, self._command.turn, self._command.round, self._offset))
                case _:
                    if (call_id := getattr(event, "call_id", None)) is not None:
                        self._begun.add(call_id)

    def _emit(self, event: TextEvent | ThinkingEvent) -> None:
        self._shown = True
        self._offset += len(event.text)
        if self._command.outlet is not None:
            self._command.outlet.put(event)


def _without_secrets(failure: Failure, proof: Headers) -> Failure:
    """Return a failure without what was sent to prove who asks: some servers repeat it in their words."""
    message = failure.message
    for _, value in proof:
        for secret in (value, value.removeprefix("Bearer ")):
            if len(secret) >= SECRET:
                message = message.replace(secret, "[removed]")
    return failure if message == failure.message else replace(failure, message=message)


def _capped(failure: Failure) -> bool:
    """Say whether a rate limit named no wait. Twice running it is a spend cap, which no waiting lifts."""
    return failure.kind == "rate_limit" and failure.retry_after is None
