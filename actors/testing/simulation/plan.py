"""Generate the plan of a simulation from a seed: sessions, asks, the model's answers, tool calls, and faults.

A plan is data. Every part that can be removed has a name: an ask `3.7` (the eighth of the fourth session), and its
rounds of calls `3.7.r0`, faults `3.7.f1` and moves `3.7.m2`. Removing a part does not change other parts, so a failing
plan can be shrunk (`actors.testing.simulation.shrinking`).
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
"""In the mode `safety`, faults happen until the end. In `liveness`, faults stop, and then every session must answer."""

Blunder: TypeAlias = Literal["", "malformed", "missing", "wrong", "unknown"]
"""The model's mistake in a call; empty for no mistake."""

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
"""Behaviours of tools, mostly `fine`. `shows` returns an image or a document in addition to text."""

OWN_TOOLS = ("work", "work", "work", "work", "approved", "outside")
"""The tools of every session, in addition to its extra tool."""
OUTSIDE = "outside"
"""The external tool."""
HANDOFFS = {"hand_over": "gemini", "hand_all_over": "either"}
"""The target of each handoff tool."""
DELEGATE = "delegate"
EXTRAS = ("write", DELEGATE, *HANDOFFS, "block")
"""Extra tools. A session has only one extra tool, so that requests stay small."""
BELOW = ("work", "work", "approved")
STUBBORN = ("swallows",) * 6 + MANNERS
"""Behaviours of a subagent's tools. Many of them ignore their cancellation."""
MISWRITTEN = (*OWN_TOOLS, "write", "block")
"""Tools that the model sometimes calls with mistakes."""
OF_A_TOOLSET = "lookup"
"""The permanent tool of the toolset. Models also call this tool in sessions without the toolset."""
AT_TIMES = "lookup_more"
"""The temporary tool of the toolset, which offers it only at times."""
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
"""Names of the settings that an ask may have; see `SETTINGS`."""
PRICE = Price(input=2.0, output=10.0)
"""The price of every model."""
BUDGETS = (Budget(rounds=7), Budget(tokens=9_000), Budget(money=0.02), Budget(seconds=30.0))
"""Budgets, of which some sessions have one."""
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
"""Names of the configuration changes that a move may make."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool call that the model makes.

    Args:
        key: The name of the call, unique in the simulation. It is an argument of the tool.
        tool: The name of the tool.
        manner: The behaviour of the tool, one of `MANNERS`.
        seconds: The duration of the call.
        blunder: The model's mistake in its first attempt.
        below: The rounds of the subagent that the call starts.
        faults: The faults of the subagent's requests.
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
    """An answer of the model that makes tool calls."""

    name: str
    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True, slots=True)
class FaultAt:
    """A fault of the server in one request of an ask. `request` is the index of the request, from 0."""

    name: str
    request: int
    fault: InjectedFault


@dataclass(frozen=True, slots=True)
class Move:
    """An action during an ask, `after` seconds from the start of the ask.

    `target` depends on the kind: the target of a switch, the actor to crash, the configuration change, the tool to run,
    or the number of turns to rewind.
    """

    name: str
    kind: Kind
    after: float
    target: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """A special feature of an ask.

    Args:
        name: The name of this part of the plan.
        kind: `output` for a typed answer, `parts` for attachments in the message, `settings` for settings of the ask.
        what: The output format, the kind of attachments, or the settings.
        wrong: The number of invalid answers that the model gives first.
    """

    name: str
    kind: WishKind
    what: str
    wrong: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """A user message with its planned rounds, faults, moves and wishes.

    Args:
        name: The name of the ask.
        pause: Seconds before the ask.
        streamed: Whether the caller reads the events of the ask, instead of only its result.
        rounds: The model's answers with tool calls.
        faults: The faults of the ask's requests.
        moves: The actions during the ask.
        wishes: The special features of the ask.
    """

    name: str
    pause: float
    streamed: bool
    rounds: tuple[PlannedRound, ...]
    faults: tuple[FaultAt, ...]
    moves: tuple[Move, ...]
    wishes: tuple[Wish, ...] = ()

    def wish(self, kind: WishKind) -> Wish | None:
        """Return the special feature of this kind, or None."""
        return next((each for each in self.wishes if each.kind == kind), None)


WishLookup: TypeAlias = Callable[[str, WishKind], Wish | None]
"""A function that returns the wish of a given kind in the ask with a given name, or None."""


@dataclass(frozen=True, slots=True)
class Talk:
    """The plan of one session.

    `heeds` is True if the session's model corrects an invalid call by reading the error message.
    """

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
    """The probabilities of events, from 0 to 1, per ask unless another unit is stated.

    Args:
        fault: The server answers a request with a fault, per request.
        switch: The target is switched during the ask. With a third of this probability, a second switch follows.
        cancel: The ask is cancelled.
        abandon: The task that waits for the ask is cancelled.
        crash: An actor of the session crashes.
        busy: So many asks are sent at once that one of them is rejected, because the queue is full.
        blunder: The model makes a mistake, per call. With 0, it also gives no invalid answer to an ask for a typed
            answer.
        compact: The history is compacted during the ask.
        rewind: The history is rewound during the ask.
        configure: The system prompt or the tools change during the ask.
        call_tool: The program runs a tool of the session during the ask.
        output: The ask requires a typed answer.
        parts: The message contains attachments.
        settings: The ask has settings of its own.
        budget: The session has a budget, per session.
        tenant: A session without a budget shares the budget of a tenant, per session.
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
class PlanInputs:
    """The inputs from which a plan was generated, apart from its seed."""

    sessions: int
    turns: int
    odds: Odds
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """The plan of one simulation. `is_whole` is False if parts were removed."""

    seed: int
    mode: Mode
    made: PlanInputs
    talks: tuple[Talk, ...]
    is_whole: bool = True

    @property
    def names(self) -> list[str]:
        """The names of all removable parts. The name of an ask precedes the names of its parts."""
        return [name for talk in self.talks for ask in talk.asks for name in _part_names(ask)]

    def only(self, names: Collection[str]) -> "SimulationPlan":
        """Return the plan reduced to the parts with these names."""
        kept = frozenset(names)
        talks = (replace(talk, asks=tuple(_select_asks(talk.asks, kept))) for talk in self.talks)
        return replace(self, talks=tuple(talk for talk in talks if talk.asks), is_whole=False)


