"""Provide the tools and toolsets of a simulation. The arguments of a call select how the tool behaves.

Several sessions share one toolset, which sometimes loses its connection, and adds or removes a tool. Two other toolsets
fail to open. The shared toolset checks how the runtime uses it: the runtime must open it once for all sessions, keep it
open while calls of its tools begin, and close it before the runtime ends, in the task that opened it.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

import anyio

from actors.runtime.subagents import handoff, subagent
from actors.strict.rules.base import Json
from actors.testing.simulation.forms import OUTPUT_FORMATS
from actors.testing.simulation.model import attachment_for, prompt, tool_mark
from actors.testing.simulation.observer import Problems
from actors.testing.simulation.plan import EXTERNAL_TOOL, HANDOFFS, PERMANENT_TOOL, TEMPORARY_TOOL
from actors.tools import Tool, tool
from actors.tools.toolsets import ToolSource

AnyTool: TypeAlias = Tool[..., Any]  # Any: tool signatures differ
CALL_TIMEOUT = 5.0
"""Maximum seconds of one call."""
STUBBORN_SECONDS = 3.0
"""Seconds for which a stubborn tool continues after its cancellation."""
SHELVES = 2
"""Number of resources that the tools of a session write to."""
Offering: TypeAlias = Sequence[Tool[..., Any]]  # Any: tool signatures differ
MEAN_CHANGE_SECONDS = 60.0
"""Mean seconds until an open toolset loses its connection or changes its tools."""
LOSS_PROBABILITY = 0.5
"""Probability that the toolset then loses its connection instead of changing its tools."""
OPEN_TIMEOUT = 3.0
"""Maximum seconds to open a toolset."""


@dataclass(slots=True)
class Toolbox:
    """The tools of a simulation, and a record of their calls.

    Args:
        random: Decides approvals.
        on_begin: Called with the key and the arguments of a call when the call begins.
        watch_write: Returns a context manager that is open while a call writes to a resource.
        runs: Number of times that each call has started, by key.
        running: Number of runs of each call that have not ended, by key.
        returned: Keys of the calls whose tool has ended.
    """

    random: Random
    on_begin: Callable[[str, Mapping[str, Json]], None]
    watch_write: Callable[[str, str], AbstractContextManager[None]]
    runs: Counter[str] = field(default_factory=Counter[str])
    running: Counter[str] = field(default_factory=Counter[str])
    returned: list[str] = field(default_factory=list[str])
    _made: dict[str, AnyTool] = field(init=False)

    def __post_init__(self) -> None:
        self._made = self._create_shared_tools()

    def tools(self, extra: str, form: str = "") -> list[AnyTool]:
        """Return the tools that every session has, followed by the tool named `extra`.

        If `extra` starts a subagent, `form` is the output format of the subagent.
        """
        made, asks, outside = self._made["work"], self._made["approved"], self._made[EXTERNAL_TOOL]
        last = self._made[extra] if extra in self._made else _delegating_tool(extra, form, made, asks)
        return [made, asks, outside, last]

    def _create_shared_tools(self) -> dict[str, AnyTool]:
        """Create the tools of all sessions once, because parsing their signatures takes most of the setup time."""

        async def work(key: str, manner: str, seconds: float) -> object:
            """Do a piece of work. [tool work]"""
            return await self._run_call(key, manner, seconds)

        async def approved(key: str, manner: str, seconds: float) -> object:
            """Do a piece of work that somebody has to approve of. [tool approved]"""
            return await self._run_call(key, manner, seconds)

        async def write(key: str, manner: str, seconds: float) -> object:
            """Write to a shelf. [tool write]"""
            with self.watch_write(key, shelf(seconds)):
                return await self._run_call(key, manner, seconds)

        def block(key: str, manner: str, seconds: float) -> object:
            """Do a piece of work in a thread. [tool block]"""
            return self._run_blocking_call(key, manner, seconds)

        made = tool(timeout=CALL_TIMEOUT)(work)
        outside = Tool.external(
            EXTERNAL_TOOL, f"Done elsewhere. {tool_mark(EXTERNAL_TOOL)}", made.schema, read_only=True
        )
        asks = tool(timeout=CALL_TIMEOUT, approval="ask")(approved)
        writes = tool(timeout=CALL_TIMEOUT, resources=lambda given: shelf(given["seconds"]))(write)
        blocks = tool(timeout=CALL_TIMEOUT)(block)
        return {"work": made, "approved": asks, EXTERNAL_TOOL: outside, "write": writes, "block": blocks}

    def create_toolset_tools(self, on_call: Callable[[str], None]) -> tuple[AnyTool, AnyTool]:
        """Return the two tools of the toolset: a permanent tool and a temporary tool.

        `on_call` is called with the key of each call.
        """

        async def elsewhere(key: str, manner: str, seconds: float) -> object:
            on_call(key)
            return await self._run_call(key, manner, seconds)

        def make_tool(name: str) -> AnyTool:
            return tool(
                name=name, description=f"Look up elsewhere. {tool_mark(name)}", timeout=2 * CALL_TIMEOUT
            )(elsewhere)

        return make_tool(PERMANENT_TOOL), make_tool(TEMPORARY_TOOL)

    async def approve(self, call: object) -> bool:
        """Wait for a random time, then approve most calls."""
        await anyio.sleep(self.random.expovariate(1.0))
        return self.random.random() < 0.8

    async def _run_call(self, key: str, manner: str, seconds: float) -> object:
        self.runs[key] += 1
        self.on_begin(key, {"key": key, "manner": manner, "seconds": seconds})
        self.running[key] += 1
        try:
            await _MANNERS.get(manner, anyio.sleep)(seconds)
        finally:
            self.running[key] -= 1
        return self._make_result(key, manner)

    def _run_blocking_call(self, key: str, manner: str, seconds: float) -> object:
        """Run a call of a blocking tool in one step. The call may already be closed when the step runs."""
        self.runs[key] += 1
        self.on_begin(key, {"key": key, "manner": manner, "seconds": seconds})
        if manner == "raises":
            raise ValueError("boom")
        if manner == "exits":
            raise SystemExit(3)
        return self._make_result(key, manner)

    def _make_result(self, key: str, manner: str) -> object:
        token = f"<<{key}>>"
        self.returned.append(key)
        return _RESULTS[manner](token) if manner in _RESULTS else f"{token} done"


def shelf(seconds: object) -> str:
    """Return the name of the resource that a call writes to. The call's duration determines the name."""
    return f"shelf {round(seconds * 1000) % SHELVES}" if isinstance(seconds, int | float) else "shelf 0"


