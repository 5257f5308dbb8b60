"""Check budgets: no request is sent after a budget is used up according to the log."""

from collections import Counter
from dataclasses import dataclass, field

from actors.core.log import events
from actors.core.settings.spending import Budget
from actors.core.values.identity import RUNTIME, Binding
from actors.core.values.stream import Usage
from actors.testing.simulation.plan import PRICE
from tests.simulation.witness import Witness


@dataclass(slots=True)
class _BudgetUse:
    """The budget and the usage of a session."""

    budget: Budget
    binding: Binding = RUNTIME
    rounds: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    @property
    def is_over(self) -> str:
        """The exhausted part of the budget; empty if there is none."""
        budget, tokens = self.budget, self.usage.input_tokens + self.usage.output_tokens
        money = (self.usage.input_tokens * PRICE.input + self.usage.output_tokens * PRICE.output) / 1e6
        used = {"rounds": self.rounds, "tokens": tokens, "money": money, "seconds": self.seconds}
        limits = {name: getattr(budget, name) for name in used}
        return next((name for name, most in limits.items() if most is not None and used[name] >= most), "")


class SessionBudgets:
    """Checks sessions with a budget."""

    def __init__(self, witness: Witness) -> None:
        self._problems = witness.problems
        self._accounts: dict[str, _BudgetUse] = {}
        self.counts = Counter[str](budgets=0, budgets_used_up=0)
        witness.subscribe(events.Opened, self._on_opened)
        witness.subscribe(events.TurnStarted, self._on_bound)
        witness.subscribe(events.RequestSent, self._on_sent)
        witness.subscribe(events.RoundEnded, self._on_answered)
        witness.subscribe(events.TurnPaused, self._on_usage)
        witness.subscribe(events.TurnEnded, self._on_usage)
        witness.subscribe(events.SubagentUsage, self._on_delegated)

    def _on_opened(self, session: str, event: events.Opened) -> None:
        if event.budget is not None:
            self.counts["budgets"] += 1
            self._accounts[session] = _BudgetUse(event.budget)

    def _on_bound(self, session: str, event: events.TurnStarted) -> None:
        if (account := self._accounts.get(session)) is not None:
            account.binding = event.binding

    def _on_sent(self, session: str, event: events.RequestSent) -> None:
        account = self._accounts.get(session)
        if account is not None and account.is_over:
            about = f"{session}: its {account.is_over} are used up, round {event.round} of turn {event.turn}"
            self._problems.add("no request is sent when a budget is used up", about)

    def _on_answered(self, session: str, event: events.RoundEnded) -> None:
        account = self._accounts.get(session)
        if account is not None and account.binding != RUNTIME:
            account.rounds += 1
            account.usage += event.usage

    def _on_usage(self, session: str, event: events.TurnPaused | events.TurnEnded) -> None:
        if (account := self._accounts.get(session)) is not None:
            account.seconds += event.seconds

    def _on_delegated(self, session: str, event: events.SubagentUsage) -> None:
        if (account := self._accounts.get(session)) is not None:
            account.rounds += event.used.rounds
            for _, usage in event.used.usage:
                account.usage += usage

    def check_refusal(self, session: str) -> None:
        """Check a budget error against the usage."""
        account = self._accounts.get(session)
        self.counts["budgets_used_up"] += 1
        if account is None or not account.is_over:
            self._problems.add("an ask is refused only when a budget is used up", session)
