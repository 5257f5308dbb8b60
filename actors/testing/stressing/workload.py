"""Run the sessions of a stress test, which ask, pause, switch and cancel, and count the results."""

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
from actors.tools.toolset import ToolLike


class Load(Struct, frozen=True):
    """The load of a stress test.

    Args:
        target: Initial target of each session.
        sessions: Number of concurrent sessions.
        turns: Asks per session.
        switches: Targets for random switches before asks.
        switching: Probability of a switch before each ask.
        cancelling: Probability of cancelling each ask.
        think: Mean pause between two asks, in seconds.
        seconds: Seconds after which no new ask begins; None for no limit.
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
                raise ConfigError(f"{name}= must be {takes}, not {value!r}")


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_probability(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


_FIGURES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "sessions": ("an integer of at least 1", _is_count),
    "turns": ("an integer of at least 1", _is_count),
    "switching": ("a probability from 0 to 1", _is_probability),
    "cancelling": ("a probability from 0 to 1", _is_probability),
    "think": (
        "a number of seconds, at least 0",
        lambda value: isinstance(value, int | float) and 0 <= value < inf,
    ),
    "seconds": ("a number of seconds above 0, or None", lambda value: value is None or _is_positive(value)),
}


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and value > 0


@dataclass(slots=True)
class LoadTally:
    """The counts of asks by status and of failures by cause, and the latencies of completed asks in seconds."""

    statuses: Counter[str] = field(default_factory=Counter[str])
    failures: Counter[str] = field(default_factory=Counter[str])
    seconds: list[float] = field(default_factory=list[float])
    rounds: int = 0
    switches: int = 0

    def count_result(self, result: AskResult, seconds: float) -> None:
        """Count the result of an ask that took `seconds`."""
        self.statuses[result.status] += 1
        self.rounds += result.rounds
        if result.status == "complete":
            self.seconds.append(seconds)
        elif result.status in ("failed", "interrupted"):
            causes = [each.cause.kind for each in result.attempts if each.cause is not None]
            self.failures[causes[-1] if causes else "other"] += 1

    def count_rejection(self, error: ActorsError) -> None:
        """Count an ask that the runtime rejected."""
        self.statuses["refused"] += 1
        self.failures[type(error).__name__] += 1

    def percentile(self, share: float) -> float:
        """Return a percentile of the latency of completed asks, in seconds; 0 if no ask has completed.

        `share` is a number from 0 to 1, such as 0.9 for the 90th percentile.
        """
        ranked = sorted(self.seconds)
        return ranked[max(0, ceil(share * len(ranked)) - 1)] if ranked else 0.0


class LoadRunner:
    """Runs a load on a runtime, and counts the results."""

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
                tasks.start_soon(self._run_session, Random(f"{self._load.seed}/{number}"))  # noqa: S311  must be reproducible

    async def _run_session(self, random: Random) -> None:
        session = await self._runtime.open(self._load.target, tools=self._tools, approve=self._approve)
        for _ in range(self._load.turns):
            if self._remaining_seconds() <= 0:
                break
            try:
                await self._maybe_switch(session, random)
                await self._run_ask(session, random)
            except ActorsError as error:
                self.tally.count_rejection(error)
            if self._load.think:
                pause = random.expovariate(1 / self._load.think)
                await anyio.sleep(min(pause, self._remaining_seconds()))
        await session.close()

    def _remaining_seconds(self) -> float:
        """Return the seconds until no new ask may begin; infinity without a limit."""
        return inf if self._until is None else max(0.0, self._until - anyio.current_time())

    async def _maybe_switch(self, session: Session, random: Random) -> None:
        if self._load.switches and random.random() < self._load.switching:
            await session.switch(random.choice(self._load.switches))
            self.tally.switches += 1

    async def _run_ask(self, session: Session, random: Random) -> None:
        began = anyio.current_time()
        if random.random() >= self._load.cancelling:
            self.tally.count_result(
                await session.ask(self._load.prompt, check=False), anyio.current_time() - began
            )
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cancel_after, session, random.uniform(0, 0.05))
            result = await session.ask(self._load.prompt, check=False)
            self.tally.count_result(result, anyio.current_time() - began)

    async def _cancel_after(self, session: Session, seconds: float) -> None:
        await anyio.sleep(seconds)
        await session.cancel()
