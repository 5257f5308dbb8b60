"""Run tool conversations between the AWS client and the strict server, plain and streamed."""

import json
from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import botocore.session
import pytest
from botocore.config import Config
from botocore.eventstream import ChecksumMismatch
from botocore.exceptions import ClientError, EventStreamError
from urllib3.exceptions import ProtocolError

from actors.testing import (
    OVERLOADED,
    AwsKey,
    BedrockServer,
    Call,
    Disconnect,
    ErrorInStream,
    Garbage,
    Redacted,
    Say,
    Script,
    Status,
    Think,
    Turn,
    serve,
)

pytestmark = pytest.mark.anyio

T = TypeVar("T")
Json = dict[str, Any]  # requests and responses of botocore
KEY = AwsKey("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG")
MODEL = "us.anthropic.claude-test-v1:0"
USER: Json = {"role": "user", "content": [{"text": "Weather in Oslo and in Rome?"}]}
SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS: Json = {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": SCHEMA}}}]}
CALLS = Turn(
    Think("Two cities."),
    Redacted(),
    Say("Looking."),
    Call("weather", {"city": "Oslo"}),
    Call("weather", {"city": "Rome"}),
)
ANSWER = Turn(Say("Rome is warmer."))


async def run_client(server: BedrockServer, talk: Callable[[Any], T], key: AwsKey = KEY) -> T:
    """Run `talk` with a client of the server, in a thread: botocore blocks."""

    def run() -> T:
        client = botocore.session.Session().create_client(
            "bedrock-runtime",
            region_name=key.region,
            endpoint_url=server.base_url,
            aws_access_key_id=key.access_key,
            aws_secret_access_key=key.secret_key,
            aws_session_token=key.token,
            config=Config(retries={"max_attempts": 0}, read_timeout=60, connect_timeout=60),
        )
        try:
            return talk(client)
        finally:
            client.close()

    with anyio.fail_after(60):
        async with serve(server):
            return await anyio.to_thread.run_sync(run)


def stream_events(client: Any, **request: Any) -> list[Json]:  # Any: botocore has no types
    """Return every event of a stream, which is closed in any case."""
    with closing(client.converse_stream(**request)["stream"]) as stream:
        return list(stream)


def message(client: Any, request: Json, streamed: bool) -> Json:
    if not streamed:
        whole: Json = client.converse(**request)["output"]["message"]
        return whole
    blocks: dict[int, Json] = {}
    usage = None
    for event in stream_events(client, **request):
        (payload,) = event.values()
        usage = payload.get("usage", usage)
        block = blocks.setdefault(payload.get("contentBlockIndex", -1), {})
        if "start" in payload:
            block["toolUse"] = {**payload["start"]["toolUse"], "input": ""}
        for kind, piece in payload.get("delta", {}).items():
            _append_piece(block, kind, piece)
    assert usage == {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}
    return {
        "role": "assistant",
        "content": [_complete_block(block) for index, block in blocks.items() if index >= 0],
    }


def _append_piece(block: Json, kind: str, piece: Any) -> None:  # Any: a delta of any kind
    if kind == "text":
        block["text"] = block.get("text", "") + piece
    elif kind == "toolUse":
        block["toolUse"]["input"] += piece["input"]
    else:
        held = block.setdefault("reasoningContent", {})
        for name, value in piece.items():
            held[name] = held[name] + value if name in held else value


def _complete_block(block: Json) -> Json:
    if "toolUse" in block:
        return {"toolUse": {**block["toolUse"], "input": json.loads(block["toolUse"]["input"])}}
    reasoning = block.get("reasoningContent", {})
    return {"reasoningContent": {"reasoningText": reasoning}} if "text" in reasoning else block


@pytest.mark.alternating
@pytest.mark.parametrize("write_bytes", [None, 1])
@pytest.mark.parametrize("streamed", [False, True])
async def test_the_aws_client_completes_a_tool_conversation(streamed: bool, write_bytes: int | None) -> None:
    server = BedrockServer(Script([CALLS, ANSWER]), aws_key=KEY, write_bytes=write_bytes)
    request: Json = {"modelId": MODEL, "messages": [USER], "toolConfig": TOOLS}

    def talk(client: Any) -> Json:
        said = message(client, request, streamed)
        results = [
            {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": call["input"]["city"]}]}}
            for block in said["content"]
            if (call := block.get("toolUse"))
        ]
        request["messages"] += [said, {"role": "user", "content": results}]
        return message(client, request, streamed)

    answered = await run_client(server, talk)
    kinds = [next(iter(block)) for block in request["messages"][1]["content"]]
    assert kinds == ["reasoningContent", "reasoningContent", "text", "toolUse", "toolUse"]
    assert answered["content"] == [{"text": "Rome is warmer."}]
    assert server.refusals == []
    assert [exchange.status for exchange in server.requests] == [200, 200]


async def test_the_aws_client_raises_its_own_errors() -> None:
    call = {"toolUse": {"toolUseId": "tooluse_a", "name": "weather", "input": {}}}
    dangling = [USER, {"role": "assistant", "content": [call]}, USER]
    server = BedrockServer(faults={1: Status(429), 2: OVERLOADED, 3: Status(424)})
    codes = []

    def talk(client: Any) -> None:
        for messages in (dangling, [USER], [USER], [USER]):
            with pytest.raises(ClientError) as error:
                client.converse(modelId=MODEL, messages=messages, toolConfig=TOOLS)
            codes.append((error.value.response["Error"]["Code"], str(error.value)))

    await run_client(server, talk)
    assert [code for code, _ in codes] == [
        "ValidationException",
        "ThrottlingException",
        "ServiceUnavailableException",
        "ModelErrorException",
    ]
    assert "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_a" in codes[0][1]
    assert [refusal.rule for refusal in server.refusals] == ["BED-01"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(529, "serviceUnavailableException"), (429, "throttlingException"), (500, "internalServerException")],
)
async def test_an_exception_inside_a_stream_reaches_the_aws_client(status: int, kind: str) -> None:
    server = BedrockServer(Script([ANSWER]), faults={0: ErrorInStream(2, status=status, message="Now.")})

    def talk(client: Any) -> None:
        with pytest.raises(EventStreamError, match=r"Now\.") as error:
            stream_events(client, modelId=MODEL, messages=[USER])
        assert error.value.response["Error"]["Code"] == kind

    await run_client(server, talk)


async def test_the_aws_client_rejects_truncated_and_garbage_answers() -> None:
    server = BedrockServer(
        Script([ANSWER]), faults={0: Disconnect(after_bytes=150), 1: Garbage(b"\xff" * 64)}
    )

    def talk(client: Any) -> None:
        for error in (ProtocolError, ChecksumMismatch):
            with pytest.raises(error):
                stream_events(client, modelId=MODEL, messages=[USER])
        assert len(stream_events(client, modelId=MODEL, messages=[USER])) > 3

    await run_client(server, talk)


@pytest.mark.alternating
@pytest.mark.parametrize(
    ("key", "code"),
    [
        (AwsKey("AKIDEXAMPLE", "another secret"), "InvalidSignatureException"),
        (AwsKey("AKIDOTHER", KEY.secret_key), "UnrecognizedClientException"),
        (AwsKey(KEY.access_key, KEY.secret_key, token="stray"), "UnrecognizedClientException"),
        (AwsKey(KEY.access_key, KEY.secret_key, region="eu-west-1"), "InvalidSignatureException"),
    ],
)
async def test_a_request_signed_with_another_key_or_region_is_rejected(key: AwsKey, code: str) -> None:
    server = BedrockServer(aws_key=KEY)

    def talk(client: Any) -> str:
        with pytest.raises(ClientError) as error:
            client.converse(modelId=MODEL, messages=[USER])
        return str(error.value.response["Error"]["Code"])

    assert await run_client(server, talk, key) == code
    assert [exchange.status for exchange in server.requests] == [403]


async def test_a_request_signed_with_a_session_token_is_accepted() -> None:
    key = AwsKey(KEY.access_key, KEY.secret_key, "eu-central-1", "session-token")
    server = BedrockServer(aws_key=key)
    said = await run_client(
        server, lambda client: message(client, {"modelId": MODEL, "messages": [USER]}, False), key
    )
    assert said["content"] == [{"text": "ok"}]
