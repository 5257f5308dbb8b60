"""The checks of a simulation on hand-written logs, for cases that runs rarely reach."""

import pytest
from msgspec.structs import replace

from actors.core.data.jsonio import Json
from actors.core.log import call_events, events
from actors.core.stream_events.ask_events import AskResult
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
    call_events.Scheduled(CALL, "delegate", Json(b"{}")),
)
BELOW = events.Opened("s1-c1", "a", key="below", parent_key="above")
CRASHED = (call_events.Cancelled(CALL, "outcome_unknown"), events.TurnEnded(1, "interrupted"))


class Logs:
    """Hand-written logs, and the problems that a witness finds in them."""

    def __init__(self) -> None:
        self.problems = Problems()
        self._witness = Witness(self.problems, {"a": frozenset({"a"})})
        self.below = EndedSubagents(self._witness)
        self.too_long, self.content = TooLongRequests(self._witness), AnswerContent(self._witness)

    def write(self, session: str, *happened: events.LogEvent) -> list[str]:
        """Append events of a session; return the names of all problems so far."""
        for event in happened:
            self._witness.event(session, event)
        return [line.partition(":")[0] for line in self.problems.lines]


def test_a_turn_after_a_crash_need_not_wait_for_earlier_subagents() -> None:
    logs = Logs()
    logs.write("s1", *CALLED)
    logs.write("s1-c1", BELOW)
    logs.write("s1", *CRASHED, events.TurnStarted(2, 2, HERE))
    assert logs.write("s1", events.TurnEnded(2, "complete")) == []
    assert logs.write("s1-c1", events.Closed()) == []
    assert logs.below.counts["subagents"] == 1


def test_a_turn_that_ends_before_its_subagents_is_reported() -> None:
    logs = Logs()
    logs.write("s1", *CALLED)
    logs.write("s1-c1", BELOW)
    told = logs.write("s1", call_events.Cancelled(CALL, "cancelled"), events.TurnEnded(1, "complete"))
    assert told == ["a turn does not end before its subagents"]


@pytest.mark.parametrize("settled", [False, True])
def test_a_deferred_switch_without_an_outcome_is_reported(settled: bool) -> None:
    logs = Logs()
    logs.write("s1", events.Opened("s1", "a"), events.TurnStarted(1, 1, HERE), events.SwitchQueued(1, "b"))
    if settled:
        assert logs.write("s1", events.SwitchSuperseded("b", "a")) == []
    logs.write("s1", events.SwitchApplied("a"), events.TurnEnded(1, "interrupted"))
    told = logs.write("s1", events.TurnStarted(2, 2, HERE))
    assert told == ([] if settled else ["a held switch is settled before the next ask"])


def test_a_deferred_switch_replaced_without_an_event_is_reported() -> None:
    logs = Logs()
    logs.write("s1", events.Opened("s1", "a"), events.TurnStarted(1, 1, HERE), events.SwitchQueued(1, "b"))
    assert logs.write("s1", events.SwitchQueued(1, "c")) == ["a later held switch supersedes the earlier one"]
    assert logs.write("s1", events.SwitchSuperseded("b", "d"))[1:] == ["only a held switch is superseded"]


@pytest.mark.parametrize("behind", ["an answer", "a summary", "another turn"])
def test_a_too_long_request_may_be_retried_three_times(behind: str) -> None:
    logs = Logs()
    logs.write("s1", events.Opened("s1", "a"), SAID, events.TurnStarted(1, 1, HERE))

    def refuse(number: int) -> None:
        for _ in range(4):
            logs.write("s1", events.RequestSent(1, number, HERE, 0, 0))
            logs.too_long.record_refusal("s1")
        logs.write("s1", events.RequestSent(1, 0, HERE, 0, 0, is_for_summary=True))
        logs.too_long.record_refusal("s1")  # a request for a summary is not a request of the turn

    refuse(1)
    assert logs.problems.lines == []
    if behind == "another turn":
        logs.write("s1", events.TurnEnded(1, "failed"), events.TurnStarted(2, 2, HERE))
    else:
        logs.write("s1", events.RoundEnded(1, int(behind == "an answer"), None))
    refuse(2)
    told = [f"a too long request is retried at most three times: s1: {n} times" for n in range(5, 9)]
    assert logs.problems.lines == (told if behind == "a summary" else [])


NOBODY = AskResult("", "complete", HERE, (), 1, Usage())
EMPTY = events.RoundEnded(1, 1, None, incomplete="empty")


def test_a_complete_ask_without_content_or_reason_is_reported() -> None:
    for result in (NOBODY, replace(NOBODY, text=" \n")):
        logs = Logs()
        logs.content.check_result("s1", "1.0", result)
        assert [line.partition(":")[0] for line in logs.problems.lines] == [
            "a complete ask has an answer or a reason"
        ]
    for result in (
        replace(NOBODY, text="Hi."),
        replace(NOBODY, incomplete="empty"),
        replace(NOBODY, error="a limit"),
    ):
        logs = Logs()
        logs.content.check_result("s1", "1.0", result)
        assert logs.problems.lines == []


def test_an_empty_answer_that_ends_its_turn_without_a_retry_is_reported() -> None:
    begun = events.Opened("s1", "a"), SAID, events.TurnStarted(1, 1, HERE)
    logs, ended = Logs(), events.TurnEnded(1, "complete")
    assert logs.write("s1", *begun, EMPTY, ended) == ["an answer without content is requested once more"]
    logs = Logs()
    assert logs.write("s1", *begun, EMPTY, events.RoundEnded(1, 2, None, incomplete="empty"), ended) == []
    assert logs.content.counts["answers_without_content"] == 2


def test_an_empty_answer_in_the_history_is_reported() -> None:
    kept = events.RoundEnded(1, 1, pack(Message("assistant", (Text(" "),), 1, HERE)), incomplete="empty")
    logs = Logs()
    begun = events.Opened("s1", "a"), SAID, events.TurnStarted(1, 1, HERE)
    assert logs.write("s1", *begun, kept) == ["the history keeps no empty answer"]
