"""Run turns with the openai-agents runner over Chat Completions. Tracing is off, because it reports to OpenAI."""

from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from agents.models.chatcmpl_converter import Converter
from openai import AsyncOpenAI
from working import QUESTION, Histories, Turn, execute_orders, search

set_tracing_disabled(True)


async def prepare_turn(url: str, stream: bool) -> Turn:
    model = OpenAIChatCompletionsModel("model-1", AsyncOpenAI(base_url=url, api_key="none"))
    agent = Agent("agent", model=model, tools=[function_tool(search)])

    async def turn() -> str:
        return str((await Runner.run(agent, QUESTION)).final_output)

    async def turn_streamed() -> str:
        running = Runner.run_streamed(agent, QUESTION)
        async for _ in running.stream_events():
            pass
        return str(running.final_output)

    return turn_streamed if stream else turn


def to_messages(messages: list[Any]) -> list[Any]:
    items: list[Any] = []
    for message in messages:
        if message["role"] == "tool":
            output = {"call_id": message["tool_call_id"], "output": message["content"]}
            items.append({"type": "function_call_output", **output})
            continue
        if message.get("content"):
            items.append(_to_item(message))
        for call in message.get("tool_calls", ()):
            items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
    return items


def _to_item(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as an input item of the next run."""
    if message["role"] == "user":
        return {"role": "user", "content": message["content"]}
    text = {"type": "output_text", "text": message["content"], "annotations": [], "logprobs": []}
    kind = {"type": "message", "role": "assistant", "status": "completed"}
    return {"id": "__fake_id__", **kind, "content": [text]}


execute_orders(prepare_turn, Histories(to_messages, Converter.items_to_messages))
