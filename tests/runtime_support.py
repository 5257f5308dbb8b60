"""A runtime over strict loopback servers. When it ends, every session must equal the fold of its log.

The comparison covers the state, the ledger and each lane byte for byte, whatever the test did.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import anyio
import anyio.lowlevel

from actors.config import BackendLimits, BackendSettings, Config, FileSettings, PoolSettings, RuntimeLimits
from actors.config.providers import kind_of
from actors.core.data.persistent import Segments
from actors.core.data.record import replace
from actors.core.dialects.profiles import dialect
from actors.core.history.compaction import Compaction
from actors.core.log.call_events import ToolCallRecord
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import Closed, LogEvent
from actors.core.session.lanes import Lanes, rebuild
from actors.core.session.state import SessionState
from actors.core.stream_events.events import SessionEvent
from actors.core.values.content import Message
from actors.core.values.identity import CallId
from actors.journal.storage import Storage
from actors.provider.dumps import OnRefusal
from actors.renderer.renderer_actor import AdoptedLanes
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.scheduler.executor import ToolFailure
from actors.session.commands import GetState
from actors.strict.server import LoopbackServer, serve
from actors.testing import AnthropicProfile, AnthropicServer, AnthropicSettings, OpenAIServer
from actors.tools import Tool, tool
from actors.transport import HttpTransport, Response, Timeouts, Transport
from tests.renderer.marks import without_marks

Json = dict[str, Any]  # Any: a request body under test

PREFIX_BOUND = AnthropicSettings(profile=AnthropicProfile(prefix_bound=True))
"""The strictest signatures: a thinking block is valid only after the exact prefix of its generation."""

_MODELS = {"openai_chat": "gpt", "openai_responses": "gpt", "anthropic": "claude"}

NO_RETRIES = BackendLimits(attempts=1)


@asynccontextmanager
async def runtime_with(
    named: Mapping[str, LoopbackServer] = MappingProxyType({}),
    /,
    *,
    pools: Mapping[str, PoolSettings] | None = None,
    limits: RuntimeLimits | None = None,
    backend: BackendLimits = NO_RETRIES,
    storage: Storage | None = None,
    transport: Transport | None = None,
    environ: Mapping[str, str] | None = None,
    on_tool_error: Callable[[ToolFailure], object] | None = None,
    on_refusal: OnRefusal | None = None,
    auth: Mapping[str, str] | None = None,
    models: Mapping[str, str] | None = None,
    compaction: Compaction | None = None,
    seconds: float = 300,
    stream: bool = True,
    fields: Mapping[str, object] | None = None,
    **servers: LoopbackServer,
) -> AsyncIterator[Runtime]:
    """Run the servers and a runtime with one backend per keyword, then compare each session with its log.

    Args:
        named: Further servers by the name of their backend. `tests.scripted` is simpler for one session.
        auth: For a backend, the variable of `environ` that contains its key.
        models: For a backend, its model.
        fields: Other settings of every backend.
    """
    servers = {**named, **servers}
    with anyio.fail_after(seconds):
        async with serve(*servers.values()):
            backends = {
                name: backend_at(
                    server,
                    backend,
                    (auth or {}).get(name),
                    stream=stream,
                    model=(models or {}).get(name),
                    fields=fields or {},
                )
                for name, server in servers.items()
            }
            settings = FileSettings(
                backends=backends, pools=dict(pools or {}), limits=limits or RuntimeLimits()
            )
            config = Config(settings, {} if environ is None else environ)
            hosted = Runtime(
                config,
                journal=storage,
                transport=transport,
                seed=1,
                on_tool_error=on_tool_error,
                on_refusal=on_refusal,
                compaction=compaction,
            )
            async with hosted as runtime:
                yield runtime
                for name in runtime.sessions:
                    await assert_rebuilds(runtime, runtime.session(name))
            for stored in runtime._storage.sessions():
                assert_closed_is_last(runtime._storage, stored.id)


def backend_at(
    server: LoopbackServer,
    limits: BackendLimits = NO_RETRIES,
    auth: str | None = None,
    *,
    stream: bool = True,
    model: str | None = None,
    fields: Mapping[str, object] = MappingProxyType({}),
) -> BackendSettings:
    """Return the settings of a backend that uses a strict server."""
    speaks = {"kind": kind_of(dialect(server.dialect)), "dialect": server.dialect}
    model = model or _MODELS.get(server.dialect, "model")
    return BackendSettings.model_validate(
        {
            "model": model,
            "base_url": server.endpoint,
            "limits": limits,
            "auth": auth,
            "stream": stream,
            **speaks,
            **fields,
        }
    )


def log(runtime: Runtime, session: Session) -> list[LogEvent]:
    """Return a session's events after a round trip through their stored form."""
    return [decode_event(encode_event(event)) for event in runtime._storage.read(session.id)]


