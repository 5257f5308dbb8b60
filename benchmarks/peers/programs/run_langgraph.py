"""Run turns with langchain's agent, which is a langgraph graph of a model and its tools."""

from langchain.agents import create_agent
from langchain_core.messages import convert_to_messages
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from working import QUESTION, Histories, Turn, execute_orders, search


async def prepare_turn(url: str, stream: bool) -> Turn:
    model = ChatOpenAI(model="model-1", base_url=url, api_key="none", streaming=stream)
    agent = create_agent(model, [tool(search)])

    async def turn() -> str:
        state = await agent.ainvoke({"messages": [("user", QUESTION)]})
        return str(state["messages"][-1].content)

    return turn


MODEL = ChatOpenAI(model="model-1", base_url="http://127.0.0.1:9/v1", api_key="none")

execute_orders(
    prepare_turn, Histories(convert_to_messages, lambda said: MODEL._get_request_payload(said)["messages"])
)
