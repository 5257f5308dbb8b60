"""Check that session state is the fold of its log."""

import gc

import pytest

from actors.core.data.jsonio import quote
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.history.history import History, with_ledger
from actors.core.ledger import Ledger
from actors.core.log.call_events import Cancelled, Returned, Scheduled, Started
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import (
    AskStarted,
    Closed,
    Compacted,
    EpochBegan,
    EventsLost,
    LogEvent,
    Opened,
    RequestSent,
    RoundEnded,
    SwitchApplied,
    SwitchFailed,
    SwitchQueued,
    SwitchSuperseded,
    TurnEnded,
    TurnStarted,
)
from actors.core.render import RenderTarget
from actors.core.session.lanes import Lanes, rebuild
from actors.core.session.state import SessionState, opening_event
from actors.core.transcript.transcript import Encoder
from actors.core.values.content import Message, ProviderState, Text, Thinking, ToolCall, ToolResult
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import pack
from tests.commands.at_scale import share
from tests.core.session_log import BINDINGS, Simulated, rules, simulate, text
from tests.generated.histories import READERS, history

OPENAI, CLAUDE = BINDINGS[:2]
CALL = ToolCall("hist_tool_1", "read")
ASKED = Message("user", [Text("u")])
ANSWER = Message("assistant", [CALL], origin=OPENAI)


def after(*events: LogEvent) -> SessionState:
    state = SessionState()
    for event in events:
        state = state.apply(event)
    return state


def test_a_turn_records_its_messages_its_counts_and_its_end() -> None:
    state = after(
        Opened("s", "openai", "be brief"),
        AskStarted(1, pack(ASKED)),
        TurnStarted(1, 1, OPENAI),
        RequestSent(1, 1, OPENAI, 0, 1),
        RoundEnded(1, 1, pack(ANSWER), calls=1),
        Scheduled(CALL.id, "read"),
        Started(CALL.id),
        Returned(CALL.id, quote("ok")),
    )
    assert (state.session, state.target, state.history.system) == ("s", "openai", "be brief")
    assert (state.asks, state.turns, state.calls, state.bound) == (1, 1, 1, OPENAI)
    assert list(state.history) == [ASKED, ANSWER]
    ended = state.apply(TurnEnded(1, "complete"))
    assert (ended.bound, ended.closed) == (None, False)
    assert ended.apply(Closed()).closed


def test_a_round_without_a_message_is_still_counted() -> None:
    state = after(Opened("s", "t"), RoundEnded(1, 1, None, fault="cut", calls=2))
    assert (len(state.history), state.calls) == (0, 2)


@pytest.mark.requirement("REQ-915-003", "REQ-915-050")
def test_a_deferred_switch_changes_the_target_only_when_applied() -> None:
    held = after(Opened("s", "openai"), TurnStarted(1, 1, OPENAI), SwitchQueued(1, "claude"))
    assert (held.target, held.held, held.bound) == ("openai", "claude", OPENAI)
    applied = held.apply(TurnEnded(1, "complete")).apply(SwitchApplied("claude", was_queued=True))
    assert (applied.target, applied.held) == ("claude", None)
    assert held.apply(SwitchSuperseded("claude", "kimi")).held is None
    failed = held.apply(TurnEnded(1, "complete")).apply(SwitchFailed("claude", "its key is gone"))
    assert (failed.target, failed.held) == ("openai", None)


@pytest.mark.requirement("REQ-915-046")
def test_an_imported_history_has_the_ledger_recovered_from_its_blocks() -> None:
    messages = (ASKED, ANSWER, Message("tool", [ToolResult(CALL.id, "ok")]))
    state = after(opening_event("s", "t", History(messages)))
    assert state.ledger == History(messages).ledger
    assert state.history.since(0) == [ASKED, ANSWER]
    assert list(with_ledger(state.history, state.ledger)) == list(messages)
    assert state.calls == 1


def test_after_compaction_and_a_new_epoch_a_lane_contains_only_the_summary() -> None:
    summary = Message("user", [Text("summary")])
    log: list[LogEvent] = [Opened("s", "t"), AskStarted(1, pack(ASKED)), RequestSent(1, 1, OPENAI, 0, 1)]
    log += [
        Compacted(0, 1, pack(summary)),
        EpochBegan(OPENAI, 1, "compaction"),
        RequestSent(2, 1, OPENAI, 1, 1),
    ]
    state, lanes = rebuild(log, rules)
    assert list(state.history) == [summary]
    assert lanes.of(OPENAI)._state.epoch == 1
    assert b"summary" in b"".join(lanes.of(OPENAI)._segments)
    assert b'"u"' not in b"".join(lanes.of(OPENAI)._segments)


