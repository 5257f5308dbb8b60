"""Check rewinding: remaining messages, valid places, lanes and late results."""

import pytest

from actors.core.data.jsonio import quote
from actors.core.data.record import replace
from actors.core.history.compaction import summary_scope
from actors.core.history.history import (
    add_range,
    contains_call,
    end_of,
    is_removed,
    unreachable_reason,
    with_ledger,
)
from actors.core.log.call_events import Cancelled, Returned, Scheduled
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import (
    AskStarted,
    Compacted,
    EpochBegan,
    LogEvent,
    Opened,
    Rewound,
    RoundEnded,
    TurnEnded,
    TurnStarted,
)
from actors.core.session.export_file import order_violation
from actors.core.session.lanes import rebuild
from actors.core.session.state import SessionState, opening_event
from actors.core.values.content import Message, ProviderState, Text, Thinking, ToolCall
from actors.core.values.identity import mint
from actors.core.values.packed import pack
from tests.core.session_log import Simulated, find_refusal, rules, text
from tests.generated.histories import READERS

CLAUDE, GPT = READERS["anthropic"], READERS["openai_chat"]


def turn(made: Simulated, number: int, *, is_late: bool = False) -> None:
    """Record a turn with one call, whose result is present or pending."""
    made.write(AskStarted(number, pack(Message("user", [Text(f"Question {number}.")]))))
    made.write(TurnStarted(number, number, CLAUDE))
    made.send(CLAUDE)
    call = ToolCall(mint(number), "read", {"path": f"{number}.txt"})
    thought = Thinking("hm", ProviderState("signature", quote("c2ln"), CLAUDE))
    made.write(RoundEnded(number, 1, pack(Message("assistant", [thought, call], number, CLAUDE)), calls=1))
    made.write(Scheduled(call.id, "read", call.json))
    made.write(Cancelled(call.id) if is_late else Returned(call.id, quote(f"REAL{number}")))
    made.send(CLAUDE)
    made.write(RoundEnded(number, 2, pack(Message("assistant", [Text(f"Answer {number}.")], number, CLAUDE))))
    made.write(TurnEnded(number, "complete"))


@pytest.fixture
def session() -> Simulated:
    """Return a session of four turns, with the third turn's call pending."""
    made = Simulated()
    made.write(Opened("s", "t", messages=(pack(Message("user", [Text("Before.")])),)))
    for number in (1, 2, 3, 4):
        turn(made, number, is_late=number == 3)
    return made


def state_texts(state: SessionState) -> list[str]:
    return [message.text for message in state.history.since(0) if message.text]


@pytest.mark.requirement("PROMISE-2", "PROMISE-6")
def test_rewinding_removes_only_later_messages(session: Simulated) -> None:
    before = session.state
    session.write(Rewound(2))
    after = session.state
    assert state_texts(after) == ["Before.", "Question 1.", "Answer 1.", "Question 2.", "Answer 2."]
    assert (after.turns, after.asks, after.calls) == (before.turns, before.asks, before.calls)
    assert after.ledger == before.ledger
    assert after.size < before.size
    assert after.asked_at <= after.history.length
    session.write(Rewound(0))
    assert state_texts(session.state) == ["Before."]  # the initial history belongs to no turn


@pytest.mark.requirement("PROMISE-1", "PROMISE-4")
def test_after_a_rewind_every_lane_starts_an_epoch_that_its_provider_accepts(session: Simulated) -> None:
    session.send(GPT)
    session.write(Rewound(2), AskStarted(5, pack(Message("user", [Text("Question 5.")]))))
    for binding in (CLAUDE, GPT):
        rendered = session.send(binding)
        assert find_refusal(rendered) is None
        assert b"Answer 2." in text(rendered)
        assert not [word for word in (b"Answer 3.", b"Question 4.", b"REAL4") if word in text(rendered)]
    begun = [event for event in session.log if isinstance(event, EpochBegan)]
    assert [(event.binding, event.reason) for event in begun] == [(CLAUDE, "rewind"), (GPT, "rewind")]
    log = [decode_event(encode_event(event)) for event in session.log]
    state, lanes = rebuild(log, rules)
    assert state == session.state
    for binding in (CLAUDE, GPT):
        assert lanes.of(binding)._state == session.lanes.of(binding)._state


