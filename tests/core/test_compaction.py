"""Check that compacted histories are valid and that every real result is sent or named in a summary."""

from random import Random

import pytest

from actors.core.data.jsonio import quote
from actors.core.data.record import replace
from actors.core.history.compaction import (
    COMPACTION_RANGES,
    SHORT_SUMMARY_BYTES,
    Calibration,
    Compaction,
    ReportedRequest,
    estimate_tokens,
    is_summary_longer,
    mentioned_ids,
    message_tokens,
    messages_to_summarise,
    possible_savings,
    results_to_trim,
    summary_message,
    summary_scope,
    turn_starts,
)
from actors.core.history.history import History, shorten, with_ledger
from actors.core.ledger import Ledger
from actors.core.log.call_events import Returned, Scheduled
from actors.core.log.events import (
    AskStarted,
    Compacted,
    EpochBegan,
    Opened,
    RequestSent,
    ResultsTrimmed,
    RoundEnded,
    TurnStarted,
)
from actors.core.session.lanes import rebuild
from actors.core.settings.values import check_fields
from actors.core.values.content import Media, Message, ProviderState, Text, Thinking, ToolCall
from actors.core.values.identity import Binding, CallId, mint
from actors.core.values.packed import pack, unpack
from actors.core.values.stream import Usage
from actors.errors import ConfigError
from tests.commands.at_scale import share
from tests.core.session_log import BINDINGS, Simulated, find_fault, find_refusal, rules, simulate, text
from tests.generated.histories import READERS, history

CLAUDE, OPENAI = READERS["anthropic"], READERS["openai_chat"]
WORDS = "The user wants the weather. hist_tool_2 said rain."


def compact(session: Simulated, settings: Compaction, words: str = WORDS) -> bool:
    """Shorten and summarise a session. Return True if there was something to summarise."""
    state = session.state
    said = state.history.since(0)
    stop = messages_to_summarise(said, settings.keep_turns, len(said))
    short = results_to_trim(state.history, state.ledger, settings, include_small=True, before=len(said))
    session.write(ResultsTrimmed(tuple(short.items())))
    if stop:
        stands_for = summary_scope(state.history, state.ledger, stop)
        session.write(Compacted(0, stop, summary_message(words, stands_for, settings)))
    return bool(stop)


def unsent_results(session: Simulated) -> set[str]:
    """Return the real results that are neither sent nor named in a summary."""
    messages = session.state.history.since(0)
    shown = {call.id for message in messages for call in message.calls}
    summed = " ".join(message.text for message in messages if message.role == "user")
    real = {
        known.call_id
        for known in session.state.ledger.interactions()
        if known.completion is not None and known.call_id not in shown
    }
    return {each for each in real if each not in mentioned_ids(summed) and each not in summed}


@pytest.mark.requirement("REQ-915-026", "REQ-915-027", "REQ-915-028", "PROMISE-1", "PROMISE-2", "PROMISE-4")
def test_compacted_histories_are_shorter_and_valid_in_every_dialect() -> None:
    many = 0
    for seed in range(share(160)):
        session = simulate(*history(seed), seed)
        random = Random(seed)
        for _ in range(2):
            many += compact(
                session, Compaction(keep_turns=random.randrange(3), large_result_bytes=300, attachments=2)
            )
            assert unsent_results(session) == set()
            for binding in random.sample(BINDINGS, 3):
                session.write(AskStarted(1, pack(Message("user", [Text("Go on.")]))))
                session.send(binding)
        assert find_fault(session) is None, seed
        state, lanes = rebuild(session.log, rules)
        assert state.history == session.state.history
        for binding in session.lanes.bindings():
            assert b"".join(lanes.of(binding)._segments) == b"".join(session.lanes.of(binding)._segments)
    assert many > share(160) // 2