def test_a_lane_that_was_not_replayed_yet_counts_the_messages_that_a_summary_replaced() -> None:
    log: list[LogEvent] = [Opened("s", "t"), *[AskStarted(number, pack(ASKED)) for number in range(1, 301)]]
    log += [RequestSent(1, 1, OPENAI, 0, 300), Compacted(0, 300, pack(Message("user", [Text("summary")])))]
    state, lanes = rebuild(log, rules)
    assert state.history.length == 1
    assert lanes.unrendered_messages(OPENAI, state.history) == 300
    lanes.of(OPENAI)  # replays the request
    assert lanes.unrendered_messages(OPENAI, state.history) == 1


def test_a_lane_contains_the_history_at_the_time_of_its_request() -> None:
    log: list[LogEvent] = [Opened("s", "t"), AskStarted(1, pack(ASKED)), AskStarted(2, pack(ASKED))]
    _, lanes = rebuild([*log, RequestSent(1, 1, OPENAI, 0, 1)], rules)
    assert lanes.of(OPENAI)._state.cursor == 1
    assert lanes.bindings() == (OPENAI,)
    assert lanes.of(CLAUDE).size == 0


@pytest.mark.requirement("PROMISE-3")
def test_a_session_rebuilt_from_half_of_its_log_continues_like_the_original() -> None:
    for seed in range(share(480)):
        session = simulate(*history(seed), seed)
        state, lanes = SessionState(), Lanes(rules)
        for number, event in enumerate(session.log):
            if number == len(session.log) // 2:
                state, lanes = rebuild(session.log[:number], rules)
            before, state = state, state.apply(event)
            lanes.apply(event, before, state)
        assert state == session.state
        for binding in BINDINGS:
            assert text(lanes.render(binding, state.history, state.ledger)) == text(session.render(binding))


def test_reading_a_log_renders_no_lane_until_one_is_requested() -> None:
    asked: list[Binding] = []

    def count_render(binding: Binding) -> tuple[Dialect, Encoder, RenderTarget]:
        asked.append(binding)
        return rules(binding)

    session = simulate(*history(3), 3)
    state, lanes = rebuild(session.log, count_render)
    assert (state, lanes.size, asked) == (session.state, 0, [])
    sent = [event.binding for event in session.log if isinstance(event, RequestSent)]
    assert lanes.of(sent[0]).size > 0
    assert set(asked) == {sent[0]} < set(sent)


def test_consecutive_requests_are_rendered_together_with_their_boundaries() -> None:
    """A filler separates consecutive user messages only at the end of a request."""
    asked: list[Binding] = []

    def count_render(binding: Binding) -> tuple[Dialect, Encoder, RenderTarget]:
        asked.append(binding)
        return rules(binding)

    for binding in BINDINGS:
        live = Simulated()
        live.write(Opened("s", "t"))
        for ask in range(1, 31):
            live.write(AskStarted(ask, pack(ASKED)))
            if ask % 3 == 0:  # the history ends with a message of the model
                live.write(RoundEnded(1, 1, pack(Message("assistant", [Text("so")]))))
            live.send(binding)
        asked.clear()
        _, lanes = rebuild(live.log, count_render)
        assert lanes.of(binding)._segments.size == lanes.size
        assert b"".join(lanes.of(binding)._segments) == b"".join(live.lanes.of(binding)._segments)
        assert lanes.of(binding)._state == live.lanes.of(binding)._state
        assert len(asked) == 2 or rules(binding)[0].reasoning.binding == "upstream"


def test_a_gateways_lane_is_unchanged_when_its_upstream_becomes_known() -> None:
    """Reasoning from another backend is sent only after this backend has answered."""
    router = next(each for each in BINDINGS if each.backend == "router")
    live = Simulated()
    live.write(Opened("s", "t"))
    for backend in ("elsewhere", "router", "router"):
        maker = replace(router, backend=backend, upstream="Maker")
        seal = ProviderState("reasoning_details", quote('[{"type":"reasoning.text","text":"hm"}]'), maker)
        said = Message("assistant", [Thinking("hm", seal), Text("so")], origin=maker)
        live.write(AskStarted(1, pack(ASKED)), RoundEnded(1, 1, pack(said)), AskStarted(2, pack(ASKED)))
        live.send(router)
    _, lanes = rebuild(live.log, rules)
    was = b"".join(live.lanes.of(router)._segments)
    assert was.count(b"reasoning.text") == 2
    assert b"".join(lanes.of(router)._segments) == was


