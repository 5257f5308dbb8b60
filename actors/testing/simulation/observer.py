"""Watch a simulation: an observer is told of log events, requests, tools and the ends of asks.

`simulate` reports only what a caller, a tool or a provider can see. The tests of this project attach an observer that
also compares the logs and the actors of the run with the promises of the runtime (`tests.simulation`).
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from actors.core.log.events import LogEvent
from actors.core.stream_events.results import AskResult, SwitchOutcome
from actors.core.values.content import ToolResult
from actors.runtime.runtime import Runtime
from actors.strict.rules.base import Json

MAX_LINES = 100
"""Problems that a report lists; further ones are only counted."""


class Problems:
    """The invariants that a run broke: a line for each, which begins with the name of the invariant."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count: int = 0

    def add(self, invariant: str, about: str) -> None:
        """Record that an invariant was broken."""
        self.count += 1
        if len(self.lines) < MAX_LINES:
            self.lines.append(f"{invariant}: {about}")


class Observer:
    """Base class of observers. Its methods do nothing."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers that the report of the run shows, by name."""
        return {}

    def event(self, session: str, event: LogEvent) -> None:
        """Receive an event just before it is appended to the log of a session."""

    def request(self, session: str, backend: str, ask: str, body: bytes) -> None:
        """Receive a request body before its server does. `ask` is the name of the ask that it belongs to."""

    def request_too_long(self, session: str) -> None:
        """Receive the news that a server refused a request of a session as too long."""

    def tool_started(self, session: str, key: str, arguments: Mapping[str, Json]) -> None:
        """Receive the arguments with which a tool of the simulation starts. `key` names the call."""

    def writing(self, session: str, key: str, resource: str) -> AbstractContextManager[None]:
        """Return a context that is entered while a tool writes to a resource."""
        return nullcontext()

    def opening(self, session: str, tools: tuple[str, ...]) -> None:
        """Receive the names of the tools with which a session is about to be opened."""

    def configured(self, session: str, outcome: SwitchOutcome, changes: Mapping[str, object]) -> None:
        """Receive the outcome of `Session.configure`, and the new `system` and `tools`."""

    def program_call(self, session: str, key: str, result: ToolResult) -> None:
        """Receive the result of `Session.call_tool`. `key` names the call."""

    def ask_result(self, session: str, ask: str, result: AskResult, *, is_caller: bool) -> None:
        """Receive a result of an ask: `is_caller` if its caller got it, not the program that resolved its calls."""

    def over_budget(self, session: str) -> None:
        """Receive the news that an ask was refused because a budget is used up."""

    async def finish(self, runtime: Runtime) -> None:
        """Check the runtime after the last session came to rest, before the runtime is left."""
