"""Manage one open session: create, passivate and stop its actors, and decide which of its state is in memory.

`actors.core.session.lifecycle` is the table of states, and this module carries out its actions. Most sessions are idle.
An idle session gives up its actors, and later the state and lanes that its log folds to. With a durable journal, only
the values that are in no log then stay in memory. The next use creates actors from the same log, and therefore with the
same state. The host's residency decides what idle sessions keep (`actors.runtime.residency`).

If an event cannot be written, the actors of its session are ahead of the log. They are stopped at once, whatever they
are doing, and created from the log at the next use. Actors that cannot read the log are treated in the same way.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import partial
from types import EllipsisType

import anyio

from actors.core.session.awaiting import pending_calls
from actors.core.session.lifecycle import LifecycleAction, LifecycleEvent, LifecycleState, step
from actors.core.settings.spending import Used
from actors.core.stream_events.results import PendingCall
from actors.core.stream_events.sink import Sink
from actors.errors import (
    ActorFailed,
    ActorStopped,
    Fenced,
    JournalBehind,
    JournalDamaged,
    JournalError,
    ShuttingDown,
)
from actors.journal.holding import MemoryUse
from actors.journal.log import Replay
from actors.provider.choosing import Affinity
from actors.provider.resolver import Resolver
from actors.runtime.host_task import HostTask
from actors.runtime.session_actors import ActorHooks, SessionActors, SessionSpec
from actors.runtime.session_host import SessionHost
from actors.scheduler.children import ParentCall
from actors.session.commands import Close
from actors.session.configuration import ConfigChange, Configuration
from actors.session.pending import PendingAsks, copy_error
from actors.session.records import SessionAskTracker
from actors.telemetry import logger
from actors.tools import Toolset
from actors.tools.toolsets import ToolItem

OBJECTS = 4096
"""Estimated bytes of a session's objects while it is in memory, without its messages, calls and lanes."""

END_TRIES = 8
"""Attempts to log the end of a session. It exceeds the restarts that a session may have while it closes."""


