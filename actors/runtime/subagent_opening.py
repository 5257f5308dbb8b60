"""Open a subagent session for a tool, as a child of the session whose call the tool runs."""

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
from actors.scheduler.children import ParentCall
from actors.tools.context import SubagentOptions


class SubagentOpener:
    """Opens the sessions that tools ask for.

    Args:
        open_session: `Runtime.open`.
        session: Returns an open session by its id.
        most: Maximum depth of subagents.
    """

    def __init__(
        self, open_session: Callable[..., Awaitable[Session]], session: Callable[[str], Session], most: int
    ) -> None:
        self._open, self._session, self._most = open_session, session, most

    async def __call__(self, above: ParentCall, options: SubagentOptions) -> tuple[Session, SessionLifecycle]:
        """Open a session that inherits target, `approve`, `deps`, tenant and remaining budget from its parent.

        Raises:
            SubagentDepthExceeded: The session would exceed the maximum depth.
            OverBudget: The budget of the parent is used up.
        """
        outer = self._session(above.session)._lifecycle
        if outer.spec.depth >= self._most:
            raise SubagentDepthExceeded(
                f"A subagent of session {above.session!r} would be {outer.spec.depth + 1} levels deep; "
                f"limits.max_subagent_depth is {self._most}"
            )
        tenant, shared, budget = _inheritance(outer)
        opening = partial(
            self._open,
            options.target or outer.target,
            tools=options.tools,
            system=options.system,
            approve=outer.spec.approve or _deny_all,
            deps=outer.spec.deps,
            tenant=tenant,
            budget=budget,
        )
        session = await _open_numbered(above, outer.spec.key, opening)
        session._lifecycle.above = above
        session._lifecycle.configuration.shared = shared
        return session, session._lifecycle


_ABOVE: ContextVar[str] = ContextVar("above", default="")


async def _open_numbered(above: ParentCall, key: str, opening: Callable[..., Awaitable[Session]]) -> Session:
    """Open a session under the first free id. An id is taken while the log of an earlier session is kept."""
    token = _ABOVE.set(key)
    try:
        for number in count(above.number):
            with suppress(SessionExists):
                return await opening(id=above.session_id(number))
    finally:
        _ABOVE.reset(token)
    raise AssertionError("numbers do not end")


def parent_key() -> str:
    """Return the key of the parent of the session that is being opened; empty if the program opens it."""
    return _ABOVE.get()


def _inheritance(outer: SessionLifecycle) -> tuple[str, SharedBudget | None, Budget | None]:
    """Return a subagent session's tenant, its shared budget, and the remainder of that budget.

    Raises:
        SessionClosed: The parent session has no running tool.
        OverBudget: The budget is used up.
    """
    if (acting := outer.actors) is None:
        raise SessionClosed(f"Session {outer.name!r} has no tool that runs")
    tenant, shared = acting.state.tenant, _shared_budget(outer, acting)
    return tenant, shared, None if shared is None else shared.remaining


def _shared_budget(outer: SessionLifecycle, acting: SessionActors) -> SharedBudget | None:
    """Return the budget that the subagent sessions share: inherited from further up, else the parent session's own."""
    state, configuration = acting.state, outer.configuration
    if configuration.shared is not None or state.budget is None or state.used is None:
        return configuration.shared
    if configuration.lent is None or configuration.lent.before != state.used:  # lent for an earlier batch
        cost, loop = acting.active_config.resolver.cost, outer.host.system.loop
        configuration.lent = SharedBudget(state.budget, state.used, cost, loop)
    return configuration.lent


async def _deny_all(call: ToolCall) -> bool:
    """Deny every call. The parent's tool waits, so no one could decide."""
    return False


def caller_depth() -> int:
    """Return the depth of a session that is opened now: one more than that of its parent, which may then ask it."""
    child = current_child()
    depth = -1 if child is None else child.owner.rank[0]
    return 0 if depth >= SHARED else depth + 1
