"""What the invariants of a simulation take for a mistake, and what not, where a run seldom comes by."""

import pytest
from msgspec.structs import replace

from actors.core.data.jsonio import Json
from actors.core.log import events
from actors.core.stream_events.results import AskResult
from actors.core.values.content import Message, Text, ToolCall
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import pack
from actors.core.values.stream import Usage
from actors.testing.simulation.observer import Problems
from tests.simulation.invariants.below import EndedSubagents
from tests.simulation.invariants.content import AnswerContent
from tests.simulation.invariants.too_long import TooLongRequests
from tests.simulation.witness import Witness

CALL = CallId("hist_tool_1")
HERE = Binding("a", "openai_chat")
SAID = events.AskStarted(1, pack(Message("user", (Text("Go on."),))))
CALLED = (
    events.Opened("s1", "a", key="above"),
    SAID,
    events.TurnStarted(1, 1, HERE),
    events.RoundEnded(1, 1, pack(Message("assistant", (ToolCall(CALL, "delegate", {}),), 1, HERE)), calls=1),
    events.Scheduled(CALL, "delegate", Json(b"{}")),
)
BELOW = events.Opened("s1-c1", "a", key="below", above="above")
CRASHED = (events.Cancelled(CALL, "outcome_unknown"), events.TurnEnded(1, "interrupted"))


class Logs:
    """Logs that are written by hand, and what a witness says of them."""

    def __init__(self) -> None:
        self.problems = Problems()
        self._witness = Witness(self.problems, {"a": frozenset({"a"})})
        self.below = EndedSubagents(self._witness)
        self.too_long, self.content = TooLongRequests(self._witness), AnswerContent(self._witness)

    def write(self, session: str, *happened: events.LogEvent) -> list[str]:
        """Append events of a session; return all that was wrong so far, by name."""
        for event in happened:
            self._witness.event(session, event)
        return [line.partition(":")[0] for line in self.problems.lines]


def test_a_turn_that_begins_after_a_crash_need_not_wait_for_the_subagents_of_the_one_before() -> None:
    logs = Logs()
    logs.write("s1", *CALLED)
    logs.write("s1-c1", BELOW)
    logs.write("s1", *CRASHED, events.TurnStarted(2, 2, HERE))
    assert logs.write("s1", events.TurnEnded(2, "complete")) == []
    assert logs.write("s1-c1", events.Closed()) == []
    assert logs.below.counts["subagents"] == 1


def test_a_turn_that_ends_before_its_subagents_is_told() -> None:
    logs = Logs()
    logs.write("s1", *CALLED)
    logs.write("s1-c1", BELOW)
    told = logs.write("s1", events.Cancelled(CALL, "cancelled"), events.TurnEnded(1, "complete"))
    assert told == ["a turn does not end before its subagents"]


@pytest.mark.parametrize("settled", [False, True])
def test_a_held_switch_is_settled_or_told(settled: bool) -> None:
    logs = Logs()
    logs.write("s1", events.Opened("s1", "a"), events.TurnStarted(1, 1, HERE), events.SwitchQueued(1, "b"))
    if settled:
        assert logs.write("s1", events.SwitchSuperseded("b", "a")) == []
    logs.write("s1", events.SwitchApplied("a"), events.TurnEnded(1, "interrupted"))
    told = logs.write("s1", events.TurnStarted(2, 2, HERE))
    assert told == ([] if settled else ["a held switch is settled before the next ask"])


def test_a_second_held_switch_without_a_word_of_the_first_is_told() -> None:
    logs = Logs()
    logs.write("s1", events.Opened("s1", "a"), events.TurnStarted(1, 1, HERE), events.SwitchQueued(1, "b"))
    assert logs.write("s1", events.SwitchQueued(1, "c")) == ["of two held switches the first is superseded"]
    assert logs.write("s1", events.SwitchSuperseded("b", "d"))[1:] == ["only a held switch is superseded"]


@pytest.mark.parametrize("behind", ["an answer", "a summary", "another turn"])
def test_what_is_too_long_may_be_tried_again_thrice(behind: str) -> None:
    logs = Logs()
    logs.write("s1", events.Opened("s1", "a"), SAID, events.TurnStarted(1, 1, HERE))

    def refused(number: int) -> None:
        for _ in range(4):
            logs.write("s1", events.RequestSent(1, number, HERE, 0, 0))
            logs.too_long.refused("s1")
        logs.write("s1", events.RequestSent(1, 0, HERE, 0, 0, aside=True))
        logs.too_long.refused("s1")  # what asks for a summary is no request of the turn's own

    refused(1)
    assert logs.problems.lines == []
    if behind == "another turn":
        logs.write("s1", events.TurnEnded(1, "failed"), events.TurnStarted(2, 2, HERE))
    else:
        logs.write("s1", events.RoundEnded(1, int(behind == "an answer"), None))
    refused(2)
    told = [f"what is too long is tried again thrice at most: s1: {n} times" for n in range(5, 9)]
    assert logs.problems.lines == (told if behind == "a summary" else [])


NOBODY = AskResult("", "complete", HERE, (), 1, Usage())
EMPTY = events.RoundEnded(1, 1, None, cut="empty")


def test_an_ask_that_is_complete_without_a_word_or_a_reason_is_told() -> None:
    for result in (NOBODY, replace(NOBODY, text=" \n")):
        logs = Logs()
        logs.content.came("s1", "1.0", result)
        assert [line.partition(":")[0] for line in logs.problems.lines] == [
            "a complete ask has an answer, or says why not"
        ]
    for result in (
        replace(NOBODY, text="Hi."),
        replace(NOBODY, incomplete="empty"),
        replace(NOBODY, error="a limit"),
    ):
        logs = Logs()
        logs.content.came("s1", "1.0", result)
        assert logs.problems.lines == []


def test_an_empty_answer_that_ends_its_turn_at_once_is_told_and_the_second_is_not() -> None:
    begun = events.Opened("s1", "a"), SAID, events.TurnStarted(1, 1, HERE)
    logs, ended = Logs(), events.TurnEnded(1, "complete")
    assert logs.write("s1", *begun, EMPTY, ended) == ["an answer without content is asked for once more"]
    logs = Logs()
    assert logs.write("s1", *begun, EMPTY, events.RoundEnded(1, 2, None, cut="empty"), ended) == []
    assert logs.content.counts["answers_without_content"] == 2


def test_an_empty_answer_that_the_history_keeps_is_told() -> None:
    kept = events.RoundEnded(1, 1, pack(Message("assistant", (Text(" "),), 1, HERE)), cut="empty")
    logs = Logs()
    begun = events.Opened("s1", "a"), SAID, events.TurnStarted(1, 1, HERE)
    assert logs.write("s1", *begun, kept) == ["the history keeps no empty answer"]
