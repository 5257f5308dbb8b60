import anyio
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry, generate_latest

from actors import Runtime, tool
from actors.telemetry import PrometheusCollector, Tracing
from actors.testing import Call, OpenAIServer, Say, Turn, serve


@tool
def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 21 C"


async def main() -> None:
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    server = OpenAIServer([Turn(Call("weather", {"city": "Oslo"})), Turn(Say("It is 21 C in Oslo."))])
    async with serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        async with Runtime(environ=environ, tracing=Tracing(tracer_provider=provider)) as runtime:
            registry = CollectorRegistry()
            registry.register(PrometheusCollector(runtime.stats))
            session = await runtime.open("openai:gpt-5.2", tools=[weather])
            await session.ask("Weather in Oslo?")

            backend = runtime.stats().backends["openai"]
            print(backend.tools.tool_calls_total, "call,", backend.requests, "requests")
            for line in generate_latest(registry).decode().splitlines():
                if line.startswith("actors_tool_calls"):
                    print(line)
    print(*[span.name for span in spans.get_finished_spans()], sep=", ")


anyio.run(main)
