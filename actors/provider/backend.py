"""What a session knows of a backend: what requests to it are made with, and who can tell what a target means."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from actors.adapters.adapter import Adapter, Prepared
from actors.adapters.outputs import means
from actors.adapters.request import Request, Settings
from actors.adapters.settings import can_force
from actors.core.dialects.caching import lane_key
from actors.core.history.compaction import WORTH, Compaction, saved
from actors.core.history.estimate import Calibrations, estimated
from actors.core.lanes.lane import Rendered
from actors.core.ledger import Ledger
from actors.core.log.events import Omission
from actors.core.policy.routing import Pool, Rates
from actors.core.session.state import SessionState
from actors.core.settings.asking import Asked
from actors.core.settings.spending import Budget, why_over
from actors.core.settings.values import ToolChoice
from actors.core.stats.stats import ToolCounts
from actors.core.transcript.diagnostics import Refusal
from actors.core.transcript.transcript import NO_FACTS
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.errors import ConfigError
from actors.kernel import Ref
from actors.provider.budgets import SharedBudget
from actors.provider.learned import BindingFacts
from actors.provider.places import PoolPlaces
from actors.provider.provider_actor import ProviderCommand
from actors.tools.handover import Handover


class ResolvedBackend(Struct):
    """What requests to one backend are made with, for sessions with the same tools and system prompt."""

    binding: Binding
    adapter: Adapter
    settings: Settings
    counts: ToolCounts = field(default_factory=ToolCounts)
    facts: BindingFacts = field(default_factory=BindingFacts)
    _prepared: tuple[object, Prepared] | None = None

    def request(
        self,
        rendered: Rendered,
        session: str,
        choice: ToolChoice | None = None,
        asked: Asked | None = None,
        omitted: Sequence[Omission] = (),
    ) -> Request:
        """Return the request that sends what was rendered for a session, with the settings of its ask.

        `omitted`: parameters that it leaves out because the provider refused them (`omissions`).
        """
        facts = rendered.facts._replace(lane=lane_key(session, self.binding))
        wanted = choice, asked, omitted, NO_FACTS.tools if self.settings.tools else facts.tools
        if (
            self._prepared is None or self._prepared[0] != wanted
        ):  # most requests are made with what the last was
            settings = self.asked_settings(choice, asked)
            if omitted:
                settings = replace(settings, omitted=tuple([omission.name for omission in omitted]))
            self._prepared = wanted, self.adapter.prepared(settings, facts.tools)
        return self._prepared[1].request(rendered.segments, facts)

    def needs_words(self, asked: Asked | None) -> bool:
        """Say whether the form of an ask's answer is told in words here; no if it has none."""
        if asked is None or asked.output is None:
            return False
        settings = self.asked_settings(asked.tool_choice, asked)
        if any(omission.name == "output" for omission in self.facts.omissions(settings)):
            return True
        return means(settings, self.adapter.dialect) == "prompt"

    def forces_in_words(self, asked: Asked | None) -> ToolChoice | None:
        """Return the tool choice of an ask if the model accepts none that forces a tool; None if it does, or need not.

        The instruction stands in for the choice: taking the other tools away would break reasoning bound to them.
        """
        if asked is None or asked.tool_choice in (None, "auto", "none") or not self.settings.tools:
            return None
        settings = self.asked_settings(asked.tool_choice, asked)
        is_refused = any(omission.name == "tool_choice" for omission in self.facts.omissions(settings))
        return asked.tool_choice if is_refused or not can_force(settings, self.adapter.dialect) else None

    def omissions(self, choice: ToolChoice | None, asked: Asked | None) -> tuple[Omission, ...]:
        """Return the parameters that a request leaves out because the provider refused them before."""
        return self.facts.omissions(self.asked_settings(choice, asked))

    def asked_settings(self, choice: ToolChoice | None, asked: Asked | None) -> Settings:
        """Return the backend's settings with those of an ask in their place."""
        changes = {} if asked is None else asked.of_request
        if choice is not None:
            changes["tool_choice"] = choice
        return replace(self.settings, **changes) if changes else self.settings


