"""Run strict loopback servers: the HTTP API of a provider, its rules, and a model that follows a script.

    async with serve(OpenAIServer(Script([...])), AnthropicServer()) as (openai, anthropic):
        ...  # a client against openai.base_url
        assert openai.refusals == []

Each server listens on a free port of 127.0.0.1. A request passes these steps in the provider's order: credentials,
path, a scripted `Status`, the rules, and the script's turn, streamed if requested. Every exchange is recorded with
its verdict. Connections, bodies and recordings are bounded.
"""

import hmac
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, TypedDict, Unpack

import anyio
import anyio.abc

from actors.strict.cache import PromptCache
from actors.strict.catalogue import openai_models
from actors.strict.faults import (
    Disconnect,
    ErrorInStream,
    Flood,
    Garbage,
    InjectedFault,
    InjectedFaults,
    MalformedEvent,
    Reframed,
    Stall,
    Status,
    fault_for,
)
from actors.strict.loopback import HttpRequest, LoopbackAnswer, serve_connection
from actors.strict.rules import validate
from actors.strict.rules.base import Json, Mode, OpenAISettings, ServerRefusal, dump
from actors.strict.rules.prompts import AUTOMATIC, Prompt, automatic_prompt
from actors.strict.rules.reading import parse
from actors.strict.script import Script, ScriptSource, Turn
from actors.strict.wire import OpenAIWire, Wire

_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"})
_JSON = ("content-type", "application/json")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer.

    Args:
        order: Number of the request at this server, from 0.
        headers: As received, names in lower case, without credentials.
        verdict: The refusal by a rule; None if the rules accepted the body or were not applied.
        status: Status of the answer; 0 if a fault prevented one.
        fault: The scripted fault of the request.
        query: As received, without the question mark.
    """

    order: int
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    verdict: ServerRefusal | None
    status: int
    fault: InjectedFault | None
    query: str = ""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Bounds of one server.

    Args:
        connections: Open connections; further ones wait until one closes.
        body: Bytes of a request body; a longer one gets a 413 and is not read completely.
        recordings: Recorded exchanges; the oldest is dropped.
    """

    connections: int = 1024
    body: int = 32_000_000
    recordings: int = 10_000


class ServerOptions(TypedDict, total=False):
    """The options that the servers of all dialects accept; `LoopbackServer` describes them."""

    mode: Mode
    faults: InjectedFaults | None
    api_key: str | None
    write_bytes: int | None
    host: str
    limits: ServerLimits | None
    cache: PromptCache | None


