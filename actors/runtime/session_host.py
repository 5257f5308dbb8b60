"""The host of a runtime's sessions: the values that they share, and tasks that outlive a cancelled caller."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct, field

from actors.core.log.events import LogEvent
from actors.core.session.rebuild import rebuild
from actors.core.stats.stats import LoopLag
from actors.core.stream_events.results import AskResult
from actors.core.turn.bounds import Bounds
from actors.errors import (
    ActorStopped,
    AskFailed,
    JournalError,
    JournalUnavailable,
    ShuttingDown,
    TooManySessions,
    WrongEventLoop,
)
from actors.journal.commands import JournalCommand, ReleaseSession, RenewLease
from actors.journal.health import LAG
from actors.journal.journal_actor import BATCH
from actors.journal.log import SLICE, Replay, make_replay
from actors.journal.readers import Readers
from actors.journal.storage import Storage
from actors.kernel import Ref, System
from actors.kernel.event_loop import running_loop
from actors.kernel.host_code import call_host
from actors.kernel.tasks import Work
from actors.kernel.turnstile import LAGS, Turnstile, turnstile
from actors.runtime.backends import RuntimeBackends
from actors.runtime.host_task import HostTask
from actors.runtime.residency import HostedSession, Residency
from actors.scheduler.children import OpenSubagent
from actors.scheduler.executor import ToolFailure, ToolLimits
from actors.scheduler.quarantine import Quarantine
from actors.telemetry import logger
from actors.tools.toolsets import Toolsets

if TYPE_CHECKING:
    from actors.telemetry.tracing import RuntimeTracing


class SessionHost(Struct):
    """The values that all sessions of a runtime share.

    Args:
        system: Runs the sessions' actors and tasks.
        storage: Keeps the sessions' logs.
        journal: The actor that writes the logs.
        backends: Resolves targets, has the rules of bindings, and counts asks, requests and tool calls.
        limits: The limits of tools.
        quarantine: Keeps tools that still run after their calls were closed.
        bounds: The limits of a turn.
        most_waiting: Most queued asks of a session.
        residency: Decides which sessions are in memory.
        rules: Returns the rendering rules of a binding.
        resolver: Returns the resolver for sessions with these tools and this system prompt.
        ended: Called with a session that has ended.
        toolsets: Opens and closes toolsets.
        open_subagent: Opens subagent sessions for tools.
        ask_failed: Returns the error of an ask that failed.
        tool_failed: Called with each failure of a tool. It must not raise.
        readers: The callers that follow the events of sessions.
        tracing: Traces asks.
        meter: Measures the journal.
        asks: Counts asks.
        tools: Counts tool calls.
        turnstile: Limits the tasks that compute between two polls of the event loop.
        running: Whether actors may still be created for sessions.
        loop: The event loop that the runtime was entered on.
        advise: Returns the advice of the error of an ask that failed.
    """

    system: System
    storage: Storage
    journal: Ref[JournalCommand]
    backends: RuntimeBackends
    limits: ToolLimits
    quarantine: Quarantine
    bounds: Bounds
    most_waiting: int
    residency: Residency
    ended: Callable[[HostedSession], None]
    toolsets: Toolsets
    open_subagent: OpenSubagent
    ask_failed: Callable[[AskResult], AskFailed]
    tool_failed: Callable[[ToolFailure], object] | None = None
    readers: Readers = field(default_factory=Readers)
    tracing: "RuntimeTracing | None" = None
    turnstile: Turnstile = field(default_factory=turnstile)
    running: bool = True
    loop: object = field(default_factory=running_loop)
    advise: Callable[[AskResult], str] = lambda _: ""

    def __post_init__(self) -> None:
        ask_failed = self.ask_failed
        self.advise = lambda result: ask_failed(result).advice  # one function for all sessions

    @property
    def is_durable(self) -> bool:
        """True if logs are kept elsewhere than in memory."""
        return self.storage.durability != "memory"

    async def begin(self, tenant: str) -> None:
        """Wait until new work of a tenant may start; see `Turnstile.begin`."""
        await self.turnstile.wait_to_begin(self.system.dispatcher, tenant)

    @property
    def loop_lag(self) -> LoopLag:
        """A histogram of event-loop lag, in seconds."""
        lags = self.turnstile.lags
        return LoopLag(dict(zip((*LAGS, inf), lags.counts, strict=True)), lags.seconds, lags.longest)

    def replay(self, session: str) -> Replay | None:
        """Return the replay of a session's log if it is short and in memory; else its actors read it."""
        events: list[LogEvent] = []
        if not self.storage.blocking:
            # if that fails, the actors read the log through the journal, which raises a typed error
            events = call_host(partial(self.storage.read, session), lambda _: [])
        if not events or len(events) > SLICE:  # the actors fold a long log slice by slice
            return None
        return make_replay(events, *rebuild(events, self.backends.rules))

    def check(self) -> None:
        """Check that the caller is on the runtime's event loop; on another one, it would never receive an answer.

        Raises:
            WrongEventLoop: The caller is on another event loop than the runtime.
        """
        if running_loop() is not self.loop:
            raise WrongEventLoop(
                "A runtime and its sessions belong to the thread and event loop that entered the runtime; call from "
                "there, as asyncio.run_coroutine_threadsafe and anyio.from_thread.run do"
            )

    def admit(self) -> None:
        """Reject new work if the journal is slow or the memory is full, so that running work can end.

        Raises:
            JournalUnavailable: An event would wait too long to be written.
            TooManySessions: Busy sessions, and logs in memory, hold all the memory that sessions may hold.
        """
        lag = self.backends.meters.journal.lag(self.journal.waiting, BATCH, self.system.now())
        if lag > LAG:
            raise JournalUnavailable(f"The journal is slow: an event would wait {lag:.0f} s; try again later")
        if not self.residency.has_room():
            held, most = self.residency.held.total, self.residency.limits.memory
            raise TooManySessions(
                f"The sessions hold {held} bytes; limits.memory is {most}. "
                + (
                    "Try again when some are done"
                    if self.is_durable
                    else "Close some, or keep logs in a file"
                )
            )

    def start(self, work: Work, name: str) -> None:
        """Start work that no caller waits for, and log any error that it raises."""
        self.system.launch(work, partial(_log_error, name), name)

    def launch(self, work: Work, name: str) -> HostTask:
        """Start work that continues if its callers are cancelled, and return its task."""
        return HostTask(self.system, work, name)

    async def carry_out(self, work: Work, name: str) -> None:
        """Run work and wait for it. If the caller is cancelled, the work continues.

        Raises:
            Exception: Raised by `work`.
            ShuttingDown: `work` was cancelled before it was done, because the runtime was left.
        """
        await self.launch(work, name).result()

    def release(self, session: str, fence: int) -> None:
        """Release a session, so that other hosts can claim it. A journal that has ended has released all sessions."""
        command = ReleaseSession(session, fence)
        with suppress(ActorStopped, ShuttingDown):
            if not self.journal.offer(command):
                self.start(partial(self._release, command), f"{session}/release")

    async def _release(self, command: ReleaseSession) -> None:
        with suppress(ActorStopped, ShuttingDown):  # as above
            await self.journal.send(command)

    def forget(self, session: HostedSession) -> None:
        """Forget a session that has ended, end its readers' streams, and let other hosts claim it."""
        self.residency.forget(session)
        self.readers.end(session.name)
        self.ended(session)
        self.release(session.name, session.fence)

    def keep_alive(self) -> None:
        """Renew the lease of this host for as long as the system runs, if its storage has leases."""
        if (lease := self.storage.lease) is not None:
            self.start(partial(self._renew_lease, lease / 3), "journal/heartbeat")

    async def _renew_lease(self, seconds: float) -> None:
        with suppress(ActorStopped, ShuttingDown):
            while True:
                await anyio.sleep(seconds)
                with suppress(JournalError):  # try again, unless a host that takes over fences this one
                    await self.journal.ask(RenewLease())

    async def settle(self) -> None:
        """Cancel every ask, so that no turn stays open in a log. From now on, no actors are created."""
        self.running = False
        async with anyio.create_task_group() as tasks:
            for session in tuple(self.residency.active.values()):
                tasks.start_soon(session.interrupt_asks)


def _log_error(name: str, error: BaseException | None) -> None:
    if error is not None:
        logger.actor_crashed(name, error)