def test_if_no_epoch_is_logged_after_compaction_one_starts_with_the_next_request() -> None:
    summary = pack(Message("user", [Text("summary")]))
    log: list[LogEvent] = [
        *(Opened("s", "t"), AskStarted(1, pack(ASKED)), RequestSent(1, 1, OPENAI, 0, 1)),
        *(Compacted(0, 1, summary), RequestSent(2, 1, OPENAI, 1, 1)),
        *(AskStarted(2, pack(ASKED)), RequestSent(3, 1, OPENAI, 1, 2)),
    ]
    lane = rebuild(log, rules)[1].of(OPENAI)
    assert (lane._state.epoch, lane._state.epoch_start, lane._state.cursor) == (1, 1, 2)
    assert b"".join(lane._segments).count(b"user") == 2


def test_replay_keeps_the_order_of_results_and_seals() -> None:
    """Only the first result arrived before the request sealed both calls. The second result is late."""
    first, second = CallId("hist_tool_1"), CallId("hist_tool_2")
    log: list[LogEvent] = [
        Opened("s", "t"),
        Scheduled(first, "read"),
        Returned(first, quote("in time")),
        RequestSent(1, 1, OPENAI, 0, 0, ((first, "lost"), (second, "lost"))),
        Returned(second, quote("too late")),
    ]
    state, _ = rebuild(log, rules)
    assert state == after(*log)
    assert state.ledger.late == (second,)


def test_a_session_counts_the_bytes_of_its_input() -> None:
    said, result = pack(Message("user", [Text("x" * 5000)])), quote("y" * 7000)
    log: list[LogEvent] = [
        Opened("s", "t", messages=(pack(ASKED),)),
        AskStarted(1, said),
        Scheduled(CALL.id, "read"),
        Started(CALL.id),
        Returned(CALL.id, result),
        Returned(CALL.id, result),
    ]
    state, _ = rebuild(log, rules)
    assert state.size == len(pack(ASKED)) + len(said)
    assert len(result) <= state.ledger.size < len(result) + 1000
    assert Ledger(state.ledger.interactions()).size == state.ledger.size
    summary = pack(Message("user", [Text("in short")]))
    assert state.apply(Compacted(0, 2, summary)).size == len(summary)


def test_a_conversation_shows_each_result_once_after_its_call() -> None:
    ledger = Ledger().apply(Returned(CALL.id, quote("ok")))
    told = Message("tool", [ToolResult(CALL.id, "ok", is_complete=True)])
    assert list(with_ledger(History([ASKED, ANSWER, ASKED]), ledger)) == [ASKED, ANSWER, told, ASKED]
    imported = History([ASKED, ANSWER, ASKED, Message("tool", [ToolResult(CALL.id, "ok")])])
    assert list(with_ledger(imported, ledger)) == [ASKED, ANSWER, told, ASKED]
    assert list(with_ledger(History([ASKED, ANSWER]), Ledger())) == [ASKED, ANSWER]


def test_call_events_and_session_events_may_interleave_in_any_order() -> None:
    calls: list[LogEvent] = [Scheduled(CALL.id, "read"), Started(CALL.id), Returned(CALL.id, quote("ok"))]
    others: list[LogEvent] = [
        AskStarted(1, pack(ASKED)),
        RoundEnded(1, 1, pack(ANSWER), calls=1),
        TurnEnded(1, "complete"),
    ]
    opened = Opened("s", "t")
    mixed = [event for pair in zip(calls, others, strict=True) for event in pair]
    assert after(opened, *calls, *others) == after(opened, *others, *calls) == after(opened, *mixed)
    assert after(opened, *mixed).ledger.get(CallId("hist_tool_1")) is not None


def test_signatures_received_after_an_import_survive_a_later_compaction() -> None:
    claude = BINDINGS[1]
    imported = [Message("user", [Text(f"{number}")]) for number in range(6)]
    thought = Thinking("hm", ProviderState("signature", quote("c2ln"), claude))
    session = Simulated()
    session.write(opening_event("s", "t", History(imported)))
    session.write(Compacted(1, 5, pack(Message("user", [Text("summary")]))))
    session.write(AskStarted(1, pack(Message("user", [Text("go")]))))
    session.send(claude)
    session.write(RoundEnded(1, 1, pack(Message("assistant", [thought, Text("So.")], origin=claude))))
    session.write(AskStarted(2, pack(Message("user", [Text("on")]))))
    assert b"c2ln" in text(session.send(claude))


