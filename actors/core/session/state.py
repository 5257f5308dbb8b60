"""The state of a session: a fold of the events of its log.

`SessionState.apply` is the only way in which the state changes, live and after a restart alike, so a session that is
rebuilt from its log equals the session that wrote it. `actors.core.session.lanes` folds the lanes, and
`actors.core.session.rebuild` folds a whole log.

Call events change only the ledger, and the session's own events only the rest, so their order among each other does
not matter. They meet in `RequestSent`, which seals synthetic results.
"""

from collections.abc import Sequence
from math import inf

from actors.core.data.chunked import from_index
from actors.core.data.record import StoredRecord, replace
from actors.core.history import turn_ends
from actors.core.history.estimate import ReportedRequest
from actors.core.history.history import NO_MESSAGES, History
from actors.core.history.turn_ends import NO_TURN_ENDS, TurnEnd, TurnEnds
from actors.core.ledger import NO_CALLS, Ledger, closed_record
from actors.core.log import events
from actors.core.log.events import EpochBegan, LogEvent, RequestSent, Scheduled
from actors.core.settings.asking import Asked
from actors.core.settings.spending import Budget, Used
from actors.core.values.identity import RUNTIME, Binding, number_of
from actors.core.values.packed import Packed, size_of


class Pause(StoredRecord, frozen=True):
    """A turn that waits for its caller, and what was decided about calls of it since."""

    awaited: events.TurnPaused
    decisions: tuple[events.ApprovalDecided, ...] = ()

    def decided(self, decision: events.ApprovalDecided) -> "Pause":
        """Return it with one more decision."""
        return replace(self, decisions=(*self.decisions, decision))


class SessionState(StoredRecord, frozen=True):
    """What a session knows.

    Its id (`session`) is empty before `Opened`. `target`: a backend or a pool, as the user named it; `held`: that of a
    switch that waits for the turn's end; `bound`: the binding of the turn in flight; `pause`: what that turn waits for;
    `asked`: the settings of the last ask; `preamble`: digest of the system prompt and the tools. `calls` counts the
    canonical call ids that have been used. `used` is counted where there is a `budget`. `asked_at` is where in the
    history the last ask begins. `size` is the bytes of the history's messages. `measured`: what the last answer
    reported of its request. `ends`: where turns ended, the places that the history can be rewound to.
    """

    session: str = ""
    target: str = ""
    held: str | None = None
    history: History = NO_MESSAGES
    ledger: Ledger = NO_CALLS
    calls: int = 0
    asks: int = 0
    asked: Asked | None = None
    turns: int = 0
    bound: Binding | None = None
    pause: Pause | None = None
    closed: bool = False
    tenant: str = ""
    budget: Budget | None = None
    used: Used | None = None
    preamble: str = ""
    asked_at: int = 0
    size: int = 0
    measured: ReportedRequest | None = None
    ends: TurnEnds = NO_TURN_ENDS

    @property
    def turn_before(self) -> int | None:
        """The last turn before the last ask that the history can be rewound to."""
        return turn_ends.last_turn_within(self.ends, self.asked_at)

    def apply(self, event: LogEvent) -> "SessionState":
        """Return the state after the next event of the log."""
        match event:
            case events.CallEventBase():
                return replace(self, ledger=self.ledger.apply(event))
            case events.Opened():
                return _opened(event)
            case (
                events.SwitchQueued()
                | events.SwitchApplied()
                | events.SwitchSuperseded()
                | events.SwitchFailed()
            ):
                return self._switch(event)
            case events.ResultsTrimmed() | events.Compacted() | events.Rewound():
                return self._shrink(event)
            case events.Configured(system=system, preamble=preamble):
                return replace(self, history=replace(self.history, system=system), preamble=preamble)
            case events.EventsLost(first=first, last=last):
                # each call that ran had an event there: its id is used
                return replace(self, calls=self.calls + last - first + 1)
            case events.Closed():
                return replace(self, closed=True)
            case _:
                return self._go_on(event)

    def _go_on(self, event: events.AskEvent) -> "SessionState":
        """Return the state after an event of the ask in flight."""
        match event:
            case RequestSent():
                return replace(self, ledger=self.ledger.apply(event))
            case events.AskStarted(ask=ask, message=message, asked=asked):
                at = self.history.length
                return replace(self._saying(message), asks=ask, asked=asked, asked_at=at)
            case events.TurnStarted(turn=turn, binding=binding):
                return replace(self, turns=turn, bound=binding)
            case events.RoundEnded():
                return self._end_round(event)
            case events.TurnEnded(turn=turn, seconds=seconds):
                ends, used = self._ends_with(turn), _after(self.used, seconds)
                return replace(self, bound=None, pause=None, used=used, ends=ends)
            case events.FormatRequested(message=message):
                return self._saying(message)
            case events.SubagentUsage(used=below):
                return replace(self, used=None if self.used is None else self.used.joined(below))
            case events.TurnPaused(seconds=seconds):
                return replace(self, pause=Pause(event), used=_after(self.used, seconds))
            case events.ApprovalDecided():
                return self if self.pause is None else replace(self, pause=self.pause.decided(event))
            case events.TurnResumed():
                return replace(self, pause=None)
            case EpochBegan() | events.ApprovalAsked():
                return self

    def _end_round(self, event: events.RoundEnded) -> "SessionState":
        said, used = () if event.message is None else (event.message,), self.used
        if used is not None and self.bound not in (None, RUNTIME):
            used = used.plus(self.bound, event.usage)
        calls, measured = self.calls + event.calls, self._reported(event)
        return replace(self._saying(*said), calls=calls, used=used, measured=measured)

    def _switch(self, event: events.SwitchEvent) -> "SessionState":
        match event:
            case events.SwitchQueued(target=target):
                return replace(self, held=target)
            case events.SwitchApplied(target=target):
                return replace(self, target=target, held=None)
            case events.SwitchSuperseded() | events.SwitchFailed():
                return replace(self, held=None)

    def _shrink(self, event: events.HistoryEvent) -> "SessionState":
        match event:
            case events.ResultsTrimmed(results=results):
                history = self.history.shortened(results)
                return replace(self, history=history, measured=_anew(self.measured))
            case events.Compacted(start=start, stop=stop, summary=summary):
                at = max(0, self.asked_at - (stop - start) + 1)
                ends = turn_ends.ends_around(self.ends, start, stop)
                return self._with_history(self.history.replaced(start, stop, summary), at, ends)
            case events.Rewound(turn=turn):
                return self._rewind(turn)

    def _saying(self, *messages: Packed) -> "SessionState":
        size = self.size + sum(map(size_of, messages))
        return replace(self, history=self.history.extended(messages), size=size)

    def _ends_with(self, turn: int) -> TurnEnds:
        return turn_ends.with_end(self.ends, TurnEnd(turn, self.history.length, self.calls))

    def _rewind(self, turn: int) -> "SessionState":
        """Return it with the history as long as it was at a turn's end; as it is if that is no place in it."""
        if (end := turn_ends.end_of(self.ends, turn)) is None:
            return self
        history = self.history.rewind(end.length, range(end.calls + 1, self.calls + 1))
        return self._with_history(
            history, min(self.asked_at, end.length), turn_ends.ends_until(self.ends, turn)
        )

    def _with_history(self, history: History, asked_at: int, ends: TurnEnds) -> "SessionState":
        size, measured = sum(map(size_of, from_index(history.packed, 0))), _anew(self.measured)
        return replace(self, history=history, size=size, asked_at=asked_at, measured=measured, ends=ends)

    def told(self, happened: Sequence[events.CallEvent]) -> "SessionState":
        """Return it with what happened to calls."""
        return replace(self, ledger=self.ledger.apply(*happened)) if happened else self

    def _reported(self, event: events.RoundEnded) -> ReportedRequest | None:
        """Return what is known of a session's requests behind the end of a round; a summary's say nothing of others."""
        tokens = event.usage.input_tokens
        if self.bound is None or not (event.round and tokens) or event.fault is not None:
            return self.measured
        return ReportedRequest(self.bound, self.history.length, tokens)

    def running(self, ledger: Ledger) -> Ledger:
        """Return a ledger that knows every call of the turn in flight: those it has no word of are about to run."""
        calls = self.history[-1].calls if self.bound is not None and self.history.length else ()
        coming = [Scheduled(call.id, call.name, call.json) for call in calls if call.id not in ledger]
        return ledger.apply(*coming)


