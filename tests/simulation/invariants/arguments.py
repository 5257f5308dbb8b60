"""Check arguments: a tool receives the arguments in the log, from the model or edited by an approval."""

import json
from collections import Counter
from collections.abc import Mapping

from actors.core.data.jsonio import Json
from actors.core.log import call_events, events
from actors.core.values.identity import CallId
from actors.strict.rules.base import Json as Value
from tests.simulation.witness import Witness


class ToolArguments:
    """Checks the arguments of tools."""

    def __init__(self, witness: Witness) -> None:
        self._problems = witness.problems
        self._seen = witness.seen
        self._logged: dict[tuple[str, CallId], Json] = {}
        self._edited: set[tuple[str, CallId]] = set()
        self.counts = Counter[str](edited_approvals=0, calls_in_threads=0, threads_that_were_late=0)
        witness.subscribe(call_events.Scheduled, self._on_scheduled)
        witness.subscribe(events.ApprovalDecided, self._on_decided)

    def _on_scheduled(self, session: str, event: call_events.Scheduled) -> None:
        self._logged[session, event.call_id] = event.arguments

    def _on_decided(self, session: str, event: events.ApprovalDecided) -> None:
        if event.arguments is not None:
            self._logged[session, event.call_id] = event.arguments
            self._edited.add((session, event.call_id))

    def check_start(self, session: str, key: str, arguments: Mapping[str, Value]) -> None:
        """Check the arguments of a tool, which contain the key of its call, against the log."""
        call = self._seen[session].keys.get(key)
        if call is None:
            return
        seen = self._seen[session]
        if call in seen.threaded:
            self.counts["calls_in_threads"] += 1
            self.counts["threads_that_were_late"] += call not in seen.open_calls
        self.counts["edited_approvals"] += (session, call) in self._edited
        logged = json.loads(self._logged[session, call])
        if logged != arguments:
            about = f"{session}: {call} was given {arguments}, and {logged} is in the log"
            self._problems.add("a tool receives the arguments in the log", about)
