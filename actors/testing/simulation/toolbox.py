"""Provide the tools of a simulation. The arguments of each call select the behavior of the tool."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

import anyio

from actors.runtime.subagents import handoff, subagent
from actors.strict.rules.base import Json
from actors.testing.simulation.forms import FORMS
from actors.testing.simulation.plan import AT_TIMES, HANDOFFS, OF_A_TOOLSET, OUTSIDE
from actors.testing.simulation.saying import attachment_of, prompt, tool_mark
from actors.tools import Tool, tool

AnyTool: TypeAlias = Tool[..., Any]  # Any: any function

LIMIT = 5.0
"""Maximal seconds of one call."""
STUBBORN = 3.0
"""Seconds for which a tool continues after its cancellation."""
SHELVES = 2
"""Resources of a session that its tools write to."""


@dataclass(slots=True)
class Toolbox:
    """The tools of a run, which behave as the arguments of their calls demand.

    Args:
        random: Decides approvals.
        runs: Number of runs per call, by key; `running` are the current calls, `returned` the calls whose tool ended.
        begun: Called with the key and the arguments when a call begins.
        writing: Context of a call that writes to a resource; left when the tool itself ends.
    """

    random: Random
    begun: Callable[[str, Mapping[str, Json]], None]
    writing: Callable[[str, str], AbstractContextManager[None]]
    runs: Counter[str] = field(default_factory=Counter[str])
    running: Counter[str] = field(default_factory=Counter[str])
    returned: list[str] = field(default_factory=list[str])
    _made: dict[str, AnyTool] = field(init=False)

    def __post_init__(self) -> None:
        self._made = self._common()

    def tools(self, extra: str, form: str = "") -> list[AnyTool]:
        """Return the tools of all sessions, followed by one that only some sessions have.

        `form` is the output format of a subagent.
        """
        made, asks, outside = self._made["work"], self._made["approved"], self._made[OUTSIDE]
        last = self._made[extra] if extra in self._made else _passing_on(extra, form, made, asks)
        return [made, asks, outside, last]

    def _common(self) -> dict[str, AnyTool]:
        """Create the shared tools once, because parsing their signatures dominates the cost of a world."""

        async def work(key: str, manner: str, seconds: float) -> object:
            """Do a piece of work. [tool work]"""
            return await self._run(key, manner, seconds)

        async def approved(key: str, manner: str, seconds: float) -> object:
            """Do a piece of work that somebody has to approve of. [tool approved]"""
            return await self._run(key, manner, seconds)

        async def write(key: str, manner: str, seconds: float) -> object:
            """Write to a shelf. [tool write]"""
            with self.writing(key, shelf(seconds)):
                return await self._run(key, manner, seconds)

        def block(key: str, manner: str, seconds: float) -> object:
            """Do a piece of work in a thread. [tool block]"""
            return self._block(key, manner, seconds)

        made = tool(timeout=LIMIT)(work)
        outside = Tool.external(OUTSIDE, f"Done elsewhere. {tool_mark(OUTSIDE)}", made.schema, read_only=True)
        asks = tool(timeout=LIMIT, approval="ask")(approved)
        writes = tool(timeout=LIMIT, resources=lambda given: shelf(given["seconds"]))(write)
        blocks = tool(timeout=LIMIT)(block)
        return {"work": made, "approved": asks, OUTSIDE: outside, "write": writes, "block": blocks}

    def of_a_toolset(self, called: Callable[[str], None]) -> tuple[AnyTool, AnyTool]:
        """Return the tools of a toolset, which observes their calls: a permanent one and a temporary one."""

        async def elsewhere(key: str, manner: str, seconds: float) -> object:
            called(key)
            return await self._run(key, manner, seconds)

        def make_tool(name: str) -> AnyTool:
            return tool(name=name, description=f"Look up elsewhere. {tool_mark(name)}", timeout=2 * LIMIT)(
                elsewhere
            )

        return make_tool(OF_A_TOOLSET), make_tool(AT_TIMES)

    async def approve(self, call: object) -> bool:
        """Approve most calls after a delay."""
        await anyio.sleep(self.random.expovariate(1.0))
        return self.random.random() < 0.8

    async def _run(self, key: str, manner: str, seconds: float) -> object:
        self.runs[key] += 1
        self.begun(key, {"key": key, "manner": manner, "seconds": seconds})
        self.running[key] += 1
        try:
            await _MANNERS.get(manner, anyio.sleep)(seconds)
        finally:
            self.running[key] -= 1
        return self._result(key, manner)

    def _block(self, key: str, manner: str, seconds: float) -> object:
        """Run in one step, possibly so late that the call was closed."""
        self.runs[key] += 1
        self.begun(key, {"key": key, "manner": manner, "seconds": seconds})
        if manner == "raises":
            raise ValueError("boom")
        if manner == "exits":
            raise SystemExit(3)
        return self._result(key, manner)

    def _result(self, key: str, manner: str) -> object:
        token = f"<<{key}>>"
        self.returned.append(key)
        return _RESULTS[manner](token) if manner in _RESULTS else f"{token} done"


def shelf(seconds: object) -> str:
    """Return the resource that a call writes to, derived from its duration."""
    return f"shelf {round(seconds * 1000) % SHELVES}" if isinstance(seconds, int | float) else "shelf 0"


def _passing_on(name: str, form: str, work: AnyTool, asks: AnyTool) -> AnyTool:
    """Return the tool of a name that has others do the work."""
    says = f"Have somebody else do it. {tool_mark(name)}"
    match name:
        case "hand_over":
            return handoff(name, says, target=HANDOFFS[name])
        case "hand_all_over":
            return handoff(name, says, target=HANDOFFS[name], system=prompt("handed over"), tools=[work])
        case _:
            output = FORMS[form].output if form else None
            below = prompt("below")
            return subagent(name, says, system=below, tools=[work, asks], output=output, timeout=4 * LIMIT)


async def _raises(seconds: float) -> None:
    await anyio.sleep(seconds)
    raise ValueError("boom")


async def _exits(seconds: float) -> None:
    await anyio.sleep(seconds)
    raise SystemExit(3)


async def _swallows(seconds: float) -> None:
    """Take long, and continue for a while after cancellation."""
    try:
        await anyio.sleep(min(3 * seconds, LIMIT - 1))
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await anyio.sleep(STUBBORN)


async def _spoils(seconds: float) -> None:
    """Leave a task group open."""
    await anyio.create_task_group().__aenter__()
    await anyio.sleep(seconds)


async def _stray(seconds: float) -> None:
    """Raise a cancellation without a cancelled scope."""
    await anyio.sleep(seconds)
    raise anyio.get_cancelled_exc_class()._create(source="unknown")  # type: ignore[attr-defined]  # trio's


async def _hangs(seconds: float) -> None:
    await anyio.sleep_forever()


_MANNERS: Mapping[str, Callable[[float], Awaitable[None]]] = {
    "raises": _raises,
    "exits": _exits,
    "swallows": _swallows,
    "spoils": _spoils,
    "stray": _stray,
    "hangs": _hangs,
}
_KINDS = ("image/png", "application/pdf", "image/tiff")  # the last of which nobody takes
_RESULTS: Mapping[str, Callable[[str], object]] = {
    "shows": lambda token: [f"{token} is this:", attachment_of(token, _KINDS[sum(token.encode()) % 3])],
    "huge": lambda token: token + "x" * 3_000,
    "odd": lambda token: {"token": token, 1: {2.5, float("nan")}, "bytes": b"\xff", "text": "\ud800"},
}
