"""Check the Responses server with OpenAI's client and our decoder."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio.to_thread
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from actors import Message, Text, ToolResult
from actors.core.values.content import Thinking
from actors.core.values.identity import Binding
from actors.strict.wires.responses import ResponsesWire
from actors.testing import (
    Call,
    Disconnect,
    ErrorInStream,
    Redacted,
    ResponsesProfile,
    ResponsesServer,
    ResponsesSettings,
    Say,
    Script,
    Status,
    Think,
    Turn,
    serve,
    validate,
)
from actors.transcripts import History, Ledger, decode, dialect, encode, render

# The OpenAI client leaves its stream's generator unfinished after the last event, which trio reports.
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]

Json = dict[str, Any]  # dumped objects of the client
USER: Json = {"role": "user", "content": "Weather in Oslo and in Rome?"}
TOOL: Json = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
CALLS = Turn(
    Think("Two cities."),
    Say("Looking."),
    Call("weather", {"city": "Oslo"}),
    Call("weather", {"city": "Rome"}),
)
ANSWER = Turn(Say("Rome is warmer."))
BOUND = ResponsesSettings(ResponsesProfile(prefix_bound=True))
STATELESS: Json = {"model": "m", "store": False, "include": ["reasoning.encrypted_content"], "tools": [TOOL]}
HERE = Binding("here", "openai_responses", "https://x.example", "account-1", "m")


@asynccontextmanager
async def client_of(server: ResponsesServer, retries: int = 0) -> AsyncIterator[Any]:
    # Any: the client's overloads accept only dictionary literals, and a transcript is a plain dictionary.
    with anyio.fail_after(60):
        async with (
            serve(server),
            openai.AsyncOpenAI(base_url=server.base_url, api_key="key", max_retries=retries) as client,
        ):
            yield client


async def output(client: Any, request: Json, streamed: bool) -> list[Json]:
    """Return the items of an answer from the client."""
    if not streamed:
        response = await client.responses.create(**request)
    else:
        numbers = []
        response = None
        async with await client.responses.create(**request, stream=True) as events:
            async for event in events:
                if event.type == "error":
                    raise RuntimeError(event.message)
                numbers.append(event.sequence_number)
                response = event.response if event.type == "response.completed" else response
        assert numbers == list(range(len(numbers)))
    assert response is not None
    assert response.usage.total_tokens == 18
    return [item.model_dump(exclude_none=True) for item in response.output]


def without_ids(items: list[Json]) -> list[Json]:
    """Return items as a stateless client sends them back: without ids."""
    return [{key: item[key] for key in item if key != "id"} for item in items]


@pytest.mark.alternating
@pytest.mark.parametrize("write_bytes", [None, 1])
@pytest.mark.parametrize("streamed", [False, True])
async def test_the_client_completes_a_tool_conversation_with_bound_reasoning(
    streamed: bool, write_bytes: int | None
) -> None:
    server = ResponsesServer(Script([CALLS, ANSWER]), settings=BOUND, api_key="key", write_bytes=write_bytes)
    request: Json = {**STATELESS, "input": [USER], "instructions": "Be brief."}
    async with client_of(server) as client:
        asked = await output(client, request, streamed)
        request["input"] += without_ids(asked)
        for item in asked:
            if item["type"] == "function_call":
                city = json.loads(item["arguments"])["city"]
                gave = {"type": "function_call_output", "call_id": item["call_id"], "output": city}
                request["input"].append(gave)
        answered = await output(client, request, streamed)
    assert [item["type"] for item in asked] == ["reasoning", "message", "function_call", "function_call"]
    assert [item["output"] for item in request["input"][-2:]] == ["Oslo", "Rome"]
    assert answered[0]["content"][0]["text"] == "Rome is warmer."
    assert server.refusals == []


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_synchronous_client_is_served_too(streamed: bool) -> None:
    server = ResponsesServer(Script([ANSWER]))
    ask: Json = {"model": "m", "input": [USER], "store": False}
    with anyio.fail_after(60):
        async with serve(server):
            with openai.OpenAI(base_url=server.base_url, api_key="key", max_retries=0) as client:
                create: Any = client.responses.create  # Any: overloads on literal values

                def said() -> str:
                    if not streamed:
                        return str(create(**ask).output_text)
                    with create(**ask, stream=True) as events:
                        return "".join(event.delta for event in events if event.type.endswith("text.delta"))

                assert await anyio.to_thread.run_sync(said) == "Rome is warmer."
    assert server.refusals == []


async def test_the_client_raises_its_own_errors() -> None:
    dangling = [
        USER,
        {"type": "function_call", "call_id": "call_a", "name": "weather", "arguments": "{}"},
        USER,
    ]
    reference = [{"type": "item_reference", "id": "msg_1"}, USER]
    server = ResponsesServer(faults={2: Status(429, retry_after="0")}, api_key="key")
    async with client_of(server) as client:
        create = partial(client.responses.create, model="m", store=False)
        with pytest.raises(openai.BadRequestError, match="No tool output found for function call call_a"):
            await create(input=dangling)
        with pytest.raises(openai.NotFoundError, match="Items are not persisted"):
            await create(input=reference)
        with pytest.raises(openai.RateLimitError):
            await create(input=[USER])
        with pytest.raises(openai.AuthenticationError):
            await client.with_options(api_key="other").responses.create(model="m", input=[USER])
        counted = await client.responses.input_tokens.count(model="m", input=[USER])
    assert counted.input_tokens > 0
    assert [refusal.rule for refusal in server.refusals] == ["OAR-01", "OAR-05"]


@pytest.mark.parametrize(
    ("turn", "fault"),
    [
        (ANSWER, ErrorInStream(after_events=4, message="Overloaded now")),
        (Turn(Say("a"), stop="failed"), None),
    ],
)
async def test_an_error_inside_a_stream_reaches_the_client(turn: Turn, fault: ErrorInStream | None) -> None:
    server = ResponsesServer(Script([turn]), faults={0: fault} if fault else None)
    async with client_of(server) as client:
        if fault:
            with pytest.raises(RuntimeError, match="Overloaded now"):
                await output(client, {"model": "m", "input": [USER]}, streamed=True)
        else:
            response = await client.responses.create(model="m", input=[USER])
            assert (response.status, response.error.code) == ("failed", "server_error")


async def test_the_turn_of_a_stream_that_was_cut_is_served_again_to_the_next_request() -> None:
    server = ResponsesServer(Script([ANSWER]), faults={0: Disconnect(after_bytes=200)})
    ask: Json = {"model": "m", "input": [USER], "store": False}
    async with client_of(server) as client:
        with pytest.raises(openai.APIError):
            await output(client, ask, streamed=True)
        assert (await output(client, ask, streamed=True))[0]["content"][0]["text"] == "Rome is warmer."


def test_every_event_and_response_validates_against_the_types_of_the_vendor() -> None:
    event_type: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)  # Any: a union of all events
    wire = ResponsesWire(BOUND)
    for turn in (*TURNS, Turn(Say("a"), stop="max_output_tokens"), Turn(Say("a"), stop="failed")):
        told = [
            json.loads(event.split(b"data: ", 1)[1])
            for event in wire.encode_events(turn, STATELESS | {"input": "u"}, 0)
        ]
        assert [event_type.validate_python(event).type for event in told] == [event["type"] for event in told]
        assert [event["sequence_number"] for event in told] == list(range(len(told)))
        Response.model_validate_json(wire.encode_response(turn, STATELESS | {"input": "u"}, 0))


# ---- our decoder and encoder


def sent(history: list[Message], **more: Any) -> Json:  # any argument of `render`
    rendered = render(History(history), Ledger(), dialect("responses"), **{"binding": HERE, **more})
    body: Json = json.loads(encode(rendered, model="m", stream=True))
    return body


TURNS = [
    CALLS,
    Turn(Redacted(), Call("weather", {"city": "Oslo"}), Think("and"), Call("weather", {})),
    Turn(Think("Hm."), Think(""), Say("Rome.")),
    Turn(Say("Rome."), Call("weather", raw="")),
    Turn(Call("weather", {"city": "\u65e5\u672c \U0001f600"}), whole_calls=True, extra={"zzz": 1}),
]


@pytest.mark.requirement("U-02", "U-03")
@pytest.mark.parametrize("turn", TURNS)
def test_streamed_and_complete_answers_decode_equally(turn: Turn) -> None:
    request = {**STATELESS, "input": [USER]}
    wire = ResponsesWire(ResponsesSettings())
    streamed, whole = decode(dialect("responses"), HERE), decode(dialect("responses"), HERE, stream=False)
    for event in wire.encode_events(turn, request, 0):
        streamed.feed(event)
    whole.feed(wire.encode_response(turn, request, 0))
    assert streamed.close() == whole.close()
    assert streamed.usage == whole.usage
    assert len(whole.close().calls) == len(turn.calls)


@pytest.mark.requirement("PROMISE-1", "PROMISE-4")
@pytest.mark.parametrize("turn", TURNS)
def test_decoded_reasoning_is_sent_only_to_its_maker(turn: Turn) -> None:
    history = [Message("user", [Text("u")])]
    decoder = decode(dialect("responses"), HERE)
    for event in ResponsesWire(BOUND).encode_events(turn, sent(history), 0):
        decoder.feed(event)
    message = decoder.close()
    history += [message, Message("tool", [ToolResult(call.id, "21 C") for call in message.calls])]
    history += [Message("user", [Text("go on")])]
    body = sent(history)
    thoughts = [part for part in turn.parts if isinstance(part, Think | Redacted)]
    assert validate(json.dumps(body).encode(), "openai_responses", settings=BOUND) is None
    assert len([item for item in body["input"] if item["type"] == "reasoning"]) == len(thoughts)
    assert len([block for block in message.blocks if isinstance(block, Thinking)]) == len(thoughts)
    for other in (
        None,
        Binding("here", "openai_responses", "https://x.example", "account-2", "m"),
        Binding("b", "b"),
    ):
        stranger = sent(history, binding=other)
        assert validate(json.dumps(stranger).encode(), "openai_responses", settings=BOUND) is None
        assert not [item for item in stranger["input"] if item["type"] == "reasoning"]
