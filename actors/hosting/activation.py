"""A session between its uses: what is kept of it, and how its actors come and go.

Idle sessions are many, so one that has nothing to do is its log and a few words besides. What its actors know, lanes
included, is a fold of that log, so those that are made at its next use are as good as those that were put away. Which
of the sessions with nothing to do keep their actors, or what had been made of their logs, their host says
(`actors.hosting.session_host`). Where logs are kept on disk, nothing of a session that sleeps is in memory but what no
log has.

A session of which an event could not be written is ahead of its log. It is put away too, at once and with whatever it
was doing: what it knows is dropped, and its actors begin from the log when it is used again. So is one whose log cannot
be read.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from types import EllipsisType
from typing import TYPE_CHECKING, Never

import anyio
from msgspec import Struct

from actors.core.awaiting import pending
from actors.core.batch import Approve
from actors.core.events import Opened
from actors.core.feed import PendingCall
from actors.core.form import replace
from actors.core.ledger import Ledger
from actors.core.packed import size_of
from actors.core.spending import Used
from actors.core.state import UNREAD, Lanes, SessionState
from actors.core.turn import Bounds
from actors.errors import (
    ActorFailed,
    ActorStopped,
    Draining,
    Fenced,
    JournalDamaged,
    JournalError,
    JournalUnavailable,
)
from actors.execution.children import Above
from actors.execution.executor import Executor
from actors.hosting.passive import LOGGED, Closing, Over, Passive, logged
from actors.hosting.session_host import SessionHost
from actors.kernel import Group, Ref, Restart
from actors.ledger import LedgerActor, LedgerCommand
from actors.logs.holding import Holding
from actors.logs.log import Generation
from actors.renderer import RendererActor
from actors.scheduler import SchedulerActor
from actors.tools import Toolset
from actors.toolsets import Item, Offer
from actors.turns.commands import Cancel, End, SessionCommand
from actors.turns.configuration import Change, Configuration, Equipment
from actors.turns.inflight import SessionRefs
from actors.turns.pending import PendingAsks, again

if TYPE_CHECKING:
    from actors.session import SessionActor

RESTART = Restart(ends=(JournalUnavailable, JournalDamaged, Fenced))
"""A session's actors begin anew after a crash. What keeps an event from being written, or the log from being read, is
none."""


class Suspended(Struct, frozen=True):
    """A session that was put away because of its journal.

    `actors`: what is left of them: asks, tools that still run. `used`: what it had used.
    """

    actors: "SessionActors"
    used: Used | None


SESSION = 2048
"""Bytes of what is around the state and the lanes of a session, about."""


class Activation:
    """One session, with its actors or without: asleep, awake, asleep again, and at last ended.

    Args:
        opened: The first event of its log.
        fence: The number with which it was claimed.
        host: What it shares with the others.
        offer: What its model may call. What of that had to be opened is given back when the session ends.
        approve: Asked before calls of some tools.
        deps: What the host gave its tools.
        depth: Where its actors stand in the order of asks.
        bounds: How long a turn of it may go on.

    `above`: the call that it was opened for, if it is a subagent; `used`: what it had used when it ended.
    """

    __slots__ = (
        "_closing",
        "_now",
        "_target",
        "_waits",
        "above",
        "approve",
        "bounds",
        "configuration",
        "deps",
        "depth",
        "fence",
        "holding",
        "host",
        "key",
        "name",
        "pending",
        "used",
    )

    def __init__(
        self,
        opened: Opened,
        fence: int,
        host: SessionHost,
        offer: Offer,
        approve: Approve | None,
        deps: object,
        depth: int,
        bounds: Bounds,
    ) -> None:
        self.name, self.key, self.fence, self.bounds = opened.session, opened.key, fence, bounds
        self.configuration = Configuration(opened.system, offer, host.toolsets)
        self.host, self.approve, self.deps, self.depth = host, approve, deps, depth
        self._now: Passive | SessionActors | Suspended | Over = LOGGED
        self._target = opened.target
        self.holding = Holding(host.held)
        if not host.is_durable:
            self.holding.count("messages", sum(map(size_of, opened.messages)))
            self.holding.count("calls", Ledger(opened.known).size)
        self._waits: tuple[PendingCall, ...] = ()
        self.pending: PendingAsks | None = None  # of a turn that waits
        self.above: Above | None = None
        self.used: Used | None = None
        self._closing: Closing | None = None

    def activate(self) -> "SessionActors":
        """Return the session's actors, made now if it has none. Send to them before the next wait.

        Raises:
            ActorStopped: The session has ended.
            Fenced: It has, because another writer has it now.
            Draining: The system is shutting down.
        """
        match self._now:
            case SessionActors() as actors if self.host.running:
                pass
            case Suspended(actors=actors) if self.host.running:
                actors.begin_anew(self.depth)
                self._now = actors
            case Passive() as kept if self.host.running:
                self.host.taken_up(self, kept.size)
                actors = self._now = SessionActors(self, kept)
            case Over(fenced=Fenced() as why):
                raise Fenced(str(why))
            case _:
                raise ActorStopped(f"Session {self.name!r} has ended; open another")
        self.host.used(self)
        return actors

    def recall(self, state: SessionState, lanes: Lanes) -> None:
        """Take what was made of the session's log elsewhere: nothing is open in it but a turn that waits."""
        self._waits = pending(state, state.ledger)
        self.holding.count("messages", state.size)
        self.holding.count("calls", state.ledger.size)
        self._sleep(Passive((state, lanes)))

    def _sleep(self, kept: Passive) -> None:
        """Have no actors from now on, and in memory only what is kept."""
        if kept.made is None:
            self._now = kept
            self._release()
        else:
            size = SESSION + (self.holding.total if self.host.is_durable else self.holding.lanes)
            self._now = replace(kept, size=size)
            self.host.passivated(self, size)

    def _release(self) -> None:
        """Count what a session holds of which nothing is kept but its log."""
        self.holding.count("lanes", 0)
        if self.host.is_durable:
            self.holding.release()

    def passivate(self) -> bool:
        """Put the actors away if they have nothing to do; say whether the session is without them now."""
        if isinstance(self._now, SessionActors):
            self._target, self._waits = self.target, self.waits
            if (kept := self._now.passivate()) is not None:
                self._sleep(kept)
        return not isinstance(self._now, SessionActors)

    def drop(self) -> None:
        """Drop the state and lanes of a passive session; keep only what its log does not hold."""
        assert isinstance(self._now, Passive)
        self.host.taken_up(self, self._now.size)
        self._sleep(logged(self._now.warmth))

    @property
    def is_ending(self) -> bool:
        """Whether its actors are being put away, or end because another writer has it."""
        return isinstance(self._now, SessionActors) and self._now.is_ending

    async def put_away(self) -> None:
        """Wait until they have been. It takes no longer than what they had started."""
        while isinstance(self._now, SessionActors) and self._now.is_ending:
            await self._now.ended()

    def suspend(self) -> None:
        """Note that the actors have ended, and are to begin from the log when the session is used again."""
        assert isinstance(self._now, SessionActors)
        self._target, self._waits = self.target, self.waits
        self._now = Suspended(self._now, self._now.forget())
        self._release()
        self.host.active.pop(self.name, None)

    @property
    def tools(self) -> Toolset:
        """What the session's model may call."""
        return self.configuration.offer.tools

    @property
    def target(self) -> str:
        """Whom the next ask goes to."""
        return (isinstance(self._now, SessionActors) and self._now.target) or self._target

    @property
    def actors(self) -> "SessionActors | None":
        """Its actors, if it has any now."""
        return self._now if isinstance(self._now, SessionActors) else None

    @property
    def waits(self) -> tuple[PendingCall, ...]:
        """The calls that the turn in flight waits for."""
        return self._now.waits if isinstance(self._now, SessionActors) else self._waits

    @property
    def busy(self) -> bool:
        """Whether an ask is in flight, or waits."""
        return bool(self.waits) or (isinstance(self._now, SessionActors) and self._now.busy)

    async def change(
        self,
        system: str | EllipsisType | None,
        tools: Iterable[Item] | EllipsisType,
        target: str | None = None,
    ) -> Change:
        """Return what `Session.configure` asks for, its toolsets open: `Configuration.drop` it, or have it taken.

        `target`: who must take so many tools; that of the session if it is not given.
        """
        if tools is ...:
            return Change(system, ...)
        said, host = self.configuration.system if system is ... else system, self.host

        def check(made: Toolset) -> None:
            host.resolver(made, said).pool(target or self.target)

        return Change(system, await host.toolsets.open(tools, check))

    def ended(self, fenced: Fenced | None = None) -> None:
        """Forget the session: it was ended in order, its actors crashed too often, or another writer has it."""
        match self._now:
            case Passive(size=size):
                self.host.taken_up(self, size)
            case SessionActors(state=SessionState(used=used)) | Suspended(used=used):
                self.used = used
            case Over():
                pass
        self._target, self._waits, self._now = self.target, (), Over(fenced)
        self.holding.release()
        if owners := self.configuration.owners:
            self.host.toolsets.release(owners)
        self.host.active.pop(self.name, None)
        self.host.readers.end(self.name)
        self.host.ended(self)
        self.host.release(self.name, self.fence)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return isinstance(self._now, Over)

    @property
    def fenced(self) -> Fenced | None:
        """Why it has ended, if another writer has it now."""
        return self._now.fenced if isinstance(self._now, Over) else None

    async def close(self, *, in_order: bool = True) -> None:
        """Have the host end the session, and wait for that. A caller that goes away does not take it back.

        Its toolsets are left behind its back: one that does not end would hold up the call of a subagent with it.

        Args:
            in_order: End the ask in flight first, and write that the session has ended. Else what is in flight ends
                when the log is read again.

        Raises:
            JournalUnavailable: The end cannot be written. The session goes on, without the asks that it had.
            Fenced: Another writer has the session, which has ended here.
        """
        if (closing := self._closing) is None:
            closing = self._closing = Closing(anyio.Event())
            self.host.start(partial(self._close, closing, in_order), f"{self.name}/close")
        await closing.over.wait()
        if (error := again(closing.error)) is not None:
            raise error

    async def settle(self) -> None:
        """End the ask in flight, drop those that wait, and let a close come to its end."""
        if self._closing is not None:
            await self._closing.over.wait()
        while isinstance(self._now, SessionActors) and self._now.busy:
            with suppress(ActorFailed, JournalError):  # once more, when what crashed has been rebuilt
                await self._now.interrupt()

    async def _close(self, closing: Closing, in_order: bool) -> None:
        try:
            if in_order and not self.is_over:
                with suppress(ActorStopped, Draining, JournalDamaged):  # it has ended, or none can be written
                    await self._write_end()
        except JournalError as error:
            closing.error = error
        finally:
            if isinstance(closing.error, JournalUnavailable):
                self._closing = None
            else:
                with anyio.CancelScope(shield=True):
                    await self._end()
            closing.over.set()

    async def _write_end(self) -> None:
        """Have the end written; ask again after a crash, as often as the session may restart."""
        while True:
            await self.put_away()
            with suppress(ActorFailed):
                return await (self.actors or self.activate()).session.ask(End())

    async def _end(self) -> None:
        """End the session's actors, and with them the session."""
        if isinstance(self._now, SessionActors):
            await self._now.stop()
        elif not isinstance(self._now, Over):
            self.ended()


