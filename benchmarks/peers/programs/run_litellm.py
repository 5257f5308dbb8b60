"""Run turns with litellm, a client, in a hand-written loop."""

from typing import Any

import litellm
from litellm.llms.openai.chat.gpt_transformation import OpenAIGPTConfig
from working import TOOLS, Histories, Turn, by_loop, serve

litellm.telemetry = False


async def prepare(url: str, stream: bool) -> Turn:
    asked = {"model": "openai/model-1", "api_base": url, "api_key": "none", "tools": TOOLS, "stream": stream}

    async def complete(messages: list[Any]) -> dict[str, Any]:
        answer = await litellm.acompletion(messages=messages, **asked)
        if stream:
            answer = litellm.stream_chunk_builder([chunk async for chunk in answer], messages=messages)
        return answer.choices[0].message.model_dump(exclude_none=True)

    return lambda: by_loop(complete)


def to_wire(messages: list[Any]) -> Any:
    return OpenAIGPTConfig().transform_request("model-1", messages, {}, {}, {})["messages"]


serve(prepare, Histories(list, to_wire))
