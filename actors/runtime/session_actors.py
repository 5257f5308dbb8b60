"""Create, restart and end the four actors of a session together.

`SessionLifecycle` (`actors.runtime.lifecycle`) creates the actors when the session is used, and passivates them when it
is idle. It closes a session in a task of the host, so closing continues even if the caller is cancelled. If the end
cannot be logged, the session stays open. If another host has claimed the session, only the actors are stopped.

A configuration change comes from the program (`Session.configure`) or from a model that calls a `handoff` tool. The new
toolsets are opened before the session's actors apply the change.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import EllipsisType
from typing import TYPE_CHECKING, Never, Protocol

import anyio
from msgspec import Struct

from actors.core.data.record import replace
from actors.core.session.lanes import Lanes
from actors.core.session.open_asks import needs_recovery
from actors.core.session.state import UNREAD, SessionState
from actors.core.settings.labels import Scalar
from actors.core.settings.spending import SessionUsage
from actors.core.turn.batch import Approve
from actors.core.turn.turn import Bounds
from actors.errors import (
    ActorFailed,
    ActorsError,
    ActorStopped,
    Fenced,
    JournalBehind,
    JournalDamaged,
    JournalError,
    ShuttingDown,
)
from actors.journal.log import Generation, MemoryUse, Replay
from actors.kernel import Group, Ref, Restart
from actors.ledger.ledger_actor import LedgerActor, LedgerCommand
from actors.provider.resolver import Affinity
from actors.renderer.renderer_actor import RendererActor
from actors.runtime.session_host import SessionHost
from actors.scheduler.executor import Executor
from actors.scheduler.scheduler_actor import SchedulerActor
from actors.session.commands import Cancel, Close, SessionCommand
from actors.session.configuration import ActiveConfig, ConfigChange, Configuration, PrepareChange
from actors.session.inflight import SessionRefs
from actors.session.pending import PendingAsks
from actors.tools import Toolset
from actors.tools.toolsets import ToolItem

if TYPE_CHECKING:
    from actors.session.session_actor import SessionActor

RESTART = Restart(ends=(JournalError,))
"""Actors restart after a crash. A `JournalError` ends them instead, because a restart would not help."""
END_TRIES = 8
"""Maximum attempts to log the end of a session. This is more than the number of times that a session may restart."""


class SessionSpec(Struct, frozen=True):
    """The values of a session that do not change while it is open.

    Args:
        name: The session's id.
        key: The session's random key, with which the idempotency keys of its calls begin.
        tenant: The session's tenant, or "".
        title, metadata: Labels from the program.
        fence: The fencing number of the host's claim on the session.
        approve: Decides whether a call that needs approval may run; None to wait for the caller's decision.
        deps: Any object for the session's tools, as `ToolContext.deps`.
        depth: The depth of the session's actors: 0, or more for subagents. Actors may ask only deeper actors.
        bounds: The limits of a turn.
    """

    name: str
    key: str
    tenant: str
    title: str
    metadata: Mapping[str, Scalar]
    fence: int
    approve: Approve | None
    deps: object
    depth: int
    bounds: Bounds


class ActorHooks(Struct, frozen=True):
    """Functions that the actors of a session call.

    Args:
        prepare_change: Opens the toolsets of a handoff's configuration change, and returns the change.
        on_end: Called when the actors have ended without being stopped, with the `JournalError` that ended them, or
            None.
    """

    prepare_change: PrepareChange
    on_end: Callable[[JournalError | None], None]


class SessionActors:
    """The actors of one session, with their shared state. After a crash, they restart from the log.

    Args:
        spec: The session's fixed values.
        host: The host of the session.
        configuration: The session's target, system prompt and tools.
        memory_use: Counts the bytes that the session uses.
        pending: The asks that the session has accepted.
        affinity: The pool members that the session prefers.
        hooks: Functions that the actors call.
        replay: The state, ledger and lanes rebuilt from the log; None to let the actors read it.
    """

    affinity: Affinity
    pending: PendingAsks

    def __init__(
        self,
        spec: SessionSpec,
        host: SessionHost,
        configuration: Configuration,
        memory_use: MemoryUse,
        pending: PendingAsks,
        affinity: Affinity,
        hooks: ActorHooks,
        replay: Replay | None,
    ) -> None:
        self._spec, self._host, self._on_end = spec, host, hooks.on_end
        self._state, self._lanes, self._replay = UNREAD, Lanes(host.backends.rules), replay
        if replay is not None and not needs_recovery(replay.state):
            self._state, self._lanes, self._replay = replay.state, replay.lanes, None
        self.affinity, self.pending = affinity, pending
        self._session_actor: SessionActor | None = None
        self.active_config: ActiveConfig = ActiveConfig(
            configuration, host.backends.resolver, hooks.prepare_change
        )
        self._executor = Executor(
            host.system,
            spec.name,
            host.limits,
            host.quarantine,
            host.on_tool_failure,
            spec.deps,
            spec.key,
            spec.tenant,
            host.open_subagent,
            host.backends.meters.calls,
        )
        self._generation = Generation(spec.name, spec.fence, host.journal, host.backends.rules, memory_use)
        self.refs: SessionRefs
        self.session: Ref[SessionCommand]
        self.start()

    @property
    def state(self) -> SessionState:
        """The session's state, without the ledger. The state is empty until the actors have read the log."""
        return self._live_session_actor.state

    @property
    def busy(self) -> bool:
        """True if an ask is in flight or queued."""
        return self.pending.current is not None or bool(self.pending.waiting)

    @property
    def runs_tools(self) -> bool:
        """True if a tool still runs, including a tool of an interrupted turn."""
        return bool(self._executor.running)

    @property
    def is_ending(self) -> bool:
        """True if the journal has failed and the actors are ending."""
        return self._group.end_error is not None

    def start(self) -> None:
        """Create the actors: the first time from the replay, if there is one, and otherwise by reading the log."""
        self.active_config.restore()
        self._group = Group(self._host.system, RESTART)
        self.session = self._spawn_all()
        self._host.system.watch(self.session, self._handle_end)

    async def interrupt(self) -> None:
        """Cancel the ask in flight, and drop queued asks. A paused turn stays open."""
        self.pending.drop_queued()
        if self.pending.current is not None:
            with suppress(ActorStopped, ShuttingDown):
                await self.session.ask(Cancel(is_leaving=True))

    def passivate(self) -> Replay | None:
        """End the actors if they are idle, and return their state as a replay; return None if they are busy.

        While a tool is running, the actors stay, because the ledger must record its result.
        """
        if self._executor.running:
            return None
        objects = self._host.system.passivate(*self._all_refs)
        if objects is None:
            return None
        _, _, renderer, ledger = objects
        assert isinstance(renderer, RendererActor)
        assert isinstance(ledger, LedgerActor)
        return Replay(replace(self.state, ledger=ledger.current.ledger), renderer.lanes)

    def reset_state(self) -> SessionUsage | None:
        """Reset the state of actors that have ended. Return the session's usage, or None if it has no budget."""
        used = self.state.used
        self._state, self._lanes, self._session_actor = UNREAD, Lanes(self._host.backends.rules), None
        return used

    async def stop(self) -> None:
        """Stop the actors. The session actor is stopped first, because it uses the other actors."""
        for ref in self._all_refs:
            await self._host.system.stop(ref)

    async def wait_ended(self) -> None:
        """Wait until the actors have ended."""
        over = anyio.Event()
        self._host.system.watch(self.session, over.set)
        await over.wait()

    @property
    def _live_session_actor(self) -> "SessionActor":
        """The object of the session actor. Read this property only while the session has actors."""
        assert self._session_actor is not None
        return self._session_actor

    @property
    def _all_refs(self) -> tuple[Ref[Never], ...]:
        """The refs of all actors, the session actor first."""
        return (self.session, self.refs.scheduler, self.refs.renderer, self.refs.ledger)

    def _spawn_all(self) -> Ref[SessionCommand]:
        """Spawn the four actors, and return the ref of the session actor."""
        name = self._spec.name
        spawn = partial(self._host.system.spawn, group=self._group, depth=self._spec.depth)
        self._ledger: Ref[LedgerCommand] = spawn(self._make_ledger_actor, f"{name}/ledger")
        renderer = spawn(self._make_renderer_actor, f"{name}/renderer")
        scheduler = spawn(self._make_scheduler_actor, f"{name}/scheduler")
        self.refs = SessionRefs(scheduler, renderer, self._ledger, self._host.journal)
        session: Ref[SessionCommand] = spawn(self._make_session_actor, f"{name}/session")
        self._state = UNREAD  # actors that restart read the log
        return session

    def _make_ledger_actor(self) -> LedgerActor:
        """Create the ledger actor and, if the log must be read again, begin a new generation of the session's actors.

        The ledger actor is created first, so the other actors join this generation.
        """
        if not self._state.session:
            replay, self._replay = self._replay, None
            self._generation = self._generation.next_generation(replay)
        return LedgerActor(self._spec.name, self._state.ledger, self._host.journal, self._generation)

    def _make_renderer_actor(self) -> RendererActor:
        return RendererActor(self._lanes, self._generation)

    def _make_scheduler_actor(self) -> SchedulerActor:
        return SchedulerActor(self.active_config.tools, self._ledger, self._executor, self._spec.approve)

    def _make_session_actor(self) -> "SessionActor":
        # imported with the first session, so that `import actors` stays fast
        from actors.session.session_actor import SessionActor

        self._session_actor = SessionActor(
            self._state,
            self.refs,
            self.active_config,
            self._spec.bounds,
            self.pending,
            self._generation,
            self.affinity,
        )
        return self._session_actor

    def _handle_end(self) -> None:
        """Report to the session that the actors have ended, and close the streams of its asks."""
        why = self._group.end_error if isinstance(self._group.end_error, JournalError) else None
        self._on_end(why)
        self.pending.end_all(why)


