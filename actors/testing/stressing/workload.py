"""What the sessions of a stress run do: ask, think, switch, cancel; and how each ask came out."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from random import Random
from typing import Any

import anyio
from msgspec import Struct

from actors.core.stream_events.results import AskResult
from actors.core.turn.batch import Approve
from actors.errors import ActorsError, ConfigError
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.tools import Tool

Tools = Iterable[Tool[..., Any] | Callable[..., Any]]  # Any: any function


class Load(Struct, frozen=True):
    """What each session does.

    Args:
        target: Whom it begins with.
        sessions: How many there are at once.
        turns: Asks of each.
        switches: Targets that it is switched to, at random, before some asks.
        switching, cancelling: Chance, for each ask, that it is switched before, or cancelled in the midst of it.
        think: Seconds between two asks, on average.
        seconds: When no more asks begin; None has no end of its own.
        prompt: What is said.
        seed: Of the chances.

    Raises:
        ConfigError: A figure is none that this can be.
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
    """How the asks came out: by status, the failed ones by cause; how long those took that completed."""

    statuses: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    rounds: int = 0
    switches: int = 0

    def take(self, result: AskResult, seconds: float) -> None:
        """Take how an ask came out."""
        self.statuses[result.status] += 1
        self.rounds += result.rounds
        if result.status == "complete":
            self.seconds.append(seconds)
        elif result.status in ("failed", "interrupted"):
            causes = [each.cause.kind for each in result.attempts if each.cause is not None]
            self.failures[causes[-1] if causes else "other"] += 1

    def refuse(self, error: ActorsError) -> None:
        """Take an ask that was not accepted."""
        self.statuses["refused"] += 1
        self.failures[type(error).__name__] += 1

    def percentile(self, share: float) -> float:
        """Return how long the given share of the completed asks took at most; 0 where none did."""
        ranked = sorted(self.seconds)
        return ranked[max(0, ceil(share * len(ranked)) - 1)] if ranked else 0.0


class Loaded:
    """A load on a runtime."""

    def __init__(self, runtime: Runtime, load: Load, tools: Tools, approve: Approve | None) -> None:
        self._runtime = runtime
        self._load = load
        self._tools = tuple(tools)
        self._approve = approve
        self.tally = LoadTally()

    async def run(self) -> None:
        """Run all sessions to their ends."""
        seconds = self._load.seconds
        self._until = None if seconds is None else anyio.current_time() + seconds
        async with anyio.create_task_group() as tasks:
            for number in range(self._load.sessions):
                tasks.start_soon(self._session, Random(f"{self._load.seed}/{number}"))  # noqa: S311  a load

    async def _session(self, random: Random) -> None:
        session = await self._runtime.open(self._load.target, tools=self._tools, approve=self._approve)
        for _ in range(self._load.turns):
            if self._left() <= 0:
                break
            try:
                await self._switched(session, random)
                await self._asked(session, random)
            except ActorsError as error:
                self.tally.refuse(error)
            if self._load.think:
                pause = random.expovariate(1 / self._load.think)
                await anyio.sleep(min(pause, self._left()))
        await session.close()

    def _left(self) -> float:
        """Return the seconds in which asks may still begin."""
        return inf if self._until is None else max(0.0, self._until - anyio.current_time())

    async def _switched(self, session: Session, random: Random) -> None:
        if self._load.switches and random.random() < self._load.switching:
            await session.switch(random.choice(self._load.switches))
            self.tally.switches += 1

    async def _asked(self, session: Session, random: Random) -> None:
        began = anyio.current_time()
        if random.random() >= self._load.cancelling:
            self.tally.take(await session.ask(self._load.prompt, check=False), anyio.current_time() - began)
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cancelled, session, random.uniform(0, 0.05))
            result = await session.ask(self._load.prompt, check=False)
        self.tally.take(result, anyio.current_time() - began)

    async def _cancelled(self, session: Session, after: float) -> None:
        await anyio.sleep(after)
        await session.cancel()
