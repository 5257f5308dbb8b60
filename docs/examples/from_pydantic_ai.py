from dataclasses import dataclass

import anyio
from pydantic import BaseModel, Field

from actors import Runtime, ToolContext, tool
from actors.testing import AnthropicServer, Call, Say, Turn, serve


@dataclass
class Support:
    """The dependencies of the tools."""

    customer: int
    balances: dict[int, float]


class Advice(BaseModel):
    advice: str
    block_card: bool
    risk: int = Field(ge=0, le=10)


@tool(effects="pure")
async def balance(include_pending: bool, context: ToolContext[Support]) -> str:
    """Return the balance of the customer's account."""
    support = context.deps
    if not include_pending:
        raise ValueError("The balance is only known including pending payments; set include_pending.")
    return f"${support.balances[support.customer]:.2f}"


TURNS = [
    Turn(Call("balance", {"include_pending": False})),
    Turn(Call("balance", {"include_pending": True})),
    Turn(Say('{"advice": "Your card is fine.", "block_card": false, "risk": 12}')),
    Turn(Say('{"advice": "Your balance is $123.45.", "block_card": false, "risk": 1}')),
]


async def main() -> None:
    server = AnthropicServer(TURNS)
    async with serve(server), Runtime(environ={"ANTHROPIC_BASE_URL": server.base_url}) as runtime:
        session = await runtime.open(
            "anthropic:claude-sonnet-5",
            system="You are a support agent of our bank. Judge the risk of each query.",
            tools=[balance],
            deps=Support(customer=123, balances={123: 123.45}),
        )
        result = await session.ask("What is my balance?", output=Advice, max_corrections=2)
        print(repr(result.output), "after", result.rounds, "rounds")
        for call in (await session.ledger()).interactions():
            assert call.completion is not None
            print(call.tool, call.status, call.completion.content or call.completion.error)


anyio.run(main)