def _opened(event: events.Opened) -> SessionState:
    history = replace(NO_MESSAGES, report=event.report, system=event.system)
    state = SessionState(event.session, event.target, None, history, Ledger(event.known), event.calls)
    state = state._saying(*event.messages)
    used = None if event.budget is None else Used()
    return replace(
        state,
        ends=state._ends_with(0),
        tenant=event.tenant,
        budget=event.budget,
        used=used,
        preamble=event.preamble,
    )


def _anew(measured: ReportedRequest | None) -> ReportedRequest | None:
    """Return what still holds when the history was made shorter: who answered."""
    return None if measured is None else ReportedRequest(measured.binding)


def _after(used: Used | None, seconds: float) -> Used | None:
    return used if used is None or not seconds else replace(used, seconds=used.seconds + seconds)


def bounded_seconds(state: SessionState, asked: Asked | None, before: float) -> tuple[float, str]:
    """Return how long an ask may take from now on, and why it ends then. `before`: how long it took until it waited.

    That is in what the session used too.
    """
    total = inf if asked is None or asked.timeout is None else asked.timeout
    own, budget, used = max(total - before, 0.0), state.budget, state.used
    if budget is None or budget.seconds is None or used is None or own <= budget.seconds - used.seconds:
        return own, f"the ask took longer than {total:g} s, as its timeout says"
    left = max(budget.seconds - used.seconds, 0.0)
    return left, f"the session's budget of {budget.seconds:g} seconds is used up"


def opening(session: str, target: str, history: History) -> events.Opened:
    """Return the first event of a session that goes on from a history: what this keeps, and its ledger, is shared."""
    known = tuple(
        [
            closed_record(item)
            for item in history.ledger.interactions()
            if not history.has_removed(item.call_id)
        ]
    )
    made = {call.id for message in history.since(0) for call in message.calls}
    used = max(map(number_of, made.union(item.call_id for item in known)), default=0)
    messages = tuple(from_index(history.packed, 0))
    return events.Opened(session, target, history.system, messages, known, used, history.report)


UNREAD = SessionState()
"""What is known of a session of whose log nothing has been read."""
