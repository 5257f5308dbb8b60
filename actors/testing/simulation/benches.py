"""Provide the toolsets of a simulation: one that sessions share, and some that fail to open.

The shared toolset sometimes loses its connection, adds a tool or removes it. The toolsets check how the runtime uses
them: a toolset is open while calls of its tools begin, opens once for all sessions, closes in the task that opened
it, and is closed when the runtime has been left.
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

Offering: TypeAlias = Sequence[Tool[..., Any]]  # Any: any function
LIVES = 60.0
"""Mean seconds until an open toolset loses its connection or changes its tools."""
LOST = 0.5
"""Probability that the connection is lost, rather than the tools changed."""
PATIENCE = 3.0
"""Maximal seconds to open a toolset."""


class SharedBench:
    """The open shared toolset. At first it offers only the first of its tools."""

    def __init__(self, tools: Offering, random: Random, counts: Counter[str]) -> None:
        self.tools: Sequence[Tool[..., Any]] = tools[:1]
        self._all = tools
        self._random = random
        self._counts = counts

    async def changed(self) -> None:
        """Wait until the tools change; raise an error if the connection is lost."""
        await anyio.sleep(self._random.expovariate(1 / LIVES))
        if self._random.random() < LOST:
            raise ConnectionResetError("lost")
        self._counts["toolsets_changed"] += 1
        self.tools = self._all if len(self.tools) < len(self._all) else self._all[:1]


class SimulatedToolsets:
    """The toolsets of one run.

    Args:
        random: Decides all durations.
        problems: Receives broken invariants.

    Attributes:
        tools: Tools of the shared toolset. It offers the first always, the others at times.
    """

    def __init__(self, random: Random, problems: Problems) -> None:
        self._random, self._problems = random, problems
        self.tools: Offering = ()
        self.counts: Counter[str] = Counter(
            toolsets_opened=0, toolsets_refused=0, toolsets_changed=0, toolset_calls=0
        )
        self._open = 0
        self._sources = {
            "toolset": ToolSource(self._open_bench, "bench", waiting=PATIENCE),
            "broken toolset": ToolSource(self._never(fails=True), "broken", opening=PATIENCE),
            "slow toolset": ToolSource(self._never(fails=False), "slow", opening=PATIENCE),
        }

    def source(self, kind: str) -> ToolSource:
        """Return a toolset."""
        return self._sources[kind]

    def record_call(self, key: str) -> None:
        """Record that a call of one of the tools begins."""
        self.counts["toolset_calls"] += 1
        if not self._open:
            self._problems.add("a toolset is open when its tools are called", key)

    def check_closed(self) -> None:
        """Check that no toolset is open after the runtime has been left."""
        if self._open:
            self._problems.add("no toolset is open when its runtime was left", f"{self._open} are")

    @asynccontextmanager
    async def _open_bench(self) -> AsyncGenerator[SharedBench]:
        task = anyio.get_current_task().id
        await anyio.sleep(self._random.expovariate(2.0))
        self._open += 1
        self.counts["toolsets_opened"] += 1
        if self._open > 1:
            self._problems.add("a toolset that sessions share is opened once", f"{self._open} times")
        try:
            yield SharedBench(self.tools, self._random, self.counts)
        finally:
            self._open -= 1
            if anyio.get_current_task().id != task:
                self._problems.add("a toolset is left in the task that entered it", "bench")

    def _never(self, *, fails: bool) -> Callable[[], AbstractAsyncContextManager[Offering]]:
        @asynccontextmanager
        async def opening() -> AsyncGenerator[Offering]:
            self.counts["toolsets_refused"] += 1
            await anyio.sleep(self._random.expovariate(2.0))
            if fails:
                raise ConnectionRefusedError("nobody is there")
            await anyio.sleep_forever()
            yield ()

        return opening
