"""The model of a simulation: it says what the plan says, and may mend a call that was refused."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from actors.strict.rules.base import Json
from actors.strict.script import Call, Part, Say, Think, Turn
from actors.strict.windows import BYTES
from actors.testing.simulation.forms import WRONG, answer, is_explained
from actors.testing.simulation.plan import (
    DELEGATE,
    HANDOFFS,
    Ask,
    PlannedCall,
    PlannedRound,
    SimulationPlan,
    Talk,
    Wish,
    WishKind,
    task_of,
)
from actors.testing.simulation.saying import is_task, task

ASK = b"[ask "
SUMMARY = b"Write that summary now"
TASK = b"[task "
ASKED = re.compile(rb"\[(?:ask|task) ([\w.]+)\]")
"""How a user's message names its ask."""
ABOUT = re.compile(rb"That is all about ([\w.]+)\.")
"""How a summary names the last one that it stands for."""
CORRECTIONS = 3
BLANK = 0.02
"""How often a model says nothing, or only thinks, before it says what is planned."""
GUESS = 0.3
"""How often a model finds out by itself what was wrong with its call."""


def asked(body: bytes) -> str | None:
    """Return the ask that a body ends with; None if it holds none."""
    at = body.rfind(ASK)
    found = ASKED.match(body, body.rfind(TASK) if at < 0 else at)
    return None if found is None else found[1].decode()


@dataclass(slots=True)
class Progress:
    """How far an ask has come at the servers.

    Args:
        requests: How many were made for it.
        round: Which of its rounds comes next.
        answers: How many answers began, so that no two calls are named alike.
        tries: Answers in which the calls of that round were wrong.
        last: Answers without the form that was asked for.
        blanks: Answers without content, by the place at which the model gave them.
    """

    requests: int = 0
    round: int = 0
    answers: int = 0
    tries: int = 0
    last: int = 0
    blanks: Counter[tuple[int, int]] = field(default_factory=Counter)

    @property
    def place(self) -> tuple[int, int]:
        """Where the ask stands: its round, and the wrong answers before."""
        return self.round, self.tries + self.last


@dataclass(slots=True)
class Corrections:
    """Answers with wrong calls, and the rounds that began with one."""

    invalid: int = 0
    rounds: int = 0


