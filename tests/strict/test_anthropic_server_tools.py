"""Check server tools, paused turns, system messages and threads on the strict Anthropic server."""

import json
from typing import Any

import anthropic
import anyio
import pytest

from actors.core.check import check
from actors.core.dialects.profiles import ANTHROPIC
from actors.strict.rules import validate
from actors.testing import AnthropicServer, AnthropicSettings, Builtin, Call, Say, Script, Think, Turn, serve
from tests.rules.anthropic import (
    MCP_CALL,
    MCP_RESULT,
    MID,
    SERVER_CALL,
    SERVER_RESULT,
    TOOL,
    answer,
    assistant,
    body,
    use,
    user,
)

pytestmark = pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")

Json = dict[str, Any]  # a body under test may be anything
THOUGHT: Json = {"type": "thinking", "thinking": "t", "signature": "c2ln"}
COMPACTED: Json = {"type": "compaction", "content": "What was said before."}
MANUAL: Json = {"type": "enabled", "budget_tokens": 2048}
SAMPLES: dict[str, Json] = {
    "a paused turn is resumed as it was": body(user("u"), assistant(SERVER_CALL)),
    "a paused turn may end in a result": body(
        user("u"), assistant("Let me see.", SERVER_CALL, SERVER_RESULT)
    ),
    "a paused turn may end in a call of an MCP server": body(user("u"), assistant(MCP_CALL)),
    "the answer of a paused turn follows it": body(
        user("u"), assistant(SERVER_CALL), assistant(SERVER_RESULT, "Done."), user("v")
    ),
    "a call of the client beside one of the server": body(
        user("u"), assistant(SERVER_CALL, use()), user(answer()), assistant(SERVER_RESULT, "Done."), user("v")
    ),
    "calls of an MCP server": body(user("u"), assistant(MCP_CALL, MCP_RESULT, "Done."), user("v")),
    "a system message behind a result": body(
        user("u"), assistant(use()), user(answer()), MID, assistant("t"), user("v")
    ),
    "a system message at the end": body(user("u"), MID),
    "a system message behind a server tool": body(
        user("u"), assistant(SERVER_CALL, SERVER_RESULT), MID, assistant("t"), user("v")
    ),
    "a compacted conversation": body(user("u"), assistant(COMPACTED, "Well."), user("v")),
    "a conversation that begins with its summary": body(assistant(COMPACTED, "Well."), user("v")),
    "thinking behind a summary": body(user("u"), assistant(COMPACTED, THOUGHT, "Well."), user("v")),
    "a summary before manual thinking": body(
        user("u"), assistant(COMPACTED, THOUGHT, use()), user(answer()), thinking=MANUAL
    ),
    "two toolsets without names": body(
        user("u"),
        tools=[
            {"type": "mcp_toolset", "mcp_server_name": "a"},
            {"type": "mcp_toolset", "mcp_server_name": "b"},
        ],
    ),
    "a found tool in the result of a search": body(
        user("u"), assistant(use()), user(answer(content=[{"type": "tool_reference", "tool_name": "read"}]))
    ),
    "a document of the assistant's": body(
        user("u"),
        assistant({"type": "document", "source": {"type": "url", "url": "https://a.test/a.pdf"}}, "t"),
        user("v"),
    ),
    "the rest of a thread": body(user(answer()), thread={"type": "continue", "previous_message_id": "msg_a"}),
    "the rest of a paused thread": body(thread={"type": "continue", "previous_message_id": "msg_a"}),
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_requests_that_the_real_host_accepted_are_accepted_in_both_modes(sample: str) -> None:
    settings = AnthropicSettings(signatures="trust")
    raw = json.dumps(SAMPLES[sample]).encode()
    assert validate(raw, "anthropic", settings=settings) is None
    assert validate(raw, "anthropic", mode="hosted", settings=settings) is None


JUDGED = [
    name for name in SAMPLES if "thread" not in name and "begins with" not in name and "document" not in name
]


@pytest.mark.parametrize("sample", JUDGED)
def test_the_checker_accepts_conversations_with_server_tools(sample: str) -> None:
    assert [str(fault) for fault in check(json.dumps(SAMPLES[sample]).encode(), ANTHROPIC)] == []


@pytest.mark.parametrize(
    ("rule", "refused"),
    [
        ("ANT-04", body(user("u"), assistant(SERVER_CALL, use()), assistant(SERVER_RESULT, "t"), user("v"))),
        ("ANT-10", body(user("u"), assistant(SERVER_CALL, use()), user(answer(), "v"))),
        ("ANT-26", body(user("u"), assistant("t"), assistant("t"), user("v"))),
        ("ANT-27", body(user("u"), assistant("t"))),
        ("ALL-02", body(user("u"), MID, user("v"))),
        ("ALL-02", body(user("u"), assistant(use()), MID, user(answer()))),
    ],
)
def test_the_checker_finds_structure_faults_next_to_server_tool_blocks(rule: str, refused: Json) -> None:
    assert rule in {fault.rule for fault in check(json.dumps(refused).encode(), ANTHROPIC)}


@pytest.mark.parametrize(
    ("rule", "refused"),
    [
        ("ANT-01", body(user("u"), assistant(SERVER_CALL, use()), assistant(SERVER_RESULT, "t"), user("v"))),
        ("ANT-04", body(user("u"), assistant(use()), MID, user(answer()))),
        ("ANT-10", body(user("u"), assistant(SERVER_CALL, use()), user(answer(), "v"))),
        ("ANT-11", body(user("u"), assistant(SERVER_CALL, SERVER_RESULT, SERVER_RESULT), user("v"))),
        (
            "ANT-11",
            body(user("u"), assistant(MCP_CALL, {**SERVER_RESULT, "tool_use_id": "mcptoolu_a"}), user("v")),
        ),
        ("ANT-24", body(assistant("t"), user("v"))),
        ("ANT-27", body(user("u"), assistant("t"))),
        ("ANT-24", body(MID, user("u"))),
        ("ANT-S07", body(user("u"), assistant("t"), MID)),
        ("ANT-S04", body(user("u"), thread={"type": "resume"})),
    ],
)
def test_structure_faults_next_to_server_tool_blocks_are_rejected(rule: str, refused: Json | None) -> None:
    if refused is None:
        refused = body(user("u"), thread={"type": "resume"})
        rule = "ANT-S04"
    refusal = validate(
        json.dumps(refused).encode(), "anthropic", settings=AnthropicSettings(signatures="trust")
    )
    assert refusal is not None
    assert refusal.rule == rule


def test_a_request_cannot_continue_an_unknown_thread() -> None:
    alone = body(user("u"), thread={"type": "continue", "previous_message_id": "msg_a"})
    refusal = validate(json.dumps(alone).encode(), "anthropic")
    assert refusal is not None
    assert (refusal.rule, refusal.status, refusal.code) == ("ANT-S21", 404, "thread_not_found")


@pytest.mark.anyio
async def test_a_thread_of_the_sdk_sends_only_new_messages_and_the_model_sees_all_messages() -> None:
    asks: list[Json] = []

    def model(request: Json) -> Turn:
        asks.append(request)
        if len(asks) == 1:
            return Turn(Think("Hm."), Call("read", {}, id="toolu_a"))
        return Turn(Say("Fine."))

    server = AnthropicServer(Script(model))
    with anyio.fail_after(60):
        async with (
            serve(server),
            anthropic.AsyncAnthropic(base_url=server.base_url, api_key="key", max_retries=0) as client,
        ):
            tools: Any = [TOOL]  # the SDK's own type is narrower than a dictionary
            thread = client.beta.messages.thread(model="m", max_tokens=100, tools=tools, system="Be brief.")
            first = await thread.send({"role": "user", "content": "u"})
            assert first.stop_reason == "tool_use"
            results: Any = user(answer())
            second = await thread.send(results)
            async with thread.stream({"role": "user", "content": "And now?"}) as stream:
                third = await stream.get_final_message()
    assert [block.type for block in second.content] == ["text"]
    assert third.stop_reason == "end_turn"
    assert server.refusals == []
    assert [len(json.loads(exchange.body)["messages"]) for exchange in server.requests] == [1, 1, 1]
    assert [len(ask["messages"]) for ask in asks] == [1, 3, 5]
    assert all(ask["tools"] == [TOOL] and ask["system"] == "Be brief." for ask in asks)


@pytest.mark.anyio
async def test_the_sdk_raises_the_errors_of_threads() -> None:
    server = AnthropicServer()
    with anyio.fail_after(60):
        async with (
            serve(server),
            anthropic.AsyncAnthropic(base_url=server.base_url, api_key="key", max_retries=0) as client,
        ):
            ask: Any = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "u"}]}
            made = await client.beta.messages.create(**ask, thread={"type": "create"})
            behind: Any = {"type": "continue", "previous_message_id": made.id}
            with pytest.raises(anthropic.BadRequestError) as changed:
                await client.beta.messages.create(**ask, thread=behind, system="Another.")
            await client.beta.messages.create(**ask, thread=behind)
            with pytest.raises(anthropic.BadRequestError) as twice:
                await client.beta.messages.create(**ask, thread=behind)
            lost: Any = {"type": "continue", "previous_message_id": "msg_never"}
            with pytest.raises(anthropic.NotFoundError) as unknown:
                await client.beta.messages.create(**ask, thread=lost)
    bodies: list[Any] = [error.value.body for error in (changed, twice, unknown)]
    assert [told["error"]["details"]["error_code"] for told in bodies] == [
        "thread_fingerprint_mismatch",
        "thread_already_continued",
        "thread_not_found",
    ]


