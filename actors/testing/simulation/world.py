"""Assemble everything that one simulation needs: servers without sockets, their model, tools, logs, and a runtime.

A transport in the same process connects the runtime to the servers. These servers are the objects that otherwise listen
on ports, so rules, faults and bytes are the same. An answer arrives in chunks of random size, after random delays.
"""

import hashlib
import math
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from random import Random
from typing import Any, ClassVar, Never, TypeAlias
from urllib.parse import urlsplit

import anyio

from actors.config import BackendLimits, BackendSettings, Config, FileSettings, PoolSettings, RuntimeLimits
from actors.config.providers import kind_of
from actors.core.data.persistent import Segments
from actors.core.dialects.profiles import dialect
from actors.errors import ProviderFailed
from actors.runtime.runtime import Runtime
from actors.strict.anthropic_server import AnthropicServer
from actors.strict.dialects import strict_server
from actors.strict.faults import BYTES_PER_TOKEN, window_faults
from actors.strict.loopback import HttpRequest, LoopbackAnswer
from actors.strict.rules import AnthropicProfile, AnthropicSettings
from actors.strict.rules.base import Json
from actors.strict.script import Script, Turn
from actors.strict.server import Exchange, LoopbackServer, ServerLimits
from actors.testing.simulation.model import Model, is_task
from actors.testing.simulation.observer import Observer, Problems, SimulatedJournal
from actors.testing.simulation.plan import (
    EXTRAS,
    PERMANENT_TOOL,
    PRICE,
    SHARED_BUDGET,
    TENANT,
    SimulationPlan,
    extra_tool,
    subagent_form,
)
from actors.testing.simulation.toolbox import SimulatedToolsets, Toolbox
from actors.testing.standin import sample_arguments
from actors.tools import Tool
from actors.tools.toolsets import ToolItem
from actors.transport.contract import Response, Timeouts

DIALECTS = ("openai_chat", "anthropic", "openai_responses", "gemini", "mistral", "bedrock")
"""The dialects of the simulated servers."""
POOLS = {"either": "failover", "by-turns": "round_robin"}
TARGETS = (*DIALECTS, *POOLS)
DECLARED_WINDOWS = {"openai_chat": 1_800}
"""Declared context windows in tokens, by dialect. Histories are compacted before they exceed these windows."""
UNDECLARED_WINDOWS = {"gemini": 1_500}
"""Context windows in tokens that servers enforce without declaring them, while there are faults."""
Tools: TypeAlias = Sequence[Tool[..., Any]]  # Any: tool signatures differ
_BACKEND = BackendLimits(first_byte_timeout=20, idle_timeout=10, timeout=90, attempts=3, concurrency=16)
_SERVER = ServerLimits(recordings=1)
OnRequest = Callable[[str, bytes], None]
"""Called with the name of a server and a request body, before the server handles the request."""
DELAY_PROBABILITY = 0.5
"""Probability of a delay before each chunk of an answer."""


