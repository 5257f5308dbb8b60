"""Define observers, which a simulation calls for log events, requests, tool calls and results of asks.

`simulate` reports only problems that a caller, a tool or a provider can observe. The tests of this project attach an
observer that also checks the logs and the actors against the runtime's promises (`tests.simulation`).
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from actors.core.log.events import LogEvent
from actors.core.stream_events.results import AskResult, SwitchOutcome
from actors.core.values.content import ToolResult
from actors.runtime.runtime import Runtime
from actors.strict.rules.base import Json

MAX_LINES = 100
"""Maximum problems that a report lists. Further problems are only counted."""


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
