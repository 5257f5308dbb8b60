"""strands: an agent for each conversation, over one client."""

from openai import AsyncOpenAI
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from working import QUESTION, Turn, search, serve


async def prepared(url: str, stream: bool) -> Turn:
    client = AsyncOpenAI(base_url=url, api_key="none")
    offered = tool(search)

    async def turn() -> str:
        model = OpenAIModel(client=client, model_id="model-1", stream=stream)
        agent = Agent(model=model, tools=[offered], callback_handler=None)
        return str(await agent.invoke_async(QUESTION)).rstrip("\n")

    return turn


serve(prepared)
