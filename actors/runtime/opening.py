"""Open, resume, fork and import sessions, and open subagents.

    open             claim a new id        write the first event      open toolsets, start the session
    resume           claim a log           read the log               open toolsets, start, close an interrupted turn
    fork, import     claim new ids         write the copied events
    activate         (already claimed)     read the log               create actors (`actors.runtime.lifecycle`)

The caller first reserves an id, so that no other caller can use it. If the caller fails or is cancelled, the
reservation, the claim and the log are removed, and the toolsets are closed.

A subagent is opened for a tool call. The call's session is the parent of the new session.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from itertools import count

import anyio
from msgspec import Struct
from msgspec.structs import asdict

from actors.core.data.record import replace
from actors.core.history.history import History
from actors.core.log.events import LogEvent, Opened
from actors.core.session.lanes import rebuild
from actors.core.session.open_asks import fork_log
from actors.core.settings.labels import read_only_metadata
from actors.core.settings.spending import Budget
from actors.core.values.content import Message, ToolCall
from actors.errors import ConfigError, SessionClosed, SessionExists, SubagentDepthExceeded, UnknownSeq
from actors.journal.log import Replay, make_replay
from actors.kernel import SHARED
from actors.kernel.receiver import current_child
from actors.provider.budgets import SharedBudget
from actors.provider.resolver import Resolver, check_prices
from actors.runtime.claims import (
    Claims,
    awaited_output,
    claiming,
    read_events,
    resumable_replay,
    unfinished_asks,
)
from actors.runtime.handle import Session
from actors.runtime.lifecycle import SessionLifecycle
from actors.runtime.registry import SessionRegistry
from actors.runtime.session_actors import SessionActors, SessionSpec
from actors.runtime.session_host import SessionHost
from actors.runtime.validation import SessionConfig, SessionFields
from actors.scheduler.children import ParentCall
from actors.scheduler.executor import is_called_from_tool
from actors.session.configuration import Configuration
from actors.session.pending import PendingAsks
from actors.session.user_input import initial_history, opened_event
from actors.tools import Toolset
from actors.tools.context import SubagentOptions
from actors.tools.toolsets import SessionTools


class NewSession(Struct, frozen=True):
    """The content of a new session's first event: target, history and other fields."""

    target: str
    history: History
    fields: SessionFields