class ClosableSession(Protocol):
    """A session that `close_session` can close. `actors.runtime.lifecycle` implements it."""

    @property
    def actors(self) -> SessionActors | None:
        """The session's actors, or None if it has none."""
        ...

    @property
    def is_over(self) -> bool:
        """True if the session has ended on this host."""
        ...

    def activate(self) -> SessionActors:
        """Return the session's actors, which are created if there are none."""
        ...

    def end(self, error: ActorsError | None = None) -> None:
        """End the session on this host without logging an event."""

    async def actors_ended(self) -> None:
        """If the actors are ending, wait until they have ended; otherwise return at once."""


async def close_session(session: ClosableSession, in_order: bool) -> None:
    """Stop a session's actors, and end the session. If `in_order`, first cancel its ask in flight and log its end.

    Raises:
        JournalUnavailable: The end cannot be logged. The session stays open, but its asks have ended.
        Fenced: Another host has claimed the session, so it has ended here.
    """
    goes_on = False
    try:
        if in_order and not session.is_over:
            # These errors mean that the session has already ended, or that its log cannot be written.
            with suppress(ActorStopped, ShuttingDown, JournalDamaged):
                await _log_end(session)
    except Exception as error:
        goes_on = not isinstance(error, Fenced)
        raise
    finally:
        if not goes_on:
            await _stop(session)


