"""Define observers, which a simulation calls for log events, requests, tool calls and results of asks.

`simulate` reports only problems that a caller, a tool or a provider can observe. The tests of this project attach an
observer that also checks the logs and the actors against the runtime's promises (`tests.simulation`). The logs are
stored in memory, and each event is passed to the observer before it is appended.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from actors.core.log import events
from actors.core.log.events import LogEvent
from actors.core.stream_events.ask_events import AskResult, SwitchOutcome
from actors.core.values.content import ToolResult
from actors.core.values.packed import unpack
from actors.journal.storage import Appended, Durability, Entry
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.runtime import Runtime
from actors.strict.rules.base import Json

MAX_LINES = 100
"""Maximum problems that a report lists. Further problems are only counted."""
TASK = re.compile(r"\[task ([\w.]+)\]")
"""Matches the name of the task in the user message of a subagent."""


class Problems:
    """The broken invariants of a simulation, one line each. A line begins with the name of the invariant."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count: int = 0

    def add(self, invariant: str, details: str) -> None:
        """Record a broken invariant. `details` names the session and the values that broke the invariant."""
        self.count += 1
        if len(self.lines) < MAX_LINES:
            self.lines.append(f"{invariant}: {details}")


class Observer:
    """The base class of observers, whose methods do nothing."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts for the simulation's report, by name."""
        return {}

    def on_event(self, session: str, event: LogEvent) -> None:
        """Observe an event just before it is appended to the log of a session."""

    def on_request(self, session: str, backend: str, ask: str, body: bytes) -> None:
        """Observe a request body before its server receives it. `ask` is the name of the ask."""

    def on_request_too_long(self, session: str) -> None:
        """Observe that a server rejected a request of a session as too long."""

    def on_tool_start(self, session: str, key: str, arguments: Mapping[str, Json]) -> None:
        """Observe the start of a tool with its arguments. `key` is the name of the call."""

    def watch_write(self, session: str, key: str, resource: str) -> AbstractContextManager[None]:
        """Return a context manager that is open while a tool writes to a resource."""
        return nullcontext()

    def on_opening(self, session: str, tools: tuple[str, ...]) -> None:
        """Observe that a session is about to be opened. `tools` contains the names of its tools."""

    def on_configured(self, session: str, outcome: SwitchOutcome, changes: Mapping[str, object]) -> None:
        """Observe the outcome of `Session.configure`. `changes` contains the new `system` and `tools`."""

    def on_program_call(self, session: str, key: str, result: ToolResult) -> None:
        """Observe the result of `Session.call_tool`. `key` is the name of the call."""

    def on_ask_result(self, session: str, ask: str, result: AskResult, *, is_caller: bool) -> None:
        """Observe a result of an ask.

        `is_caller` is True if the caller of the ask received the result. It is False if the program that resolved the
        pending calls received it.
        """

    def on_over_budget(self, session: str) -> None:
        """Observe that an ask of a session was rejected because a budget is used up."""

    async def finish(self, runtime: Runtime) -> None:
        """Check the runtime when every session is idle, before the runtime ends."""


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
