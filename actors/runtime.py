"""The composition root: `Runtime` puts the actors together, `Session` is what a user holds of one.

    async with Runtime("actors.toml") as runtime:
        session = await runtime.open("openai:gpt-5.2", tools=[weather])
        answer = await session.ask("Weather in Oslo?")

A runtime lives in the task that enters it, owns every task it starts, and keeps no global state: several may
live in one process, on asyncio or on trio.
"""

import inspect
import os
import re
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self, TypeAlias

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from actors import config as configuration
from actors import telemetry
from actors.adapters.adapter import adapter
from actors.adapters.request import Settings, ToolSpec
from actors.conductor import Crew, Refusal, Service
from actors.core.batch import Approve
from actors.core.content import Message
from actors.core.dialect import Dialect, dialect
from actors.core.events import Opened
from actors.core.identity import Binding
from actors.core.render import Reader
from actors.core.routing import Pool
from actors.core.state import Lanes, State
from actors.core.transcript import Encoder
from actors.core.turn import Bounds
from actors.errors import ConfigError, KernelError, SessionClosed, SessionExists
from actors.handle import Session
from actors.journal import Append, Incarnation, JournalActor, JournalCommand
from actors.kernel import Ref, Restart, Strategy, System, Terminated
from actors.kernel.actor import Child, current
from actors.kernel.system import SHARED
from actors.ledger import LedgerActor, LedgerCommand
from actors.provider import Endpoint, ProviderActor, ProviderCommand, Retries
from actors.renderer import RendererActor
from actors.scheduler import SchedulerActor
from actors.session import Desk, SessionActor
from actors.storage import Storage
from actors.storage.memory import MemoryStorage
from actors.tools import Tool, Toolset
from actors.transport import HttpTransport, Timeouts, Transport

CLOSING = 5.0
"""Seconds that connections may take to close when a runtime ends."""

Headers: TypeAlias = Callable[[], tuple[tuple[str, str], ...]]

EVIDENCE = 16
"""Refused transcripts that are kept."""

SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
CALL_ID = re.compile(r"hist_tool_([0-9]{1,18})")


