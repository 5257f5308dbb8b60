"""Check that lanes only grow, render only new messages and are reproducible byte for byte."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.data.jsonio import quote
from actors.core.data.persistent import SHARED
from actors.core.data.record import replace
from actors.core.history.history import History, replace_messages
from actors.core.lanes.lane import Rendered, advance, empty_lane
from actors.core.ledger import Ledger
from actors.core.log.call_events import Returned, Scheduled
from actors.core.log.events import AskStarted, Compacted, LogEvent, Opened, RequestSent, RoundEnded
from actors.core.render import STRIDE
from actors.core.session.lanes import Lanes, rebuild
from actors.core.session.state import SessionState, opening_event
from actors.core.values.content import Block, Message, ProviderState, Text, Thinking, ToolCall, ToolResult
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import pack
from actors.errors import CanonicalFault
from actors.strict.rules import sign
from actors.testing import AnthropicProfile, AnthropicSettings, validate
from actors.transcripts import dialect, render
from tests.commands.at_scale import share
from tests.core.session_log import (
    BINDINGS,
    Simulated,
    body,
    examples,
    find_fault,
    find_refusal,
    parse_body,
    render_at_once,
    reread_log,
    rules,
    simulate,
    text,
)
from tests.generated.histories import READERS, history
from tests.generated.strategies import conversations

OPENAI, CLAUDE = BINDINGS[:2]

either_dialect = pytest.mark.parametrize("binding", BINDINGS, ids=lambda binding: binding.dialect)


def assert_lanes_hold(session: Simulated) -> None:
    """Check that each request is accepted and extends the previous request of its epoch."""
    assert find_fault(session) is None


@pytest.mark.requirement("PROMISE-1", "PROMISE-4", "REQ-915-042")
def test_lanes_only_grow_and_every_request_is_accepted() -> None:
    for seed in range(share(400)):
        assert_lanes_hold(simulate(*history(seed), seed))


@pytest.mark.requirement("PROMISE-1", "PROMISE-4", "REQ-915-042")
@examples(200)
@given(conversation=conversations(), seed=st.integers(0, 999))
def test_lanes_of_generated_conversations_only_grow_and_are_accepted(
    conversation: tuple[list[Message], Ledger], seed: int
) -> None:
    assert_lanes_hold(simulate(*conversation, seed))


@pytest.mark.requirement("PROMISE-3", "REQ-915-046")
def test_lanes_rebuilt_from_the_log_have_the_same_bytes() -> None:
    for seed in range(share(240)):
        session = simulate(*history(seed), seed)
        for log in (session.log, reread_log(session.log)):
            state, lanes = rebuild(log, rules)
            assert (state.history, state.ledger) == (session.state.history, session.state.ledger)
            for binding in BINDINGS:
                assert b"".join(lanes.of(binding)._segments) == b"".join(session.lanes.of(binding)._segments)
                assert lanes.of(binding)._state == session.lanes.of(binding)._state
                assert lanes.of(binding)._check_state == session.lanes.of(binding)._check_state


@pytest.mark.requirement("PROMISE-3", "REQ-915-010")
@either_dialect
@examples(200)
@given(conversation=conversations())
def test_rendering_is_idempotent(conversation: tuple[list[Message], Ledger], binding: Binding) -> None:
    one, other = render_at_once(*conversation, binding), render_at_once(*conversation, binding)
    assert one == other


DIGESTS = """
import sys
from hashlib import sha256
from tests.generated.histories import history
from tests.core.session_log import BINDINGS, render_at_once, simulate, text
digest = sha256()
for seed in range(int(sys.argv[1])):
    messages, ledger = history(seed)
    for binding in BINDINGS:
        digest.update(text(render_at_once(messages, ledger, binding)))
    for _, _, rendered in simulate(messages, ledger, seed).sent:
        digest.update(text(rendered))
