"""Check stored responses and conversations of the Responses server with OpenAI's SDK."""

from typing import Any

import openai
import pytest

from actors.testing import Call, ResponsesServer, Say, Script, Think, Turn
from tests.strict.test_responses import client_of

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]

Json = dict[str, Any]  # dumped objects of the SDK

TOOL: Json = {"type": "function", "name": "read", "parameters": {"type": "object"}, "strict": False}
CALLED = Turn(Think("Hm."), Call("read", {"path": "a"}))


def gave(call_id: str) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": "r"}


async def test_a_stored_response_can_be_retrieved_and_deleted() -> None:
    server = ResponsesServer(Script([Turn(Say("a")), Turn(Say("b"))]))
    async with client_of(server) as client:
        kept = await client.responses.create(model="m", input="u")
        assert (await client.responses.retrieve(kept.id)).output_text == "a"
        await client.responses.delete(kept.id)
        with pytest.raises(openai.NotFoundError, match=f"Response with id '{kept.id}' not found"):
            await client.responses.retrieve(kept.id)
        with pytest.raises(openai.BadRequestError, match="Previous response"):
            await client.responses.create(model="m", input="u", previous_response_id=kept.id)
        unkept = await client.responses.create(model="m", input="u", store=False)
        with pytest.raises(openai.NotFoundError):
            await client.responses.delete(unkept.id)
    assert [refusal.rule for refusal in server.refusals] == ["OAR-S16", "OAR-S12", "OAR-S16"]


async def test_the_input_of_a_response_is_listed_in_pages() -> None:
    server = ResponsesServer()
    said: list[Json] = [{"role": "user", "content": f"u{number}"} for number in range(5)]
    async with client_of(server) as client:
        kept = await client.responses.create(model="m", input=said)
        latest = [item async for item in client.responses.input_items.list(kept.id, limit=2)]
        first = await client.responses.input_items.list(kept.id, limit=2, order="asc")
    assert [item.content[0].text for item in latest] == ["u4", "u3", "u2", "u1", "u0"]
    assert [item.content[0].text for item in first.data] == ["u0", "u1"]
    assert (first.has_more, first.last_id) == (True, first.data[-1].id)
    assert server.refusals == []


async def test_only_a_background_response_can_be_cancelled() -> None:
    server = ResponsesServer()
    async with client_of(server) as client:
        behind = await client.responses.create(model="m", input="u", background=True)
        assert (await client.responses.cancel(behind.id)).id == behind.id
        at_once = await client.responses.create(model="m", input="u")
        with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
            await client.responses.cancel(at_once.id)
    assert [refusal.rule for refusal in server.refusals] == ["OAR-S17"]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_conversation_grows_with_each_response(streamed: bool) -> None:
    seen: list[Any] = []
    turns = iter([CALLED, Turn(Say("Done.")), Turn(Say("Bye."))])

    def model(request: Json) -> Turn:
        seen.append([item["type"] for item in request["input"]])
        return next(turns)

    server = ResponsesServer(Script(model))
    async with client_of(server) as client:
        conversation = await client.conversations.create(
            items=[{"type": "message", "role": "developer", "content": "Be brief."}], metadata={"a": "b"}
        )
        ask: Json = {"model": "m", "tools": [TOOL], "conversation": conversation.id}

        async def answer(**more: Any) -> Any:  # a response of the SDK's
            if not streamed:
                return await client.responses.create(**ask, **more)
            async with client.responses.stream(**ask, **more) as events:
                return await events.get_final_response()

        first = await answer(input="Read it.")
        await answer(input=[gave(first.output[-1].call_id)])
        ask["conversation"] = {"id": conversation.id}
        assert (await answer(input="Thanks.")).output_text == "Bye."
        items = [item async for item in client.conversations.items.list(conversation.id, order="asc")]
    assert seen[-1] == [
        "message",
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
        "message",
    ]
    assert [item.type for item in items] == [*seen[-1], "message"]
    assert server.refusals == []


