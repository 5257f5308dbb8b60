"""Run turns with the client litellm and a hand-written tool loop."""

from typing import Any

import litellm
from litellm.llms.openai.chat.gpt_transformation import OpenAIGPTConfig
from working import TOOLS, Histories, Turn, execute_orders, run_tool_loop

litellm.telemetry = False


async def prepare_turn(url: str, stream: bool) -> Turn:
    asked = {"model": "openai/model-1", "api_base": url, "api_key": "none", "tools": TOOLS, "stream": stream}

    async def complete(messages: list[Any]) -> dict[str, Any]:
        answer = await litellm.acompletion(messages=messages, **asked)
        if stream:
            answer = litellm.stream_chunk_builder([chunk async for chunk in answer], messages=messages)
        return answer.choices[0].message.model_dump(exclude_none=True)

    return lambda: run_tool_loop(complete)


def to_wire(messages: list[Any]) -> Any:
    return OpenAIGPTConfig().transform_request("model-1", messages, {}, {}, {})["messages"]


execute_orders(prepare_turn, Histories(list, to_wire))
