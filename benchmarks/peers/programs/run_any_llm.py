"""any-llm: a client; the loop is by hand."""

from typing import Any

from any_llm import AnyLLM
from working import TOOLS, Histories, Turn, by_loop, serve


async def prepared(url: str, stream: bool) -> Turn:
    client = AnyLLM.create("openai", api_key="none", api_base=url)

    async def complete(messages: list[Any]) -> dict[str, Any]:
        answer = await client.acompletion(model="model-1", messages=messages, tools=TOOLS, stream=stream)
        if not stream:
            return answer.choices[0].message.model_dump(exclude_none=True)
        return await _whole(answer)

    return lambda: by_loop(complete)


async def _whole(chunks: Any) -> dict[str, Any]:
    """Return the message that a stream is; the server sends each call whole."""
    text, calls = "", []
    async for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            calls += [call.model_dump(exclude_none=True) for call in choice.delta.tool_calls or ()]
    for call in calls:
        call.pop("index", None)
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


serve(prepared, Histories(list, lambda messages: messages))  # it hands on what it is given