def make_plan(
    seed: int, sessions: int, turns: int, targets: Sequence[str], tools: Sequence[str], mode: Mode, odds: Odds
) -> SimulationPlan:
    """Generate the plan of a seed. `tools` contains the names of the user's tools."""
    names = [(*OWN_TOOLS, *(extra,) * 3, OF_A_TOOLSET, *tools, *tools) for extra in EXTRAS]
    talks = tuple(
        _PlanAuthor(seed, number, targets, names[number % len(EXTRAS)], odds).plan_session(turns)
        for number in range(sessions)
    )
    return SimulationPlan(seed, mode, PlanInputs(sessions, turns, odds, tuple(tools)), talks)


def subagent_form(session: int) -> str:
    """Return the output format of the subagents of a session; empty for plain text."""
    return "list" if session // len(EXTRAS) % 2 else ""


def extra_tool(session: int) -> str:
    """Return the name of the tool that a session has in addition to the tools of all sessions."""
    return EXTRAS[session % len(EXTRAS)]


def subagent_task(call: PlannedCall, talk: Talk) -> Ask:
    """Return the ask that a call sends to its subagent. Some models first answer in a wrong output format."""
    form = subagent_form(talk.number)
    wishes = (Wish(f"{call.key}.w", "output", form, int(call.seconds * 8) % 2),) if form else ()
    return Ask(call.key, 0.0, False, call.below, call.faults, (), wishes)


def _part_names(ask: Ask) -> Iterator[str]:
    yield ask.name
    yield from (part.name for parts in (ask.rounds, ask.faults, ask.moves, ask.wishes) for part in parts)


