"""The ask in flight: what its turns share while it is driven, and what they have brought so far."""

from collections.abc import Callable
from contextvars import Context as Variables
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from msgspec import Struct

from actors.backend import Resolver
from actors.core.feed import Sink, StatusEvent, TurnResult
from actors.core.identity import Binding
from actors.core.progress import Attempt, Cause
from actors.core.stream import Cut, Usage
from actors.core.turn import CloseStep
from actors.journal import JournalCommand, Told
from actors.kernel import Context, Ref
from actors.ledger import LedgerCommand
from actors.log import LogWriter
from actors.renderer import RendererCommand
from actors.rounds import Aborted, Answer, Broken
from actors.scheduler import SchedulerCommand

Stop: TypeAlias = Callable[[Context[Any]], None]  # Any: the actor that cancels an ask
"""Stops a step that is under way, from the handler of an actor."""


class SessionRefs(Struct, frozen=True):
    """The actors a session commands."""

    scheduler: Ref[SchedulerCommand]
    renderer: Ref[RendererCommand]
    ledger: Ref[LedgerCommand]
    journal: Ref[JournalCommand]


@dataclass(slots=True)
class Tally:
    """What the turns of an ask have brought so far."""

    attempts: list[Attempt] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    rounds: int = 0
    text: str = ""
    finish: str | None = None
    cut: Cut | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    retried: list[Attempt] = field(default_factory=list)  # of the turn
    wait: float = 0.0  # seconds before its last request, if that was tried again
    _last: tuple[int, int] = (0, 0)

    def sent(self, turn: int, number: int) -> None:
        """Take note of a request: how the answers before it ended says nothing any more."""
        self.finish, self.cut = None, None
        if self._last != (turn, number):  # else it is the same round, written anew
            self._last = turn, number
            self.rounds += 1

    def heard(self, generated: Answer | Broken | Aborted, binding: Binding) -> None:
        """Take note of what a round brought: the last one says how the ask's answer ended."""
        self.wait = generated.wait
        for tried in generated.tried:
            failure = tried.failure
            cause = Cause(failure.kind, failure.status)
            self.retried.append(Attempt(binding, "retried", failure.message, cause, tried.wait))
        if isinstance(generated, Answer):
            self.finish, self.cut = generated.finish, generated.cut
        for kind, count in generated.left_out:
            self.left_out[kind] = self.left_out.get(kind, 0) + count

    def closed(self, step: CloseStep) -> None:
        """Take note of what a turn brought."""
        self.usage += step.usage
        self.text = step.message.text if step.message is not None else self.text

    def result(self, served_by: Binding, ended: CloseStep) -> TurnResult:
        """Return how the ask came out, when its last turn ended so."""
        status = ended.status
        assert status in ("complete", "cancelled", "failed")
        left_out = tuple(self.left_out.items())
        return TurnResult(
            self.text,
            status,
            served_by,
            tuple(self.attempts),
            self.rounds,
            self.usage,
            ended.why,
            self.finish,
            self.cut,
            left_out,
        )


@dataclass(slots=True)
class AskInFlight:
    """What the turns of one ask share.

    Args:
        log: Writes the session's own events.
        refs: The session's actors.
        resolver: What targets mean.
        sink: Where events go.
        variables: Context variables that the ask's tools see.
    """

    log: LogWriter
    refs: SessionRefs
    resolver: Resolver
    sink: Sink
    variables: Variables
    tally: Tally = field(default_factory=Tally)
    cancelled: bool = False
    _stop: Stop | None = None

    def cancel(self, context: Context[Any]) -> None:  # Any: the actor that cancels it
        """Stop what is under way, from a handler of `context`. The ask ends by itself, soon, with every call closed."""
        self.cancelled = True
        if self._stop is not None:
            self._stop(context)

    def stoppable(self, stop: Stop) -> None:
        """Let a cancel call `stop` from now on."""
        self._stop = stop

    def finished(self) -> None:
        """Let a cancel wait for the step's end again."""
        self._stop = None

    def telling(self, status: str, detail: str = "", *, more: bool = False) -> Told:
        """Return what shows that something happened in the turn of this moment, when its number is known."""
        turn = self.log.state.turns

        def tell(seq: int) -> None:
            if self.sink.is_watched:
                self.sink.put(StatusEvent(status, seq, turn, detail=detail, more=more))

        return tell