print(digest.hexdigest())
"""


@pytest.mark.requirement("PROMISE-3")
def test_the_bytes_of_a_lane_do_not_depend_on_the_hash_seed() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGESTS, str(share(128))],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in ("0", "4711")
    }
    assert len(digests) == 1


@pytest.mark.requirement("REQ-915-003")
def test_previewing_a_lane_does_not_change_later_requests() -> None:
    for seed in range(share(300)):
        messages = History(history(seed)[0]).since(0)
        half = len(messages) // 2
        plain, previewed = Simulated(), Simulated()
        for session in (plain, previewed):
            session.write(opening_event("s", "t", History(messages[:half])))
            session.send(CLAUDE)
        adopted = previewed.lanes.of(CLAUDE)
        for number, message in enumerate(messages[half:]):
            for session in (plain, previewed):
                session.write(AskStarted(number, pack(message)))
            for binding in BINDINGS:
                previewed.render(binding)
        assert previewed.lanes.of(CLAUDE) == adopted
        assert previewed.send(CLAUDE) == plain.send(CLAUDE)


@pytest.mark.requirement("PROMISE-2", "PROMISE-4")
@either_dialect
def test_a_real_result_after_a_sealed_synthetic_result_is_sent_once_in_every_lane(binding: Binding) -> None:
    session = Simulated()
    call = ToolCall("hist_tool_1", "read")
    session.write(Opened("s", "t"), AskStarted(1, pack(Message("user", [Text("u")]))))
    session.write(RoundEnded(1, 1, pack(Message("assistant", [call]))), Scheduled(call.id, "read"))
    session.send(OPENAI)
    session.write(Returned(call.id, quote("R1.")), AskStarted(2, pack(Message("user", [Text("go")]))))
    first = text(session.send(binding)).decode()
    session.write(AskStarted(3, pack(Message("user", [Text("more")]))))
    second = text(session.send(binding)).decode()
    assert first.count("[Late result of read: R1.]") == second.count("R1.") == 1
    assert "[No result was recorded" in first


@pytest.mark.requirement("PROMISE-2")
@either_dialect
@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_result_in_both_the_ledger_and_a_later_block_is_sent_once(
    binding: Binding, is_sealed: bool
) -> None:
    said, lane = History([Message("assistant", [ToolCall("c1", "read")])]), empty_lane(rules(binding)[0])
    rendered = advance(lane, said, Ledger(), *rules(binding))
    seal = RequestSent(1, 1, binding, 0, 1, ((CallId("c1"), "lost"),))
    ledger = Ledger().apply(seal, Returned(CallId("c1"), quote("R1."))) if is_sealed else Ledger()
    for more in (Message("user", [Text("go")]), Message("tool", [ToolResult("c1", "R1.")])):
        said = said.append(more, Message("user", [Text("more")]))
        rendered = advance(rendered.lane, said, ledger, *rules(binding))
    assert find_refusal(rendered) is None
    assert text(rendered).count(b"Late result of read: R1.") == text(rendered).count(b"R1.") == 1


@pytest.mark.requirement("PROMISE-4")
def test_a_synthetic_result_sealed_in_one_lane_is_also_sent_in_the_other_lane() -> None:
    session = Simulated()
    session.write(Opened("s", "t"), AskStarted(1, pack(Message("user", [Text("u")]))))
    session.write(RoundEnded(1, 1, pack(Message("assistant", [ToolCall("hist_tool_1", "read")]))))
    session.send(OPENAI)
    session.write(Returned(CallId("hist_tool_1"), quote("R1.")))
    assert CLAUDE not in session.lanes.bindings()
    rendered = session.send(CLAUDE)
    assert rendered.report.synthetic == (("hist_tool_1", "lost"),)
    assert b"R1." not in text(rendered)


@pytest.mark.requirement("REQ-915-041", "REQ-915-042")
def test_switching_to_another_provider_and_back_keeps_the_first_lane() -> None:
    session = Simulated()
    session.write(Opened("s", "t"))
    sent: dict[Binding, bytes] = dict.fromkeys(BINDINGS, b"")
    for number in range(1, 9):
        binding = BINDINGS[number % 2]
        call = ToolCall(f"hist_tool_{number}", "read", {"n": number})
        session.write(AskStarted(number, pack(Message("user", [Text(f"question {number}")]))))
        assert text(session.send(binding)).startswith(sent[binding])
        session.write(
            RoundEnded(number, 1, pack(Message("assistant", [Text("let me"), call], origin=binding)))
        )
        session.write(Scheduled(call.id, "read"), Returned(call.id, quote(f"answer {number}")))
        sent[binding] = text(session.send(binding))
        session.write(RoundEnded(number, 2, pack(Message("assistant", [Text("so")], origin=binding))))
    assert_lanes_hold(session)
    assert all(f"answer {number}".encode() in sent[BINDINGS[0]] for number in range(1, 9))


@pytest.mark.requirement("PROMISE-4")
def test_bound_thinking_stays_valid_across_alternating_bindings() -> None:
    bound = AnthropicSettings(profile=AnthropicProfile(prefix_bound=True), account="account-1")
    session = Simulated()
    session.write(Opened("s", "t"))
    thoughts = 0
    for number in range(1, 13):
        binding = (CLAUDE, OPENAI, CLAUDE)[number % 3]
        session.write(AskStarted(number, pack(Message("user", [Text(f"question {number}")]))))
        if number % 4:
            request = body(session.send(binding))
            if binding == CLAUDE:
                assert validate(request, "anthropic", settings=bound) is None
            session.write(RoundEnded(number, 1, pack(_answer(binding, number, request, bound))))
            thoughts += binding == CLAUDE
        if number % 2:  # else the call stays open, and its result comes after the next request
            session.write(Returned(CallId(f"hist_tool_{number}"), quote(f"R{number}.")))
        if number > 2:
            session.write(Returned(CallId(f"hist_tool_{number - 1}"), quote(f"R{number - 1}.")))
    last = body(session.send(CLAUDE))
    assert validate(last, "anthropic", settings=bound) is None
    assert last.count(b'"type":"thinking"') == thoughts > 4


def _answer(binding: Binding, number: int, request: bytes, bound: AnthropicSettings) -> Message:
    words: list[Block] = [Text(f"answer {number}"), ToolCall(f"hist_tool_{number}", "read", {"n": number})]
    if binding != CLAUDE:
        return Message("assistant", words, origin=binding)
    parsed: Any = json.loads(request)  # Any: as `sign` takes it
    signature = sign(parsed, [], f"thought {number}", bound)
    thought = Thinking(f"thought {number}", ProviderState("signature", quote(signature), binding))
    return Message("assistant", [thought, *words], origin=binding)


@pytest.mark.requirement("PROMISE-4")
def test_a_new_epoch_drops_sealed_thinking_and_keeps_every_id() -> None:
    thought = Thinking("t", ProviderState("signature", quote("c2ln"), CLAUDE))
    call = ToolCall("hist_tool_1", "read", native=ProviderState("call_id", quote("toolu_native"), CLAUDE))
    session = Simulated()
    session.write(Opened("s", "t"))
    session.write(RoundEnded(1, 1, pack(Message("assistant", [thought, call], origin=CLAUDE))))
    first = text(session.send(CLAUDE))
    session.restart(CLAUDE, plain=False)
    second = text(session.send(CLAUDE))
    assert b"c2ln" in first
    assert b"c2ln" not in second
    assert first.count(b"toolu_native") == second.count(b"toolu_native") == 2


def test_imported_bound_thinking_is_not_sent() -> None:
    thought = Thinking("t", ProviderState("signature", quote("c2ln"), CLAUDE))
    session = Simulated()
    session.write(
        opening_event("s", "t", History((Message("assistant", [thought, Text("a")], origin=CLAUDE),)))
    )
    assert b"c2ln" not in text(session.send(CLAUDE))
    session.write(RoundEnded(1, 1, pack(Message("assistant", [thought, Text("b")], origin=CLAUDE))))
    assert text(session.send(CLAUDE)).count(b"c2ln") == 1


def test_bound_thinking_is_sent_only_to_its_own_binding() -> None:
    thought = Thinking("t", ProviderState("signature", quote("c2ln"), CLAUDE))
    twin = replace(CLAUDE, backend="another key of the same account")
    session = Simulated()
    session.write(Opened("s", "t"))
    session.write(RoundEnded(1, 1, pack(Message("assistant", [thought, Text("a")], origin=CLAUDE))))
    assert b"c2ln" in text(session.send(CLAUDE))
    assert b"c2ln" not in text(session.send(twin))


def test_a_late_result_of_a_compacted_call_is_sent() -> None:
    session = Simulated()
    session.write(Opened("s", "t"))
    session.write(RoundEnded(1, 1, pack(Message("assistant", [ToolCall("hist_tool_1", "read")]))))
    session.write(Scheduled(CallId("hist_tool_1"), "read"))
    session.send(CLAUDE)
    session.write(Compacted(0, 1, pack(Message("user", [Text("summary")]))))
    session.restart(CLAUDE, plain=False)
    session.write(Returned(CallId("hist_tool_1"), quote("REAL")))
    session.write(AskStarted(1, pack(Message("user", [Text("next")]))))
    assert text(session.send(CLAUDE)).count(b"REAL") == 1
    session.restart(CLAUDE, plain=False)  # sent in the previous epoch, and no longer in the history
    assert text(session.send(CLAUDE)).count(b"REAL") == 1


@pytest.mark.requirement("PROMISE-2")
@either_dialect
def test_an_orphan_result_repeated_in_a_later_request_is_not_sent_again(binding: Binding) -> None:
    first, other = ToolResult("gone", "ORPHAN"), ToolResult("gone", "OTHER")
    said = History([Message("user", [Text("go")]), Message("tool", [first])])
    rendered = advance(empty_lane(rules(binding)[0]), said, Ledger(), *rules(binding))
    for result in (first, other, first, ToolResult("gone", "ORPHAN", is_complete=True)):
        said = said.append(Message("tool", [result]))
        before, rendered = text(rendered), advance(rendered.lane, said, Ledger(), *rules(binding))
        assert find_refusal(rendered) is None
        assert text(rendered).startswith(before)
    assert text(rendered).count(b"ORPHAN") == 1
    assert text(rendered).count(b"OTHER") == 1
    assert said.report.dedupe == (("gone", "duplicate"),) * 3
    assert text(render_at_once(said, Ledger(), binding)).count(b"ORPHAN") == 1


@pytest.mark.requirement("REQ-915-027", "PROMISE-2")
@either_dialect
def test_a_call_whose_result_was_compacted_away_keeps_the_real_result_from_the_ledger(
    binding: Binding,
) -> None:
    asked = Message("assistant", [ToolCall("hist_tool_1", "read")])
    answered = Message("tool", [ToolResult("hist_tool_1", "REAL")])
    session = Simulated()
    session.write(opening_event("s", "t", History((Message("user", [Text("go")]), asked, answered))))
    session.send(binding)
    session.write(Compacted(0, 1, pack(Message("user", [Text("summary")]))))
    session.restart(binding, plain=False)
    rendered = session.send(binding)
    assert find_refusal(rendered) is None
    assert text(rendered).count(b"REAL") == 1
    assert rendered.report.synthetic == ()
    session.write(Compacted(0, 2, pack(Message("user", [Text("summary of both")]))))
    session.restart(binding, plain=False)
    assert b"REAL" not in text(session.send(binding))  # the call and its result are both in the summary


def test_a_lane_longer_than_its_compacted_history_requires_a_new_epoch() -> None:
    history = [Message("user", [Text("a")]), Message("assistant", [Text("b")]), Message("user", [Text("c")])]
    lane = render(History(history), Ledger(), dialect("anthropic")).lane
    with pytest.raises(CanonicalFault, match="begin an epoch"):
        render(History(history[:1]), Ledger(), dialect("anthropic"), lane)
    with pytest.raises(CanonicalFault, match="has dialect 'anthropic'"):
        render(History(history), Ledger(), dialect("openai"), lane)


def test_an_invalid_range_is_not_compacted() -> None:
    history = History([Message("user", [Text("a")])])
    for start, stop in ((1, 0), (0, 2), (-1, 1)):
        with pytest.raises(CanonicalFault, match="cannot be replaced"):
            replace_messages(history, start, stop, pack(Message("user", [Text("s")])))


@pytest.mark.requirement("PROMISE-4", "REQ-915-014")
def test_a_call_keeps_its_wire_id_after_an_earlier_call_with_the_same_native_id_is_compacted() -> None:
    def call(number: int) -> Message:
        native = ProviderState("call_id", quote("toolu_same"), CLAUDE)
        return Message("assistant", [ToolCall(f"hist_tool_{number}", "read", native=native)], origin=CLAUDE)

    session = Simulated()
    session.write(opening_event("s", "t", History((call(1), call(2)))))
    first = session.send(CLAUDE).report.emitted_calls
    session.write(Compacted(0, 1, pack(Message("user", [Text("summary")]))))
    session.restart(CLAUDE, plain=False)
    assert first[0] == "toolu_same"
    assert session.send(CLAUDE).report.emitted_calls == first[1:]


@pytest.mark.requirement("PROMISE-2")
@either_dialect
def test_the_conservative_render_writes_everything_as_text(binding: Binding) -> None:
    for seed in range(share(300)):
        messages, _ = history(seed)
        session = Simulated()
        session.write(opening_event("s", "t", History(messages)))
        session.restart(binding, plain=True)
        rendered = session.send(binding)
        assert find_refusal(rendered) is None
        assert {kind for kind, _ in parse_body(body(rendered)).items} == {"words"}


@pytest.mark.requirement("PROMISE-2")
@either_dialect
def test_the_conservative_render_loses_no_result(binding: Binding) -> None:
    call = ToolCall("c1", "weather", {"city": "Oslo"})
    session = Simulated()
    session.write(
        opening_event("s", "t", History((Message("user", [Text("u")]), Message("assistant", [call]))))
    )
    session.write(Returned(CallId("c1"), quote("21 C")))
    session.restart(binding, plain=True)
    sent = text(session.send(binding)).decode()
    assert "[Called the tool weather with" in sent
    assert "[The tool answered: 21 C]" in sent


@pytest.mark.parametrize("binding", BINDINGS, ids=str)
def test_the_log_the_ledger_and_the_lanes_share_one_object_for_a_long_result(binding: Binding) -> None:
    long, short = quote("21 C " * SHARED), quote("21 C")
    state = SessionState()
    log: list[LogEvent] = [Opened("s", "t"), AskStarted(1, pack(Message("user", [Text("Go on.")])))]
    for number, result in enumerate((long, short, long), 1):
        call = ToolCall(f"hist_tool_{number}", "weather")
        said = pack(Message("assistant", [call], number, binding))
        log += [
            RoundEnded(1, number, said, calls=1),
            Scheduled(call.id, "weather"),
            Returned(call.id, result),
        ]
    for event in log:
        state = state.apply(event)
    lane = advance(empty_lane(rules(binding)[0]), state.history, state.ledger, *rules(binding)).lane
    assert b"".join(lane._segments).count(long) == 2
    assert lane.size == len(b"".join(lane._segments))
    assert [segment is long for segment in lane._segments] == [False, True, False, True, False]


@either_dialect
def test_rendering_at_once_and_turn_by_turn_gives_the_same_bytes(binding: Binding) -> None:
    messages: list[Message] = []
    turns = range(STRIDE)  # their lengths differ, so that a stride ends at every position of a turn
    for turn in turns:
        call = ToolCall(f"c{turn}", "weather", {"city": "Oslo"})
        messages += [
            Message("user", [Text(f"question {turn}")]),
            Message("assistant", [call]),
            Message("tool", [ToolResult(call.id, "21 C")]),
            *([Message("assistant", [Text("21")])] if turn % 3 else []),
        ]
    messages.append(Message("user", [Text("thanks")]))
    history, lane = History(messages), empty_lane(rules(binding)[0])
    for stop in [at + 1 for at, message in enumerate(history.since(0)) if message.role == "user"]:
        lane = advance(lane, history.upto(stop), Ledger(), *rules(binding)).lane
    whole = render_at_once(messages, Ledger(), binding)
    assert find_refusal(whole) is None
    assert text(whole) == b"".join(lane._segments)
    assert (whole.lane._check_state, whole.lane._state) == (lane._check_state, lane._state)


def test_a_request_renders_only_new_messages() -> None:
    session = Simulated()
    session.write(Opened("s", "t"))
    sizes = []
    for number in range(1, 30):
        session.write(AskStarted(number, pack(Message("user", [Text("same length")]))))
        sizes.append(new(session.send(CLAUDE)))
        session.write(RoundEnded(number, 1, pack(Message("assistant", [Text("same length")]))))
    assert set(sizes[1:]) == {sizes[1]}
    assert sizes[1] < 3 * sizes[0]


def new(rendered: Rendered) -> int:
    return rendered.lane.size - rendered._before


@either_dialect
def test_an_empty_history_still_gives_a_valid_request(binding: Binding) -> None:
    rendered = Lanes(rules).render(binding, History(), Ledger())
    assert find_refusal(rendered) is None
    assert len(json.loads(rendered.transcript)) == 1


def test_the_tests_have_exactly_one_binding_for_each_dialect() -> None:
    assert [binding.dialect for binding in READERS.values()] == list(READERS)
