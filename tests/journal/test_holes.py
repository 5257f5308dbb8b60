"""Holes: logs whose records are complete but show that events between them are missing."""

from actors.core.log.events import AskStarted, EventsLost, LogEvent, Opened, TurnEnded, TurnStarted
from actors.core.values.content import Message, Text
from actors.core.values.identity import Binding
from actors.core.values.packed import pack
from actors.journal.storage.rows import find_losses

BINDING = Binding("a", "openai", "http://127.0.0.1", "", "m")


def _log(*turns: int) -> list[LogEvent]:
    log: list[LogEvent] = [Opened("one", "a")]
    for turn in turns:
        message = pack(Message("user", (Text("Hello."),)))
        log += [AskStarted(turn, message), TurnStarted(turn, turn, BINDING), TurnEnded(turn, "complete")]
    return log


def test_a_log_with_consecutive_turns_has_no_hole() -> None:
    assert list(find_losses("one", _log(1, 2, 3), "there")) == []
    assert list(find_losses("one", _log(7, 8), "there")) == []


def test_a_skipped_turn_is_a_hole_in_the_log() -> None:
    (found,) = find_losses("one", _log(1, 2, 5, 6), "there")
    assert (found.session, found.number) == ("one", 9)
    assert (
        found.what
        == "there: session 'one', record 9: turn 5 follows turn 2; the events between these turns are lost"
    )


def test_events_recorded_as_lost_are_a_hole_in_the_log() -> None:
    (found,) = find_losses("one", [*_log(1), EventsLost(5, 9), *_log(2)[1:]], "there")
    assert (found.number, found.what) == (
        5,
        "there: session 'one', record 5: events 5 to 9 were acknowledged and are lost",
    )
