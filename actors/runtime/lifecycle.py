"""Manage one open session: create, passivate and stop its actors, and decide which parts of its state stay in memory.

`actors.core.session.lifecycle` contains the table of states, and this module performs its actions. Most sessions are
idle. An idle session first gives up its actors, and later the state and lanes that are rebuilt from its log. With a
durable journal, memory then contains only values that are not in the log. The next use recreates the actors, with the
same state, from the log. The host's residency decides how much of an idle session stays in memory
(`actors.runtime.residency`).

If an event cannot be written, the state of the session's actors is newer than the log. So the actors are stopped at
once, even during a turn, and the next use creates new actors from the log. Actors that cannot read the log are stopped
in the same way.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import partial

import anyio

from actors.core.session.lifecycle import LifecycleAction, LifecycleEvent, LifecycleState, step
from actors.core.session.open_asks import pending_calls
from actors.core.settings.spending import SessionUsage
from actors.core.stream_events.ask_events import PendingCall
from actors.core.stream_events.events import Sink
from actors.errors import ActorFailed, ActorsError, ActorStopped, Fenced, JournalError, ShuttingDown
from actors.journal.log import MemoryUse, Replay
from actors.provider.resolver import Affinity, Resolver
from actors.runtime.session_actors import (
    ActorHooks,
    SessionActors,
    SessionSpec,
    close_session,
    prepare_change,
)
from actors.runtime.session_host import HostTask, SessionHost
from actors.scheduler.children import ParentCall
from actors.session.configuration import Configuration
from actors.session.pending import PendingAsks, copy_error
from actors.session.records import SessionAskTracker
from actors.telemetry import logger
from actors.tools import Toolset

OBJECT_BYTES = 4096
"""Estimated bytes of a session's objects while it is in memory, without its messages, calls and lanes."""


