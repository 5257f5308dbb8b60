"""Generate the messages of the simulated users, and the answers of the simulated model behind all servers.

Each user message contains the name of its ask, attachments and an output format. The model follows the plan, and may
correct a rejected call.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from actors.core.settings.asking import AskSettings
from actors.core.values.content import Media
from actors.session.user_input import UserInput
from actors.strict.faults import BYTES_PER_TOKEN
from actors.strict.rules.base import Json
from actors.strict.script import Call, Say, Think, Turn, TurnPart
from actors.testing.images import png
from actors.testing.simulation.forms import INVALID_ANSWERS, OUTPUT_FORMATS, explains_rejection, valid_answer
from actors.testing.simulation.plan import (
    DELEGATE,
    HANDOFFS,
    Feature,
    FeatureKind,
    PlannedAsk,
    PlannedCall,
    PlannedRound,
    SessionPlan,
    SimulationPlan,
    subagent_task,
)

PARTS: Mapping[str, tuple[str, ...]] = {
    "image": ("image/png",),
    "document": ("application/pdf",),
    "both": ("application/pdf", "image/png"),
}
"""The media types of the attachments, by value of the feature `parts`."""
SHORT_ANSWER_TOKENS = 12_347
"""Token limit of a short answer. No other number in a request has this value."""
SETTINGS: Mapping[str, AskSettings] = {
    "short": {"max_tokens": SHORT_ANSWER_TOKENS},
    "cool": {"max_tokens": SHORT_ANSWER_TOKENS, "temperature": 0.25},
    "one round": {"max_rounds": 1},
    "two rounds": {"max_rounds": 2},
    "no tools": {"tool_choice": "none"},
    "some tool": {"tool_choice": "required"},
    "in time": {"timeout": 4.0},
    "few tokens": {"token_limit": 1_500},
    "no corrections": {"max_corrections": 0},
}
"""The settings that an ask may have, by name."""
_BEGINS = {"application/pdf": b"%PDF-1.7", "image/tiff": b"II*\0"}
ASK = b"[ask "
SUMMARY = b"Write that summary now"
TASK = b"[task "
ASK_NAME = re.compile(rb"\[(?:ask|task) ([\w.]+)\]")
"""Matches the name of an ask or task in a user message."""
SUMMARISED_ASK = re.compile(rb"That is all about ([\w.]+)\.")
"""Matches the name of the last summarised ask in a summary."""
CORRECTIONS = 3
BLANK_PROBABILITY = 0.02
"""Probability that the model's first answer has no content, or reasoning only."""
GUESS_PROBABILITY = 0.3
"""Probability that the model corrects a call although no feedback explains the mistake."""


class PlannedMessage(NamedTuple):
    """The user message of an ask, with its output format and its settings."""

    name: str
    message: UserInput
    output: Any = None  # Any: annotations have no common type
    settings: AskSettings = AskSettings()


def prompt(name: str) -> str:
    """Return a system prompt that contains a unique mark."""
    return f"Be brief. [system {name}]"


def tool_mark(name: str) -> str:
    """Return the unique mark in the description of a tool."""
    return f"[tool {name}]"


def ask_text(ask: str) -> str:
    """Return the text of an ask without attachments."""
    return f"[ask {ask}] Go on, please."


def task_text(call: str) -> str:
    """Return the task text that a call sends to its subagent."""
    return f"[task {call}] Do it."


def is_task(ask: str) -> bool:
    """Return True if an ask belongs to a subagent. The name of such an ask is the key of the call that started it."""
    return ".r" in ask


def closing_text(ask: str) -> str:
    """Return the text that follows the attachments of an ask."""
    return f"[seen {ask}] Go by these."


def attachment_for(ask: str, media_type: str) -> Media:
    """Return an attachment whose content is unique to the ask."""
    data = png(note=ask) if media_type == "image/png" else _BEGINS[media_type] + f" of {ask}".encode()
    return Media.from_bytes(data, media_type)


def planned_message(ask: PlannedAsk) -> PlannedMessage:
    """Return the user message of a planned ask."""
    form, parts, settings = ask.feature("output"), ask.feature("parts"), ask.feature("settings")
    message: UserInput = ask_text(ask.name)
    if parts is not None:
        media = [attachment_for(ask.name, media_type) for media_type in PARTS[parts.value]]
        message = [ask_text(ask.name), *media, closing_text(ask.name)]
    output = None if form is None else OUTPUT_FORMATS[form.value].output
    return PlannedMessage(
        ask.name, message, output, AskSettings() if settings is None else SETTINGS[settings.value]
    )


def last_ask(body: bytes) -> str | None:
    """Return the name of the last ask in a request body; None if the body contains no ask."""
    at = body.rfind(ASK)
    found = ASK_NAME.match(body, body.rfind(TASK) if at < 0 else at)
    return None if found is None else found[1].decode()


