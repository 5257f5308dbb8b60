"""Run the sessions of a stress test: they ask, pause, switch and cancel, and the results are tallied."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from random import Random

import anyio
from msgspec import Struct

from actors.core.stream_events.results import AskResult
from actors.core.turn.batch import Approve
from actors.errors import ActorsError, ConfigError
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.tools.toolsets.source import ToolLike


class Load(Struct, frozen=True):
    """The load of a stress test.

    Args:
        target: Initial target of each session.
        sessions: Number of concurrent sessions.
        turns: Asks per session.
        switches: Targets for random switches before asks.
        switching, cancelling: Probability per ask of a switch before it, and of a cancel during it.
        think: Mean pause between two asks in seconds.
        seconds: Time in seconds after which no ask begins; None sets no limit.
        prompt: The user message of each ask.
        seed: Seed of the random choices.

    Raises:
        ConfigError: A value is out of range.
    """

    target: str
    sessions: int = 100
    turns: int = 10
    switches: Sequence[str] = ()
    switching: float = 0.2
    cancelling: float = 0.02
    think: float = 0.0
    seconds: float | None = None
    prompt: str = "Go on, please."
    seed: int = 0

    def __post_init__(self) -> None:
        for name, (takes, fits) in _FIGURES.items():
            if not fits(value := getattr(self, name)):
                raise ConfigError(f"{name}= takes {takes}, not {value!r}")


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_chance(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


_FIGURES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "sessions": ("a whole number from 1", _is_count),
    "turns": ("a whole number from 1", _is_count),
    "switching": ("a chance from 0 to 1", _is_chance),
    "cancelling": ("a chance from 0 to 1", _is_chance),
    "think": ("seconds from 0", lambda value: isinstance(value, int | float) and 0 <= value < inf),
    "seconds": ("seconds above 0, or None", lambda value: value is None or _is_above_0(value)),
}


def _is_above_0(value: object) -> bool:
    return isinstance(value, int | float) and value > 0


@dataclass(slots=True)
class LoadTally:
    """Counts of asks by status and of failures by cause, and the latencies of completed asks."""

    statuses: Counter[str] = field(default_factory=Counter[str])
    failures: Counter[str] = field(default_factory=Counter[str])
    seconds: list[float] = field(default_factory=list[float])
    rounds: int = 0
    switches: int = 0

    def take(self, result: AskResult, seconds: float) -> None:
        """Count the result of an ask."""
        self.statuses[result.status] += 1
        self.rounds += result.rounds
        if result.status == "complete":
            self.seconds.append(seconds)
        elif result.status in ("failed", "interrupted"):
            causes = [each.cause.kind for each in result.attempts if each.cause is not None]
            self.failures[causes[-1] if causes else "other"] += 1

    def refuse(self, error: ActorsError) -> None:
        """Count an ask that the runtime rejected."""
        self.statuses["refused"] += 1
        self.failures[type(error).__name__] += 1

    def percentile(self, share: float) -> float:
        """Return a percentile of the latency of completed asks in seconds; 0 if there are none."""
        ranked = sorted(self.seconds)
        return ranked[max(0, ceil(share * len(ranked)) - 1)] if ranked else 0.0


class Loaded:
    """Runs a load on a runtime."""

    def __init__(
        self, runtime: Runtime, load: Load, tools: Iterable[ToolLike], approve: Approve | None
    ) -> None:
        self._runtime = runtime
        self._load = load
        self._tools = tuple(tools)
        self._approve = approve
        self.tally: LoadTally = LoadTally()

    async def run(self) -> None:
        """Run all sessions to completion."""
        seconds = self._load.seconds
        self._until = None if seconds is None else anyio.current_time() + seconds
        async with anyio.create_task_group() as tasks:
            for number in range(self._load.sessions):
                tasks.start_soon(self._session, Random(f"{self._load.seed}/{number}"))  # noqa: S311  a load

    async def _session(self, random: Random) -> None:
        session = await self._runtime.open(self._load.target, tools=self._tools, approve=self._approve)
        for _ in range(self._load.turns):
            if self._remaining_seconds() <= 0:
                break
            try:
                await self._switch(session, random)
                await self._ask(session, random)
            except ActorsError as error:
                self.tally.refuse(error)
            if self._load.think:
                pause = random.expovariate(1 / self._load.think)
                await anyio.sleep(min(pause, self._remaining_seconds()))
        await session.close()

    def _remaining_seconds(self) -> float:
        """Return the seconds during which asks may still begin."""
        return inf if self._until is None else max(0.0, self._until - anyio.current_time())

    async def _switch(self, session: Session, random: Random) -> None:
        if self._load.switches and random.random() < self._load.switching:
            await session.switch(random.choice(self._load.switches))
            self.tally.switches += 1

    async def _ask(self, session: Session, random: Random) -> None:
        began = anyio.current_time()
        if random.random() >= self._load.cancelling:
            self.tally.take(await session.ask(self._load.prompt, check=False), anyio.current_time() - began)
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cancel, session, random.uniform(0, 0.05))
            result = await session.ask(self._load.prompt, check=False)
            self.tally.take(result, anyio.current_time() - began)

    async def _cancel(self, session: Session, after: float) -> None:
        await anyio.sleep(after)
        await session.cancel()
