"""Keep the lanes of a session: a fold of the events of its log.

The renderer actor owns a session's lanes; `actors.core.session.rebuild` makes them from a log.

At each `RequestSent` a lane appends the messages that were new then, and at each `EpochBegan` it starts over. After a
`Configured` event, the next request begins an epoch in each lane that binds reasoning to the system prompt and the
tools. After compaction or a rewind, the next request begins an epoch in every lane. Folding needs the adapters'
encoders.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from msgspec import Struct

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
    "compaction": "the history was compacted",
    "rewind": "the history was rewound",
}
"""Explanations of why the next request begins an epoch."""


Rules: TypeAlias = Callable[[Binding], tuple[Dialect, Encoder, RenderTarget]]
"""Looks up the dialect, encoder and render target of a binding. Returns the same values at every call."""


class Requests(Struct):
    """Consecutive requests of one lane that a single render can replay.

    Args:
        lengths: The length of the history at each request, in messages.
        history: The history at the last request.
        ledger: The ledger at the last request.
        seals: Whether the last request sealed synthetic results.
    """

    lengths: list[int]
    history: History
    ledger: Ledger
    seals: bool

    def merge(self, other: "Requests") -> bool:
        """Append the next requests if one render still replays all of them; return whether it does.

        In a request that seals nothing, every call has a result or an older seal. A later ledger differs from its
        ledger only in late results, so the requests can be merged if the number of late results is equal.
        """
        if self.seals or len(self.ledger.late) != len(other.ledger.late):
            return False
        self.lengths += other.lengths
        self.history, self.ledger, self.seals = other.history, other.ledger, other.seals
        return True


Step: TypeAlias = Requests | Callable[[Lane], Lane]


class PendingLane(Struct):
    """A lane as it was last folded (None if never), and the steps to apply before its next use."""

    lane: Lane | None
    imported: int
    steps: list[Step] = []

    def add(self, step: Step) -> None:
        """Append a step, merged with the last one if possible."""
        last = self.steps[-1] if self.steps else None
        if not (isinstance(last, Requests) and isinstance(step, Requests) and last.merge(step)):
            self.steps.append(step)


class Lanes:
    """One session's lanes, by binding. Mutable: it belongs to one renderer, or to one rebuild.

    A lane is folded from the log at its first use. Reading a session's history therefore renders no lane, and
    continuing a session renders only the lane of its target.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._lanes: dict[Binding, Lane | PendingLane] = {}
        self._imported = 0  # messages the session was opened with; fewer once some of them are compacted

    def of(self, binding: Binding) -> Lane:
        """Return the lane as it was last adopted; an empty lane if the binding was never used."""
        return run_slices(self._of(binding))

    def _of(self, binding: Binding) -> Slices[Lane]:
        lane = self._lanes.get(binding)
        if isinstance(lane, PendingLane):
            lane = self._lanes[binding] = yield from self._fold(binding, lane)
        return lane or empty_lane(self._rules(binding)[0], self._imported)

    def unrendered_messages(self, binding: Binding, history: History) -> int:
        """Estimate how many messages a render for a binding has to encode."""
        lane, replayed = self._lanes.get(binding), 0
        if isinstance(lane, PendingLane):
            replayed = max((step.lengths[-1] for step in lane.steps if isinstance(step, Requests)), default=0)
            lane = lane.lane
        is_new = lane is None or lane._state.outdated is not None
        unsent = history.length if is_new or lane is None else history.length - lane._state.cursor
        return max(unsent, replayed)  # a compacted history has fewer messages than the replay renders

    @property
    def size(self) -> int:
        """The size of the folded lanes, in bytes."""
        return sum(lane.size for lane in self._lanes.values() if isinstance(lane, Lane))

    def render(self, binding: Binding, history: History, ledger: Ledger, *, aside: bool = False) -> Rendered:
        """Return the transcript of the next request, and the epoch that it begins, if any. Adopts nothing.

        Args:
            binding: The binding to render for.
            history: The session's history.
            ledger: The session's ledger.
            aside: The last message does not belong to the session (a summary request), so a lane with a cursor past
                the messages before it begins an epoch.
        """
        return run_slices(self.rendering(binding, history, ledger, aside=aside))

    def rendering(
        self, binding: Binding, history: History, ledger: Ledger, *, aside: bool = False
    ) -> Slices[Rendered]:
        """Render in slices, as `render` does at once. The lanes must not change between slices."""
        lane = yield from self._of(binding)
        return (yield from self._render_lane(binding, lane, history, ledger, aside=aside))

    def _render_lane(
        self, binding: Binding, lane: Lane, history: History, ledger: Ledger, *, aside: bool = False
    ) -> Slices[Rendered]:
        dialect, encoder, target = self._rules(binding)
        why = lane._state.outdated or ("compaction" if lane._state.cursor > history.length - aside else None)
        if why is None:
            return (yield from advance_in_slices(lane, history, ledger, dialect, encoder, target))
        begins = EpochBegan(binding, lane._state.epoch + 1, why, lane._state.plain, WHY[why])
        lane = begin_epoch(lane, begins, dialect, history.length)
        rendered = yield from advance_in_slices(lane, history, ledger, dialect, encoder, target)
        return replace(rendered, begins=begins)

    def adopt(self, binding: Binding, lane: Lane) -> None:
        """Keep a rendered lane as the one that was sent."""
        self._lanes[binding] = lane

    def begin(self, event: EpochBegan, epoch_start: int) -> None:
        """Start a binding's lane over; `epoch_start` is the history's length now."""

        def restart(lane: Lane) -> Lane:
            return begin_epoch(lane, event, self._rules(event.binding)[0], epoch_start)

        self._defer(event.binding, restart)

    def mark_stale(self) -> None:
        """Let each lane whose reasoning is bound to the system prompt and the tools begin an epoch."""
        for binding in self._lanes:
            self._defer(binding, partial(self._after_configuring, binding))

    def _after_configuring(self, binding: Binding, lane: Lane) -> Lane:
        is_bound = self._rules(binding)[0].reasoning.binding == "prefix"
        return _mark_stale(lane, "configured") if is_bound else lane

    def bindings(self) -> tuple[Binding, ...]:
        """Return the bindings that have a lane, oldest first."""
        return tuple(self._lanes)

    def apply(self, event: LogEvent, before: SessionState, after: SessionState) -> None:
        """Apply one event of the log, given the states before and after it."""
        match event:
            case RequestSent(aside=False):
                sent = Requests([event.cursor], before.history, before.ledger, bool(event.seals))
                self._defer(event.binding, sent)
            case EpochBegan():
                self.begin(event, before.history.length)
            case events.Opened():
                self._imported = after.history.length
            case events.ResultsTrimmed() | events.Compacted():
                self.shrink(event)
            case events.Rewound():
                self.rewind(after.history.length)
            case events.Configured() if before.config_digest != after.config_digest:
                self.mark_stale()
            case _:
                pass

    def shrink(self, event: events.ResultsTrimmed | events.Compacted) -> None:
        """Let each lane begin an epoch with its next request, and adjust the counts of messages older than the epoch.

        Provider state in those messages is not replayed. A summary counts as one message.
        """
        if isinstance(event, events.Compacted):
            self._imported = _remaining(self._imported, event)
        for binding in self._lanes:
            self._defer(binding, partial(_after_shrinking, event))

    def rewind(self, length: int) -> None:
        """Let each lane begin an epoch with its next request, after the history was cut to `length` messages."""
        self._imported = min(self._imported, length)
        for binding in self._lanes:
            self._defer(binding, partial(_after_rewind, length))

    def _defer(self, binding: Binding, step: Step) -> None:
        """Apply a step to a lane: at once if that needs no rendering, otherwise at the lane's next use."""
        lane = self._lanes.get(binding)
        if isinstance(lane, Lane) and not isinstance(step, Requests):
            self._lanes[binding] = step(lane)
            return
        if not isinstance(lane, PendingLane):
            lane = self._lanes[binding] = PendingLane(lane, self._imported)
        lane.add(step)

    def _fold(self, binding: Binding, unfolded: PendingLane) -> Slices[Lane]:
        lane = unfolded.lane or empty_lane(self._rules(binding)[0], unfolded.imported)
        for step in unfolded.steps:
            lane = (
                (yield from self._replay_requests(binding, lane, step))
                if isinstance(step, Requests)
                else step(lane)
            )
        return lane

    def _replay_requests(self, binding: Binding, lane: Lane, sent: Requests) -> Slices[Lane]:
        """Return the lane after these requests. A request that may do more than append is rendered separately."""
        dialect, encoder, target = self._rules(binding)
        history, ledger = sent.history.upto(sent.lengths[-1]), sent.ledger
        for at, length in enumerate(sent.lengths):
            state = lane._state
            is_pinned = dialect.reasoning.binding != "upstream" or state.upstream is not None
            if is_pinned and state.outdated is None and state.late_count == len(ledger.late):
                lengths = sent.lengths[at:]
                return (yield from replay_in_slices(lane, history, ledger, dialect, encoder, target, lengths))
            lane = (yield from self._render_lane(binding, lane, history.upto(length), ledger)).lane
            yield
        return lane


def _after_shrinking(event: events.ResultsTrimmed | events.Compacted, lane: Lane) -> Lane:
    if isinstance(event, events.Compacted):
        epoch_start = _remaining(lane._state.epoch_start, event)
        lane = replace(lane, _state=lane._state._replace(epoch_start=epoch_start))
    return _mark_stale(lane, "compaction")


def _after_rewind(length: int, lane: Lane) -> Lane:
    epoch_start = min(lane._state.epoch_start, length)
    return _mark_stale(replace(lane, _state=lane._state._replace(epoch_start=epoch_start)), "rewind")


def _mark_stale(lane: Lane, why: EpochReason) -> Lane:
    return replace(lane, _state=lane._state._replace(outdated=lane._state.outdated or why))


def _remaining(count: int, event: events.Compacted) -> int:
    """Return how many messages the first `count` have become after a compaction."""
    return count if count <= event.start else event.start + 1 + count - min(event.stop, count)
