"""langgraph: langchain's agent, a graph of a model and its tools."""

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from working import QUESTION, Turn, search, serve


async def prepared(url: str, stream: bool) -> Turn:
    model = ChatOpenAI(model="model-1", base_url=url, api_key="none", streaming=stream)
    agent = create_agent(model, [tool(search)])

    async def turn() -> str:
        state = await agent.ainvoke({"messages": [("user", QUESTION)]})
        return str(state["messages"][-1].content)

    return turn


serve(prepared)
