"""Run sessions on the strict Bedrock server: tools, reasoning, switches and API keys."""

from pathlib import Path

import anyio
import pytest

from actors import Runtime
from actors.config import BackendLimits
from actors.testing import (
    AnthropicProfile,
    AnthropicServer,
    BedrockProfile,
    BedrockServer,
    BedrockSettings,
    Call,
    ErrorInStream,
    InjectedFault,
    OpenAIServer,
    Redacted,
    Say,
    Status,
    Think,
    Turn,
    serve,
)
from tests.runtime_support import bodies, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

MODEL = "anthropic.test-v1:0"
BOUND = BedrockSettings(BedrockProfile(AnthropicProfile(prefix_bound=True)))
WORK = Turn(
    Think("hm"),
    Redacted(),
    Say("Wait."),
    Call("weather", {"city": "Oslo"}),
    Call("weather", {"city": "Rome"}),
)


def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C" if city != "Rome" else ""


@pytest.mark.requirement("PROMISE-1", "U-09")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_session_calls_tools_and_continues_with_its_reasoning(stream: bool) -> None:
    server = BedrockServer([WORK, Turn(Think("so"), Say("Cold.")), Turn(Say("Bye."))], settings=BOUND)
    async with scripted(server, tools=[weather], is_streamed=stream, fields={"model": MODEL}) as (
        _,
        _,
        session,
    ):
        first = await session.ask("Weather?")
        second = await session.ask("Thanks.")
    assert (first.status, second.status) == ("complete", "complete")
    last = bodies(server)[-1]["messages"]
    kinds = [[next(iter(block)) for block in message["content"]] for message in last]
    assert kinds[1] == ["reasoningContent", "reasoningContent", "text", "toolUse", "toolUse"]
    assert kinds[2:] == [["toolResult", "toolResult"], ["reasoningContent", "text"], ["text"]]
    action = "converse-stream" if stream else "converse"
    assert {exchange.path for exchange in server.requests} == {f"/model/anthropic.test-v1%3A0/{action}"}


@pytest.mark.requirement("PROMISE-1", "REQ-915-036")
async def test_a_conversation_that_switches_between_three_providers_is_never_rejected() -> None:
    servers = (BedrockServer([WORK, Turn(Say("one"))] * 3, settings=BOUND),
               OpenAIServer([WORK, Turn(Say("two"))] * 3),
               AnthropicServer([WORK, Turn(Say("three"))] * 3))  # fmt: skip
    bedrock, openai, claude = servers
    async with runtime_with(seconds=60, bedrock=bedrock, openai=openai, claude=claude) as runtime:
        session = await runtime.open("bedrock", tools=[weather])
        for name in ("bedrock", "openai", "claude") * 3:
            await session.switch(name)
            assert (await session.ask("Again.")).status == "complete"
    for server in servers:
        assert server.refusals == []
        assert [exchange.status for exchange in server.requests] == [200] * 6
    held = [block for message in bodies(servers[0])[-1]["messages"] for block in message["content"]]
    assert (
        sum("reasoningContent" in block for block in held) == 6
    )  # two in each of its three turns, none from others


@pytest.mark.usefixtures("short_waits")
async def test_a_throttled_stream_and_a_busy_model_are_retried() -> None:
    faults: dict[int, InjectedFault] = {
        0: ErrorInStream(0, status=503),
        1: Status(429, type="ModelNotReadyException"),
    }
    server = BedrockServer([Turn(Say("Here."))], faults=faults)
    async with scripted(server, backend=BackendLimits()) as (_, _, session):
        answer = await session.ask("Hello?")
    assert answer.text == "Here."
    assert [exchange.status for exchange in server.requests] == [200, 429, 200]


async def test_an_api_key_is_sent_as_a_bearer_token(tmp_path: Path) -> None:
    server = BedrockServer(api_key="bedrock-api-key")
    path = tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(server):
            path.write_text(
                f'[backends.a]\nkind = "bedrock"\nmodel = "{MODEL}"\nbase_url = "{server.base_url}"\n'
                'auth = "AWS_BEARER_TOKEN_BEDROCK"\n'
            )
            environ = {"AWS_BEARER_TOKEN_BEDROCK": "bedrock-api-key"}
            async with Runtime(path, environ=environ) as runtime:
                assert (await (await runtime.open("a")).ask("Hello?")).status == "complete"