async def assert_rebuilds(runtime: Runtime, session: Session) -> None:
    """Compare a session with the fold of its log.

    The comparison runs up to three times: as the session is, after its actors were passivated, and after
    everything but the log was dropped.
    """
    await _assert_rebuilds(runtime, session)
    if session._lifecycle.passivate():
        await _assert_rebuilds(runtime, session)
    if session._lifecycle.passivate():
        session._lifecycle.evict()
        await _assert_rebuilds(runtime, session)


async def _assert_rebuilds(runtime: Runtime, session: Session) -> None:
    """Compare state, ledger, and lanes byte for byte."""
    state, lanes = rebuild(log(runtime, session), runtime._backends.rules)
    live = await session._session.ask(GetState())  # reads internal state, which no public method returns
    ledger = await session.ledger()
    assert ledger == state.ledger
    assert live.history == state.history
    assert (live.history.report, live.history.system) == (state.history.report, state.history.system)
    assert replace(live, ledger=ledger, history=state.history) == replace(state, ledger=ledger)
    shown = await session._refs.renderer.ask(AdoptedLanes())  # internal state, as above
    assert set(shown) == set(lanes.bindings())
    for binding, lane in shown.items():
        assert b"".join(lane._segments) == b"".join(lanes.of(binding)._segments), binding
        assert lane._state == lanes.of(binding)._state, binding


def assert_closed_is_last(storage: Storage, name: str) -> None:
    """Check that a session's log contains `Closed` at most once, as its last event."""
    ends = [isinstance(event, Closed) for event in storage.read(name)]
    assert not any(ends[:-1]), f"{name}: {len(ends) - ends.index(True) - 1} events after Closed"


def actors(runtime: Runtime) -> list[str]:
    """Return the names of all actors."""
    return list(runtime._system.cells)


async def wait_for_toolsets(runtime: Runtime) -> None:
    """Wait until every unused toolset is closed."""
    toolsets = runtime._running_host().toolsets
    await toolsets._changes.wait_until(lambda: all(owner.users for owner in toolsets._owners))


def advance_deadlines(runtime: Runtime, seconds: float) -> None:
    """Move all deadlines of a runtime forward by this many seconds."""
    deadlines = runtime._system.deadlines
    deadlines._heap = [(when - seconds, number, timer) for when, number, timer in deadlines._heap]
    deadlines._sooner.notify()


def restarted_actors(runtime: Runtime) -> list[str]:
    """Return the names of the actors that have been restarted."""
    return [name for name, cell in runtime._system.cells.items() if cell.restarts]


def fold_log(runtime: Runtime, session: Session) -> tuple[SessionState, Lanes]:
    """Return the state and the lanes that a session's log folds to."""
    return rebuild(log(runtime, session), runtime._backends.rules)


def bodies(server: LoopbackServer) -> list[Json]:
    """Return the parsed request bodies that a server received, without their cache marks."""
    return [json.loads(without_marks(exchange.body, server.dialect)) for exchange in server.requests]


def assert_prefixes(server: LoopbackServer) -> None:
    """Check that each request of a server's only session repeats the previous one block by block and extends it."""
    sent = [blocks(body) for body in bodies(server)]
    for before, after in pairwise(sent):
        assert after[: len(before)] == before


def blocks(body: Json) -> list[tuple[str, str]]:
    """Return the messages or items of a body as (role, block) pairs, each block as JSON."""
    pairs: list[tuple[str, str]] = []
    for message in body["input"] if "input" in body else body["messages"]:
        content = message.get("content")
        listed = content if isinstance(content, list) else [{k: v for k, v in message.items() if k != "role"}]
        pairs.extend((message.get("role", ""), json.dumps(block)) for block in listed)
    return pairs


