"""Open a subagent session for a tool call. The call's session is the parent of the new session."""

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
    """A callable that opens subagent sessions for tools.

    Args:
        open_session: `Runtime.open`.
        session: Returns an open session by its id.
        max_depth: Maximum depth of nested subagents.
    """

    def __init__(
        self,
        open_session: Callable[..., Awaitable[Session]],
        session: Callable[[str], Session],
        max_depth: int,
    ) -> None:
        self._open, self._session, self._max_depth = open_session, session, max_depth

    async def __call__(self, call: ParentCall, options: SubagentOptions) -> tuple[Session, SessionLifecycle]:
        """Open a child session, which inherits target, `approve`, `deps`, tenant and remaining budget from its parent.

        Raises:
            SubagentDepthExceeded: The session would exceed the maximum depth.
            OverBudget: The budget of the parent is used up.
        """
        parent = self._session(call.session)._lifecycle
        if parent.spec.depth >= self._max_depth:
            raise SubagentDepthExceeded(
                f"A subagent of session {call.session!r} would be {parent.spec.depth + 1} levels deep; "
                f"limits.max_subagent_depth is {self._max_depth}"
            )
        tenant, shared, budget = _inherited_values(parent)
        opening = partial(
            self._open,
            options.target or parent.target,
            tools=options.tools,
            system=options.system,
            approve=parent.spec.approve or _deny_all,
            deps=parent.spec.deps,
            tenant=tenant,
            budget=budget,
        )
        session = await _open_numbered(call, parent.spec.key, opening)
        session._lifecycle.above = call
        session._lifecycle.configuration.shared = shared
        return session, session._lifecycle


_PARENT_KEY: ContextVar[str] = ContextVar("parent_key", default="")


async def _open_numbered(call: ParentCall, key: str, opening: Callable[..., Awaitable[Session]]) -> Session:
    """Open a session with the first free id of a call. An id is free if it has no log."""
    token = _PARENT_KEY.set(key)
    try:
        for number in count(call.number):
            with suppress(SessionExists):
                return await opening(id=call.session_id(number))
    finally:
        _PARENT_KEY.reset(token)
    raise AssertionError("unreachable: the loop ends only by returning a session or raising")


def parent_key() -> str:
    """Return the key of the parent of the session that is being opened; "" if the program opens the session."""
    return _PARENT_KEY.get()


def _inherited_values(parent: SessionLifecycle) -> tuple[str, SharedBudget | None, Budget | None]:
    """Return the tenant of a subagent session, the budget that it shares, and what remains of this budget.

    The budgets are None if the parent has no budget.

    Raises:
        SessionClosed: The parent session has no running tool.
        OverBudget: The budget is used up.
    """
    if (actors := parent.actors) is None:
        raise SessionClosed(
            f"Session {parent.name!r} cannot open a subagent, because none of its tools is running"
        )
    tenant, shared = actors.state.tenant, _shared_budget(parent, actors)
    return tenant, shared, None if shared is None else shared.remaining


def _shared_budget(parent: SessionLifecycle, actors: SessionActors) -> SharedBudget | None:
    """Return the budget that the subagents of a session share; None if there is no budget.

    A subagent passes the budget of its parent on to its own subagents. Every other session shares its own budget with
    its subagents.
    """
    state, configuration = actors.state, parent.configuration
    if configuration.shared is not None or state.budget is None or state.used is None:
        return configuration.shared
    # a budget that was shared for an earlier batch does not include the usage since then
    if configuration.lent is None or configuration.lent.before != state.used:
        cost, loop = actors.active_config.resolver.cost, parent.host.system.loop
        configuration.lent = SharedBudget(state.budget, state.used, cost, loop)
    return configuration.lent


async def _deny_all(call: ToolCall) -> bool:
    """Deny every call. No caller could make a decision, because the parent's tool is waiting for the subagent."""
    return False


def caller_depth() -> int:
    """Return the depth of a new session: 0 if the program opens it, or one more than the depth of the tool's session.

    A session may ask only deeper sessions, which include the sessions that its tools open.
    """
    child = current_child()
    depth = -1 if child is None else child.owner.rank[0]
    return 0 if depth >= SHARED else depth + 1