class SessionLifecycle:
    """The life of one session on this host, from the time its log was written or read until the session ends here.

    Args:
        spec: The session's fixed values.
        host: What the session shares with the other sessions of the runtime.
        configuration: The session's target, system prompt and tools. Its toolsets are released when the session ends.
        replay: The session's log, folded.
        resolver: The session's resolver, kept with the replay for the first use.
        pending: The asks of a turn that waits for its caller, if the answer has a type, which is in no log.

    `above`: the call that opened the session, if it is a subagent. `used`: its usage when its actors last ended.
    `fenced`: the error that ended the session, if another host has it. `handles`: the number of callers that hold the
    session (`actors.runtime.handles`).
    """

    __slots__ = (
        "_actors",
        "_affinity",
        "_closing",
        "_pending",
        "_replay",
        "_resolver",
        "_state",
        "_submitting",
        "above",
        "configuration",
        "fenced",
        "handles",
        "holding",
        "host",
        "is_given_back",
        "record",
        "spec",
        "used",
    )

    configuration: Configuration
    host: SessionHost
    spec: SessionSpec
    handles: int
    is_given_back: bool

    def __init__(
        self,
        spec: SessionSpec,
        host: SessionHost,
        configuration: Configuration,
        replay: Replay,
        resolver: Resolver,
        pending: PendingAsks | None = None,
    ) -> None:
        self.spec, self.host, self.configuration = spec, host, configuration
        self.record: SessionAskTracker = SessionAskTracker(spec.name, host.backends.meters.asks, host.advise)
        self.holding: MemoryUse = MemoryUse(host.residency.held)
        self.handles, self.is_given_back, self._submitting = 0, False, 0
        self.above: ParentCall | None = None
        self.used: Used | None = replay.state.used
        self.fenced: Fenced | None = None
        self._closing: HostTask | None = None
        self._state: LifecycleState = "folded"
        self._actors: SessionActors | None = None
        self._affinity: Affinity | None = None
        self._pending = pending
        self._resolver: Resolver | None = resolver
        self._replay: Replay | None = replay
        self._begin(replay)

    def _begin(self, replay: Replay) -> None:
        state = replay.state
        self.record.pending_calls = pending_calls(state, state.ledger)
        self._rest_record()
        self.holding.record_size("messages", state.size)
        self.holding.record_size("calls", state.ledger.size)
        self.holding.record_size("objects", OBJECTS)
        self.host.residency.add_folded(self)

    def _rest_record(self) -> None:
        self.record.record_phase("awaiting" if self.record.pending_calls else "idle")

    # What callers see

    @property
    def name(self) -> str:
        """The session's id."""
        return self.spec.name

    @property
    def fence(self) -> int:
        """The fencing number of this host's claim on the session."""
        return self.spec.fence

    @property
    def state(self) -> LifecycleState:
        """The session's current state; see the table in `actors.core.session.lifecycle`."""
        return self._state

    @property
    def target(self) -> str:
        """The target of the next ask."""
        return self.configuration.target

    @property
    def tools(self) -> Toolset:
        """The tools that the session's model may call."""
        return self.configuration.session_tools.tools

    @property
    def pending_calls(self) -> tuple[PendingCall, ...]:
        """The calls that the turn in flight waits for."""
        return self.record.pending_calls

    @property
    def busy(self) -> bool:
        """True if an ask is in flight or queued, or a turn waits for its caller."""
        return bool(self.pending_calls) or (self.actors is not None and self.actors.busy)

    @property
    def actors(self) -> SessionActors | None:
        """The session's actors, or None if it has none."""
        return self._actors if self._state == "active" else None

    @property
    def is_over(self) -> bool:
        """True if the session has ended."""
        return self._state == "ended"

    # The actions of the table

    def _step(self, event: LifecycleEvent) -> LifecycleAction:
        """Enter the state that follows an event in the table, and return the action to take."""
        action, self._state = step(self._state, event)
        return action

    def activate(self) -> SessionActors:
        """Return the session's actors; create them if there are none. They may be passivated at the next await.

        Raises:
            ActorStopped: The session has ended, or the system is shutting down.
            Fenced: The session has ended, because another host has it.
            ShuttingDown: The system is shutting down.
        """
        if self._state == "ended" or not self.host.running:
            raise copy_error(self.fenced) or ActorStopped(f"Session {self.name!r} has ended; open another")
        match self._step("use"):
            case "read":
                self._make_actors()
                self.host.residency.reuse.rebuild()
            case "restore":
                # the first use of a session is not a reuse
                self.host.residency.reuse.hits += self._resolver is None
                self._make_actors()
            case "restart":
                self.holding.record_size("objects", OBJECTS)
                self.current.start()
            case _:
                self.host.residency.reuse.hits += 1
        self.host.residency.add_active(self)
        return self.current

    @property
    def current(self) -> SessionActors:
        """The session's actors. The session must have actors."""
        assert self._actors is not None
        return self._actors

    def _make_actors(self) -> None:
        """Create the actors, from the replay if it is in memory."""
        self.host.residency.remove_folded(self)
        self.holding.record_size("objects", OBJECTS)
        pending = self._pending or PendingAsks(self.host.most_waiting)
        pending.rested, pending.record = self.on_ask_end, self.record
        self._actors = SessionActors(
            self.spec,
            self.host,
            self.configuration,
            self.holding,
            pending,
            self._affinity or Affinity(),
            ActorHooks(self.change, self._actors_ended),
            self._replay or self.host.replay(self.name),
        )
        self._replay = self._resolver = self._pending = None

    def passivate(self) -> bool:
        """End the actors if they have nothing to do. Return True if the session is without actors now."""
        if self._state == "active" and (replay := self.current.passivate()) is not None:
            self._step("rest")
            actors, self._actors = self.current, None
            # keep the type of the answer, which is in no log
            self._pending = actors.pending if self.pending_calls and actors.pending.form is not None else None
            self._replay, self._affinity, self.used = replay, actors.affinity or None, replay.state.used
            self.host.residency.add_folded(self)
        return self._state != "active"

    def evict(self) -> None:
        """Drop the folded log from memory."""
        if self._step("evict") == "drop":
            self.host.residency.remove_folded(self)
            self._replay = self._resolver = None
            self._count_log()

    def _count_log(self) -> None:
        """Count the memory of a session whose folded log was dropped."""
        self.holding.record_size("lanes", 0)
        self.holding.record_size("objects", 0)
        if self.host.is_durable:
            self.holding.release()

    def _actors_ended(self, error: JournalError | None) -> None:
        """Suspend the session if its journal failed; end it if another host has it, or its actors crashed too often."""
        if error is None or isinstance(error, Fenced):
            self.end(error)
            return
        self._step("fail")
        self.used = self.current.forget()
        self._rest_record()
        self._count_log()
        self.host.residency.remove_active(self)

    def end(self, fenced: Fenced | None = None) -> None:
        """End the session on this host without logging an event. `fenced`: set if another host has the session."""
        was, action = self._state, self._step("end")
        if action == "nothing":
            return
        if was == "active":
            self.used = self.current.state.used or self.used
        self._actors = self._replay = self._resolver = self._pending = None
        self.fenced = fenced
        self.record.pending_calls = ()
        self.record.record_phase("ended")
        if fenced is not None:
            logger.session_fenced(self.name, fenced)
        self.holding.release()
        self.configuration.release()
        self.host.forget(self)

    # Uses and users

    def audience(self, sink: Sink, variables: Context) -> Sink:
        """Return the sink for an ask: its caller's, combined with the other readers of the session and tracing."""
        sink = sink if self.above is None else self.above.sink_for(self.name, sink)
        shared, tracing = self.host.readers.shared_sink(self.name, sink), self.host.tracing
        return shared if tracing is None else tracing.attach(self.name, shared, variables)

    async def change(
        self,
        system: str | EllipsisType | None,
        tools: Iterable[ToolItem] | EllipsisType,
        target: str | None = None,
    ) -> ConfigChange:
        """Return the change for `Session.configure`, with open toolsets. The caller must apply or drop it.

        `target`: the target that must accept these tools; by default, the session's target.
        """
        if tools is ...:
            return ConfigChange(system, ...)
        prompt, host = self.configuration.system if system is ... else system, self.host

        def check(made: Toolset) -> None:
            host.backends.resolver(made, prompt).pool(target or self.target)

        return ConfigChange(system, await host.toolsets.open(tools, check))

    async def give_back(self) -> None:
        """Record that a caller has given the session back. Without handles, it hibernates or closes once it is idle."""
        self.handles -= 1
        self.is_given_back = True
        await self._rest_unused()

    def on_ask_end(self) -> None:
        """Called when an ask has ended or its turn waits: free memory, and hibernate or close an unused session."""
        self.host.residency.trim()
        if self.is_given_back and not self.handles:
            self.host.start(self._rest_unused, f"{self.name}/unused")

    async def _rest_unused(self) -> None:
        """Let a session without handles hibernate; close it if its log is in memory. A busy session stays open."""
        if self.handles or self.is_over:
            return
        if self.host.is_durable:
            self.host.residency.add_unused(self)
        elif self.closing is None and not self.busy:
            await self.close()

    @contextmanager
    def submitting(self) -> Generator[None]:
        """Keep the session on this host inside the block, while an ask waits to be accepted."""
        self._submitting += 1
        try:
            yield
        finally:
            self._submitting -= 1

    def let_go(self) -> bool:
        """End the session here if it has no handle and is idle; its log stays open. Return True if it has ended."""
        if self.handles or self.closing is not None or self.name in self.host.readers.following:
            return False
        if self._submitting or self.pending_calls or not self.passivate():
            return False
        if self.is_over or (self._state == "suspended" and self.current.runs_tools):
            return False
        self.end()
        return True

    # The end

    @property
    def is_ending(self) -> bool:
        """True if the actors are ending because the journal has failed."""
        return self._state == "active" and self.current.is_ending

    async def actors_ended(self) -> None:
        """Wait until actors that are ending have ended. They start no more work."""
        while self.is_ending:
            await self.current.wait_ended()

    async def interrupt_asks(self) -> None:
        """End the ask in flight, drop the queued asks, and wait for a close that is under way."""
        if self.closing is not None:
            await self.closing.wait()
        while self.actors is not None and self.actors.busy:
            with suppress(ActorFailed, JournalError):  # the loop tries again when the actors have restarted
                await self.actors.interrupt()

    @property
    def closing(self) -> HostTask | None:
        """The task of a close that is in progress or done; None if there is none, or the close has failed."""
        return None if self._closing is None or self._closing.has_failed else self._closing

    async def close(self, *, in_order: bool = True) -> None:
        """Close the session, and wait for it. If the caller is cancelled, the close continues.

        Toolsets close after the session has ended. Otherwise a toolset that hangs would delay the call of a subagent.

        Args:
            in_order: Cancel the ask in flight first, and log the end of the session. With False, an open turn is closed
                when the log is next read.

        Raises:
            JournalUnavailable: The end cannot be logged. The session stays open, without its earlier asks.
            Fenced: Another host has the session, so it has ended here.
            ShuttingDown: The close itself was cancelled. The session stays open.
        """
        if (closing := self.closing) is None:
            work = partial(self._close, in_order)
            closing = self._closing = self.host.launch(work, f"{self.name}/close")
        try:
            await closing.result()
        except ShuttingDown:
            if self.is_over:
                return
            raise ShuttingDown(
                f"The close of session {self.name!r} was cancelled before it was done; close it again"
            ) from None

    async def _close(self, in_order: bool) -> None:
        goes_on = False
        try:
            if in_order and not self.is_over:
                # the session has ended already, or its log cannot be written
                with suppress(ActorStopped, ShuttingDown, JournalDamaged):
                    await self._write_end()
        except Exception as error:
            goes_on = not isinstance(error, Fenced)
            raise
        finally:
            if not goes_on:
                await self._stop()

    async def _write_end(self) -> None:
        """Log the end. Try again after a crash, or if the log has lost its last events."""
        for left in reversed(range(END_TRIES)):
            await self.actors_ended()
            try:
                await (self.actors or self.activate()).session.ask(Close())
            except (ActorFailed, JournalBehind) as error:
                if not left and isinstance(error, JournalBehind):
                    raise
            else:
                return

    async def _stop(self) -> None:
        """End the actors, and the session with them."""
        with anyio.CancelScope(shield=True):
            if self.actors is not None:
                await self.actors.stop()
            self.end()  # nothing to do if the end of the actors has ended it
