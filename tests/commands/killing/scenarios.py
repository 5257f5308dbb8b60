"""The scenarios of a process that is killed: the model's answers, the tools, and the caller's actions.

A tool writes a line to its own file before it returns, so its runs can be counted from outside.
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
"""The calls of the model for each scenario, by the word of the user message."""
COMPACTION = Compaction(keep_turns=1)


def answer(request: Json) -> Turn:
    """Return the calls of a scenario for its user message, and a text otherwise."""
    last = request["messages"][-1]
    said = "" if last["role"] == "tool" else str(last["content"])
    if "Write that summary now" in json.dumps(last):
        return Turn(Say("The user's requests were completed."))
    return Turn(*SCENARIOS.get(said.removeprefix("Do: "), (Say("Done."),)))


async def act(session: Session, scenario: str, see: Callable[[SessionEvent], None]) -> None:
    """Perform the caller's actions of a scenario; `see` receives the events of the asks."""

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
    """Resolve the pending calls of the session; return the resulting ask, or None if no call is pending."""
    result: AskResult | None = None
    for waits in session.pending:
        if waits.kind == "external":
            result = await session.ask(results={waits.call.id: "found"})
        else:
            result = await session.ask(approvals={waits.call.id: ApprovalDecision("allow")})
    return result


def tools(folder: Path) -> list[Tool[..., Any]]:  # Any: any function
    """Return the tools of every scenario. Each run adds a line to `folder`/ran."""

    def ran(context: ToolContext[None], number: int) -> str:
        with (folder / "ran").open("a") as file:
            file.write(f"{context.session_id} {context.call_id} {context.idempotency_key}\n")
        return f"{number}".ljust(2000, ".")

    @tool
    async def once(number: int, context: ToolContext[None]) -> str:
        """Perform an action that must not be repeated."""
        return ran(context, number)

    @tool(effects="idempotent", approval="allow")
    async def again(number: int, context: ToolContext[None]) -> str:
        """Perform an action that may be repeated."""
        return ran(context, number)

    @tool(approval="ask")
    async def approved(number: int, context: ToolContext[None]) -> str:
        """Perform an action that needs approval."""
        return ran(context, number)

    look = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
    return [once, again, approved, look]
