"""Check handoffs: the turn ends before its next round, and the ask continues with the new target."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.core.log import call_events, events
from actors.core.values.identity import CallId
from actors.testing.simulation.plan import HANDOFFS
from tests.simulation.witness import Witness

CONTINUES = "an ask that is handed over continues with its new target"


@dataclass(slots=True)
class _HandingBatch:
    """The handoff calls of a batch with their targets, the returned ones, and the ask to continue.

    `elsewhere`: another target on which a turn of the ask began. That turn may only make room for the new target.
    """

    calls: dict[CallId, str] = field(default_factory=dict)
    returned: set[CallId] = field(default_factory=set)
    switched: bool = False
    ask: int = 0
    elsewhere: str = ""


class HandoverTurns:
    """Checks the backend after a handoff. `members` maps a target to its backends."""

    def __init__(self, witness: Witness, members: Mapping[str, frozenset[str]]) -> None:
        self._problems = witness.problems
        self._seen = witness.seen
        self._members = members
        self._batches: dict[str, _HandingBatch] = {}
        self._held: dict[str, str] = {}
        self.counts = Counter[str](handed_over=0)
        witness.subscribe(events.RoundEnded, self._on_answered)
        witness.subscribe(call_events.Scheduled, self._on_scheduled)
        witness.subscribe(call_events.Returned, self._on_returned)
        witness.subscribe(events.RequestSent, self._on_sent)
        witness.subscribe(events.SwitchQueued, self._on_hold)
        witness.subscribe(events.SwitchFailed, self._on_drop)
        witness.subscribe(events.SwitchApplied, self._on_switched)
        witness.subscribe(events.TurnEnded, self._on_ended)
        witness.subscribe(events.TurnStarted, self._on_bound)

    def is_handing(self, session: str) -> bool:
        """Return True if the turn of a session is about to be handed over."""
        return session in self._batches and bool(self._batches[session].returned)

    def _on_answered(self, session: str, event: events.RoundEnded) -> None:
        if not self._has_made_room(session):
            self._batches[session] = _HandingBatch()

    def _on_scheduled(self, session: str, event: call_events.Scheduled) -> None:
        if event.tool in HANDOFFS:
            self._batches[session].calls[event.call_id] = HANDOFFS[event.tool]

    def _on_returned(self, session: str, event: call_events.Returned) -> None:
        batch = self._batches.get(session)
        if batch is not None and event.call_id in batch.calls:
            batch.returned.add(event.call_id)

    def _on_sent(self, session: str, event: events.RequestSent) -> None:
        if self.is_handing(session) and not event.is_for_summary:
            about = f"{session}: turn {event.turn}, round {event.round}"
            self._problems.add("a turn that hands over has no further round", about)
        batch = self._batches.get(session)
        if batch is not None and batch.elsewhere and not event.is_for_summary:
            about = f"{session}: turn {event.turn} on {batch.elsewhere}, not {self._seen[session].target}"
            self._problems.add(CONTINUES, about)

    def _on_hold(self, session: str, event: events.SwitchQueued) -> None:
        self._held[session] = event.target

    def _on_drop(self, session: str, event: events.SwitchFailed) -> None:
        self._held.pop(session, None)

    def _on_switched(self, session: str, event: events.SwitchApplied) -> None:
        """Check the next backend against a queued switch of the host, or else against the handoff call."""
        held = self._held.pop(session, None)
        if not self.is_handing(session):
            return
        batch = self._batches[session]
        batch.switched = True
        if event.target not in ([held] if held else batch.calls.values()):
            about = f"{session}: {event.target}, and not {held or batch.calls}"
            self._problems.add("a conversation is handed over to the target that the model named", about)

    def _on_ended(self, session: str, event: events.TurnEnded) -> None:
        hands = self.is_handing(session) and event.status == "handed_over"
        if hands and not self._batches[session].switched:
            self._problems.add("a conversation that is handed over has a new target", session)
        goes_on = self._seen[session].ask if hands or self._has_made_room(session) else 0
        self._batches[session] = _HandingBatch(ask=goes_on)

    def _has_made_room(self, session: str) -> bool:
        return session in self._batches and bool(self._batches[session].elsewhere)

    def _on_bound(self, session: str, event: events.TurnStarted) -> None:
        batch = self._batches.get(session)
        if batch is None or not batch.ask:
            return
        backend, target = event.binding.backend, self._seen[session].target
        if event.ask != batch.ask:
            self._problems.add(CONTINUES, f"{session}: ask {event.ask}, not {batch.ask}")
        if backend in self._members[target]:
            batch.ask = 0
            self.counts["handed_over"] += 1
        else:
            batch.elsewhere = backend
