from typing import Any, Literal

import anyio

from actors import Runtime, tool
from actors.events import ApprovalDecision
from actors.testing import AnthropicServer, Call, Say, Turn, serve


def rule(arguments: dict[str, Any]) -> Literal["allow", "ask"]:
    """Allow small refunds and ask for approval of large ones."""
    return "allow" if arguments["euros"] < 50 else "ask"


@tool(approval=rule)
async def refund(order: str, euros: float) -> str:
    """Refund an order."""
    return f"{order}: {euros:g} euros paid back"


SCRIPT = [
    Turn(
        Call("refund", {"order": "A-7", "euros": 20}),
        Call("refund", {"order": "B-2", "euros": 900}),
        Call("refund", {"order": "C-1", "euros": 80}),
    ),
    Turn(Say("Two were paid back. B-2 was not: it is older than a year.")),
]


async def main() -> None:
    server = AnthropicServer(SCRIPT)
    async with serve(server), Runtime(environ={"ANTHROPIC_BASE_URL": server.base_url}) as runtime:
        session = await runtime.open("anthropic:claude-sonnet-5", tools=[refund])
        answer = await session.ask("Pay them back, please.")
        print(answer.status)
        for waiting in session.pending:  # from any task, at any later time
            print("May it run?", waiting.call.arguments)

        large, middle = session.pending
        answer = await session.ask(
            approvals={
                large.call.id: ApprovalDecision("deny", reason="older than a year"),
                middle.call.id: ApprovalDecision("allow", arguments={"order": "C-1", "euros": 75}),
            }
        )
        print(answer.status, answer.text)
        for call in (await session.ledger()).interactions():
            assert call.completion is not None
            print(call.status, call.completion.error or call.completion.content)


anyio.run(main)