def results(body: Json) -> dict[str, str]:
    """Return the tool results of a body, Chat or Anthropic, as a mapping from id to text."""
    found: dict[str, str] = {}
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] not in found
            found[message["tool_call_id"]] = _text(message["content"])
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block["type"] == "tool_result":
                assert block["tool_use_id"] not in found
                found[block["tool_use_id"]] = _text(block["content"])
    return found


def _text(content: Any) -> str:  # Any: a string or a list of blocks
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def calls(body: Json) -> list[str]:
    """Return the ids of the tool calls of a body, Chat or Anthropic, in order."""
    found: list[str] = []
    for message in body["messages"]:
        found.extend(call["id"] for call in message.get("tool_calls") or ())
        if isinstance(message.get("content"), list):
            found.extend(block["id"] for block in message["content"] if block["type"] == "tool_use")
    return found


def assert_paired(body: Json) -> None:
    """Check that each call of a body has exactly one result, and each result its call."""
    made = calls(body)
    assert len(set(made)) == len(made)
    assert set(results(body)) == set(made)


def real(interactions: list[ToolCallRecord]) -> list[str]:
    """Return the contents of the real completions, in call order."""
    return [item.completion.rendered_json.decode() for item in interactions if item.completion is not None]


async def wait_for_result(session: Session, call_id: str) -> ToolCallRecord:
    """Wait until a call has a real completion, and return its record."""
    while True:
        known = (await session.ledger()).get(CallId(call_id))
        if known is not None and (known.completion or known.late) is not None:
            return known
        await anyio.lowlevel.checkpoint()


SYNTHETIC = "[No result was recorded for this tool call"


def synthetic(body: Json) -> list[str]:
    """Return the ids of the calls of a body whose result is synthetic."""
    return [call for call, content in results(body).items() if content.startswith(SYNTHETIC)]


@dataclass
class Gate:
    """A tool `work(name)` that reports when a call starts, and blocks it until its name is opened."""

    begun: dict[str, anyio.Event] = field(default_factory=dict)
    opened: dict[str, anyio.Event] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)

    def _event(self, events: dict[str, anyio.Event], name: str) -> anyio.Event:
        return events.setdefault(name, anyio.Event())

    def open(self, *names: str) -> None:
        """Release the calls with these names."""
        for name in names:
            self._event(self.opened, name).set()

    async def started(self, *names: str) -> None:
        """Wait until the calls with these names are running."""
        for name in names:
            await self._event(self.begun, name).wait()

    @property
    def tool(self) -> Tool[..., Any]:  # Any: any function
        """The tool."""

        async def work(name: str) -> str:
            """Do a piece of work."""
            self.runs.append(name)
            self._event(self.begun, name).set()
            await self._event(self.opened, name).wait()
            return f"{name} is done"

        return tool(work)


@dataclass
class Tap(HttpTransport):
    """The real transport, observed: `received` is set when a response has delivered `count` bytes.

    If `held` is an event, a request waits for it before it connects; `begun` is set when a request starts.
    """

    count: int = 0
    held: anyio.Event | None = None
    begun: anyio.Event = field(default_factory=anyio.Event)
    received: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        super().__init__()

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        """Wait for `held`, then send the request through the real transport."""
        self.begun.set()
        if self.held is not None:
            await self.held.wait()
        async with super().send(url, headers, segments, timeouts) as response:
            yield _TappedResponse(response, self)


class _TappedResponse:
    def __init__(self, response: Response, tap: Tap) -> None:
        self.status, self.headers = response.status, response.headers
        self._response, self._tap = response, tap

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        size = 0
        async with aclosing(self._response.chunks()) as chunks:
            async for chunk in chunks:
                yield chunk
                size += len(chunk)
                if size >= self._tap.count:
                    self._tap.received.set()


async def gather_events(session: Session, words: str | Message) -> list[SessionEvent]:
    """Return all events of an ask's stream."""
    async with session.stream(words) as events:
        return [event async for event in events]


def openai(*turns: Any, **options: Any) -> OpenAIServer:  # Any: turns, or a function in their place; options
    """Return a strict OpenAI-style server with these turns."""
    return OpenAIServer(list(turns), **options)


def anthropic(*turns: Any, **options: Any) -> AnthropicServer:  # Any: as above
    """Return a strict Anthropic-style server with these turns, whose signatures are bound to their prefix."""
    return AnthropicServer(list(turns), settings=PREFIX_BOUND, **options)
