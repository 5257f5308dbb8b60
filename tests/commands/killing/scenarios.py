"""What is done in a process that is killed: what the model says, which tools there are, what the caller does.

A tool writes a line to a file of its own before it returns, so what ran can be counted from outside.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio

from actors import AskResult, Compaction, ToolContext, tool
from actors.core.stream_events.events import SessionEvent
from actors.events import ApprovalDecision
from actors.runtime.handle import Session
from actors.testing import Call, Say, Turn
from actors.tools import Tool
from tests.runtime_support import Json

TARGET, OTHER = "openai:gpt-5.2", "openai:gpt-5.2-mini"
ONCE, AGAIN = Call("once", {"number": 1}), Call("again", {"number": 2})
SCENARIOS: Mapping[str, tuple[Call, ...]] = {
    "tools": (ONCE, AGAIN),
    "switch": (ONCE,),
    "external": (Call("look", {}), ONCE),
    "approval": (Call("approved", {"number": 1}),),
    "compaction": (AGAIN, ONCE),
}
"""The calls that the model makes when it is asked by such a word."""
COMPACTION = Compaction(keep_turns=1)


def spoken(request: Json) -> Turn:
    """Make the calls of a scenario when asked to, say something otherwise."""
    last = request["messages"][-1]
    said = "" if last["role"] == "tool" else str(last["content"])
    if "Write that summary now" in json.dumps(last):
        return Turn(Say("The user had things done."))
    return Turn(*SCENARIOS.get(said.removeprefix("Do: "), (Say("Done."),)))


async def acted(session: Session, scenario: str, see: Callable[[SessionEvent], None]) -> None:
    """Do what the caller of a scenario does, who sees the events of its asks."""

    async def ask(words: str) -> None:
        async with session.stream(words) as events:
            async for event in events:
                see(event)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, f"Do: {scenario}")
        if scenario == "switch":
            await session.switch(OTHER if session.target == TARGET else TARGET)
    await resolve_waiting(session)
    if scenario == "compaction":
        await ask("And now?")
        await session.compact()
    await ask("Thank you.")


async def resolve_waiting(session: Session) -> AskResult | None:
    """Pass what the session's turn waits for; return how its ask stands then, None if it waits for nothing."""
    result: AskResult | None = None
    for waits in session.pending:
        if waits.kind == "external":
            result = await session.ask(results={waits.call.id: "found"})
        else:
            result = await session.ask(approvals={waits.call.id: ApprovalDecision("allow")})
    return result


def tools(folder: Path) -> list[Tool[..., Any]]:  # Any: any function
    """Return the tools of every scenario. `folder`/ran gets a line each time that one runs."""

    def ran(context: ToolContext[None], number: int) -> str:
        with (folder / "ran").open("a") as file:
            file.write(f"{context.session_id} {context.call_id} {context.idempotency_key}\n")
        return f"{number}".ljust(2000, ".")

    @tool
    async def once(number: int, context: ToolContext[None]) -> str:
        """Do what must not be done twice."""
        return ran(context, number)

    @tool(effects="idempotent", approval="allow")
    async def again(number: int, context: ToolContext[None]) -> str:
        """Do what may be done twice."""
        return ran(context, number)

    @tool(approval="ask")
    async def approved(number: int, context: ToolContext[None]) -> str:
        """Do what somebody must approve of."""
        return ran(context, number)

    look = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
    return [once, again, approved, look]
