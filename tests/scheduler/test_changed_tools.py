"""A call runs by the definition that it was checked and approved by, or it does not run."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from actors import LiveTools, ToolSource, tool
from actors.events import ApprovalDecision
from actors.testing import Call, Say, Turn
from actors.tools import Tool
from tests.runtime_support import bodies, hosting, openai, results

pytestmark = pytest.mark.anyio

AnyTool = Tool[..., Any]  # Any: any function

QUERY = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
PATH = {"type": "object", "properties": {"path": {"type": "string"}, "force": {"type": "boolean"}}}
FIND = Turn(Call("find", {"q": "x"}))
STALE = "Tool 'find' has changed since it was declared, so the call did not run"


class Changing:
    """A toolset whose one tool becomes another when `swap` is called."""

    def __init__(self, *, blocks: bool = False) -> None:
        self.ran: list[dict[str, Any]] = []
        self.blocks = blocks
        self.find = self.made(QUERY)
        self._changed, self._seen = anyio.Event(), anyio.Event()

    def made(self, schema: dict[str, Any], **options: Any) -> AnyTool:  # Any: of a tool
        async def find(**arguments: Any) -> str:
            self.ran.append(arguments)
            return "found"

        def find_in_thread(**arguments: Any) -> str:
            self.ran.append(arguments)
            return "found"

        function: Callable[..., Any] = find_in_thread if self.blocks else find
        return Tool.from_schema("find", "Find.", schema, function, **options)

    @property
    def tools(self) -> Iterable[AnyTool]:
        return [self.find]

    async def changed(self) -> None:
        if self._changed.is_set():
            self._seen.set()  # what `tools` gave is published
            await anyio.sleep_forever()
        await self._changed.wait()

    async def swap(self, other: AnyTool) -> None:
        """Offer another tool, and return when the toolset's owner has it."""
        self.find = other
        self._changed.set()
        await self._seen.wait()

    @asynccontextmanager
    async def block(self) -> AsyncIterator[LiveTools]:
        yield self

    def source(self) -> ToolSource:
        return ToolSource(self.block, "bench")


OTHERS: dict[str, dict[str, Any]] = {
    "another schema": {"schema": PATH},
    "a denial": {"schema": QUERY, "approval": "deny"},
    "an approval": {"schema": QUERY, "approval": "ask"},
    "a rule": {"schema": QUERY, "approval": lambda arguments: "deny"},
    "a resource": {"schema": QUERY, "resources": "disk"},
    "no effects": {"schema": QUERY, "effects": "pure"},
}


def swapping(bench: Changing, other: AnyTool) -> AnyTool:
    """Return a tool that changes the other one, so that this happens in the middle of a turn."""

    @tool
    async def swap() -> str:
        """Swap."""
        await bench.swap(other)
        return "swapped"

    return swap


@pytest.mark.alternating
@pytest.mark.parametrize("blocks", [False, True], ids=["async", "blocking"])
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
async def test_a_call_of_a_tool_that_changed_meanwhile_does_not_run(
    other: dict[str, Any], blocks: bool
) -> None:
    """Case tool-changed-under-a-call."""
    bench = Changing(blocks=blocks)
    server = openai(FIND, Turn(Call("swap")), FIND, Turn(Say("done")), Turn(Say("again")))
    async with hosting(a=server) as runtime:
        swap = swapping(bench, bench.made(**other))
        session = await runtime.open("a", tools=[swap, bench.source()])
        assert (await session.ask("Find.")).status == "complete"
        assert bench.ran == [{"q": "x"}]
        said = list(results(bodies(server)[3]).values())
        assert (said[0], said[1]) == ("found", "swapped")
        assert STALE in said[2]
        await session.ask("Again.")
    declared = bodies(server)[4]["tools"][1]["function"]["parameters"]
    assert declared == other["schema"]


async def test_a_call_that_waits_for_approval_does_not_run_as_something_else() -> None:
    bench = Changing()
    bench.find = bench.made(QUERY, approval="ask")
    server = openai(FIND, Turn(Say("done")))
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[bench.source()])
        assert (await session.ask("Find.")).status == "awaiting"
        (waiting,) = session.pending
        await bench.swap(bench.made(PATH))
        answer = await session.ask(
            approvals={waiting.call.id: ApprovalDecision("allow", digest=waiting.digest)}
        )
        assert answer.status == "complete"
    assert bench.ran == []
    assert STALE in str(results(bodies(server)[1]))


async def test_a_tool_whose_rules_were_merely_made_anew_runs() -> None:
    def made(bench: Changing) -> AnyTool:
        return bench.made(
            QUERY, approval=lambda arguments: "allow", resources=lambda arguments: arguments["q"]
        )

    bench = Changing()
    bench.find = made(bench)
    server = openai(Turn(Call("swap")), FIND, Turn(Say("done")))
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[swapping(bench, made(bench)), bench.source()])
        assert (await session.ask("Find.")).status == "complete"
    assert bench.ran == [{"q": "x"}]
