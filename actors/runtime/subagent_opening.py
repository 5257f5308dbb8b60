"""Opening a session for a tool, below the session whose call it works for."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from itertools import count

from actors.core.settings.spending import Budget
from actors.core.values.content import ToolCall
from actors.errors import SessionClosed, SessionExists, SubagentDepthExceeded
from actors.kernel import SHARED
from actors.kernel.receiver import current_child
from actors.provider.budgets import SharedBudget
from actors.runtime.handle import Session
from actors.runtime.lifecycle import SessionLifecycle
from actors.runtime.session_actors import SessionActors
from actors.scheduler.children import Above
from actors.tools.context import SubagentOptions


class SubagentOpener:
    """Opens the sessions that tools ask for.

    Args:
        open_session: `Runtime.open`.
        session: Returns an open session by its id.
        most: Levels that sessions may stand below the first.
    """

    def __init__(
        self, open_session: Callable[..., Awaitable[Session]], session: Callable[[str], Session], most: int
    ) -> None:
        self._open, self._session, self._most = open_session, session, most

    async def __call__(self, above: Above, options: SubagentOptions) -> tuple[Session, SessionLifecycle]:
        """Open a session with what the one above has: target, approvals, `deps`, tenant, what is left of its budget.

        Raises:
            SubagentDepthExceeded: It would stand too deep.
            OverBudget: Nothing is left of the budget above.
        """
        outer = self._session(above.session)._lifecycle
        if outer.spec.depth >= self._most:
            raise SubagentDepthExceeded(
                f"A subagent of session {above.session!r} would stand {outer.spec.depth + 1} levels deep; "
                f"limits.max_subagent_depth is {self._most}"
            )
        tenant, shared, budget = _inherited(outer)
        opening = partial(
            self._open,
            options.target or outer.target,
            tools=options.tools,
            system=options.system,
            approve=outer.spec.approve or _nobody,
            deps=outer.spec.deps,
            tenant=tenant,
            budget=budget,
        )
        session = await _numbered(above, outer.spec.key, opening)
        session._lifecycle.above = above
        session._lifecycle.configuration.shared = shared
        return session, session._lifecycle


_ABOVE: ContextVar[str] = ContextVar("above", default="")


async def _numbered(above: Above, key: str, opening: Callable[..., Awaitable[Session]]) -> Session:
    """Open a session under the first id that is free: the log of another may be kept that had it before."""
    token = _ABOVE.set(key)
    try:
        for number in count(above.number):
            with suppress(SessionExists):
                return await opening(id=above.named(number))
    finally:
        _ABOVE.reset(token)
    raise AssertionError("numbers do not end")


def parent_key() -> str:
    """Return the key of the session for one of whose calls one is opened now; empty if a program opens it."""
    return _ABOVE.get()


def _inherited(outer: SessionLifecycle) -> tuple[str, SharedBudget | None, Budget | None]:
    """Return whose a session below is, with whom it shares a budget, and what is left of that.

    Raises:
        SessionClosed: No tool of it runs any more.
        OverBudget: Nothing is left.
    """
    if (acting := outer.actors) is None:
        raise SessionClosed(f"Session {outer.name!r} has no tool that runs")
    tenant, shared = acting.state.tenant, _shared(outer, acting)
    return tenant, shared, None if shared is None else shared.left


def _shared(outer: SessionLifecycle, acting: SessionActors) -> SharedBudget | None:
    """Return the budget that the sessions below share: that of the session above, if it has none from further above."""
    state, configuration = acting.state, outer.configuration
    if configuration.shared is not None or state.budget is None or state.used is None:
        return configuration.shared
    if configuration.lent is None or configuration.lent.before != state.used:  # of a batch that is over
        cost, parking = acting.equipment.resolver.cost, outer.host.system.parking
        configuration.lent = SharedBudget(state.budget, state.used, cost, parking)
    return configuration.lent


async def _nobody(call: ToolCall) -> bool:
    """Approve of nothing: nobody is there to be asked, and a tool waits."""
    return False


def caller_depth() -> int:
    """Return the depth of a session that is opened now: below the one whose tool opens it, which may ask it then."""
    child = current_child()
    depth = -1 if child is None else child.owner.rank[0]
    return 0 if depth >= SHARED else depth + 1
