"""Provide the toolsets of a simulation: one toolset that several sessions share, and two that fail to open.

The shared toolset sometimes loses its connection, and adds or removes a tool. The toolsets check how the runtime uses
them. A toolset must be open when calls of its tools begin. It must be opened once for all sessions, closed in the task
that opened it, and closed before the runtime ends.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any, TypeAlias

import anyio

from actors.testing.simulation.observer import Problems
from actors.tools import Tool
from actors.tools.toolsets import ToolSource

Offering: TypeAlias = Sequence[Tool[..., Any]]  # Any: tool signatures differ
LIVES = 60.0
"""Mean seconds until an open toolset loses its connection or changes its tools."""
LOST = 0.5
"""Probability that the toolset loses its connection instead of changing its tools."""
OPEN_TIMEOUT = 3.0
"""Maximum seconds to open a toolset."""


class SharedToolset:
    """The shared toolset while it is open. At first, it offers only the first of its tools."""

    def __init__(self, tools: Offering, random: Random, counts: Counter[str]) -> None:
        self.tools: Sequence[Tool[..., Any]] = tools[:1]
        self._all = tools
        self._random = random
        self._counts = counts

    async def changed(self) -> None:
        """Wait until the list of tools changes. Raise an error if the connection is lost."""
        await anyio.sleep(self._random.expovariate(1 / LIVES))
        if self._random.random() < LOST:
            raise ConnectionResetError("the simulated connection was lost")
        self._counts["toolsets_changed"] += 1
        self.tools = self._all if len(self.tools) < len(self._all) else self._all[:1]


class SimulatedToolsets:
    """The toolsets of one simulation.

    Args:
        random: Decides all durations.
        problems: Receives broken invariants.

    Attributes:
        tools: The tools of the shared toolset. It always offers the first tool, and the other tools only at times.
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
