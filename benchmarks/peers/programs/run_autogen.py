"""Run turns with autogen, with one AssistantAgent per conversation."""

from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    UserMessage,
)
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.models.openai._openai_client import to_oai_type
from working import QUESTION, Histories, Turn, execute_orders, search

INFO = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "structured_output": False,
    "family": "unknown",
}


async def prepare_turn(url: str, stream: bool) -> Turn:
    client = OpenAIChatCompletionClient(model="model-1", base_url=url, api_key="none", model_info=INFO)

    async def turn() -> str:
        agent = AssistantAgent(
            "agent",
            client,
            tools=[search],
            model_client_stream=stream,
            reflect_on_tool_use=True,
            system_message=None,
        )
        result = await agent.run(task=QUESTION)
        return str(result.messages[-1].content)

    return turn


def to_messages(messages: list[Any]) -> list[Any]:
    return [_to_message(message) for message in messages]


def _to_message(message: dict[str, Any]) -> Any:
    match message["role"]:
        case "user":
            return UserMessage(content=message["content"], source="user")
        case "tool":
            told = {"name": "search", "content": message["content"], "call_id": message["tool_call_id"]}
            return FunctionExecutionResultMessage(content=[FunctionExecutionResult(**told, is_error=False)])
    calls = [FunctionCall(id=call["id"], **call["function"]) for call in message.get("tool_calls", ())]
    return AssistantMessage(content=calls or message["content"], source="agent")


def to_wire(messages: list[Any]) -> list[Any]:
    return [wire for message in messages for wire in to_oai_type(message)]


execute_orders(prepare_turn, Histories(to_messages, to_wire))
