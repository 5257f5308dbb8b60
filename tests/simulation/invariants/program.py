"""Check calls by the program: each is a turn without a model or approval, and its result is in the log."""

from collections import Counter

from actors.core.log import call_events, events
from actors.core.values.content import ToolResult
from actors.core.values.identity import RUNTIME
from tests.simulation.witness import Witness


class ProgramCalls:
    """Checks calls of `Session.call_tool`."""

    def __init__(self, witness: Witness) -> None:
        self._problems = witness.problems
        self._running: dict[str, bool] = {}
        self._results: dict[tuple[str, str], ToolResult] = {}
        self.counts = Counter[str](program_calls=0, program_calls_without_result=0)
        witness.subscribe(events.TurnStarted, self._on_bound)
        witness.subscribe(events.RequestSent, self._on_request_or_approval)
        witness.subscribe(events.ApprovalAsked, self._on_request_or_approval)
        witness.subscribe(call_events.Returned, self._on_ended)
        witness.subscribe(call_events.Failed, self._on_ended)
        witness.subscribe(call_events.Denied, self._on_ended)
        witness.subscribe(call_events.Refused, self._on_ended)

    def _on_bound(self, session: str, event: events.TurnStarted) -> None:
        self._running[session] = event.binding == RUNTIME

    def _on_request_or_approval(self, session: str, event: events.LogEvent) -> None:
        if self._running.get(session):
            about = f"{session}: {type(event).__name__}"
            self._problems.add("a program's call needs neither model nor approval", about)

    def _on_ended(self, session: str, event: call_events.Completion) -> None:
        if self._running.get(session):
            self._results[session, event.call_id] = event.result

    def check_result(self, session: str, key: str, result: ToolResult) -> None:
        """Check the result that the program received against the log."""
        known = self._results.get((session, result.call_id))
        self.counts["program_calls"] += 1
        if known is None:
            self.counts["program_calls_without_result"] += 1
        elif known != result:
            self._problems.add("a program receives the result in the log", f"{session}: {key}")
