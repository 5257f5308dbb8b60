"""Run turns with strands, with one agent per conversation and one client for all agents."""

import json
from typing import Any

from openai import AsyncOpenAI
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from working import QUESTION, Histories, Turn, execute_orders, search


async def prepare_turn(url: str, stream: bool) -> Turn:
    client = AsyncOpenAI(base_url=url, api_key="none")
    offered = tool(search)

    async def turn() -> str:
        model = OpenAIModel(client=client, model_id="model-1", stream=stream)
        agent = Agent(model=model, tools=[offered], callback_handler=None)
        return str(await agent.invoke_async(QUESTION)).rstrip("\n")

    return turn


def to_messages(messages: list[Any]) -> list[Any]:
    return [_to_message(message) for message in messages]


def _to_message(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] == "tool":
        told = {
            "toolUseId": message["tool_call_id"],
            "status": "success",
            "content": [{"text": message["content"]}],
        }
        return {"role": "user", "content": [{"toolResult": told}]}
    said: list[Any] = [{"text": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls", ()):
        given = json.loads(call["function"]["arguments"])
        said.append({"toolUse": {"toolUseId": call["id"], "name": call["function"]["name"], "input": given}})
    return {"role": message["role"], "content": said}


execute_orders(prepare_turn, Histories(to_messages, OpenAIModel.format_request_messages))
