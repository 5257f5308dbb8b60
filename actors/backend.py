"""What a session knows of a backend: what requests to it are made with, and who can tell what a target means."""

from dataclasses import dataclass, field, replace
from typing import Protocol

from actors.adapters.adapter import Adapter, Prepared
from actors.adapters.request import Request, Settings
from actors.core.caching import lane_key
from actors.core.diagnostics import Refusal
from actors.core.identity import Binding
from actors.core.lane import Rendered
from actors.core.routing import Pool, Rates
from actors.core.stats import ToolCounts
from actors.core.transcript import NO_FACTS
from actors.kernel import Ref
from actors.provider import ProviderCommand


@dataclass(slots=True)
class ResolvedBackend:
    """What requests to one backend are made with, for sessions with the same tools and system prompt."""

    binding: Binding
    adapter: Adapter
    settings: Settings
    counts: ToolCounts = field(default_factory=ToolCounts)
    _prepared: tuple[tuple[bool, frozenset[str]], Prepared] | None = None

    def request(self, rendered: Rendered, session: str, *, tools_off: bool = False) -> Request:
        """Return the request that sends what was rendered for a session."""
        facts = rendered.facts._replace(lane=lane_key(session, self.binding))
        asked = tools_off, NO_FACTS.tools if self.settings.tools else facts.tools
        if (
            self._prepared is None or self._prepared[0] != asked
        ):  # most requests are made with what the last was
            settings = replace(self.settings, tool_choice="none") if tools_off else self.settings
            self._prepared = asked, self.adapter.prepared(settings, facts.tools)
        return self._prepared[1].request(rendered.segments, facts)


class Resolver(Protocol):
    """What the runtime knows of targets, for one session."""

    def pool(self, target: str) -> Pool:
        """Return the pool of a target; a single backend is a pool of itself.

        Raises:
            ConfigError: There is no such target, or it cannot be used.
        """

    def backend(self, member: str) -> ResolvedBackend:
        """Return what requests to a pool's member are made with. Raises what `pool` raises."""

    def provider(self, member: str, binding: Binding) -> Ref[ProviderCommand]:
        """Return who sends requests to a pool's member. Raises what `pool` raises."""

    def rates(self, binding: Binding) -> Rates | None:
        """Return what a binding charges, if that is known."""

    def refused(self, refusal: Refusal) -> None:
        """Count and keep a transcript that was refused for its structure: our bug, with its evidence."""
