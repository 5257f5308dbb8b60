"""OpenTelemetry: spans and metrics of asks with the GenAI names, by `opentelemetry-api` (extra `otel`).

    Runtime(tracing=Tracing())

An ask is a span `invoke_agent` under the caller's own; in it each request is a `chat` and each tool call an
`execute_tool`. What a tool traces itself stands under `invoke_agent` too. Spans carry names, ids and counts: tokens are
those of each request, with the backend that served it. What was said and what tools were given is in them only with
`content=True`.

The spans follow the events of the ask's stream, so they cost nothing where they are not switched on.
"""

from contextvars import Context as Variables
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec import Struct

from actors.core.content import Message
from actors.core.feed import (
    CompleteEvent,
    ErrorEvent,
    SessionEvent,
    Sink,
    StatusEvent,
    SubagentEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    TurnResult,
)
from actors.core.identity import Binding
from actors.core.jsonio import dump
from actors.core.state import WHY
from actors.core.stream import Usage
from actors.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

NAME = "actors"
_PROVIDERS = {
    "openai_chat": "openai",
    "openai_responses": "openai",
    "gemini": "gcp.gemini",
    "gemini_2": "gcp.gemini",
    "vertex_gemini": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""What the conventions call the provider of a dialect; others have the dialect's own name."""


class Tracing:
    """Traces the asks of a runtime.

    Args:
        tracer_provider, meter_provider: Where spans and metrics go; the program's global ones by default.
        content: Whether spans carry what was said, and the arguments of tool calls.

    Raises:
        ConfigError: `opentelemetry-api` is not installed.
    """

    def __init__(
        self,
        *,
        tracer_provider: "TracerProvider | None" = None,
        meter_provider: "MeterProvider | None" = None,
        content: bool = False,
    ) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError:
            raise ConfigError('Tracing needs opentelemetry-api: pip install "llm-actors[otel]"') from None
        self.content = content
        self.tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(NAME, meter_provider=meter_provider)
        self.duration = meter.create_histogram("gen_ai.client.operation.duration", unit="s")
        self.tokens = meter.create_histogram("gen_ai.client.token.usage", unit="{token}")
        self.first = meter.create_histogram("gen_ai.client.operation.time_to_first_chunk", unit="s")

    def traced(self, session: str, sink: Sink, variables: Variables) -> Sink:
        """Return where the events of an ask go, whose span begins now. Tools run in `variables`, within that span."""
        from opentelemetry import context, trace

        span = self.tracer.start_span(
            "invoke_agent",
            attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": session},
        )
        variables.run(context.attach, trace.set_span_in_context(span))
        return TracedSink(self, span, sink)


class _Request(Struct):
    """A request whose answer has not ended: its span, when that began, whose it is, and whether a piece has come."""

    span: "Span"
    began: float
    about: dict[str, str]
    is_answered: bool = False


class TracedSink:
    """An ask's sink, with the spans of what it is shown."""

    def __init__(self, tracing: Tracing, ask: "Span", own: Sink) -> None:
        self._tracing, self._ask, self._own = tracing, ask, own
        self._chat: _Request | None = None
        self._calls: dict[str, Span] = {}

    @property
    def is_watched(self) -> bool:
        return True

    def put(self, event: SessionEvent) -> None:
        match event:
            case TextEvent() | ThinkingEvent():
                self._begun()
            case SubagentEvent():
                pass  # it has spans of its own
            case ToolCallEvent():
                self._called(event)
            case StatusEvent():
                self._happened(event)
            case CompleteEvent(result=result) | ErrorEvent(result=result):
                self._ended(result)
        self._own.put(event)

    def close(self, error: Exception | None = None) -> None:
        """End the spans: the ask was refused, or the session ended before it."""
        if self._ask.is_recording():  # else they have ended: what refused the ask may be told of that twice
            why = "session_closed" if error is None else type(error).__name__
            self._close(why)
            _fail(self._ask, why)
            self._ask.end()
        self._own.close(error)

    def _begin(self, name: str, attributes: dict[str, str], *, is_remote: bool) -> "Span":
        from opentelemetry import trace

        kind = trace.SpanKind.CLIENT if is_remote else trace.SpanKind.INTERNAL
        above = trace.set_span_in_context(self._ask)
        return self._tracing.tracer.start_span(name, above, kind=kind, attributes=attributes)

    def _called(self, event: ToolCallEvent) -> None:
        about = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.call_id,
        }
        span = self._begin(f"execute_tool {event.name}", about, is_remote=False)
        if self._tracing.content:
            span.set_attribute("gen_ai.tool.call.arguments", dump(event.arguments).decode())
        self._calls[event.call_id] = span

    def _happened(self, event: StatusEvent) -> None:
        if event.status == "rendered" and event.sent is not None:
            self._asked(event.sent.binding)
        elif event.status == "message" and event.message is not None:
            self._said(event, event.message)
        elif event.status == "tool_results":
            for call_id, how in event.results:
                self._returned(call_id, "" if how == "returned" else how)
        elif event.status == "rewritten":  # with a request open, why that got no answer
            self._answered("too_long" if event.detail == WHY["compaction"] else "refused")
        elif event.status == "turn_ended":
            self._close(event.detail)

    def _said(self, event: StatusEvent, message: Message) -> None:
        if not event.round:  # a summary, asked for aside
            if message.origin is not None:
                self._count(_about(message.origin), event.usage)
            return
        if self._tracing.content and self._chat is not None:
            self._chat.span.set_attribute("gen_ai.output.messages", message.text)
        self._answered("interrupted" if event.detail else "", event.usage)

    def _asked(self, binding: Binding) -> None:
        about = _about(binding)
        span = self._begin(f"chat {binding.model}", about, is_remote=True)
        span.set_attribute("actors.backend", binding.backend)
        self._chat = _Request(span, perf_counter(), about)

    def _begun(self) -> None:
        """Note that a piece of the answer has come."""
        if self._chat is not None and not self._chat.is_answered:
            self._chat.is_answered = True
            self._tracing.first.record(perf_counter() - self._chat.began, self._chat.about)

    def _answered(self, error: str, usage: Usage | None = None) -> None:
        """End the request's span, if one is open."""
        if self._chat is None:
            return
        request, self._chat = self._chat, None
        self._count(request.about, usage)
        _spend(request.span, usage or Usage())
        _fail(request.span, error)
        request.span.end()
        told = {"error.type": error} if error else {}
        self._tracing.duration.record(perf_counter() - request.began, request.about | told)

    def _count(self, about: dict[str, str], usage: Usage | None) -> None:
        for kind, count in () if usage is None else _counts(usage):
            self._tracing.tokens.record(count, {**about, "gen_ai.token.type": kind})

    def _returned(self, call_id: str, error: str) -> None:
        if (span := self._calls.pop(call_id, None)) is not None:
            _fail(span, error)
            span.end()

    def _close(self, why: str) -> None:
        """End what is open in the turn."""
        self._answered(why)
        for call_id in tuple(self._calls):
            self._returned(call_id, "never_started")

    def _ended(self, result: TurnResult) -> None:
        self._close(result.status)
        span, binding = self._ask, result.served_by
        span.set_attributes({**_whom(binding), "gen_ai.response.model": binding.model})
        _spend(span, result.usage)
        if self._tracing.content:
            span.set_attribute("gen_ai.output.messages", result.text)
        _fail(span, "" if result.status == "complete" else result.status)
        span.end()


def _about(binding: Binding) -> dict[str, str]:
    return {"gen_ai.operation.name": "chat", **_whom(binding), "gen_ai.request.model": binding.model}


def _whom(binding: Binding) -> dict[str, str]:
    return {"gen_ai.provider.name": _PROVIDERS.get(binding.dialect, binding.dialect)}


def _counts(usage: Usage) -> tuple[tuple[str, int], ...]:
    return ("input", usage.input_tokens), ("output", usage.output_tokens)


def _spend(span: "Span", usage: Usage) -> None:
    for kind, count in _counts(usage):
        span.set_attribute(f"gen_ai.usage.{kind}_tokens", count)
    for kind, count in (("read", usage.cache_read_tokens), ("creation", usage.cache_write_tokens)):
        if count:
            span.set_attribute(f"gen_ai.usage.cache_{kind}.input_tokens", count)


def _fail(span: "Span", error: str) -> None:
    if error:
        from opentelemetry.trace import StatusCode

        span.set_attribute("error.type", error)
        span.set_status(StatusCode.ERROR)