@pytest.fixture
def session() -> Simulated:
    """Return a session of three turns, each with a large tool result."""
    made = Simulated()
    made.write(Opened("s", "t"))
    for turn in (1, 2, 3):
        page = Media("application/pdf", f"cGFnZ{turn}" * 4)
        made.write(AskStarted(turn, pack(Message("user", [Text(f"Question {turn}."), page]))))
        call = ToolCall(mint(turn), "read", {"path": f"{turn}.txt"})
        thought = Thinking("hm", ProviderState("signature", quote("c2ln"), CLAUDE))
        made.write(RoundEnded(turn, 1, pack(Message("assistant", [thought, call], turn, CLAUDE)), calls=1))
        made.write(Scheduled(call.id, "read", call.json))
        made.write(Returned(call.id, quote(f"REAL{turn} " * 100)))
        made.send(CLAUDE)
        made.write(RoundEnded(turn, 2, pack(Message("assistant", [Text(f"Answer {turn}.")], turn, CLAUDE))))
    return made


@pytest.mark.requirement("REQ-915-026", "PROMISE-13")
def test_a_trimmed_result_is_sent_as_a_placeholder_and_stays_complete_in_the_ledger(
    session: Simulated,
) -> None:
    session.write(ResultsTrimmed(((mint(1), "large"),)))
    rendered = session.send(CLAUDE)
    sent = text(rendered)
    assert find_refusal(rendered) is None
    assert b"REAL1" not in sent
    assert b"[The result of read was left out here, 600 bytes: it was long.]" in sent
    assert sent.count(b"REAL2 ") == 100
    assert dict(rendered.report.losses)["shortened"] == 1
    known = session.state.ledger.get(mint(1))
    assert known is not None
    assert known.completion is not None
    assert str(known.completion.content).count("REAL1") == 100
    told = [each for each in with_ledger(session.state.history, session.state.ledger) if each.role == "tool"]
    assert "REAL1" in str(told[0].results[0].content)  # the history keeps the complete result


@pytest.mark.requirement("PROMISE-4")
def test_compaction_starts_an_epoch_in_every_lane_and_drops_bound_thinking(
    session: Simulated,
) -> None:
    session.send(OPENAI)
    assert b"c2ln" in text(session.send(CLAUDE))
    assert compact(session, Compaction(keep_turns=1))
    session.write(AskStarted(4, pack(Message("user", [Text("Question 4.")]))))
    for binding in (CLAUDE, OPENAI, CLAUDE):
        rendered = session.send(binding)
        assert rendered.lane._state.epoch == 1
        assert b"c2ln" not in text(rendered)
    reasons = [event.reason for event in session.log if isinstance(event, EpochBegan)]
    assert reasons == ["compaction", "compaction"]


@pytest.mark.requirement("REQ-915-026", "PROMISE-2")
def test_a_summary_lists_the_calls_that_the_text_of_the_model_omits(session: Simulated) -> None:
    stands_for = summary_scope(session.state.history, session.state.ledger, 6)
    said = unpack(summary_message(WORDS, stands_for, Compaction())).text
    assert "read (hist_tool_1)." in said
    assert set(stands_for.results) == {mint(1), mint(2)}
    assert mentioned_ids(said) == {mint(1), mint(2)}
    silent = unpack(summary_message("Nothing.", stands_for, Compaction())).text
    assert "read (hist_tool_1 to 2)." in silent


@pytest.mark.requirement("REQ-915-026", "PROMISE-2")
def test_a_second_summary_lists_the_calls_of_the_first_summary(session: Simulated) -> None:
    assert compact(session, Compaction(keep_turns=1), "First.")
    assert compact(session, Compaction(keep_turns=0), "Second.")
    (only,) = session.state.history.since(0)
    assert mentioned_ids(only.text) == {mint(1), mint(2), mint(3)}


