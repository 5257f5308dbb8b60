"""Check requests refused as too long: the turn retries with a shorter history, at most three times."""

from collections import Counter

from actors.core.log import events
from tests.simulation.witness import Witness

TRIES = 4
"""The original request, and retries with shorter and shorter histories."""


class TooLongRequests:
    """Checks requests refused as too long."""

    def __init__(self, witness: Witness) -> None:
        self._problems = witness.problems
        self._seen = witness.seen
        self._refused = Counter[str]()
        self.counts = Counter[str](too_long_tried_again=0)
        witness.subscribe(events.TurnStarted, self._on_begun)
        witness.subscribe(events.TurnResumed, self._on_begun)
        witness.subscribe(events.RoundEnded, self._on_ended)

    def _on_begun(self, session: str, event: events.TurnStarted | events.TurnResumed) -> None:
        self._refused[session] = 0

    def _on_ended(self, session: str, event: events.RoundEnded) -> None:
        if event.round and event.fault is None:  # an answer in a turn, not a summary
            self._refused[session] = 0

    def record_refusal(self, session: str) -> None:
        """Record the refusal of a request. Requests for summaries do not count for the turn."""
        if self._seen[session].aside:
            return
        self._refused[session] += 1
        self.counts["too_long_tried_again"] += self._refused[session] == 2
        if self._refused[session] > TRIES:
            about = f"{session}: {self._refused[session]} times"
            self._problems.add("a too long request is retried at most three times", about)
