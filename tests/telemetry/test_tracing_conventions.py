"""Tokens, errors, messages and retries follow OpenTelemetry's GenAI conventions."""

import json
from typing import Any

import anyio
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from actors import Runtime, tool
from actors.config import Config, FileSettings
from actors.strict.faults import InjectedFault
from actors.strict.rules.base import Json
from actors.testing import SERVER_ERROR, Call, Disconnect, OpenAIServer, Say, Status, Turn, serve
from tests.runtime_support import backend_at
from tests.telemetry.test_tracing import RecordedTelemetry, ask_once

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("short_waits")]

USAGE = "gen_ai.usage"
METRIC = "gen_ai.client.inference.usage"
UNSUPPORTED = Status(
    400,
    message="Unsupported parameter: 'temperature' is not supported with this model.",
    code="unsupported_parameter",
    param="temperature",
)


def attributes_of(span: ReadableSpan) -> dict[str, Any]:  # Any: values of attributes
    return dict(span.attributes or {})


def spans_named(seen: RecordedTelemetry, name: str) -> list[ReadableSpan]:
    return [span for span in seen.spans() if span.name.startswith(name)]


def token_counters(seen: RecordedTelemetry) -> dict[str, float]:
    """Return the sum of each metric that counts tokens."""
    told = seen.reader.get_metrics_data()
    assert told is not None
    found: dict[str, Any] = {  # Any: depends on the kind of metric
        metric.name.removeprefix(f"{METRIC}."): metric.data
        for each in told.resource_metrics
        for scope in each.scope_metrics
        for metric in scope.metrics
        if metric.name.startswith(METRIC)
    }
    return {name: sum(point.value for point in data.data_points) for name, data in found.items()}


async def test_cache_tokens_are_counted_as_read_or_written_and_as_input() -> None:
    seen = RecordedTelemetry()
    await ask_once(seen, OpenAIServer([Turn(Say("Here."), usage=(100, 7), cached=(40, 25))]))
    counted = {
        "input_tokens": 100,
        "output_tokens": 7,
        "cache_read.input_tokens": 40,
        "cache_write.input_tokens": 25,
    }
    (chat,) = spans_named(seen, "chat ")
    attributes = attributes_of(chat)
    assert {key: attributes[f"{USAGE}.{key}"] for key in counted} == counted
    assert not [key for key in attributes if "creation" in key]
    assert token_counters(seen) == counted
    assert (
        attributes["gen_ai.conversation.id"]
        == attributes_of(spans_named(seen, "invoke_agent")[0])["gen_ai.conversation.id"]
    )


async def test_a_retried_request_is_one_span_with_an_event_per_retry() -> None:
    seen = RecordedTelemetry()
    answered = OpenAIServer([Turn(Say("Here."))], faults={0: SERVER_ERROR, 1: Disconnect(after_bytes=0)})
    assert await ask_once(seen, answered) == "complete"
    (chat,) = spans_named(seen, "chat ")
    assert [event.name for event in chat.events] == ["retry", "retry"]
    retries = [dict(event.attributes or {}) for event in chat.events]
    assert [retry["error.type"] for retry in retries] == ["500", "ProviderFailed"]
    assert all(float(str(retry["actors.retry.wait"])) >= 0 for retry in retries)
    assert attributes_of(chat)["http.request.resend_count"] == 2
    assert "error.type" not in attributes_of(chat)
    assert chat.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (SERVER_ERROR, "500"),
        (Disconnect(after_bytes=0), "ProviderFailed"),
        (Disconnect(after_bytes=300), "ProviderFailed"),
    ],
)
async def test_a_request_error_has_its_status_or_exception_class(fault: InjectedFault, error: str) -> None:
    seen = RecordedTelemetry()
    server = OpenAIServer([Turn(Say("Here."))], faults=dict.fromkeys(range(9), fault))
    assert await ask_once(seen, server) == "failed"
    spans = [*spans_named(seen, "chat "), *spans_named(seen, "invoke_agent")]
    assert {attributes_of(span)["error.type"] for span in spans} == {error}


