"""pydantic-ai: an agent with one tool."""

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from working import QUESTION, Turn, search, serve


async def prepared(url: str, stream: bool) -> Turn:
    model = OpenAIChatModel("model-1", provider=OpenAIProvider(base_url=url, api_key="none"))
    agent = Agent(model, tools=[search])

    async def turn() -> str:
        return (await agent.run(QUESTION)).output

    async def streamed() -> str:
        async with agent.run_stream(QUESTION) as answer:
            return await answer.get_output()

    return streamed if stream else turn


serve(prepared)
