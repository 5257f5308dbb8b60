from typing import Any, Literal

import anyio

from actors import Runtime, Session, subagent, tool
from actors.testing import Call, OpenAIServer, Say, Turn, serve


@tool(effects="idempotent")
async def refund(order: str) -> str:
    """Refund an order."""
    return f"{order} has been refunded"


@tool(effects="pure")
async def opening_hours(day: str) -> str:
    """Return the opening hours of the shop."""
    return f"{day}: 9 to 17"


def on_topic(words: str) -> bool:
    """Input guardrail: reject messages about homework."""
    return "homework" not in words


def without_password(arguments: dict[str, Any]) -> Literal["allow", "deny"]:
    """Tool guardrail: deny tasks that mention a password."""
    return "deny" if "password" in arguments["task"] else "allow"


refunds = subagent(
    "refunds",
    "Knows all about refunds. Delegate every question about money to it.",
    system="You refund orders. Ask only for the number of the order.",
    tools=[refund],
    approval=without_password,
)


async def say(session: Session, words: str) -> None:
    if not on_topic(words):
        print("-- rejected: this shop does no homework")
        return
    async with session.stream(words) as events:
        async for event in events:
            if event.type == "tool_call":
                print(f"-- {event.name} {event.arguments}")
            elif event.type == "complete":
                print(event.result.text)


TURNS = [
    Turn(Call("opening_hours", {"day": "Sunday"})),
    Turn(Say("On Sunday from 9 to 17.")),
    Turn(Call("refunds", {"task": "Refund order A-7."})),
    Turn(Call("refund", {"order": "A-7"})),  # from the specialist
    Turn(Say("A-7 has been refunded.")),  # the specialist's answer
    Turn(Say("Done: A-7 has been refunded.")),
]


async def main() -> None:
    server = OpenAIServer(TURNS)
    async with serve(server), Runtime(environ={"OPENAI_BASE_URL": server.base_url}) as runtime:
        session = await runtime.open(
            "openai:gpt-5.2",
            system="You are the help desk of a shop. Delegate refunds to the specialist.",
            tools=[opening_hours, refunds],
        )
        await say(session, "Are you open on Sunday?")
        await say(session, "Do my homework.")
        await say(session, "Please refund A-7.")
        print(len(await session.history()), "messages in the conversation")


anyio.run(main)
