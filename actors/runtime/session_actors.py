"""The actors that a session has while it is used: made together from its log, restarted together, put away together."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Never

import anyio
from msgspec import Struct

from actors.core.data.form import replace
from actors.core.session.closing import breaks_off
from actors.core.session.state import UNREAD, Lanes, SessionState
from actors.core.settings.spending import Used
from actors.core.stream_events.results import PendingCall
from actors.core.turn.batch import Approve
from actors.core.turn.bounds import Bounds
from actors.errors import ActorStopped, Draining, Fenced, JournalError
from actors.journal.holding import Holding
from actors.journal.log import Generation, Replay
from actors.kernel import Group, Ref, Restart
from actors.ledger.ledger_actor import LedgerActor, LedgerCommand
from actors.provider.choosing import Affinity
from actors.renderer.renderer_actor import RendererActor
from actors.runtime.passive import Passive, logged
from actors.runtime.session_host import SessionHost
from actors.scheduler.executor import Executor
from actors.scheduler.scheduler_actor import SchedulerActor
from actors.session.commands import Cancel, SessionCommand
from actors.session.configuration import Configuration, Equipment, Prepare
from actors.session.inflight import SessionRefs
from actors.session.pending import PendingAsks
from actors.session.records import AskRecord

if TYPE_CHECKING:
    from actors.session.session_actor import SessionActor

RESTART = Restart(ends=(JournalError,))
"""A session's actors begin anew after a crash. What keeps an event from being written, or the log from being read, is
none."""


class SessionSetup(Struct, frozen=True):
    """The values that the actors of a session are made with, and the functions that they call.

    Args:
        name, key, tenant: The session's id, its opaque key, and the tenant that it belongs to.
        fence: The number with which the session was claimed.
        host: What the session shares with the other sessions of the runtime.
        configuration: The session's system prompt and tools.
        holding: Counts the bytes that the session holds.
        record: Counts the session's asks.
        bounds: The limits of a turn.
        approve: Asked before calls of some tools.
        deps: The value that the host gave its tools.
        depth: The place of the actors in the order of asks.
        change: Opens the tools of a configuration change that a call asks for.
        on_rested: Called when an ask has ended, or its turn begins to wait.
        on_ended: Called when the actors have ended for good, with the error if another writer has the session.
        on_suspended: Called when the journal has ended the actors.
    """

    name: str
    key: str
    tenant: str
    fence: int
    host: SessionHost
    configuration: Configuration
    holding: Holding
    record: AskRecord
    bounds: Bounds
    approve: Approve | None
    deps: object
    depth: int
    change: Prepare
    on_rested: Callable[[], None]
    on_ended: Callable[[Fenced | None], None]
    on_suspended: Callable[[], None]


class SessionActors:
    """A session's actors. They are made from its log, and restart together.

    Args:
        setup: The values that they are made with.
        kept: What is left of those before them.
        waits: The calls that a turn in flight waits for.
        pending: The asks of that turn, if its answer has a form.
    """

    def __init__(
        self,
        setup: SessionSetup,
        kept: Passive,
        waits: tuple[PendingCall, ...],
        pending: PendingAsks | None,
    ) -> None:
        host = setup.host
        self._host, self._name, self._approve, self._bounds = host, setup.name, setup.approve, setup.bounds
        self._on_ended, self._on_suspended = setup.on_ended, setup.on_suspended
        self._state, self._lanes, self._replay = (
            UNREAD,
            Lanes(host.rules),
            kept.replay or host.replay(setup.name),
        )
        if self._replay is not None and not breaks_off(self._replay.state):
            self._state, self._lanes, self._replay = self._replay.state, self._replay.lanes, None
        self._affinity = kept.affinity or Affinity()
        self._waits = waits
        self._made: SessionActor | None = None
        self.equipment = Equipment(setup.configuration, host.resolver, setup.change)
        self._pending = pending or PendingAsks(host.most_waiting)
        self._pending.rested, self._pending.record = setup.on_rested, setup.record
        self._executor = Executor(
            host.system,
            self._name,
            host.limits,
            host.quarantine,
            host.tool_failed,
            setup.deps,
            setup.key,
            setup.tenant,
            host.open_below,
            host.tools,
        )
        self._generation = Generation(self._name, setup.fence, host.journal, host.rules, setup.holding)
        self.refs: SessionRefs
        self.session: Ref[SessionCommand]
        self.begin_anew(setup.depth)

    @property
    def _acting(self) -> "SessionActor":
        assert self._made is not None
        return self._made

    @property
    def target(self) -> str:
        """Whom the next ask goes to; empty while the log is being read."""
        return self._acting.target

    @property
    def state(self) -> SessionState:
        """What the session knows, but for its ledger."""
        return self._acting.state

    @property
    def waits(self) -> tuple[PendingCall, ...]:
        """The calls that the turn in flight waits for; while the log is being read, those it waited for before."""
        return self._acting.waits if self._acting.state.session else self._waits

    @property
    def busy(self) -> bool:
        """Whether an ask is in flight, or waits."""
        return self._pending.current is not None or bool(self._pending.waiting)

    @property
    def runs_tools(self) -> bool:
        """Whether a tool still runs, also one of a turn that was broken off."""
        return bool(self._executor.running)

    async def interrupt(self) -> None:
        """Cancel the ask in flight, and drop those that wait. A turn that awaits its caller is not in flight."""
        self._pending.drop_waiting()
        if self._pending.current is not None:
            with suppress(ActorStopped, Draining):
                await self.session.ask(Cancel())

    def passivate(self) -> Passive | None:
        """End the actors if they have nothing to do, and return what others are made from; None if they go on.

        A tool that still runs keeps them: what it returns, a ledger has to take.
        """
        if self._executor.running:
            return None
        objects = self._host.system.passivate(*self._all)
        if objects is None:
            return None
        session, (_, _, renderer, ledger) = self._acting, objects
        assert isinstance(renderer, RendererActor)
        assert isinstance(ledger, LedgerActor)
        affinity = session.affinity or None
        if not (renderer.lanes.bindings() or self._host.is_durable):
            return logged(affinity)
        return Passive(Replay(replace(session.state, ledger=ledger.known.ledger), renderer.lanes), affinity)

    @property
    def resumable(self) -> PendingAsks | None:
        """The asks of a turn that waits for its caller, if its answer has a form: the next actors take them on."""
        return self._pending if self._acting.waits and self._pending.form is not None else None

    def forget(self) -> Used | None:
        """Drop what the log says: they begin anew from it. Return what the session had used."""
        self._waits, used = self.waits, self.state.used
        self._state, self._lanes, self._made = UNREAD, Lanes(self._host.rules), None
        return used

    async def stop(self) -> None:
        """End the actors, the session first: it needs the others."""
        for ref in self._all:
            await self._host.system.stop(ref)

    def begin_anew(self, depth: int) -> None:
        """Make the actors, of what they are given at first, and of the log from then on."""
        self.equipment.restore()
        self._group = Group(self._host.system, RESTART)
        self.session = self._spawned(self._group, depth)
        self._host.system.watch(self.session, self._gone)

    @property
    def is_ending(self) -> bool:
        """Whether they are ending without a crash."""
        return self._group.ended is not None

    async def ended(self) -> None:
        """Wait until they have ended."""
        over = anyio.Event()
        self._host.system.watch(self.session, over.set)
        await over.wait()

    @property
    def _all(self) -> tuple[Ref[Never], ...]:
        """The actors, the session first."""
        return (self.session, self.refs.scheduler, self.refs.renderer, self.refs.ledger)

    def _spawned(self, group: Group, depth: int) -> Ref[SessionCommand]:
        name, spawn = self._name, partial(self._host.system.spawn, group=group, depth=depth)
        ledger = spawn(self._ledger_actor, f"{name}/ledger")
        renderer = spawn(self._renderer_actor, f"{name}/renderer")
        scheduler = spawn(partial(self._scheduler_actor, ledger), f"{name}/scheduler")
        self.refs = SessionRefs(scheduler, renderer, ledger, self._host.journal)
        session: Ref[SessionCommand] = spawn(self._session_actor, f"{name}/session")
        self._state = UNREAD  # what crashes from here on goes on from the log, in `started`
        return session

    def _ledger_actor(self) -> LedgerActor:
        """Return the ledger, which is made first; made of nothing, it begins a generation that reads the log."""
        if not self._state.session:
            replay, self._replay = self._replay, None
            self._generation = self._generation.following(replay)
        return LedgerActor(self._name, self._state.ledger, self._host.journal, self._generation)

    def _renderer_actor(self) -> RendererActor:
        return RendererActor(self._lanes, self._generation)

    def _scheduler_actor(self, ledger: Ref[LedgerCommand]) -> SchedulerActor:
        return SchedulerActor(self.equipment.tools, ledger, self._executor, self._approve)

    def _session_actor(self) -> "SessionActor":
        from actors.session.session_actor import (
            SessionActor,  # and all that drives its turns: with the first session
        )

        bounds, pending, made = self._bounds, self._pending, self._generation
        if self._made is not None:
            self._waits = self.waits
        self._made = SessionActor(
            self._state, self.refs, self.equipment, bounds, pending, made, self._affinity
        )
        return self._made

    def _gone(self) -> None:
        """End the streams of a session whose actors have ended, and have it forgotten or put away."""
        why = self._group.ended if isinstance(self._group.ended, JournalError) else None
        if why is None or isinstance(why, Fenced):
            self._on_ended(why)
        else:
            self._on_suspended()
        self._pending.clear(why)
