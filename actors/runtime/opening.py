"""Open, resume, fork and import sessions.

    open             claim a new id        write the first event      open toolsets, start the session
    resume           claim a log           read the log               open toolsets, start, close an interrupted turn
    fork, import     claim new ids         write the copied events
    activate         (already claimed)     read the log               create actors (`actors.runtime.lifecycle`)

The caller first reserves an id, so that no other caller can use it. If the caller fails or is cancelled, the
reservation, the claim and the log are removed, and the toolsets are closed.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager

import anyio
from msgspec import Struct
from msgspec.structs import asdict

from actors.core.data.record import replace
from actors.core.history.history import History
from actors.core.log.events import LogEvent, Opened
from actors.core.session.rebuild import rebuild
from actors.core.session.recovery import fork_log
from actors.core.settings.labels import read_only_metadata
from actors.core.values.content import Message
from actors.errors import ConfigError, SessionExists, UnknownSeq
from actors.journal.log import Replay, make_replay
from actors.provider.resolver import Resolver, check_prices
from actors.runtime.claims import Claims, claiming
from actors.runtime.handle import Session
from actors.runtime.lifecycle import SessionLifecycle
from actors.runtime.registry import SessionRegistry
from actors.runtime.replays import awaited_output, read_events, resumable_replay, unfinished_asks
from actors.runtime.session_actors import SessionSpec
from actors.runtime.session_config import SessionConfig, SessionFields
from actors.runtime.session_host import SessionHost
from actors.runtime.subagent_opening import caller_depth, parent_key
from actors.session.configuration import Configuration
from actors.session.imported import initial_history, opened_event
from actors.session.pending import PendingAsks
from actors.tools import Toolset
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
        if (session := await self._registry.find_settled(name)) is not None:
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
        """Write all logs, each under its id.

        If one cannot be written, write none. See `JournalAdmin.import_session`.
        """
        async with claiming(self._host, self._registry) as claims:
            for name, _ in logs:
                await claims.claim_new(name)
            for name, log in reversed(logs):
                await claims.write(name, log)

    async def claim(self, name: str, config: SessionConfig) -> Session:
        """Return the open session with this id, or resume the session from its log. See `Runtime.claim`."""
        await self._host.wait_to_begin("")
        if (session := await self._registry.find_settled(name)) is not None:
            return session
        return await self.resume(name, config)

    async def _admit(self, tenant: str, existing: str = "") -> None:
        """Wait until new work for a tenant may start, and check that one more session may be opened."""
        await self._host.wait_to_begin(tenant)
        await self._ensure_room(existing)

    async def _ensure_room(self, existing: str = "") -> None:
        """Check that this host accepts one more session: the session with the id `existing`, or a new session.

        If the maximum number of sessions is open, release an unused one.
        """
        if not parent_key():  # on a draining host, open sessions may still open subagents
            await self._host.check_serving(existing)
        self._registry.ensure_room(self._host)

    async def _create(self, claims: Claims, name: str, new: NewSession, config: SessionConfig) -> Session:
        """Write the first event of a new log, and start its session."""
        opened = opened_event(name, new.target, new.history)
        key, above = self._registry.draw_key(), parent_key()
        opened = replace(opened, key=key, above=above, **asdict(new.fields))
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
        pending, broken = unfinished_asks(replay, form, self._host.most_waiting)
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

        If the `with` block raises an error, the toolsets are closed. If `check_count` is True, check that the target
        accepts this number of tools.
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
