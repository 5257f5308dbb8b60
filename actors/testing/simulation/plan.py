"""Generate the plan of a simulation from a seed: sessions, asks, the model's answers, tool calls, and faults.

A plan is data. Every part that can be removed has a name: an ask `3.7` (the eighth of the fourth session), and its
rounds of calls `3.7.r0`, faults `3.7.f1`, actions `3.7.m2` and features `3.7.w0`. Removing a part does not change other
parts, so a failing plan can be shrunk (`actors.testing.simulation`).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal, TypeAlias

from actors.core.settings.spending import Budget, Price
from actors.strict.faults import (
    OVERLOADED,
    RATE_LIMITED,
    SERVER_ERROR,
    Disconnect,
    ErrorInStream,
    Garbage,
    InjectedFault,
    MalformedEvent,
    Stall,
    Status,
)
from actors.testing.simulation.forms import OUTPUT_FORMATS

Mode: TypeAlias = Literal["safety", "liveness"]
"""In the mode `safety`, faults happen until the end. In `liveness`, faults stop, and then every session must answer."""

Mistake: TypeAlias = Literal["", "malformed", "missing", "wrong", "unknown"]
"""The model's mistake in a call; empty for no mistake."""

Kind: TypeAlias = Literal[
    "switch", "cancel", "abandon", "crash", "busy", "compact", "configure", "call_tool", "rewind"
]

FeatureKind: TypeAlias = Literal["output", "parts", "settings"]

FAULTS: tuple[InjectedFault, ...] = (
    RATE_LIMITED,
    Status(429, retry_after="7"),
    Status(429, retry_after="40"),
    Status(429),
    SERVER_ERROR,
    Status(503, retry_after="nonsense"),
    OVERLOADED,
    Status(500, body=b"<html>"),
    Status(400),
    Status(401),
    Stall(),
    Stall(after_bytes=60),
    Stall(after_bytes=700),
    Disconnect(),
    Disconnect(after_bytes=40),
    Disconnect(after_bytes=600),
    Disconnect(after_bytes=0, reset=True),
    ErrorInStream(0),
    ErrorInStream(4),
    Garbage(),
    MalformedEvent(2),
)

BAD_MANNERS = (
    "raises",
    "exits",
    "swallows",
    "swallows",
    "swallows",
    "spoils",
    "huge",
    "odd",
    "stray",
    "hangs",
)
MANNERS = (*("fine",) * 11, "shows", *BAD_MANNERS)
"""Behaviours of tools, mostly `fine`. `shows` returns an image or a document in addition to text."""

