"""Trace asks with OpenTelemetry, as spans and metrics with the names of the GenAI conventions.

    Runtime(tracing=Tracing())

Tracing needs `opentelemetry-api` (extra `otel`). There are three kinds of spans:

- `invoke_agent`: an ask, as a child of the caller's span
- `chat`: a request, as a child of `invoke_agent`
- `execute_tool`: a tool call, as a child of `invoke_agent`

Spans that a tool creates are children of `invoke_agent`. Spans contain names, ids and token counts, and the backend
that answered each request. They contain messages and tool arguments only with `content=True`.

The names are those of github.com/open-telemetry/semantic-conventions-genai as of November 2026, which has `cache_write`
and one counter for each kind of token. A `chat` span covers all attempts of its request. Each failed attempt that is
retried is an event `retry`, and `http.request.resend_count` is the number of retries. `error.type` is the HTTP status
or the class of the exception. If a call or an ask failed without an exception, `error.type` is its status, such as
`refused` or `cancelled`.

The spans are derived from the events of the ask's stream, so a runtime without tracing has no extra cost.
"""

from collections.abc import Iterable
from contextvars import Context as Variables
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec import Struct

from actors.core.data.jsonio import JsonValue, dump
from actors.core.stream_events.ask_events import (
    AskResult,
    AskStartedEvent,
    CompleteEvent,
    ErrorEvent,
    TurnEndedEvent,
)
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.round_events import (
    LaneRewrittenEvent,
    MessageEvent,
    RequestFailedEvent,
    RequestRenderedEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolFailedEvent,
    ToolResultsEvent,
)
from actors.core.values.content import Block, Text, Thinking, ToolCall
from actors.core.values.identity import Binding
from actors.core.values.progress import Cause
from actors.core.values.stream import Usage
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
    "vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "bedrock_anthropic": "aws.bedrock",
    "vertex_anthropic": "gcp.vertex_ai",
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
    "kimi": "moonshot_ai",
    "xai": "x_ai",
}
"""The provider name of each dialect in the GenAI conventions. For other dialects, it is the dialect's name."""
_FINISH = {"length": "length", "filter": "content_filter", "fault": "error"}
"""The finish reason in the GenAI conventions for each reason of an incomplete answer."""


