"""A session between its uses: what is kept of it, and how its actors come and go.

Idle sessions are many, so one that has nothing to do is its log and a few words besides. What its actors know, lanes
included, is a fold of that log, so those that are made at its next use are as good as those that were put away. Which
of the sessions with nothing to do keep their actors, or what had been made of their logs, their host says
(`actors.runtime.session_host`). Where logs are kept on disk, nothing of a session that sleeps is in memory but what no
log has.

A session of which an event could not be written is ahead of its log. It is put away too, at once and with whatever it
was doing: what it knows is dropped, and its actors begin from the log when it is used again. So is one whose log cannot
be read.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import partial
from types import EllipsisType

import anyio
from msgspec import Struct

from actors import telemetry
from actors.core.ledger import Ledger
from actors.core.log.events import Opened
from actors.core.session.awaiting import pending
from actors.core.session.state import SessionState
from actors.core.settings.labels import frozen
from actors.core.settings.spending import Used
from actors.core.stream_events.results import PendingCall
from actors.core.stream_events.sink import Sink
from actors.core.turn.batch import Approve
from actors.core.turn.bounds import Bounds
from actors.core.values.packed import size_of
from actors.errors import (
    ActorFailed,
    ActorStopped,
    Draining,
    Fenced,
    JournalBehind,
    JournalDamaged,
    JournalError,
)
from actors.journal.holding import Holding
from actors.journal.log import Replay
from actors.provider.backend import Resolver
from actors.runtime.passive import LOGGED, Closing, Over, Passive, logged
from actors.runtime.session_actors import SessionActors, SessionSetup
from actors.runtime.session_host import SessionHost
from actors.scheduler.children import Above
from actors.session.commands import End
from actors.session.configuration import Change, Configuration
from actors.session.pending import PendingAsks, again
from actors.session.records import AskRecord
from actors.tools import Toolset
from actors.tools.toolsets import Item, Offer


class Suspended(Struct, frozen=True):
    """A session that was put away because of its journal.

    `actors`: what is left of them: asks, tools that still run. `used`: what it had used.
    """

    actors: SessionActors
    used: Used | None


OBJECTS = 4096
"""Bytes of the objects that a session is while it is in memory, beside what it says and renders, about."""


END_TRIES = 8
"""How often the end is written at most: more than a session may restart, and than its log goes back meanwhile."""


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

    `above`: the call that it was opened for, if it is a subagent; `used`: what it had used when it ended; `handles`:
    how many have it (`actors.runtime.handles`); `record`: what is counted of its asks.
    """

    __slots__ = (
        "_closing",
        "_now",
        "_submitting",
        "_target",
        "_waits",
        "above",
        "approve",
        "bounds",
        "configuration",
        "deps",
        "depth",
        "fence",
        "handles",
        "holding",
        "host",
        "is_given_back",
        "key",
        "metadata",
        "name",
        "pending",
        "record",
        "tenant",
        "title",
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
        self.tenant, self.title, self.metadata = opened.tenant, opened.title, frozen(opened.metadata)
        self.configuration = Configuration(opened.system, offer, host.toolsets)
        self.host, self.approve, self.deps, self.depth = host, approve, deps, depth
        self._now: Passive | SessionActors | Suspended | Over = LOGGED
        self._target = opened.target
        self.record = AskRecord(self.name, host.asks, lambda result: host.ask_failed(result).advice)
        self.handles, self.is_given_back, self._submitting = 0, False, 0
        self.holding = Holding(host.held)
        if not host.is_durable:
            self.holding.count("messages", sum(map(size_of, opened.messages)))
            self.holding.count("calls", Ledger(opened.known).size)
        self._waits: tuple[PendingCall, ...] = ()
        self.pending: PendingAsks | None = None  # of a turn that waits
        self.above: Above | None = None
        self.used: Used | None = None
        self._closing: Closing | None = None

    def activate(self) -> SessionActors:
        """Return the session's actors, made now if it has none. Send to them before the next wait.

        Raises:
            ActorStopped: The session has ended.
            Fenced: It has, because another writer has it now.
            Draining: The system is shutting down.
        """
        match self._now:
            case SessionActors() as actors if self.host.running:
                self.host.reuse.hits += 1
            case Suspended(actors=actors) if self.host.running:
                actors.begin_anew(self.depth)
                self._now = actors
            case Passive() as kept if self.host.running:
                actors = self._woken(kept)
            case Over(fenced=Fenced() as why):
                raise Fenced(str(why))
            case _:
                raise ActorStopped(f"Session {self.name!r} has ended; open another")
        self.host.used(self)
        return actors

    def _woken(self, kept: Passive) -> SessionActors:
        """Return actors that are made of what is kept, or of the log."""
        self.host.taken_up(self)
        self.holding.count("objects", OBJECTS)
        self._now = SessionActors(self._setup, kept, self._waits, self.pending)
        if kept.replay is not None:
            self.host.reuse.hits += 1
        elif kept.dropped:
            self.host.reuse.rebuild()
        return self._now

    @property
    def _setup(self) -> SessionSetup:
        """The values that its actors are made with."""
        return SessionSetup(
            self.name,
            self.key,
            self.tenant,
            self.fence,
            self.host,
            self.configuration,
            self.holding,
            self.record,
            self.bounds,
            self.approve,
            self.deps,
            self.depth,
            self.change,
            self.rested,
            self.ended,
            self.suspend,
        )

    def recall(self, replay: Replay, resolver: Resolver) -> None:
        """Keep the log as it was read for the next use."""
        state = replay.state
        self._waits = pending(state, state.ledger)
        self.record.enter("awaiting" if self._waits else "idle")
        self.holding.count("messages", state.size)
        self.holding.count("calls", state.ledger.size)
        self.holding.count("objects", OBJECTS)
        self._sleep(Passive(replay, resolver=resolver))

    def _sleep(self, kept: Passive) -> None:
        """Have no actors from now on, and in memory only what is kept."""
        self._now = kept
        if kept.replay is None:
            self._release()
        else:
            self.host.passivated(self)

    def _release(self) -> None:
        """Count what a session holds of which nothing is kept but its log."""
        self.holding.count("lanes", 0)
        self.holding.count("objects", 0)
        if self.host.is_durable:
            self.holding.release()

    def passivate(self) -> bool:
        """Put the actors away if they have nothing to do; say whether the session is without them now."""
        if isinstance(self._now, SessionActors):
            self._target, self._waits = self.target, self.waits
            if (kept := self._now.passivate()) is not None:
                self.pending = self._now.resumable
                self._sleep(kept)
        return not isinstance(self._now, SessionActors)

    def drop(self) -> None:
        """Drop the state and lanes of a passive session; keep only what its log does not hold."""
        assert isinstance(self._now, Passive)
        self.host.taken_up(self)
        self._sleep(logged(self._now.affinity, dropped=True))

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
        self.record.enter("awaiting" if self._waits else "idle")
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
    def actors(self) -> SessionActors | None:
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
            case Passive():
                self.host.taken_up(self)
            case SessionActors(state=SessionState(used=used)) | Suspended(used=used):
                self.used = used
            case Over():
                pass
        self._target, self._waits, self._now = self.target, (), Over(fenced)
        self.record.enter("ended")
        if fenced is not None:
            telemetry.session_fenced(self.name, fenced)
        self.holding.release()
        if owners := self.configuration.owners:
            self.host.toolsets.release(owners)
        self.host.active.pop(self.name, None)
        self.host.unused.pop(self.name, None)
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
            Draining: The close was cancelled before it was done. The session is still open.
        """
        if (closing := self._closing) is None:
            closing = self._closing = Closing(anyio.Event())
            work = partial(self._close, closing, in_order)
            self.host.start(work, f"{self.name}/close", partial(self._conclude, closing))
        await closing.over.wait()
        if (error := again(closing.error)) is not None:
            raise error

    def audience(self, sink: Sink, variables: Context) -> Sink:
        """Return where the events of an ask go: to its caller, and to all who read along."""
        sink = sink if self.above is None else self.above.joined(self.name, sink)
        shared, tracing = self.host.readers.joined(self.name, sink), self.host.tracing
        return shared if tracing is None else tracing.joined(self.name, shared, variables)

    @property
    def closing(self) -> Closing | None:
        """The close that is under way, or is done."""
        return self._closing

    async def give_back(self) -> None:
        """Take note that one less has the session. Nobody having it, it is put away as soon as it is idle."""
        self.handles -= 1
        self.is_given_back = True
        await self._put_away_unused()

    def rested(self) -> None:
        """Take note that an ask has ended, or its turn begins to wait."""
        self.host.rested()
        if self.is_given_back and not self.handles:
            self.host.start(self._put_away_unused, f"{self.name}/unused")

    async def _put_away_unused(self) -> None:
        """Have the session hibernate if nobody has it, or close it if its log is in memory; not while it is busy."""
        if self.handles or self.is_over:
            return
        if self.host.is_durable:
            self.host.hibernate(self)
        elif self._closing is None and not self.busy:
            await self.close()

    @contextmanager
    def submitting(self) -> Iterator[None]:
        """Keep the session on this host while an ask waits to be accepted, also if its caller holds no handle."""
        self._submitting += 1
        try:
            yield
        finally:
            self._submitting -= 1

    def let_go(self) -> bool:
        """End the session here, its log as it is, if nobody has it and it has nothing to do; say whether it has."""
        if self.handles or self._closing is not None or self.name in self.host.readers.following:
            return False
        if self._submitting or self.waits or not self.passivate():
            return False
        if self.is_over or (isinstance(self._now, Suspended) and self._now.actors.runs_tools):
            return False
        self.ended()
        return True

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
        except Exception as error:
            closing.error = error
            if not isinstance(error, JournalError):  # a bug, which is logged
                raise
        finally:
            if closing.error is not None and not isinstance(closing.error, Fenced):
                self._closing = None
            else:
                with anyio.CancelScope(shield=True):
                    await self._end()

    def _conclude(self, closing: Closing) -> None:
        """Tell those who wait for a close how it ended. One that was cancelled, as before its first step, was none."""
        if closing.error is None and not self.is_over:
            closing.error = Draining(
                f"The close of session {self.name!r} was cancelled before it was done; close it again"
            )
            self._closing = None
        closing.over.set()

    async def _write_end(self) -> None:
        """Have the end written; ask again after a crash, and when the log went back: it says so by then."""
        for left in reversed(range(END_TRIES)):
            await self.put_away()
            try:
                await (self.actors or self.activate()).session.ask(End())
            except (ActorFailed, JournalBehind) as error:
                if not left and isinstance(error, JournalBehind):
                    raise
            else:
                return

    async def _end(self) -> None:
        """End the session's actors, and with them the session."""
        if isinstance(self._now, SessionActors):
            await self._now.stop()
        if not self.is_over:  # it had no actors, or what they ended with was the journal's fault
            self.ended()
