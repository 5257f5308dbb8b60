"""Check structured answers: an ask with an output format ends with a value or an error after a few corrections."""

from collections import Counter

from actors.core.log import events
from actors.core.stream_events.ask_events import AskResult
from actors.core.values.packed import unpack
from actors.testing.simulation.forms import OUTPUT_FORMATS
from actors.testing.simulation.plan import FeatureLookup
from tests.simulation.witness import Witness

CORRECTIONS = 3
"""The default number of corrections of an answer."""
CORRECTED = "Your answer"
"""The beginning of the feedback to the model."""


class AnswerForms:
    """Checks the results of asks with an output format."""

    def __init__(self, witness: Witness, feature_of: FeatureLookup) -> None:
        self._problems = witness.problems
        self._feature_of = feature_of
        self._corrected = Counter[tuple[str, int]]()
        self.counts = Counter[str](answers_with_form=0, answers_corrected=0, answers_without_form=0)
        witness.subscribe(events.FormatRequested, self._on_instructed)

    def _on_instructed(self, session: str, event: events.FormatRequested) -> None:
        if not unpack(event.message).text.startswith(CORRECTED):
            return
        self.counts["answers_corrected"] += 1
        self._corrected[session, event.ask] += 1
        if self._corrected[session, event.ask] > CORRECTIONS:
            self._problems.add("the corrections of an answer are bounded", f"{session}: ask {event.ask}")

    def check_result(self, session: str, ask: str, result: AskResult) -> None:
        """Check the result of an ask against its output format."""
        feature = self._feature_of(ask, "output")
        wanted = (
            None
            if feature is None or result.status != "complete"
            else OUTPUT_FORMATS[feature.value].value(ask)
        )
        if result.output != wanted or type(result.output) is not type(wanted):
            about = f"{session}: {ask} is {result.status} with {result.output!r:.80}"
            self._problems.add("only complete answers have the requested format", about)
        if feature is not None:
            self.counts["answers_with_form"] += result.status == "complete"
            self.counts["answers_without_form"] += "does not have the required format" in result.error
