"""Check Claude on Vertex AI, Bedrock InvokeModel and Azure Foundry."""

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from actors import Message, Runtime, tool
from actors.adapters.base import Decoder
from actors.adapters.codec import decode
from actors.config import load
from actors.errors import StreamFault
from actors.strict.server import LoopbackServer
from actors.strict.wires.bedrock import encode_frame
from actors.testing import (
    AnthropicServer,
    AwsKey,
    BedrockAnthropicServer,
    Call,
    ErrorInStream,
    Say,
    Think,
    Turn,
    VertexAnthropicServer,
    serve,
    strict_server,
    validate,
)
from actors.transcripts import check, dialect

pytestmark = pytest.mark.anyio

KEY = "canary-key-41"
AWS = AwsKey("AKIDHOST", "aws-secret-41", "eu-west-1")
SIGNED = {"AWS_ACCESS_KEY_ID": AWS.access_key, "AWS_SECRET_ACCESS_KEY": AWS.secret_key}
CLAUDE = "claude-sonnet-4-5@20250929"
BEDROCK = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"


@tool
def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C"


SCRIPT = (
    Turn(Think("I look."), Say("Let me see."), Call("weather", {"city": "Oslo"})),
    Turn(Say("It is cold.")),
    Turn(Say("Good bye.")),
)
Make = Callable[[], LoopbackServer]
HOSTS: dict[str, tuple[str, str, Make, dict[str, str], str]] = {
    "vertex": (
        "vertex_anthropic",
        CLAUDE,
        lambda: VertexAnthropicServer(list(SCRIPT), api_key=KEY),
        {"T": KEY},
        'auth = { bearer = "T" }',
    ),
    "bedrock_bearer": (
        "bedrock_anthropic",
        BEDROCK,
        lambda: BedrockAnthropicServer(list(SCRIPT), api_key=KEY),
        {"T": KEY},
        'auth = { bearer = "T" }',
    ),
    "bedrock_signed": (
        "bedrock_anthropic",
        BEDROCK,
        lambda: BedrockAnthropicServer(list(SCRIPT), aws_key=AWS),
        SIGNED,
        'auth = { aws = "eu-west-1" }',
    ),
    "foundry": (
        "foundry",
        "claude-sonnet-5",
        lambda: AnthropicServer(list(SCRIPT), api_key=KEY),
        {"T": KEY},
        'auth = "T"',
    ),
}


@pytest.mark.alternating
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", HOSTS)
async def test_a_conversation_with_thinking_and_tools_is_accepted(
    tmp_path: Path, name: str, stream: bool
) -> None:
    kind, model, make, environ, auth = HOSTS[name]
    server, path = make(), tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(server):
            path.write_text(
                f'[backends.a]\nkind = "{kind}"\nmodel = "{model}"\nbase_url = "{server.endpoint}"\n{auth}\n'
                f'stream = {str(stream).lower()}\nreasoning = {{ mode = "adaptive" }}\n'
            )
            async with Runtime(path, environ=environ) as runtime:
                session = await runtime.open("a", tools=[weather], system="Be brief.")
                first = await session.ask("Weather in Oslo?")
                second = await session.ask("Thank you.")
    assert server.refusals == []
    assert [exchange.status for exchange in server.requests] == [200, 200, 200]
    assert (first.status, first.text, second.text) == ("complete", "It is cold.", "Good bye.")
    assert first.usage.output_tokens > 0


