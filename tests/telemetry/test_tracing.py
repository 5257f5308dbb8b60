"""OpenTelemetry spans of asks: their names and parents, and no message content unless it is enabled."""

import sys
from typing import Any

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from actors import Budget, Session, tool
from actors.config import Config, FileSettings, PoolSettings, RuntimeLimits
from actors.errors import ActorsError, ConfigError, NotAwaited, OverBudget, QueueFull, SessionClosed
from actors.runtime.runtime import Runtime
from actors.strict.faults import window_faults
from actors.telemetry import Tracing
from actors.testing import SERVER_ERROR, AnthropicServer, Call, Disconnect, OpenAIServer, Say, Turn, serve
from tests.runtime_support import Gate, backend_at

pytestmark = pytest.mark.anyio

CANARY = "canary-4711"
IN, OUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
TURNS = (Turn(Say(CANARY), Call("look", {"name": CANARY}), Call("look", {"nam": "b"})), Turn(Say(CANARY)))


class RecordedTelemetry:
    """A tracer that stores its spans and metrics."""

    def __init__(self, *, content: bool = False) -> None:
        self._exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        meters = MeterProvider([self.reader])
        self.tracing = Tracing(tracer_provider=self.provider, meter_provider=meters, content=content)

    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def tree(self) -> dict[str, str]:
        """Return the name of each span with the name of its parent."""
        names = {span.context.span_id: span.name for span in self.spans() if span.context is not None}
        return {span.name: names.get(span.parent.span_id, "") if span.parent else "" for span in self.spans()}


async def ask_once(seen: RecordedTelemetry, server: OpenAIServer, words: str = CANARY) -> str:
    inner = seen.provider.get_tracer("a tool's own")

    @tool
    def look(name: str) -> str:
        """Look something up."""
        with inner.start_as_current_span("inner"):
            return f"{name} is there"

    async with serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        async with Runtime(environ=environ, tracing=seen.tracing, seed=1) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[look])
            with seen.provider.get_tracer("the caller").start_as_current_span("caller"):
                return (await session.ask(words, check=False)).status


async def test_an_ask_is_traced_as_a_span_that_contains_its_requests_and_tool_calls() -> None:
    seen = RecordedTelemetry()
    assert await ask_once(seen, OpenAIServer(TURNS)) == "complete"
    assert seen.tree() == {
        "caller": "",
        "invoke_agent": "caller",
        "chat gpt-5.2": "invoke_agent",
        "execute_tool look": "invoke_agent",
        "inner": "invoke_agent",
    }
    names = [span.name for span in seen.spans()]
    assert (names.count("chat gpt-5.2"), names.count("execute_tool look")) == (2, 2)
    (agent,) = [span for span in seen.spans() if span.name == "invoke_agent"]
    about = dict(agent.attributes or {})
    assert about["gen_ai.operation.name"] == "invoke_agent"
    assert about["gen_ai.provider.name"] == "openai"
    tools = [dict(span.attributes or {}) for span in seen.spans() if span.name == "execute_tool look"]
    assert [each.get("error.type") for each in tools] == [None, "refused"]
    assert [each["gen_ai.tool.call.id"] for each in tools] == ["hist_tool_1", "hist_tool_2"]


def points(seen: RecordedTelemetry, name: str) -> list[tuple[dict[str, object], float, int]]:
    """Return the attributes, the sum and the count of each series of a histogram."""
    told = seen.reader.get_metrics_data()
    assert told is not None
    metrics = [
        metric for each in told.resource_metrics for scope in each.scope_metrics for metric in scope.metrics
    ]
    (found,) = [metric for metric in metrics if metric.name == name]
    data: Any = found.data.data_points  # Any: depends on the kind of metric
    return [(dict(point.attributes), point.sum, point.count) for point in data]


async def test_tokens_are_recorded_per_request_and_backend() -> None:
    seen = RecordedTelemetry()
    gpt = OpenAIServer([Turn(Call("look", {"name": "x"}), usage=(100, 10))], faults={1: SERVER_ERROR})
    claude = AnthropicServer([Turn(Say("It is found, at last."), usage=(300, 30), fragment=4)])
    pool = PoolSettings(members=("gpt", "claude"), policy="failover")

    @tool
    def look(name: str) -> str:
        """Look something up."""
        return f"{name} is there"

    async with serve(gpt, claude):
        backends = {"gpt": backend_at(gpt), "claude": backend_at(claude)}
        config = Config(FileSettings(backends=backends, pools={"main": pool}), {})
        async with Runtime(config, tracing=seen.tracing, seed=1) as runtime:
            session = await runtime.open("main", tools=[look])
            assert (await session.ask("Look.")).usage.input_tokens == 400
    chats = [span for span in seen.spans() if span.name.startswith("chat ")]
    assert {span.kind for span in chats} == {trace.SpanKind.CLIENT}
    told = [
        tuple((span.attributes or {}).get(key) for key in ("gen_ai.provider.name", "actors.backend", IN, OUT))
        for span in chats
    ]
    assert told == [("openai", "gpt", 100, 10), ("openai", "gpt", 0, 0), ("anthropic", "claude", 300, 30)]
    sums = {
        (about["gen_ai.provider.name"], kind): total
        for kind in ("input", "output")
        for about, total, _ in points(seen, f"gen_ai.client.inference.operation.{kind}_tokens")
        if about["gen_ai.operation.name"] == "chat" and about["gen_ai.request.model"]
    }
    assert sums == {
        ("openai", "input"): 100,
        ("openai", "output"): 10,
        ("anthropic", "input"): 300,
        ("anthropic", "output"): 30,
    }
    first = {
        about["gen_ai.provider.name"]: count
        for about, _, count in points(seen, "gen_ai.client.inference.time_to_first_chunk")
    }
    assert first == {"anthropic": 1}  # one answer was only a call, and one was empty
    (agent,) = [dict(span.attributes or {}) for span in seen.spans() if span.name == "invoke_agent"]
    assert (agent[IN], agent[OUT]) == (400, 40)


