"""What one seed decides: sessions, asks, what the model says, which tools it calls, what goes wrong and when.

A plan is data. Everything in it that can be taken away has a name: an ask `3.7` (the eighth of the fourth session), and
below it a round of calls `3.7.r0`, a fault `3.7.f1`, a move `3.7.m2`. What is left of a plan stays as it was, so a plan
that fails can be made small (`actors.testing.simulation.shrinking`).
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
from actors.testing.simulation.forms import FORMS

Mode: TypeAlias = Literal["safety", "liveness"]
"""`safety`: faults to the end. `liveness`: they stop, and then every session must answer."""

Blunder: TypeAlias = Literal["", "malformed", "missing", "wrong", "unknown"]
"""What is wrong with a call as the model writes it."""

Kind: TypeAlias = Literal[
    "switch", "cancel", "abandon", "crash", "busy", "compact", "configure", "call_tool", "rewind"
]

WishKind: TypeAlias = Literal["output", "parts", "settings"]

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
"""How tools behave, the good ones more often. One that `shows` returns an image or a document beside its words."""

OWN_TOOLS = ("work", "work", "work", "work", "approved", "outside")
"""The simulation's tools that every session has; those of its extra one come beside them."""
OUTSIDE = "outside"
"""The tool whose calls are answered from outside."""
HANDOFFS = {"hand_over": "gemini", "hand_all_over": "either"}
"""Tools that hand the conversation over, and to whom."""
DELEGATE = "delegate"
EXTRAS = ("write", DELEGATE, *HANDOFFS, "block")
"""Tools of which a session has one, so that requests stay small."""
BELOW = ("work", "work", "approved")
STUBBORN = ("swallows",) * 6 + MANNERS
"""Tools of a subagent, and how they behave: many do not end when they are told to."""
MISWRITTEN = (*OWN_TOOLS, "write", "block")
"""Tools whose calls are wrong at times, as the model writes them."""
OF_A_TOOLSET = "lookup"
"""The tool of a toolset. Models call it also where there is none."""
AT_TIMES = "lookup_more"
"""A tool that the toolset offers at times."""
BLUNDERS: tuple[Blunder, ...] = ("malformed", "missing", "wrong", "unknown")
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
"""What asks set for themselves."""
PRICE = Price(input=2.0, output=10.0)
"""Of every model."""
BUDGETS = (Budget(rounds=7), Budget(tokens=9_000), Budget(money=0.02), Budget(seconds=30.0))
"""What some sessions may use."""
TENANT = "shared"
"""Whose some sessions are, with their subagents."""
SHARED_BUDGET = Budget(tokens=24_000)
"""What they may use together."""
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
"""What is configured."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that the model makes.

    Args:
        key: Names it in the whole run; the tool gets it as an argument.
        tool: Which tool.
        manner: How the tool behaves, one of `MANNERS`.
        seconds: How long it takes.
        blunder: What is wrong with it at first.
        below: What a subagent's model does with the task of this call.
        faults: What its requests meet.
    """

    key: str
    tool: str
    manner: str
    seconds: float
    blunder: Blunder = ""
    below: tuple["PlannedRound", ...] = ()
    faults: tuple["FaultAt", ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedRound:
    """One answer of the model that calls tools."""

    name: str
    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True, slots=True)
class FaultAt:
    """A fault, and which request of the ask meets it, from 0."""

    name: str
    request: int
    fault: InjectedFault


@dataclass(frozen=True, slots=True)
class Move:
    """What is done beside an ask, so many seconds after it began.

    `target` is that of a switch, the actor that crashes, what is configured, the tool that is run, or how many turns
    are taken back.
    """

    name: str
    kind: Kind
    after: float
    target: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """What an ask wants beside an answer.

    Args:
        kind: `output`: that the answer has a form; `parts`: to say more than words; `settings`: of its own.
        what: Which form, what is said, or which settings.
        wrong: How many answers the model gives first that are not so.
    """

    name: str
    kind: WishKind
    what: str
    wrong: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """One user message and all that belongs to it.

    Args:
        pause: Seconds before it.
        streamed: Whether its events are read, and not only its result.
    """

    name: str
    pause: float
    streamed: bool
    rounds: tuple[PlannedRound, ...]
    faults: tuple[FaultAt, ...]
    moves: tuple[Move, ...]
    wishes: tuple[Wish, ...] = ()

    def wish(self, kind: WishKind) -> Wish | None:
        """Return the wish of a kind, if it has one."""
        return next((each for each in self.wishes if each.kind == kind), None)