class SessionActors:
    """A session's actors. They are made from its log, and restart together."""

    def __init__(self, activation: Activation, kept: Passive) -> None:
        host = activation.host
        self._activation, self._host, self._name = activation, host, activation.name
        self._state, self._lanes = kept.made or host.recalled(activation.name)
        self._warmth = kept.warmth or {}
        self._waits = activation.waits
        self._made: SessionActor | None = None
        self.equipment = Equipment(activation.configuration, host.resolver, activation.change)
        self._pending = activation.pending or PendingAsks(host.most_waiting)
        self._pending.rested = host.rested
        self._executor = Executor(
            host.system,
            self._name,
            host.limits,
            host.quarantine,
            host.tool_failed,
            activation.deps,
            activation.key,
            host.open_below,
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
        warmth = session.warmth or None
        self._activation.pending = self._pending if session.waits and self._pending.form is not None else None
        if not (renderer.lanes.size or self._host.is_durable):
            return logged(warmth)
        return Passive((replace(session.state, ledger=ledger.known.ledger), renderer.lanes), warmth)

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
        self._made = SessionActor(self._state, self.refs, self.equipment, bounds, pending, made, self._warmth)
        return self._made

    def _gone(self) -> None:
        """End the streams of a session whose actors have ended, and have it forgotten or put away."""
        why = self._group.ended if isinstance(self._group.ended, JournalError) else None
        if isinstance(why, JournalUnavailable | JournalDamaged):
            self._activation.suspend()
        else:
            self._activation.ended(why if isinstance(why, Fenced) else None)
        self._pending.clear(why)
