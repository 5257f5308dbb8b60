"""The runtime behaves as `actors.toml` configures it."""

import json
from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path

import anyio
import pytest

from actors import Runtime
from actors.config.providers import PROVIDERS
from actors.strict.server import LoopbackServer
from actors.testing import (
    AnthropicServer,
    AzureServer,
    BedrockAnthropicServer,
    BedrockServer,
    Call,
    CompatibleServer,
    DeepSeekServer,
    Disconnect,
    Exchange,
    GeminiServer,
    KimiServer,
    MistralServer,
    OpenAIServer,
    OpenRouterServer,
    ResponsesServer,
    Say,
    Turn,
    VertexAnthropicServer,
    serve,
)

pytestmark = pytest.mark.anyio


def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C"


Script = list[Turn]
SERVERS: dict[str, Callable[[Script], LoopbackServer]] = {
    "openai": OpenAIServer,
    "openai_chat": OpenAIServer,
    "openai_responses": ResponsesServer,
    "anthropic": AnthropicServer,
    "vertex_anthropic": VertexAnthropicServer,
    "bedrock_anthropic": BedrockAnthropicServer,
    "foundry": AnthropicServer,
    "azure": AzureServer,
    "azure_responses": ResponsesServer,
    "gemini": GeminiServer,
    "vertex": partial(GeminiServer, vertex=True),
    "bedrock": BedrockServer,
    "mistral": MistralServer,
    "kimi": KimiServer,
    "deepseek": DeepSeekServer,
    "mimo": DeepSeekServer,
    "openrouter": OpenRouterServer,
    **{
        kind: partial(CompatibleServer, vendor="open_models")
        for kind in ("together", "fireworks", "cerebras", "nvidia", "huggingface", "sambanova")
    },
    "perplexity": partial(CompatibleServer, vendor="openai_compatible"),
    "sglang": partial(CompatibleServer, vendor="vllm"),
    "lm_studio": partial(CompatibleServer, vendor="ollama"),
    **{
        vendor: partial(CompatibleServer, vendor=vendor)
        for vendor in (
            "xai",
            "qwen",
            "glm",
            "minimax",
            "groq",
            "vllm",
            "llama_cpp",
            "ollama",
            "openai_compatible",
        )
    },
}
"""The strict server that stands for the provider of each kind of backend."""


def is_streamed(exchange: Exchange) -> bool:
    """Return True if a request asks for a stream, by its body or by its path."""
    return bool(json.loads(exchange.body).get("stream")) or "stream" in exchange.path.lower()


def test_every_kind_of_backend_has_a_strict_server() -> None:
    assert SERVERS.keys() == PROVIDERS.keys()


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.requirement("U-02", "U-09", "U-11", "U-12")
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", SERVERS)
async def test_every_provider_gives_the_same_events_and_history_with_and_without_streaming(
    tmp_path: Path, kind: str, stream: bool
) -> None:
    server = SERVERS[kind](
        [Turn(Say("Let me see."), Call("weather", {"city": "Oslo"})), Turn(Say("It is cold."))]
    )
    path = tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(server):
            path.write_text(
                f'[backends.a]\nkind = "{kind}"\nmodel = "m"\n'
                f'base_url = "{server.endpoint}"\nstream = {str(stream).lower()}\n'
            )
            async with Runtime(path, environ={}) as runtime:
                session = await runtime.open("a", tools=[weather])
                async with session.stream("Weather in Oslo?") as asked:
                    events = [event async for event in asked]
                history = await session.history()
    assert server.refusals == []
    assert [is_streamed(exchange) for exchange in server.requests] == [stream, stream]
    types = [event.type for event in events if event.type in ("text", "message", "tool_call", "complete")]
    assert [kind for kind, _ in groupby(types)] == [
        *("text", "message", "tool_call", "text", "message", "complete")
    ]
    words = "".join(event.text for event in events if event.type == "text")
    assert words == "Let me see.It is cold."
    (call,) = [event for event in events if event.type == "tool_call"]
    assert (call.call_id, call.name, call.arguments) == ("hist_tool_1", "weather", {"city": "Oslo"})
    said = [(message.role, message.text) for message in history]
    assert said == [
        ("user", "Weather in Oslo?"),
        ("assistant", "Let me see."),
        ("tool", ""),
        ("assistant", "It is cold."),
    ]
    assert [result.content for message in history for result in message.results] == ["Oslo: 4 C"]


@pytest.mark.requirement("REQ-915-043")
@pytest.mark.parametrize("after_output", [False, True])
async def test_the_setting_failover_after_output_belongs_to_the_pool(
    tmp_path: Path, after_output: bool
) -> None:
    broken = OpenAIServer([Turn(Say("The answer is " * 40))], faults={0: Disconnect(after_bytes=900)})
    spare = AnthropicServer([Turn(Say("42."))])
    path = tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(broken, spare):
            path.write_text(
                f'[backends.a]\nkind = "openai"\nmodel = "m"\nbase_url = "{broken.base_url}"\n'
                f'[backends.b]\nkind = "anthropic"\nmodel = "m"\nbase_url = "{spare.base_url}"\n'
                f'[pools.p]\nmembers = ["a", "b"]\nfailover_after_output = {str(after_output).lower()}\n'
            )
            async with Runtime(path, environ={}) as runtime:
                session = await runtime.open("p")
                answer = await session.ask("What is the answer?", check=False)
    assert answer.status == ("complete" if after_output else "failed")
    assert len(answer.attempts) == (2 if after_output else 1)
    assert spare.refusals == []
