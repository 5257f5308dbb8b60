"""Define `Runtime`, which creates the actors of a program and connects them.

    async with Runtime("actors.toml") as runtime:
        session = await runtime.open("openai:gpt-5.2", tools=[weather])
        answer = await session.ask("Weather in Oslo?")

A runtime runs in the task that enters it, and owns every task that it starts. It has no global state, so one process
may contain several runtimes, on asyncio or on trio.

An opened storage is closed even if a caller is cancelled. A blocking storage is opened and closed in threads, and a
thread continues when its caller is cancelled. So a lock protects both operations: closing waits until a running `open`
has finished, and an `open` that starts after closing does nothing.

The runtime keeps the last requests that providers rejected because of their structure, because such a rejection is a
bug in this library.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
import anyio.to_thread

from actors.core.history.compaction import Compaction
from actors.core.settings.spending import Budget, Prices
from actors.core.stats.stats import RuntimeStats
from actors.core.transcript.diagnostics import Refusal
from actors.errors import KernelError, ShuttingDown
from actors.journal.storage import Storage
from actors.journal.storage.directory import HostStatus
from actors.journal.storage.named import choose_storage
from actors.kernel import System
from actors.kernel.host_code import await_host, call_host
from actors.kernel.tasks import Work
from actors.runtime.collector import TUNING, GcPolicy, checked_policy
from actors.runtime.session_access import SessionAccess
from actors.runtime.validation import check_types, http_transport, load_configuration, refusal_dumps
from actors.scheduler.threads import THREADS
from actors.scheduler.watchdog import LoopWatch, Quarantine
from actors.telemetry import logger
from actors.telemetry.callbacks import RuntimeTracing, guard_callback
from actors.transport import Transport

if TYPE_CHECKING:
    from actors.config import Config
    from actors.provider.dumps import Dumps, OnRefusal
    from actors.runtime.backends import RuntimeBackends
    from actors.runtime.journal_admin import JournalAdmin
    from actors.runtime.session_host import SessionHost
    from actors.scheduler.executor import ToolFailure
    from actors.telemetry.otel import Tracing

MAX_REFUSALS = 16
"""Number of rejected transcripts that a runtime keeps."""
ASK_TIMEOUT = 3.0
"""On exit, the maximum number of seconds to wait for the asks in flight to end."""
RELEASE_TIMEOUT = 3.0
"""On exit, the maximum number of seconds to wait for the sessions to be released, after the asks have ended."""
TOOLSET_TIMEOUT = 20.0
"""On exit, the maximum number of seconds to wait for all toolsets to close, after the asks have ended."""
CLOSE_TIMEOUT = 5.0
"""On exit, the maximum number of seconds to wait for the connections to close, and again for the storage to close."""


class StorageOwner:
    """Owns a runtime's storage, and opens and closes it at most once.

    If `address` is set, opening the storage registers this process as a host with that address.
    """

    def __init__(self, storage: Storage, address: str = "") -> None:
        self._storage, self._address = storage, address
        self._lock = threading.Lock()
        self._is_closed = False

    async def open(self) -> None:
        """Open the storage. The caller must call `close` later, even if this fails.

        Raises:
            JournalError: The storage cannot be used.
        """
        await self._run(self._open)

    async def close(self) -> None:
        """Close the storage. If the caller is cancelled, a thread closes it."""
        try:
            await self._run(self._close)
        finally:
            if not self._is_closed:
                threading.Thread(target=self._close, name="actors journal", daemon=True).start()

    async def _run(self, function: Callable[[], None]) -> None:
        """Call a function, in a thread if the storage blocks and in the event loop otherwise."""
        if self._storage.blocking:
            await anyio.to_thread.run_sync(function, limiter=anyio.CapacityLimiter(1))
        else:
            function()

    def _open(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._storage.open()
                if self._address:
                    self._storage.renew_lease(HostStatus(self._address))

    def _close(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                # All acknowledged events are written already. After a failed close, other hosts must wait until the
                # lease expires.
                call_host(self._storage.close, logger.journal_unclosed)


class RefusedRequests:
    """The requests of a runtime that providers rejected because of their structure.

    Args:
        config: Defines the dialects of the requests.
        dumps: Writes dumps; None if the program did not set `on_refusal`.

    The attribute `last` contains the last rejected requests, oldest first, and `count` is the number of all rejected
    requests. `start_dump` starts the task that writes a dump; it is None while the runtime is not running.
    """

    def __init__(self, config: "Config", dumps: "Dumps | None") -> None:
        self._config, self._dumps = config, dumps
        self.last: deque[Refusal] = deque(maxlen=MAX_REFUSALS)
        self.count: int = 0
        self.start_dump: Callable[[Work, str], None] | None = None

    def record(self, refusal: Refusal) -> None:
        """Count, keep and log a rejected request, and dump it if the program set `on_refusal`."""
        self.count += 1
        self.last.append(refusal)
        logger.transcript_refused(refusal)
        if self._dumps is not None and self.start_dump is not None and self._dumps.try_reserve():
            codec = self._config.dialect(refusal.report.dialect)
            self.start_dump(partial(self._dumps.dump, refusal, codec, self.count), f"dump/{self.count}")


class Runtime(SessionAccess):
    """The host of a program's sessions.

    Enter it with `async with`. When it exits, it ends its sessions and closes its connections, in bounded time,
    whatever tools do. If the caller is cancelled in the meantime, the cancellation is raised after the exit is
    complete; a second cancellation or interrupt ends the wait at once. Use a runtime only in the thread and event loop
    that entered it.

    Args:
        config: Path of an `actors.toml`, a `Config`, or None to use only the environment.
        environ: Environment variables with keys, base URLs and proxies; by default, the process's environment.
        journal: Where to store logs: the path of a SQLite file, a `postgresql://` address or a `Storage`. By default,
            the storage that `[journal]` configures, or memory. The runtime opens the storage when it is entered, and
            closes it when it exits.
        transport: Sends requests to providers; HTTP by default. The runtime closes the transport when it exits.
        seed: Seed for the jitter of retries and restarts. With a seed, the distribution of sessions in pools starts
            with the first member. Without a seed, both differ between processes.
        on_tool_error: Called in the event loop with a `ToolFailure` for each exception of a tool or an approval
            function. The model receives only the exception's type and message; the logger `actors.tools` receives the
            traceback as well, at level `debug`. If this function raises, the error is logged and the function is not
            called again.
        tracing: An `actors.telemetry.Tracing`, which traces asks with OpenTelemetry. If the tracing or a span processor
            raises, the error is logged and tracing stops.
        on_refusal: Called with a `RedactedRequest`, which has no content, for each request that a provider rejected
            because of its structure; or a directory to which these requests are written as JSON. If this function
            raises, the error is logged and the function is not called again.
        prices: Prices of models, by name or pattern (`claude-*`), which take precedence over the prices in the file.
        compaction: When and how to compact histories. Replaces `[compaction]` in the file.
        budgets: Budgets that sessions share, by `tenants.NAME` and `pools.NAME`, which take precedence over the budgets
            in the file.
        address: The address at which other programs reach this runtime, such as `http://10.0.0.5:8000`; any string that
            your routers understand. Other hosts of the journal find the address in `SessionLeased` and `journal.hosts`.
            Each live host needs a different address. A runtime replaces an earlier runtime with the same address, and
            can claim its sessions at once.
        gc: "tuned" makes Python's garbage collector run less often until the last runtime with this setting exits.

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
        on_tool_error: "Callable[[ToolFailure], object] | None" = None,
        tracing: "Tracing | None" = None,
        on_refusal: "OnRefusal | None" = None,
        prices: Prices | None = None,
        compaction: Compaction | None = None,
        budgets: Mapping[str, Budget] | None = None,
        address: str = "",
        gc: GcPolicy | None = None,
    ) -> None:
        # Importing these modules, which open and run sessions, takes half of a host's time to import this package. This
        # is done for the first runtime, because doing it for the first session would block the event loop.
        from actors.runtime import journal_admin, registry

        check_types(config=config, environ=environ, journal=journal, transport=transport, seed=seed)
        check_types(
            on_tool_error=on_tool_error,
            on_refusal=on_refusal,
            compaction=compaction,
            budgets=budgets,
            address=address,
        )
        self.address: str = address or ""
        """The address at which other programs reach this runtime; empty if none was given. Read-only."""
        self._tracing = None if tracing is None else RuntimeTracing(tracing)
        environ = os.environ if environ is None else environ
        self.config: Config = load_configuration(config, environ)
        """The configuration of this runtime. Read-only."""
        self._storage: Storage = choose_storage(journal, self.config.settings.journal)
        self._transport: Transport = http_transport(self.config, environ) if transport is None else transport
        self._system: System
        """Runs the actors and their tasks. Created when the runtime is entered."""
        self._seed = seed
        self._gc: GcPolicy | None = checked_policy(gc)
        self._on_tool_error = (
            None if on_tool_error is None else guard_callback("on_tool_error", on_tool_error)
        )
        self._quarantine = Quarantine(self.config.limits.max_abandoned_calls)
        """The tools that are still running although their calls are closed."""
        self._random = Random(seed)  # noqa: S311  the numbers only jitter delays and choose pool members
        dumps = None if on_refusal is None else refusal_dumps(on_refusal)
        self._refused_requests = RefusedRequests(self.config, dumps)
        self._backends = self._create_backends(prices, compaction, budgets)
        self._host: SessionHost | None = None
        self._watch: LoopWatch
        self._may_use_threads = self._was_entered = self._was_left = self._has_ended = False
        self._registry = registry.SessionRegistry()
        self.refusals: deque[Refusal] = self._refused_requests.last
        """The last requests that providers rejected because of their structure, oldest first. Each is a bug in this
        library.
        """
        access = journal_admin.HostAccess(self._running_host, self._opening_host)
        self.journal: JournalAdmin = journal_admin.JournalAdmin(access, self._registry, self.refusals)
        """Lists, exports, forks and deletes the sessions in the journal, open or not."""

    def _create_backends(
        self, prices: Prices | None, compaction: Compaction | None, budgets: Mapping[str, Budget] | None
    ) -> "RuntimeBackends":
        """Return the backends of the configuration, with the prices and limits passed to the constructor."""
        from actors.runtime import backends  # imported here, as in the constructor

        return backends.RuntimeBackends(
            self.config,
            self._transport,
            self._random,
            is_seeded=self._seed is not None,
            prices=prices,
            compaction=compaction,
            budgets=budgets,
            on_refusal=self._refused_requests.record,
        )

    async def __aenter__(self) -> Self:
        if self._was_entered:
            raise KernelError("A Runtime can be entered only once; create a new one")
        self._was_entered, self._was_left = True, False
        if self._seed is None:
            self._random.seed()  # the process may have been forked after the runtime was created
        owner = StorageOwner(self._storage, self.address)
        self._system = System(
            seed=self._seed, on_crash=logger.actor_crashed, on_slow=self._backends.meters.record_slow_handler
        )
        # On exit, run the first steps, stop the actors, and run the last steps. Each step has a time limit.
        self._system.first_steps = (
            (self._cancel_asks, ASK_TIMEOUT),
            (self._release_sessions, RELEASE_TIMEOUT),
            (self._close_toolsets, TOOLSET_TIMEOUT),
        )
        self._system.last_steps = (self._release_resources, CLOSE_TIMEOUT), (owner.close, CLOSE_TIMEOUT)
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
            self._was_entered = self._has_ended = False
            raise
        return self

    def _start_host(self) -> None:
        """Create the host. From then on, sessions can be opened."""
        from actors.runtime.hosting import make_host  # imported here, as in the constructor
        from actors.runtime.opening import SubagentOpener

        THREADS.register_runtime()
        self._watch = LoopWatch(self._system.contained_tasks)
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
            self.address,
        )
        self._refused_requests.start_dump = self._host.start
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
        """Reject new work, and cancel every ask. This is the first step when the runtime exits."""
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
        self._host = self._refused_requests.start_dump = None
        self._has_ended = True
        self._registry.open.clear()
        logger.tools_running(self._system.contained_tasks.names)
        if self._may_use_threads:  # False if `__aenter__` was cancelled early
            self._may_use_threads = False
            THREADS.unregister_runtime()
            TUNING.end_tuning(self._gc)
            self._watch.close()
        await await_host(
            self._transport.close, partial(logger.host_code_failed, "transport", consequence="left")
        )

    def _running_host(self) -> "SessionHost":
        """Return the host of the sessions, for calls that are allowed even while the runtime is exiting.

        Raises:
            KernelError: The runtime has not been entered.
            ShuttingDown: The runtime has exited, or was ended because the tasks of its event loop were cancelled.
        """
        if self._host is None:
            if self._has_ended:
                raise ShuttingDown("This runtime has exited; create a new Runtime")
            raise KernelError("This runtime is not running; enter it with 'async with Runtime() as runtime'")
        return self._host

    def _start_retention(self) -> None:
        """Start deleting expired sessions, if the configuration sets a retention and the journal is not in memory."""
        host, retention = self._running_host(), self.config.settings.journal.retention
        if retention is not None and self._storage.durability != "memory":
            from actors.runtime.retention import Retention  # imported here, as in the constructor

            removal = self.journal._session_removal(host)
            host.start(Retention(host.journal, retention, removal.delete_unused).run, "journal/retention")

    def stats(self) -> RuntimeStats:
        """Return the counters since the runtime was entered, and the current gauges. No actor is queried."""
        from actors.runtime.hosting import runtime_stats  # imported here, as in the constructor

        host = self._running_host()
        return runtime_stats(host, len(self.sessions), self._refused_requests.count, self._watch.stalls)