OWN_TOOLS = ("work", "work", "work", "work", "approved", "outside")
"""The tools of every session, in addition to its extra tool."""
EXTERNAL_TOOL = "outside"
"""The external tool."""
HANDOFFS = {"hand_over": "gemini", "hand_all_over": "either"}
"""The target of each handoff tool."""
DELEGATE = "delegate"
EXTRAS = ("write", DELEGATE, *HANDOFFS, "block")
"""Extra tools. A session has only one extra tool, so that requests stay small."""
SUBAGENT_TOOLS = ("work", "work", "approved")
SUBAGENT_MANNERS = ("swallows",) * 6 + MANNERS
"""Behaviours of a subagent's tools, a third of which ignore their cancellation."""
TOOLS_WITH_MISTAKES = (*OWN_TOOLS, "write", "block")
"""Tools that the model sometimes calls with mistakes."""
PERMANENT_TOOL = "lookup"
"""The permanent tool of the toolset. Models also call this tool in sessions without the toolset."""
TEMPORARY_TOOL = "lookup_more"
"""The temporary tool of the toolset, which offers it only at times."""
MISTAKES: tuple[Mistake, ...] = ("malformed", "missing", "wrong", "unknown")
CRASHING = ("session", "scheduler", "ledger", "renderer")
ASK_SETTINGS = (
    "short",
    "cool",
    "one round",
    "two rounds",
    "no tools",
    "some tool",
    "in time",
    "few tokens",
    "no corrections",
)
"""Names of the settings that an ask may have; see `SETTINGS`."""
PRICE = Price(input=2.0, output=10.0)
"""The price of every model."""
BUDGETS = (Budget(rounds=7), Budget(tokens=9_000), Budget(money=0.02), Budget(seconds=30.0))
"""The budgets of sessions. Each session has one of them or none."""
TENANT = "shared"
"""The tenant of some sessions and their subagents."""
SHARED_BUDGET = Budget(tokens=24_000)
"""The budget that all sessions of `TENANT` share."""
CHANGES = (
    "system",
    "no system",
    "some tools",
    "all tools",
    "both",
    "toolset",
    "toolset",
    "broken toolset",
    "slow toolset",
)
"""Names of the configuration changes that an action may make."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool call that the model makes.

    Args:
        key: The name of the call, unique in the simulation. It is an argument of the tool.
        tool: The name of the tool.
        manner: The behaviour of the tool, one of `MANNERS`.
        seconds: The duration of the call.
        mistake: The model's mistake in its first attempt.
        subagent_rounds: The rounds of the subagent that the call starts.
        faults: The faults of the subagent's requests.
    """

    key: str
    tool: str
    manner: str
    seconds: float
    mistake: Mistake = ""
    subagent_rounds: tuple["PlannedRound", ...] = ()
    faults: tuple["PlannedFault", ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedRound:
    """An answer of the model that makes tool calls."""

    name: str
    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault of the server in one request of an ask. `request` is the index of the request, from 0."""

    name: str
    request: int
    fault: InjectedFault


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """An action that happens during an ask, `after` seconds from the start of the ask.

    `target` depends on the kind: the target of a switch, the actor to crash, the configuration change, the tool to run,
    or the number of turns to rewind.
    """

    name: str
    kind: Kind
    after: float
    target: str = ""


@dataclass(frozen=True, slots=True)
class Feature:
    """A special feature of an ask.

    Args:
        name: The name of this part of the plan.
        kind: `output` for a typed answer, `parts` for attachments in the message, `settings` for settings of the ask.
        value: The name of the output format, of the kind of attachments, or of the settings.
        wrong: The number of invalid answers that the model gives before a valid one.
    """

    name: str
    kind: FeatureKind
    value: str
    wrong: int = 0


@dataclass(frozen=True, slots=True)
class PlannedAsk:
    """The plan of one ask: its rounds, faults, actions and special features.

    Args:
        name: The name of the ask.
        pause: Seconds before the ask.
        streamed: Whether the caller reads the events of the ask, instead of only its result.
        rounds: The model's answers with tool calls.
        faults: The faults of the ask's requests.
        actions: The actions that happen during the ask.
        features: The special features of the ask.
    """

    name: str
    pause: float
    streamed: bool
    rounds: tuple[PlannedRound, ...]
    faults: tuple[PlannedFault, ...]
    actions: tuple[PlannedAction, ...]
    features: tuple[Feature, ...] = ()

    def feature(self, kind: FeatureKind) -> Feature | None:
        """Return the special feature of this kind, or None."""
        return next((each for each in self.features if each.kind == kind), None)


FeatureLookup: TypeAlias = Callable[[str, FeatureKind], Feature | None]
"""A function that returns the feature of a given kind in the ask with a given name, or None."""


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """The plan of one session.

    `reads_errors` is True if the session's model reads an error message to correct an invalid call.
    """

    number: int
    target: str
    reads_errors: bool
    asks: tuple[PlannedAsk, ...]
    budget: Budget | None = None
    tenant: str = ""

    @property
    def id(self) -> str:
        """The session's id."""
        return f"s{self.number}"


@dataclass(frozen=True, slots=True)
class Odds:
    """The probabilities of events, from 0 to 1, per ask unless another unit is stated.

    Args:
        fault: The server answers a request with a fault, per request.
        switch: The target is switched during the ask. With a third of this probability, a second switch follows.
        cancel: The ask is cancelled.
        abandon: The task that waits for the ask is cancelled.
        crash: An actor of the session crashes.
        busy: So many asks are sent at once that one is rejected because the queue is full.
        model_error: The model makes a mistake, per call. With 0, the model's typed answers are always valid too.
        compact: The history is compacted during the ask.
        rewind: The history is rewound during the ask.
        configure: The system prompt or the tools change during the ask.
        call_tool: The program runs a tool of the session during the ask.
        output: The ask requires a typed answer.
        parts: The message contains attachments.
        settings: The ask has its own settings.
        budget: The session has a budget, per session.
        tenant: A session without a budget shares the budget of a tenant, per session.
    """

    fault: float = 0.12
    switch: float = 0.35
    cancel: float = 0.08
    abandon: float = 0.08
    crash: float = 0.01
    busy: float = 0.03
    model_error: float = 0.08
    compact: float = 0.06
    rewind: float = 0.05
    configure: float = 0.06
    call_tool: float = 0.04
    output: float = 0.06
    parts: float = 0.04
    settings: float = 0.08
    budget: float = 0.06
    tenant: float = 0.06


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """The inputs from which a plan was generated, apart from its seed."""

    sessions: int
    turns: int
    odds: Odds
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """The plan of one simulation. `is_complete` is False if parts were removed."""

    seed: int
    mode: Mode
    inputs: PlanInputs
    session_plans: tuple[SessionPlan, ...]
    is_complete: bool = True

    @property
    def names(self) -> list[str]:
        """The names of all removable parts. The name of an ask precedes the names of its parts."""
        return [
            name
            for session_plan in self.session_plans
            for ask in session_plan.asks
            for name in _part_names(ask)
        ]

    def only(self, names: Collection[str]) -> "SimulationPlan":
        """Return a plan that contains only the parts with these names."""
        kept = frozenset(names)
        session_plans = (
            replace(session_plan, asks=tuple(_select_asks(session_plan.asks, kept)))
            for session_plan in self.session_plans
        )
        return replace(
            self,
            session_plans=tuple(session_plan for session_plan in session_plans if session_plan.asks),
            is_complete=False,
        )


def make_plan(
    seed: int, sessions: int, turns: int, targets: Sequence[str], tools: Sequence[str], mode: Mode, odds: Odds
) -> SimulationPlan:
    """Generate the plan for a seed. `tools` contains the names of the user's tools."""
    names = [(*OWN_TOOLS, *(extra,) * 3, PERMANENT_TOOL, *tools, *tools) for extra in EXTRAS]
    session_plans = tuple(
        _PlanAuthor(seed, number, targets, names[number % len(EXTRAS)], odds).plan_session(turns)
        for number in range(sessions)
    )
    return SimulationPlan(seed, mode, PlanInputs(sessions, turns, odds, tuple(tools)), session_plans)


def subagent_form(session: int) -> str:
    """Return the output format of the subagents of a session; empty for plain text."""
    return "list" if session // len(EXTRAS) % 2 else ""


def extra_tool(session: int) -> str:
    """Return the name of the tool that a session has in addition to the tools of all sessions."""
    return EXTRAS[session % len(EXTRAS)]


def subagent_task(call: PlannedCall, session_plan: SessionPlan) -> PlannedAsk:
    """Return the ask that a call sends to its subagent. Some models first answer in a wrong output format."""
    form = subagent_form(session_plan.number)
    features = (Feature(f"{call.key}.w", "output", form, int(call.seconds * 8) % 2),) if form else ()
    return PlannedAsk(call.key, 0.0, False, call.subagent_rounds, call.faults, (), features)


def _part_names(ask: PlannedAsk) -> Iterator[str]:
    yield ask.name
    yield from (part.name for parts in (ask.rounds, ask.faults, ask.actions, ask.features) for part in parts)


def _select_asks(asks: Sequence[PlannedAsk], names: frozenset[str]) -> Iterator[PlannedAsk]:
    for ask in asks:
        if ask.name in names:
            yield replace(
                ask,
                rounds=tuple(part for part in ask.rounds if part.name in names),
                faults=tuple(part for part in ask.faults if part.name in names),
                actions=tuple(part for part in ask.actions if part.name in names),
                features=tuple(part for part in ask.features if part.name in names),
            )


class _PlanAuthor:
    """A generator for the plan of one session. The plan depends only on the seed and the session's number."""

    def __init__(
        self, seed: int, number: int, targets: Sequence[str], tools: Sequence[str], odds: Odds
    ) -> None:
        self._random = Random(f"{seed}/{number}")  # noqa: S311  must be reproducible
        self._seed, self._number = seed, number
        self._targets = targets
        self._tools = tools
        self._odds = odds

    def plan_session(self, turns: int) -> SessionPlan:
        """Generate the plan of the session."""
        target, reads_errors = self._random.choice(self._targets), self._number % 2 == 0
        asks = tuple(self._plan_ask(f"{self._number}.{turn}") for turn in range(turns))
        apart = self._independent_random(str(self._number), "budget")
        budget = apart.choice(BUDGETS) if apart.random() < self._odds.budget else None
        shares = (
            budget is None
            and self._independent_random(str(self._number), "tenant").random() < self._odds.tenant
        )
        return SessionPlan(self._number, target, reads_errors, asks, budget, TENANT if shares else "")

    def _happens(self, chance: float) -> bool:
        """Return True with the probability `chance`."""
        return self._random.random() < chance

    def _plan_ask(self, name: str) -> PlannedAsk:
        random = self._random
        rounds = tuple(self._plan_round(f"{name}.r{at}") for at in range(random.choice((0, 1, 1, 2, 3))))
        at = [request for request in range(len(rounds) + 3) if self._happens(self._odds.fault)]
        faults = tuple(
            PlannedFault(f"{name}.f{number}", at, random.choice(FAULTS)) for number, at in enumerate(at)
        )
        return PlannedAsk(
            name,
            random.expovariate(0.5),
            self._happens(0.5),
            rounds,
            faults,
            tuple(self._plan_actions(name)),
            tuple(self._plan_features(name)),
        )

    def _plan_round(self, name: str) -> PlannedRound:
        count = self._random.choice((1, 1, 2, 3))
        return PlannedRound(name, tuple(self._plan_call(f"{name}c{at}") for at in range(count)))

    def _plan_call(self, key: str) -> PlannedCall:
        random, tool = self._random, self._random.choice(self._tools)
        is_wrong = self._happens(self._odds.model_error) and tool in TOOLS_WITH_MISTAKES
        manner, seconds = random.choice(MANNERS), random.expovariate(1.0)
        if tool == DELEGATE:
            return PlannedCall(key, tool, manner, seconds, "", *self._plan_subagent(key))
        return PlannedCall(key, tool, manner, seconds, random.choice(MISTAKES) if is_wrong else "")

    def _plan_subagent(self, key: str) -> tuple[tuple[PlannedRound, ...], tuple[PlannedFault, ...]]:
        """Generate the rounds and the faults of the subagent that a call starts."""
        apart = self._independent_random(key, DELEGATE)
        rounds: list[PlannedRound] = []
        for at in range(apart.choice((0, 1, 1, 2))):
            names = [f"{key}.b{at}c{number}" for number in range(apart.choice((1, 2)))]
            calls = (
                PlannedCall(
                    name, apart.choice(SUBAGENT_TOOLS), apart.choice(SUBAGENT_MANNERS), apart.expovariate(1.0)
                )
                for name in names
            )
            rounds.append(PlannedRound(f"{key}.b{at}", tuple(calls)))
        met = [at for at in range(len(rounds) + 1) if apart.random() < self._odds.fault]
        return tuple(rounds), tuple(PlannedFault(f"{key}.f{at}", at, apart.choice(FAULTS)) for at in met)

    def _plan_features(self, name: str) -> Iterator[Feature]:
        apart = self._independent_random(name, "output")
        if apart.random() < self._odds.output:
            wrong = apart.choice((0, 0, 0, 1, 2, 5)) if self._odds.model_error else 0
            yield Feature(f"{name}.w0", "output", apart.choice(tuple(OUTPUT_FORMATS)), wrong)
        apart = self._independent_random(name, "parts")
        if apart.random() < self._odds.parts:
            yield Feature(f"{name}.w1", "parts", apart.choice(("image", "document", "both")))
        apart = self._independent_random(name, "settings")
        if apart.random() < self._odds.settings:
            yield Feature(f"{name}.w2", "settings", apart.choice(ASK_SETTINGS))

    def _independent_random(self, name: str, feature: str) -> Random:
        """Return a random generator for one feature of an ask, so that a new feature does not change other choices."""
        return Random(f"{self._seed}/{name}/{feature}")  # noqa: S311  must be reproducible

    def _plan_actions(self, name: str) -> Iterator[PlannedAction]:
        odds, random, number = self._odds, self._random, 0
        chances: tuple[tuple[Kind, float, Sequence[str]], ...] = (
            ("switch", odds.switch, self._targets),
            ("switch", odds.switch / 3, self._targets),
            ("cancel", odds.cancel, ("",)),
            ("abandon", odds.abandon, ("",)),
            ("crash", odds.crash, CRASHING),
            ("busy", odds.busy, ("",)),
        )
        for kind, chance, among in chances:
            if self._happens(chance):
                yield PlannedAction(f"{name}.m{number}", kind, random.expovariate(0.4), random.choice(among))
                number += 1
        further: tuple[tuple[Kind, float, Sequence[str]], ...] = (
            ("compact", odds.compact, ("",)),
            ("configure", odds.configure, CHANGES),
            ("call_tool", odds.call_tool, ("work", "approved", "outside", extra_tool(self._number))),
            ("rewind", odds.rewind, ("1", "2", "4", "all")),
        )
        for kind, chance, among in further:
            apart = self._independent_random(name, kind)
            if apart.random() < chance:
                yield PlannedAction(f"{name}.m{number}", kind, apart.expovariate(0.4), apart.choice(among))
                number += 1
