"""Run turns with the tool loop of an inspect-ai model."""

import json
from typing import Any

import working
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser, GenerateConfig, get_model
from inspect_ai.model._openai import messages_to_openai
from inspect_ai.tool import Tool, ToolCall, tool
from working import QUESTION, Histories, Turn, execute_orders


@tool
def search() -> Tool:
    async def execute(query: str, limit: int = 10) -> str:
        """Search the records.

        Args:
            query: Words to look for.
            limit: Most results.
        """
        return await working.search(query, limit)

    return execute


async def prepare_turn(url: str, stream: bool) -> Turn:
    config = GenerateConfig(max_connections=10_000)  # the default allows ten concurrent requests
    model = get_model("openai-api/stub/model-1", config=config, base_url=url, api_key="none", stream=stream)

    async def turn() -> str:
        _, output = await model.generate_loop([ChatMessageUser(content=QUESTION)], tools=[search()])
        return output.completion

    return turn


def to_messages(messages: list[Any]) -> list[Any]:
    return [_to_message(message) for message in messages]


def _to_message(message: dict[str, Any]) -> Any:
    match message["role"]:
        case "user":
            return ChatMessageUser(content=message["content"])
        case "tool":
            return ChatMessageTool(
                content=message["content"], tool_call_id=message["tool_call_id"], function="search"
            )
    calls = [
        ToolCall(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls", ())
    ]
    return ChatMessageAssistant(content=message.get("content") or "", tool_calls=calls or None)


execute_orders(prepare_turn, Histories(to_messages, messages_to_openai))
