"""A session as the fold of its events, lanes included.

`SessionState` is everything a session knows; `apply` is the only way it changes, live and after a restart alike, so
a session that was rebuilt from its log is the session that wrote it. Lanes are folded by `Lanes`, which also needs the
adapters' encoders: at each `RequestSent` a lane takes up what was new then, at each `EpochBegan` it starts over. What
was `Configured` makes the next request begin an epoch, where reasoning is bound to the system prompt and the tools; so
does, in every lane, what makes the history shorter or rewinds it.

Call events change only the ledger, and the session's own events only the rest, so their order among each other does
not matter. They meet in `RequestSent`, which the ledger itself writes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import TypeAlias

from msgspec import Struct, field

from actors.core.data.chunked import from_index
from actors.core.data.form import Form, replace
from actors.core.data.slices import Slices, finished
from actors.core.dialects.dialect import Dialect
from actors.core.history import turn_ends
from actors.core.history.estimate import ReportedRequest
from actors.core.history.history import NO_MESSAGES, History
from actors.core.history.turn_ends import NO_TURN_ENDS, TurnEnd, TurnEnds
from actors.core.lanes.lane import Lane, Rendered, advancing, begun, empty, replaying
from actors.core.ledger import NO_CALLS, Ledger, closed
from actors.core.log import events
from actors.core.log.events import EpochBegan, EpochReason, Event, RequestSent, Scheduled
from actors.core.render import RenderTarget
from actors.core.settings.asking import Asked
from actors.core.settings.spending import Budget, Used
from actors.core.transcript.transcript import Encoder
from actors.core.values.identity import RUNTIME, Binding, number_of
from actors.core.values.packed import Packed, size_of

WHY: Mapping[EpochReason, str] = {
    "configured": "the system prompt or the tools changed",
    "compaction": "the history was made shorter",
    "rewind": "the history was rewound",
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
            case events.Bound(turn=turn, binding=binding):
                return replace(self, turns=turn, bound=binding)
            case events.TurnEnded(turn=turn, seconds=seconds):
                ends, used = self._ends_with(turn), _after(self.used, seconds)
                return replace(self, bound=None, pause=None, used=used, ends=ends)
            case events.Instructed(message=message):
                return self._saying(message)
            case events.Delegated(used=below):
                return replace(self, used=None if self.used is None else self.used.joined(below))
            case events.Compacted(start=start, stop=stop, summary=summary):
                at = max(0, self.asked_at - (stop - start) + 1)
                ends = turn_ends.ends_around(self.ends, start, stop)
                return self._with_history(self.history.replaced(start, stop, summary), at, ends)
            case events.Rewound(turn=turn):
                return self._rewind(turn)
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
                history = replace(NO_MESSAGES, report=event.report, system=event.system)
                state = SessionState(session, target, None, history, Ledger(known), event.calls)
                state = state._saying(*messages)
                state = replace(state, ends=state._ends_with(0))
                used = None if event.budget is None else Used()
                return replace(
                    state, tenant=event.tenant, budget=event.budget, used=used, preamble=event.preamble
                )
            case events.Configured(system=system, preamble=preamble):
                return replace(self, history=replace(self.history, system=system), preamble=preamble)
            case events.SwitchHeld(target=target):
                return replace(self, held=target)
            case events.SwitchApplied(target=target):
                return replace(self, target=target, held=None)
            case events.SwitchSuperseded() | events.SwitchFailed():
                return replace(self, held=None)
            case events.EventsLost(
                first=first, last=last
            ):  # each call that ran had an event there: its id is used
                return replace(self, calls=self.calls + last - first + 1)
            case events.Closed():
                return replace(self, closed=True)

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
        [closed(item) for item in history.ledger.interactions() if not history.has_removed(item.call_id)]
    )
    made = {call.id for message in history.since(0) for call in message.calls}
    used = max(map(number_of, made.union(item.call_id for item in known)), default=0)
    messages = tuple(from_index(history.packed, 0))
    return events.Opened(session, target, history.system, messages, known, used, history.report)


Rules: TypeAlias = Callable[[Binding], tuple[Dialect, Encoder, RenderTarget]]
"""What a binding is rendered with. Resolved from configuration, and the same whenever it is asked."""


class Requests(Struct):
    """Requests of one lane, one behind the other, of which one render makes what they made.

    `lengths`: of the history, at each. `ledger`: what was known at the last; `seals`: that one sealed something.
    """

    lengths: list[int]
    history: History
    ledger: Ledger
    seals: bool

    def take(self, other: "Requests") -> bool:
        """Take the next ones too, unless who knows what they know would render these otherwise; say whether it did.

        Each call of a request that seals nothing has its result, or was sealed before: what a later ledger knows beside
        that came late.
        """
        if self.seals or len(self.ledger.late) != len(other.ledger.late):
            return False
        self.lengths += other.lengths
        self.history, self.ledger, self.seals = other.history, other.ledger, other.seals
        return True


Step: TypeAlias = Requests | Callable[[Lane], Lane]


class Unfolded(Struct):
    """A lane as it was last folded, None before the first event of it, and what a log says of it since."""

    lane: Lane | None
    imported: int
    steps: list[Step] = field(default_factory=list)

    def take(self, step: Step) -> None:
        """Take what the log says next."""
        last = self.steps[-1] if self.steps else None
        if not (isinstance(last, Requests) and isinstance(step, Requests) and last.take(step)):
            self.steps.append(step)


class Lanes:
    """One session's lanes, by binding. Mutable: it belongs to one renderer, or to one rebuild.

    What a log says of a lane is folded when that lane is first asked for: who only reads a session need not wait for
    that, and who goes on with it waits for the lane of its target alone.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._lanes: dict[Binding, Lane | Unfolded] = {}
        self._imported = 0  # messages the session was opened with; fewer once some of them are compacted

    def of(self, binding: Binding) -> Lane:
        """Return the lane as it was last adopted; an empty one for a binding never used."""
        return finished(self._of(binding))

    def _of(self, binding: Binding) -> Slices[Lane]:
        lane = self._lanes.get(binding)
        if isinstance(lane, Unfolded):
            lane = self._lanes[binding] = yield from self._folding(binding, lane)
        return lane or empty(self._rules(binding)[0], self._imported)

    def unwritten(self, binding: Binding, history: History) -> int:
        """Return how many messages a render for a binding has to write, about."""
        lane, replayed = self._lanes.get(binding), 0
        if isinstance(lane, Unfolded):
            replayed = max((step.lengths[-1] for step in lane.steps if isinstance(step, Requests)), default=0)
            lane = lane.lane
        is_new = lane is None or lane.state.outdated is not None
        unsent = history.length if is_new or lane is None else history.length - lane.state.cursor
        return max(unsent, replayed)  # a history that was shortened is shorter than what is replayed

    @property
    def size(self) -> int:
        """Bytes of all lanes, of those that were folded already."""
        return sum(lane.size for lane in self._lanes.values() if isinstance(lane, Lane))

    def render(self, binding: Binding, history: History, ledger: Ledger, *, aside: bool = False) -> Rendered:
        """Return what would be sent now, and the epoch it begins if it does. Adopts nothing.

        `aside`: the last message is not the session's, so a lane that has as many begins anew.
        """
        return finished(self.rendering(binding, history, ledger, aside=aside))

    def rendering(
        self, binding: Binding, history: History, ledger: Ledger, *, aside: bool = False
    ) -> Slices[Rendered]:
        """Do what `render` does, slice by slice. Nothing else may happen to the lanes meanwhile."""
        lane = yield from self._of(binding)
        return (yield from self._rendering(binding, lane, history, ledger, aside=aside))

    def _rendering(
        self, binding: Binding, lane: Lane, history: History, ledger: Ledger, *, aside: bool = False
    ) -> Slices[Rendered]:
        dialect, encoder, target = self._rules(binding)
        why = lane.state.outdated or ("compaction" if lane.state.cursor > history.length - aside else None)
        if why is None:
            return (yield from advancing(lane, history, ledger, dialect, encoder, target))
        begins = EpochBegan(binding, lane.state.epoch + 1, why, lane.state.plain, WHY[why])
        lane = begun(lane, begins, dialect, history.length)
        rendered = yield from advancing(lane, history, ledger, dialect, encoder, target)
        return replace(rendered, begins=begins)

    def adopt(self, binding: Binding, lane: Lane) -> None:
        """Take a rendered lane as what has been sent."""
        self._lanes[binding] = lane

    def begin(self, event: EpochBegan, epoch_start: int) -> None:
        """Start a binding's lane over; `epoch_start` is the history's length now."""

        def over(lane: Lane) -> Lane:
            return begun(lane, event, self._rules(event.binding)[0], epoch_start)

        self._later(event.binding, over)

    def outdate(self) -> None:
        """Note that the system prompt or the tools changed: what is bound to them is left behind with its epoch."""
        for binding in self._lanes:
            self._later(binding, partial(self._configured, binding))

    def _configured(self, binding: Binding, lane: Lane) -> Lane:
        is_bound = self._rules(binding)[0].reasoning.binding == "prefix"
        return _outdated(lane, "configured") if is_bound else lane

    def bindings(self) -> tuple[Binding, ...]:
        """Return the bindings that have a lane, oldest first."""
        return tuple(self._lanes)

    def apply(self, event: Event, before: SessionState, after: SessionState) -> None:
        """Take one event of the log, given the state before it and the one after it."""
        match event:
            case RequestSent(aside=False):
                sent = Requests([event.cursor], before.history, before.ledger, bool(event.seals))
                self._later(event.binding, sent)
            case EpochBegan():
                self.begin(event, before.history.length)
            case events.Opened():
                self._imported = after.history.length
            case events.Shortened() | events.Compacted():
                self.shrink(event)
            case events.Rewound():
                self.rewind(after.history.length)
            case events.Configured() if before.preamble != after.preamble:
                self.outdate()
            case _:
                pass

    def shrink(self, event: events.Shortened | events.Compacted) -> None:
        """Let each lane begin an epoch with its next request; count anew what is older than one.

        Provider state in messages of those counts is not replayed. A summary stands for those it took in.
        """
        if isinstance(event, events.Compacted):
            self._imported = _left(self._imported, event)
        for binding in self._lanes:
            self._later(binding, partial(_shrunk, event))

    def rewind(self, length: int) -> None:
        """Let each lane begin an epoch with its next request, in a history that has so many messages now."""
        self._imported = min(self._imported, length)
        for binding in self._lanes:
            self._later(binding, partial(_rewind, length))

    def _later(self, binding: Binding, step: Step) -> None:
        """Have something done to a lane when it is next asked for, or now if it costs nothing."""
        lane = self._lanes.get(binding)
        if isinstance(lane, Lane) and not isinstance(step, Requests):
            self._lanes[binding] = step(lane)
            return
        if not isinstance(lane, Unfolded):
            lane = self._lanes[binding] = Unfolded(lane, self._imported)
        lane.take(step)

    def _folding(self, binding: Binding, unfolded: Unfolded) -> Slices[Lane]:
        lane = unfolded.lane or empty(self._rules(binding)[0], unfolded.imported)
        for step in unfolded.steps:
            lane = (
                (yield from self._sending(binding, lane, step)) if isinstance(step, Requests) else step(lane)
            )
        return lane

    def _sending(self, binding: Binding, lane: Lane, sent: Requests) -> Slices[Lane]:
        """Return a lane behind some requests. One that may change more than it appends is rendered by itself."""
        dialect, encoder, target = self._rules(binding)
        history, ledger = sent.history.upto(sent.lengths[-1]), sent.ledger
        for at, length in enumerate(sent.lengths):
            state = lane.state
            is_pinned = dialect.reasoning.binding != "upstream" or state.upstream is not None
            if is_pinned and state.outdated is None and state.told == len(ledger.late):
                lengths = sent.lengths[at:]
                return (yield from replaying(lane, history, ledger, dialect, encoder, target, lengths))
            lane = (yield from self._rendering(binding, lane, history.upto(length), ledger)).lane
            yield
        return lane