def _delegating_tool(name: str, form: str, work_tool: AnyTool, approved_tool: AnyTool) -> AnyTool:
    """Return a handoff tool, or a tool that starts a subagent, depending on the name."""
    says = f"Have somebody else do it. {tool_mark(name)}"
    match name:
        case "hand_over":
            return handoff(name, says, target=HANDOFFS[name])
        case "hand_all_over":
            return handoff(name, says, target=HANDOFFS[name], system=prompt("handed over"), tools=[work_tool])
        case _:
            output = OUTPUT_FORMATS[form].output if form else None
            below = prompt("below")
            return subagent(
                name,
                says,
                system=below,
                tools=[work_tool, approved_tool],
                output=output,
                timeout=4 * CALL_TIMEOUT,
            )


async def _sleep_then_raise(seconds: float) -> None:
    """Raise an ordinary exception after the duration of the call."""
    await anyio.sleep(seconds)
    raise ValueError("boom")


async def _sleep_then_exit(seconds: float) -> None:
    """Raise `SystemExit` after the duration of the call."""
    await anyio.sleep(seconds)
    raise SystemExit(3)


async def _ignore_cancellation(seconds: float) -> None:
    """Sleep for a long time, and ignore a cancellation for a while."""
    try:
        await anyio.sleep(min(3 * seconds, CALL_TIMEOUT - 1))
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await anyio.sleep(STUBBORN_SECONDS)


async def _leave_task_group_open(seconds: float) -> None:
    """Leave a task group open, which corrupts the task."""
    await anyio.create_task_group().__aenter__()
    await anyio.sleep(seconds)


async def _raise_stray_cancellation(seconds: float) -> None:
    """Raise a cancellation error although no scope was cancelled."""
    await anyio.sleep(seconds)
    raise anyio.get_cancelled_exc_class()._create(source="unknown")  # type: ignore[attr-defined]  # only trio has it


async def _wait_forever(seconds: float) -> None:
    await anyio.sleep_forever()