@pytest.mark.parametrize(
    ("server", "model", "stream", "path"),
    [
        (VertexAnthropicServer, CLAUDE, True, f"/models/{CLAUDE}:streamRawPredict"),
        (VertexAnthropicServer, CLAUDE, False, f"/models/{CLAUDE}:rawPredict"),
        (
            BedrockAnthropicServer,
            BEDROCK,
            True,
            f"/model/{BEDROCK.replace(':', '%3A')}/invoke-with-response-stream",
        ),
        (BedrockAnthropicServer, BEDROCK, False, f"/model/{BEDROCK.replace(':', '%3A')}/invoke"),
    ],
)
async def test_the_url_path_contains_the_model_and_the_body_contains_the_api_version(
    tmp_path: Path, server: Callable[[], LoopbackServer], model: str, stream: bool, path: str
) -> None:
    host, file = server(), tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(host):
            file.write_text(
                f'[backends.a]\nkind = "{host.dialect}"\nmodel = "{model}"\nbase_url = "{host.endpoint}"\n'
                f"stream = {str(stream).lower()}\n"
            )
            async with Runtime(file, environ={}) as runtime:
                await (await runtime.open("a")).ask("Hello.")
    (exchange,) = host.requests
    body = json.loads(exchange.body)
    assert exchange.path.endswith(path)
    assert "anthropic-version" not in dict(exchange.headers)
    assert "model" not in body
    if host.dialect == "vertex_anthropic":
        assert (body["anthropic_version"], body.get("stream", False)) == ("vertex-2023-10-16", stream)
    else:
        assert (body["anthropic_version"], "stream" in body) == ("bedrock-2023-05-31", False)


VERSIONS = {"vertex_anthropic": "vertex-2023-10-16", "bedrock_anthropic": "bedrock-2023-05-31"}


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({}, None),
        ({"model": "claude-sonnet-5"}, "ANT-28"),
        ({"anthropic_version": None}, "ANT-S01"),
        ({"anthropic_version": "2023-06-01"}, "ANT-S03"),
        ({"surprise": 1}, "ANT-28"),
        ({"messages": []}, "ANT-25"),
    ],
)
def test_the_strict_server_and_the_checker_reject_requests_that_the_cloud_provider_rejects(
    name: str,
    change: dict[str, Any],
    rule: str | None,  # Any: JSON
) -> None:
    asked = {"anthropic_version": VERSIONS[name], "max_tokens": 9}
    said = {"messages": [{"role": "user", "content": "Hi."}], **asked, **change}
    body = json.dumps({key: value for key, value in said.items() if value is not None}).encode()
    refusal = validate(body, name)
    assert (None if refusal is None else refusal.rule) == rule
    assert (check(body, dialect(name)) == []) == (rule is None)


def test_only_vertex_accepts_the_stream_field_in_the_body() -> None:
    said = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 9, "stream": True}
    for name, version in VERSIONS.items():
        body = json.dumps({**said, "anthropic_version": version}).encode()
        is_vertex = name == "vertex_anthropic"
        assert (validate(body, name) is None) == (check(body, dialect(name)) == []) == is_vertex


@pytest.mark.parametrize("name", VERSIONS)
def test_a_request_body_without_an_api_version_breaks_rule_ant_60(name: str) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 9}).encode()
    assert [fault.rule for fault in check(body, dialect(name))] == ["ANT-60"]