def _select_asks(asks: Sequence[Ask], names: frozenset[str]) -> Iterator[Ask]:
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
    """A generator for the plan of one session. The plan depends only on the seed and the session's number."""

    def __init__(
        self, seed: int, number: int, targets: Sequence[str], tools: Sequence[str], odds: Odds
    ) -> None:
        self._random = Random(f"{seed}/{number}")  # noqa: S311  must be reproducible
        self._seed, self._number = seed, number
        self._targets = targets
        self._tools = tools
        self._odds = odds

    def plan_session(self, turns: int) -> Talk:
        """Generate the plan of the session."""
        target, heeds = self._random.choice(self._targets), self._number % 2 == 0
        asks = tuple(self._plan_ask(f"{self._number}.{turn}") for turn in range(turns))
        apart = self._independent_random(str(self._number), "budget")
        budget = apart.choice(BUDGETS) if apart.random() < self._odds.budget else None
        shares = (
            budget is None
            and self._independent_random(str(self._number), "tenant").random() < self._odds.tenant
        )
        return Talk(self._number, target, heeds, asks, budget, TENANT if shares else "")

    def _happens(self, chance: float) -> bool:
        """Return True with the probability `chance`."""
        return self._random.random() < chance

    def _plan_ask(self, name: str) -> Ask:
        random = self._random
        rounds = tuple(self._plan_round(f"{name}.r{at}") for at in range(random.choice((0, 1, 1, 2, 3))))
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
            tuple(self._plan_moves(name)),
            tuple(self._plan_wishes(name)),
        )

    def _plan_round(self, name: str) -> PlannedRound:
        count = self._random.choice((1, 1, 2, 3))
        return PlannedRound(name, tuple(self._plan_call(f"{name}c{at}") for at in range(count)))

    def _plan_call(self, key: str) -> PlannedCall:
        random, tool = self._random, self._random.choice(self._tools)
        is_wrong = self._happens(self._odds.blunder) and tool in MISWRITTEN
        manner, seconds = random.choice(MANNERS), random.expovariate(1.0)
        if tool == DELEGATE:
            return PlannedCall(key, tool, manner, seconds, "", *self._plan_subagent(key))
        return PlannedCall(key, tool, manner, seconds, random.choice(BLUNDERS) if is_wrong else "")

    def _plan_subagent(self, key: str) -> tuple[tuple[PlannedRound, ...], tuple[FaultAt, ...]]:
        """Generate the rounds and the faults of the subagent that a call starts."""
        apart = self._independent_random(key, DELEGATE)
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

    def _plan_wishes(self, name: str) -> Iterator[Wish]:
        apart = self._independent_random(name, "output")
        if apart.random() < self._odds.output:
            wrong = apart.choice((0, 0, 0, 1, 2, 5)) if self._odds.blunder else 0
            yield Wish(f"{name}.w0", "output", apart.choice(tuple(FORMS)), wrong)
        apart = self._independent_random(name, "parts")
        if apart.random() < self._odds.parts:
            yield Wish(f"{name}.w1", "parts", apart.choice(("image", "document", "both")))
        apart = self._independent_random(name, "settings")
        if apart.random() < self._odds.settings:
            yield Wish(f"{name}.w2", "settings", apart.choice(ASK_SETTINGS))

    def _independent_random(self, name: str, feature: str) -> Random:
        """Return a separate random generator for one feature, so that new features do not change existing plans."""
        return Random(f"{self._seed}/{name}/{feature}")  # noqa: S311  must be reproducible

    def _plan_moves(self, name: str) -> Iterator[Move]:
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
            ("call_tool", odds.call_tool, ("work", "approved", "outside", extra_tool(self._number))),
            ("rewind", odds.rewind, ("1", "2", "4", "all")),
        )
        for kind, chance, among in further:
            apart = self._independent_random(name, kind)
            if apart.random() < chance:
                yield Move(f"{name}.m{number}", kind, apart.expovariate(0.4), apart.choice(among))
                number += 1