_MANNERS: Mapping[str, Callable[[float], Awaitable[None]]] = {
    "raises": _sleep_then_raise,
    "exits": _sleep_then_exit,
    "swallows": _ignore_cancellation,
    "spoils": _leave_task_group_open,
    "stray": _raise_stray_cancellation,
    "hangs": _wait_forever,
}
_KINDS = ("image/png", "application/pdf", "image/tiff")  # no provider accepts the last type
_RESULTS: Mapping[str, Callable[[str], object]] = {
    "shows": lambda token: [f"{token} is this:", attachment_for(token, _KINDS[sum(token.encode()) % 3])],
    "huge": lambda token: token + "x" * 3_000,
    "odd": lambda token: {"token": token, 1: {2.5, float("nan")}, "bytes": b"\xff", "text": "\ud800"},
}


class SharedToolset:
    """An open connection to the shared toolset. At first, the connection offers only the first tool."""

    def __init__(self, tools: Offering, random: Random, counts: Counter[str]) -> None:
        self.tools: Sequence[Tool[..., Any]] = tools[:1]
        self._all = tools
        self._random = random
        self._counts = counts

    async def changed(self) -> None:
        """Wait until the list of tools changes. Raise an error if the connection is lost."""
        await anyio.sleep(self._random.expovariate(1 / MEAN_CHANGE_SECONDS))
        if self._random.random() < LOSS_PROBABILITY:
            raise ConnectionResetError("the simulated connection was lost")
        self._counts["toolsets_changed"] += 1
        self.tools = self._all if len(self.tools) < len(self._all) else self._all[:1]


class SimulatedToolsets:
    """The toolsets of one simulation.

    Args:
        random: Decides all durations.
        problems: Receives broken invariants.

    Attributes:
        tools: The tools of the shared toolset. The first tool is always available, the others only at times.
        counts: Counts of events for the report, by name.
    """

    def __init__(self, random: Random, problems: Problems) -> None:
        self._random, self._problems = random, problems
        self.tools: Offering = ()
        self.counts: Counter[str] = Counter(
            toolsets_opened=0, toolsets_refused=0, toolsets_changed=0, toolset_calls=0
        )
        self._open = 0
        self._sources = {
            "toolset": ToolSource(self._open_shared_toolset, "bench", waiting=OPEN_TIMEOUT),
            "broken toolset": ToolSource(self._failing_toolset(fails=True), "broken", opening=OPEN_TIMEOUT),
            "slow toolset": ToolSource(self._failing_toolset(fails=False), "slow", opening=OPEN_TIMEOUT),
        }

    def source(self, kind: str) -> ToolSource:
        """Return the toolset of this kind: `toolset`, `broken toolset` or `slow toolset`."""
        return self._sources[kind]

    def record_call(self, key: str) -> None:
        """Record that a call of a shared toolset's tool begins, and check that the toolset is open."""
        self.counts["toolset_calls"] += 1
        if not self._open:
            self._problems.add("a toolset is open while its tools are called", key)

    def check_closed(self) -> None:
        """Check that no toolset is open after the runtime has ended."""
        if self._open:
            self._problems.add("no toolset is open after the runtime has ended", f"{self._open} are open")

    @asynccontextmanager
    async def _open_shared_toolset(self) -> AsyncGenerator[SharedToolset]:
        task = anyio.get_current_task().id
        await anyio.sleep(self._random.expovariate(2.0))
        self._open += 1
        self.counts["toolsets_opened"] += 1
        if self._open > 1:
            self._problems.add("a shared toolset is opened once", f"it was opened {self._open} times")
        try:
            yield SharedToolset(self.tools, self._random, self.counts)
        finally:
            self._open -= 1
            if anyio.get_current_task().id != task:
                self._problems.add("a toolset is closed in the task that opened it", "bench")

    def _failing_toolset(self, *, fails: bool) -> Callable[[], AbstractAsyncContextManager[Offering]]:
        @asynccontextmanager
        async def fail_or_hang() -> AsyncGenerator[Offering]:
            self.counts["toolsets_refused"] += 1
            await anyio.sleep(self._random.expovariate(2.0))
            if fails:
                raise ConnectionRefusedError("the simulated server refused the connection")
            await anyio.sleep_forever()
            yield ()

        return fail_or_hang
