"""Run turns with any-llm, a client, in a hand-written loop."""

from typing import Any

from any_llm import AnyLLM
from working import TOOLS, Histories, Turn, by_loop, serve


async def prepare(url: str, stream: bool) -> Turn:
    client = AnyLLM.create("openai", api_key="none", api_base=url)

    async def complete(messages: list[Any]) -> dict[str, Any]:
        answer = await client.acompletion(model="model-1", messages=messages, tools=TOOLS, stream=stream)
        if not stream:
            return answer.choices[0].message.model_dump(exclude_none=True)
        return await _whole(answer)

    return lambda: by_loop(complete)


async def _whole(chunks: Any) -> dict[str, Any]:
    """Build the message of a stream; the server sends each call in one delta."""
    text, calls = "", []
    async for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            calls += [call.model_dump(exclude_none=True) for call in choice.delta.tool_calls or ()]
    for call in calls:
        call.pop("index", None)
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


serve(prepare, Histories(list, lambda messages: messages))  # any-llm sends messages unchanged