WishOf: TypeAlias = Callable[[str, WishKind], Wish | None]
"""Says what an ask wants beside an answer, by its name."""


@dataclass(frozen=True, slots=True)
class Talk:
    """What one session goes through. `heeds`: whether its model uses what it is told about an invalid call."""

    number: int
    target: str
    heeds: bool
    asks: tuple[Ask, ...]
    budget: Budget | None = None
    tenant: str = ""

    @property
    def id(self) -> str:
        """The session's id."""
        return f"s{self.number}"


@dataclass(frozen=True, slots=True)
class Odds:
    """How often things happen: a chance for each ask, for each request of a fault, for each session of a budget.

    `tenant`: that a session has none of its own, and shares one.
    """

    fault: float = 0.12
    switch: float = 0.35
    cancel: float = 0.08
    abandon: float = 0.08
    crash: float = 0.01
    busy: float = 0.03
    blunder: float = 0.08
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
class Made:
    """What a plan was made with, beside its seed."""

    sessions: int
    turns: int
    odds: Odds
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """All that happens in one run. `is_whole`: nothing was taken away."""

    seed: int
    mode: Mode
    made: Made
    talks: tuple[Talk, ...]
    is_whole: bool = True

    @property
    def names(self) -> list[str]:
        """Names of all that can be taken away, asks before what belongs to them."""
        return [name for talk in self.talks for ask in talk.asks for name in _names(ask)]

    def only(self, names: Collection[str]) -> "SimulationPlan":
        """Return the plan with nothing but these."""
        kept = frozenset(names)
        talks = (replace(talk, asks=tuple(_keep(talk.asks, kept))) for talk in self.talks)
        return replace(self, talks=tuple(talk for talk in talks if talk.asks), is_whole=False)


def make_plan(
    seed: int, sessions: int, turns: int, targets: Sequence[str], tools: Sequence[str], mode: Mode, odds: Odds
) -> SimulationPlan:
    """Return the plan of a seed. `tools` are the names of the user's own."""
    names = [(*OWN_TOOLS, *(extra,) * 3, OF_A_TOOLSET, *tools, *tools) for extra in EXTRAS]
    talks = tuple(
        _PlanAuthor(seed, number, targets, names[number % len(EXTRAS)], odds).talk(turns)
        for number in range(sessions)
    )
    return SimulationPlan(seed, mode, Made(sessions, turns, odds, tuple(tools)), talks)


def form_below(session: int) -> str:
    """Return the form of what a session's subagents answer; empty for words."""
    return "list" if session // len(EXTRAS) % 2 else ""


def extra_of(session: int) -> str:
    """Return the tool that a session has beside those that every one has."""
    return EXTRAS[session % len(EXTRAS)]


def task_of(call: PlannedCall, talk: Talk) -> Ask:
    """Return what a call of a session has its subagent do, as an ask. Every second answers in the wrong form first."""
    form = form_below(talk.number)
    wishes = (Wish(f"{call.key}.w", "output", form, int(call.seconds * 8) % 2),) if form else ()
    return Ask(call.key, 0.0, False, call.below, call.faults, (), wishes)


def _names(ask: Ask) -> Iterator[str]:
    yield ask.name
    yield from (part.name for parts in (ask.rounds, ask.faults, ask.moves, ask.wishes) for part in parts)


def _keep(asks: Sequence[Ask], names: frozenset[str]) -> Iterator[Ask]:
    for ask in asks:
        if ask.name in names:
            yield replace(
                ask,
                rounds=tuple(part for part in ask.rounds if part.name in names),
                faults=tuple(part for part in ask.faults if part.name in names),
                moves=tuple(part for part in ask.moves if part.name in names),
                wishes=tuple(part for part in ask.wishes if part.name in names),
            )


