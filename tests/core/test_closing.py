"""Check which work is left after a log that breaks off."""

import pytest

from actors.core.data.jsonio import Json, JsonObject
from actors.core.log.call_events import Effects, Scheduled, Started
from actors.core.log.events import (
    ApprovalDecided,
    AskStarted,
    LogEvent,
    Opened,
    RoundEnded,
    SwitchQueued,
    TurnEnded,
    TurnPaused,
    TurnStarted,
)
from actors.core.session.open_asks import needs_recovery, repeatable_calls
from actors.core.session.state import SessionState
from actors.core.values.content import Message, Text, ToolCall
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import pack

HERE = Binding("a", "openai_chat", model="gpt")
CALL = CallId("hist_tool_1")
BEGUN: tuple[LogEvent, ...] = (
    Opened("s", "a"),
    AskStarted(1, pack(Message("user", (Text("Do it."),)))),
    TurnStarted(1, 1, HERE),
    RoundEnded(1, 1, pack(Message("assistant", (ToolCall(CALL, "work", {}),), 1, HERE)), calls=1),
    Scheduled(CALL, "work"),
)


def _fold(events: tuple[LogEvent, ...]) -> SessionState:
    state = SessionState()
    for event in events:
        state = state.apply(event)
    return state


def _repeatable_calls(*events: LogEvent) -> list[ToolCall]:
    return list(repeatable_calls(_fold(BEGUN + events), BEGUN + events))


@pytest.mark.parametrize("effects", ["pure", "idempotent", "once"])
def test_the_effects_logged_at_the_start_of_a_call_decide_whether_the_call_may_run_again(
    effects: Effects,
) -> None:
    again = _repeatable_calls(Started(CALL, effects))
    assert [call.id for call in again] == ([] if effects == "once" else [CALL])
    assert _repeatable_calls() == []


def test_a_call_runs_again_with_its_approved_arguments() -> None:
    edited = JsonObject(Json(b'{"name":"b"}'))
    decided = ApprovalDecided(CALL, "work", "", "allow", arguments=edited)
    [call] = _repeatable_calls(decided, Started(CALL, "pure"))
    assert call.arguments == {"name": "b"}


def test_a_log_that_ends_during_a_turn_or_before_a_deferred_switch_needs_recovery() -> None:
    waits, held, end = TurnPaused(1, (CALL,)), SwitchQueued(1, "b"), TurnEnded(1, "complete")
    assert needs_recovery(_fold(BEGUN))
    assert needs_recovery(_fold((*BEGUN, held, end)))
    assert not needs_recovery(_fold((*BEGUN, end)))
    assert not needs_recovery(_fold((*BEGUN, waits)))
    assert needs_recovery(_fold((*BEGUN, TurnPaused(1, ()))))
