"""Define the host of a runtime's sessions: the objects that all sessions share, and tasks that continue after their
caller was cancelled.

A deletion or a backup runs in such a task, for example. If a task is cancelled before its first step, its work never
runs, but the event loop still reports that the task has ended. `HostTask` waits for this report, so callers never wait
for work that did not start.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct, field

from actors.core.log.events import LogEvent
from actors.core.session.lanes import rebuild
from actors.core.stats.stats import LoopLag
from actors.core.stream_events.ask_events import AskResult
from actors.core.turn.turn import Bounds
from actors.errors import (
    ActorsError,
    ActorStopped,
    AskFailed,
    HostDraining,
    JournalError,
    JournalUnavailable,
    ShuttingDown,
    TooManySessions,
    WrongEventLoop,
)
from actors.journal.commands import CheckOwner, JournalCommand, ReleaseAll, ReleaseSession, RenewLease
from actors.journal.health import LAG
from actors.journal.journal_actor import MAX_BATCH
from actors.journal.log import SLICE, Replay, make_replay
from actors.journal.readers import Readers
from actors.journal.storage import Storage
from actors.journal.storage.directory import HostState, HostStatus
from actors.kernel import Ref, System
from actors.kernel.event_loop import running_loop
from actors.kernel.host_code import call_host
from actors.kernel.tasks import Work
from actors.kernel.turnstile import LAGS, Turnstile, turnstile
from actors.runtime.backends import RuntimeBackends
from actors.runtime.residency import HostedSession, Residency
from actors.scheduler.children import OpenSubagent
from actors.scheduler.executor import ToolFailure, ToolLimits
from actors.scheduler.watchdog import Quarantine
from actors.session.pending import copy_error
from actors.telemetry import logger
from actors.tools.toolsets import Toolsets

if TYPE_CHECKING:
    from actors.telemetry.callbacks import RuntimeTracing


class HostTask:
    """A task that runs `work` until it ends or the runtime exits.

    An error that `work` raises is logged unless it is an `ActorsError`.
    """

    __slots__ = ("_error", "_is_done", "_name", "_over", "_work")

    def __init__(self, system: System, work: Work, name: str) -> None:
        self._work, self._name = work, name
        self._over, self._is_done = anyio.Event(), False
        self._error: Exception | None = None
        system.launch(self._run_work, self._handle_end, name)

    async def _run_work(self) -> None:
        await self._work()
        self._is_done = True

    def _handle_end(self, error: BaseException | None) -> None:
        """Store the error that the work raised, if any, and wake the callers that wait for the work to end."""
        # The work may refer to an object that refers to this task; drop it to break the reference cycle.
        del self._work
        if isinstance(error, Exception):
            self._error = copy_error(error)  # a copy, because the error's traceback refers to this task
        if error is not None and not isinstance(error, ActorsError):
            logger.actor_crashed(self._name, error)
        self._over.set()

    @property
    def has_failed(self) -> bool:
        """True if the work raised an error or was cancelled."""
        return self._over.is_set() and not self._is_done

    async def wait(self) -> None:
        """Wait until the work has ended. Unlike `result`, do not raise the work's error."""
        await self._over.wait()

    async def result(self) -> None:
        """Wait until the work has ended. If it raised an error, raise a copy of the error for each caller.

        Raises:
            Exception: Raised by the work.
            ShuttingDown: The work was cancelled before it was done.
        """
        await self._over.wait()
        if self._error is not None:
            raise copy_error(self._error) or self._error
        if not self._is_done:
            raise ShuttingDown(f"{self._name} was cancelled before it was done, because the runtime exited")


