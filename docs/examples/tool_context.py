from dataclasses import dataclass, field

import anyio

from actors import Runtime, Tool, ToolContext, tool
from actors.testing import AnthropicServer, Call, Say, Turn, serve


@dataclass
class Bank:
    """The dependencies that the program passes as `open(deps=...)`."""

    paid: dict[str, int] = field(default_factory=dict)


@tool(effects="idempotent", resources=lambda given: str(given["to"]))
async def pay(to: str, amount: int, context: ToolContext[Bank]) -> str:
    """Pay a person."""
    await context.progress(f"paying {to}", 0.5)
    if context.idempotency_key not in context.deps.paid:  # a repeated call pays once
        context.deps.paid[context.idempotency_key] = amount
    return f"{to} has {amount}"


@tool(effects="pure", timeout=0.1)
def count(to: str, context: ToolContext[Bank]) -> int:
    """Count until the call is cancelled."""
    number = 0
    while not context.cancelled:  # a function in a thread has to poll for cancellation
        number += 1
    return -1


SHOW = Tool.external("show", "Show a text to the user.", {"type": "object", "properties": {}}, read_only=True)

SCRIPT = [
    Turn(
        Call("pay", {"to": "Ada", "amount": 5}),
        Call("pay", {"to": "Ada", "amount": 7}),
        Call("count", {"to": "Ada"}),
    ),
    Turn(Say("Paid.")),
]


async def main() -> None:
    print(SHOW.is_external, SHOW.effects, SHOW.approval)
    server, bank = AnthropicServer(SCRIPT), Bank()
    async with serve(server), Runtime(environ={"ANTHROPIC_BASE_URL": server.base_url}) as runtime:
        session = await runtime.open("anthropic:claude-sonnet-5", tools=[pay, count], deps=bank)
        async with session.stream("Pay Ada twice.") as events:
            async for event in events:
                if event.type == "tool_progress":
                    print(f"{event.message}: {event.fraction:.0%}")
        for call in (await session.ledger()).interactions():
            assert call.completion is not None
            print(call.tool, call.completion.content)
    print(sum(bank.paid.values()))


anyio.run(main)
