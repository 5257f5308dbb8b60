"""What is counted and logged of one session's asks: how each came out, how many wait, and what the session is at.

A session has one for its life, whatever becomes of its actors. The counts are those of the whole runtime.
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
"""What a session is at in a phase; in all others it is idle."""


class AskRecord(Struct):
    """One session's.

    Args:
        session: Its id.
        counts: Where it is counted.
        advise: Returns what may help an ask that failed.
        pending_calls: The calls that the session's turn waits for.
    """

    session: str = ""
    counts: AskCounts = field(default_factory=AskCounts)
    advise: Callable[[AskResult], str] = lambda _: ""
    pending_calls: tuple[PendingCall, ...] = ()
    _stage: SessionStage = "idle"

    def enter(self, phase: Phase) -> None:
        """Note in which phase the session is now."""
        stage = _STAGES.get(phase, "idle")
        if stage != self._stage:
            self.counts.stages[self._stage] -= 1
            self.counts.stages[stage] += 1
            self._stage = stage

    def queue(self, more: int) -> None:
        """Note that so many more asks wait, or fewer."""
        self.counts.queued += more

    def end(self, result: AskResult) -> None:
        """Note how an ask came out. One that awaits its caller has not ended."""
        if result.status in self.counts.outcomes:
            self.counts.outcomes[cast("AskOutcome", result.status)] += 1
        if result.status == "failed":
            logger.ask_failed(self.session, result, self.advise)
        elif result.status == "interrupted":
            logger.ask_interrupted(self.session, result)

    def refuse(self, error: ActorsError) -> None:
        """Note that an ask was not accepted, or waited too long behind a turn that waits for its caller."""
        self.counts.outcomes["refused"] += 1
        logger.ask_refused(self.session, error)

    def drop(self, asks: int) -> None:
        """Note that so many accepted asks do not come to their end: their session has ended, or is put away."""
        self.counts.outcomes["dropped"] += asks
