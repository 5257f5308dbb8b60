"""Store the logs of a simulation in memory, and pass each event to an observer before it is appended."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from actors.core.log import events
from actors.core.log.events import LogEvent
from actors.core.values.packed import unpack
from actors.journal.storage import Appended, Durability, Entry
from actors.journal.storage.memory import MemoryStorage
from actors.testing.simulation.observer import Observer

TASK = re.compile(r"\[task ([\w.]+)\]")
"""Matches the name of the task in the user message of a subagent."""


class SimulatedJournal(MemoryStorage):
    """A storage in memory that claims to be durable, so that sessions can hibernate.

    Attributes:
        counts: Number of events by class name.
        on_wait: Called with the id of a session when its turn begins to wait for results or approvals.
    """

    durability: Durability = "power"

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self._observer = observer
        self._ended: dict[str, list[int]] = {}
        self._sessions: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.on_wait: Callable[[str], None] = lambda session: None

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Pass the events to the observer, then append them."""
        for entry in entries:
            for event in entry.events:
                self.counts[type(event).__name__] += 1
                self._observer.on_event(entry.session, event)
                self._track_event(entry.session, event)
        return super().append(entries)

    def ended_turns(self, session: str) -> Sequence[int]:
        """Return the numbers of the ended turns in a session's history, without turns that a rewind removed."""
        return self._ended.get(session, ())

    def session_of(self, task: str) -> str:
        """Return the id of the subagent session that received the task named `task`."""
        return self._sessions[task]

    def _track_event(self, session: str, event: LogEvent) -> None:
        """Update the ended turns, the waiting turns and the sessions of subagents from an event."""
        match event:
            case events.TurnEnded(turn=turn):
                self._ended.setdefault(session, []).append(turn)
            case events.Rewound(turn=last):
                self._ended[session] = [turn for turn in self.ended_turns(session) if turn <= last]
            case events.AskStarted(message=message):
                if (task := TASK.search(unpack(message).text)) is not None:
                    self._sessions[task[1]] = session
            case events.TurnPaused():
                self.on_wait(session)
            case _:
                pass
