"""autogen: an AssistantAgent for each conversation."""

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from working import QUESTION, Turn, search, serve

INFO = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "structured_output": False,
    "family": "unknown",
}


async def prepared(url: str, stream: bool) -> Turn:
    client = OpenAIChatCompletionClient(model="model-1", base_url=url, api_key="none", model_info=INFO)

    async def turn() -> str:
        agent = AssistantAgent(
            "agent",
            client,
            tools=[search],
            model_client_stream=stream,
            reflect_on_tool_use=True,
            system_message=None,
        )
        done = await agent.run(task=QUESTION)
        return str(done.messages[-1].content)

    return turn


serve(prepared)
