"""inspect-ai: a model's own loop of generating and running tools."""

import working
from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.tool import Tool, tool
from working import QUESTION, Turn, serve


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


async def prepared(url: str, stream: bool) -> Turn:
    model = get_model("openai-api/stub/model-1", base_url=url, api_key="none", stream=stream)

    async def turn() -> str:
        _, output = await model.generate_loop([ChatMessageUser(content=QUESTION)], tools=[search()])
        return output.completion

    return turn


serve(prepared)