class SessionOpener:
    """Opens, resumes, forks and imports sessions on a host.

    Args:
        host: The host of the sessions.
        registry: The session ids that are in use.
    """

    def __init__(self, host: SessionHost, registry: SessionRegistry) -> None:
        self._host, self._registry = host, registry

    @staticmethod
    async def make_new_session(
        target: str, system: str | None, messages: Iterable[Message], fields: SessionFields
    ) -> NewSession:
        """Return the content of a new session. A `system` prompt replaces the one in `messages`.

        Raises:
            ConfigError: `system` is not a string.
            TranscriptError: `messages` contains an object that is not a valid message.
        """
        if not isinstance(system, str | None):
            raise ConfigError(f"system= takes a string, not {type(system).__name__}")
        history = await initial_history(messages)
        return NewSession(target, history if system is None else replace(history, system=system), fields)

    async def open(self, requested_id: str | None, new: NewSession, config: SessionConfig) -> Session:
        """Open a new session with the id `requested_id`, or with a generated id if it is None. See `Runtime.open`."""
        await self._admit(new.fields.tenant)
        async with claiming(self._host, self._registry) as claims:
            return await self._create(claims, await claims.claim_new(requested_id), new, config)

    async def open_or_resume(self, name: str, new: NewSession, config: SessionConfig) -> Session:
        """Return the session with this id: the open session, a resumed session, or a new one. See `Runtime.open`."""
        tenant = new.fields.tenant
        await self._host.wait_to_begin(tenant)
        if (session := await self._find_open(name)) is not None:
            _check_tenant(name, session._lifecycle.spec.tenant, tenant)
            return session
        await self._ensure_room(name)
        async with claiming(self._host, self._registry) as claims:
            if await claims.claim_any(name):
                return await self._resume(claims, name, config, tenant=tenant)
            return await self._create(claims, name, new, config)

    async def resume(self, name: str, config: SessionConfig) -> Session:
        """Resume a session from its log. See `Runtime.resume`."""
        await self._admit("", name)
        async with claiming(self._host, self._registry) as claims:
            await claims.claim_existing(name, config.wait)
            return await self._resume(claims, name, config)

    async def fork(self, source: str, at: int | None, requested_id: str | None) -> str:
        """Copy a log up to event `at` to a new session, and return the new id. See `JournalAdmin.fork`."""
        events = await read_events(self._host.journal, source, self._host.readers.throttle)
        last = len(events) if at is None else at
        if not 0 < last <= len(events):
            raise UnknownSeq(
                f"Session {source!r} has events 1 to {len(events)}; it cannot be forked at {last}"
            )
        key = self._registry.draw_key()
        async with claiming(self._host, self._registry) as claims:
            name = await claims.claim_new(requested_id)
            await claims.write(name, fork_log(events[:last], name, key))
        return name

    async def import_logs(self, logs: Sequence[tuple[str, Sequence[LogEvent]]]) -> None:
        """Write all logs, each under its id. If this fails, delete the written logs.

        See `JournalAdmin.import_session`.
        """
        async with claiming(self._host, self._registry) as claims:
            for name, _ in logs:
                await claims.claim_new(name)
            for name, log in reversed(logs):
                await claims.write(name, log)

    async def claim(self, name: str, config: SessionConfig) -> Session:
        """Return the open session with this id, or resume the session from its log. See `Runtime.claim`."""
        await self._host.wait_to_begin("")
        if (session := await self._find_open(name)) is not None:
            return session
        return await self.resume(name, config)

    async def _find_open(self, name: str) -> Session | None:
        """Return the open session with this id, or None.

        If the session is leaving this host, wait until it has left, because its handle can no longer be used then. The
        departure waits for the session's tools, so a tool of this session does not wait for the departure.
        """
        while (session := await self._registry.find_settled(name)) is not None:
            if not session._lifecycle.is_departing or is_called_from_tool(self._host.system, name):
                return session
            await session._lifecycle.wait_departed()
        return None

    async def _admit(self, tenant: str, existing: str = "") -> None:
        """Wait until new work for a tenant may start, and check that one more session may be opened."""
        await self._host.wait_to_begin(tenant)
        await self._ensure_room(existing)

    async def _ensure_room(self, existing: str = "") -> None:
        """Check that this host accepts one more session: the session with the id `existing`, or a new session.

        If the maximum number of sessions is open, release a session that no caller holds.
        """
        if not parent_key():  # on a draining host, open sessions may still open subagents
            await self._host.check_serving(existing)
        self._registry.ensure_room(self._host)

    async def _create(self, claims: Claims, name: str, new: NewSession, config: SessionConfig) -> Session:
        """Write the first event of a new log, and start its session."""
        opened = opened_event(name, new.target, new.history)
        key, above = self._registry.draw_key(), parent_key()
        opened = replace(opened, key=key, parent_key=above, **asdict(new.fields))
        async with self._open_tools(opened, config) as (tools, resolver):
            opened = replace(opened, preamble=resolver.config_digest)
            await claims.write(name, (opened,))
            replay = make_replay((opened,), *rebuild((opened,), self._host.backends.rules))
            return self._start(claims, opened, replay, config, tools, resolver)

    async def _resume(self, claims: Claims, name: str, config: SessionConfig, tenant: str = "") -> Session:
        """Read a log, start its session, and return once an interrupted turn is closed.

        Raises:
            SessionClosed: The session crashed during its recovery, and has ended.
            JournalError: The events of the recovery cannot be written.
        """
        opened, replay = await resumable_replay(self._host, name)
        state = replay.state
        _check_tenant(name, opened.tenant, tenant)
        form = awaited_output(state, config.output)
        system = state.history.system if config.system is ... else config.system
        opened = replace(opened, system=system, target=config.target or state.target)
        pending, broken = unfinished_asks(replay, form, self._host.max_queued)
        # A paused session has an open turn, which continues in its own dialect. So do not check the number of tools.
        async with self._open_tools(opened, config, check_count=state.pause is None) as (tools, resolver):
            session = self._start(claims, opened, replay, config, tools, resolver, pending)
        async with _end_on_failure(session._lifecycle):
            if broken is not None:
                session._lifecycle.activate()  # the new actors close the interrupted turn
                if state.pause is None:
                    await broken.outcome()
            if config.target not in (None, state.target):
                await session.switch(config.target)
        return session

    @asynccontextmanager
    async def _open_tools(
        self, opened: Opened, config: SessionConfig, *, check_count: bool = True
    ) -> AsyncGenerator[tuple[SessionTools, Resolver]]:
        """Open the toolsets of a session, and provide its tools and its resolver.

        If the `with` block raises an error, the toolsets are closed. If `check_count` is True, a session with more
        tools than its target accepts is rejected.
        """
        host, resolvers = self._host, list[Resolver]()

        def resolve_tools(tools: Toolset) -> None:
            resolvers.append(host.backends.resolver(tools, opened.system))
            check_prices(resolvers[0], opened.target, opened.tenant, opened.budget, must_fit=check_count)

        tools = await host.toolsets.open(config.tools, resolve_tools)
        try:
            yield tools, resolvers[0]
        except BaseException:
            host.toolsets.release(tools.owners)
            raise

    def _start(
        self,
        claims: Claims,
        opened: Opened,
        replay: Replay,
        config: SessionConfig,
        tools: SessionTools,
        resolver: Resolver,
        pending: PendingAsks | None = None,
    ) -> Session:
        """Start a session whose log is written. The session takes over the claim on its id."""
        host, name = self._host, opened.session
        spec = SessionSpec(
            name,
            opened.key,
            opened.tenant,
            opened.title,
            read_only_metadata(opened.metadata),
            claims.hand_over(name),
            config.approve,
            config.deps,
            caller_depth(),
            host.bounds.with_repeats(config.on_repeat),
        )
        configuration = Configuration(opened.target, opened.system, tools, host.toolsets)
        session = Session(SessionLifecycle(spec, host, configuration, replay, resolver, pending))
        self._registry.open[name] = session
        return session


@asynccontextmanager
async def _end_on_failure(lifecycle: SessionLifecycle) -> AsyncGenerator[None]:
    """If the `with` block raises an error, end the session without logging its end."""
    try:
        yield
    except BaseException:
        with anyio.CancelScope(shield=True):
            await lifecycle.close(in_order=False)
        raise


def _check_tenant(name: str, session_tenant: str, caller_tenant: str) -> None:
    """Raise `SessionExists` if a session belongs to a tenant other than the caller's.

    A caller without a tenant may use the sessions of all tenants.
    """
    if caller_tenant and session_tenant != caller_tenant:
        raise SessionExists(f"Session {name!r} belongs to another tenant; use another id")


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
        session._lifecycle.parent_call = call
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
    """Return the tenant of a new subagent session, its shared budget, and the remaining part of that budget.

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
    if configuration.lent is None or configuration.lent.used_before != state.used:
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