async def test_requests_to_unreachable_or_paused_backends_report_the_exception_class_as_error() -> None:
    seen = RecordedTelemetry()
    async with serve(server := OpenAIServer([])):
        backend = backend_at(server)
    async with Runtime(
        Config(FileSettings(backends={"a": backend}), {}), tracing=seen.tracing, seed=1
    ) as runtime:
        session = await runtime.open("a")
        for _ in range(12):
            assert (await session.ask("Hello?", check=False)).status == "failed"
    assert {attributes_of(span)["error.type"] for span in spans_named(seen, "chat ")} == {
        "ProviderFailed",
        "CircuitOpen",
    }


async def test_a_tool_error_has_its_exception_class_or_completion() -> None:
    seen = RecordedTelemetry()

    @tool
    def divide(by: int) -> float:
        """Divide 1 by a number."""
        return 1 / by

    @tool(timeout=0.01)
    async def sleep() -> None:
        """Sleep."""
        await anyio.sleep_forever()

    calls = (
        Call("divide", {"by": 0}),
        Call("divide", {"by": "x"}),
        Call("sleep", {}),
        Call("divide", {"by": 1}),
    )
    server = OpenAIServer([Turn(*calls), Turn(Say("Done."))])
    async with serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        async with Runtime(environ=environ, tracing=seen.tracing, seed=1) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[divide, sleep])
            assert (await session.ask("Divide.")).status == "complete"
    errors = {
        attributes_of(span)["gen_ai.tool.call.id"]: attributes_of(span).get("error.type")
        for span in spans_named(seen, "execute")
    }
    assert errors == {
        "hist_tool_1": "ZeroDivisionError",
        "hist_tool_2": "refused",
        "hist_tool_3": "TimeoutError",
        "hist_tool_4": None,
    }


async def test_messages_in_spans_are_json_in_the_form_that_the_conventions_require() -> None:
    seen = RecordedTelemetry(content=True)
    await ask_once(
        seen, OpenAIServer([Turn(Say("I look."), Call("look", {"name": "x"})), Turn(Say("Here."))]), "Look."
    )
    chats = [attributes_of(span) for span in spans_named(seen, "chat ")]
    call = {"type": "tool_call", "id": "hist_tool_1", "name": "look", "arguments": {"name": "x"}}
    said: list[list[object]] = [
        [{"type": "text", "content": "I look."}, call],
        [{"type": "text", "content": "Here."}],
    ]
    reasons = ["tool_call", "stop"]
    assert [json.loads(chat["gen_ai.output.messages"]) for chat in chats] == [
        [{"role": "assistant", "parts": parts, "finish_reason": reason}]
        for parts, reason in zip(said, reasons, strict=True)
    ]
    assert [list(chat["gen_ai.response.finish_reasons"]) for chat in chats] == [
        [reason] for reason in reasons
    ]
    agent = attributes_of(spans_named(seen, "invoke_agent")[0])
    assert json.loads(agent["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Look."}]}
    ]
    assert json.loads(agent["gen_ai.output.messages"])[0]["parts"] == said[1]


async def test_a_request_that_is_repeated_without_a_refused_parameter_has_its_own_span() -> None:
    def refuses(_: int, request: Json | None) -> InjectedFault | None:
        return UNSUPPORTED if request is not None and "temperature" in request else None

    seen, server = RecordedTelemetry(), OpenAIServer([Turn(Say("Here."))], faults=refuses)
    async with serve(server):
        config = Config(FileSettings(backends={"a": backend_at(server)}), {})
        async with Runtime(config, tracing=seen.tracing, seed=1) as runtime:
            session = await runtime.open("a")
            assert (await session.ask("Hello?", temperature=0.2)).status == "complete"
    assert [attributes_of(span).get("error.type") for span in spans_named(seen, "chat ")] == ["400", None]
    assert "error.type" not in attributes_of(spans_named(seen, "invoke_agent")[0])
