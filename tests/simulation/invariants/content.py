"""Check answers without content: they are requested again, and a complete ask reports a missing content."""

from collections import Counter

from actors.core.log import events
from actors.core.stream_events.ask_events import AskResult
from tests.simulation.witness import Witness

WITHOUT_CONTENT = ("empty", "unparsed")


class AnswerContent:
    """Checks answers without content."""

    def __init__(self, witness: Witness) -> None:
        self._problems = witness.problems
        self._running = Counter[str]()  # consecutive answers without content, by session
        self.counts = Counter[str](answers_without_content=0)
        witness.subscribe(events.TurnStarted, self._on_bound)
        witness.subscribe(events.RoundEnded, self._on_answered)
        witness.subscribe(events.TurnEnded, self._on_ended)

    def _on_bound(self, session: str, event: events.TurnStarted) -> None:
        self._running[session] = 0

    def _on_answered(self, session: str, event: events.RoundEnded) -> None:
        if not event.round:  # the round of a summary
            return
        lacks = event.incomplete in WITHOUT_CONTENT
        self.counts["answers_without_content"] += lacks
        self._running[session] = self._running[session] + 1 if lacks else 0
        if event.incomplete == "empty" and event.message is not None:
            self._problems.add("the history keeps no empty answer", f"{session}: turn {event.turn}")

    def _on_ended(self, session: str, event: events.TurnEnded) -> None:
        if event.status == "complete" and self._running[session] == 1:
            about = f"{session}: turn {event.turn}"
            self._problems.add("an answer without content is requested once more", about)

    def check_result(self, session: str, ask: str, result: AskResult) -> None:
        """Check the status of an ask against its answer."""
        is_plain = result.status == "complete" and result.incomplete is None and not result.error
        if is_plain and not result.text.strip():
            self._problems.add("a complete ask has an answer or a reason", f"{session}: {ask}")
