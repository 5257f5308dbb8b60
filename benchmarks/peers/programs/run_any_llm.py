"""Run turns with the client any-llm and a hand-written tool loop."""

from typing import Any

from any_llm import AnyLLM
from working import TOOLS, Histories, Turn, execute_orders, run_tool_loop


async def prepare_turn(url: str, stream: bool) -> Turn:
    client = AnyLLM.create("openai", api_key="none", api_base=url)

    async def complete(messages: list[Any]) -> dict[str, Any]:
        answer = await client.acompletion(model="model-1", messages=messages, tools=TOOLS, stream=stream)
        if not stream:
            return answer.choices[0].message.model_dump(exclude_none=True)
        return await _join_chunks(answer)

    return lambda: run_tool_loop(complete)


async def _join_chunks(chunks: Any) -> dict[str, Any]:
    """Return the message of a stream. The server sends each call in one delta, so calls need not be joined."""
    text, calls = "", []
    async for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            calls += [call.model_dump(exclude_none=True) for call in choice.delta.tool_calls or ()]
    for call in calls:
        call.pop("index", None)
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


execute_orders(prepare_turn, Histories(list, lambda messages: messages))  # any-llm sends messages unchanged
