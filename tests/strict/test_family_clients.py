"""Run tool conversations between vendors' clients and the strict servers of their family."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mistralai.client
import mistralai.client.errors
import openai
import pytest

from actors.strict.rules import COMPATIBLE_RULES
from actors.strict.server import LoopbackServer
from actors.testing import (
    Call,
    ErrorInStream,
    GroqServer,
    KimiServer,
    MistralServer,
    OpenRouterServer,
    Say,
    Script,
    Status,
    Think,
    Turn,
    serve,
    strict_server,
)

# The OpenAI client leaves its stream's generator unfinished after `[DONE]`, which trio reports.
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]

Json = dict[str, Any]  # dumped objects of the clients
USER: Json = {"role": "user", "content": "Weather in Oslo and in Rome?"}
SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS: list[Json] = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
CALLS = Turn(
    Think("Two cities."),
    Say("Looking."),
    Call("weather", {"city": "Oslo"}),
    Call("weather", {"city": "Rome"}),
)
ANSWER = Turn(Say("Rome is warmer."))
REASONING = ("reasoning_content", "reasoning", "reasoning_details")


@asynccontextmanager
async def openai_client(server: LoopbackServer) -> AsyncIterator[Any]:
    # Any: the client's overloads accept only dictionary literals, and a transcript is a plain dictionary.
    with anyio.fail_after(60):
        async with (
            serve(server),
            openai.AsyncOpenAI(base_url=server.base_url, api_key="key", max_retries=0) as client,
        ):
            yield client


# This client asks asyncio for its loop, so it does not run on trio.
on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])


@asynccontextmanager
async def mistral_client(server: MistralServer) -> AsyncIterator[Any]:  # Any: as above
    with anyio.fail_after(60):
        async with (
            serve(server),
            mistralai.client.Mistral(api_key="key", server_url=server.base_url) as client,
        ):
            yield client


async def openai_message(client: Any, request: Json, streamed: bool) -> Json:  # Any: as above
    if not streamed:
        response = await client.chat.completions.create(**request)
        message = response.choices[0].message.model_dump(exclude_none=True)
        return {key: value for key, value in message.items() if key != "refusal"}
    message = {"role": "assistant", "content": ""}
    calls: list[Json] = []
    async with await client.chat.completions.create(**request, stream=True) as chunks:
        async for chunk in chunks:
            for choice in chunk.choices:
                _gather(message, calls, choice.delta.model_dump(exclude_none=True))
    return message | ({"tool_calls": calls} if calls else {})


def _gather(message: Json, calls: list[Json], delta: Json) -> None:
    message["content"] += delta.get("content") or ""
    for key in REASONING:
        if key in delta:
            message[key] = message[key] + delta[key] if key in message else delta[key]
    for fragment in delta.get("tool_calls") or ():
        if fragment.get("id"):
            calls.append({key: value for key, value in fragment.items() if key != "index"})
        else:
            calls[-1]["function"]["arguments"] += fragment["function"]["arguments"]


def results(message: Json) -> list[Json]:
    return [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": json.loads(call["function"]["arguments"])["city"],
        }
        for call in message["tool_calls"]
    ]


VENDORS = [vendor for vendor in COMPATIBLE_RULES if vendor != "mistral"]


@pytest.mark.sampled(3)
@pytest.mark.alternating
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("vendor", VENDORS)
async def test_the_openai_client_completes_a_tool_conversation(vendor: str, streamed: bool) -> None:
    server = strict_server(vendor, Script([CALLS, ANSWER]), api_key="key")
    request: Json = {"model": "m", "messages": [USER], "tools": TOOLS}
    async with openai_client(server) as client:
        asked = await openai_message(client, request, streamed)
        request["messages"] = [USER, asked, *results(asked)]
        answered = await openai_message(client, request, streamed)
    assert asked["content"] == "Looking."
    assert "Two cities." in [asked.get(key) for key in REASONING]
    assert [message["content"] for message in request["messages"][2:]] == ["Oslo", "Rome"]
    assert answered["content"] == "Rome is warmer."
    assert server.refusals == []


async def mistral_message(client: Any, request: Json, streamed: bool) -> Json:  # Any: as above
    if not streamed:
        response = await client.chat.complete_async(**request)
        return dict(response.choices[0].message.model_dump(exclude_none=True, mode="json"))
    message: Json = {"role": "assistant", "content": "", "tool_calls": []}
    thought = ""
    usage = None
    async for event in await client.chat.stream_async(**request):
        usage = event.data.usage or usage
        delta = event.data.choices[0].delta.model_dump(exclude_none=True, mode="json")
        content = delta.get("content") or ""
        if isinstance(content, str):
            message["content"] += content
        else:
            thought += content[0]["thinking"][0]["text"]
        message["tool_calls"] += delta.get("tool_calls") or ()
    assert usage is not None
    assert usage.total_tokens == 18
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": thought}]}
    text = {"type": "text", "text": message["content"]}
    if thought:
        message["content"] = [thinking, text]
    return message if message["tool_calls"] else {**message, "tool_calls": None}


@on_asyncio
@pytest.mark.parametrize("streamed", [False, True])
async def test_the_mistral_client_completes_a_tool_conversation(streamed: bool) -> None:
    server = MistralServer(Script([CALLS, ANSWER]), api_key="key")
    request: Json = {"model": "m", "messages": [USER], "tools": TOOLS}
    async with mistral_client(server) as client:
        asked = await mistral_message(client, request, streamed)
        request["messages"] = [USER, asked, *results(asked)]
        answered = await mistral_message(client, request, streamed)
    thinking, text = asked["content"]
    assert thinking["thinking"][0]["text"] == "Two cities."
    assert text["text"] == "Looking."
    ids = [call["id"] for call in asked["tool_calls"]]
    assert all(len(each) == 9 and each.isalnum() for each in ids)
    assert len(set(ids)) == 2
    assert answered["content"] == "Rome is warmer."
    assert server.refusals == []


@on_asyncio
async def test_the_mistral_client_raises_its_own_errors() -> None:
    server = MistralServer(faults={2: Status(429)})
    call = {"id": "call_a", "function": {"name": "weather", "arguments": "{}"}}
    foreign = [
        USER,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_a", "content": ""},
    ]
    async with mistral_client(server) as client:
        with pytest.raises(mistralai.client.errors.SDKError, match="with a length of 9") as refused:
            await client.chat.complete_async(model="m", messages=foreign)
        with pytest.raises(mistralai.client.errors.HTTPValidationError) as unread:
            await client.chat.complete_async(model="m", messages=[USER], tools=[])
        with pytest.raises(mistralai.client.errors.SDKError) as limited:
            await client.chat.complete_async(model="m", messages=[USER])
    body = json.loads(refused.value.body)
    assert (body["type"], body["code"], body["raw_status_code"]) == ("invalid_function_call", "3280", 400)
    assert unread.value.data.detail is not None
    assert unread.value.data.detail[0].loc == ["body", "tools"]
    assert limited.value.status_code == 429
    assert [refusal.rule for refusal in server.refusals] == ["MIS-01", "MIS-S01"]


@pytest.mark.parametrize(("short", "prefix"), [(False, "functions."), (True, "")])
async def test_kimi_numbers_call_ids_consecutively_across_the_conversation(short: bool, prefix: str) -> None:
    server = KimiServer(Script([CALLS, CALLS]), short_ids=short)
    request: Json = {"model": "m", "messages": [USER], "tools": TOOLS}
    async with openai_client(server) as client:
        for _ in range(2):
            asked = await openai_message(client, request, streamed=True)
            request["messages"] = [*request["messages"], asked, *results(asked)]
    ids = [call["id"] for message in request["messages"] for call in message.get("tool_calls") or ()]
    assert ids == [f"{prefix}weather:{index}" for index in range(4)]
    assert server.refusals == []


@pytest.mark.parametrize(("vendor", "rule"), [("kimi", "KIM-S03"), ("deepseek", "DSK-S03")])
async def test_changed_reasoning_is_rejected_after_the_same_messages(vendor: str, rule: str) -> None:
    server = strict_server(vendor, Script([CALLS, ANSWER, ANSWER, ANSWER]))
    request: Json = {"model": "m", "messages": [USER], "tools": TOOLS}
    async with openai_client(server) as client:
        asked = await openai_message(client, request, streamed=False)
        changed = {**asked, "reasoning_content": "Three cities."}
        with pytest.raises(openai.BadRequestError):
            await openai_message(client, {**request, "messages": [USER, changed, *results(asked)]}, False)
        elsewhere = [{"role": "user", "content": "Summary."}, changed, *results(asked)]
        await openai_message(client, {**request, "messages": elsewhere}, False)
        await openai_message(client, {**request, "messages": [USER, asked, *results(asked)]}, False)
    assert [refusal.rule for refusal in server.refusals] == [rule]


@pytest.mark.parametrize("streamed", [False, True])
async def test_openrouter_reasoning_is_rejected_by_another_upstream(streamed: bool) -> None:
    upstreams = ["Anthropic", "Google", "Anthropic"]
    server = OpenRouterServer(Script([CALLS, ANSWER, ANSWER]), upstreams=upstreams)
    request: Json = {"model": "m", "messages": [USER], "tools": TOOLS}
    async with openai_client(server) as client:
        asked = await openai_message(client, request, streamed)
        request["messages"] = [USER, asked, *results(asked)]
        with pytest.raises(openai.BadRequestError, match="Provider returned error") as refused:
            await openai_message(client, request, streamed)
        answered = await openai_message(client, request, streamed)
        pinned = {"order": ["Google"], "allow_fallbacks": False}
        with pytest.raises(openai.BadRequestError):
            await openai_message(client, {**request, "extra_body": {"provider": pinned}}, streamed)
    metadata = refused.value.body["metadata"] if isinstance(refused.value.body, dict) else {}
    assert metadata["provider_name"] == "Google"
    raw = json.loads(metadata["raw"])
    assert raw["error"]["message"] == "messages.1.content.0: Invalid `signature` in `thinking` block"
    assert answered["content"] == "Rome is warmer."
    assert [refusal.rule for refusal in server.refusals] == ["ORT-03", "ORT-03"]


async def test_openrouter_names_the_upstream_and_reports_an_error_inside_a_stream() -> None:
    server = OpenRouterServer(Script([ANSWER, ANSWER]), upstreams=["Google"], faults={1: ErrorInStream(3)})
    async with openai_client(server) as client:
        response = await client.chat.completions.create(model="m", messages=[USER])
        assert response.provider == "Google"
        with pytest.raises(openai.APIError, match="had an error"):
            await openai_message(client, {"model": "m", "messages": [USER]}, streamed=True)


async def test_groq_answers_a_malformed_call_with_an_error() -> None:
    malformed = Turn(Call("weather", raw='{"city": '))
    server = GroqServer(Script([malformed, ANSWER, CALLS]))
    request: Json = {"model": "m", "messages": [USER], "tools": TOOLS}
    async with openai_client(server) as client:
        with pytest.raises(openai.BadRequestError, match="failed_generation") as failed:
            await openai_message(client, request, streamed=False)
        with pytest.raises(openai.BadRequestError, match="did not call a tool"):
            await openai_message(client, {**request, "tool_choice": "required"}, streamed=False)
        assert (await openai_message(client, request, streamed=True))["tool_calls"]
    assert failed.value.code == "tool_use_failed"
    assert isinstance(failed.value.body, dict)
    assert '{\\"city\\": ' in failed.value.body["failed_generation"]
