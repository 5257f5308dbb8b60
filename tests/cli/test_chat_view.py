"""The output of a chat for the events of a turn, with a clock of the test."""

import io

import pytest

from actors.cli.chat.view import ChatView
from actors.cli.screen import Screen, align_columns
from actors.cli.terminal import Terminal
from actors.config import load
from actors.core.stream_events.ask_events import CallEnd, CallOutcome
from actors.core.stream_events.events import SessionEvent, SwitchAppliedEvent, SwitchFailedEvent
from actors.core.stream_events.round_events import (
    MessageEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolProgressEvent,
    ToolResultsEvent,
)
from actors.core.values.content import Message, Text, Thinking
from actors.core.values.identity import CallId


class Output(Terminal):
    """A terminal without input, in colour, that stores its output."""

    def __init__(self) -> None:
        super().__init__(Screen(io.StringIO(), color=True))
        self.text = ""

    def _write(self, text: str) -> None:
        self.text += text


def _output_of(*events: SessionEvent, thinking: bool = True) -> str:
    output, now = Output(), iter(range(1000))
    view = ChatView(output, lambda: float(next(now)), load(None, {}), thinking=thinking)
    for event in events:
        view.show_event(event)
    return output.text


def dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m"


CALL = ToolCallEvent(5, 1, 1, CallId("c1"), "weather", {"city": "Oslo\x1b[2J"})


def test_streamed_text_is_shown_as_it_arrives_and_ends_with_a_newline() -> None:
    assert _output_of(TextEvent("One\nTw", 1, 1, 0)) == "One\nTw"
    said = MessageEvent(1, 1, 1, Message("assistant", (Text("One\nTwo."),)))
    assert _output_of(TextEvent("One\nTw", 1, 1, 0), TextEvent("o.", 1, 1, 6), said) == "One\nTwo.\n"


@pytest.mark.parametrize("thinking", [True, False])
def test_thinking_is_labelled_and_dimmed_or_hidden(thinking: bool) -> None:
    said = MessageEvent(1, 1, 1, Message("assistant", (Thinking("Hm.\nOh."), Text("Yes."))))
    thought = (ThinkingEvent("Hm.\n", 1, 1, 0), ThinkingEvent("O", 1, 1, 4), ThinkingEvent("h.", 1, 1, 5))
    shown = _output_of(*thought, TextEvent("Yes.", 1, 1, 7), said, thinking=thinking)
    labelled = f"{dim(f'thinking: Hm.{chr(10)}')}{dim('thinking: O')}{dim('h.')}\n"
    assert shown == (labelled if thinking else "") + "Yes.\n"


def test_text_of_a_model_cannot_contain_an_escape_sequence() -> None:
    shown = _output_of(TextEvent("a\x1b]0;x\x07\n", 1, 1, 0), ThinkingEvent("\x9b2J\n", 1, 1, 8), CALL)
    assert "a\\x1b]0;x\\x07\n" in shown
    assert "thinking: \\x9b2J\n" in shown
    assert "  calls weather(city='Oslo\\x1b[2J')" in shown


@pytest.mark.parametrize(("outcome", "code"), [("returned", 32), ("failed", 31), ("denied", 33)])
def test_a_call_is_shown_with_its_outcome_and_run_time(outcome: CallOutcome, code: int) -> None:
    last = _output_of(CALL, ToolResultsEvent(6, 1, 1, (CallEnd(CallId("c1"), outcome),))).splitlines()[-1]
    assert last.startswith(f"\x1b[{code}m  weather(city=")
    assert last.endswith(f" {outcome} after 1.0 s\x1b[0m")


def test_the_progress_of_a_call_is_shown() -> None:
    shown = _output_of(CALL, ToolProgressEvent(1, 1, CallId("c1"), "weather", "half\x07 done", None))
    assert "): half\\x07 done" in shown


def test_the_outcome_of_a_deferred_switch_is_shown() -> None:
    shown = _output_of(SwitchAppliedEvent(9, 1, "claude"), SwitchFailedEvent(9, 1, "gpt", "no key"))
    assert "  switched to claude" in shown
    assert "  the switch failed: no key" in shown


def test_the_run_time_of_a_call_excludes_the_wait_for_its_approval() -> None:
    seconds, output = [0.0], Output()
    view = ChatView(output, lambda: seconds[0], load(None, {}))
    with view.mark_waiting(CallId("c1")):  # the question may come before the event
        view.show_event(CALL)
        seconds[0] = 100.0
    seconds[0] = 102.0
    view.show_event(ToolResultsEvent(6, 1, 1, (CallEnd(CallId("c1"), "returned"),)))
    assert " returned after 2.0 s" in output.text


def test_a_call_cancelled_before_its_approval_is_shown_as_never_run() -> None:
    output = Output()
    view = ChatView(output, lambda: 0.0, load(None, {}))
    view.show_event(CALL)
    with view.mark_waiting(CallId("c1")):
        view.show_cancellation()
    assert " cancelled before it ran" in output.text


def test_the_columns_of_a_printed_table_are_aligned() -> None:
    assert [*align_columns([("a", "bb"), ("ccc", "")])] == ["a    bb", "ccc"]