class Tracing:
    """OpenTelemetry tracing for the asks of a runtime.

    Args:
        tracer_provider, meter_provider: Receive the spans and metrics; by default, the program's global providers.
        content: Whether spans contain the arguments of tool calls, and messages in the JSON format of the conventions.

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
        self._content = content
        self._tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(NAME, meter_provider=meter_provider)
        self._duration = meter.create_histogram("gen_ai.client.inference.duration", unit="s")
        self._first = meter.create_histogram("gen_ai.client.inference.time_to_first_chunk", unit="s")
        self._counters = {
            kind: meter.create_counter(f"gen_ai.client.inference.usage.{kind}", unit="{token}")
            for kind in _token_counts(Usage())
        }
        self._histograms = {
            kind: meter.create_histogram(f"gen_ai.client.inference.operation.{kind}", unit="{token}")
            for kind in ("input_tokens", "output_tokens")
        }

    def _start_ask_spans(self, session: str, variables: Variables) -> "AskSpans":
        """Start the span of an ask.

        The ask's tools run with the context variables `variables`, so spans of the tools become children of the ask's
        span.
        """
        from opentelemetry import context, trace

        span = self._tracer.start_span(
            "invoke_agent",
            attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": session},
        )
        variables.run(context.attach, trace.set_span_in_context(span))
        return AskSpans(self, span, session)


class _Request(Struct):
    """A request whose answer is not complete yet.

    Args:
        span: The request's `chat` span.
        began: Time of sending, in seconds of `perf_counter`.
        attributes: The attributes of the request's metrics.
        is_answered: Whether the first token of the answer has arrived.
        resends: Number of retries.
        error: The `error.type` of the last failed attempt; empty if no attempt failed.
    """

    span: "Span"
    began: float
    attributes: dict[str, str]
    is_answered: bool = False
    resends: int = 0
    error: str = ""


class AskSpans:
    """The spans of one ask. Events of the ask's stream start and end the spans."""

    def __init__(self, tracing: Tracing, ask: "Span", session: str) -> None:
        self._tracing, self._ask, self._session = tracing, ask, session
        self._chat: _Request | None = None
        self._calls: dict[str, Span] = {}
        self._raised: dict[str, str] = {}  # names of the exceptions that calls raised, by call id
        self._cause = ""  # the `error.type` of the last turn

    def put(self, event: SessionEvent) -> None:
        """Start, end or annotate spans according to an event of the ask's stream."""
        match event:
            case TextEvent() | ThinkingEvent():
                self._record_first_token()
            case ToolCallEvent():
                self._start_call(event)
            case ToolFailedEvent():
                self._raised[event.call_id] = event.error
            case ToolResultsEvent():
                for end in event.results:
                    self._end_call(end.call_id, "" if end.outcome == "returned" else end.outcome)
            case CompleteEvent(result=result) | ErrorEvent(result=result):
                self._end_ask(result)
            case _:  # events of requests; other events, such as those of subagents, are ignored
                self._apply_request_event(event)

    def close(self, error: Exception | None = None) -> None:
        """End all open spans. This is called if the ask was rejected, or if the session ended before the ask."""
        if self._ask.is_recording():  # the sink of a rejected ask may be closed twice
            why = "session_closed" if error is None else type(error).__name__
            self._end_open_spans(why)
            _set_error(self._ask, why)
            self._ask.end()

    def _start_span(self, name: str, attributes: dict[str, str], *, is_remote: bool) -> "Span":
        from opentelemetry import trace

        kind = trace.SpanKind.CLIENT if is_remote else trace.SpanKind.INTERNAL
        above = trace.set_span_in_context(self._ask)
        return self._tracing._tracer.start_span(name, above, kind=kind, attributes=attributes)

    def _start_call(self, event: ToolCallEvent) -> None:
        about = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.call_id,
        }
        span = self._start_span(f"execute_tool {event.name}", about, is_remote=False)
        if self._tracing._content:
            span.set_attribute("gen_ai.tool.call.arguments", dump(event.arguments).decode())
        self._calls[event.call_id] = span

    def _apply_request_event(self, event: SessionEvent) -> None:
        """Start and end the spans of the turn's requests according to an event."""
        match event:
            case AskStartedEvent(message=message) if self._tracing._content:
                self._ask.set_attribute("gen_ai.input.messages", _encode_message("user", message.blocks))
            case RequestRenderedEvent(binding=binding):
                self._start_request(binding)
            case RequestFailedEvent(error=error, retry_after=seconds):
                self._record_attempt(error, seconds)
            case MessageEvent():
                self._record_message(event)
            case LaneRewrittenEvent(reason=reason) if reason != "media":
                self._end_request("refused")
            case TurnEndedEvent(status=status, cause=cause):
                self._note_cause(cause)
                self._end_open_spans(status)
            case _:
                pass

    def _note_cause(self, cause: Cause | None) -> None:
        """Store the `error.type` of a turn: the error of the turn's last request, or the limit that ended the turn."""
        last = "" if self._chat is None else self._chat.error
        if cause is None:
            self._cause = last
        else:
            self._cause = last or (cause.kind if cause.status is None else str(cause.status))

    def _record_attempt(self, error: str, wait: float | None) -> None:
        """Record a failed attempt of the current request.

        `wait` is the number of seconds until the retry. None means that there is no retry.
        """
        if self._chat is None:
            return
        self._chat.error = error
        if wait is not None:
            self._chat.resends += 1
            self._chat.span.add_event("retry", {"error.type": error, "actors.retry.wait": wait})

    def _record_message(self, event: MessageEvent) -> None:
        message = event.message
        if not event.round:  # this message is a summary, which is requested outside of rounds
            if message.origin is not None:
                self._record_usage(_request_attributes(message.origin), event.usage)
            return
        if self._chat is not None:
            reason = _finish_reason(event)
            self._chat.span.set_attribute("gen_ai.response.finish_reasons", [reason])
            if self._tracing._content:
                said = _encode_message("assistant", message.blocks, reason)
                self._chat.span.set_attribute("gen_ai.output.messages", said)
        self._end_request("interrupted" if event.error else "", event.usage)

    def _start_request(self, binding: Binding) -> None:
        # An open span means that the previous request was rejected and rewritten.
        self._end_request("refused")
        about = _request_attributes(binding)
        span = self._start_span(f"chat {binding.model}", about, is_remote=True)
        span.set_attributes({"actors.backend": binding.backend, "gen_ai.conversation.id": self._session})
        self._chat = _Request(span, perf_counter(), about)

    def _record_first_token(self) -> None:
        """Record the time to the first token, once per request."""
        if self._chat is not None and not self._chat.is_answered:
            self._chat.is_answered = True
            self._tracing._first.record(perf_counter() - self._chat.began, self._chat.attributes)

    def _end_request(self, error: str, usage: Usage | None = None) -> None:
        """End the span of the current request and record its metrics. Do nothing if no request is open."""
        if self._chat is None:
            return
        request, self._chat = self._chat, None
        self._record_usage(request.attributes, usage)
        _set_usage(request.span, usage or Usage())
        if request.resends:
            request.span.set_attribute("http.request.resend_count", request.resends)
        error = error and (request.error or error)
        _set_error(request.span, error)
        request.span.end()
        error_attributes = {"error.type": error} if error else {}
        self._tracing._duration.record(perf_counter() - request.began, request.attributes | error_attributes)

    def _record_usage(self, attributes: dict[str, str], usage: Usage | None) -> None:
        counts = _token_counts(usage or Usage())
        for kind, counter in self._tracing._counters.items():
            if counts[kind] or kind in self._tracing._histograms:
                counter.add(counts[kind], {**attributes, "gen_ai.token.modality": "unknown"})
        for kind, histogram in self._tracing._histograms.items():
            histogram.record(counts[kind], attributes)

    def _end_call(self, call_id: str, error: str) -> None:
        """End the span of a tool call. `error` is its `error.type`, which is empty if the tool returned."""
        raised = self._raised.pop(call_id, "")
        if (span := self._calls.pop(call_id, None)) is not None:
            _set_error(span, raised if error == "failed" and raised else error)
            span.end()

    def _end_open_spans(self, error: str) -> None:
        """End the open spans of the turn's request and tool calls."""
        self._end_request(error)
        for call_id in tuple(self._calls):
            self._end_call(call_id, "never_started")

    def _end_ask(self, result: AskResult) -> None:
        self._end_open_spans(result.status)
        span, binding = self._ask, result.binding
        span.set_attributes({**_provider_attributes(binding), "gen_ai.response.model": binding.model})
        _set_usage(span, result.usage)
        if self._tracing._content:
            reason = "stop" if result.status == "complete" else "error"
            span.set_attribute(
                "gen_ai.output.messages", _encode_message("assistant", (Text(result.text),), reason)
            )
        if result.status in ("failed", "interrupted", "cancelled"):
            _set_error(span, self._cause if result.status == "failed" and self._cause else result.status)
        span.end()


