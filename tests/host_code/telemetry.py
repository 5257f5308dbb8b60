"""Observers of the runtime: hooks, log handlers, span processors, metrics."""

import logging
from typing import Any

import anyio
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from actors.runtime.runtime import Runtime
from actors.telemetry import PrometheusCollector, Tracing
from actors.testing import Say, Turn, serve
from actors.tools import tool
from tests.host_code.rows import ONE, Bomb, check_unharmed, row
from tests.runtime_support import bodies, openai, restarted_actors, results, runtime_with


class FailingProcessor(SpanProcessor):
    """A span processor that raises at the start or end of a span."""

    def __init__(self, *, start: Bomb | None = None, end: Bomb | None = None) -> None:
        self._start, self._end = start, end

    def on_start(self, span: Span, parent_context: object = None) -> None:
        if self._start is not None:
            self._start()

    def on_end(self, span: ReadableSpan) -> None:
        if self._end is not None:
            self._end()


@tool
async def work(name: str) -> str:
    """Fail."""
    raise LookupError(name)


async def _run_traced(tracing: Any, bomb: Bomb) -> None:  # Any: any kind of tracing
    server = openai(*[ONE, Turn(Say("done"))] * 6)
    with anyio.fail_after(60):
        async with serve(server):
            environ = {"OPENAI_BASE_URL": server.base_url}
            async with Runtime(environ=environ, tracing=tracing, seed=1) as runtime:
                session = await runtime.open("openai:gpt", tools=[work])
                for _ in range(5):
                    assert (await session.ask("Do it.")).text == "done"
                async with session.stream("Again.") as events:
                    assert [event async for event in events][-1].type == "complete"
                assert restarted_actors(runtime) == []
    assert bomb.calls == 1


@row("Runtime.tracing", "Tracing.tracer_provider")
async def a_span_processor_that_raises_at_the_end_is_switched_off(bomb: Bomb) -> None:
    provider = TracerProvider()
    provider.add_span_processor(FailingProcessor(end=bomb))
    await _run_traced(Tracing(tracer_provider=provider, meter_provider=MeterProvider()), bomb)


@row("Runtime.tracing")
async def a_span_processor_that_raises_at_the_start_is_switched_off(bomb: Bomb) -> None:
    provider = TracerProvider()
    provider.add_span_processor(FailingProcessor(start=bomb))
    await _run_traced(Tracing(tracer_provider=provider, meter_provider=MeterProvider()), bomb)


class FailingMeter:
    """A meter provider whose meters raise when they record."""

    def __init__(self, bomb: Bomb) -> None:
        self.record = self.add = bomb

    def get_meter(self, *_: object, **__: object) -> "FailingMeter":
        return self

    create_histogram = create_counter = get_meter


@row("Tracing.meter_provider")
async def a_meter_that_raises_is_switched_off(bomb: Bomb) -> None:
    meters: Any = FailingMeter(bomb)  # Any: implements only the methods in use
    await _run_traced(Tracing(tracer_provider=TracerProvider(), meter_provider=meters), bomb)


@row("Runtime.tracing")
async def a_tracing_that_raises_is_switched_off(bomb: Bomb) -> None:
    class Odd:
        _start_ask_spans = bomb

    await _run_traced(Odd(), bomb)


@row("Runtime.on_tool_error")
async def a_hook_for_failures_that_raises_is_called_once(bomb: Bomb) -> None:
    server = openai(*[ONE, Turn(Say("done"))] * 5, Turn(Say("again")), Turn(Say("fine")))
    async with runtime_with(seconds=60, a=server, on_tool_error=bomb) as runtime:
        session = await runtime.open("a", tools=[work])
        async with check_unharmed(runtime, session):
            for _ in range(5):
                assert (await session.ask("Do it.")).text == "done"
    assert bomb.calls == 1
    assert "LookupError: a" in str(list(results(bodies(server)[-2]).values()))


@row("PrometheusCollector.stats")
async def stats_that_raise_fail_the_scrape_that_asked_for_them(bomb: Bomb) -> None:
    collector = PrometheusCollector(bomb)
    with pytest.raises(BaseException) as raised:  # noqa: PT011  any kind of exception
        list(collector.collect())
    assert (type(raised.value), bomb.calls) == (type(bomb.error()), 1)


class FailingHandler(logging.Handler):
    """A log handler that raises."""

    def __init__(self, bomb: Bomb) -> None:
        super().__init__()
        self._bomb = bomb

    def emit(self, record: logging.LogRecord) -> None:
        self._bomb()


@row("a handler of the logger `actors`")
async def a_log_handler_that_raises_loses_its_events_alone(bomb: Bomb) -> None:
    logger, handler = logging.getLogger("actors"), FailingHandler(bomb)
    asks = 7
    server = openai(*[ONE, Turn(Say("done"))] * asks, Turn(Say("again")), Turn(Say("fine")))
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.INFO)
    try:
        async with runtime_with(seconds=60, a=server) as runtime:
            session = await runtime.open("a", tools=[work])
            async with check_unharmed(runtime, session):
                for _ in range(asks):
                    assert (await session.ask("Do it.")).text == "done"
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    assert bomb.calls >= asks
    assert list(results(bodies(server)[2 * asks]).values()) == ["ERROR: LookupError: a"] * asks
