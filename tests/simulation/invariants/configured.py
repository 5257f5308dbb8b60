"""Check that requests contain the system prompt and the tools that were configured last, and no others.

What a caller configured is in force from the next ask on, and so is what a toolset offers anew.

Prompts and descriptions of tools have marks, which are looked for in each body.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from actors.core.log import events
from actors.core.stream_events.results import SwitchOutcome
from actors.testing.simulation.observer import Problems
from actors.testing.simulation.plan import AT_TIMES, OF_A_TOOLSET
from actors.testing.simulation.saying import tool_mark
from tests.simulation.witness import Witness

PROMPT = b"[system "
OFFERED = b"[tool "


@dataclass(slots=True)
class _Preamble:
    """The configuration of one session, and the one its caller `wants`. `tools` is None until they are known.

    `is_told`: the log says which tools. Until then nobody does of those that a toolset has at times. `held`: what is
    wanted only behind the turn `until`, which was in flight.
    """

    system: str | None = None
    tools: tuple[str, ...] | None = None
    is_told: bool = False
    tools_off: bool = False
    ask: int = 0
    is_bound: bool = False
    wants: dict[str, object] = field(default_factory=dict)
    held: dict[str, object] = field(default_factory=dict)
    until: int = 0

    def take_held(self) -> None:
        self.wants.update(self.held)
        self.held = {}


class ConfiguredRequests:
    """Checks system prompts and tools.

    Args:
        own: Names of the user's tools, which have no marks.
        is_handing: Says whether the turn of a session is about to be handed over.
    """

    def __init__(self, witness: Witness, own: Collection[str], is_handing: Callable[[str], bool]) -> None:
        self._own, self._is_handing = own, is_handing
        self._problems: Problems = witness.problems
        self.counts = Counter[str](configured=0, offered_anew=0)
        self._known: dict[str, _Preamble] = {}
        witness.subscribe(events.Opened, self._opened)
        witness.subscribe(events.Configured, self._configured)
        witness.subscribe(events.TurnStarted, self._bound)
        witness.subscribe(events.TurnEnded, self._ended)
        witness.subscribe(events.RequestSent, self._sent)

    def offered(self, session: str, tools: tuple[str, ...]) -> None:
        """Record the initial tools of a session, which its log does not contain."""
        self._known.setdefault(session, _Preamble()).tools = tools

    def wants(self, session: str, outcome: SwitchOutcome, **wanted: object) -> None:
        """Record an accepted configuration of `system` or `tools`."""
        known = self._known[session]
        if outcome.status == "queued":
            known.held.update(wanted)
            known.until = outcome.turn
        else:
            known.take_held()
            known.wants.update(wanted)

    def _opened(self, session: str, event: events.Opened) -> None:
        self._known.setdefault(session, _Preamble()).system = event.system

    def _configured(self, session: str, event: events.Configured) -> None:
        known = self._known[session]
        is_handing = self._is_handing(session)
        if known.is_bound and not is_handing:
            self._problems.add("a turn ends with what it began with", session)
        before, known.system, known.tools, known.is_told = known.tools, event.system, event.tools, True
        self.counts["configured"] += 1
        self.counts["offered_anew"] += (AT_TIMES in event.tools) != (AT_TIMES in (before or ()))
        if is_handing:
            known.take_held()
            self._is_as_wanted(session, known)

    def _bound(self, session: str, event: events.TurnStarted) -> None:
        known = self._known[session]
        known.is_bound = True
        if known.ask == event.ask:
            return  # what a turn began with holds for its ask
        known.ask = event.ask
        if (
            event.turn > known.until
        ):  # a turn may wait long before it is bound, and begins with what was in force then
            known.take_held()
        self._is_as_wanted(session, known)

    def _is_as_wanted(self, session: str, known: _Preamble) -> None:
        wants, known.wants = known.wants, {}
        tools = tuple(name for name in known.tools or () if name != AT_TIMES)
        if wants.get("tools", tools) != tools or wants.get("system", known.system) != known.system:
            self._problems.add("what was configured is in force from the next ask on", session)

    def _ended(self, session: str, event: events.TurnEnded) -> None:
        self._known[session].is_bound = False

    def _sent(self, session: str, event: events.RequestSent) -> None:
        self._known[session].tools_off = event.tools_off

    def request(self, session: str, ask: str, body: bytes) -> None:
        """Check a request body against the current configuration."""
        known = self._known[session]
        if body.count(PROMPT) != (known.system is not None) or (known.system or "").encode() not in body:
            self._problems.add("each request has the system prompt that was configured", session)
        if known.tools is None or known.tools_off:
            return
        count = body.count(OFFERED)
        if not known.is_told and OF_A_TOOLSET in known.tools:
            count -= body.count(tool_mark(AT_TIMES).encode())
        marks = [tool_mark(name).encode() for name in known.tools if name not in self._own]
        if count != len(marks) or not all(mark in body for mark in marks):
            about = f"{session}: {count} are offered, {', '.join(known.tools)} are in force"
            self._problems.add("each request offers the tools that were configured", about)
