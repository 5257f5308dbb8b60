"""What all sessions of a runtime share, and which of them keep their actors.

Of the sessions with nothing to do, the `ACTIVE` used last keep their actors, and others what had been made of their
logs, as long as their lanes hold no more than `LANES` bytes in all.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import anyio

from actors import telemetry
from actors.backend import Resolver
from actors.children import OpenBelow
from actors.core.closing import breaks_off
from actors.core.events import Event
from actors.core.state import Lanes, Rules, SessionState, rebuilt
from actors.core.turn import Bounds
from actors.errors import ActorStopped, Draining, ForeignLoop, JournalError, JournalUnavailable
from actors.executor import ToolFailure, ToolLimits
from actors.journal import BATCH, Beat, JournalCommand, ReleaseSession
from actors.kernel import Ref, System
from actors.kernel.parking import running_loop
from actors.kernel.tasks import Work
from actors.outage import LAG, JournalMeter
from actors.quarantine import Quarantine
from actors.readers import Readers
from actors.storage import Storage
from actors.telemetry.otel import Tracing
from actors.tools import Toolset
from actors.toolsets import Toolsets

ACTIVE = 64
"""Sessions with nothing to do that keep their actors."""

LANES = 16 * 1024 * 1024
"""Bytes of lanes that sessions without actors keep. Beyond it those used least recently keep nothing but their logs."""


class Hosted(Protocol):
    """A session, as far as its host knows it (`actors.activation`)."""

    name: str
    fence: int

    def passivate(self) -> bool:
        """Put the actors away if they have nothing to do; say whether the session is without them now."""

    def drop(self) -> None:
        """Drop what is kept beside the log."""

    async def settle(self) -> None:
        """End the ask in flight, drop those that wait."""


@dataclass(slots=True)
class SessionHost:
    """What all sessions of a runtime share.

    Args:
        system: Where their actors live.
        storage: Where their logs are kept.
        journal: Who writes them.
        limits: Bounds of their tools.
        quarantine: Where calls of theirs go on that are closed.
        bounds: How long a turn may go on.
        most_waiting: Asks that may wait behind the one in flight.
        rules: What each binding is rendered with.
        resolver: Gives what targets mean to a session with these tools and this system prompt.
        ended: Called with a session that has ended.
        toolsets: What of its tools had to be opened.
        open_below: Opens sessions for tools.
        tool_failed: Told what goes wrong in a tool.
        readers: Who reads their events along.
        tracing: Traces their asks.
        meter: How the journal stands.
        active: The sessions that have actors, those that were not used for longest first.
        passive: The sessions without actors of which more is kept than the log, likewise.
        lanes: Bytes of their lanes.
        running: Whether sessions may still get actors.
        loop: The event loop it all belongs to.
    """

    system: System
    storage: Storage
    journal: Ref[JournalCommand]
    limits: ToolLimits
    quarantine: Quarantine
    bounds: Bounds
    most_waiting: int
    rules: Rules
    resolver: Callable[[Toolset, str | None], Resolver]
    ended: Callable[[Hosted], None]
    toolsets: Toolsets
    open_below: OpenBelow
    tool_failed: Callable[[ToolFailure], object] | None = None
    readers: Readers = field(default_factory=Readers)
    tracing: Tracing | None = None
    meter: JournalMeter = field(default_factory=JournalMeter)
    active: dict[str, Hosted] = field(default_factory=dict)
    passive: dict[str, Hosted] = field(default_factory=dict)
    lanes: int = 0
    running: bool = True
    loop: object = field(default_factory=running_loop)

    def passivated(self, activation: Hosted, size: int) -> None:
        """Note that a session was passivated with lanes. If all of them are too large, have the oldest dropped."""
        self.passive[activation.name] = activation
        self.lanes += size
        while self.lanes > LANES and self.passive:
            next(iter(self.passive.values())).drop()

    def recalled(self, session: str) -> tuple[SessionState, Lanes]:
        """Return what a session's log says, if it can be read now and does not break off.

        Else its actors read it, as after a crash.
        """
        events: list[Event] = []
        if not self.storage.blocking:
            with suppress(Exception):  # other people's code; read once more, the journal says what is wrong
                events = self.storage.read(session)
        state, lanes = rebuilt(events, self.rules)
        return rebuilt((), self.rules) if breaks_off(state) else (state, lanes)

    def used(self, activation: Hosted) -> None:
        """Note that a session is used now. If too many have actors, put some away that have nothing to do."""
        active = self.active
        active.pop(activation.name, None)
        self.passive.pop(activation.name, None)
        active[activation.name] = activation
        for _ in range(2):  # one more than was added, so that their number goes down again
            oldest = next(iter(active.values()))
            if len(active) <= ACTIVE or oldest is activation:
                return
            del active[oldest.name]
            if not oldest.passivate():
                active[oldest.name] = oldest

    def check(self) -> None:
        """Refuse a caller that is not on the runtime's loop: what it wakes there would wait for ever.

        Raises:
            ForeignLoop: It is not.
        """
        if running_loop() is not self.loop:
            raise ForeignLoop(
                "A runtime and its sessions belong to the thread and event loop that entered the runtime; call from "
                "there, as asyncio.run_coroutine_threadsafe and anyio.from_thread.run do"
            )

    def admit(self) -> None:
        """Refuse new work while what it writes would wait too long: what is under way comes first.

        Raises:
            JournalUnavailable: It would.
        """
        lag = self.meter.lag(self.journal.waiting, BATCH, self.system.now())
        if lag > LAG:
            raise JournalUnavailable(f"The journal is slow: an event would wait {lag:.0f} s; try again later")

    def start(self, work: Work, name: str) -> None:
        """Do something of the host's, that no caller takes back."""
        self.system.launch(work, partial(_told, name), name)

    def release(self, session: str, fence: int) -> None:
        """Let others claim a session that is not open here any more; if the journal has ended, it has done so."""
        command = ReleaseSession(session, fence)
        with suppress(ActorStopped, Draining):
            if not self.journal.offer(command):
                self.start(partial(self._release, command), f"{session}/release")

    async def _release(self, command: ReleaseSession) -> None:
        with suppress(ActorStopped, Draining):  # as above
            await self.journal.tell(command)

    def keep_alive(self) -> None:
        """Prolong the lease of this host for as long as the system runs, where its storage has one."""
        if (lease := self.storage.lease) is not None:
            self.start(partial(self._beat, lease / 3), "journal/heartbeat")

    async def _beat(self, seconds: float) -> None:
        with suppress(ActorStopped, Draining):
            while True:
                await anyio.sleep(seconds)
                with suppress(JournalError):  # it is tried again; who takes over meanwhile, fences
                    await self.journal.ask(Beat())

    async def settle(self) -> None:
        """End every ask, so that no turn stays open in a log. No session gets actors any more."""
        self.running = False
        async with anyio.create_task_group() as tasks:
            for activation in tuple(self.active.values()):
                tasks.start_soon(activation.settle)


def _told(name: str, error: BaseException | None) -> None:
    if error is not None:
        telemetry.crashed(name, error)
