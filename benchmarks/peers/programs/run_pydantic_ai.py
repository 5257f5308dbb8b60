"""Run turns with a pydantic-ai agent that has one tool."""

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from working import QUESTION, Histories, Turn, execute_orders, search


async def prepare_turn(url: str, stream: bool) -> Turn:
    model = OpenAIChatModel("model-1", provider=OpenAIProvider(base_url=url, api_key="none"))
    agent = Agent(model, tools=[search])

    async def turn() -> str:
        return (await agent.run(QUESTION)).output

    async def turn_streamed() -> str:
        async with agent.run_stream(QUESTION) as answer:
            return await answer.get_output()

    return turn_streamed if stream else turn


MODEL = OpenAIChatModel("model-1", provider=OpenAIProvider(base_url="http://127.0.0.1:9/v1", api_key="none"))


def to_messages(messages: list[Any]) -> list[Any]:
    return [_to_message(message) for message in messages]


def _to_message(message: dict[str, Any]) -> ModelRequest | ModelResponse:
    match message["role"]:
        case "user":
            return ModelRequest([UserPromptPart(message["content"])])
        case "tool":
            return ModelRequest([ToolReturnPart("search", message["content"], message["tool_call_id"])])
    said = [TextPart(message["content"])] if message.get("content") else []
    calls = [
        ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"])
        for call in message.get("tool_calls", ())
    ]
    return ModelResponse([*said, *calls])


execute_orders(
    prepare_turn, Histories(to_messages, lambda said: MODEL._map_messages(said, ModelRequestParameters()))
)