@dataclass(slots=True)
class Model:
    """Speaks for every server. It reads a request before the server does, and answers then."""

    plan: SimulationPlan
    arguments: Mapping[str, Mapping[str, Json]]
    """What tools that are not the simulation's own are called with, by name."""
    now: str | None = None
    """The ask whose request is being answered."""
    told: bytes = b""
    """What it was told since the user spoke."""
    size: int = 0
    """Bytes of the request."""
    summarises: bool = False
    """Whether that is to write a summary. What is planned goes on behind it."""
    progress: dict[str, Progress] = field(default_factory=dict)
    corrections: Mapping[bool, Corrections] = field(
        default_factory=lambda: {True: Corrections(), False: Corrections()}
    )
    _asks: dict[str, tuple[Talk, Ask]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._asks = {ask.name: (talk, ask) for talk in self.plan.talks for ask in talk.asks}
        for talk, ask in tuple(self._asks.values()):
            for call in (call for round_ in ask.rounds for call in round_.calls if call.tool == DELEGATE):
                self._asks[call.key] = talk, task_of(call, talk)

    def _known(self, name: str | None) -> tuple[Talk, Ask] | None:
        """Return what is planned for an ask, or for the task of a call, which names the answer that made it too."""
        return None if name is None else self._asks.get(name) or self._asks.get(name.rpartition("a")[0])

    def read(self, body: bytes) -> None:
        """Read a request: whose it is, and what the model is told in it."""
        self.size = len(body)
        self.told = body[max(0, body.rfind(ASK), 0 if ASK in body else body.rfind(TASK)) :]
        self.now, self.summarises = asked(body), SUMMARY in self.told
        if self.now is None and self.summarises and (about := ABOUT.findall(body)):
            self.now = about[-1].decode()  # the user's words may be in an earlier summary by then
        self.progress.setdefault(self.now or "", Progress()).requests += not self.summarises

    def fault(self, number: int, request: object) -> object:
        """Return the fault that the present request meets."""
        if self.summarises or (known := self._known(self.now)) is None:
            return None
        at = self.progress[self.now or ""].requests - 1
        return next((each.fault for each in known[1].faults if each.request == at), None)

    def turn(self, request: object) -> Turn:
        """Return what the model says to the present request, without going on from there."""
        known, progress = self._known(self.now), self.progress.get(self.now or "", Progress())
        if self.summarises or known is None:
            about = f"That is all about {self.now}." if self.now else "The program did something."
            return Turn(Say(about), usage=self._usage)
        talk, ask = known
        if self._is_blank(ask, progress):
            return Turn(*([Think("Let me see.")] if talk.heeds else []), usage=self._usage)
        if progress.round >= len(ask.rounds):
            return Turn(Say(self._last_words(talk, ask, progress)), fragment=60, usage=self._usage)
        round_ = ask.rounds[progress.round]
        calls = self._calls(talk, round_, progress)
        chance = self._chance(round_, progress)
        parts: list[Part] = [Think("Let me see.")] if chance.random() < 0.3 else []
        if chance.random() < 0.5:
            parts.append(Say("One moment."))
        return Turn(*parts, *calls, fragment=60, usage=self._usage)

    def answered(self) -> None:
        """Go on: the answer went out whole."""
        if self.summarises:
            return
        known, progress = self._known(self.now), self.progress.get(self.now or "")
        if known is None or progress is None:
            return
        talk, ask = known
        if self._is_blank(ask, progress):
            progress.blanks[progress.place] += 1
            return
        if progress.round >= len(ask.rounds):
            progress.last += 1
            return
        if self._wrong(talk, ask.rounds[progress.round], progress):
            count = self.corrections[talk.heeds]
            count.invalid += 1
            count.rounds += progress.tries == 0
            progress.tries += 1
        else:
            progress.round, progress.tries = progress.round + 1, 0

    def _is_blank(self, ask: Ask, progress: Progress) -> bool:
        """Say whether the model says nothing this time. At one place it does so once, or twice."""
        place = progress.place
        chance = Random(f"{self.plan.seed}/{ask.name}/{place}/blank").random()  # noqa: S311  as in the plan
        return progress.blanks[place] < (chance < BLANK) + (chance < BLANK / 4)

    @property
    def _usage(self) -> tuple[int, int]:
        """What the provider reports: the request at its size, and a short answer."""
        return self.size // BYTES, 7

    def _last_words(self, talk: Talk, ask: Ask, progress: Progress) -> str:
        """Return the final text, in the form asked for unless it is planned otherwise."""
        wish = ask.wish("output")
        if wish is None:
            return f"That is all about {self.now}."
        knows = progress.last and talk.heeds and is_explained(self.told) and wish.wrong <= CORRECTIONS
        if progress.last >= wish.wrong or knows:
            return answer(wish.what, self.now or ask.name)
        return WRONG[(len(ask.name) + progress.last) % len(WRONG)]

    def wish_of(self, ask: str, kind: WishKind) -> Wish | None:
        """Return the wish of a kind that an ask has, if it has one."""
        return self._asks[ask][1].wish(kind) if ask in self._asks else None

    def _chance(self, round_: PlannedRound, progress: Progress) -> Random:
        return Random(f"{self.plan.seed}/{round_.name}/{progress.tries}")  # noqa: S311  as in the plan

    def _wrong(self, talk: Talk, round_: PlannedRound, progress: Progress) -> bool:
        """Say whether the calls of a round are wrong this time."""
        if not any(call.blunder for call in round_.calls) or progress.tries >= CORRECTIONS:
            return False
        if progress.tries == 0:
            return True
        if talk.heeds and all(_explains(self.told, call) for call in round_.calls):
            return False
        return self._chance(round_, progress).random() > GUESS

    def _calls(self, talk: Talk, round_: PlannedRound, progress: Progress) -> list[Call]:
        """Return the calls of a round; in a second try only those that were wrong."""
        is_wrong = self._wrong(talk, round_, progress)
        calls = [call for call in round_.calls if progress.tries == 0 or call.blunder]
        progress.answers += 1
        return [self._call(call, progress.answers, is_wrong=is_wrong) for call in calls]

    def _call(self, call: PlannedCall, answer: int, *, is_wrong: bool) -> Call:
        if (arguments := self.arguments.get(call.tool)) is not None:
            return Call(call.tool, arguments)
        key = f"{call.key}a{answer}"
        if call.tool == DELEGATE:
            return Call(call.tool, {"task": task(key)})
        if call.tool in HANDOFFS:
            return Call(call.tool, {})
        if self.now is not None and is_task(self.now):
            key = f"{self.now}/{key}"
        return _written(call, key, is_wrong=is_wrong and bool(call.blunder))


def _written(call: PlannedCall, key: str, *, is_wrong: bool) -> Call:
    arguments = {"key": key, "manner": call.manner, "seconds": round(call.seconds, 3)}
    match call.blunder if is_wrong else "":
        case "malformed":
            return Call(call.tool, raw=json.dumps(arguments)[:-9])
        case "missing":
            return Call(call.tool, {"key": arguments["key"]})
        case "wrong":
            return Call(call.tool, {**arguments, "seconds": "soon"})
        case "unknown":
            return Call(f"{call.tool}_twice", arguments)
        case _:
            return Call(call.tool, arguments)


def _explains(told: bytes, call: PlannedCall) -> bool:
    """Say whether a model that reads can see from what it is told what was wrong with its call."""
    if f"There is no tool {call.tool}.".encode() in told:
        return True  # it is gone, and writing its call in another way will not bring it back
    match call.blunder:
        case "malformed":
            return b"JSON" in told or b"missing" in told  # some wires have no place for what is not JSON
        case "missing":
            return b"manner" in told and b"missing" in told
        case "wrong":
            return b"seconds" in told and b"number" in told
        case "unknown":
            return b"There is no tool" in told and call.tool.encode() in told
        case _:
            return True