class _PlanAuthor:
    """Writes what one session goes through. It depends on the seed and the session's number only."""

    def __init__(
        self, seed: int, number: int, targets: Sequence[str], tools: Sequence[str], odds: Odds
    ) -> None:
        self._random = Random(f"{seed}/{number}")  # noqa: S311  a plan, not secrets
        self._seed, self._number = seed, number
        self._targets = targets
        self._tools = tools
        self._odds = odds

    def talk(self, turns: int) -> Talk:
        """Return all of it."""
        target, heeds = self._random.choice(self._targets), self._number % 2 == 0
        asks = tuple(self._ask(f"{self._number}.{turn}") for turn in range(turns))
        apart = self._apart(str(self._number), "budget")
        budget = apart.choice(BUDGETS) if apart.random() < self._odds.budget else None
        shares = budget is None and self._apart(str(self._number), "tenant").random() < self._odds.tenant
        return Talk(self._number, target, heeds, asks, budget, TENANT if shares else "")

    def _happens(self, chance: float) -> bool:
        return self._random.random() < chance

    def _ask(self, name: str) -> Ask:
        random = self._random
        rounds = tuple(self._round(f"{name}.r{at}") for at in range(random.choice((0, 1, 1, 2, 3))))
        at = [request for request in range(len(rounds) + 3) if self._happens(self._odds.fault)]
        faults = tuple(
            FaultAt(f"{name}.f{number}", at, random.choice(FAULTS)) for number, at in enumerate(at)
        )
        return Ask(
            name,
            random.expovariate(0.5),
            self._happens(0.5),
            rounds,
            faults,
            tuple(self._moves(name)),
            tuple(self._wishes(name)),
        )

    def _round(self, name: str) -> PlannedRound:
        count = self._random.choice((1, 1, 2, 3))
        return PlannedRound(name, tuple(self._call(f"{name}c{at}") for at in range(count)))

    def _call(self, key: str) -> PlannedCall:
        random, tool = self._random, self._random.choice(self._tools)
        is_wrong = self._happens(self._odds.blunder) and tool in MISWRITTEN
        manner, seconds = random.choice(MANNERS), random.expovariate(1.0)
        if tool == DELEGATE:
            return PlannedCall(key, tool, manner, seconds, "", *self._below(key))
        return PlannedCall(key, tool, manner, seconds, random.choice(BLUNDERS) if is_wrong else "")

    def _below(self, key: str) -> tuple[tuple[PlannedRound, ...], tuple[FaultAt, ...]]:
        """Return what a subagent goes through."""
        apart = self._apart(key, DELEGATE)
        rounds: list[PlannedRound] = []
        for at in range(apart.choice((0, 1, 1, 2))):
            names = [f"{key}.b{at}c{number}" for number in range(apart.choice((1, 2)))]
            calls = (
                PlannedCall(name, apart.choice(BELOW), apart.choice(STUBBORN), apart.expovariate(1.0))
                for name in names
            )
            rounds.append(PlannedRound(f"{key}.b{at}", tuple(calls)))
        met = [at for at in range(len(rounds) + 1) if apart.random() < self._odds.fault]
        return tuple(rounds), tuple(FaultAt(f"{key}.f{at}", at, apart.choice(FAULTS)) for at in met)

    def _wishes(self, name: str) -> Iterator[Wish]:
        apart = self._apart(name, "output")
        if apart.random() < self._odds.output:
            wrong = apart.choice((0, 0, 0, 1, 2, 5)) if self._odds.blunder else 0
            yield Wish(f"{name}.w0", "output", apart.choice(tuple(FORMS)), wrong)
        apart = self._apart(name, "parts")
        if apart.random() < self._odds.parts:
            yield Wish(f"{name}.w1", "parts", apart.choice(("image", "document", "both")))
        apart = self._apart(name, "settings")
        if apart.random() < self._odds.settings:
            yield Wish(f"{name}.w2", "settings", apart.choice(ASK_SETTINGS))

    def _apart(self, name: str, what: str) -> Random:
        """Return a chance of its own: what else happens stays as it is."""
        return Random(f"{self._seed}/{name}/{what}")  # noqa: S311  as above

    def _moves(self, name: str) -> Iterator[Move]:
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
                yield Move(f"{name}.m{number}", kind, random.expovariate(0.4), random.choice(among))
                number += 1
        further: tuple[tuple[Kind, float, Sequence[str]], ...] = (
            ("compact", odds.compact, ("",)),
            ("configure", odds.configure, CHANGES),
            ("call_tool", odds.call_tool, ("work", "approved", "outside", extra_of(self._number))),
            ("rewind", odds.rewind, ("1", "2", "4", "all")),
        )
        for kind, chance, among in further:
            apart = self._apart(name, kind)
            if apart.random() < chance:
                yield Move(f"{name}.m{number}", kind, apart.expovariate(0.4), apart.choice(among))
                number += 1