class LoopbackServer:
    """Base class of the strict servers. A subclass adds the rules and the wire format of a dialect.

    Args:
        script: The model's turns, or a function from the request to a turn; None says `ok` to everything.
        mode: `strict` also enforces the rules that the official host does not enforce today; `hosted` does not.
        faults: By request number, or a function of request number and parsed body.
        api_key: The only key that is accepted; None accepts every request.
        write_bytes: Maximal bytes per TCP write; None writes each event at once.
        host: A name included in generated ids, so that the ids of several servers differ.
        limits: Bounds of connections, bodies and recordings.
        cache: The prompt cache, for instance with another clock; None creates a new one.

    Attributes:
        dialect: The dialect whose rules the server enforces.
        address: Address to listen on; may be set before the server starts.
        on_exchange: Called with each exchange after its answer was sent; may be set at any time.
    """

    dialect: str
    _base_path: str
    _paths: frozenset[str]
    _request_id_header: ClassVar[str]
    _stream_type: ClassVar[str] = "text/event-stream; charset=utf-8"

    def __init__(
        self,
        script: ScriptSource = None,
        *,
        mode: Mode = "strict",
        faults: InjectedFaults | None = None,
        api_key: str | None = None,
        write_bytes: int | None = None,
        host: str = "",
        limits: ServerLimits | None = None,
        cache: PromptCache | None = None,
    ) -> None:
        self.script: Script = Script.of(script)
        self.mode: Mode = mode
        self._wire = self._make_wire(host)
        self.faults: InjectedFaults = faults if faults is not None else {}
        self.api_key = api_key
        self.cache: PromptCache = cache or PromptCache()
        self.port: int | None = None
        self.address = "127.0.0.1"
        self.on_exchange: Callable[[Exchange], None] | None = None
        self._write_bytes = write_bytes
        self._limits = limits or ServerLimits()
        self._received = 0
        self._recorded: deque[Exchange] = deque(maxlen=self._limits.recordings)

    @property
    def base_url(self) -> str:
        """The base URL for the vendor's client.

        Raises:
            RuntimeError: The server is not running.
        """
        if self.port is None:
            raise RuntimeError(f"{type(self).__name__} has no address yet; enter `serve(...)` first.")
        return f"http://{_url_host(self.address)}:{self.port}{self._base_path}"

    @property
    def endpoint(self) -> str:
        """The base URL for a backend of this package: `base_url`, with the project for Vertex AI.

        Raises:
            RuntimeError: The server is not running.
        """
        return self.base_url

    @property
    def received(self) -> int:
        """The number of received requests, including those no longer recorded."""
        return self._received

    @property
    def requests(self) -> list[Exchange]:
        """The recorded exchanges, in order."""
        return list(self._recorded)

    @property
    def refusals(self) -> list[ServerRefusal]:
        """The verdicts of the recorded exchanges that a rule refused."""
        return [exchange.verdict for exchange in self._recorded if exchange.verdict is not None]

    async def listen(self, port: int = 0, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Serve on a port, a free one by default, until cancelled. `serve` does this for several servers.

        Raises:
            OSError: The port is in use, or the address does not belong to this machine.
        """
        listener = await anyio.create_tcp_listener(local_host=self.address, local_port=port)
        self.port = listener.extra_attributes[anyio.abc.SocketAttribute.local_port]()
        slots = anyio.Semaphore(self._limits.connections)

        async def serve_stream(stream: anyio.abc.SocketStream) -> None:
            async with slots:
                await serve_connection(
                    stream, self.answer, max_body=self._limits.body, write_bytes=self._write_bytes
                )

        try:
            async with listener:
                task_status.started()
                await listener.serve(serve_stream)
        finally:
            self.port = None

    def answer(self, request: HttpRequest) -> LoopbackAnswer:
        """Check one request, record it and return the answer."""
        order, self._received = self._received, self._received + 1
        parsed = self._read(request)
        fault = fault_for(self.faults, order, parsed)
        verdict: ServerRefusal | None = None
        answer = self._access_refusal(request, order)
        found = self._stored(request) if answer is None else None
        if isinstance(found, ServerRefusal):
            verdict, answer = found, self._refusal(found, order)
        elif found is not None:
            answer = self._plain(found, order)
        answer = answer or self._route_refusal(request, fault, order)
        if answer is None:
            verdict = self.judge(request)
            answer = (
                self._refusal(verdict, order) if verdict else self._serve_turn(request, parsed, fault, order)
            )
        headers = tuple(item for item in request.headers.items() if item[0] not in _SECRET_HEADERS)
        status = answer.status if answer.is_sent else 0
        exchange = Exchange(
            order, request.method, request.path, headers, request.body, verdict, status, fault, request.query
        )
        self._recorded.append(exchange)
        return replace(answer, on_sent=partial(self._report_exchange, exchange))

    def _report_exchange(self, exchange: Exchange) -> None:
        if self.on_exchange is not None:
            self.on_exchange(exchange)

    def _routed(self, request: HttpRequest) -> bool:
        """Return True if the server serves the path."""
        return request.path in self._paths

    def _read(self, request: HttpRequest) -> Json:
        """Return the parsed body for scripts, faults and the wire; None if it is not JSON."""
        return _parse(request.body)

    def _streams(self, request: HttpRequest, parsed: Json) -> bool:
        """Return True if the request asks for a stream."""
        return bool(parsed.get("stream"))

    def _make_wire(self, host: str) -> Wire:
        """Create the wire encoder of this dialect. Called once, before the other options are set."""
        raise NotImplementedError

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        """Return the refusal of the dialect's rules, or None."""
        raise NotImplementedError

    def _denied(self, request: HttpRequest) -> ServerRefusal | None:
        """Return the refusal of credentials or version headers, or None. The base class checks a bearer token."""
        if self.api_key is None or same(bearer(request), self.api_key):
            return None
        return self._wire.failure(401)

    def _direct_answer(self, request: HttpRequest) -> bytes | None:
        """Return the answer to an accepted request that bypasses the model, such as a token count, or None."""
        return None

    def _prompt(self, request: HttpRequest, parsed: Json) -> Prompt | None:
        """Return the prompt of an accepted request for the cache, or None if the host has no cache."""
        return automatic_prompt(parsed, self.dialect) if self.dialect in AUTOMATIC else None

    def _stored(self, request: HttpRequest) -> bytes | ServerRefusal | None:
        """Return the answer to a request for a stored resource, such as the models, or None for other requests."""
        return None

    def _refusal_headers(self, refusal: ServerRefusal) -> tuple[tuple[str, str], ...]:
        """Return the headers that describe the kind of refusal."""
        return ()

    def _access_refusal(self, request: HttpRequest, order: int) -> LoopbackAnswer | None:
        if request.too_large:
            refusal = self._refusal(self._wire.failure(413), order)
            return replace(refusal, headers=(*refusal.headers, ("connection", "close")))
        denied = self._denied(request)
        return None if denied is None else self._refusal(denied, order)

    def _route_refusal(
        self, request: HttpRequest, fault: InjectedFault | None, order: int
    ) -> LoopbackAnswer | None:
        if not self._routed(request):
            return self._refusal(self._wire.failure(404), order)
        if "upgrade" in request.headers:  # to a websocket; a client that hears so at once goes on without
            return self._refusal(self._wire.failure(426), order)
        if request.method != "POST":
            return self._refusal(self._wire.failure(405), order)
        return self._status(fault, order) if isinstance(fault, Status) else None

    def _serve_turn(
        self, request: HttpRequest, parsed: Json, fault: InjectedFault | None, order: int
    ) -> LoopbackAnswer:
        streamed = self._streams(request, parsed)
        if isinstance(fault, ErrorInStream) and not streamed:
            return self._refusal(self._error_refusal(fault), order)
        if isinstance(fault, Garbage):
            return self._plain(fault.body, order)
        if (direct := self._direct_answer(request)) is not None:
            return _apply_fault(self._plain(direct, order), fault)
        turn = self.script.turn(parsed)
        if fault is None or isinstance(fault, Reframed):
            self.script.advance()
        turn = self._with_cache_usage(turn, self._prompt(request, parsed))
        parts = self._spoil_stream(self._parts(turn, parsed, order, streamed), fault, order)
        if isinstance(fault, Reframed) and streamed and self._stream_type.startswith("text/"):
            parts = fault.write(parts)
        headers = (("content-type", self._stream_type) if streamed else _JSON, self._mark(order))
        return _apply_fault(LoopbackAnswer(200, headers, tuple(parts), streamed), fault)

    def _plain(self, body: bytes, order: int) -> LoopbackAnswer:
        return LoopbackAnswer(200, (_JSON, self._mark(order)), (body,))

    def _with_cache_usage(self, turn: Turn, prompt: Prompt | None) -> Turn:
        """Return the turn with the tokens that the cache read and wrote; unchanged if there were none."""
        cached = self.cache._take(prompt) if prompt is not None else None
        if cached is None or not (cached.read or cached.written):
            return turn
        return turn.counted((cached.total, turn.usage[1]), (cached.read, cached.written))

    def _parts(self, turn: Turn, request: Json, order: int, streamed: bool) -> list[bytes]:
        if streamed:
            return self._wire.events(turn, request, order)
        return [self._wire.response(turn, request, order)]

    def _spoil_stream(self, parts: list[bytes], fault: InjectedFault | None, order: int) -> list[bytes]:
        match fault:
            case ErrorInStream(after_events=count):
                return [*parts[:count], self._wire.error_event(self._error_refusal(fault), order)]
            case MalformedEvent(after_events=count, data=data):
                return [*parts[:count], data, *parts[count:]]
            case Flood(after_events=count, data=data):
                return [*parts[:count], data]
            case _:
                return parts

    def _error_refusal(self, fault: ErrorInStream) -> ServerRefusal:
        failure = self._wire.failure(fault.status)
        return replace(failure, message=fault.message or failure.message)

    def _status(self, fault: Status, order: int) -> LoopbackAnswer:
        usual = self._wire.failure(fault.status)
        told = replace(
            usual,
            type=fault.type or usual.type,
            code=fault.code or (None if fault.type else usual.code),
            message=fault.message or usual.message,
            param=fault.param or usual.param,
        )
        body = self._wire.error(told, order) if fault.body is None else fault.body
        headers = (_JSON, self._mark(order), *self._refusal_headers(told), *fault.headers)
        return LoopbackAnswer(fault.status, headers, (body,))

    def _refusal(self, refusal: ServerRefusal, order: int) -> LoopbackAnswer:
        body = self._wire.error(refusal, order)
        headers = (_JSON, self._mark(order), *self._refusal_headers(refusal))
        return LoopbackAnswer(refusal.status, headers, (body,))

    def _mark(self, order: int) -> tuple[str, str]:
        return (self._request_id_header, f"req_{order}")


class OpenAIServer(LoopbackServer):
    """OpenAI Chat Completions at `base_url` + `/chat/completions`. `settings` names the models that exist."""

    dialect = "openai_chat"
    _base_path = "/v1"
    _paths = frozenset({"/v1/chat/completions"})
    _request_id_header = "x-request-id"

    def __init__(
        self,
        script: ScriptSource = None,
        *,
        settings: OpenAISettings | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        self._settings = settings or OpenAISettings()
        super().__init__(script, **options)

    def _make_wire(self, host: str) -> Wire:
        return OpenAIWire(host)

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        return validate(request.body, self.dialect, mode=self.mode, settings=self._settings)

    def _stored(self, request: HttpRequest) -> bytes | None:
        is_list = (request.method, request.path) == ("GET", "/v1/models")
        return dump(openai_models(self._settings.models)) if is_list else None


@asynccontextmanager
async def serve(*servers: LoopbackServer) -> AsyncGenerator[tuple[LoopbackServer, ...]]:
    """Run servers on free loopback ports during the block.

    At its end, all connections are closed, including stalled ones. An exception raised in the block propagates without
    an exception group.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        for server in servers:
            await tasks.start(server.listen)
        try:
            yield servers
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _url_host(address: str) -> str:
    """Return an address in URL form; a wildcard address becomes the loopback address."""
    own = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)  # noqa: S104  compared, not bound
    return f"[{own}]" if ":" in own else own


def _apply_fault(answer: LoopbackAnswer, fault: InjectedFault | None) -> LoopbackAnswer:
    match fault:
        case Disconnect(after_bytes=cut, reset=reset):
            return replace(answer, cut=cut, then="reset" if reset else "close")
        case Stall(after_bytes=cut):
            return replace(answer, cut=cut, then="stall")
        case Flood():
            return replace(answer, streamed=True, then="repeat")
        case _:
            return answer


def _parse(body: bytes) -> Json:
    try:
        return parse(body)
    except ValueError:
        return None


def bearer(request: HttpRequest) -> str:
    """Return the bearer token of a request, empty if it has none."""
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    return key if kind.lower() == "bearer" else ""


def same(given: str, wanted: str) -> bool:
    """Compare two keys in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode(), wanted.encode())
