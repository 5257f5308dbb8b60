"""Check that requests contain the latest configured system prompt and tools, and no others.

A configuration of the caller takes effect with the next ask, as do changes of a toolset. Prompts and tool descriptions
have marks, which are searched for in each body.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from actors.core.log import events
from actors.core.stream_events.ask_events import SwitchOutcome
from actors.testing.simulation.model import tool_mark
from actors.testing.simulation.observer import Problems
from actors.testing.simulation.plan import PERMANENT_TOOL, TEMPORARY_TOOL
from tests.simulation.witness import Witness

PROMPT = b"[system "
OFFERED = b"[tool "


@dataclass(slots=True)
class _Configuration:
    """The configuration of a session, and the one that its caller `wants`. `tools` is None until they are known.

    `is_told`: the log contains the tools. Until then, those of a dynamic toolset are unknown. `held`: a wanted
    configuration that waits for the end of turn `until`.
    """

    system: str | None = None
    tools: tuple[str, ...] | None = None
    is_told: bool = False
    tools_off: bool = False
    ask: int = 0
    is_bound: bool = False
    record_configuration: dict[str, object] = field(default_factory=dict)
    held: dict[str, object] = field(default_factory=dict)
    until: int = 0

    def take_held(self) -> None:
        self.record_configuration.update(self.held)
        self.held = {}


class ConfiguredRequests:
    """Checks system prompts and tools.

    Args:
        witness: The witness of the run.
        own: Names of the user's tools, which have no marks.
        is_handing: Returns True if the turn of a session is about to be handed over.
    """

    def __init__(self, witness: Witness, own: Collection[str], is_handing: Callable[[str], bool]) -> None:
        self._own, self._is_handing = own, is_handing
        self._problems: Problems = witness.problems
        self.counts = Counter[str](configured=0, offered_anew=0)
        self._known: dict[str, _Configuration] = {}
        witness.subscribe(events.Opened, self._on_opened)
        witness.subscribe(events.Configured, self._on_configured)
        witness.subscribe(events.TurnStarted, self._on_bound)
        witness.subscribe(events.TurnEnded, self._on_ended)
        witness.subscribe(events.RequestSent, self._on_sent)

    def record_tools(self, session: str, tools: tuple[str, ...]) -> None:
        """Record the initial tools of a session, which its log does not contain."""
        self._known.setdefault(session, _Configuration()).tools = tools

    def record_configuration(self, session: str, outcome: SwitchOutcome, **wanted: object) -> None:
        """Record an accepted configuration of `system` or `tools`."""
        known = self._known[session]
        if outcome.status == "queued":
            known.held.update(wanted)
            known.until = outcome.turn
        else:
            known.take_held()
            known.record_configuration.update(wanted)

    def _on_opened(self, session: str, event: events.Opened) -> None:
        self._known.setdefault(session, _Configuration()).system = event.system

    def _on_configured(self, session: str, event: events.Configured) -> None:
        known = self._known[session]
        is_handing = self._is_handing(session)
        if known.is_bound and not is_handing:
            self._problems.add("the configuration is constant within a turn", session)
        before, known.system, known.tools, known.is_told = known.tools, event.system, event.tools, True
        self.counts["configured"] += 1
        self.counts["offered_anew"] += (TEMPORARY_TOOL in event.tools) != (TEMPORARY_TOOL in (before or ()))
        if is_handing:
            known.take_held()
            self._check_wanted(session, known)

    def _on_bound(self, session: str, event: events.TurnStarted) -> None:
        known = self._known[session]
        known.is_bound = True
        ask = event.ask or known.ask  # a compaction for the program has no ask
        if known.ask == ask:
            return  # the configuration of a turn stays for its ask
        known.ask = ask
        if (
            event.turn > known.until
        ):  # a turn may wait long before it is bound, and begins with the configuration of that moment
            known.take_held()
        self._check_wanted(session, known)

    def _check_wanted(self, session: str, known: _Configuration) -> None:
        wants, known.record_configuration = known.record_configuration, {}
        tools = tuple(name for name in known.tools or () if name != TEMPORARY_TOOL)
        if wants.get("tools", tools) != tools or wants.get("system", known.system) != known.system:
            self._problems.add("a configuration takes effect with the next ask", session)

    def _on_ended(self, session: str, event: events.TurnEnded) -> None:
        self._known[session].is_bound = False

    def _on_sent(self, session: str, event: events.RequestSent) -> None:
        self._known[session].tools_off = event.tools_off

    def request(self, session: str, ask: str, body: bytes) -> None:
        """Check a request body against the current configuration."""
        known = self._known[session]
        if body.count(PROMPT) != (known.system is not None) or (known.system or "").encode() not in body:
            self._problems.add("each request has the configured system prompt", session)
        if known.tools is None or known.tools_off:
            return
        count = body.count(OFFERED)
        if not known.is_told and PERMANENT_TOOL in known.tools:
            count -= body.count(tool_mark(TEMPORARY_TOOL).encode())
        marks = [tool_mark(name).encode() for name in known.tools if name not in self._own]
        if count != len(marks) or not all(mark in body for mark in marks):
            about = f"{session}: {count} are offered, {', '.join(known.tools)} are in force"
            self._problems.add("each request offers the configured tools", about)
