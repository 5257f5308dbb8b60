"""What is done in a process that is killed: what the model says, which tools there are, what the caller does.

A tool writes a line to a file of its own before it returns, so what ran can be counted from outside.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from actors import ToolContext, TurnResult, tool
from actors.handle import Session
from actors.testing import Call, Say, Turn
from actors.tools import Tool

SESSION = "killed"


class Scenario(Struct, frozen=True):
    """What one process does.

    Args:
        script: What the model says.
        switches: Whether another target is asked for in the midst of the first ask.
    """

    script: tuple[Turn, ...]
    switches: bool = False


def tools(folder: Path) -> list[Tool[..., Any]]:  # Any: any function
    """Return the tools of every scenario. `folder`/ran gets a line each time that one runs."""

    def ran(context: ToolContext[None], number: int) -> int:
        with (folder / "ran").open("a") as file:
            file.write(f"{context.call_id} {context.idempotency_key}\n")
        return number

    @tool
    async def once(number: int, context: ToolContext[None]) -> int:
        """Do what must not be done twice."""
        return ran(context, number)

    @tool(effects="idempotent", approval="allow")
    async def again(number: int, context: ToolContext[None]) -> int:
        """Do what may be done twice."""
        return ran(context, number)

    @tool(approval="ask")
    async def approved(number: int, context: ToolContext[None]) -> int:
        """Do what somebody must approve of."""
        return ran(context, number)

    look = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
    return [once, again, approved, look]


async def brought(session: Session) -> TurnResult | None:
    """Bring what the session's turn waits for; return how its ask stands then, None if it waits for nothing."""
    result: TurnResult | None = None
    for waits in session.pending:
        if waits.kind == "external":
            result = await session.provide({waits.call.id: "found"})
        else:
            result = await session.decide(waits.call.id, "allow")
    return result


DONE = Turn(Say("Done."))
SCENARIOS: Mapping[str, Scenario] = {
    "tools": Scenario((Turn(Call("once", {"number": 1}), Call("again", {"number": 2})), DONE, DONE)),
    "switch": Scenario((Turn(Call("once", {"number": 1})), DONE, DONE), switches=True),
    "external": Scenario((Turn(Call("look", {}), Call("once", {"number": 1})), DONE, DONE)),
    "approval": Scenario((Turn(Call("approved", {"number": 1})), DONE, DONE)),
}
