"""Count and log the asks of one session, and track whether the session is idle, running an ask or waiting.

The record survives crashes and restarts of the session's actors. The counters belong to the runtime.
"""

from collections.abc import Callable
from typing import cast

from msgspec import Struct, field

from actors.core.session.phases import Phase
from actors.core.stats.measures import AskCounts, AskOutcome, SessionStage
from actors.core.stream_events.results import AskResult, PendingCall
from actors.errors import ActorsError
from actors.telemetry import logger

_STAGES: dict[Phase, SessionStage] = {
    "asking": "asking",
    "recovering": "asking",
    "ending": "asking",
    "awaiting": "waiting",
}
"""The stage that a phase counts as. All other phases count as idle."""


class AskRecord(Struct):
    """Counts the asks of one session, and tracks its stage.

    Args:
        session: Id of the session.
        counts: The counters of the runtime.
        advise: Returns advice about a failed ask, for the log.
        pending_calls: The calls that the session's turn waits for.
    """

    session: str = ""
    counts: AskCounts = field(default_factory=AskCounts)
    advise: Callable[[AskResult], str] = lambda _: ""
    pending_calls: tuple[PendingCall, ...] = ()
    _stage: SessionStage = "idle"

    def enter(self, phase: Phase) -> None:
        """Record the phase that the session has entered."""
        stage = _STAGES.get(phase, "idle")
        if stage != self._stage:
            self.counts.stages[self._stage] -= 1
            self.counts.stages[stage] += 1
            self._stage = stage

    def queue(self, more: int) -> None:
        """Add `more` to the number of queued asks; it may be negative."""
        self.counts.queued += more

    def end(self, result: AskResult) -> None:
        """Record the result of an ask. A result with the status `awaiting` is not counted: the ask has not ended."""
        if result.status in self.counts.outcomes:
            self.counts.outcomes[cast("AskOutcome", result.status)] += 1
        if result.status == "failed":
            logger.ask_failed(self.session, result, self.advise)
        elif result.status == "interrupted":
            logger.ask_interrupted(self.session, result)

    def refuse(self, error: ActorsError) -> None:
        """Record that an ask was rejected, or was queued for longer than its `timeout`."""
        self.counts.outcomes["refused"] += 1
        logger.ask_refused(self.session, error)

    def drop(self, asks: int) -> None:
        """Record accepted asks that will not end, because their session has ended or was released."""
        self.counts.outcomes["dropped"] += asks
