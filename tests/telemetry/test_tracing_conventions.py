"""Tokens, errors, messages and retries have the names and forms of OpenTelemetry's GenAI conventions."""

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
from tests.telemetry.test_tracing import Seen, asked

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("short_waits")]

USAGE = "gen_ai.usage"
METRIC = "gen_ai.client.inference.usage"
UNSUPPORTED = Status(
    400,
    message="Unsupported parameter: 'temperature' is not supported with this model.",
    code="unsupported_parameter",
    param="temperature",
)


def about(span: ReadableSpan) -> dict[str, Any]:  # Any: values of attributes
    return dict(span.attributes or {})


def named(seen: Seen, name: str) -> list[ReadableSpan]:
    return [span for span in seen.spans() if span.name.startswith(name)]


def counters(seen: Seen) -> dict[str, float]:
    """Return the sum of each metric that counts tokens."""
    told = seen.reader.get_metrics_data()
    assert told is not None
    found: dict[str, Any] = {  # Any: of whatever kind a metric is
        metric.name.removeprefix(f"{METRIC}."): metric.data
        for each in told.resource_metrics
        for scope in each.scope_metrics
        for metric in scope.metrics
        if metric.name.startswith(METRIC)
    }
    return {name: sum(point.value for point in data.data_points) for name, data in found.items()}


async def test_tokens_of_the_cache_are_read_and_written_ones_and_part_of_the_input() -> None:
    seen = Seen()
    await asked(seen, OpenAIServer([Turn(Say("Here."), usage=(100, 7), cached=(40, 25))]))
    counted = {
        "input_tokens": 100,
        "output_tokens": 7,
        "cache_read.input_tokens": 40,
        "cache_write.input_tokens": 25,
    }
    (chat,) = named(seen, "chat ")
    attributes = about(chat)
    assert {key: attributes[f"{USAGE}.{key}"] for key in counted} == counted
    assert not [key for key in attributes if "creation" in key]
    assert counters(seen) == counted
    assert (
        attributes["gen_ai.conversation.id"]
        == about(named(seen, "invoke_agent")[0])["gen_ai.conversation.id"]
    )


async def test_a_request_that_is_sent_again_is_one_span_with_an_event_for_each_retry() -> None:
    seen = Seen()
    answered = OpenAIServer([Turn(Say("Here."))], faults={0: SERVER_ERROR, 1: Disconnect(after_bytes=0)})
    assert await asked(seen, answered) == "complete"
    (chat,) = named(seen, "chat ")
    assert [event.name for event in chat.events] == ["retry", "retry"]
    retries = [dict(event.attributes or {}) for event in chat.events]
    assert [retry["error.type"] for retry in retries] == ["500", "ProviderFailed"]
    assert all(float(str(retry["actors.retry.wait"])) >= 0 for retry in retries)
    assert about(chat)["http.request.resend_count"] == 2
    assert "error.type" not in about(chat)
    assert chat.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (SERVER_ERROR, "500"),
        (Disconnect(after_bytes=0), "ProviderFailed"),
        (Disconnect(after_bytes=300), "ProviderFailed"),
    ],
)
async def test_the_error_of_a_request_is_its_status_or_the_class_of_the_exception(
    fault: InjectedFault, error: str
) -> None:
    seen = Seen()
    server = OpenAIServer([Turn(Say("Here."))], faults=dict.fromkeys(range(9), fault))
    assert await asked(seen, server) == "failed"
    spans = [*named(seen, "chat "), *named(seen, "invoke_agent")]
    assert {about(span)["error.type"] for span in spans} == {error}


async def test_the_error_of_a_backend_out_of_reach_and_of_one_left_alone_is_the_class_of_the_exception() -> (
    None
):
    seen = Seen()
    async with serve(server := OpenAIServer([])):
        backend = backend_at(server)
    async with Runtime(
        Config(FileSettings(backends={"a": backend}), {}), tracing=seen.tracing, seed=1
    ) as runtime:
        session = await runtime.open("a")
        for _ in range(12):
            assert (await session.ask("Hello?", check=False)).status == "failed"
    assert {about(span)["error.type"] for span in named(seen, "chat ")} == {"ProviderFailed", "CircuitOpen"}


async def test_the_error_of_a_tool_is_the_class_of_what_it_raised_or_how_its_call_ended() -> None:
    seen = Seen()

    @tool
    def divide(by: int) -> float:
        """Divide one."""
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
        about(span)["gen_ai.tool.call.id"]: about(span).get("error.type") for span in named(seen, "execute")
    }
    assert errors == {
        "hist_tool_1": "ZeroDivisionError",
        "hist_tool_2": "refused",
        "hist_tool_3": "TimeoutError",
        "hist_tool_4": None,
    }


async def test_messages_are_json_in_the_form_of_the_conventions() -> None:
    seen = Seen(content=True)
    await asked(
        seen, OpenAIServer([Turn(Say("I look."), Call("look", {"name": "x"})), Turn(Say("Here."))]), "Look."
    )
    chats = [about(span) for span in named(seen, "chat ")]
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
    agent = about(named(seen, "invoke_agent")[0])
    assert json.loads(agent["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Look."}]}
    ]
    assert json.loads(agent["gen_ai.output.messages"])[0]["parts"] == said[1]


async def test_a_request_that_is_made_again_without_a_refused_parameter_is_a_span_of_its_own() -> None:
    def refuses(_: int, request: Json | None) -> InjectedFault | None:
        return UNSUPPORTED if request is not None and "temperature" in request else None

    seen, server = Seen(), OpenAIServer([Turn(Say("Here."))], faults=refuses)
    async with serve(server):
        config = Config(FileSettings(backends={"a": backend_at(server)}), {})
        async with Runtime(config, tracing=seen.tracing, seed=1) as runtime:
            session = await runtime.open("a")
            assert (await session.ask("Hello?", temperature=0.2)).status == "complete"
    assert [about(span).get("error.type") for span in named(seen, "chat ")] == ["400", None]
    assert "error.type" not in about(named(seen, "invoke_agent")[0])
