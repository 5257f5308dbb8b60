"""Check subagents: the session of a subagent and all its calls end before the calling tool call."""

import json
import re
from collections import Counter
from dataclasses import dataclass

from actors.core.log import call_events, events
from actors.core.values.identity import CallId, number_of
from actors.core.values.packed import unpack
from actors.testing.simulation.forms import OUTPUT_FORMATS
from actors.testing.simulation.plan import subagent_form
from tests.simulation.witness import ASK, TASK, Witness

_CALL = re.compile(r"-c(\d+)")
"""Pattern of the call in the id of a subagent."""


@dataclass(slots=True)
class _Subagent:
    """A session that the tool of a call opened."""

    above: str
    call: int
    task: str = ""


class EndedSubagents:
    """Checks sessions that tools open."""

    def __init__(self, witness: Witness) -> None:
        self._problems = witness.problems
        self._seen = witness.seen
        self._keys: dict[str, str] = {}
        self._below: dict[str, _Subagent] = {}
        self._open: dict[str, set[str]] = {}
        self._tasks: dict[tuple[str, CallId], str] = {}
        self.counts = Counter[str](
            subagents=0, subagents_that_answered=0, subagents_with_form=0, subagents_that_were_ended=0
        )
        witness.subscribe(events.Opened, self._on_opened)
        witness.subscribe(events.AskStarted, self._on_submitted)
        witness.subscribe(events.Closed, self._on_closed)
        witness.subscribe(call_events.Scheduled, self._on_scheduled)
        witness.subscribe(call_events.Returned, self._on_returned)
        witness.subscribe(call_events.Failed, self._on_ended)
        witness.subscribe(call_events.Cancelled, self._on_ended)
        witness.subscribe(events.TurnEnded, self._on_turn_ended)

    def _on_opened(self, session: str, event: events.Opened) -> None:
        self._keys[event.key] = session
        if not event.parent_key:
            return
        above, named = self._keys[event.parent_key], _CALL.search(session)
        call = int(named[1]) if named else 0
        self._below[session] = _Subagent(above, call)
        self._open.setdefault(above, set()).add(session)
        self.counts["subagents"] += 1
        if not any(number_of(each) == call for each in self._seen[above].open_calls):
            self._problems.add("a subagent is opened for a call that runs", session)

    def _on_submitted(self, session: str, event: events.AskStarted) -> None:
        if session in self._below and (named := ASK.search(unpack(event.message).text)) is not None:
            self._below[session].task = named[1]

    def _on_closed(self, session: str, event: events.Closed) -> None:
        if (below := self._below.get(session)) is None:
            return
        self._open.get(below.above, set()).discard(session)
        if self._seen[session].open_calls:
            self._problems.add("a subagent ends with all its calls closed", session)

    def _on_scheduled(self, session: str, event: call_events.Scheduled) -> None:
        if (named := TASK.search(event.arguments)) is not None:
            self._tasks[session, event.call_id] = named[1].decode()

    def _on_returned(self, session: str, event: call_events.Returned) -> None:
        self._on_ended(session, event)
        task = self._tasks.get((session, event.call_id))
        if task is None:
            return
        self.counts["subagents_that_answered"] += 1
        form = subagent_form(int(session[1:]))
        self.counts["subagents_with_form"] += form != ""
        answered = json.loads(event.content)
        if answered != OUTPUT_FORMATS[form].value(task) if form else task not in answered:
            self._problems.add("a call returns what its subagent answered", f"{session}: {event.call_id}")

    def _on_ended(
        self, session: str, event: call_events.Returned | call_events.Failed | call_events.Cancelled
    ) -> None:
        if (session, event.call_id) not in self._tasks:
            return
        self.counts["subagents_that_were_ended"] += not isinstance(event, call_events.Returned)
        number = number_of(event.call_id)
        late = [name for name in self._open.get(session, ()) if self._below[name].call == number]
        if late and not (
            isinstance(event, call_events.Cancelled) and event.reason == "outcome_unknown"
        ):  # the session crashed
            self._problems.add("a call does not end before its subagent", f"{session}: {late}")

    def _on_turn_ended(self, session: str, event: events.TurnEnded) -> None:
        if event.status == "interrupted":
            self._open.pop(session, None)  # subagents are cancelled, and the next turn does not wait for them
        elif self._open.get(session):
            self._problems.add("a turn does not end before its subagents", f"{session}: turn {event.turn}")
