"""Compute the lanes of a session from the events of its log, and rebuild the session from a complete log.

A lane is the transcript that the session has sent to one binding. The renderer actor owns a session's lanes. The
encoders of the adapters compute them from a log. The rebuilt lanes equal the original ones byte by byte.
`actors.journal.log` rebuilds sessions page by page; hosts and tests rebuild logs that are in memory.

At each `RequestSent` event, the lane of the request grows by the messages that were new at that time. At each
`EpochBegan` event, a lane starts over. Three changes make a lane's next request begin an epoch: a compaction, a rewind,
and a `Configured` event. A `Configured` event does so only in lanes that bind reasoning to the system prompt and the
tools.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.history.history import History
from actors.core.lanes.lane import (
    Lane,
    Rendered,
    Slices,
    advance_in_slices,
    begin_epoch,
    empty_lane,
    replay_in_slices,
    run_slices,
)
from actors.core.ledger import Ledger
from actors.core.log import events
from actors.core.log.call_events import CallEvent, CallEventBase
from actors.core.log.events import EpochBegan, EpochReason, LogEvent, RequestSent
from actors.core.render import RenderTarget
from actors.core.session.state import UNREAD, SessionState
from actors.core.transcript.transcript import Encoder
from actors.core.values.identity import Binding

WHY: Mapping[EpochReason, str] = {
    "configured": "the system prompt or the tools changed",
    "compaction": "the history was compacted",
    "rewind": "the history was rewound",
}
"""The reasons for which the next request may begin an epoch, as text for people."""
Rules: TypeAlias = Callable[[Binding], tuple[Dialect, Encoder, RenderTarget]]
"""Returns the dialect, encoder and render target of a binding. Every call must return the same values."""


class RequestRun(Struct):
    """Consecutive requests of one lane that one render can replay together.

    Args:
        lengths: The length of the history at each request, in messages.
        history: The history at the last request.
        ledger: The ledger at the last request.
        has_seals: True if the last request sealed synthetic results (made them final).
    """

    lengths: list[int]
    history: History
    ledger: Ledger
    has_seals: bool

    def try_merge(self, other: "RequestRun") -> bool:
        """Append the requests of `other` if one render can replay all of them. Return True if they were appended.

        This is possible if the last request sealed no synthetic result and both ledgers have the same number of late
        results. After a request that seals nothing, every call has a final result, so a later ledger can differ only in
        late results.
        """
        if self.has_seals or len(self.ledger.late) != len(other.ledger.late):
            return False
        self.lengths += other.lengths
        self.history, self.ledger, self.has_seals = other.history, other.ledger, other.has_seals
        return True


Step: TypeAlias = RequestRun | Callable[[Lane], Lane]


class PendingLane(Struct):
    """A lane that is computed when it is next used.

    Args:
        lane: The last computed version. `None` means that the lane was never computed.
        imported: Number of messages that the session had when it was opened.
        steps: The changes since that version, in order.
    """

    lane: Lane | None
    imported: int
    steps: list[Step] = []

    def add(self, step: Step) -> None:
        """Append a step. Requests are merged with preceding requests if possible."""
        last = self.steps[-1] if self.steps else None
        if not (isinstance(last, RequestRun) and isinstance(step, RequestRun) and last.try_merge(step)):
            self.steps.append(step)


class Lanes:
    """The lanes of one session, by binding. The object is mutable and is used by one renderer or one rebuild.

    A lane is computed from the log when it is first used. Reading a session's history therefore renders no lane, and
    continuing a session renders only the lane of its target.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._lanes: dict[Binding, Lane | PendingLane] = {}
        self._imported = (
            0  # number of messages that the session had when it was opened; compaction reduces it
        )

    def of(self, binding: Binding) -> Lane:
        """Return a binding's lane, as of the last request that was sent.

        A binding that was never used has an empty lane.
        """
        return run_slices(self._computed_lane(binding))

    def _computed_lane(self, binding: Binding) -> Slices[Lane]:
        lane = self._lanes.get(binding)
        if isinstance(lane, PendingLane):
            lane = self._lanes[binding] = yield from self._apply_steps(binding, lane)
        return lane or empty_lane(self._rules(binding)[0], self._imported)

    def unrendered_messages(self, binding: Binding, history: History) -> int:
        """Estimate the number of messages that rendering for this binding would encode."""
        lane, replayed = self._lanes.get(binding), 0
        if isinstance(lane, PendingLane):
            replayed = max(
                (step.lengths[-1] for step in lane.steps if isinstance(step, RequestRun)), default=0
            )
            lane = lane.lane
        is_new = lane is None or lane._state.outdated is not None
        unsent = history.length if is_new or lane is None else history.length - lane._state.cursor
        # The replay renders the messages of earlier requests, even messages that have been compacted since.
        return max(unsent, replayed)

    @property
    def size(self) -> int:
        """The size of all computed lanes, in bytes."""
        return sum(lane.size for lane in self._lanes.values() if isinstance(lane, Lane))

    def render(self, binding: Binding, history: History, ledger: Ledger, *, aside: bool = False) -> Rendered:
        """Render the next request of a lane, and return its transcript.

        If the request begins an epoch, the result also contains the `EpochBegan` event. The lane changes only when
        `adopt` is called.

        Args:
            binding: The binding for which to render.
            history: The session's history.
            ledger: The session's ledger.
            aside: True if the last message of `history` belongs only to this request, as in a request for a summary. If
                the lane contains more messages than precede that message, the request begins an epoch.
        """
        return run_slices(self.render_in_slices(binding, history, ledger, aside=aside))

    def render_in_slices(
        self, binding: Binding, history: History, ledger: Ledger, *, aside: bool = False
    ) -> Slices[Rendered]:
        """Do the same as `render`, but in slices, so that other tasks can run in between.

        The lanes must not change between slices.
        """
        lane = yield from self._computed_lane(binding)
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
        return replace(rendered, new_epoch=begins)

    def adopt(self, binding: Binding, lane: Lane) -> None:
        """Set a binding's lane to the rendered version that was sent."""
        self._lanes[binding] = lane

    def begin_epoch(self, event: EpochBegan, epoch_start: int) -> None:
        """Begin a new epoch in a binding's lane. `epoch_start` is the current length of the history."""

        def restart(lane: Lane) -> Lane:
            return begin_epoch(lane, event, self._rules(event.binding)[0], epoch_start)

        self._defer(event.binding, restart)

    def mark_stale(self) -> None:
        """Make the next request begin an epoch in each lane that binds reasoning to the system prompt and the tools."""
        for binding in self._lanes:
            self._defer(binding, partial(self._lane_after_configuring, binding))

    def _lane_after_configuring(self, binding: Binding, lane: Lane) -> Lane:
        is_bound = self._rules(binding)[0].reasoning.binding == "prefix"
        return _mark_stale(lane, "configured") if is_bound else lane

    def bindings(self) -> tuple[Binding, ...]:
        """Return the bindings that have a lane, in the order in which they were first used."""
        return tuple(self._lanes)

    def apply(self, event: LogEvent, before: SessionState, after: SessionState) -> None:
        """Apply an event of the log. `before` and `after` are the session's states before and after this event."""
        match event:
            case RequestSent(is_for_summary=False):
                sent = RequestRun([event.cursor], before.history, before.ledger, bool(event.seals))
                self._defer(event.binding, sent)
            case EpochBegan():
                self.begin_epoch(event, before.history.length)
            case events.Opened():
                self._imported = after.history.length
            case events.ResultsTrimmed() | events.Compacted():
                self.apply_shortening(event)
            case events.Rewound():
                self.rewind(after.history.length)
            case events.Configured() if before.config_digest != after.config_digest:
                self.mark_stale()
            case _:
                pass

    def apply_shortening(self, event: events.ResultsTrimmed | events.Compacted) -> None:
        """Make the next request of every lane begin an epoch, after results were trimmed or messages were compacted.

        Provider state in messages that precede the epoch is not replayed. Each lane's count of these messages is
        adjusted, and a summary counts as one message.
        """
        if isinstance(event, events.Compacted):
            self._imported = _remaining_count(self._imported, event)
        for binding in self._lanes:
            self._defer(binding, partial(_lane_after_shortening, event))

    def rewind(self, length: int) -> None:
        """Make the next request of every lane begin an epoch, after the history was cut to `length` messages."""
        self._imported = min(self._imported, length)
        for binding in self._lanes:
            self._defer(binding, partial(_lane_after_rewind, length))

    def _defer(self, binding: Binding, step: Step) -> None:
        """Apply a step to a lane now if the step needs no rendering. Otherwise, apply it when the lane is next used."""
        lane = self._lanes.get(binding)
        if isinstance(lane, Lane) and not isinstance(step, RequestRun):
            self._lanes[binding] = step(lane)
            return
        if not isinstance(lane, PendingLane):
            lane = self._lanes[binding] = PendingLane(lane, self._imported)
        lane.add(step)

    def _apply_steps(self, binding: Binding, pending: PendingLane) -> Slices[Lane]:
        lane = pending.lane or empty_lane(self._rules(binding)[0], pending.imported)
        for step in pending.steps:
            lane = (
                (yield from self._replay_requests(binding, lane, step))
                if isinstance(step, RequestRun)
                else step(lane)
            )
        return lane

    def _replay_requests(self, binding: Binding, lane: Lane, sent: RequestRun) -> Slices[Lane]:
        """Return the lane after these requests.

        Requests that only append messages are replayed together. Every other request is rendered separately.
        """
        dialect, encoder, target = self._rules(binding)
        history, ledger = sent.history.upto(sent.lengths[-1]), sent.ledger
        for at, length in enumerate(sent.lengths):
            state = lane._state
            # The first render of a new lane chooses its upstream (provider behind a gateway), and the upstream decides
            # which reasoning is replayed.
            is_pinned = dialect.reasoning.binding != "upstream" or state.upstream is not None
            if is_pinned and state.outdated is None and state.late_count == len(ledger.late):
                lengths = sent.lengths[at:]
                return (yield from replay_in_slices(lane, history, ledger, dialect, encoder, target, lengths))
            lane = (yield from self._render_lane(binding, lane, history.upto(length), ledger)).lane
            yield
        return lane


