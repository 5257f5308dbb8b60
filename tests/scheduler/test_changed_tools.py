"""A call runs with the definition by which it was validated and approved, or not at all."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from actors import LiveTools, ToolSource, tool
from actors.events import ApprovalDecision
from actors.testing import Call, Say, Turn
from actors.tools import Tool
from tests.runtime_support import bodies, openai, results, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

AnyTool = Tool[..., Any]  # Any: any function

QUERY = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
PATH = {"type": "object", "properties": {"path": {"type": "string"}, "force": {"type": "boolean"}}}
FIND = Turn(Call("find", {"q": "x"}))
STALE = "Tool 'find' has changed since it was declared, so the call did not run"


class SwappableToolset:
    """A toolset whose only tool is replaced by `swap`."""

    def __init__(self, *, blocks: bool = False) -> None:
        self.ran: list[dict[str, Any]] = []
        self.blocks = blocks
        self.find = self.make_tool(QUERY)
        self._changed, self._seen = anyio.Event(), anyio.Event()

    def make_tool(self, schema: dict[str, Any], **options: Any) -> AnyTool:  # Any: options of a tool
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
            self._seen.set()  # the owner has read the new tools
            await anyio.sleep_forever()
        await self._changed.wait()

    async def swap(self, other: AnyTool) -> None:
        """Replace the tool, and return when the toolset's owner has read it."""
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


def swapping_tool(bench: SwappableToolset, other: AnyTool) -> AnyTool:
    """Return a tool that swaps the toolset's tool in the middle of a turn."""

    @tool
    async def swap() -> str:
        """Swap the tool."""
        await bench.swap(other)
        return "swapped"

    return swap


@pytest.mark.alternating
@pytest.mark.parametrize("blocks", [False, True], ids=["async", "blocking"])
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
async def test_a_call_does_not_run_if_its_tool_changed_after_the_request(
    other: dict[str, Any], blocks: bool
) -> None:
    """Case tool-changed-under-a-call."""
    bench = SwappableToolset(blocks=blocks)
    server = openai(FIND, Turn(Call("swap")), FIND, Turn(Say("done")), Turn(Say("again")))
    swap = swapping_tool(bench, bench.make_tool(**other))
    async with scripted(server, tools=[swap, bench.source()]) as (_, _, session):
        assert (await session.ask("Find.")).status == "complete"
        assert bench.ran == [{"q": "x"}]
        said = list(results(bodies(server)[3]).values())
        assert (said[0], said[1]) == ("found", "swapped")
        assert STALE in said[2]
        await session.ask("Again.")
    declared = bodies(server)[4]["tools"][1]["function"]["parameters"]
    assert declared == other["schema"]


async def test_a_pending_call_does_not_run_after_its_tool_changed() -> None:
    bench = SwappableToolset()
    bench.find = bench.make_tool(QUERY, approval="ask")
    server = openai(FIND, Turn(Say("done")))
    async with scripted(server, tools=[bench.source()]) as (_, _, session):
        assert (await session.ask("Find.")).status == "awaiting"
        (waiting,) = session.pending
        await bench.swap(bench.make_tool(PATH))
        answer = await session.ask(
            approvals={waiting.call.id: ApprovalDecision("allow", digest=waiting.digest)}
        )
        assert answer.status == "complete"
    assert bench.ran == []
    assert STALE in str(results(bodies(server)[1]))


async def test_a_tool_that_was_only_redefined_with_equal_rules_runs() -> None:
    def redefine(bench: SwappableToolset) -> AnyTool:
        return bench.make_tool(
            QUERY, approval=lambda arguments: "allow", resources=lambda arguments: arguments["q"]
        )

    bench = SwappableToolset()
    bench.find = redefine(bench)
    server = openai(Turn(Call("swap")), FIND, Turn(Say("done")))
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[swapping_tool(bench, redefine(bench)), bench.source()])
        assert (await session.ask("Find.")).status == "complete"
    assert bench.ran == [{"q": "x"}]
