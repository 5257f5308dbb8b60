"""openai-agents: its runner over Chat Completions. Tracing would send every turn to OpenAI."""

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from working import QUESTION, Turn, search, serve

set_tracing_disabled(True)


async def prepared(url: str, stream: bool) -> Turn:
    model = OpenAIChatCompletionsModel("model-1", AsyncOpenAI(base_url=url, api_key="none"))
    agent = Agent("agent", model=model, tools=[function_tool(search)])

    async def turn() -> str:
        return str((await Runner.run(agent, QUESTION)).final_output)

    async def streamed() -> str:
        running = Runner.run_streamed(agent, QUESTION)
        async for _ in running.stream_events():
            pass
        return str(running.final_output)

    return streamed if stream else turn


serve(prepared)
