"""Check shared budgets: no session of a tenant sends a request after their shared budget is used up.

The logs of all these sessions give the usage. They do not show the usage of requests in flight, so only requests sent
after the exhaustion count, by the virtual clock.
"""

from collections import Counter
from math import inf

import anyio

from actors.core.log import events
from actors.core.values.identity import RUNTIME
from actors.testing.simulation.plan import SHARED_BUDGET, TENANT
from tests.simulation.witness import Witness


class TenantBudget:
    """Checks the sessions of the tenant with a budget."""

    def __init__(self, witness: Witness) -> None:
        self._problems = witness.problems
        self._refused: list[str] = []
        self._bound: dict[str, bool] = {}
        self._over = inf
        self.tokens = 0
        """The usage of these sessions in tokens."""
        self.counts = Counter[str](sessions_of_a_tenant=0, shared_budgets_used_up=0)
        witness.subscribe(events.Opened, self._on_opened)
        witness.subscribe(events.TurnStarted, self._on_turned)
        witness.subscribe(events.RequestSent, self._on_sent)
        witness.subscribe(events.RoundEnded, self._on_answered)

    @property
    def sessions(self) -> frozenset[str]:
        """The sessions that share the budget."""
        return frozenset(self._bound)

    def _on_opened(self, session: str, event: events.Opened) -> None:
        if event.tenant == TENANT:
            self.counts["sessions_of_a_tenant"] += 1
            self._bound[session] = False

    def _on_turned(self, session: str, event: events.TurnStarted) -> None:
        if session in self._bound:
            self._bound[session] = event.binding != RUNTIME

    def _on_sent(self, session: str, event: events.RequestSent) -> None:
        if session in self._bound and anyio.current_time() > self._over:
            about = f"{session}: round {event.round} of turn {event.turn}, after {self.tokens} tokens"
            self._problems.add("no request is sent when a shared budget is used up", about)

    def _on_answered(self, session: str, event: events.RoundEnded) -> None:
        if self._bound.get(session):
            self.tokens += event.usage.input_tokens + event.usage.output_tokens
            if self._over == inf and self.tokens >= (SHARED_BUDGET.tokens or inf):
                self._over = anyio.current_time()

    def record_refusal(self, session: str) -> bool:
        """Record a budget error of an ask; return True if this budget may have caused it."""
        self.counts["shared_budgets_used_up"] += session in self._bound
        self._refused += [session] if session in self._bound else []
        return session in self._bound

    def judge(self) -> None:
        """Check the budget errors against the usage."""
        if self._over == inf:
            for session in self._refused:
                self._problems.add("an ask is refused only when a shared budget is used up", session)
