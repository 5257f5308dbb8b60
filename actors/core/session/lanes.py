"""The lanes of a session: a fold of the events of its log.

At each `RequestSent` a lane takes up the messages that were new then, and at each `EpochBegan` it starts over. A
`Configured` event makes the next request begin an epoch where reasoning is bound to the system prompt and the tools.
An event that makes the history shorter or rewinds it does the same in every lane. Folding needs the adapters' encoders.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from msgspec import Struct, field

from actors.core.data.record import replace
from actors.core.data.slices import Slices, run_slices
from actors.core.dialects.dialect import Dialect
from actors.core.history.history import History
from actors.core.lanes.lane import (
    Lane,
    Rendered,
    advance_in_slices,
    begin_epoch,
    empty_lane,
    replay_in_slices,
)
from actors.core.ledger import Ledger
from actors.core.log import events
from actors.core.log.events import EpochBegan, EpochReason, LogEvent, RequestSent
from actors.core.render import RenderTarget
from actors.core.session.state import SessionState
from actors.core.transcript.transcript import Encoder
from actors.core.values.identity import Binding

WHY: Mapping[EpochReason, str] = {
    "configured": "the system prompt or the tools changed",
    "compaction": "the history was made shorter",
    "rewind": "the history was rewound",
}
"""Why the next request begins an epoch, in words for people."""


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
        return run_slices(self._of(binding))

    def _of(self, binding: Binding) -> Slices[Lane]:
        lane = self._lanes.get(binding)
        if isinstance(lane, Unfolded):
            lane = self._lanes[binding] = yield from self._folding(binding, lane)
        return lane or empty_lane(self._rules(binding)[0], self._imported)

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
        return run_slices(self.rendering(binding, history, ledger, aside=aside))

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
            return (yield from advance_in_slices(lane, history, ledger, dialect, encoder, target))
        begins = EpochBegan(binding, lane.state.epoch + 1, why, lane.state.plain, WHY[why])
        lane = begin_epoch(lane, begins, dialect, history.length)
        rendered = yield from advance_in_slices(lane, history, ledger, dialect, encoder, target)
        return replace(rendered, begins=begins)

    def adopt(self, binding: Binding, lane: Lane) -> None:
        """Take a rendered lane as what has been sent."""
        self._lanes[binding] = lane

    def begin(self, event: EpochBegan, epoch_start: int) -> None:
        """Start a binding's lane over; `epoch_start` is the history's length now."""

        def over(lane: Lane) -> Lane:
            return begin_epoch(lane, event, self._rules(event.binding)[0], epoch_start)

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

    def apply(self, event: LogEvent, before: SessionState, after: SessionState) -> None:
        """Take one event of the log, given the state before it and the one after it."""
        match event:
            case RequestSent(aside=False):
                sent = Requests([event.cursor], before.history, before.ledger, bool(event.seals))
                self._later(event.binding, sent)
            case EpochBegan():
                self.begin(event, before.history.length)
            case events.Opened():
                self._imported = after.history.length
            case events.ResultsTrimmed() | events.Compacted():
                self.shrink(event)
            case events.Rewound():
                self.rewind(after.history.length)
            case events.Configured() if before.preamble != after.preamble:
                self.outdate()
            case _:
                pass

    def shrink(self, event: events.ResultsTrimmed | events.Compacted) -> None:
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
        lane = unfolded.lane or empty_lane(self._rules(binding)[0], unfolded.imported)
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
            if is_pinned and state.outdated is None and state.late_count == len(ledger.late):
                lengths = sent.lengths[at:]
                return (yield from replay_in_slices(lane, history, ledger, dialect, encoder, target, lengths))
            lane = (yield from self._rendering(binding, lane, history.upto(length), ledger)).lane
            yield
        return lane


def _shrunk(event: events.ResultsTrimmed | events.Compacted, lane: Lane) -> Lane:
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