@dataclass(slots=True)
class Progress:
    """The progress of one ask, according to the requests that servers have received.

    Args:
        requests: Number of requests for the ask.
        round: Index of the next round.
        answers: Number of answers that have begun. The names of calls contain this number, so that they are unique.
        tries: Number of answers with wrong calls in the current round.
        final_answers: Number of final answers so far. The first answers may have an invalid output format.
        blanks: Number of answers without content, by position in the ask (`place`).
    """

    requests: int = 0
    round: int = 0
    answers: int = 0
    tries: int = 0
    final_answers: int = 0
    blanks: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])

    @property
    def place(self) -> tuple[int, int]:
        """The position in the ask: the index of the round, and the number of wrong or final answers in this round."""
        return self.round, self.tries + self.final_answers


@dataclass(slots=True)
class Corrections:
    """Counts of a model's mistakes.

    Args:
        invalid: Number of answers with wrong calls.
        rounds: Number of rounds in which the first answer had wrong calls.
    """

    invalid: int = 0
    rounds: int = 0


@dataclass(slots=True)
class Model:
    """The simulated model behind all servers. It first reads a request, and then gives the planned answer."""

    plan: SimulationPlan
    arguments: Mapping[str, Mapping[str, Json]]
    """Arguments for the user's own tools, by tool name."""
    ask_name: str | None = None
    """The name of the ask to which the current request belongs; None if the request contains no name."""
    feedback: bytes = b""
    """Tool results and feedback since the last user message."""
    size: int = 0
    """Size of the request in bytes."""
    summarises: bool = False
    """True if the request asks for a summary. The plan contains no answers to such requests."""
    progress: dict[str, Progress] = field(default_factory=dict[str, Progress])
    corrections: Mapping[bool, Corrections] = field(
        default_factory=lambda: {True: Corrections(), False: Corrections()}
    )
    _asks: dict[str, tuple[SessionPlan, PlannedAsk]] = field(
        default_factory=dict[str, tuple[SessionPlan, PlannedAsk]]
    )

    def __post_init__(self) -> None:
        self._asks = {
            ask.name: (session_plan, ask)
            for session_plan in self.plan.session_plans
            for ask in session_plan.asks
        }
        for session_plan, ask in tuple(self._asks.values()):
            for call in (call for round_ in ask.rounds for call in round_.calls if call.tool == DELEGATE):
                self._asks[call.key] = session_plan, subagent_task(call, session_plan)

    def _find_plan(self, name: str | None) -> tuple[SessionPlan, PlannedAsk] | None:
        """Return the plan of an ask, or of a task that a tool call gave to a subagent; None if the name is unknown.

        The name of a task is the key of the tool call, followed by `a` and the number of the model's answer.
        """
        return None if name is None else self._asks.get(name) or self._asks.get(name.rpartition("a")[0])

    def read_request(self, body: bytes) -> None:
        """Read a request body, and store the name of its ask and the feedback for the model."""
        self.size = len(body)
        self.feedback = body[max(0, body.rfind(ASK), 0 if ASK in body else body.rfind(TASK)) :]
        self.ask_name, self.summarises = last_ask(body), SUMMARY in self.feedback
        if self.ask_name is None and self.summarises and (about := SUMMARISED_ASK.findall(body)):
            self.ask_name = about[-1].decode()  # an earlier summary may have replaced the user message
        self.progress.setdefault(self.ask_name or "", Progress()).requests += not self.summarises

    def planned_fault(self) -> object:
        """Return the planned fault for the most recently read request, or None."""
        if self.summarises or (known := self._find_plan(self.ask_name)) is None:
            return None
        at = self.progress[self.ask_name or ""].requests - 1
        return next((each.fault for each in known[1].faults if each.request == at), None)

    def current_answer(self) -> Turn:
        """Return the answer to the most recently read request.

        Repeated calls return the same answer until `advance` is called.
        """
        known, progress = self._find_plan(self.ask_name), self.progress.get(self.ask_name or "", Progress())
        if self.summarises or known is None:
            about = f"That is all about {self.ask_name}." if self.ask_name else "The program did something."
            return Turn(Say(about), usage=self._usage)
        session_plan, ask = known
        if self._is_blank(ask, progress):
            return Turn(*([Think("Let me see.")] if session_plan.reads_errors else []), usage=self._usage)
        if progress.round >= len(ask.rounds):
            return Turn(Say(self._final_text(session_plan, ask, progress)), fragment=60, usage=self._usage)
        round_ = ask.rounds[progress.round]
        calls = self._next_calls(session_plan, round_, progress)
        chance = self._round_random(round_, progress)
        parts: list[TurnPart] = [Think("Let me see.")] if chance.random() < 0.3 else []
        if chance.random() < 0.5:
            parts.append(Say("One moment."))
        return Turn(*parts, *calls, fragment=60, usage=self._usage)

    def advance(self) -> None:
        """Continue with the next answer. The script calls this after the current answer was sent completely."""
        if self.summarises:
            return
        known, progress = self._find_plan(self.ask_name), self.progress.get(self.ask_name or "")
        if known is None or progress is None:
            return
        session_plan, ask = known
        if self._is_blank(ask, progress):
            progress.blanks[progress.place] += 1
            return
        if progress.round >= len(ask.rounds):
            progress.final_answers += 1
            return
        if self._makes_mistakes(session_plan, ask.rounds[progress.round], progress):
            count = self.corrections[session_plan.reads_errors]
            count.invalid += 1
            count.rounds += progress.tries == 0
            progress.tries += 1
        else:
            progress.round, progress.tries = progress.round + 1, 0

    def _is_blank(self, ask: PlannedAsk, progress: Progress) -> bool:
        """Return True if the next answer must have no content. This happens at most twice at each position."""
        place = progress.place
        chance = Random(f"{self.plan.seed}/{ask.name}/{place}/blank").random()  # noqa: S311  must be reproducible
        return progress.blanks[place] < (chance < BLANK_PROBABILITY) + (chance < BLANK_PROBABILITY / 4)

    @property
    def _usage(self) -> tuple[int, int]:
        """The token usage of an answer: the request's size as input tokens, and a few output tokens."""
        return self.size // BYTES_PER_TOKEN, 7

    def _final_text(self, session_plan: SessionPlan, ask: PlannedAsk, progress: Progress) -> str:
        """Return the final text of an ask, in an invalid output format if the plan requires that."""
        feature = ask.feature("output")
        if feature is None:
            return f"That is all about {self.ask_name}."
        knows = (
            progress.final_answers
            and session_plan.reads_errors
            and explains_rejection(self.feedback)
            and feature.wrong <= CORRECTIONS
        )
        if progress.final_answers >= feature.wrong or knows:
            return valid_answer(feature.value, self.ask_name or ask.name)
        return INVALID_ANSWERS[(len(ask.name) + progress.final_answers) % len(INVALID_ANSWERS)]

    def feature_of(self, ask: str, kind: FeatureKind) -> Feature | None:
        """Return the special feature of this kind in the plan of an ask, or None."""
        return self._asks[ask][1].feature(kind) if ask in self._asks else None

    def _round_random(self, round_: PlannedRound, progress: Progress) -> Random:
        return Random(f"{self.plan.seed}/{round_.name}/{progress.tries}")  # noqa: S311  must be reproducible

    def _makes_mistakes(self, session_plan: SessionPlan, round_: PlannedRound, progress: Progress) -> bool:
        """Return True if the model's next calls in a round are wrong."""
        if not any(call.mistake for call in round_.calls) or progress.tries >= CORRECTIONS:
            return False
        if progress.tries == 0:
            return True
        if session_plan.reads_errors and all(_explains_mistake(self.feedback, call) for call in round_.calls):
            return False
        return self._round_random(round_, progress).random() > GUESS_PROBABILITY

    def _next_calls(self, session_plan: SessionPlan, round_: PlannedRound, progress: Progress) -> list[Call]:
        """Return the calls of a round. After the first attempt, return only the calls that were rejected."""
        is_wrong = self._makes_mistakes(session_plan, round_, progress)
        calls = [call for call in round_.calls if progress.tries == 0 or call.mistake]
        progress.answers += 1
        return [self._write_planned_call(call, progress.answers, is_wrong=is_wrong) for call in calls]

    def _write_planned_call(self, call: PlannedCall, answer_number: int, *, is_wrong: bool) -> Call:
        if (arguments := self.arguments.get(call.tool)) is not None:
            return Call(call.tool, arguments)
        key = f"{call.key}a{answer_number}"
        if call.tool == DELEGATE:
            return Call(call.tool, {"task": task_text(key)})
        if call.tool in HANDOFFS:
            return Call(call.tool, {})
        if self.ask_name is not None and is_task(self.ask_name):
            key = f"{self.ask_name}/{key}"
        return _write_call(call, key, is_wrong=is_wrong and bool(call.mistake))


def _write_call(call: PlannedCall, key: str, *, is_wrong: bool) -> Call:
    arguments = {"key": key, "manner": call.manner, "seconds": round(call.seconds, 3)}
    match call.mistake if is_wrong else "":
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


def _explains_mistake(feedback: bytes, call: PlannedCall) -> bool:
    """Return True if the feedback explains the model's mistake in a call."""
    if f"There is no tool {call.tool}.".encode() in feedback:
        return True  # the tool was removed, so a corrected call would also fail
    match call.mistake:
        case "malformed":
            return (
                b"JSON" in feedback or b"missing" in feedback
            )  # some wire formats cannot carry invalid JSON
        case "missing":
            return b"manner" in feedback and b"missing" in feedback
        case "wrong":
            return b"seconds" in feedback and b"number" in feedback
        case "unknown":
            return b"There is no tool" in feedback and call.tool.encode() in feedback
        case _:
            return True