class Runtime:
    """Hosts sessions. Enter it with `async with`; leaving it ends its sessions and closes its connections.

    That is bounded, but for an async tool that shields itself from its cancellation: it is waited for.

    Args:
        config: Path of an `actors.toml`, a `Config`, or None for the environment alone.
        environ: Where keys and base URLs are looked up; the process's environment by default.
        storage: Where logs are kept; in memory by default.
        transport: How requests travel; HTTP by default. It is closed when the runtime ends.
        seed: Seed of the jitter in retries and restarts; None for a different one each time.

    Raises:
        ConfigError: When entered: the file cannot be used.
    """

    def __init__(
        self,
        config: "str | Path | configuration.Config | None" = None,
        *,
        environ: Mapping[str, str] | None = None,
        storage: Storage | None = None,
        transport: Transport | None = None,
        seed: int | None = None,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self.config = (
            config if isinstance(config, configuration.Config) else configuration.load(config, self._environ)
        )
        self.storage: Storage = MemoryStorage() if storage is None else storage
        self.transport: Transport = HttpTransport() if transport is None else transport
        self.system = System(seed=seed, on_crash=telemetry.crashed)
        self._random = Random(seed)  # noqa: S311  jitter, not secrets
        self._workshop: _Workshop | None = None
        self._journal: Ref[JournalCommand] | None = None
        self._providers: dict[tuple[str, Binding], Ref[ProviderCommand]] = {}
        self._policies: dict[Binding, configuration.Thinking] = {}
        self._sessions: dict[str, Session] = {}
        self._reserving: set[str] = set()
        self._named = self._made = 0
        self.refusals: deque[Refusal] = deque(maxlen=EVIDENCE)
        """The last transcripts refused for their structure, oldest first: our bugs, with their evidence."""
        self.refused = 0
        """How many there have been."""

    async def __aenter__(self) -> Self:
        if self._workshop is not None:
            raise KernelError("A runtime is entered once; make another")
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        self._workshop = _Workshop(tasks, self.config.limits.tool_threads)
        try:
            await self.system.__aenter__()
        except BaseException:
            tasks.cancel_scope.cancel()
            await tasks.__aexit__(None, None, None)
            raise
        self._journal = self.system.spawn(lambda: JournalActor(self.storage), "journal", depth=SHARED)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._workshop is not None
        tasks, self._journal = self._workshop.tasks, None
        try:
            await self.system.__aexit__(kind, error, trace)
        finally:
            with anyio.move_on_after(CLOSING, shield=True):
                await self.transport.close()
            self._sessions.clear()
            tasks.cancel_scope.cancel()
            await tasks.__aexit__(None, None, None)
        return None

    async def open(
        self,
        target: str,
        *,
        tools: Iterable[Tool[..., Any] | Callable[..., Any]] = (),  # Any: any function
        id: str | None = None,  # noqa: A002  the field's standard name
        system: str | None = None,
        messages: Iterable[Message] = (),
        approve: Approve | None = None,
    ) -> "Session":
        """Open a session.

        Args:
            target: `provider:model`, the name of a configured backend, or of a configured pool.
            tools: What the model may call; functions are made tools.
            id: 1 to 64 letters, digits, `_` and `-`; made up if not given.
            system: System prompt, fixed for the session's life.
            messages: A history to begin with, as `from_wire` gives it.
            approve: Asked before a call of a tool with `approval="ask"` runs; without it such calls are denied.

        Raises:
            ConfigError: The target, a tool, the id or `approve` cannot be used.
            SessionExists: A session of this id is open, or has a log.
            JournalError: The log cannot be written. No session is open then.
        """
        if self._journal is None:
            raise KernelError("This runtime is not running; enter it with 'async with Runtime() as runtime'")
        if inspect.iscoroutinefunction(approve):
            raise ConfigError("approve= takes a plain function that returns True or False, not an async one")
        toolset = Toolset(tools)
        services = _Services(self, toolset, system)
        services.pool(target)
        name = self._reserved(id)
        try:
            while await self._has_log(name):
                if id is None:
                    self._reserving.discard(name)
                    name = self._reserved(None)
                    continue
                raise SessionExists(f"Session {name!r} has ended and its log is kept; take another id")
            imported = tuple(messages)
            opened = Opened(name, target, system, imported, _calls_used(imported))
            return await self._opened(opened, services, toolset, approve, self._journal)
        finally:
            self._reserving.discard(name)

    async def _opened(
        self,
        opened: Opened,
        services: "_Services",
        tools: Toolset,
        approve: Approve | None,
        journal: Ref[Append],
    ) -> "Session":
        session = self._crewed(opened.session, State().apply(opened), services, tools, approve)
        self._sessions[opened.session] = session
        try:
            await journal.ask(Append(opened.session, (opened,)))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await session.abandon()
            raise
        return session

    def session(self, id: str) -> "Session":  # noqa: A002  the field's standard name
        """Return an open session by its id.

        Raises:
            SessionClosed: None of that id is open.
        """
        if (found := self._sessions.get(id)) is None:
            raise SessionClosed(f"No session {id[:80]!r} is open; open it first")
        return found

    @property
    def sessions(self) -> tuple[str, ...]:
        """Ids of the open sessions, oldest first."""
        return tuple(self._sessions)

    def rules(self, binding: Binding) -> tuple[Dialect, Encoder, Reader]:
        """Return what a binding's lane is rendered with."""
        codec = adapter(dialect(binding.dialect))
        return codec.dialect, codec.encoder, Reader(binding, self._policies.get(binding, "native"))

    def provider(self, member: str, backend: configuration.Backend) -> Ref[ProviderCommand]:
        """Return the provider actor of a backend, made at its first use under its target's name."""
        binding = backend.binding
        if (known := self._providers.get((member, binding))) is not None:
            return known
        self._policies[binding] = backend.thinking
        headers = partial(_credentials, self.config, member)
        make = partial(_provider, backend, headers, self.transport, self._random)
        self._made += 1
        name = f"provider/{backend.name}/{self._made}"
        ref: Ref[ProviderCommand] = self.system.spawn(make, name, depth=SHARED, restart=Restart(intensity=10))
        self._providers[member, binding] = ref
        self.system.watch(
            ref, lambda _: self._providers.pop((member, binding), None)
        )  # given up: a new one may do better
        return ref

    def _reserved(self, given: str | None) -> str:
        """Return the id of a session to be opened, which nobody else can take meanwhile."""
        if given is None:
            self._named += 1
            given = f"session-{self._named}"
        if not SESSION_ID.fullmatch(given):
            raise ConfigError(
                f"Session id {given[:80]!r} is not usable; it takes 1 to 64 letters, digits, '_' or '-'"
            )
        if given in self._sessions or given in self._reserving:
            raise SessionExists(
                f"Session {given!r} is open already; take another id, or use session({given!r})"
            )
        self._reserving.add(given)
        return given

    async def _has_log(self, name: str) -> bool:
        if self.storage.blocking:
            return bool(await anyio.to_thread.run_sync(self.storage.read, name))
        return bool(self.storage.read(name))

    def _crewed(
        self,
        name: str,
        state: State,
        services: "_Services",
        tools: Toolset,
        approve: Approve | None,
    ) -> "Session":
        """Spawn a session's actors. They restart together, each from the log."""
        assert self._journal is not None
        assert self._workshop is not None
        make = _Makings(self, name, state, services, tools, approve, self._journal, self._workshop)
        group = self.system.group(name, Strategy.ONE_FOR_ALL)
        spawn = partial(self.system.spawn, group=group, depth=_below_caller())
        make.ledger = spawn(make.ledger_actor, f"{name}/ledger")
        renderer = spawn(make.renderer_actor, f"{name}/renderer")
        scheduler = spawn(make.scheduler_actor, f"{name}/scheduler")
        make.crew = Crew(scheduler, renderer, make.ledger, self._journal)
        head = spawn(make.session_actor, f"{name}/session")
        make.opened()
        self.system.watch(head, make.gone)
        return Session(name, head, make.crew, services, self._close)

    def _gone(self, name: str, desk: Desk) -> None:
        """Forget a session that has ended, in order or because it crashed too often; end its streams."""
        self._sessions.pop(name, None)
        desk.clear()

    async def _close(self, crew: Crew, head: Ref[Any]) -> None:  # Any: only to be stopped
        """End a session's actors. A caller that is cancelled does not take the order back."""
        assert self._workshop is not None
        ended = anyio.Event()

        async def stop() -> None:
            for ref in (head, crew.scheduler, crew.renderer, crew.ledger):
                await self.system.stop(ref)
            ended.set()

        self._workshop.start(stop, f"{head.name}/close")
        await ended.wait()


@dataclass(frozen=True, slots=True)
class _Workshop:
    """Where tools run: beside the sessions, so that one which does not end holds up none of them."""

    tasks: TaskGroup
    threads: int

    def start(
        self, work: Callable[[], Coroutine[Any, Any, None]], name: str
    ) -> None:  # Any: a coroutine's own
        """Run a tool's task. It is cancelled when the runtime ends."""
        self.tasks.start_soon(work, name=name)


class _Makings:
    """What a session's actors are made from: first the state it was opened with, after a crash its log.

    One object, and no closure for each actor: idle sessions are many, and the collector visits all they hold.
    """

    __slots__ = (
        "_approve", "_bounds", "_desk", "_first", "_incarnation", "_journal", "_name", "_runtime",
        "_services", "_tools", "_workshop", "crew", "ledger",
    )  # fmt: skip
    crew: Crew
    ledger: Ref[LedgerCommand]

    def __init__(
        self,
        runtime: Runtime,
        name: str,
        state: State,
        services: "_Services",
        tools: Toolset,
        approve: Approve | None,
        journal: Ref[JournalCommand],
        workshop: _Workshop,
    ) -> None:
        limits = runtime.config.limits
        self._runtime, self._name, self._services = runtime, name, services
        self._tools = {tool.name: tool for tool in tools}
        self._approve, self._journal, self._workshop = approve, journal, workshop
        self._bounds, self._desk = Bounds(limits.rounds, limits.corrections), Desk(limits.waiting_asks)
        self._first: State | None = state
        self._incarnation = Incarnation(name, journal, runtime.rules, first=True)

    def opened(self) -> None:
        """Note that the actors have been made from what the session was opened with."""
        self._first = None

    def ledger_actor(self) -> LedgerActor:
        """Return the ledger, which is made first: a new one is the beginning of a new incarnation."""
        if self._first is None:
            self._incarnation.over = True
            self._incarnation = Incarnation(self._name, self._journal, self._runtime.rules, first=False)
        return LedgerActor(self._name, self._state().ledger, self._journal, self._incarnation)

    def renderer_actor(self) -> RendererActor:
        lanes = Lanes(self._runtime.rules, len(self._state().history))
        return RendererActor(lanes, self._incarnation)

    def scheduler_actor(self) -> SchedulerActor:
        return SchedulerActor(self._tools, self.ledger, self._workshop, self._approve)

    def session_actor(self) -> SessionActor:
        return SessionActor(
            self._state(), self.crew, self._services, self._bounds, self._desk, self._incarnation
        )

    def gone(self, _: Terminated) -> None:
        """Tell the runtime that the session has ended."""
        self._runtime._gone(self._name, self._desk)

    def _state(self) -> State:
        """Return what the session was opened with; nothing after a crash, when `started` takes it from the log."""
        return self._first or State()


class _Services:
    """What targets mean to one session: its tools and its system prompt go with every request."""

    def __init__(self, runtime: Runtime, tools: Toolset, system: str | None) -> None:
        self._runtime = runtime
        self._system = system
        self._tools = tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in tools)

    def pool(self, target: str) -> Pool:
        """Return the pool of a target; see `actors.conductor.Services`."""
        found = self._runtime.config.resolve(target)
        if isinstance(found, configuration.Backend):
            return Pool(target, (target,))
        settings = self._runtime.config.settings.pools[target]
        return Pool(target, settings.members, found.policy, found.cooldown, found.failover_after_output)

    def service(self, member: str) -> Service:
        """Return a member, ready to serve a turn."""
        backend = self._runtime.config.backend(member)
        codec = adapter(dialect(backend.dialect))
        settings = Settings(
            model=backend.model,
            system=self._system,
            tools=self._tools,
            max_tokens=backend.max_tokens,
            stream=backend.stream,
        )
        return Service(backend.binding, codec, settings, self._runtime.provider(member, backend))

    def refused(self, refusal: Refusal) -> None:
        """Count, log and keep a refused transcript."""
        self._runtime.refused += 1
        self._runtime.refusals.append(refusal)
        telemetry.refused(refusal.session, str(refusal.binding), refusal.why)