async def test_a_conversation_can_be_retrieved_updated_and_deleted() -> None:
    server = ResponsesServer()
    async with client_of(server) as client:
        made = await client.conversations.create()
        added = await client.conversations.items.create(
            made.id, items=[{"type": "message", "role": "user", "content": "u"}]
        )
        item_id = added.data[0].id
        assert (await client.conversations.items.retrieve(item_id, conversation_id=made.id)).id == item_id
        assert (await client.conversations.update(made.id, metadata={"a": "b"})).metadata == {"a": "b"}
        assert (await client.conversations.retrieve(made.id)).metadata == {"a": "b"}
        await client.conversations.items.delete(item_id, conversation_id=made.id)
        with pytest.raises(openai.NotFoundError, match=f"Item with id '{item_id}' not found"):
            await client.conversations.items.retrieve(item_id, conversation_id=made.id)
        assert (await client.conversations.delete(made.id)).deleted
        with pytest.raises(openai.NotFoundError, match=f"Conversation with id '{made.id}' not found"):
            await client.conversations.retrieve(made.id)
        with pytest.raises(openai.NotFoundError, match="Conversation with id"):
            await client.responses.create(model="m", input="u", conversation=made.id)
        wrong: Any = [{"type": "function_call", "call_id": "call_a", "name": "read"}]
        with pytest.raises(openai.BadRequestError, match="Missing required parameter: 'input"):
            await client.conversations.create(items=wrong)
    assert [refusal.rule for refusal in server.refusals] == ["OAR-S18", "OAR-S25", "OAR-S25", "OAR-S02"]


async def test_a_conversation_and_an_earlier_response_exclude_each_other() -> None:
    server = ResponsesServer()
    async with client_of(server) as client:
        made, kept = await client.conversations.create(), await client.responses.create(model="m", input="u")
        with pytest.raises(openai.BadRequestError, match="Mutually exclusive parameters"):
            await client.responses.create(
                model="m", input="u", conversation=made.id, previous_response_id=kept.id
            )
    assert [refusal.rule for refusal in server.refusals] == ["OAR-S24"]


async def test_an_unanswered_call_in_a_conversation_is_rejected() -> None:
    server = ResponsesServer(Script([CALLED]))
    async with client_of(server) as client:
        made = await client.conversations.create()
        await client.responses.create(model="m", input="u", tools=[TOOL], conversation=made.id)
        with pytest.raises(openai.BadRequestError, match="No tool output found for function call"):
            await client.responses.create(model="m", input="And now?", conversation=made.id)
    assert [refusal.rule for refusal in server.refusals] == ["OAR-01"]


async def test_a_compacted_conversation_continues() -> None:
    server = ResponsesServer(Script([CALLED, Turn(Say("Done.")), Turn(Say("Still here."))]))
    async with client_of(server) as client:
        first = await client.responses.create(model="m", input="Read it.", tools=[TOOL])
        second = await client.responses.create(
            model="m", input=[gave(first.output[-1].call_id)], tools=[TOOL], previous_response_id=first.id
        )
        compacted = await client.responses.compact(model="m", previous_response_id=second.id)
        assert [item.type for item in compacted.output] == ["message", "compaction"]
        # The SDK uses the type of an answer for user messages too.
        kept: Any = [item.model_dump(exclude_none=True, warnings=False) for item in compacted.output]
        behind = await client.responses.create(model="m", input=[*kept, {"role": "user", "content": "v"}])
    assert compacted.object == "response.compaction"
    assert behind.output_text == "Still here."
    assert server.refusals == []


async def test_tokens_are_counted_without_a_model_and_with_tools() -> None:
    server = ResponsesServer()
    async with client_of(server) as client:
        counted = await client.responses.input_tokens.count(input="u", tools=[TOOL], instructions="Be brief.")
        with pytest.raises(openai.BadRequestError, match="Unknown parameter: 'temperature'"):
            await client.responses.input_tokens.count(input="u", extra_body={"temperature": 1})
    assert counted.input_tokens > 0
    assert [refusal.rule for refusal in server.refusals] == ["OAR-S03"]