def check_priced(
    resolver: "Resolver", target: str, tenant: str, budget: Budget | None, *, fits: bool = True
) -> None:
    """Refuse a target that a budget of money cannot count: the session's own, or that of its tenant or pool.

    So is a pool of the cheapest where nobody knows a price. `fits` is that of `Resolver.pool`.

    Raises:
        ConfigError: A member of it has no price, or none has; or what `Resolver.pool` raises.
    """
    pool = resolver.pool(target, fits=fits)
    if pool.policy == "cheapest" and not any(
        resolver.rates(resolver.backend(member).binding) for member in pool.members
    ):
        raise ConfigError(
            f"Pool {pool.name!r} goes to its cheapest member, and nobody gave a price of any; add price to its "
            "backends, or [prices], or Runtime(prices=...)"
        )
    is_counted = budget is not None and budget.money is not None
    if not (is_counted or any(each.counts_money for each in resolver.budgets(tenant, target))):
        return
    for member in pool.members:
        binding = resolver.backend(member).binding
        if resolver.cost(binding, Usage()) is None:
            raise ConfigError(
                f"A budget of money needs the price of model {binding.model!r} (backend {member!r}), which nobody "
                "gave; add it to [prices] or to Runtime(prices=...)"
            )


def over_budget(resolver: "Resolver", state: SessionState) -> str | None:
    """Return which part of a session's budget is used up, in one line; None if it has some left, or none."""
    if state.budget is None or state.used is None:
        return None
    return why_over(state.budget, state.used, resolver.cost)


def expected(resolver: "Resolver", state: SessionState, known: Ledger, binding: Binding) -> int:
    """Return the tokens that a session's request to a binding would have now, as far as one can tell."""
    ratio = resolver.calibrations[binding].ratio
    return estimated(state.history, known, state.measured, binding, resolver.preamble_size, ratio)


def too_full(
    resolver: "Resolver", state: SessionState, known: Ledger, binding: Binding, before: int
) -> float | None:
    """Return the tokens from which a history is made shorter, if it has them and it is worth it, up to `before`."""
    settings, window = resolver.compaction, resolver.window(binding)
    if settings.threshold is None or window is None:
        return None
    most = window * settings.threshold
    if expected(resolver, state, known, binding) < most:
        return None
    ratio = resolver.calibrations[binding].ratio
    return most if saved(state.history, known, settings, before, ratio) >= most * WORTH else None


class Resolver(Protocol):
    """What the runtime knows of targets, for one session."""

    @property
    def handovers(self) -> Mapping[str, Handover]:
        """The tools that hand the conversation over, and to whom."""

    @property
    def places(self) -> PoolPlaces:
        """Where sessions begin in pools that spread them."""

    @property
    def preamble(self) -> str:
        """Digest of the system prompt and of what requests say of the tools."""

    @property
    def compaction(self) -> Compaction:
        """When and how histories are made shorter."""

    def window(self, binding: Binding) -> int | None:
        """Return the tokens of the context window by which histories for a binding are made shorter, if it has one."""

    def known_window(self, binding: Binding) -> int | None:
        """Return how many tokens a request to a binding and its answer may have together, if that is known."""

    @property
    def preamble_size(self) -> int:
        """Bytes of the system prompt and of what requests say of the tools."""

    @property
    def calibrations(self) -> Calibrations:
        """What was reported of requests, by binding."""

    def budgets(self, tenant: str, target: str) -> tuple[SharedBudget, ...]:
        """Return the budgets of a tenant and of a pool, where they have one."""

    def member(self, binding: Binding) -> str:
        """Return what names a binding's backend as a pool's member."""

    def pool(self, target: str, *, fits: bool = True) -> Pool:
        """Return the pool of a target; a single backend is a pool of itself.

        Args:
            target: As the user named it.
            fits: Refuse it if a member takes fewer tools than there are, or no member takes any. Else that is found
                when it is asked. In a pool, members that take no tools are skipped.

        Raises:
            ConfigError: There is no such target, or it cannot be used.
        """

    def backend(self, member: str, dialect: str | None = None) -> ResolvedBackend:
        """Return what requests to a pool's member are made with. Raises what `pool` raises.

        `dialect`: in which an open turn began that goes on; None for the one that the member speaks now.
        """

    def provider(self, member: str, binding: Binding) -> Ref[ProviderCommand]:
        """Return who sends requests to a pool's member. Raises what `pool` raises."""

    def rates(self, binding: Binding) -> Rates | None:
        """Return what a binding charges, if that is known."""

    def cost(self, binding: Binding, usage: Usage) -> float | None:
        """Return what usage of a binding costs; None where its price is not known."""

    def refused(self, refusal: Refusal) -> None:
        """Count and keep a transcript that was refused for its structure: our bug, with its evidence."""