def _lane_after_shortening(event: events.ResultsTrimmed | events.Compacted, lane: Lane) -> Lane:
    if isinstance(event, events.Compacted):
        epoch_start = _remaining_count(lane._state.epoch_start, event)
        lane = replace(lane, _state=lane._state._replace(epoch_start=epoch_start))
    return _mark_stale(lane, "compaction")


def _lane_after_rewind(length: int, lane: Lane) -> Lane:
    epoch_start = min(lane._state.epoch_start, length)
    return _mark_stale(replace(lane, _state=lane._state._replace(epoch_start=epoch_start)), "rewind")


def _mark_stale(lane: Lane, why: EpochReason) -> Lane:
    return replace(lane, _state=lane._state._replace(outdated=lane._state.outdated or why))


def _remaining_count(count: int, event: events.Compacted) -> int:
    """Return how many of the first `count` messages of the history are left after a compaction.

    The summary counts as one message.
    """
    return count if count <= event.start else event.start + 1 + count - min(event.stop, count)


class LogReplay:
    """The state and the lanes of a session, computed from its log part by part.

    Call events are applied to the ledger in groups, before each request, because only requests read the ledger.
    """

    def __init__(self, rules: Rules) -> None:
        self._state, self._lanes = UNREAD, Lanes(rules)
        self._happened: list[CallEvent] = []

    def add(self, log: Iterable[LogEvent]) -> None:
        """Apply the next events of the log."""
        state, lanes, happened = self._state, self._lanes, self._happened
        for event in log:
            if isinstance(event, CallEventBase):
                happened.append(event)
                continue
            if isinstance(event, RequestSent):
                state = state.with_call_events(happened)
                happened = []
            before, state = state, state.apply(event)
            lanes.apply(event, before, state)
        self._state, self._happened = state, happened

    def result(self) -> tuple[SessionState, Lanes]:
        """Return the state and the lanes after the events added so far."""
        return self._state.with_call_events(self._happened), self._lanes


def rebuild(log: Iterable[LogEvent], rules: Rules) -> tuple[SessionState, Lanes]:
    """Return the state and the lanes of a session, given its complete log."""
    folding = LogReplay(rules)
    folding.add(log)
    return folding.result()