@pytest.mark.requirement("REQ-915-026", "PROMISE-2")
def test_a_late_result_of_a_summarised_call_is_sent(session: Simulated) -> None:
    call = ToolCall(mint(4), "slow", {})
    session.write(AskStarted(4, pack(Message("user", [Text("Question 4.")]))))
    session.write(RoundEnded(4, 1, pack(Message("assistant", [call], 4, CLAUDE)), calls=1))
    session.write(Scheduled(call.id, "slow"))
    session.send(CLAUDE)  # its synthetic result is sealed
    assert compact(session, Compaction(keep_turns=0))
    session.write(Returned(CallId(call.id), quote("LATE")))
    session.write(AskStarted(5, pack(Message("user", [Text("Question 5.")]))))
    rendered = session.send(CLAUDE)
    assert find_refusal(rendered) is None
    assert text(rendered).count(b"[Late result of slow: LATE]") == 1


def test_compaction_keeps_the_newest_user_attachments_up_to_the_limit(session: Simulated) -> None:
    stands_for = summary_scope(
        session.state.history, session.state.ledger, len(session.state.history.since(0))
    )
    message = unpack(summary_message(WORDS, stands_for, Compaction(attachments=2)))
    kept = [block.data for block in message.blocks if isinstance(block, Media)]
    assert kept == ["cGFnZ2" * 4, "cGFnZ3" * 4]
    assert "[Left out: 1 attachments (application/pdf).]" in message.text


def test_compaction_cuts_only_at_the_start_of_a_turn(session: Simulated) -> None:
    messages = session.state.history.since(0)
    told = Message("user", [Text("Answer in JSON.")])
    within = [*messages[:2], told, *messages[2:]]
    assert turn_starts(messages) == [0, 3, 6]
    assert turn_starts(within) == [0, 4, 7]
    assert [messages_to_summarise(messages, keep, len(messages)) for keep in (0, 1, 2, 3)] == [9, 6, 3, 3]
    assert messages_to_summarise(messages, 1, 6) == 3
    assert messages_to_summarise(messages[:1], 0, 1) == 0


def test_results_of_repeated_calls_and_long_results_are_shortened(
    session: Simulated,
) -> None:
    again = ToolCall(mint(4), "read", {"path": "1.txt"})
    session.write(RoundEnded(3, 3, pack(Message("assistant", [again], 3, CLAUDE)), calls=1))
    state, settings = session.state, Compaction()
    assert results_to_trim(state.history, state.ledger, settings, include_small=False, before=9) == {}
    session.write(Returned(again.id, quote("REAL1 " * 100)))
    state = session.state
    assert results_to_trim(state.history, state.ledger, settings, include_small=False, before=9) == {
        mint(1): "repeated"
    }
    assert results_to_trim(state.history, state.ledger, settings, include_small=False, before=0) == {}
    long = results_to_trim(
        state.history, state.ledger, replace(settings, large_result_bytes=600), include_small=False, before=6
    )
    assert long == {mint(1): "repeated", mint(2): "large"}
    everything = results_to_trim(state.history, state.ledger, settings, include_small=True, before=6)
    assert everything == {mint(1): "repeated", mint(2): "old"}


def test_the_estimated_saving_includes_summarised_content_and_shortened_results(
    session: Simulated,
) -> None:
    state, settings = session.state, Compaction(keep_turns=1)
    history, ledger = state.history, state.ledger
    first, second, third = (message_tokens(history.upto(at), ledger, 1.0) for at in (3, 6, 9))
    assert 700 < first < 1000
    assert possible_savings(history, ledger, settings, 9, 1.0) == second
    assert possible_savings(history, ledger, settings, 6, 1.0) == first
    assert possible_savings(history, ledger, settings, 1, 1.0) == 0  # no answer yet
    assert (
        possible_savings(history, ledger, replace(settings, large_result_bytes=600), 9, 1.0) == second + 602
    )
    shortened = shorten(history, [(mint(1), "large")])
    assert possible_savings(shortened, ledger, settings, 9, 1.0) == second - 602
    assert third > second + 700