class _ModelScript(Script):
    """A script whose answers come from the simulated model."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._model = model

    def turn(self, request: Json) -> Turn:
        return self._model.current_answer()

    def advance(self) -> None:
        self._model.advance()


class World:
    """Everything that one simulation needs, except the callers.

    Args:
        plan: The plan to execute.
        tools: The user's own tools.
        observe: Returns the observer of this world.

    Attributes:
        members: The names of the backends of each target.
        own_tools: The names of the user's own tools.
        limits: The limits of the runtime.
        models: The model name to use in requests to each server, by dialect; `model` if a dialect is missing.
    """

    limits: ClassVar[RuntimeLimits] = RuntimeLimits(
        max_rounds=5, max_queued_asks=2, memory=1024 * 1024 * 1024
    )
    models: ClassVar[Mapping[str, str]] = {"openai_responses": "gpt", "anthropic": "claude"}

    faults: int
    too_long: int

    def __init__(
        self, plan: SimulationPlan, tools: Tools = (), observe: Callable[["World"], Observer] | None = None
    ) -> None:
        self.plan = plan
        self.problems: Problems = Problems()
        self.faultless = False
        """True after faults have stopped, in liveness mode."""
        self.crashed: set[str] = set()
        """Ids of sessions in which an actor has crashed, so that their pending work may be lost."""
        arguments = {each.name: sample_arguments(each.schema) for each in tools}
        self.model: Model = Model(plan, arguments)
        self.random: Random = Random(f"{plan.seed}/world")  # noqa: S311  must be reproducible
        self.servers: dict[str, LoopbackServer] = {name: self._create_server(name) for name in DIALECTS}
        self.network: SimulatedNetwork = SimulatedNetwork(self.servers, self.random, self._record_request)
        self.members: dict[str, frozenset[str]] = {name: frozenset({name}) for name in DIALECTS}
        self.members |= dict.fromkeys(POOLS, frozenset(DIALECTS))
        self.own_tools: frozenset[str] = frozenset(arguments)
        self.toolbox: Toolbox = Toolbox(self.random, self._record_start, self._watch_write)
        self._made = {
            (extra, form): tuple(self.toolbox.tools(extra, form)) for extra in EXTRAS for form in ("", "list")
        }
        self._own = tuple(tools)
        self.toolsets: SimulatedToolsets = SimulatedToolsets(self.random, self.problems)
        self.toolsets.tools = self.toolbox.create_toolset_tools(self.toolsets.record_call)
        self.digest: hashlib.blake2b = hashlib.blake2b(digest_size=16)
        self.faults = self.too_long = 0
        self._asking = ""  # the id of the session that sent the current request
        self.observer: Observer = Observer() if observe is None else observe(self)
        self.journal: SimulatedJournal = SimulatedJournal(self.observer)

    def tools_for(self, session: str, name: str) -> tuple[Sequence[ToolItem], tuple[str, ...]]:
        """Return tools for a session, and their names. The user's own tools are always included.

        `name` is `all tools`, `some tools` for only the first tool, or the name of a toolset to add to all tools.
        """
        number = int(session[1:])
        made = self._made[extra_tool(number), subagent_form(number)]
        tools = (*(made[:1] if name == "some tools" else made), *self._own)
        names = tuple(each.name for each in tools)
        if not name.endswith("toolset"):
            return tools, names
        return (*tools, self.toolsets.source(name)), (*names, PERMANENT_TOOL)

    def session_of(self, call: str) -> str:
        """Return the id of the session that made a call.

        The key of a subagent's call begins with the name of the subagent's task and `/`.
        """
        task = call.partition("/")[0] if "/" in call else ""
        return self.journal.session_of(task) if task else f"s{call.partition('.')[0]}"

    def create_runtime(self) -> Runtime:
        """Create the runtime of the simulation. The caller enters the runtime."""
        backends = {name: self._backend_settings(server) for name, server in self.servers.items()}
        pools = {name: _pool_settings(policy) for name, policy in POOLS.items()}
        config = Config(FileSettings(backends=backends, pools=pools, limits=self.limits), {}, "a simulation")
        runtime = Runtime(
            config,
            environ={},
            journal=self.journal,
            transport=self.network,
            seed=self.plan.seed,
            prices={"*": PRICE},
            budgets={f"tenants.{TENANT}": SHARED_BUDGET},
        )
        keys = Random(f"{self.plan.seed}/keys")  # noqa: S311  must be reproducible
        runtime._registry.draw_key = lambda: keys.randbytes(8).hex()
        return runtime

    def _create_server(self, name: str) -> LoopbackServer:
        script = _ModelScript(self.model)
        server: LoopbackServer
        if (
            name == "anthropic"
        ):  # enforce the strictest rule: a signature is valid only after its original prefix
            settings = AnthropicSettings(profile=AnthropicProfile(prefix_bound=True))
            server = AnthropicServer(
                script, settings=settings, faults=partial(self._choose_fault, name), limits=_SERVER
            )
        else:
            server = strict_server(name, faults=partial(self._choose_fault, name), limits=_SERVER)
            server.script = script
        server.on_exchange = partial(self._check_verdict, name)
        self.disable_prompt_cache(server)
        return server

    def disable_prompt_cache(self, server: LoopbackServer) -> None:
        """Disable the prompt cache of a server, because simulating it would take a tenth of the simulation's time."""
        server._cache_prompt = _without_prompt_cache  # type: ignore[method-assign]  # only for this server object

    def _backend_settings(self, server: LoopbackServer) -> BackendSettings:
        speaks = {"kind": kind_of(dialect(server.dialect)), "dialect": server.dialect}
        model = self.models.get(server.dialect, "model")
        return BackendSettings.model_validate(
            {
                "model": model,
                "base_url": server.endpoint,
                "limits": _BACKEND,
                "context": DECLARED_WINDOWS.get(server.dialect),
                **speaks,
            }
        )

    def _check_verdict(self, backend: str, exchange: Exchange) -> None:
        """Report a problem if a server rejected a request because of its structure."""
        if (verdict := exchange.verdict) is not None:
            about = f"{backend}, ask {self.model.ask_name}: {verdict.rule}: {verdict.message[:200]}"
            self.problems.add("no request is rejected for its structure", about)

    def _choose_fault(
        self, name: str, request_number: int, request: Json
    ) -> Any:  # Any: faults differ in type
        """Return the fault that a server must inject into its answer to a request, or None.

        Until faults stop, a request that exceeds the context window is rejected, even without a planned fault.
        """
        most = UNDECLARED_WINDOWS.get(name, self.model.size)
        is_large = not self.faultless and self.model.size > most * BYTES_PER_TOKEN
        if is_large and (refusal := window_faults(name, most)(request_number, request)) is not None:
            self.too_long += 1
            self.observer.on_request_too_long(self._asking)
            return refusal
        if self.faultless or (fault := self.model.planned_fault()) is None:
            return None
        self.faults += 1
        return fault

    def _record_request(self, backend: str, body: bytes) -> None:
        """Record a request body before its server receives it."""
        self.digest.update(b"%s %d\n" % (backend.encode(), len(body)))
        self.digest.update(body)
        self.model.read_request(body)
        if (ask := self.model.ask_name) is None:
            if not self.model.summarises:  # a request for a summary need not contain an ask
                self.problems.add("a request contains the user's message", backend)
        else:
            session = self._asking = self.session_of(f"{ask}/" if is_task(ask) else ask)
            self.observer.on_request(session, backend, ask, body)

    def _watch_write(self, key: str, resource: str) -> AbstractContextManager[None]:
        return self.observer.watch_write(self.session_of(key), key, resource)

    def _record_start(self, key: str, arguments: Mapping[str, Json]) -> None:
        session = self.session_of(key)
        self.observer.on_tool_start(session, key, arguments)
        if self.toolbox.runs[key] > 1:
            self.problems.add("a call runs once", f"{session}: {key}")