async def _log_end(session: ClosableSession) -> None:
    """Log the end of a session. Retry if the session actor crashes, or if the storage has lost events."""
    for left in reversed(range(END_TRIES)):
        await session.actors_ended()
        try:
            await (session.actors or session.activate()).session.ask(Close())
        except (ActorFailed, JournalBehind) as error:
            if not left and isinstance(error, JournalBehind):
                raise
        else:
            return


async def _stop(session: ClosableSession) -> None:
    """Stop the actors and end the session, even if the caller is cancelled."""
    with anyio.CancelScope(shield=True):
        if session.actors is not None:
            await session.actors.stop()
        session.end()  # has no effect if the session ended when its actors ended


async def prepare_change(
    configuration: Configuration,
    host: SessionHost,
    system: str | EllipsisType | None,
    tools: Iterable[ToolItem] | EllipsisType,
    target: str | None = None,
) -> ConfigChange:
    """Open the toolsets of a configuration change, and return the change. The caller must either apply or drop it.

    Args:
        configuration: The configuration to change.
        host: Opens the toolsets.
        system, tools: The new system prompt and tools; `...` means no change.
        target: The target that must accept the tools; by default, the session's target.
    """
    if tools is ...:
        return ConfigChange(system, ...)
    prompt = configuration.system if system is ... else system

    def check_target(tools: Toolset) -> None:
        host.backends.resolver(tools, prompt).pool(target or configuration.target)

    return ConfigChange(system, await host.toolsets.open(tools, check_target))
