"""Run strict loopback servers, which offer a provider's HTTP API, enforce its rules and answer from a script.

    async with serve(OpenAIServer(Script([...])), AnthropicServer()) as (openai, anthropic):
        ...  # send requests to openai.base_url
        assert openai.refusals == []

Each server listens on a free port of 127.0.0.1. It handles a request in the provider's order: check the credentials,
check the path, return an injected `Status`, check the rules, and answer with the script's turn, streamed if requested.
Every exchange is recorded with the verdict of the rules. The numbers of connections and recordings and the size of
bodies are limited.
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
from actors.strict.wires import OpenAIWire, Wire, openai_models

_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"})
_JSON = ("content-type", "application/json")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request to a strict server, and its answer.

    Args:
        order: Number of the request, counted by this server from 0.
        method: The HTTP method, such as `POST`.
        path: The path of the request's URL, without the query.
        headers: The request's headers with names in lower case, without credentials.
        body: The body of the request; empty if it was larger than the server's limit.
        verdict: The refusal if the request broke a rule; None if the rules accepted the request or were not applied.
        status: HTTP status of the answer; 0 if a fault prevented an answer.
        fault: The fault that was injected into the answer; None without a fault.
        query: The query of the request's URL, without the question mark.
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
    """Limits on the resources of one strict server.

    Args:
        connections: Maximum number of open connections. Further connections wait until another closes.
        body: Maximum size of a request body in bytes. For a larger body, the server answers with status 413.
        recordings: Maximum number of recorded exchanges. When it is exceeded, the oldest exchange is removed.
    """

    connections: int = 1024
    body: int = 32_000_000
    recordings: int = 10_000


class ServerOptions(TypedDict, total=False):
    """The options that the strict servers of all dialects accept.

    Args:
        mode: `strict`, the default, also enforces rules that the official host does not enforce today; `hosted` does
            not.
        faults: Faults by request number, or a function from the request number and the parsed body to a fault. None,
            the default, injects no faults.
        api_key: The only key that the server accepts. None, the default, accepts every request.
        write_bytes: The maximum number of bytes per TCP write. None, the default, writes each event at once.
        host: A name that generated ids include, so that the ids of several servers differ; empty by default.
        limits: Limits on connections, bodies and recordings.
        cache: The simulated prompt cache, for instance with another clock; by default, each server has its own cache.
    """

    mode: Mode
    faults: InjectedFaults | None
    api_key: str | None
    write_bytes: int | None
    host: str
    limits: ServerLimits | None
    cache: PromptCache | None


class LoopbackServer:
    """The base class of the strict servers. Each subclass adds the rules and the wire format of a dialect.

    Args:
        script: The model's turns, or a function from the request to a turn. By default, the model always answers `ok`.
        mode: `strict` also enforces rules that the official host does not enforce today; `hosted` does not.
        faults: Faults by request number, or a function from the request number and the parsed body to a fault.
        api_key: The only key that the server accepts; None accepts every request.
        write_bytes: Maximum number of bytes per TCP write; None writes each event at once.
        host: A name that generated ids include, so that the ids of several servers differ.
        limits: Limits on connections, bodies and recordings.
        cache: The simulated prompt cache, for instance with another clock; None creates a new cache.

    Attributes:
        dialect: The dialect whose rules the server enforces.
        address: The address to listen on; it may be set before the server starts.
        on_exchange: Called with each exchange after its answer was sent; it may be set at any time.
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
        self._wire = self._make_encoder(host)
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
        """The base URL to pass to the vendor's client.

        Raises:
            RuntimeError: The server is not running.
        """
        if self.port is None:
            raise RuntimeError(
                f"{type(self).__name__} is not running; use its URLs inside `async with serve(...)`"
            )
        return f"http://{_url_host(self.address)}:{self.port}{self._base_path}"

    @property
    def endpoint(self) -> str:
        """The base URL for a backend of this package: `base_url`, followed by the project's path if the server imitates
        Vertex AI.

        Raises:
            RuntimeError: The server is not running.
        """
        return self.base_url

    @property
    def received(self) -> int:
        """The number of received requests, including requests that are no longer recorded."""
        return self._received

    @property
    def requests(self) -> list[Exchange]:
        """The recorded exchanges, in order."""
        return list(self._recorded)

    @property
    def refusals(self) -> list[ServerRefusal]:
        """The refusals of recorded requests that broke a rule, in order."""
        return [exchange.verdict for exchange in self._recorded if exchange.verdict is not None]

    async def listen(self, port: int = 0, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Serve on a port until cancelled; 0 selects a free port. `serve` calls this method for each server.

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
        """Return the answer to a request, and record the exchange."""
        order, self._received = self._received, self._received + 1
        parsed = self._parse_request(request)
        fault = fault_for(self.faults, order, parsed)
        verdict: ServerRefusal | None = None
        answer = self._access_refusal(request, order)
        # Stored resources have their own paths and methods, so look for them before the route is checked.
        found = self._stored_resource(request) if answer is None else None
        if isinstance(found, ServerRefusal):
            verdict, answer = found, self._refusal_answer(found, order)
        elif found is not None:
            answer = self._json_answer(found, order)
        answer = answer or self._route_refusal(request, fault, order)
        if answer is None:
            verdict = self.judge(request)
            answer = (
                self._refusal_answer(verdict, order)
                if verdict
                else self._serve_turn(request, parsed, fault, order)
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

    def _is_routed(self, request: HttpRequest) -> bool:
        """Return True if the server serves the request's path."""
        return request.path in self._paths

    def _parse_request(self, request: HttpRequest) -> Json:
        """Return the parsed body for scripts, faults and the response encoder; None if the body is not JSON."""
        return _parse_json(request.body)

    def _is_streamed(self, request: HttpRequest, parsed: Json) -> bool:
        """Return True if the request asks for a streamed answer."""
        return bool(parsed.get("stream"))

    def _make_encoder(self, host: str) -> Wire:
        """Create the response encoder of this dialect. The constructor calls this before it sets other options."""
        raise NotImplementedError

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        """Return a refusal if the request breaks a rule of the dialect; otherwise return None."""
        raise NotImplementedError

    def _credential_refusal(self, request: HttpRequest) -> ServerRefusal | None:
        """Return a refusal if the credentials or headers are wrong; otherwise return None. By default, check a bearer
        token.
        """
        if self.api_key is None or is_same_key(bearer_token(request), self.api_key):
            return None
        return self._wire.status_error(401)

    def _direct_answer(self, request: HttpRequest) -> bytes | None:
        """Return the answer to an accepted request that needs no model, such as a token count; otherwise None."""
        return None

    def _cache_prompt(self, request: HttpRequest, parsed: Json) -> Prompt | None:
        """Return the prompt of an accepted request for the simulated cache; None if the host has no cache."""
        return automatic_prompt(parsed, self.dialect) if self.dialect in AUTOMATIC else None

    def _stored_resource(self, request: HttpRequest) -> bytes | ServerRefusal | None:
        """Return the answer to a request for a stored resource, such as the list of models; None for other requests."""
        return None

    def _refusal_headers(self, refusal: ServerRefusal) -> tuple[tuple[str, str], ...]:
        """Return additional headers for a refusal, such as AWS's error type."""
        return ()

    def _access_refusal(self, request: HttpRequest, request_number: int) -> LoopbackAnswer | None:
        """Return an error answer if the request is too large or has wrong credentials; otherwise None."""
        if request.too_large:
            refusal = self._refusal_answer(self._wire.status_error(413), request_number)
            return replace(refusal, headers=(*refusal.headers, ("connection", "close")))
        denied = self._credential_refusal(request)
        return None if denied is None else self._refusal_answer(denied, request_number)

    def _route_refusal(
        self, request: HttpRequest, fault: InjectedFault | None, request_number: int
    ) -> LoopbackAnswer | None:
        """Return an error answer if the path or the method is wrong, or if the fault is a `Status`; otherwise None."""
        if not self._is_routed(request):
            return self._refusal_answer(self._wire.status_error(404), request_number)
        if "upgrade" in request.headers:  # after a refusal, clients fall back from websockets to HTTP
            return self._refusal_answer(self._wire.status_error(426), request_number)
        if request.method != "POST":
            return self._refusal_answer(self._wire.status_error(405), request_number)
        return self._status_answer(fault, request_number) if isinstance(fault, Status) else None

    def _serve_turn(
        self, request: HttpRequest, parsed: Json, fault: InjectedFault | None, request_number: int
    ) -> LoopbackAnswer:
        streamed = self._is_streamed(request, parsed)
        if isinstance(fault, ErrorInStream) and not streamed:
            return self._refusal_answer(self._error_refusal(fault), request_number)
        if isinstance(fault, Garbage):
            return self._json_answer(fault.body, request_number)
        if (direct := self._direct_answer(request)) is not None:
            return _apply_fault(self._json_answer(direct, request_number), fault)
        turn = self.script.turn(parsed)
        if fault is None or isinstance(fault, Reframed):
            self.script.advance()
        turn = self._with_cache_usage(turn, self._cache_prompt(request, parsed))
        parts = self._inject_stream_fault(
            self._encode_turn(turn, parsed, request_number, streamed), fault, request_number
        )
        if isinstance(fault, Reframed) and streamed and self._stream_type.startswith("text/"):
            parts = fault.write(parts)
        headers = (
            ("content-type", self._stream_type) if streamed else _JSON,
            self._request_id(request_number),
        )
        return _apply_fault(LoopbackAnswer(200, headers, tuple(parts), streamed), fault)

    def _json_answer(self, body: bytes, request_number: int) -> LoopbackAnswer:
        return LoopbackAnswer(200, (_JSON, self._request_id(request_number)), (body,))

    def _with_cache_usage(self, turn: Turn, prompt: Prompt | None) -> Turn:
        """Send a prompt through the simulated cache, and return the turn with the numbers of tokens that were read and
        written. If both are 0, or `prompt` is None, return the turn unchanged.
        """
        cached = self.cache._serve_prompt(prompt) if prompt is not None else None
        if cached is None or not (cached.read or cached.written):
            return turn
        return turn.with_usage((cached.total, turn.usage[1]), (cached.read, cached.written))

    def _encode_turn(self, turn: Turn, request: Json, request_number: int, is_streamed: bool) -> list[bytes]:
        if is_streamed:
            return self._wire.encode_events(turn, request, request_number)
        return [self._wire.encode_response(turn, request, request_number)]

    def _inject_stream_fault(
        self, parts: list[bytes], fault: InjectedFault | None, request_number: int
    ) -> list[bytes]:
        match fault:
            case ErrorInStream(after_events=count):
                return [
                    *parts[:count],
                    self._wire.encode_error_event(self._error_refusal(fault), request_number),
                ]
            case MalformedEvent(after_events=count, data=data):
                return [*parts[:count], data, *parts[count:]]
            case Flood(after_events=count, data=data):
                return [*parts[:count], data]
            case _:
                return parts

    def _error_refusal(self, fault: ErrorInStream) -> ServerRefusal:
        failure = self._wire.status_error(fault.status)
        return replace(failure, message=fault.message or failure.message)

    def _status_answer(self, fault: Status, request_number: int) -> LoopbackAnswer:
        usual = self._wire.status_error(fault.status)
        told = replace(
            usual,
            type=fault.type or usual.type,
            code=fault.code or (None if fault.type else usual.code),
            message=fault.message or usual.message,
            param=fault.param or usual.param,
        )
        body = self._wire.encode_error(told, request_number) if fault.body is None else fault.body
        headers = (_JSON, self._request_id(request_number), *self._refusal_headers(told), *fault.headers)
        return LoopbackAnswer(fault.status, headers, (body,))

    def _refusal_answer(self, refusal: ServerRefusal, request_number: int) -> LoopbackAnswer:
        body = self._wire.encode_error(refusal, request_number)
        headers = (_JSON, self._request_id(request_number), *self._refusal_headers(refusal))
        return LoopbackAnswer(refusal.status, headers, (body,))

    def _request_id(self, request_number: int) -> tuple[str, str]:
        return (self._request_id_header, f"req_{request_number}")


class OpenAIServer(LoopbackServer):
    """A strict server for OpenAI Chat Completions at `base_url` + `/chat/completions`.

    `settings` lists the models that exist.
    """

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

    def _make_encoder(self, host: str) -> Wire:
        return OpenAIWire(host)

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        return validate(request.body, self.dialect, mode=self.mode, settings=self._settings)

    def _stored_resource(self, request: HttpRequest) -> bytes | None:
        is_list = (request.method, request.path) == ("GET", "/v1/models")
        return dump(openai_models(self._settings.models)) if is_list else None


@asynccontextmanager
async def serve(*servers: LoopbackServer) -> AsyncGenerator[tuple[LoopbackServer, ...]]:
    """Run strict servers on free loopback ports during the `async with` block.

    At the end of the block, all connections are closed, including stalled ones. An exception that is raised in the
    block propagates without an exception group.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        for server in servers:
            await tasks.start(server.listen)
        try:
            yield servers
        except Exception as error:
            failure = error  # raised below, because the task group would wrap it in an exception group
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _url_host(address: str) -> str:
    """Return an address in the form that URLs use. A wildcard address becomes the loopback address."""
    own = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)  # noqa: S104  compared, not bound
    return f"[{own}]" if ":" in own else own


def _apply_fault(answer: LoopbackAnswer, fault: InjectedFault | None) -> LoopbackAnswer:
    match fault:
        case Disconnect(after_bytes=cut, reset=reset):
            return replace(answer, cut=cut, ending="reset" if reset else "close")
        case Stall(after_bytes=cut):
            return replace(answer, cut=cut, ending="stall")
        case Flood():
            return replace(answer, streamed=True, ending="repeat")
        case _:
            return answer


def _parse_json(body: bytes) -> Json:
    try:
        return parse(body)
    except ValueError:
        return None


def bearer_token(request: HttpRequest) -> str:
    """Return the bearer token of a request; "" if the request has none."""
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    return key if kind.lower() == "bearer" else ""


def is_same_key(first: str, second: str) -> bool:
    """Return True if two keys are equal. The time that the comparison takes does not reveal where they differ."""
    return hmac.compare_digest(first.encode(), second.encode())