def test_a_summary_that_is_not_short_must_be_shorter_than_the_range_it_replaces(session: Simulated) -> None:
    history, ledger = session.state.history, session.state.ledger
    size = round(message_tokens(history.upto(6), ledger, 1.0))
    assert not is_summary_longer("x" * SHORT_SUMMARY_BYTES, history, ledger, 0)
    assert is_summary_longer("x" * (SHORT_SUMMARY_BYTES + 1), history, ledger, 0)
    assert not is_summary_longer("x" * size, history, ledger, 6)
    assert is_summary_longer("x" * (size + 1), history, ledger, 6)
    assert is_summary_longer("\u00e9" * (size - 1), history, ledger, 6)


def test_token_counts_use_the_reported_usage_and_estimate_only_newer_messages() -> None:
    binding, learned = BINDINGS[0], Calibration()
    said = History([Message("user", [Text("x" * 7000)])])

    def tokens(history: History, measured: ReportedRequest | None, asked: Binding = binding) -> int:
        return estimate_tokens(history, Ledger(), measured, asked, 350, learned.ratio)

    assert 2050 < tokens(said, None) < 2250
    learned.record_report(7350, Usage(input_tokens=4900))
    assert learned.ratio == 2.5
    answered = ReportedRequest(binding, 1, 4000)
    assert tokens(said, answered) == 4000
    more = said.append(Message("user", [Text("y" * 2000)]))
    assert 4800 < tokens(more, answered) < 4850
    for unknown in (None, ReportedRequest(binding), ReportedRequest(BINDINGS[1], 1, 4000)):
        assert 3740 < tokens(more, unknown) < 3800


def test_reported_tokens_are_valid_until_the_next_compaction() -> None:
    session, said = Simulated(), pack(Message("user", [Text("Hello?")]))
    answer = pack(Message("assistant", [Text("Hello.")], 1, CLAUDE))
    session.write(Opened("s", "a"), AskStarted(1, said), TurnStarted(1, 1, CLAUDE))
    session.write(RoundEnded(1, 1, answer, Usage(400, 10)))
    assert session.state.measured == ReportedRequest(CLAUDE, 1, 400)
    session.write(
        RoundEnded(1, 2, answer, Usage(500, 10), fault="it broke off"), RoundEnded(1, 0, None, Usage(9, 9))
    )
    assert session.state.measured == ReportedRequest(CLAUDE, 1, 400)
    session.write(Compacted(0, 1, said))
    assert session.state.measured == ReportedRequest(CLAUDE)


def test_the_learned_bytes_per_token_are_bounded_and_the_longest_answer_size_decays() -> None:
    learned = Calibration()
    for _ in range(20):
        learned.record_report(10_000, Usage(1, 800))
    assert (round(learned.ratio, 3), learned.answer) == (6.0, 800)
    for _ in range(20):
        learned.record_report(1, Usage(10_000, 0))
    assert (round(learned.ratio, 3), learned.answer) == (1.5, 800)
    learned.record_report(0, Usage(0, 16))
    assert (round(learned.ratio, 3), learned.answer) == (1.5, 750)


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": 0},
        {"threshold": 1.5},
        {"keep_turns": -1},
        {"large_result_bytes": 8},
        {"attachments": "2"},
    ],
)
def test_the_error_for_an_invalid_compaction_setting_names_the_setting(wrong: dict[str, object]) -> None:
    (name,) = wrong
    given = Compaction(**wrong)  # type: ignore[arg-type]  # deliberately wrong
    with pytest.raises(ConfigError, match=name):
        check_fields(given, COMPACTION_RANGES, "compaction=")


@pytest.mark.parametrize("binding", BINDINGS, ids=str)
def test_a_summary_request_leaves_the_lane_unchanged(binding: Binding, session: Simulated) -> None:
    session.send(binding)
    before = session.lanes.of(binding)
    asked = session.state.history.append(Message("user", [Text("Summarise.")]))
    rendered = session.lanes.render(binding, asked, session.state.ledger)
    session.write(RequestSent(9, 1, binding, before._state.epoch, asked.length, is_for_summary=True))
    assert session.lanes.of(binding) is before
    assert text(rendered).startswith(b"".join(before._segments)[:-1] or b"")
