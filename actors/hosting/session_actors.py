"""The actors that a session has while it is used: made together from its log, restarted together, put away together."""

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Never

import anyio

from actors.backends.choosing import Affinity
from actors.core.feed import PendingCall
from actors.core.form import replace
from actors.core.spending import Used
from actors.core.state import UNREAD, Lanes, SessionState
from actors.errors import ActorStopped, Draining, Fenced, JournalError
from actors.execution.executor import Executor
from actors.hosting.passive import Passive, logged
from actors.kernel import Group, Ref, Restart
from actors.ledger import LedgerActor, LedgerCommand
from actors.logs.log import Generation
from actors.renderer import RendererActor
from actors.scheduler import SchedulerActor
from actors.turns.commands import Cancel, SessionCommand
from actors.turns.configuration import Equipment
from actors.turns.inflight import SessionRefs
from actors.turns.pending import PendingAsks

if TYPE_CHECKING:
    from actors.hosting.activation import Activation
    from actors.session import SessionActor

RESTART = Restart(ends=(JournalError,))
"""A session's actors begin anew after a crash. What keeps an event from being written, or the log from being read, is
none."""


class SessionActors:
    """A session's actors. They are made from its log, and restart together."""

    def __init__(self, activation: "Activation", kept: Passive) -> None:
        host = activation.host
        self._activation, self._host, self._name = activation, host, activation.name
        self._state, self._lanes = kept.made or host.recalled(activation.name)
        self._affinity = kept.affinity or Affinity()
        self._waits = activation.waits
        self._made: SessionActor | None = None
        self.equipment = Equipment(activation.configuration, host.resolver, activation.change)
        self._pending = activation.pending or PendingAsks(host.most_waiting)
        self._pending.rested, self._pending.record = activation.rested, activation.record
        self._executor = Executor(
            host.system,
            self._name,
            host.limits,
            host.quarantine,
            host.tool_failed,
            activation.deps,
            activation.key,
            activation.tenant,
            host.open_below,
            host.tools,
        )
        fence, holding = activation.fence, activation.holding
        self._generation = Generation(self._name, fence, host.journal, host.rules, holding)
        self.refs: SessionRefs
        self.session: Ref[SessionCommand]
        self.begin_anew(activation.depth)

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
        self._activation.pending = self._pending if session.waits and self._pending.form is not None else None
        if not (renderer.lanes.bindings() or self._host.is_durable):
            return logged(affinity)
        return Passive((replace(session.state, ledger=ledger.known.ledger), renderer.lanes), affinity)

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
            self._generation = self._generation.following
        return LedgerActor(self._name, self._state.ledger, self._host.journal, self._generation)

    def _renderer_actor(self) -> RendererActor:
        return RendererActor(self._lanes, self._generation)

    def _scheduler_actor(self, ledger: Ref[LedgerCommand]) -> SchedulerActor:
        return SchedulerActor(self.equipment.tools, ledger, self._executor, self._activation.approve)

    def _session_actor(self) -> "SessionActor":
        from actors.session import SessionActor  # and all that drives its turns: with the first session

        bounds, pending, made = self._activation.bounds, self._pending, self._generation
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
            self._activation.ended(why)
        else:
            self._activation.suspend()
        self._pending.clear(why)
