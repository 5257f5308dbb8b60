"""A session at rest is plain tuples, and wakes as what it was."""

import gc
from dataclasses import fields, replace

from actors.core.content import Message, Text, ToolCall, ToolResult
from actors.core.events import Opened, Returned, Scheduled, Submitted
from actors.core.history import History
from actors.core.identity import Binding, CallId
from actors.core.ledger import Ledger
from actors.core.record import freeze
from actors.core.rest import lay_down, wake
from actors.core.state import State
from actors.testing.histories import history
from tests.core.session_log import simulated

CALL, RESULT = ToolCall("c", "read"), ToolResult("c", {"rows": 3})
IMPORTED = (Message("model", [CALL], 1, Binding("b", "anthropic")), Message("tool", [RESULT]))
OPENED = State().apply(Opened("id", "target", "Be brief.", IMPORTED, 1))


def test_the_state_of_any_session_wakes_as_it_was() -> None:
    for seed in range(100):
        state = State()
        for event in simulated(*history(seed), seed).log:
            state = state.apply(event)
        assert wake(lay_down(state)) == state


def test_every_field_of_a_state_is_there_when_it_wakes() -> None:
    history, ledger = History(IMPORTED[:1]), Ledger().apply(Scheduled(CallId("d"), "read"))
    made_by = Binding("b", "anthropic")
    history = History.of(history.records)
    state = State("s", "t", "held", "Be brief.", history, ledger, 1, 2, 3, made_by, True, "cancelled")
    assert [
        item.name for item in fields(State) if getattr(state, item.name) == getattr(State(), item.name)
    ] == []
    assert wake(lay_down(state)) == state


def test_nothing_at_rest_is_visited_by_the_collector() -> None:
    rested = lay_down(OPENED.apply(Submitted(1, Message("human", [Text("words")]))))
    for _ in range(4):  # once for each tuple in a tuple
        gc.collect()
    assert not gc.is_tracked(rested)


def test_an_imported_ledger_that_was_only_read_rests_as_what_was_imported_and_wakes_as_it_was() -> None:
    assert OPENED.ledger.completion(CallId("c")) == RESULT
    state = OPENED.apply(Submitted(1, Message("model", [ToolCall("later", "read")])))
    assert state.ledger.at_rest == ((), tuple(map(freeze, IMPORTED)))
    woken = wake(lay_down(state))
    assert woken == state
    assert CallId("later") not in woken.ledger


def test_a_ledger_that_learned_something_rests_and_wakes_with_it() -> None:
    call = CallId("d")
    state = OPENED.apply(Scheduled(call, "read")).apply(Returned(call))
    woken = wake(lay_down(state))
    assert woken == state
    assert woken.ledger.interactions() == state.ledger.interactions()
    assert replace(woken, ledger=woken.ledger.apply(Returned(CallId("e")))) != state
    assert wake(lay_down(state)) == state
