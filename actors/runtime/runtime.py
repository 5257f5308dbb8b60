"""Define `Runtime`, which creates the actors of a program and connects them.

    async with Runtime("actors.toml") as runtime:
        session = await runtime.open("openai:gpt-5.2", tools=[weather])
        answer = await session.ask("Weather in Oslo?")

A runtime lives in the task that enters it, and owns every task that it starts. A runtime has no global state, so
several runtimes may live in one process, on asyncio or on trio.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from os import PathLike
from random import Random
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from actors.core.data.record import replace
from actors.core.history.compaction import Compaction
from actors.core.settings.labels import Scalar
from actors.core.settings.spending import Budget, Prices
from actors.core.stats.stats import RuntimeStats
from actors.core.transcript.diagnostics import Refusal
from actors.core.turn.batch import Approve
from actors.core.turn.guards import Repeats
from actors.core.values.content import Message
from actors.errors import ConfigError, KernelError
from actors.journal.storage import Storage
from actors.journal.storage.named import choose_storage
from actors.kernel import System
from actors.kernel.host_code import await_host
from actors.runtime.backends import RuntimeBackends
from actors.runtime.collector import TUNING, GcPolicy, checked_policy
from actors.runtime.handle import Session
from actors.runtime.handles import OpenSessions, opens_session
from actors.runtime.hosting import make_host
from actors.runtime.journal_admin import HostAccess, JournalAdmin
from actors.runtime.movement import SessionMovement
from actors.runtime.opening import NewSession, SessionConfig, SessionOpener, session_fields
from actors.runtime.registry import SessionRegistry
from actors.runtime.retention import Retention
from actors.runtime.session_host import SessionHost
from actors.runtime.statistics import runtime_stats
from actors.runtime.storage_owner import StorageOwner
from actors.runtime.subagent_opening import SubagentOpener
from actors.runtime.validation import (
    check_types,
    check_wait,
    checked_session_id,
    http_transport,
    load_configuration,
    refusal_dumps,
)
from actors.scheduler.executor import ToolFailure
from actors.scheduler.quarantine import Quarantine
from actors.scheduler.threads import THREADS
from actors.scheduler.watchdog import LoopWatch
from actors.session.imported import initial_history
from actors.telemetry import logger
from actors.telemetry.callbacks import guard_callback
from actors.telemetry.tracing import RuntimeTracing
from actors.tools.toolsets import ToolItem
from actors.transport import Transport

if TYPE_CHECKING:
    from actors.config import Config
    from actors.provider.dumps import OnRefusal
    from actors.telemetry.otel import Tracing

SETTLING = 3.0
"""Seconds that leaving a runtime waits for the asks in flight to end."""
RELEASING = 3.0
"""Seconds that leaving a runtime waits for its sessions to be released, after the asks have ended."""
TOOLSETS = 20.0
"""Seconds that leaving a runtime waits for all toolsets to close, after the asks have ended."""
CLOSING = 5.0
"""Seconds that leaving a runtime waits for the connections to close, and again for the storage."""

EVIDENCE = 16
"""Number of refused transcripts that a runtime keeps."""


class Runtime(SessionMovement):
    """The host of a program's sessions.

    Enter it with `async with`. Leaving it ends its sessions and closes its connections, in bounded time, whatever tools
    do. If the caller is cancelled while it leaves, the cancellation is raised after the runtime has been left; a second
    cancellation or interrupt ends the wait at once. Use a runtime only in the thread and event loop that entered it.

    Args:
        config: Path of an `actors.toml`, a `Config`, or None to use the environment alone.
        environ: Environment variables with keys, base URLs and proxies; by default, those of the process.
        journal: Where to store logs: the path of a SQLite file, a `postgresql://` address or a `Storage`. By default,
            the storage that `[journal]` configures, or memory. The runtime opens the storage when it is entered and
            closes it when it is left.
        transport: Sends requests to providers; HTTP by default. The runtime closes it when it is left.
        seed: Seed for the jitter of retries and restarts, and for the distribution of sessions in pools, which then
            starts with the first member. Without a seed, both differ between processes.
        on_tool_error: Called in the event loop with a `ToolFailure` for each exception of a tool or an approval
            function. The model receives only the exception's type and message; the logger `actors.tools` also gets the
            traceback, at level `debug`. If this function raises, the error is logged and the function is not called
            again.
        tracing: An `actors.telemetry.Tracing`, which traces asks with OpenTelemetry. If the tracing or a span processor
            raises, the error is logged and tracing stops.
        on_refusal: Called with a `RedactedRequest`, which has no content, for each request that was refused for its
            structure; or a directory in which to write these requests as JSON. If this function raises, the error is
            logged and the function is not called again.
        prices: Prices of models, by name or pattern (`claude-*`), which take precedence over the prices in the file.
        compaction: When and how to compact histories. Replaces `[compaction]` of the file.
        budgets: Budgets that sessions share, by `tenants.NAME` and `pools.NAME`, which take precedence over the budgets
            in the file.
        address: The address at which other programs reach this runtime, such as `http://10.0.0.5:8000`; any string that
            your routers understand. Other hosts of the journal find the address in `SessionLeased` and `journal.hosts`.
            Each live host needs a different address. A runtime replaces an earlier runtime with the same address, and
            can claim the sessions of the earlier runtime at once.
        gc: "tuned" makes Python's garbage collector run less often until the last runtime with this setting is left.

    Raises:
        ConfigError: An argument has a wrong type or value, or the file is invalid.
    """

    def __init__(
        self,
        config: "str | PathLike[str] | Config | None" = None,
        *,
        environ: Mapping[str, str] | None = None,
        journal: str | PathLike[str] | Storage | None = None,
        transport: Transport | None = None,
        seed: int | None = None,
        on_tool_error: Callable[[ToolFailure], object] | None = None,
        tracing: "Tracing | None" = None,
        on_refusal: "OnRefusal | None" = None,
        prices: Prices | None = None,
        compaction: Compaction | None = None,
        budgets: Mapping[str, Budget] | None = None,
        address: str = "",
        gc: GcPolicy | None = None,
    ) -> None:
        check_types(config=config, environ=environ, journal=journal, transport=transport, seed=seed)
        check_types(
            on_tool_error=on_tool_error,
            on_refusal=on_refusal,
            compaction=compaction,
            budgets=budgets,
            address=address,
        )
        self._address = address or ""
        self._tracing = None if tracing is None else RuntimeTracing(tracing)
        environ = os.environ if environ is None else environ
        self.config: Config = load_configuration(config, environ)
        """The configuration of this runtime. Read-only."""
        self._storage: Storage = choose_storage(journal, self.config.settings.journal)
        if transport is None:
            transport = http_transport(self.config, environ)
        self._transport = transport
        self._system: System
        """Runs the actors and their tasks. Created when the runtime is entered."""
        self._seed = seed
        self._gc: GcPolicy | None = checked_policy(gc)
        self._on_tool_error = (
            None if on_tool_error is None else guard_callback("on_tool_error", on_tool_error)
        )
        self._dumps = None if on_refusal is None else refusal_dumps(on_refusal)
        self._quarantine = Quarantine(self.config.limits.max_abandoned_calls)
        """The tools that still run although their calls are closed."""
        self._random = Random(seed)  # noqa: S311  the numbers only jitter delays and choose pool members
        self._backends = RuntimeBackends(
            self.config,
            self._transport,
            self._random,
            is_seeded=seed is not None,
            prices=prices,
            compaction=compaction,
            budgets=budgets,
            on_refusal=self._record_refusal,
        )
        self._host: SessionHost | None = None
        self._watch: LoopWatch
        self._may_use_threads = self._was_entered = self._was_left = False
        self._registry = SessionRegistry()
        self.refusals: deque[Refusal] = deque(maxlen=EVIDENCE)
        """The last requests that were refused for their structure, oldest first. Each is a bug in this library."""
        self._refusal_count = 0
        access = HostAccess(self._running_host, self._opening_host)
        self.journal: JournalAdmin = JournalAdmin(access, self._registry, self.refusals)
        """Lists, exports, forks and deletes the sessions in the journal, open or not."""

    async def __aenter__(self) -> Self:
        if self._was_entered:
            raise KernelError("A Runtime can be entered only once; create a new one")
        self._was_entered, self._was_left = True, False
        if self._seed is None:
            self._random.seed()  # the process may have been forked after the runtime was created
        owner = StorageOwner(self._storage, self._address)
        self._system = System(
            seed=self._seed, on_crash=logger.actor_crashed, on_slow=self._backends.meters.record_slow_handler
        )
        # `first` and `last` are the steps before and after the actors are stopped, each step with its time limit
        self._system.first_steps = (
            (self._cancel_asks, SETTLING),
            (self._release_sessions, RELEASING),
            (self._close_toolsets, TOOLSETS),
        )
        self._system.last_steps = (self._release_resources, CLOSING), (owner.close, CLOSING)
        try:
            await self._system.__aenter__()
            try:
                await owner.open()
                self._start_host()
            except BaseException as error:
                self._was_left = True
                await self._system.__aexit__(type(error), error, error.__traceback__)
                raise
        except BaseException:
            self._was_entered = False
            raise
        return self

    def _start_host(self) -> None:
        """Create the host. From then on, sessions can be opened."""
        THREADS.register_runtime()
        self._watch = LoopWatch(self._system.containment)
        self._backends.set_system(self._system)
        TUNING.begin_tuning(self._gc)
        self._may_use_threads = True
        self._host = make_host(
            self._system,
            self._storage,
            self.config,
            self._backends,
            self._quarantine,
            self._registry.remove,
            SubagentOpener(self.open, self.session, self.config.limits.max_subagent_depth),
            self._on_tool_error,
            self._tracing,
            self._address,
        )
        self._host.start_lease_renewal()
        self._start_retention()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._host is not None:  # None if a shutdown of the event loop has already closed the runtime
            self._host.check_event_loop()
        self._was_left = True
        return await self._system.__aexit__(kind, error, trace)

    async def _cancel_asks(self) -> None:
        """Reject new work, and cancel every ask. This is the first step of leaving the runtime."""
        if self._host is not None and not self._was_left:
            logger.runtime_never_left()
        if self._host is not None:
            await self._host.cancel_asks()

    async def _release_sessions(self) -> None:
        """Release all sessions, after their asks have ended, so that other hosts can claim the sessions."""
        if self._host is not None:
            await self._host.release_all()

    async def _close_toolsets(self) -> None:
        """Close all toolsets, after the sessions have stopped using them."""
        if self._host is not None:
            await self._host.toolsets.close()

    async def _release_resources(self) -> None:
        """Release the runtime's resources once nothing uses them."""
        if self._host is not None:
            for name in self.sessions:
                self._host.readers.end(name)
        self._host = None
        self._registry.open.clear()
        logger.tools_running(self._system.containment.names)
        if self._may_use_threads:  # False if `__aenter__` was cancelled early
            self._may_use_threads = False
            THREADS.unregister_runtime()
            TUNING.end_tuning(self._gc)
            self._watch.close()
        await await_host(
            self._transport.close, partial(logger.host_code_failed, "transport", consequence="left")
        )

    def _running_host(self) -> SessionHost:
        """Return the host of the sessions, for calls that also work while the runtime is being left.

        Raises:
            KernelError: The runtime has not been entered, or has been left.
        """
        if self._host is None:
            raise KernelError("This runtime is not running; enter it with 'async with Runtime() as runtime'")
        return self._host

    def _opening_host(self) -> SessionHost:
        """Return the host if a session may be opened now.

        Raises:
            KernelError: The runtime is not running, or is being left.
            JournalUnavailable: The journal is so slow that it accepts no new work.
            TooManySessions: The sessions use all memory that they may use.
            WrongEventLoop: The caller is not on the runtime's event loop.
        """
        host = self._running_host()
        host.check_event_loop()
        if not host.running:
            raise KernelError("This runtime is closing and cannot open sessions; create a new Runtime")
        host.check_capacity()
        return host

    @opens_session
    async def open(
        self,
        target: str,
        *,
        tools: Iterable[ToolItem] = (),
        id: str | None = None,  # noqa: A002  callers expect the name `id`
        system: str | None = None,
        messages: Iterable[Message] = (),
        approve: Approve | None = None,
        deps: object = None,
        tenant: str = "",
        budget: Budget | None = None,
        on_repeat: Repeats | None = None,
        title: str = "",
        metadata: Mapping[str, Scalar] | None = None,
        resume: bool = False,
    ) -> "Session":
        """Open a session. `await` keeps the session open until it is closed; `async with` gives it back on exit.

        A session that every caller has given back hibernates once no ask is in flight. If its log is in memory, the
        session is closed instead, unless a turn waits for its caller. Cancelling this call leaves neither a session nor
        a log.

        Args:
            target: `provider:model`, or the name of a configured backend or pool.
            tools: The tools that the model may call; functions are converted to tools. A toolset (an async context
                manager that returns tools or a `ToolSource`) is opened first, and closed with the last session that
                uses it. A string names an MCP server of the configuration.
            id: 1 to 64 letters, digits, `_` and `-`; generated by default.
            system: System prompt, until `Session.configure` replaces it; by default, the prompt of `messages`.
            messages: The initial history, for example from `from_wire`. `Session.history` keeps its report.
            approve: Called before a call of a tool with `approval="ask"` runs. True allows the call. Every other value
                denies it; a string is the reason. The function may be async; a plain function runs in a thread. Without
                `approve`, the turn waits for a decision (`approvals` of `Session.ask`).
            deps: Any object that the tools need, such as a database. Tools read it from `ToolContext.deps`.
            tenant: Name of the tenant, at most 64 characters. Queued requests are scheduled fairly between tenants.
            budget: The limits of the session over its life. When a limit is reached, the turn ends before its next
                request, with every call closed, and later asks raise `OverBudget`.
            on_repeat: How to treat calls that the model repeats and that return the same result; None for the
                setting `limits.on_repeat`.
            title: The title in lists of sessions: at most 200 characters, without control characters.
            metadata: Labels of the session, which `journal.list(metadata=)` matches: at most 16 keys of up to 64
                characters, each with a string of up to 512 characters, an int of 64 bits, a finite float or a bool. The
                session's log contains the title and the metadata; requests, logging and metrics do not.
            resume: If a session with this `id` exists, return it. An open session is returned unchanged. A session that
                is not open is resumed with the `tools`, `approve`, `deps` and `on_repeat` of this call; everything
                else, including title and metadata, comes from its log. An ended log in memory is replaced by a new one.
                Concurrent callers get the same session.

        Raises:
            ConfigError: The target, a tool, the id, the tenant, the budget, the title or the metadata is invalid; the
                target accepts fewer tools; or the budget limits the cost and a price is missing.
            SessionExists: A session with this id is open or has a log. With `resume`: the session belongs to another
                `tenant`.
            SessionClosed, SessionLeased, HostDraining: As for `Runtime.resume`.
            TranscriptError: `messages` contains an object that is not a valid message.
            ToolsetFailed: A toolset cannot be opened. The toolsets that were opened for this call are closed again.
            JournalError: The log cannot be written. The session is not open.
        """
        host = self._opening_host()
        if not isinstance(system, str | None):
            raise ConfigError(f"system= takes a string, not {type(system).__name__}")
        history = await initial_history(messages)
        if system is not None:
            history = replace(history, system=system)
        self.config.resolve(target)
        config = SessionConfig(tools, approve, deps, on_repeat)
        new = NewSession(target, history, session_fields(tenant, budget, title, metadata))
        opener = SessionOpener(host, self._registry)
        if resume:
            if id is None:
                raise ConfigError("resume=True needs id=, the id of the session to open or resume")
            return await opener.open_or_resume(id, new, config)
        return await opener.open(id, new, config)

    @opens_session
    async def resume(
        self,
        id: str,  # noqa: A002  callers expect the name `id`
        *,
        tools: Iterable[ToolItem] = (),
        approve: Approve | None = None,
        deps: object = None,
        system: str | EllipsisType | None = ...,
        target: str | None = None,
        on_repeat: Repeats | None = None,
        output: Any = None,  # Any: a type or a JSON Schema
        wait: float = 0.0,
    ) -> "Session":
        """Resume a session from the journal, after its runtime was left or its process was killed.

        If a turn was running, it ends as `interrupted`. Calls that had ended keep their results. A call that had
        started is reported as `outcome_unknown`, or runs again if its tool allows that. Afterwards, a turn is open only
        if it waits for results or decisions (`Session.pending`). The turn continues when you pass the results and
        decisions to `Session.ask`.

        Args:
            id: Id of the session.
            tools, approve, deps, on_repeat: As for `open`, because the log does not contain them. If the tools have
                changed, the effect is that of `Session.configure`: the next request declares the new tools, and a call
                of a removed tool is answered with an error.
            system: System prompt; unchanged by default.
            target: Target of the next ask; unchanged by default.
            output: The `output` of the ask that waits, if there is one. The log contains its schema but not its type,
                so without this argument the value of the answer is plain JSON.
            wait: Seconds to wait, if another host has claimed the session, until that host releases it or its lease
                expires.

        Raises:
            SessionUnknown: The session has no log.
            SessionClosed: The session was closed.
            SessionExists: The session is open in this runtime.
            SessionLeased: Another host has claimed the session, and the host's lease has not expired.
            HostDraining: This runtime is draining (`Runtime.drain`).
            ConfigError: The target or a tool cannot be used, or `output` differs from that of the ask that waits.
            ToolsetFailed: A toolset cannot be opened.
            JournalError: The log is damaged, or cannot be read or written.
        """
        opener, config = self._resuming(system, wait, SessionConfig(tools, approve, deps, on_repeat, output))
        return await opener.resume(checked_session_id(id), config, system, target, wait)

    @opens_session
    async def claim(
        self,
        id: str,  # noqa: A002  callers expect the name `id`
        *,
        tools: Iterable[ToolItem] = (),
        approve: Approve | None = None,
        deps: object = None,
        system: str | EllipsisType | None = ...,
        target: str | None = None,
        on_repeat: Repeats | None = None,
        output: Any = None,  # Any: a type or a JSON Schema
        wait: float = 0.0,
    ) -> "Session":
        """Return an existing session, for a program that receives requests for any session of the journal.

        If the session is open in this runtime, it is returned unchanged. If no live host has claimed the session, it is
        resumed as by `resume`. If another live host has claimed the session, the method raises `SessionLeased`; send
        the request to the `address` of that error. `open` with `resume=True` does the same, and creates a session that
        does not exist.

        Args:
            id: Id of the session.
            tools, approve, deps, system, target, on_repeat, output, wait: As for `resume`. They have no effect on a
                session that is open in this runtime.

        Raises:
            SessionUnknown: The session has no log.
            SessionLeased: Another host has claimed the session, and the host's lease has not expired.
            HostDraining: This runtime is draining (`Runtime.drain`), and the session is not open in this runtime.
            ActorsError: The other errors of `resume`.
        """
        opener, config = self._resuming(system, wait, SessionConfig(tools, approve, deps, on_repeat, output))
        return await opener.claim(checked_session_id(id), config, system, target, wait)

    def _resuming(
        self, system: str | EllipsisType | None, wait: float, config: SessionConfig
    ) -> tuple[SessionOpener, SessionConfig]:
        """Check the arguments of `resume` and `claim`. Return the opener of sessions, and the configuration."""
        host = self._opening_host()
        if not isinstance(system, str | EllipsisType | None):
            raise ConfigError(f"system= takes a string, not {type(system).__name__}")
        check_wait(wait)
        return SessionOpener(host, self._registry), config

    def _start_retention(self) -> None:
        """Start to delete expired sessions, if the configuration sets a retention and the journal is not in memory."""
        host, retention = self._running_host(), self.config.settings.journal.retention
        if retention is not None and self._storage.durability != "memory":
            removal = self.journal._session_removal(host)
            host.start(Retention(host.journal, retention, removal.delete_unused).run, "journal/retention")

    def session(self, id: str) -> "Session":  # noqa: A002  callers expect the name `id`
        """Return an open session by its id.

        Raises:
            ConfigError: The id is not a string.
            SessionClosed: No session with this id is open.
        """
        self._running_host().check_event_loop()
        return self.sessions[checked_session_id(id)]

    def stats(self) -> RuntimeStats:
        """Return the counters since the runtime was entered, and the current gauges, without a query to any actor."""
        host = self._running_host()
        return runtime_stats(host, len(self.sessions), self._refusal_count, self._watch.stalls)

    @property
    def sessions(self) -> OpenSessions:
        """The ids of the open sessions, oldest first, as a live view. `sessions[id]` is the session."""
        return self._registry.ids

    def _record_refusal(self, refusal: Refusal) -> None:
        """Count and keep a transcript that was refused for its structure, and write a dump if `on_refusal` is set."""
        self._refusal_count += 1
        self.refusals.append(refusal)
        logger.transcript_refused(refusal)
        if self._dumps is not None and self._host is not None and self._dumps.try_reserve():
            codec = self.config.dialect(refusal.report.dialect)
            self._host.start(
                partial(self._dumps.dump, refusal, codec, self._refusal_count), f"dump/{self._refusal_count}"
            )