@pytest.mark.anyio
async def test_the_sdk_counts_tokens_of_a_request_with_tools() -> None:
    server = AnthropicServer()
    with anyio.fail_after(60):
        async with (
            serve(server),
            anthropic.AsyncAnthropic(base_url=server.base_url, api_key="key", max_retries=0) as client,
        ):
            ask: Any = {
                "model": "m",
                "messages": body(user("u"), assistant(use()), user(answer()))["messages"],
            }
            read: Any = TOOL  # the SDK's own type is narrower than a dictionary
            search: Any = {"type": "web_search_20260318", "name": "web_search"}
            counted = await client.messages.count_tokens(**ask, tools=[read, search])
            edited = await client.beta.messages.count_tokens(
                **ask,
                tools=[read, search],
                context_management={"edits": [{"type": "clear_tool_uses_20250919"}]},
            )
            with pytest.raises(anthropic.BadRequestError, match="Tool names must be unique"):
                await client.messages.count_tokens(**ask, tools=[read, read])
    assert counted.input_tokens > 0
    assert edited.context_management is not None
    assert edited.context_management.original_input_tokens == edited.input_tokens


def test_the_server_answers_with_blocks_of_its_own_tools() -> None:
    server = AnthropicServer([Turn(Builtin(SERVER_CALL), stop="pause_turn")])
    told = json.loads(server._wire.encode_response(server.script.turn({}), {"model": "m"}, 0))
    assert (told["stop_reason"], told["content"]) == ("pause_turn", [SERVER_CALL])
