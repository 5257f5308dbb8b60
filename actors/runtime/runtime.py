"""The composition root: `Runtime` puts the actors together, `Session` is what a user holds of one.

    async with Runtime("actors.toml") as runtime:
        session = await runtime.open("openai:gpt-5.2", tools=[weather])
        answer = await session.ask("Weather in Oslo?")

A runtime lives in the task that enters it, owns every task it starts, and keeps no global state: several may
live in one process, on asyncio or on trio.
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
from actors.journal.journal_actor import BATCH
from actors.journal.storage import Storage
from actors.journal.storage.named import storage_for
from actors.kernel import System
from actors.kernel.host_code import await_host
from actors.runtime.backends import RuntimeBackends
from actors.runtime.collector import TUNING, GcPolicy, checked_policy
from actors.runtime.given import check_given, check_wait, configuration, dumps_to, http_transport, session_id
from actors.runtime.handle import Session
from actors.runtime.handles import OpenSessions, opens
from actors.runtime.hosting import make_host
from actors.runtime.journal_admin import HostAccess, JournalAdmin
from actors.runtime.opening import NewSession, SessionConfig, SessionOpener, session_fields
from actors.runtime.registry import SessionRegistry
from actors.runtime.retention import Retention
from actors.runtime.session_host import SessionHost
from actors.runtime.storage_owner import StorageOwner
from actors.runtime.subagent_opening import SubagentOpener
from actors.scheduler.executor import ToolFailure
from actors.scheduler.quarantine import Quarantine
from actors.scheduler.threads import THREADS
from actors.scheduler.watchdog import LoopWatch
from actors.session.imported import beginning
from actors.telemetry import logger
from actors.telemetry.tracing import RuntimeTracing
from actors.tools.toolsets import ToolItem
from actors.transport import Transport

if TYPE_CHECKING:
    from actors.config import Config
    from actors.provider.dumps import OnRefusal
    from actors.telemetry.otel import Tracing

SETTLING = 3.0
"""Seconds that the asks in flight may take to end when a runtime is left."""
TOOLSETS = 20.0
"""Seconds that toolsets may take to close then, all together."""
CLOSING = 5.0
"""Seconds that connections may take to close after that."""

EVIDENCE = 16
"""Refused transcripts that are kept."""


class Runtime:
    """Hosts sessions. Enter it with `async with`; leaving it ends its sessions and closes its connections.

    Leaving is bounded, whatever tools do, and cannot be cancelled: who is cancelled meanwhile is told so afterwards,
    and a second cancellation or interrupt leaves at once. A runtime belongs to the thread and event loop that entered
    it.

    Args:
        config: Path of an `actors.toml`, a `Config`, or None for the environment alone.
        environ: Where keys, base URLs and proxies are looked up; the process's environment by default.
        journal: Where logs are kept: the path of a SQLite file, a `postgresql://` address or a `Storage`; else as
            `[journal]` says, or in memory. A storage is opened when the runtime is entered, and closed when it is left.
        transport: How requests travel; HTTP by default. It is closed when the runtime ends.
        seed: Seed of the jitter in retries and restarts; with one, pools spread sessions from their first member on.
            None for chance, another in each process.
        on_tool_error: Called with each `ToolFailure`, in the event loop: what a tool or an approval raised. The model
            is told in one line only; the log (`actors.tools`) has the traceback too, at `debug`. If it raises, that is
            logged, and it is called no more.
        tracing: Traces asks with OpenTelemetry: an `actors.telemetry.Tracing`. If it or a span processor raises,
            that is logged, and nothing more is traced.
        on_refusal: Called with a `RedactedRequest`, which has no content, for each request that was refused for its
            structure; or a directory where they are written as JSON. If it raises, that is logged, and it is called no
            more.
        prices: What models cost, by name or pattern (`claude-*`); they count before those of the file.
        compaction: When and how histories are made shorter, in place of the file's `[compaction]`.
        budgets: Budgets that sessions share, by `tenants.NAME` and `pools.NAME`, in place of those of the file.
        gc: "tuned" has the process's garbage collector look less often until the last such runtime is left.

    Raises:
        ConfigError: An argument is not what it must be, or the file cannot be used.
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
        gc: GcPolicy | None = None,
    ) -> None:
        check_given(config=config, environ=environ, journal=journal, transport=transport, seed=seed)
        check_given(
            on_tool_error=on_tool_error, on_refusal=on_refusal, compaction=compaction, budgets=budgets
        )
        self._tracing = None if tracing is None else RuntimeTracing(tracing)
        environ = os.environ if environ is None else environ
        self.config: Config = configuration(config, environ)
        """The settings, read-only."""
        self._storage: Storage = storage_for(journal, self.config.settings.journal)
        if transport is None:
            transport = http_transport(self.config, environ)
        self._transport = transport
        self._system: System
        """The actors, and the tasks that serve them; made when the runtime is entered."""
        self._seed = seed
        self._gc: GcPolicy | None = checked_policy(gc)
        self._on_tool_error = None if on_tool_error is None else logger.guard("on_tool_error", on_tool_error)
        self._dumps = None if on_refusal is None else dumps_to(on_refusal)
        self._quarantine = Quarantine(self.config.limits.max_abandoned_calls)
        """The calls that run on though they are closed."""
        self._random = Random(seed)  # noqa: S311  jitter, not secrets
        self._backends = RuntimeBackends(
            self.config,
            self._transport,
            self._random,
            is_seeded=seed is not None,
            prices=prices,
            compaction=compaction,
            budgets=budgets,
            refuse=self._record_refusal,
        )
        self._host: SessionHost | None = None
        self._watch: LoopWatch
        self._may_use_threads = self._was_entered = self._was_left = False
        self._registry = SessionRegistry()
        self.refusals: deque[Refusal] = deque(maxlen=EVIDENCE)
        """The last transcripts refused for their structure, oldest first: our bugs, with their evidence."""
        self._refusal_count = 0
        access = HostAccess(self._running_host, self._opening_host)
        self.journal: JournalAdmin = JournalAdmin(access, self._registry, self.refusals)
        """The sessions that have a log, open or not."""

    async def __aenter__(self) -> Self:
        if self._was_entered:
            raise KernelError("A runtime is entered once; make another")
        self._was_entered, self._was_left = True, False
        if self._seed is None:
            self._random.seed()  # the process may have been forked since the runtime was made
        owner = StorageOwner(self._storage)
        self._system = System(
            seed=self._seed, on_crash=logger.actor_crashed, on_slow=self._backends.meters.record_slow_handler
        )
        self._system.first = (self._settle, SETTLING), (self._close_toolsets, TOOLSETS)
        self._system.last = (self._close, CLOSING), (owner.close, CLOSING)
        try:
            await self._system.__aenter__()
            try:
                await owner.open()
                self._begin()
            except BaseException as error:
                self._was_left = True
                await self._system.__aexit__(type(error), error, error.__traceback__)
                raise
        except BaseException:
            self._was_entered = False
            raise
        return self

    def _begin(self) -> None:
        """Take sessions from now on."""
        THREADS.enter()
        self._watch = LoopWatch(self._system.containment)
        self._backends.begin(self._system)
        TUNING.enter(self._gc)
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
        )
        self._host.keep_alive()
        self._keep_no_longer()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._host is not None:  # it may have left before us, if the event loop is being shut down
            self._host.check()
        self._was_left = True
        return await self._system.__aexit__(kind, error, trace)

    async def _settle(self) -> None:
        """Begin to end: no session is opened or used any more, and every ask is cancelled."""
        if self._host is not None and not self._was_left:
            logger.never_left()
        if self._host is not None:
            await self._host.settle()

    async def _close_toolsets(self) -> None:
        """Close what the sessions' tools were taken from. No session uses it any more."""
        if self._host is not None:
            await self._host.toolsets.close()

    async def _close(self) -> None:
        """Give back what the runtime holds, when nothing uses it any more."""
        if self._host is not None:
            for name in self.sessions:
                self._host.readers.end(name)
        self._host = None
        self._registry.open.clear()
        logger.tools_running(self._system.containment.names)
        if self._may_use_threads:  # it does not if it was cancelled while it was entered
            self._may_use_threads = False
            THREADS.leave()
            TUNING.leave(self._gc)
            self._watch.close()
        await await_host(self._transport.close, partial(logger.host_code_failed, "transport", then="left"))

    def _running_host(self) -> SessionHost:
        """Return the host, to a caller that may use it.

        Raises:
            KernelError: The runtime has not been entered, or was left.
        """
        if self._host is None:
            raise KernelError("This runtime is not running; enter it with 'async with Runtime() as runtime'")
        return self._host

    def _opening_host(self) -> SessionHost:
        """Return the host, to a caller that may open a session.

        Raises:
            KernelError: The runtime is not running, or is being left.
            JournalUnavailable: The journal is so slow that nothing new is taken in.
        """
        host = self._running_host()
        host.check()
        if not host.running:
            raise KernelError("This runtime is being left; no session is opened any more")
        host.admit()
        return host

    @opens
    async def open(
        self,
        target: str,
        *,
        tools: Iterable[ToolItem] = (),
        id: str | None = None,  # noqa: A002  the field's standard name
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
        """Open a session: `await` gives one that stays open until it is closed, `async with` one that is given back.

        When nobody has it any more, it hibernates, or is closed if its log is in memory, once no ask is in flight and,
        in memory, no turn waits. A caller that is cancelled leaves neither a session nor a log.

        Args:
            target: `provider:model`, the name of a configured backend, or of a configured pool.
            tools: What the model may call; functions are made tools. A toolset, which is an async context manager
                that gives tools or a `ToolSource`, is opened first, and closed with the last session that uses it. A
                text names an MCP server of the configuration.
            id: 1 to 64 letters, digits, `_` and `-`; made up if not given.
            system: System prompt, until `Session.configure`. Without it, the one that came with `messages`.
            messages: A history to begin with, as `from_wire` gives it. Its report stays that of the session's history.
            approve: Asked before a call of a tool with `approval="ask"` runs, which it may only if the answer is True;
                a text is the reason why not. It may be async; a plain one runs in a thread. Without it the turn waits
                for somebody's decision (`approvals` of `Session.ask`).
            deps: Anything its tools need, such as a database: what `ToolContext.deps` is.
            tenant: Whose it is, at most 64 characters. Where requests wait, tenants get their shares.
            budget: What it may use over its life. When that is used up a turn ends before its next request, with every
                call closed, and further asks are refused as `OverBudget`.
            on_repeat: What is done about calls that it makes again with the same result; None for `[limits] on_repeat`.
            title: What lists of sessions show for it: at most 200 characters, without control characters.
            metadata: What its host notes of it for its lists (`journal.list(metadata=)`): at most 16 keys of up to 64
                characters, each with a string of up to 512 characters, an int of 64 bits, a finite float or a bool. The
                log has it and the title; models, providers, our log and metrics have not.
            resume: Get the session of this `id` if there is one: the one that is open, as it is, or from its log, with
                the tools, `approve`, `deps` and `on_repeat` that are given here and all else as its log has it, the
                title and the metadata too. A log in memory that has ended is begun anew. Callers that come at once get
                the same session.

        Raises:
            ConfigError: The target, a tool, the id, the tenant, the budget, the title or the metadata cannot be used;
                there are more tools than the target takes; or a budget of money and no price.
            SessionExists: A session of this id is open, or has a log; with `resume`, it is of another `tenant`.
            SessionClosed, SessionLeased: As for `Runtime.resume`.
            TranscriptError: `messages` holds something else than messages.
            ToolsetFailed: A toolset cannot be opened. Nothing of it is left.
            JournalError: The log cannot be written. No session is open then.
        """
        host = self._opening_host()
        if not isinstance(system, str | None):
            raise ConfigError(f"system= takes a text, not {type(system).__name__}")
        history = await beginning(messages)
        if system is not None:
            history = replace(history, system=system)
        self.config.resolve(target)
        config = SessionConfig(tools, approve, deps, on_repeat)
        new = NewSession(target, history, session_fields(tenant, budget, title, metadata))
        opener = SessionOpener(host, self._registry)
        if resume:
            if id is None:
                raise ConfigError("resume=True takes an id=, of the session that is opened or resumed")
            return await opener.open_or_resume(id, new, config)
        return await opener.open(id, new, config)

    @opens
    async def resume(
        self,
        id: str,  # noqa: A002  the field's standard name
        *,
        tools: Iterable[ToolItem] = (),
        approve: Approve | None = None,
        deps: object = None,
        system: str | EllipsisType | None = ...,
        target: str | None = None,
        on_repeat: Repeats | None = None,
        output: Any = None,  # Any: a type or JSON
        wait: float = 0.0,
    ) -> "Session":
        """Go on with a session that is in the journal, whether its runtime was left or its process was killed.

        What was going on then is closed first: its turn ends `interrupted`, calls keep the ends they had, and one that
        had begun is `outcome_unknown`, or runs again if its tool says that it may. When this returns, nothing is open
        but a turn that waits for results or decisions (`Session.pending`): that goes on when they are passed.

        Args:
            id: Its id.
            tools, approve, deps, on_repeat: As for `open`; they are in no log. Other tools than before are as
                `Session.configure` makes them: the model is offered these from its next request on, and a call of one
                that is not there any more is refused, and the model told.
            system: System prompt; as it was, if not given.
            target: Whom the next ask goes to; as it was, if not given.
            output: What the ask that waits was given as `output`, if one waits: a schema is in the log, a type is not.
                Without it, that answer is JSON.
            wait: Seconds to wait for a host that has the session to release it, or to be gone.

        Raises:
            SessionUnknown: It has no log.
            SessionClosed: It was closed for good.
            SessionExists: It is open here.
            SessionLeased: Another host has it, and is alive.
            ConfigError: Its target, or a tool, cannot be used; or `output` is not what the ask that waits was given.
            ToolsetFailed: A toolset cannot be opened.
            JournalError: Its log is damaged, or cannot be read or written.
        """
        host = self._opening_host()
        if not isinstance(system, str | EllipsisType | None):
            raise ConfigError(f"system= takes a text, not {type(system).__name__}")
        config = SessionConfig(tools, approve, deps, on_repeat, output)
        check_wait(wait)
        opener = SessionOpener(host, self._registry)
        return await opener.resume(session_id(id), config, system, target, wait)

    def _keep_no_longer(self) -> None:
        """Have sessions expire, if the configuration says so."""
        host, retention = self._running_host(), self.config.settings.journal.retention
        if retention is not None and self._storage.durability != "memory":
            removal = self.journal._removal(host)
            host.start(Retention(host.journal, retention, removal.delete_unused).run, "journal/retention")

    def session(self, id: str) -> "Session":  # noqa: A002  the field's standard name
        """Return an open session by its id.

        Raises:
            ConfigError: The id is no text.
            SessionClosed: None of that id is open.
        """
        self._running_host().check()
        return self.sessions[session_id(id)]

    def stats(self) -> RuntimeStats:
        """Return what was counted since the runtime was entered, and how things stand now. It asks no actor."""
        host, meters = self._running_host(), self._backends.meters
        backends, open_, active = self._backends.stats, len(self.sessions), len(host.residency.active)
        held, slow, storage = self._quarantine.by_tool(), meters.slow, self._storage
        waiting, now = host.journal.waiting, self._system.now()
        journal = meters.journal.stats(storage.durability, storage.lease, storage.sizes, waiting, BATCH, now)
        counted = (
            backends,
            open_,
            active,
            host.residency.held.total,
            self._refusal_count,
            held,
            slow,
            self._watch.seen,
            journal,
        )
        of_host = (
            host.residency.limits.memory,
            host.residency.reuse.stats,
            host.loop_lag,
            *meters.work,
            THREADS.waiting,
        )
        learned = self._backends.learned.stats()
        return RuntimeStats(*counted, self._backends.budgets.stats, learned, *of_host)

    @property
    def sessions(self) -> OpenSessions:
        """Ids of the open sessions, oldest first, and by id the sessions: a view that is always up to date."""
        return self._registry.ids

    def _record_refusal(self, refusal: Refusal) -> None:
        self._refusal_count += 1
        self.refusals.append(refusal)
        logger.transcript_refused(refusal)
        if self._dumps is not None and self._host is not None and self._dumps.take():
            codec = self.config.dialect(refusal.report.dialect)
            self._host.start(
                partial(self._dumps.dump, refusal, codec, self._refusal_count), f"dump/{self._refusal_count}"
            )