def _shrunk(event: events.Shortened | events.Compacted, lane: Lane) -> Lane:
    if isinstance(event, events.Compacted):
        epoch_start = _left(lane.state.epoch_start, event)
        lane = replace(lane, state=lane.state._replace(epoch_start=epoch_start))
    return _outdated(lane, "compaction")


def _rewind(length: int, lane: Lane) -> Lane:
    epoch_start = min(lane.state.epoch_start, length)
    return _outdated(replace(lane, state=lane.state._replace(epoch_start=epoch_start)), "rewind")


def _outdated(lane: Lane, why: EpochReason) -> Lane:
    return replace(lane, state=lane.state._replace(outdated=lane.state.outdated or why))


def _left(count: int, event: events.Compacted) -> int:
    """Return how many of the first `count` messages there are when some of the history became a summary."""
    return count if count <= event.start else event.start + 1 + count - min(event.stop, count)


UNREAD = SessionState()
"""What is known of a session of whose log nothing has been read."""


class Folding:
    """A log that is folded piece by piece: what it says so far of the session that wrote it.

    What happened to calls is told to the ledger at once, ahead of the next request: nothing else asks it.
    """

    def __init__(self, rules: Rules) -> None:
        self._state, self._lanes = UNREAD, Lanes(rules)
        self._happened: list[events.CallEvent] = []

    def take(self, log: Iterable[Event]) -> None:
        """Take what the log says next."""
        state, lanes, happened = self._state, self._lanes, self._happened
        for event in log:
            if isinstance(event, events.CallHappening):
                happened.append(event)
                continue
            if isinstance(event, RequestSent):
                state = state.told(happened)
                happened = []
            before, state = state, state.apply(event)
            lanes.apply(event, before, state)
        self._state, self._happened = state, happened

    def end(self) -> tuple[SessionState, Lanes]:
        """Return the session: its state and its lanes, byte for byte."""
        return self._state.told(self._happened), self._lanes


def rebuilt(log: Iterable[Event], rules: Rules) -> tuple[SessionState, Lanes]:
    """Return the session that wrote `log`: its state and its lanes, byte for byte."""
    folding = Folding(rules)
    folding.take(log)
    return folding.end()