class SessionLifecycle:
    """Manages one session on this host, from the time its log was written or read until the session ends here.

    Args:
        spec: The session's fixed values.
        host: The objects that all sessions of the runtime share.
        configuration: The session's target, system prompt and tools. The session's toolsets are released when the
            session ends.
        replay: The state, ledger and lanes rebuilt from the session's log.
        resolver: Resolves the session's target. The resolver is kept together with the replay, until the first use.
        pending: The asks of a session whose turn is paused. They are passed only to keep the type of the
            answer, which the log does not contain.

    Attributes that are not arguments: `parent_call` is the call that opened the session, if the session is a subagent.
    `used` is the session's usage when its actors last ended. `end_error` is the error that later uses of the session
    raise, if another host has claimed the session or may claim it. `departure` is the task that releases the session or
    hands it over (`actors.runtime.departure`). `handles` is the number of callers that hold the session, and
    `is_given_back` is True once a caller has released it (`actors.runtime.handles`).
    """

    __slots__ = (
        "_actors",
        "_affinity",
        "_ask_end",
        "_closing",
        "_pending",
        "_replay",
        "_resolver",
        "_state",
        "_submitting",
        "configuration",
        "departure",
        "end_error",
        "handles",
        "host",
        "is_given_back",
        "memory_use",
        "parent_call",
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
        self.memory_use: MemoryUse = MemoryUse(host.residency.held)
        self.handles, self.is_given_back, self._submitting = 0, False, 0
        self.parent_call: ParentCall | None = None
        self.used: SessionUsage | None = replay.state.used
        self.end_error: ActorsError | None = None
        self.departure: HostTask | None = None
        self._ask_end: anyio.Event | None = None
        self._closing: HostTask | None = None
        self._state: LifecycleState = "folded"
        self._actors: SessionActors | None = None
        self._affinity: Affinity | None = None
        self._pending = pending
        self._resolver: Resolver | None = resolver
        self._replay: Replay | None = replay
        self._add_to_residency(replay)

    def _add_to_residency(self, replay: Replay) -> None:
        """Add the session to the host's sessions in memory, with the sizes and the pending calls from its replay."""
        state = replay.state
        self.record.pending_calls = pending_calls(state, state.ledger)
        self._enter_idle_stage()
        self.memory_use.record_size("messages", state.size)
        self.memory_use.record_size("calls", state.ledger.size)
        self.memory_use.record_size("objects", OBJECT_BYTES)
        self.host.residency.add_folded(self)

    def _enter_idle_stage(self) -> None:
        """Record that no ask is running: the session is `awaiting` if a turn is paused, otherwise `idle`."""
        self.record.record_phase("awaiting" if self.record.pending_calls else "idle")

    # Properties of the session

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
        """The target of the next ask. A queued switch changes the target when the switch is applied."""
        return self.configuration.target

    @property
    def tools(self) -> Toolset:
        """The tools that the session's model may call."""
        return self.configuration.session_tools.tools

    @property
    def pending_calls(self) -> tuple[PendingCall, ...]:
        """The calls for which the turn waits: external calls without a result, and calls that need a decision."""
        return self.record.pending_calls

    @property
    def busy(self) -> bool:
        """True if an ask is in flight or queued, or a turn is paused."""
        return bool(self.pending_calls) or (self.actors is not None and self.actors.busy)

    @property
    def actors(self) -> SessionActors | None:
        """The session's actors, or None if it has none."""
        return self._actors if self._state == "active" else None

    @property
    def is_over(self) -> bool:
        """True if the session has ended on this host."""
        return self._state == "ended"

    # Creating, passivating and evicting

    def _apply_event(self, event: LifecycleEvent) -> LifecycleAction:
        """Enter the state to which an event leads according to the table, and return the action to take."""
        action, self._state = step(self._state, event)
        return action

    def activate(self) -> SessionActors:
        """Return the session's actors, which are created if there are none.

        The actors may be passivated at the caller's next `await` if they are idle then.

        Raises:
            ActorStopped: The session has ended, or the system is shutting down.
            Fenced, SessionLeased: The session has ended, because another host owns it.
            SessionClosed: The session has ended, because it was released.
            ShuttingDown: The system is shutting down.
        """
        if self._state == "ended" or not self.host.running:
            raise copy_error(self.end_error) or ActorStopped(
                f"Session {self.name!r} has ended; open another session"
            )
        match self._apply_event("use"):
            case "read":
                self._make_actors()
                self.host.residency.reuse.count_rebuild()
            case "restore":
                # before the first use, which does not count as a hit, `_resolver` is set
                self.host.residency.reuse.hits += self._resolver is None
                self._make_actors()
            case "restart":
                self.memory_use.record_size("objects", OBJECT_BYTES)
                self.current.start()
            case _:
                self.host.residency.reuse.hits += 1
        self.host.residency.add_active(self)
        return self.current

    @property
    def current(self) -> SessionActors:
        """The session's actors. Read this property only in a state in which the session has actors."""
        assert self._actors is not None
        return self._actors

    def _make_actors(self) -> None:
        """Create the actors, from the replay if it is in memory, otherwise from the log."""
        self.host.residency.remove_folded(self)
        self.memory_use.record_size("objects", OBJECT_BYTES)
        pending = self._pending or PendingAsks(self.host.max_queued)
        pending.on_ask_end, pending.record = self.on_ask_end, self.record
        self._actors = SessionActors(
            self.spec,
            self.host,
            self.configuration,
            self.memory_use,
            pending,
            self._affinity or Affinity(),
            ActorHooks(partial(prepare_change, self.configuration, self.host), self._handle_actors_end),
            self._replay or self.host.replay(self.name),
        )
        self._replay = self._resolver = self._pending = None

    def passivate(self) -> bool:
        """End the actors if they are idle, and keep their state. Return True if the session has no actors now."""
        if self._state == "active" and (replay := self.current.passivate()) is not None:
            self._apply_event("rest")
            actors, self._actors = self.current, None
            # The pending asks contain the type of the answer, which no log contains.
            self._pending = (
                actors.pending if self.pending_calls and actors.pending.output_type is not None else None
            )
            self._replay, self._affinity, self.used = replay, actors.affinity or None, replay.state.used
            self.host.residency.add_folded(self)
        return self._state != "active"

    def evict(self) -> None:
        """If the session has no actors, remove its state (the replay) from memory. The next use reads the log."""
        if self._apply_event("evict") == "drop":
            self.host.residency.remove_folded(self)
            self._replay = self._resolver = None
            self._count_evicted()

    def _count_evicted(self) -> None:
        """Update the memory count of a session whose state was removed from memory.

        The messages and calls of a log in memory still count.
        """
        self.memory_use.record_size("lanes", 0)
        self.memory_use.record_size("objects", 0)
        if self.host.is_durable:
            self.memory_use.release()

    def _handle_actors_end(self, error: JournalError | None) -> None:
        """Suspend the session if the journal failed. End it if it was claimed elsewhere, or crashed too often.

        `error` is the journal's error that ended the actors, `Fenced` if another host has claimed the session. It is
        None if the actors crashed.
        """
        if error is None or isinstance(error, Fenced):
            self.end(error)
            return
        self._apply_event("fail")
        self.used = self.current.reset_state()
        self._enter_idle_stage()
        self._count_evicted()
        self.host.residency.remove_active(self)

    def end(self, error: ActorsError | None = None) -> None:
        """End the session on this host without logging an event. Later uses of the session raise `error`."""
        was, action = self._state, self._apply_event("end")
        if action == "nothing":
            return
        if was == "active":
            self.used = self.current.state.used or self.used
        self._actors = self._replay = self._resolver = self._pending = None
        self.end_error = error
        self.record.pending_calls = ()
        self.record.record_phase("ended")
        if isinstance(error, Fenced):
            logger.session_fenced(self.name, error)
        self.memory_use.release()
        self.configuration.release_toolsets()
        self.host.remove_session(self)

    # Asks, changes and callers

    def sink_with_readers(self, sink: Sink, variables: Context) -> Sink:
        """Return a sink that passes an ask's events to `sink`, to the session's readers and to tracing."""
        sink = sink if self.parent_call is None else self.parent_call.sink_for(self.name, sink)
        shared, tracing = self.host.readers.shared_sink(self.name, sink), self.host.tracing
        return shared if tracing is None else tracing.attach(self.name, shared, variables)

    async def give_back(self) -> None:
        """Record that a caller no longer holds the session.

        Once it is idle, a session that no caller holds hibernates or, if its log is in memory, is closed.
        """
        self.handles -= 1
        self.is_given_back = True
        await self._hibernate_if_unused()

    def on_ask_end(self) -> None:
        """Free memory, and let an unused session hibernate or close. Called when an ask has ended, or its turn waits
        for its caller.
        """
        self.host.residency.trim()
        if self._ask_end is not None:
            self._ask_end.set()
        if self.is_given_back and not self.handles:
            self.host.start(self._hibernate_if_unused, f"{self.name}/unused")

    async def _hibernate_if_unused(self) -> None:
        """If no caller holds the session, let it hibernate or, if it is idle and its log is in memory, close it."""
        if self.handles or self.is_over:
            return
        if self.host.is_durable:
            self.host.residency.add_unused(self)
        elif self.closing is None and not self.busy:
            await self.close()

    @contextmanager
    def submitting(self) -> Generator[None]:
        """Keep the session on this host inside the `with` block, while an ask waits to be accepted."""
        self._submitting += 1
        try:
            yield
        finally:
            self._submitting -= 1

    def end_if_unused(self) -> bool:
        """If the session is idle and no caller holds it, end it on this host. Return True if it has ended.

        The log stays open, so the session can be resumed.
        """
        if self.handles or self.closing is not None or self.name in self.host.readers.subscribers:
            return False
        if self.is_departing:
            return False
        if self._submitting or self.pending_calls or not self.passivate() or self.is_over or self.runs_tools:
            return False
        self.end()
        return True

    # Departure to another host

    @property
    def is_asking(self) -> bool:
        """True if an ask is in flight or queued. A paused turn does not count."""
        return self.actors is not None and self.actors.busy

    @property
    def runs_tools(self) -> bool:
        """True if one of the session's tools is running, even if its call is closed."""
        return self._state in ("active", "suspended") and self.current.runs_tools

    def drop_queued(self, error: ActorsError) -> None:
        """End the queued asks with an error."""
        if self.actors is not None:
            self.actors.pending.drop_queued(error)

    async def wait_for_ask_end(self, seconds: float) -> None:
        """Wait until an ask has ended or its turn is paused, but at most `seconds` seconds."""
        self._ask_end = anyio.Event()
        with anyio.move_on_after(seconds):
            await self._ask_end.wait()
        self._ask_end = None

    @property
    def is_departing(self) -> bool:
        """True while the session is being released or handed over, and after it has left this host."""
        return self.departure is not None and not self.departure.has_failed

    async def wait_departed(self) -> None:
        """If the session is being released or handed over, wait until that has succeeded or failed."""
        if self.departure is not None and not self.is_over:
            await self.departure.wait()

    # Closing

    @property
    def is_ending(self) -> bool:
        """True if the actors are ending because the journal has failed."""
        return self._state == "active" and self.current.is_ending

    async def actors_ended(self) -> None:
        """If the actors are ending, wait until they have ended; otherwise return at once."""
        while self.is_ending:
            await self.current.wait_ended()

    async def interrupt_asks(self) -> None:
        """End the ask in flight, drop the queued asks, and wait for a close that is in progress."""
        if self.closing is not None:
            await self.closing.wait()
        while self.actors is not None and self.actors.busy:
            with suppress(ActorFailed, JournalError):  # the loop tries again with the restarted actors
                await self.actors.interrupt()

    @property
    def closing(self) -> HostTask | None:
        """The task that is closing or has closed the session; None if there is none, or if it has failed."""
        return None if self._closing is None or self._closing.has_failed else self._closing

    async def close(self, *, in_order: bool = True) -> None:
        """Close the session, and wait until it has ended. If the caller is cancelled, the close continues.

        Toolsets are closed only after the session has ended. Otherwise, if a subagent's toolset hangs, the parent's
        call would be delayed.

        Args:
            in_order: Cancel the ask in flight first, and log the end of the session. With False, nothing is logged, and
                an open turn is closed when the log is next read.

        Raises:
            JournalUnavailable: The end cannot be logged. The session stays open, but its asks have ended.
            Fenced: Another host has claimed the session, so it has ended here.
            ShuttingDown: The close itself was cancelled. The session stays open.
        """
        await self.wait_departed()
        if (closing := self.closing) is None:
            work = partial(close_session, self, in_order)
            closing = self._closing = self.host.launch(work, f"{self.name}/close")
        try:
            await closing.result()
        except ShuttingDown:
            if self.is_over:
                return
            raise ShuttingDown(
                f"The close of session {self.name!r} was cancelled before it was done; close it again"
            ) from None
