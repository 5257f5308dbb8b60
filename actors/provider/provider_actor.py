"""Define the actor that sends the requests to one backend and counts their outcomes.

Sessions send `Generate` and `Abort`. The actor owns the state that the sessions share: the admission and the counters.
It runs each request with its retries as a round (`actors.provider.rounds`).
"""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import ClassVar, TypeAlias, assert_never

from msgspec import Struct, field

from actors.adapters.adapter import Adapter
from actors.core.stats.measures import RequestCounts
from actors.kernel import Actor, Child, Command, Context, Query
from actors.provider.admission import Admission, Condition
from actors.provider.attempts import AbortedAnswer, Answer, BrokenAnswer, Generated
from actors.provider.rounds import Endpoint, Generate, Round
from actors.transport import Transport

_OUTCOMES: Mapping[type[Generated], str] = {
    Answer: "answer",
    BrokenAnswer: "broken",
    AbortedAnswer: "aborted",
}
"""The name of the counter for each outcome of a round."""


class Abort(Command, frozen=True):
    """Stop the request that `Generate` started with this key. The reply to `Generate` then contains the partial answer.
    If the request has already ended, the command has no effect.

    This command is sent through the same queue as `Generate`, so it cannot overtake the request.
    """

    key: str


class Counters(Query[Mapping[str, int]], frozen=True):
    """Query the counters by name: requests, retries, outcomes, rejections and dropped content."""


class Inspect(Query[Condition], frozen=True):
    """Query the state of the backend. The query is answered before any queued command."""

    control: ClassVar[bool] = True


ProviderCommand: TypeAlias = Generate | Abort | Counters | Inspect


class Meter(Struct):
    """What other code may read about a backend. The counters survive a crash of the provider actor."""

    counters: Counter[str] = field(default_factory=Counter[str])
    requests: RequestCounts = field(default_factory=RequestCounts)
    admission: Admission | None = None


class ProviderActor(Actor[ProviderCommand]):
    """The actor that sends all requests to one backend. After a crash, requests in flight fail as if the provider had
    failed.
    """

    level: ClassVar[int] = 3

    def __init__(
        self,
        adapter: Adapter,
        endpoint: Endpoint,
        transport: Transport,
        random: Random | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._adapter = adapter
        self._endpoint = endpoint
        self._transport = transport
        self._random = random or Random()  # noqa: S311  jitter, not secrets
        self._rounds: dict[str, tuple[Round, Child]] = {}
        self._meter = Meter() if meter is None else meter
        self._counters = self._meter.counters
        self._context: Context[ProviderCommand] | None = None
        self._admission: Admission | None = None

    def on_start(self, context: Context[ProviderCommand]) -> None:
        """Create the admission, and store the context, which starts rounds as child tasks."""
        system, name = context.system, context.ref.name.split("/")[1:2]
        self._context = context
        self._admission = Admission(
            "".join(name) or context.ref.name,
            self._endpoint.pace,
            system.now,
            system.deadlines.call_at,
            self._endpoint.retries.span,
        )
        self._meter.admission = self._admission

    def receive(self, command: ProviderCommand) -> None:
        match command:
            case Generate(key=key):
                assert self._context is not None
                assert self._admission is not None
                round_ = Round(
                    command,
                    self._adapter,
                    self._endpoint,
                    self._transport,
                    self._counters,
                    self._meter.requests,
                    self._admission,
                )
                self._rounds[key] = (round_, self._context.start(self._run_round, command, round_, name=key))
            case Abort(key=key):
                if key in self._rounds:
                    round_, child = self._rounds[key]
                    round_.aborted = True
                    child.cancel()
            case Counters():
                command.reply.send(dict(self._counters))
            case Inspect():
                assert self._admission is not None
                command.reply.send(self._admission.condition())
            case _:
                assert_never(command)

    async def _run_round(self, command: Generate, round_: Round) -> None:
        try:
            await round_.run(self._random)
            round_.has_ended = True
        finally:
            del self._rounds[command.key]
            # otherwise the actor is stopping, and the kernel sends an error to the caller
            if round_.aborted or round_.has_ended:
                generated = round_.outcome()
                self._counters[_OUTCOMES[type(generated)]] += 1
                command.reply.send(generated)