CHUNK = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
EVENTS = (
    {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It rains."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 7}},
)


def to_frames(*events: object) -> bytes:
    """Return events as frames of InvokeModelWithResponseStream."""
    payloads = (b64encode(json.dumps(event).encode()).decode() for event in events)
    return b"".join(
        encode_frame(CHUNK, json.dumps({"bytes": text, "p": "abc"}).encode()) for text in payloads
    )


def read_answer(decoder: Decoder, data: bytes, size: int) -> Message:
    """Return the message of an answer in pieces of `size` bytes."""
    for place in range(0, len(data), size):
        decoder.feed(data[place : place + size])
    return decoder.close()


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_a_stream_of_binary_frames_may_arrive_in_pieces_of_any_size(size: int) -> None:
    decoder = decode(dialect("bedrock_anthropic"))
    message = read_answer(decoder, to_frames(*EVENTS), size)
    assert message.text == "It rains."
    assert (decoder.usage.input_tokens, decoder.usage.output_tokens) == (7, 3)
    assert decoder.finish_reason == "end_turn"


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("payload", [b'{"bytes":"%%%"}', b"{}", b'{"bytes":7}', b"nonsense"])
def test_a_frame_without_a_chunk_is_reported_as_a_fault_and_earlier_text_is_kept(
    payload: bytes, size: int
) -> None:
    decoder, data = (
        decode(dialect("bedrock_anthropic")),
        to_frames(*EVENTS[:3]) + encode_frame(CHUNK, payload),
    )
    with pytest.raises(StreamFault):
        read_answer(decoder, data, size)
    assert decoder.partial_message().text == "It rains."


async def test_an_aws_exception_inside_a_stream_is_classified_by_its_type(tmp_path: Path) -> None:
    host = BedrockAnthropicServer(
        [Turn(Say("It rains."))], faults={0: ErrorInStream(after_events=0, status=429, message="Slow down.")}
    )
    file = tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(host):
            file.write_text(
                f'[backends.a]\nkind = "bedrock_anthropic"\nmodel = "{BEDROCK}"\n'
                f'base_url = "{host.endpoint}"\nlimits = {{ attempts = 1 }}\n'
            )
            async with Runtime(file, environ={}) as runtime:
                result = await (await runtime.open("a")).ask("Hello.", check=False)
    assert (result.status, result.error) == ("failed", "Slow down.")
    cause = result.attempts[-1].cause
    assert cause is not None
    assert cause.kind == "rate_limit"


@pytest.mark.parametrize(
    ("kind", "key", "url", "header"),
    [
        ("vertex_anthropic", "VERTEX_ACCESS_TOKEN", "VERTEX_ANTHROPIC_BASE_URL", "authorization"),
        (
            "bedrock_anthropic",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
            "authorization",
        ),
        ("foundry", "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_BASE_URL", "x-api-key"),
        ("azure", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_BASE_URL", "api-key"),
        ("azure_responses", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_BASE_URL", "api-key"),
    ],
)
def test_each_cloud_has_its_own_environment_variables_and_key_header(
    kind: str, key: str, url: str, header: str
) -> None:
    backend = load(None, {key: KEY, url: "https://cloud.example/base"}).backend(f"{kind}:m")
    assert backend.endpoint == "https://cloud.example/base"
    assert getattr(backend.credential, "header", None) == header


TOOLS: Any = [{"name": "weather", "input_schema": {"type": "object"}}]  # Any: as the SDK's types name it


@pytest.mark.long
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("name", VERSIONS)
async def test_the_client_of_the_vendor_completes_a_conversation_with_the_strict_server(name: str) -> None:
    host = strict_server(name, SCRIPT[1:], api_key=KEY)
    ask: Any = {
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "Hi."}],
        "tools": TOOLS,
    }  # Any: as above
    model = BEDROCK if name == "bedrock_anthropic" else CLAUDE
    with anyio.fail_after(60):
        async with serve(host), client(name, host) as vendors:
            whole = await vendors.messages.create(model=model, **ask)
            async with vendors.messages.stream(model=model, **ask) as streamed:
                last = await streamed.get_final_message()
    assert host.refusals == []
    assert [message.content[0].text for message in (whole, last)] == ["It is cold.", "Good bye."]
    assert [exchange.status for exchange in host.requests] == [200, 200]


def client(name: str, host: LoopbackServer) -> Any:  # Any: two classes with the same methods
    from anthropic.lib.bedrock import (
        AsyncAnthropicBedrock,
    )  # imported here, because a quick run must not import the SDK
    from anthropic.lib.vertex import AsyncAnthropicVertex

    if name == "bedrock_anthropic":
        return AsyncAnthropicBedrock(
            api_key=KEY, aws_region="eu-west-1", base_url=host.base_url, max_retries=0
        )
    return AsyncAnthropicVertex(
        region="global", project_id="p", access_token=KEY, base_url=f"{host.base_url}/v1", max_retries=0
    )