class SessionHost(Struct):
    """The objects that all sessions of a runtime share.

    Args:
        system: Runs the sessions' actors and tasks.
        storage: Contains the sessions' logs.
        journal: The actor that writes the logs.
        backends: Resolves targets, returns the rendering rules of bindings, and counts asks, requests and tool calls.
        limits: The limits of tools.
        quarantine: Counts tools that still run after their calls were closed.
        bounds: The limits of a turn.
        max_queued: Maximum number of queued asks of a session.
        residency: Decides which sessions are in memory.
        on_session_end: Called with each session that has ended.
        toolsets: Opens and closes toolsets.
        open_subagent: Opens subagent sessions for tools.
        ask_error: Returns the `AskFailed` error for the result of a failed ask.
        on_tool_failure: Called with each failure of a tool. The function must not raise.
        readers: The callers that follow the events of sessions.
        tracing: Traces asks; None without tracing.
        turnstile: Limits how many tasks compute between two polls of the event loop.
        running: False once the runtime starts to exit; from then on, no more actors may be created.
        loop: The event loop that entered the runtime.
        advise: Returns the advice for the result of a failed ask: `AskFailed.advice`.
        address: The address at which other programs reach this host; empty if unknown.
        state: Whether the host accepts more sessions.
        lag: Seconds by which the event loop delayed the last renewal of the lease.
    """

    system: System
    storage: Storage
    journal: Ref[JournalCommand]
    backends: RuntimeBackends
    limits: ToolLimits
    quarantine: Quarantine
    bounds: Bounds
    max_queued: int
    residency: Residency
    on_session_end: Callable[[HostedSession], None]
    toolsets: Toolsets
    open_subagent: OpenSubagent
    ask_error: Callable[[AskResult], AskFailed]
    on_tool_failure: Callable[[ToolFailure], object] | None = None
    readers: Readers = field(default_factory=Readers)
    tracing: "RuntimeTracing | None" = None
    turnstile: Turnstile = field(default_factory=turnstile)
    running: bool = True
    loop: object = field(default_factory=running_loop)
    advise: Callable[[AskResult], str] = lambda _: ""
    address: str = ""
    state: HostState = "serving"
    lag: float = 0.0

    def __post_init__(self) -> None:
        ask_error = self.ask_error
        # Created once for all sessions, to save memory.
        self.advise = lambda result: ask_error(result).advice

    @property
    def is_durable(self) -> bool:
        """True if logs survive the process: they are in a file or a database."""
        return self.storage.durability != "memory"

    @property
    def is_draining(self) -> bool:
        """True if this host opens no more sessions: they move to other hosts, or the runtime is being left."""
        return self.state == "draining" or not self.running

    @property
    def status(self) -> HostStatus:
        """The host's address, state and lag, as stored in the host's row of the journal."""
        return HostStatus(self.address, self.state, self.lag)

    async def check_serving(self, existing: str = "") -> None:
        """Check that this host accepts more sessions.

        Args:
            existing: Id of the session to resume; empty to open a new session.

        Raises:
            SessionLeased: The host is draining, and another host already owns the session.
            HostDraining: The host is draining.
        """
        if self.state == "draining":
            if existing:
                with suppress(JournalError):
                    await self.journal.ask(CheckOwner(existing))
            raise HostDraining("This runtime is draining and opens no more sessions; use another host")

    async def wait_to_begin(self, tenant: str) -> None:
        """Wait until new work of a tenant may start; see `Turnstile.wait_to_begin`."""
        await self.turnstile.wait_to_begin(self.system.dispatcher, tenant)

    @property
    def loop_lag(self) -> LoopLag:
        """A histogram of event-loop lag, in seconds."""
        lags = self.turnstile.lags
        return LoopLag(dict(zip((*LAGS, inf), lags.counts, strict=True)), lags.seconds, lags.longest)

    def replay(self, session: str) -> Replay | None:
        """Return the replay of a session's log if the log is short and in memory; otherwise None.

        Without a replay, the session's actors read the log.
        """
        events: list[LogEvent] = []
        if not self.storage.blocking:
            # If the read fails, the actors read the log through the journal, which raises a typed error.
            events = call_host(partial(self.storage.read, session), lambda _: [])
        if not events or len(events) > SLICE:  # the actors read a long log slice by slice
            return None
        return make_replay(events, *rebuild(events, self.backends.rules))

    def check_event_loop(self) -> None:
        """Check that the caller is on the runtime's event loop. On a different loop, the caller would wait forever.

        Raises:
            WrongEventLoop: The caller is not on the runtime's event loop.
        """
        if running_loop() is not self.loop:
            raise WrongEventLoop(
                "A runtime and its sessions belong to the thread and event loop that entered the runtime; call them "
                "there, for example with asyncio.run_coroutine_threadsafe or anyio.from_thread.run"
            )

    def check_capacity(self) -> None:
        """Reject new work if the journal is slow or the memory is full, so that running asks can finish.

        Raises:
            JournalUnavailable: An event would wait too long to be written.
            TooManySessions: Busy sessions and logs in memory use all of the memory that sessions may use.
        """
        lag = self.backends.meters.journal.lag(self.journal.waiting, MAX_BATCH, self.system.now())
        if lag > LAG:
            raise JournalUnavailable(
                f"The journal is slow: an event would wait {lag:.0f} s to be written; try again later"
            )
        if not self.residency.free_memory():
            held, most = self.residency.held.total, self.residency.limits.memory
            raise TooManySessions(
                f"The sessions use {held} bytes of memory, and limits.memory is {most}; "
                + (
                    "try again when some asks have ended"
                    if self.is_durable
                    else "close some sessions, or store the journal in a file"
                )
            )

    def start(self, work: Work, name: str) -> None:
        """Start `work`, for which no caller waits, and log any error that it raises."""
        self.system.launch(work, partial(_log_error, name), name)

    def launch(self, work: Work, name: str) -> HostTask:
        """Start `work`, which continues even if its callers are cancelled, and return the task to wait for."""
        return HostTask(self.system, work, name)

    async def carry_out(self, work: Work, name: str) -> None:
        """Run `work`, and wait until it has ended. If the caller is cancelled, the work continues.

        Raises:
            Exception: Raised by `work`.
            ShuttingDown: `work` was cancelled before it was done, because the runtime exited.
        """
        await self.launch(work, name).result()

    def release(self, session: str, fence: int) -> None:
        """Release the claim on a session, so that other hosts can claim it.

        If the journal has ended, it has released all sessions, and nothing needs to be done.
        """
        command = ReleaseSession(session, fence)
        with suppress(ActorStopped, ShuttingDown):
            if not self.journal.offer(command):
                self.start(partial(self._release, command), f"{session}/release")

    async def _release(self, command: ReleaseSession) -> None:
        """Release a claim. If the journal's mailbox is full, wait."""
        with suppress(ActorStopped, ShuttingDown):  # a journal that has ended has released all sessions
            await self.journal.send(command)

    def remove_session(self, session: HostedSession) -> None:
        """Remove an ended session from the host.

        The streams of its readers end, and other hosts can claim the session.
        """
        self.residency.forget(session)
        self.readers.end(session.name)
        self.on_session_end(session)
        self.release(session.name, session.fence)

    def start_lease_renewal(self) -> None:
        """If the storage has leases, renew this host's lease as long as the system runs."""
        if (lease := self.storage.lease) is not None:
            self.start(partial(self._renew_lease, lease / 3), "journal/heartbeat")

    async def _renew_lease(self, seconds: float) -> None:
        """Renew the lease every `seconds` seconds, until the journal has ended."""
        with suppress(ActorStopped, ShuttingDown):
            while True:
                due = anyio.current_time() + seconds
                await anyio.sleep(seconds)
                self.lag = round(max(0.0, anyio.current_time() - due), 3)
                # The next renewal tries again, unless another host has fenced this one.
                with suppress(JournalError):
                    await self.journal.ask(RenewLease(status=self.status))

    async def release_all(self) -> None:
        """Release all sessions, so that other hosts can claim them even before this host's toolsets are closed."""
        if self.storage.lease is not None:
            self.state = "draining"
            # After a failure, closing the storage releases the sessions.
            with suppress(JournalError, ActorStopped, ShuttingDown):
                await self.journal.ask(ReleaseAll())

    async def cancel_asks(self) -> None:
        """Cancel every ask, so that no turn stays open in a log. From then on, no actors are created."""
        self.running = False
        async with anyio.create_task_group() as tasks:
            for session in tuple(self.residency.active.values()):
                tasks.start_soon(session.interrupt_asks)


def _log_error(name: str, error: BaseException | None) -> None:
    if error is not None:
        logger.actor_crashed(name, error)
