"""What a person sees of a turn, line by line, on a clock of the test's own."""

from collections.abc import Sequence

import pytest

from actors.cli.chat.face import Live, Row
from actors.cli.chat.plain import PlainFace
from actors.cli.chat.view import View
from actors.cli.screen import Style, wrapped
from actors.config import load
from actors.core.stream_events.events import (
    CallEnd,
    CallOutcome,
    MessageEvent,
    SessionEvent,
    SwitchAppliedEvent,
    SwitchFailedEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolResultsEvent,
)
from actors.core.values.content import Message, Text, Thinking
from actors.core.values.identity import CallId


class Seen(PlainFace):
    """A face that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Style | None]] = []
        self.unfinished: Live = ()

    def put(self, text: str, style: Style | None = None) -> None:
        self.lines.append((text, style))

    def live(self, lines: Live) -> None:
        self.unfinished = lines

    def table(self, columns: Row, rows: Sequence[Row]) -> None:
        raise AssertionError("a turn shows no table")


def _shown(*events: SessionEvent, thinking: bool = True) -> Seen:
    face, view = Seen(), None
    now = iter(range(1000))
    view = View(face, lambda: float(next(now)), load(None, {}), thinking=thinking)
    for event in events:
        view.event(event)
    return face


CALL = ToolCallEvent(5, 1, 1, CallId("c1"), "weather", {"city": "Oslo\x1b[2J"})


def test_a_line_is_put_once_it_is_whole_and_until_then_it_is_live() -> None:
    face = _shown(TextEvent("One\nTw", 1, 1, 0))
    assert (face.lines, face.unfinished) == ([("One", None)], [("Tw", None)])
    said = MessageEvent(1, 1, 1, Message("model", (Text("One\nTwo."),)))
    ended = _shown(TextEvent("One\nTw", 1, 1, 0), TextEvent("o.", 1, 1, 6), said)
    assert (ended.lines, ended.unfinished) == ([("One", None), ("Two.", None)], [])


@pytest.mark.parametrize("thinking", [True, False])
def test_thinking_is_dimmed_or_hidden(thinking: bool) -> None:
    said = MessageEvent(1, 1, 1, Message("model", (Thinking("Hm."), Text("Yes."))))
    face = _shown(ThinkingEvent("Hm.", 1, 1, 0), TextEvent("Yes.", 1, 1, 3), said, thinking=thinking)
    assert face.lines == [*([("thinking: Hm.", "dim")] if thinking else []), ("Yes.", None)]


def test_what_a_model_says_is_safe_to_show() -> None:
    face = _shown(TextEvent("a\x1b]0;x\x07\n", 1, 1, 0), ThinkingEvent("\x9b2J\n", 1, 1, 8), CALL)
    assert "\x1b" not in repr(face.lines).replace("\\\\x1b", "") + "".join(text for text, _ in face.lines)
    assert [text for text, _ in face.unfinished] == ["  weather(city='Oslo\\x1b[2J') running 1.0 s"]


@pytest.mark.parametrize(("how", "style"), [("returned", "green"), ("failed", "red"), ("denied", "yellow")])
def test_a_call_has_its_state_and_how_long_it_took(how: CallOutcome, style: Style) -> None:
    face = _shown(CALL, ToolResultsEvent(6, 1, 1, (CallEnd(CallId("c1"), how),)))
    ((text, shown),) = face.lines
    assert text.startswith("  weather(city=")
    assert text.endswith(f" {how} after 2.0 s")
    assert shown == style
    assert face.unfinished == []


def test_a_switch_that_was_deferred_is_told_how_it_came_out() -> None:
    face = _shown(SwitchAppliedEvent(9, 1, "claude"), SwitchFailedEvent(9, 1, "gpt", "no key"))
    assert [text for text, _ in face.lines] == ["  switched to claude", "  the switch failed: no key"]


def test_the_time_that_a_call_waits_for_the_person_is_no_run_time() -> None:
    seconds = [0.0]
    face = Seen()
    view = View(face, lambda: seconds[0], load(None, {}))
    with view.waiting(CallId("c1")):  # it may be asked about before its event is shown
        view.event(CALL)
        seconds[0] = 100.0
        view.refresh()
        assert [text for text, _ in face.unfinished] == ["  weather(city='Oslo\\x1b[2J') waits for you"]
    seconds[0] = 102.0
    view.refresh()
    assert [text for text, _ in face.unfinished] == ["  weather(city='Oslo\\x1b[2J') running 2.0 s"]
    view.event(ToolResultsEvent(6, 1, 1, (CallEnd(CallId("c1"), "returned"),)))
    ((text, _),) = face.lines
    assert text.endswith(" returned after 2.0 s")


def test_a_call_that_is_cancelled_while_it_waits_for_the_person_never_ran() -> None:
    face = Seen()
    view = View(face, lambda: 0.0, load(None, {}))
    view.event(CALL)
    with view.waiting(CallId("c1")):
        view.cancelled()
    assert face.lines[0][0].endswith(" cancelled before it ran")


def test_lines_are_wrapped_between_words() -> None:
    assert wrapped("one two three", 8) == ["one two", "three"]
    assert wrapped("  indented words stay so", 12) == ["  indented", "words stay", "so"]
    assert wrapped("a_word_that_is_longer_than_the_line and more", 10) == [
        "a_word_that_is_longer_than_the_line",
        "and more",
    ]
    assert wrapped("", 8) == [""]