@pytest.mark.requirement("PROMISE-2")
@pytest.mark.parametrize("comes", ["before", "after"])
def test_a_late_result_of_a_removed_call_is_recorded_but_not_sent(session: Simulated, comes: str) -> None:
    late = Returned(mint(3), quote("REAL3"))
    news: list[LogEvent] = [late, Rewound(2)]
    session.write(*(news if comes == "before" else reversed(news)))
    session.write(AskStarted(5, pack(Message("user", [Text("Question 5.")]))))
    for binding in (CLAUDE, GPT):
        assert b"REAL3" not in text(session.send(binding))
    known = session.state.ledger.get(mint(3))
    assert known is not None
    assert known.late is not None


@pytest.mark.requirement("PROMISE-2")
def test_a_late_result_of_a_remaining_call_is_sent(session: Simulated) -> None:
    session.write(Returned(mint(3), quote("REAL3")), Rewound(3))
    session.write(AskStarted(5, pack(Message("user", [Text("Question 5.")]))))
    for binding in (CLAUDE, GPT):
        assert text(session.send(binding)).count(b"REAL3") == 1


def test_a_summary_omits_removed_messages(session: Simulated) -> None:
    session.write(Rewound(2))
    history, ledger = session.state.history, session.state.ledger
    assert set(summary_scope(history, ledger, history.length).results) == {mint(1), mint(2)}


def test_a_session_opened_on_a_rewound_history_knows_only_the_remaining_calls(session: Simulated) -> None:
    session.write(Rewound(2))
    opened = opening_event("other", "t", with_ledger(session.state.history, session.state.ledger))
    assert [known.call_id for known in opened.call_records] == [mint(1), mint(2)]


def test_a_session_cannot_be_rewound_to_a_summarised_or_removed_position(session: Simulated) -> None:
    second = end_of(session.state.ends, 2)
    assert second is not None
    session.write(Compacted(0, second.length, pack(Message("user", [Text("Summary.")]))))
    assert [end_of(session.state.ends, number) is not None for number in range(6)] == [
        False,
        False,
        False,
        True,
        True,
        False,
    ]
    session.write(Rewound(3))
    assert state_texts(session.state) == ["Summary.", "Question 3.", "Answer 3."]
    assert end_of(session.state.ends, 4) is None
    turn(session, 5)
    assert "rewind to turn 3 or 5" in unreachable_reason(session.state.ends, 4, session.state.turns)
    assert "5 turns; rewind to turn 5" in unreachable_reason(session.state.ends, 9, session.state.turns)


def test_a_session_can_be_rewound_to_its_empty_start_despite_a_summary() -> None:
    made = Simulated()
    made.write(Opened("s", "t"))
    for number in (1, 2):
        turn(made, number)
    made.write(Compacted(0, made.state.history.length, pack(Message("user", [Text("Summary.")]))), Rewound(0))
    assert made.state.history.length == 0


@pytest.mark.parametrize(("place", "why"), [(9, "does not contain"), (3, "does not contain"), (2, None)])
def test_a_rewind_event_is_accepted_only_with_a_valid_position(
    session: Simulated, place: int, why: str | None
) -> None:
    session.write(Rewound(2))
    found = order_violation(session.state, Rewound(place))
    assert found is None if why is None else why in str(found)


def test_a_rewind_event_is_accepted_only_between_turns(session: Simulated) -> None:
    session.write(AskStarted(5, pack(Message("user", [Text("Go.")]))), TurnStarted(5, 5, CLAUDE))
    assert "turn 5 was open" in str(order_violation(session.state, Rewound(2)))


def test_numbers_of_removed_calls_are_stored_as_ranges() -> None:
    ranges = add_range(add_range((), 5, 7), 8, 9)
    assert ranges == ((5, 9),)
    assert add_range(ranges, 3, 12) == ((3, 12),)
    assert add_range(ranges, 12, 14) == ((5, 9), (12, 14))
    assert add_range(ranges, 12, 11) == ranges
    inside = [number for number in range(16) if contains_call(((5, 9), (12, 14)), mint(number))]
    assert inside == [5, 6, 7, 8, 9, 12, 13, 14]
    assert is_removed(replace(SessionState().history, _removed=((5, 9),)), mint(6))