def test_plain_reasoning_after_an_import_survives_a_compaction_of_earlier_messages() -> None:
    kimi = READERS["kimi"]
    seal = ProviderState("reasoning_content", quote("reasoning_content"), kimi)
    session = Simulated()
    session.write(opening_event("s", "t", History((ASKED,) * 4)))
    for number in range(3):
        said = Message("assistant", [Thinking(f"THOUGHT{number}", seal), Text("So.")], origin=kimi)
        session.write(AskStarted(number + 1, pack(ASKED)), RoundEnded(1, 1, pack(said)))
    session.send(kimi)
    session.write(
        Compacted(0, 6, pack(Message("user", [Text("summary")]))), EpochBegan(kimi, 1, "compaction")
    )
    session.write(AskStarted(4, pack(ASKED)))
    sent = text(session.send(kimi))
    assert [b"THOUGHT%d" % number in sent for number in range(3)] == [False, True, True]


IMPORTED = (
    Message("assistant", [ToolCall("c", "read")], 1, CLAUDE),
    Message("tool", [ToolResult("c", {"rows": 3})]),
)


def test_a_session_state_is_not_tracked_by_the_garbage_collector() -> None:
    state = after(opening_event("s", "t", History(IMPORTED)), AskStarted(1, pack(ASKED)))
    assert len(state.ledger) == 1
    gc.collect()  # stops tracking tuples of untracked values
    gc.collect()
    for kept in (state, state.history, state.history._packed, state.ledger):
        assert not gc.is_tracked(kept)


def test_a_session_opened_with_a_copied_history_inherits_how_each_call_ended() -> None:
    calls = [ToolCall(f"hist_tool_{number}", "read") for number in range(1, 5)]
    ids = [call.id for call in calls]
    ledger = Ledger().apply(
        *(Scheduled(call_id, "read") for call_id in ids),
        Cancelled(ids[0]),
        RequestSent(1, 1, OPENAI, 0, 1, ((ids[1], "interrupted"), (ids[2], "lost"))),
        Returned(ids[2], quote("late")),
    )
    opened = opening_event("s", "t", with_ledger(History([Message("assistant", calls)]), ledger))
    known = after(opened).ledger.interactions()
    assert [item.reason for item in known] == ["cancelled", "interrupted", None, "outcome_unknown"]
    assert [item.sealed for item in known] == [None] * 4
    assert known[2].completion == Returned(ids[2], quote("late")).result
    assert (after(opened).ledger.late, opened.calls) == ((), 4)
    assert decode_event(encode_event(opened)) == opened


def test_the_ledger_of_an_imported_history_records_imported_and_new_calls() -> None:
    opened = after(opening_event("s", "t", History(IMPORTED)))
    state = opened.apply(Scheduled(CallId("d"), "read")).apply(Returned(CallId("d")))
    first = state.ledger.get(CallId("c"))
    assert first is not None
    assert first.completion == IMPORTED[1].results[0]
    assert [item.call_id for item in state.ledger.interactions()] == ["c", "d"]
    assert state.apply(Returned(CallId("c"), quote("other"))).ledger.get(CallId("c")) == replace(
        History(IMPORTED).ledger.interactions()[0], duplicates=(Returned(CallId("c"), quote("other")).result,)
    )


def test_the_start_of_an_ask_is_known_across_turns_and_compaction() -> None:
    said, answer = pack(Message("user", (Text("Go."),))), pack(Message("assistant", (Text("Well."),)))
    turn = (TurnStarted(1, 1, CLAUDE), RoundEnded(1, 1, answer), TurnEnded(1, "complete"))
    second = (TurnStarted(2, 2, CLAUDE), RoundEnded(2, 1, answer), TurnEnded(2, "handed_over"))
    third = (TurnStarted(3, 2, OPENAI), RoundEnded(3, 1, answer))
    log: list[LogEvent] = [Opened("s", "a"), AskStarted(1, said), *turn, AskStarted(2, said), *second, *third]
    assert rebuild(log, rules)[0].asked_at == 2
    assert rebuild([*log, Compacted(0, 2, said)], rules)[0].asked_at == 1
    over: list[LogEvent] = [*log, TurnEnded(3, "complete"), Compacted(0, 4, said)]
    assert rebuild(over, rules)[0].asked_at == 0


def test_call_ids_possibly_used_in_lost_events_are_not_reused() -> None:
    answer = pack(Message("assistant", (Text("Well."),)))
    log: list[LogEvent] = [Opened("s", "a"), TurnStarted(1, 1, CLAUDE), RoundEnded(1, 1, answer, calls=2)]
    assert rebuild(log, rules)[0].calls == 2
    assert rebuild([*log, EventsLost(4, 9)], rules)[0].calls == 8
