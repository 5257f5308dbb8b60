"""Requests that a server refused as too long: one is tried again with a shorter history, thrice at most."""

from collections import Counter

from actors.core.log import events
from tests.simulation.witness import Witness

TRIES = 4
"""The request as it was, and over histories that are shorter each time."""


class TooLongRequests:
    """Watches what is refused as too long."""

    def __init__(self, witness: Witness) -> None:
        self._problems = witness.problems
        self._seen = witness.seen
        self._refused = Counter[str]()
        self.counts = Counter[str](too_long_tried_again=0)
        witness.subscribe(events.TurnStarted, self._begun)
        witness.subscribe(events.TurnResumed, self._begun)
        witness.subscribe(events.RoundEnded, self._ended)

    def _begun(self, session: str, event: events.TurnStarted | events.TurnResumed) -> None:
        self._refused[session] = 0

    def _ended(self, session: str, event: events.RoundEnded) -> None:
        if event.round and event.fault is None:  # an answer, and none to what asks for a summary
            self._refused[session] = 0

    def refused(self, session: str) -> None:
        """Note that the request of a session was refused. One for a summary is no request of the turn's own."""
        if self._seen[session].aside:
            return
        self._refused[session] += 1
        self.counts["too_long_tried_again"] += self._refused[session] == 2
        if self._refused[session] > TRIES:
            about = f"{session}: {self._refused[session]} times"
            self._problems.add("what is too long is tried again thrice at most", about)
