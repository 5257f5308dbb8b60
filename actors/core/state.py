"""A session as the fold of its events, lanes included.

`SessionState` is everything a session knows; `apply` is the only way it changes, live and after a restart alike, so
a session that was rebuilt from its log is the session that wrote it. Lanes are folded by `Lanes`, which also needs the
adapters' encoders: at each `RequestSent` a lane takes up what was new then, at each `EpochBegan` it starts over. What
was `Configured` makes the next request begin an epoch, where reasoning is bound to the system prompt and the tools; so
does, in every lane, what makes the history shorter.

Call events change only the ledger, and the session's own events only the rest, so their order among each other does
not matter. They meet in `RequestSent`, which the ledger itself writes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace as with_state
from math import inf
from typing import TypeAlias

from msgspec import field

from actors.core import events
from actors.core.asking import Asked
from actors.core.chunked import from_index
from actors.core.dialect import Dialect
from actors.core.estimate import ReportedRequest
from actors.core.events import EpochBegan, EpochReason, Event, RequestSent, Scheduled
from actors.core.form import Form, replace
from actors.core.history import History
from actors.core.identity import RUNTIME, Binding, number_of
from actors.core.lane import Lane, Rendered, advanced, begun, empty
from actors.core.ledger import Ledger, closed
from actors.core.packed import Packed, size_of
from actors.core.render import RenderTarget
from actors.core.spending import Budget, Used
from actors.core.transcript import Encoder

WHY: Mapping[EpochReason, str] = {
    "configured": "the system prompt or the tools changed",
    "compaction": "the history was made shorter",
}
"""Why the next request begins an epoch, in words for people."""


class Pause(Form, frozen=True):
    """A turn that waits for its caller, and what was decided about calls of it since."""

    awaited: events.Awaited
    decisions: tuple[events.ApprovalDecided, ...] = ()

    def decided(self, decision: events.ApprovalDecided) -> "Pause":
        """Return it with one more decision."""
        return replace(self, decisions=(*self.decisions, decision))


class SessionState(Form, frozen=True):
    """What a session knows.

    Its id (`session`) is empty before `Opened`. `target`: a backend or a pool, as the user named it; `held`: that of a
    switch that waits for the turn's end; `bound`: the binding of the turn in flight; `pause`: what that turn waits for;
    `asked`: the settings of the last ask; `preamble`: digest of the system prompt and the tools. `calls` counts the
    canonical call ids that have been used. `used` is counted where there is a `budget`. `asked_at` is where in the
    history the last ask begins. `size` is the bytes of the history's messages. `measured`: what the last answer
    reported of its request.
    """

    session: str = ""
    target: str = ""
    held: str | None = None
    history: History = field(default_factory=History)
    ledger: Ledger = field(default_factory=Ledger)
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

    def apply(self, event: Event) -> "SessionState":  # noqa: C901  a case for each event
        match event:
            case events.CallHappening() | RequestSent():
                return replace(self, ledger=self.ledger.apply(event))
            case events.RoundEnded(message=message, calls=calls):
                said, used = () if message is None else (message,), self.used
                if used is not None and self.bound not in (None, RUNTIME):
                    used = used.plus(self.bound, event.usage)
                calls, measured = self.calls + calls, self._reported(event)
                return replace(self._saying(*said), calls=calls, used=used, measured=measured)
            case events.Submitted(ask=ask, message=message, asked=asked):
                at = self.history.length
                return replace(self._saying(message), asks=ask, asked=asked, asked_at=at)
            case events.Instructed(message=message):
                return self._saying(message)
            case events.Delegated(used=below):
                return replace(self, used=None if self.used is None else self.used.joined(below))
            case events.Compacted(start=start, stop=stop, summary=summary):
                history, at = self.history.replaced(start, stop, summary), self.asked_at
                size = sum(map(size_of, from_index(history.packed, 0)))
                at = max(0, at - (stop - start) + 1)
                return replace(self, history=history, size=size, asked_at=at, measured=_anew(self.measured))
            case events.Shortened(results=results):
                history = self.history.shortened(results)
                return replace(self, history=history, measured=_anew(self.measured))
            case EpochBegan() | events.ApprovalAsked():
                return self
            case events.Awaited(seconds=seconds):
                return replace(self, pause=Pause(event), used=_after(self.used, seconds))
            case events.ApprovalDecided() if self.pause is not None:
                return replace(self, pause=self.pause.decided(event))
            case events.ApprovalDecided():
                return self
            case events.Resumed():
                return replace(self, pause=None)
            case events.Opened(session=session, target=target, messages=messages, known=known):
                history = replace(History(), report=event.report, system=event.system)
                state = SessionState(session, target, None, history, Ledger(known), event.calls)
                state = state._saying(*messages)
                used = None if event.budget is None else Used()
                return replace(
                    state, tenant=event.tenant, budget=event.budget, used=used, preamble=event.preamble
                )
            case events.Configured(system=system, preamble=preamble):
                return replace(self, history=replace(self.history, system=system), preamble=preamble)
            case events.Bound(turn=turn, binding=binding):
                return replace(self, turns=turn, bound=binding)
            case events.SwitchHeld(target=target):
                return replace(self, held=target)
            case events.SwitchApplied(target=target):
                return replace(self, target=target, held=None)
            case events.SwitchSuperseded() | events.SwitchFailed():
                return replace(self, held=None)
            case events.TurnEnded(seconds=seconds):
                return replace(self, bound=None, pause=None, used=_after(self.used, seconds))
            case events.Closed():
                return replace(self, closed=True)

    def _saying(self, *messages: Packed) -> "SessionState":
        size = self.size + sum(map(size_of, messages))
        return replace(self, history=self.history.extended(messages), size=size)

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


def _anew(measured: ReportedRequest | None) -> ReportedRequest | None:
    """Return what still holds when the history was made shorter: who answered."""
    return None if measured is None else ReportedRequest(measured.binding)


def _after(used: Used | None, seconds: float) -> Used | None:
    return used if used is None or not seconds else replace(used, seconds=used.seconds + seconds)


def bounded_seconds(state: SessionState, asked: Asked | None, before: float) -> tuple[float, str]:
    """Return how long an ask may take from now on, and why it ends then. `before`: how long it took until it waited.

    That is in what the session used too.
    """
    total = inf if asked is None or asked.total is None else asked.total
    own, budget, used = max(total - before, 0.0), state.budget, state.used
    if budget is None or budget.seconds is None or used is None or own <= budget.seconds - used.seconds:
        return own, f"the ask took longer than {total:g} s, as its setting total says"
    left = max(budget.seconds - used.seconds, 0.0)
    return left, f"the session's budget of {budget.seconds:g} seconds is used up"


def opening(session: str, target: str, history: History) -> events.Opened:
    """Return the first event of a session that goes on from a history: what this keeps, and its ledger, is shared."""
    known = tuple(map(closed, history.ledger.interactions()))
    made = {call.id for message in history.since(0) for call in message.calls}
    used = max(map(number_of, made.union(item.call_id for item in known)), default=0)
    messages = tuple(from_index(history.packed, 0))
    return events.Opened(session, target, history.system, messages, known, used, history.report)


Rules: TypeAlias = Callable[[Binding], tuple[Dialect, Encoder, RenderTarget]]
"""What a binding is rendered with. Resolved from configuration, and the same whenever it is asked."""


class Lanes:
    """One session's lanes, by binding. Mutable: it belongs to one renderer, or to one rebuild.

    What a log says of them is folded when a lane is first asked for: who only reads a session need not wait for that.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._folded: dict[Binding, Lane] = {}
        self._to_fold: list[tuple[Event, SessionState, SessionState]] = []
        self._imported = 0  # messages the session was opened with; fewer once some of them are compacted

    @property
    def _lanes(self) -> dict[Binding, Lane]:
        to_fold, self._to_fold = self._to_fold, []
        for event, before, after in to_fold:
            self._fold(event, before, after)
        return self._folded

    def of(self, binding: Binding) -> Lane:
        """Return the lane as it was last adopted; an empty one for a binding never used."""
        return self._lanes.get(binding) or empty(self._rules(binding)[0], self._imported)

    @property
    def size(self) -> int:
        """Bytes of all lanes, of those that were folded already."""
        return sum(lane.size for lane in self._folded.values())

    def render(self, binding: Binding, history: History, ledger: Ledger, *, aside: bool = False) -> Rendered:
        """Return what would be sent now, and the epoch it begins if it does. Adopts nothing.

        `aside`: the last message is not the session's, so a lane that has as many begins anew.
        """
        dialect, encoder, target = self._rules(binding)
        lane = self.of(binding)
        why = "compaction" if lane.state.cursor > history.length - aside else lane.state.outdated
        if why is None:
            return advanced(lane, history, ledger, dialect, encoder, target)
        begins = EpochBegan(binding, lane.state.epoch + 1, why, lane.state.plain, WHY[why])
        lane = begun(lane, begins, dialect, history.length)
        return with_state(advanced(lane, history, ledger, dialect, encoder, target), begins=begins)

    def adopt(self, binding: Binding, lane: Lane) -> None:
        """Take a rendered lane as what has been sent."""
        self._lanes[binding] = lane

    def begin(self, event: EpochBegan, epoch_start: int) -> None:
        """Start a binding's lane over; `epoch_start` is the history's length now."""
        dialect = self._rules(event.binding)[0]
        self._lanes[event.binding] = begun(self.of(event.binding), event, dialect, epoch_start)

    def outdate(self) -> None:
        """Note that the system prompt or the tools changed: what is bound to them is left behind with its epoch."""
        for binding, lane in self._lanes.items():
            if self._rules(binding)[0].reasoning.binding == "prefix":
                self._outdate(binding, lane, "configured")

    def bindings(self) -> tuple[Binding, ...]:
        """Return the bindings that have a lane, oldest first."""
        return tuple(self._lanes)

    def apply(self, event: Event, before: SessionState, after: SessionState) -> None:
        """Take one event of the log, given the state before it and the one after it."""
        if isinstance(event, _OF_LANES):
            self._to_fold.append((event, before, after))

    def _fold(self, event: Event, before: SessionState, after: SessionState) -> None:
        if isinstance(event, events.Opened):
            self._imported = after.history.length
        elif isinstance(event, events.Shortened | events.Compacted):
            self.shrink(event)
        elif isinstance(event, events.Configured):
            if before.preamble != after.preamble:
                self.outdate()
        elif isinstance(event, EpochBegan):
            self.begin(event, before.history.length)
        elif isinstance(event, RequestSent) and not event.aside:
            history = before.history.upto(event.cursor)
            self.adopt(event.binding, self.render(event.binding, history, before.ledger).lane)

    def shrink(self, event: events.Shortened | events.Compacted) -> None:
        """Let each lane begin an epoch with its next request; count anew what is older than one.

        Provider state in messages of those counts is not replayed. A summary stands for those it took in.
        """
        if isinstance(event, events.Compacted):
            self._imported = _left(self._imported, event)
        for binding, lane in self._lanes.items():
            if isinstance(event, events.Compacted):
                epoch_start = _left(lane.state.epoch_start, event)
                lane = with_state(lane, state=lane.state._replace(epoch_start=epoch_start))
            self._outdate(binding, lane, "compaction")

    def _outdate(self, binding: Binding, lane: Lane, why: EpochReason) -> None:
        state = lane.state._replace(outdated=lane.state.outdated or why)
        self._lanes[binding] = with_state(lane, state=state)


_OF_LANES = (
    *(events.Opened, events.Configured, events.Shortened, events.Compacted),
    *(EpochBegan, RequestSent),
)
"""The events that change a lane."""


def _left(count: int, event: events.Compacted) -> int:
    """Return how many of the first `count` messages there are when some of the history became a summary."""
    return count if count <= event.start else event.start + 1 + count - min(event.stop, count)


def rebuilt(log: Iterable[Event], rules: Rules) -> tuple[SessionState, Lanes]:
    """Return the session that wrote `log`: its state and its lanes, byte for byte.

    What happened to calls is told to the ledger at once, ahead of the next request: nothing else asks it.
    """
    state, lanes = SessionState(), Lanes(rules)
    happened: list[events.CallEvent] = []
    for event in log:
        if isinstance(event, events.CallHappening):
            happened.append(event)
            continue
        if isinstance(event, RequestSent):
            state = state.told(happened)
            happened = []
        before, state = state, state.apply(event)
        lanes.apply(event, before, state)
    return state.told(happened), lanes
