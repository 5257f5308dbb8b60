from typing import Any, Literal

import anyio

from actors import Runtime, Session, subagent, tool
from actors.testing import Call, OpenAIServer, Say, Turn, serve


@tool(effects="idempotent")
async def refund(order: str) -> str:
    """Refund an order."""
    return f"{order} is paid back"


@tool(effects="pure")
async def opening_hours(day: str) -> str:
    """Return the opening hours of the shop."""
    return f"{day}: 9 to 17"


def on_topic(words: str) -> bool:
    """Input guardrail: accept questions about orders."""
    return "homework" not in words


def small(arguments: dict[str, Any]) -> Literal["allow", "deny"]:
    """Tool guardrail: accept small refunds."""
    return "deny" if "password" in arguments["task"] else "allow"


refunds = subagent(
    "refunds",
    "Knows all about refunds. Hand it what is about money.",
    system="You pay money back. Ask for nothing but the order.",
    tools=[refund],
    approval=small,
)


async def say(session: Session, words: str) -> None:
    if not on_topic(words):
        print("-- this shop does no homework")
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
    Turn(Call("refunds", {"task": "The customer wants the money of A-7 back."})),
    Turn(Call("refund", {"order": "A-7"})),  # from the specialist
    Turn(Say("A-7 is paid back.")),  # the specialist's answer
    Turn(Say("Done: you have your money for A-7.")),
]


async def main() -> None:
    server = OpenAIServer(TURNS)
    async with serve(server), Runtime(environ={"OPENAI_BASE_URL": server.base_url}) as runtime:
        session = await runtime.open(
            "openai:gpt-5.2",
            system="You are the desk of a shop. Leave refunds to the specialist.",
            tools=[opening_hours, refunds],
        )
        await say(session, "Are you open on Sunday?")
        await say(session, "Do my homework.")
        await say(session, "I want my money for A-7 back.")
        print(len(await session.history()), "messages of one conversation")


anyio.run(main)
