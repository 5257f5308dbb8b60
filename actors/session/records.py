"""Count and log the asks of one session: their outcomes, the queued asks, and the stage of the session.

A session keeps its tracker when its actors are stopped or restarted. All sessions of a runtime add to the same counts.
"""

from collections.abc import Callable
from typing import cast

from msgspec import Struct, field

from actors.core.session.phases import Phase
from actors.core.stats.measures import AskCounts, AskOutcome, SessionStage
from actors.core.stream_events.ask_events import AskResult, PendingCall
from actors.errors import ActorsError
from actors.telemetry import logger

_STAGES: dict[Phase, SessionStage] = {
    "asking": "asking",
    "recovering": "asking",
    "ending": "asking",
    "awaiting": "waiting",
}
"""The stage of a session in each phase; in all other phases the session is idle."""


class SessionAskTracker(Struct):
    """Counts the asks of one session, and tracks the session's stage.

    Args:
        session: The session's id.
        counts: The counts of the runtime.
        advise: Returns a suggested fix for an ask that failed.
        pending_calls: The calls that the session's turn waits for.
    """

    session: str = ""
    counts: AskCounts = field(default_factory=AskCounts)
    advise: Callable[[AskResult], str] = lambda _: ""
    pending_calls: tuple[PendingCall, ...] = ()
    _stage: SessionStage = "idle"

    def record_phase(self, phase: Phase) -> None:
        """Update the counts of sessions per stage when the session enters a phase."""
        stage = _STAGES.get(phase, "idle")
        if stage != self._stage:
            self.counts.stages[self._stage] -= 1
            self.counts.stages[stage] += 1
            self._stage = stage

    def change_queued(self, difference: int) -> None:
        """Change the number of queued asks by `difference`, which is negative if asks leave the queue."""
        self.counts.queued += difference

    def record_end(self, result: AskResult) -> None:
        """Count and log the outcome of an ask. A paused ask has not ended and is not counted."""
        if result.status in self.counts.outcomes:
            self.counts.outcomes[cast("AskOutcome", result.status)] += 1
        if result.status == "failed":
            logger.ask_failed(self.session, result, self.advise)
        elif result.status == "interrupted":
            logger.ask_interrupted(self.session, result)

    def record_refusal(self, error: ActorsError) -> None:
        """Count and log an ask that was rejected, or that timed out in the queue while a turn was paused."""
        self.counts.outcomes["refused"] += 1
        logger.ask_refused(self.session, error)

    def record_dropped(self, asks: int) -> None:
        """Count this number of accepted asks as dropped, because their session ended or hibernates."""
        self.counts.outcomes["dropped"] += asks