def _request_attributes(binding: Binding) -> dict[str, str]:
    return {
        "gen_ai.operation.name": "chat",
        **_provider_attributes(binding),
        "gen_ai.request.model": binding.model,
    }


def _provider_attributes(binding: Binding) -> dict[str, str]:
    return {"gen_ai.provider.name": _PROVIDERS.get(binding.dialect, binding.dialect)}


def _token_counts(usage: Usage) -> dict[str, int]:
    """Return the token counts of a request. The keys are the names in the GenAI conventions."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read.input_tokens": usage.cache_read_tokens,
        "cache_write.input_tokens": usage.cache_write_tokens,
    }


def _set_usage(span: "Span", usage: Usage) -> None:
    for kind, count in _token_counts(usage).items():
        if count or not kind.startswith("cache"):
            span.set_attribute(f"gen_ai.usage.{kind}", count)


def _finish_reason(event: MessageEvent) -> str:
    """Return the finish reason of a model's message, as the GenAI conventions name it."""
    if event.error:
        return "error"
    return "tool_call" if event.message.calls else _FINISH.get(event.incomplete or "", "stop")


def _encode_message(role: str, blocks: Iterable[Block], reason: str = "") -> str:
    """Encode one message in the JSON format of the GenAI conventions. `reason` is the finish reason of an answer."""
    message: dict[str, JsonValue] = {"role": role, "parts": [_encode_part(block) for block in blocks]}
    return dump([message | ({"finish_reason": reason} if reason else {})]).decode()


def _encode_part(block: Block) -> JsonValue:
    """Encode one block of a message in the JSON format of the GenAI conventions."""
    match block:
        case Text(text=text):
            return {"type": "text", "content": text}
        case Thinking(text=text):
            return {"type": "reasoning", "content": text}
        case ToolCall():
            call: dict[str, JsonValue] = {"type": "tool_call", "id": block.id, "name": block.name}
            call["arguments"] = block.arguments
            return call
        case _:  # encode only the type, because attachments are large and provider state is opaque
            return {"type": type(block).__name__.lower()}


def _set_error(span: "Span", error: str) -> None:
    """Mark a span as failed, with `error` as its `error.type`. Do nothing if `error` is empty."""
    if error:
        from opentelemetry.trace import StatusCode

        span.set_attribute("error.type", error)
        span.set_status(StatusCode.ERROR)