def _without_prompt_cache(request: HttpRequest, parsed: Json) -> None:
    """Return None, which means that the host has no prompt cache."""


def _pool_settings(policy: str) -> PoolSettings:
    return PoolSettings.model_validate({"members": DIALECTS, "policy": policy, "cooldown": 5.0})


class SimulatedNetwork:
    """A transport to servers in the same process.

    Args:
        servers: The servers by name. The transport assigns their ports.
        random: Decides delays and sizes of chunks.
        on_request: Called with each request before its server handles the request.
    """

    def __init__(self, servers: Mapping[str, LoopbackServer], random: Random, on_request: OnRequest) -> None:
        self._random = random
        self._on_request = on_request
        self._at: dict[int, tuple[str, LoopbackServer]] = {}
        self.requests: dict[str, int] = dict.fromkeys(servers, 0)
        for port, (name, server) in enumerate(servers.items(), 1):
            server.port = port
            self._at[port] = name, server

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncGenerator[Response]:
        """Send a request to its server; see `Transport.send`."""
        where = urlsplit(url)
        name, server = self._at[where.port or 0]
        body = b"".join(segments)
        self.requests[name] += 1
        self._on_request(name, body)
        named = {key.lower(): value for key, value in headers}
        answer = server.answer(HttpRequest("POST", where.path, named, body, False))
        if answer.on_sent is not None:
            answer.on_sent()
        wait = self._random.expovariate(2.0)
        await _wait_or_time_out(
            wait if answer.is_sent or answer.ending != "stall" else math.inf, timeouts, first=True
        )
        if not answer.is_sent:
            raise ProviderFailed(f"The request to {name} failed: the connection was closed")
        yield _SimulatedResponse(answer, self._random, timeouts)

    async def close(self) -> None:
        """Do nothing, because there is no connection."""


class _SimulatedResponse:
    """A response of a simulated server, whose body arrives over time."""

    def __init__(self, answer: LoopbackAnswer, random: Random, timeouts: Timeouts) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in answer.headers}
        self._answer = answer
        self._random = random
        self._timeouts = timeouts

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body in chunks of random size. Then stall or fail if the answer's fault requires that."""
        for chunk in _split_body(self._answer, self._random):
            if self._random.random() < DELAY_PROBABILITY:
                await _wait_or_time_out(self._random.expovariate(10.0), self._timeouts)
            yield chunk
        if self._answer.ending == "stall":
            await _wait_or_time_out(math.inf, self._timeouts)
        if self._answer.ending != "end":
            raise ProviderFailed("No complete answer: the connection was lost during the answer")


def _split_body(answer: LoopbackAnswer, random: Random) -> Iterator[bytes]:
    """Yield the transmitted body in chunks of random size, which may split or join events."""
    body = b"".join(answer.parts)
    if answer.ending != "end":
        body = body[: answer.cut or 0]
    at = 0
    while at < len(body):
        size = random.choice((7, 160, 1000, 4000))
        yield body[at : at + size]
        at += size


async def _wait_or_time_out(seconds: float, timeouts: Timeouts, *, first: bool = False) -> None:
    """Sleep for `seconds`. If the timeout is shorter, raise an error after the timeout instead.

    The timeout is `first_byte` if `first` is True, otherwise `idle`.
    """
    most = timeouts.first_byte if first else timeouts.idle
    await anyio.sleep(min(seconds, most))
    if seconds > most:
        _raise_timeout(most)


def _raise_timeout(seconds: float) -> Never:
    raise ProviderFailed(f"No answer within {seconds:g} s")