def _below_caller() -> int:
    """Return the depth of a session that is opened now: below the one whose tool opens it, which may ask it then."""
    acting = current.get()
    cell = acting.cell if isinstance(acting, Child) else acting
    return 0 if cell is None or cell.depth >= SHARED else cell.depth + 1


def _provider(
    backend: configuration.Backend, headers: Headers, transport: Transport, random: Random
) -> ProviderActor:
    limits = backend.limits
    endpoint = Endpoint(
        backend.endpoint,
        headers,
        Timeouts(limits.connect, limits.first_byte, limits.idle, limits.total),
        Retries(attempts=limits.attempts),
        limits.concurrency,
        backend.stream,
    )
    return ProviderActor(adapter(dialect(backend.dialect)), endpoint, transport, random)


def _credentials(config: configuration.Config, member: str) -> tuple[tuple[str, str], ...]:
    """Return the headers that carry a member's key as it is now: it may have been rotated."""
    backend = config.backend(member)
    if backend.key is None:
        return ()
    key = backend.key.get_secret_value()
    if backend.kind == "anthropic":
        return (("x-api-key", key),)
    return (("authorization", f"Bearer {key}"),)


def _calls_used(messages: Iterable[Message]) -> int:
    """Return the highest number of a canonical id in an imported history, so that none is minted twice."""
    known = list(messages)
    ids = [call.id for message in known for call in message.calls]
    ids += [result.call_id for message in known for result in message.results]
    numbers = (int(match[1]) for name in ids if (match := CALL_ID.fullmatch(name)))
    return max(numbers, default=0)
