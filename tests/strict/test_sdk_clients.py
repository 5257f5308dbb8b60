"""Run tool conversations between vendors' clients and the strict servers, plain and streamed."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import anyio
import openai
import pytest

from actors.testing import (
    OVERLOADED,
    QUOTA,
    AnthropicProfile,
    AnthropicServer,
    AnthropicSettings,
    Call,
    ErrorInStream,
    OpenAIServer,
    Redacted,
    Say,
    Script,
    Status,
    Think,
    Turn,
    serve,
)

# The OpenAI client leaves its stream's generator unfinished after `[DONE]`, which trio reports.
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]

Json = dict[str, Any]  # dumped objects of the clients
USER: Json = {"role": "user", "content": "Weather in Oslo and in Rome?"}
TOOL: Json = {"type": "object", "properties": {"city": {"type": "string"}}}
CALLS = Turn(Say("Looking."), Call("weather", {"city": "Oslo"}), Call("weather", {"city": "Rome"}))
THOUGHT = Turn(Think("Two cities."), *CALLS.parts)
ANSWER = Turn(Say("Rome is warmer."))


@asynccontextmanager
async def openai_client(server: OpenAIServer, retries: int = 0) -> AsyncIterator[Any]:
    # Any: the clients' overloads accept only dictionary literals, and a transcript is a plain dictionary.
    with anyio.fail_after(60):
        async with (
            serve(server),
            openai.AsyncOpenAI(base_url=server.base_url, api_key="key", max_retries=retries) as client,
        ):
            yield client


@asynccontextmanager
async def anthropic_client(server: AnthropicServer, retries: int = 0) -> AsyncIterator[Any]:
    with anyio.fail_after(60):
        async with (
            serve(server),
            anthropic.AsyncAnthropic(base_url=server.base_url, api_key="key", max_retries=retries) as client,
        ):
            yield client


async def openai_message(client: Any, request: Json, streamed: bool) -> Json:
    if not streamed:
        response = await client.chat.completions.create(**request)
        return dict(response.choices[0].message.model_dump(exclude_none=True))
    message: Json = {"role": "assistant", "content": ""}
    calls: dict[int, Json] = {}
    usage = None
    options = {"stream": True, "stream_options": {"include_usage": True}}
    async with await client.chat.completions.create(**request, **options) as chunks:
        async for chunk in chunks:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                message["content"] += choice.delta.content or ""
                for delta in choice.delta.tool_calls or ():
                    call = calls.setdefault(delta.index, {"id": delta.id, "type": "function"})
                    made = call.setdefault("function", {"name": delta.function.name, "arguments": ""})
                    made["arguments"] += delta.function.arguments
    assert usage is not None
    assert usage.total_tokens == 18
    return message | ({"tool_calls": list(calls.values())} if calls else {})


async def anthropic_message(client: Any, request: Json, streamed: bool) -> Json:
    if streamed:
        async with client.messages.stream(**request) as stream:
            message = await stream.get_final_message()
    else:
        message = await client.messages.create(**request)
    # `parsed_output` is the client's own addition to what it received.
    blocks = [b.model_dump(exclude_none=True, exclude={"parsed_output"}) for b in message.content]
    return {"role": "assistant", "content": blocks}


@pytest.mark.alternating
@pytest.mark.parametrize("write_bytes", [None, 1])
@pytest.mark.parametrize("streamed", [False, True])
async def test_the_openai_client_completes_a_tool_conversation(
    streamed: bool, write_bytes: int | None
) -> None:
    server = OpenAIServer(Script([CALLS, ANSWER]), api_key="key", write_bytes=write_bytes)
    tools = [{"type": "function", "function": {"name": "weather", "parameters": TOOL}}]
    request: Json = {"model": "m", "messages": [USER], "tools": tools}
    async with openai_client(server) as client:
        asked = await openai_message(client, request, streamed)
        request["messages"] += [asked]
        for call in asked["tool_calls"]:
            city = json.loads(call["function"]["arguments"])["city"]
            request["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": city})
        answered = await openai_message(client, request, streamed)
    assert asked["content"] == "Looking."
    assert [message["content"] for message in request["messages"][2:]] == ["Oslo", "Rome"]
    assert answered["content"] == "Rome is warmer."
    assert server.refusals == []


@pytest.mark.alternating
@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
async def test_the_anthropic_client_completes_a_tool_conversation_with_thinking(
    streamed: bool, bound: bool
) -> None:
    settings = AnthropicSettings(AnthropicProfile(prefix_bound=bound))
    turns = [THOUGHT, ANSWER, Turn(Redacted(), Say("Still Rome.")), ANSWER]
    server = AnthropicServer(Script(turns), settings=settings, api_key="key")
    request: Json = {"model": "m", "max_tokens": 100, "messages": [USER], "thinking": {"type": "adaptive"}}
    request["tools"] = [{"name": "weather", "input_schema": TOOL}]
    async with anthropic_client(server) as client:
        asked = await anthropic_message(client, request, streamed)
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": block["input"]["city"]}
            for block in asked["content"]
            if block["type"] == "tool_use"
        ]
        request["messages"] += [asked, {"role": "user", "content": results}]
        for _ in range(3):
            request["messages"] += [await anthropic_message(client, request, streamed), USER]
    assert [block["type"] for block in asked["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [result["content"] for result in results] == ["Oslo", "Rome"]
    assert request["messages"][-2]["content"][0]["text"] == "Rome is warmer."
    assert server.refusals == []


async def test_bound_thinking_is_rejected_after_a_changed_prefix() -> None:
    settings = AnthropicSettings(AnthropicProfile(prefix_bound=True))
    server = AnthropicServer(Script([Turn(Think("t"), Say("a"))]), settings=settings)
    request: Json = {"model": "m", "max_tokens": 100, "messages": [USER]}
    async with anthropic_client(server) as client:
        answered = await anthropic_message(client, request, streamed=True)
        request["messages"] += [answered, USER]
        with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
            await client.messages.create(**request, system="today")
        assert await client.messages.count_tokens(model="m", messages=request["messages"])
    assert [refusal.rule for refusal in server.refusals] == ["ANT-44"]


async def test_the_openai_client_raises_its_own_errors() -> None:
    call = {"id": "call_a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    dangling = [USER, {"role": "assistant", "tool_calls": [call]}, USER]
    faults = {1: Status(429, retry_after="0"), 2: QUOTA, 3: Status(500)}
    server = OpenAIServer(faults=faults, api_key="key")
    async with openai_client(server) as client:
        with pytest.raises(openai.BadRequestError, match="did not have response messages: call_a") as refused:
            await client.chat.completions.create(model="m", messages=dangling)
        with pytest.raises(openai.RateLimitError, match="Rate limit reached"):
            await client.chat.completions.create(model="m", messages=[USER])
        with pytest.raises(openai.RateLimitError) as quota:
            await client.chat.completions.create(model="m", messages=[USER])
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(model="m", messages=[USER])
        stranger = client.with_options(api_key="other")
        with pytest.raises(openai.AuthenticationError):
            await stranger.chat.completions.create(model="m", messages=[USER])
    assert refused.value.param == "messages.[2].role"
    assert quota.value.code == "insufficient_quota"
    assert [exchange.status for exchange in server.requests] == [400, 429, 429, 500, 401]


async def test_the_anthropic_client_raises_its_own_errors() -> None:
    call = {"type": "tool_use", "id": "toolu_a", "name": "weather", "input": {}}
    dangling = [USER, {"role": "assistant", "content": [call]}, USER]
    server = AnthropicServer(faults={1: Status(429), 2: OVERLOADED}, api_key="key")
    ask: Json = {"model": "m", "max_tokens": 10}
    async with anthropic_client(server) as client:
        with pytest.raises(anthropic.BadRequestError, match="immediately after: toolu_a"):
            await client.messages.create(**ask, messages=dangling)
        with pytest.raises(anthropic.RateLimitError):
            await client.messages.create(**ask, messages=[USER])
        with pytest.raises(anthropic.APIStatusError) as overloaded:
            await client.messages.create(**ask, messages=[USER])
        stranger = client.with_options(api_key="other")
        with pytest.raises(anthropic.AuthenticationError):
            await stranger.messages.create(**ask, messages=[USER])
    assert overloaded.value.status_code == 529
    assert [refusal.rule for refusal in server.refusals] == ["ANT-01"]


async def test_a_client_that_retries_after_a_fault_gets_the_turn_of_the_script(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    server = OpenAIServer(Script([ANSWER]), faults={0: Status(429, retry_after="0"), 1: Status(500)})
    async with openai_client(server, retries=2) as client:
        response = await client.chat.completions.create(
            model="m", messages=[USER], extra_headers={"x-should-retry": "true"}
        )
    assert response.choices[0].message.content == "Rome is warmer."
    assert [exchange.status for exchange in server.requests] == [429, 500, 200]


async def test_an_error_inside_a_stream_reaches_both_clients() -> None:
    fault = {0: ErrorInStream(after_events=3, message="Overloaded now")}
    async with openai_client(OpenAIServer(Script([ANSWER]), faults=fault)) as client:
        with pytest.raises(openai.APIError, match="Overloaded now"):
            await openai_message(client, {"model": "m", "messages": [USER]}, streamed=True)
    ask = {"model": "m", "max_tokens": 10, "messages": [USER]}
    async with anthropic_client(AnthropicServer(Script([ANSWER]), faults=fault)) as client:
        with pytest.raises(anthropic.APIStatusError, match="Overloaded now"):
            await anthropic_message(client, ask, streamed=True)