@pytest.mark.parametrize("content", [False, True])
async def test_trace_spans_contain_message_content_only_if_enabled(content: bool) -> None:
    seen = RecordedTelemetry(content=content)
    await ask_once(seen, OpenAIServer(TURNS))
    metrics = seen.reader.get_metrics_data()
    assert metrics is not None
    assert "gen_ai.client.inference.duration" in metrics.to_json()
    assert "gen_ai.client.inference.usage.input_tokens" in metrics.to_json()
    everything = "".join(span.to_json() for span in seen.spans())
    assert (CANARY in everything) is content
    assert CANARY not in metrics.to_json()


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("fault", [SERVER_ERROR, Disconnect(after_bytes=300)])
async def test_a_failed_ask_ends_its_trace_span_with_an_error(fault: object) -> None:
    seen = RecordedTelemetry()
    server = OpenAIServer(TURNS, faults=dict.fromkeys(range(9), fault))  # type: ignore[arg-type]  # any fault
    assert await ask_once(seen, server) == "failed"
    spans = {span.name: span for span in seen.spans()}
    assert set(spans) == {"caller", "invoke_agent", "chat gpt-5.2"}
    assert {name for name, span in spans.items() if span.status.status_code is trace.StatusCode.ERROR} == {
        "invoke_agent",
        "chat gpt-5.2",
    }


async def test_a_too_long_request_and_its_retry_have_separate_spans() -> None:
    seen, long = RecordedTelemetry(), "a line of a file\n" * 1200

    @tool
    def look(name: str) -> str:
        """Look something up."""
        return long if name == "a" else "short"

    calls = [Turn(Call("look", {"name": name})) for name in ("a", "b")]
    server = OpenAIServer([*calls, Turn(Say("Done."))], faults=window_faults("openai_chat", 2000))
    async with serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        async with Runtime(environ=environ, tracing=seen.tracing, seed=1) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[look])
            assert (await session.ask("Look.")).status == "complete"
    named = [(span.name, dict(span.attributes or {}).get("error.type")) for span in seen.spans()]
    assert [error for name, error in named if name == "chat gpt-5.2"] == [None, "400", None, None]
    assert [error for name, error in named if name == "execute_tool look"] == [None, None]


async def test_a_summary_does_not_end_the_span_of_its_request() -> None:
    seen, words = RecordedTelemetry(), "word " * 1500
    server = OpenAIServer([Turn(Say(said)) for said in "abc"], faults=window_faults("openai_chat", 3000))
    async with serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        async with Runtime(environ=environ, tracing=seen.tracing, seed=1) as runtime:
            session = await runtime.open("openai:gpt-5.2")
            answers = [await session.ask(words) for _ in range(2)]
            assert [answer.text for answer in answers] == ["a", "c"], answers[1].error
    errors = [dict(span.attributes or {}).get("error.type") for span in seen.spans() if "chat" in span.name]
    assert errors == [None, "400", None]
    told = sum(
        total
        for kind in ("input_tokens", "output_tokens")
        for _, total, _ in points(seen, f"gen_ai.client.inference.operation.{kind}")
    )
    used = [answer.usage.input_tokens + answer.usage.output_tokens for answer in answers]
    assert told == sum(used)  # the tokens of the summary included


@pytest.mark.parametrize("error", [QueueFull, OverBudget, SessionClosed, NotAwaited])
async def test_a_refused_ask_ends_its_trace_span_with_the_reason(error: type[ActorsError]) -> None:
    seen, gate = RecordedTelemetry(), Gate()
    server = OpenAIServer([Turn(Call("work", {"name": "a"})), Turn(Say("Done."))])
    async with serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        config = Config(
            FileSettings(limits=RuntimeLimits(max_queued_asks=int(error is not QueueFull))), environ
        )
        async with Runtime(config, tracing=seen.tracing, seed=1) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[gate.tool], budget=Budget(rounds=2))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.ask, "Do it.")
                await gate.started("a")
                if error is QueueFull:
                    await expect_refusal(session, error)
                gate.open("a")
            if error is SessionClosed:
                await session.close()
            if error is not QueueFull:
                await expect_refusal(session, error)
    agents = [span for span in seen.spans() if span.name == "invoke_agent"]
    assert len(agents) == 2
    failed = [span for span in agents if span.status.status_code is trace.StatusCode.ERROR]
    assert [dict(span.attributes or {})["error.type"] for span in failed] == [error.__name__]


async def expect_refusal(session: Session, error: type[ActorsError]) -> None:
    with pytest.raises(error):
        await (session.ask(results={"nothing": "of it"}) if error is NotAwaited else session.ask("And?"))


async def test_enabling_tracing_without_opentelemetry_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"llm-actors\[otel\]"):
        Tracing()
