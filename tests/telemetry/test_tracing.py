"""Asks as OpenTelemetry spans: their names, who is whose parent, and that nothing that was said is in them unasked."""

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
from actors.strict.windows import window
from actors.telemetry import Tracing
from actors.testing import SERVER_ERROR, AnthropicServer, Call, Disconnect, OpenAIServer, Say, Turn, serve
from tests.runtime_support import Gate, backend_at

pytestmark = pytest.mark.anyio

CANARY = "canary-4711"
IN, OUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
TURNS = (Turn(Say(CANARY), Call("look", {"name": CANARY}), Call("look", {"nam": "b"})), Turn(Say(CANARY)))


class Seen:
    """A tracing whose spans and metrics are kept."""

    def __init__(self, *, content: bool = False) -> None:
        self._exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        meters = MeterProvider([self.reader])
        self.tracing = Tracing(tracer_provider=self.provider, meter_provider=meters, content=content)

    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def tree(self) -> dict[str, str]:
        """Return each span's name with its parent's."""
        names = {span.context.span_id: span.name for span in self.spans() if span.context is not None}
        return {span.name: names.get(span.parent.span_id, "") if span.parent else "" for span in self.spans()}


async def asked(seen: Seen, server: OpenAIServer, words: str = CANARY) -> str:
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


async def test_an_ask_is_a_span_below_its_callers_with_its_requests_and_its_tool_calls_in_it() -> None:
    seen = Seen()
    assert await asked(seen, OpenAIServer(TURNS)) == "complete"
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


def points(seen: Seen, name: str) -> list[tuple[dict[str, object], float, int]]:
    """Return the attributes, the sum and the count of each series of a histogram."""
    told = seen.reader.get_metrics_data()
    assert told is not None
    metrics = [
        metric for each in told.resource_metrics for scope in each.scope_metrics for metric in scope.metrics
    ]
    (found,) = [metric for metric in metrics if metric.name == name]
    data: Any = found.data.data_points  # Any: of whatever kind the metric is
    return [(dict(point.attributes), point.sum, point.count) for point in data]


async def test_tokens_are_those_of_each_request_and_of_who_served_it() -> None:
    seen = Seen()
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
    assert first == {"anthropic": 1}  # one answer was a call alone, one was none
    (agent,) = [dict(span.attributes or {}) for span in seen.spans() if span.name == "invoke_agent"]
    assert (agent[IN], agent[OUT]) == (400, 40)


@pytest.mark.parametrize("content", [False, True])
async def test_what_was_said_is_in_no_span_unless_it_was_asked_for(content: bool) -> None:
    seen = Seen(content=content)
    await asked(seen, OpenAIServer(TURNS))
    metrics = seen.reader.get_metrics_data()
    assert metrics is not None
    assert "gen_ai.client.inference.duration" in metrics.to_json()
    assert "gen_ai.client.inference.usage.input_tokens" in metrics.to_json()
    everything = "".join(span.to_json() for span in seen.spans())
    assert (CANARY in everything) is content
    assert CANARY not in metrics.to_json()


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("fault", [SERVER_ERROR, Disconnect(after_bytes=300)])
async def test_a_failed_ask_leaves_no_span_open_and_says_that_it_failed(fault: object) -> None:
    seen = Seen()
    server = OpenAIServer(TURNS, faults=dict.fromkeys(range(9), fault))  # type: ignore[arg-type]  # any fault
    assert await asked(seen, server) == "failed"
    spans = {span.name: span for span in seen.spans()}
    assert set(spans) == {"caller", "invoke_agent", "chat gpt-5.2"}
    assert {name for name, span in spans.items() if span.status.status_code is trace.StatusCode.ERROR} == {
        "invoke_agent",
        "chat gpt-5.2",
    }


async def test_a_request_that_was_too_long_is_a_span_that_says_so_and_the_next_is_one_of_its_own() -> None:
    seen, long = Seen(), "a line of a file\n" * 1200

    @tool
    def look(name: str) -> str:
        """Look something up."""
        return long if name == "a" else "short"

    calls = [Turn(Call("look", {"name": name})) for name in ("a", "b")]
    server = OpenAIServer([*calls, Turn(Say("Done."))], faults=window("openai_chat", 2000))
    async with serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        async with Runtime(environ=environ, tracing=seen.tracing, seed=1) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[look])
            assert (await session.ask("Look.")).status == "complete"
    named = [(span.name, dict(span.attributes or {}).get("error.type")) for span in seen.spans()]
    assert [error for name, error in named if name == "chat gpt-5.2"] == [None, "400", None, None]
    assert [error for name, error in named if name == "execute_tool look"] == [None, None]


async def test_a_summary_ends_no_span_of_the_request_that_it_makes_room_for() -> None:
    seen, words = Seen(), "word " * 1500
    server = OpenAIServer([Turn(Say(said)) for said in "abc"], faults=window("openai_chat", 3000))
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
    assert told == sum(used)  # those of the summary among them


@pytest.mark.parametrize("error", [QueueFull, OverBudget, SessionClosed, NotAwaited])
async def test_an_ask_that_is_refused_leaves_no_span_open_and_says_why(error: type[ActorsError]) -> None:
    seen, gate = Seen(), Gate()
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
                    await refused(session, error)
                gate.open("a")
            if error is SessionClosed:
                await session.close()
            if error is not QueueFull:
                await refused(session, error)
    agents = [span for span in seen.spans() if span.name == "invoke_agent"]
    assert len(agents) == 2
    failed = [span for span in agents if span.status.status_code is trace.StatusCode.ERROR]
    assert [dict(span.attributes or {})["error.type"] for span in failed] == [error.__name__]


async def refused(session: Session, error: type[ActorsError]) -> None:
    with pytest.raises(error):
        await (session.ask(results={"nothing": "of it"}) if error is NotAwaited else session.ask("And?"))


async def test_without_the_library_switching_it_on_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"llm-actors\[otel\]"):
        Tracing()
