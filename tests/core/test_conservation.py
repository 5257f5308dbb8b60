"""Check that rendering never loses, repeats or replaces a result and answers every call."""

import re
from base64 import b64decode
from collections import Counter

import pytest
from hypothesis import given

from actors.core.data.jsonio import Json, quote, unquote
from actors.core.dialects.profiles import PROFILES
from actors.core.history.history import History
from actors.core.lanes.lane import Rendered
from actors.core.ledger import Ledger
from actors.core.log.call_events import Returned, Scheduled, ToolCallRecord
from actors.core.log.events import RequestSent
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Media, Message, Text, ToolCall, ToolResult
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import pack, unpack
from actors.testing import validate
from actors.testing.images import png_base64
from actors.transcripts import check, dialect, encode, render
from tests.commands.at_scale import spread
from tests.core.answers import parse_results as told_in
from tests.core.session_log import (
    BINDINGS,
    ELSEWHERE,
    TRUSTING,
    body,
    examples,
    find_refusal,
    owed_results,
    parse_body,
    render_at_once,
    text,
)
from tests.generated.histories import READERS, history
from tests.generated.strategies import conversations

PIXEL = png_base64()

MARK = re.compile(r"R\d+\.")
"""What each generated result holds and nothing else does."""

either_dialect = pytest.mark.parametrize("binding", BINDINGS, ids=lambda binding: binding.dialect)


def marks(text: str) -> Counter[str]:
    return Counter(MARK.findall(text))


def sent_marks(rendered: Rendered) -> Counter[str]:
    """Return the marks in the request, and those that wait for the next user message."""
    return marks(sent_content(rendered))


def sent_content(rendered: Rendered) -> str:
    """Return the content of the request, and the content that waits for the next user message."""
    carried = rendered.lane._state.carried
    return text(rendered).decode() + "".join(
        block.text if isinstance(block, Text) else f'{block.data}"' for block in carried
    )


def is_marked(media: Media) -> bool:
    """Return True for an image that only generated results contain."""
    return media.media_type == "image/png" and b64decode(media.data).startswith(b"I")


def count_distinct_calls(report: Report) -> int:
    """Count the distinguishable calls: by id, or by position if the protocol has no ids."""
    ids = report.emitted_calls
    return len(ids) if dialect(report.dialect).ids.style == "none" else len(set(ids))


def stored_messages(messages: list[Message]) -> list[Message]:
    """Return the messages in their stored form, in which lone surrogates are replaced."""
    return [unpack(pack(message)) for message in messages]


def result_text(result: ToolResult) -> str:
    return ((result.content_json if result.error_json is None else result.error_json) or b"").decode()


def has_repeated_ids(messages: list[Message]) -> bool:
    """Return True if an id is repeated or empty."""
    ids = [call.id for message in messages for call in message.calls]
    answered = [result.call_id for message in messages for result in message.results]
    return len(set(ids)) < len(ids) or "" in (*ids, *answered)


def assert_each_real_result_is_sent_once(messages: list[Message], ledger: Ledger, rendered: Rendered) -> None:
    if has_repeated_ids(messages):
        if not len(ledger):  # a ledger is ambiguous for repeated ids
            held = Counter(
                mark
                for message in messages
                for result in message.results
                for mark in set(MARK.findall(result_text(result)))
            )
            assert sent_marks(rendered) <= held
        return
    due = owed_results(messages, ledger)
    assert sent_marks(rendered) == sum((marks(result_text(result)) for result in due), Counter[str]())
    images = Counter(media.data for result in due for media in result.media if is_marked(media))
    seen = Counter({data: sent_content(rendered).count(f'{data}"') for data in images})
    assert seen <= images
    if "image" in rendered.dialect.media.user_kinds:
        assert (images - seen).total() <= sent_content(rendered).count(
            "conversation already contains as many as the provider accepts"
        )
    unsealed = {result.call_id for result in due} - {
        item.call_id for item in ledger.interactions() if item.sealed
    }
    assert unsealed.isdisjoint(call_id for call_id, _ in rendered.report.synthetic)


def assert_calls_are_answered_once_in_order(rendered: Rendered) -> None:
    waiting: list[str] = []
    made: set[str] = set()
    for kind, value in parse_body(body(rendered)).items:
        if kind == "call":
            assert value not in made
            made.add(value)
            waiting.append(value)
        elif kind == "result":
            assert waiting.pop(0) == value
    assert waiting == []


def assert_conserved(messages: list[Message], ledger: Ledger, rendered: Rendered) -> None:
    """Check both properties of one render. The messages are in their stored form."""
    assert_each_real_result_is_sent_once(messages, ledger, rendered)
    assert_calls_are_answered_once_in_order(rendered)


@pytest.mark.requirement("PROMISE-1", "PROMISE-2", "REQ-915-005", "REQ-915-013")
@pytest.mark.requirement("REQ-915-006", "REQ-915-007", "REQ-915-008", "REQ-915-009", "REQ-915-012")
@pytest.mark.requirement("REQ-915-016", "REQ-915-017")
@examples(400)
@given(conversation=conversations())
def test_every_render_is_valid_and_sends_each_real_result_once(
    conversation: tuple[list[Message], Ledger],
) -> None:
    messages, ledger = conversation
    said, resting = History(messages, ledger), stored_messages(messages)
    for binding in BINDINGS:
        rendered = render_at_once(said, ledger, binding)
        assert find_refusal(rendered) is None
        assert_conserved(resting, ledger, rendered)


@pytest.mark.requirement("PROMISE-1", "REQ-915-037")
@examples(200)
@given(conversation=conversations())
def test_the_pure_api_encodes_valid_bodies_for_every_dialect(
    conversation: tuple[list[Message], Ledger],
) -> None:
    messages, ledger = conversation
    said = History(messages, ledger)
    for binding in BINDINGS:
        rendered = render(said, ledger, dialect(binding.dialect))
        sent = encode(rendered, model="any", system="be brief", max_tokens=100, stream=True)
        assert check(sent, rendered.dialect) == []
        assert validate(sent, binding.dialect, settings=TRUSTING.get(binding.dialect)) is None


@pytest.mark.requirement("REQ-915-024")
@examples(200)
@given(conversation=conversations())
def test_the_thinking_policy_does_not_change_calls_and_results(
    conversation: tuple[list[Message], Ledger],
) -> None:
    messages, ledger = conversation
    said = History(messages, ledger)
    for binding in BINDINGS:
        native = render_at_once(said, ledger, binding).report
        for policy in ("drop", "text"):
            rendered = render_at_once(said, ledger, binding, policy)
            assert find_refusal(rendered) is None
            assert rendered.report.emitted_calls == native.emitted_calls
            assert rendered.report.emitted_results == native.emitted_results


def batch(count: int, *results: ToolResult) -> list[Message]:
    return [
        Message("user", [Text("u")]),
        Message("assistant", [ToolCall(f"c{number}", "read") for number in range(1, count + 1)]),
        Message("tool", results),
        Message("user", [Text("go")]),
    ]


@pytest.mark.requirement("REQ-915-044", "REQ-915-011", "REQ-915-012")
@either_dialect
def test_four_of_five_calls_get_synthetic_results_if_only_one_has_a_real_result(binding: Binding) -> None:
    rendered = render_at_once(batch(5, ToolResult("c3", "R3.")), Ledger(), binding)
    assert [call_id for call_id, _ in rendered.report.synthetic] == ["c1", "c2", "c4", "c5"]
    assert find_refusal(rendered) is None
    sent = text(rendered)
    assert sent.count(b"R3.") == 1
    assert sent.count(b"No result was recorded") == 4


@pytest.mark.requirement("REQ-915-011")
@either_dialect
@pytest.mark.parametrize("known", range(6))
def test_each_call_without_a_real_result_gets_one_synthetic_result(binding: Binding, known: int) -> None:
    results = [ToolResult(f"c{number}", f"R{number}.") for number in range(5, 5 - known, -1)]
    rendered = render_at_once(batch(5, *results), Ledger(), binding)
    assert len(rendered.report.synthetic) == 5 - known
    assert marks(text(rendered).decode()) == Counter(f"R{number}." for number in range(5, 5 - known, -1))


@pytest.mark.requirement("REQ-915-010")
@either_dialect
def test_the_arrival_order_of_results_changes_no_byte(binding: Binding) -> None:
    results = [ToolResult(f"c{number}", f"R{number}.") for number in range(1, 5)]
    sent = text(render_at_once(batch(4, *results), Ledger(), binding))
    split = [*batch(4)[:2], *(Message("tool", [result]) for result in results[::-1]), batch(4)[3]]
    for messages in (batch(4, *results[::-1]), batch(4, *results[2:], *results[:2]), split):
        assert text(render_at_once(messages, Ledger(), binding)) == sent


@pytest.mark.requirement("REQ-915-048")
@either_dialect
@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (ToolResult("c1", "fine", "bad", True), "bad"),
        (ToolResult("c1", "fine", "bad", False), "bad"),
        (ToolResult("c1", "portion", is_complete=False), "portion"),
        (ToolResult("c1", is_complete=False), None),
        (ToolResult("c1", media=[Media("image/png", PIXEL)], is_complete=False), ""),
        (ToolResult("c1", None, is_complete=True), ""),
        (ToolResult("c1", 0), "0"),
        (ToolResult("c1", False), "false"),
        (ToolResult("c1", None), None),
    ],
)
def test_the_status_of_a_result_depends_on_its_error_then_completeness_then_content(
    binding: Binding, result: ToolResult, shown: str | None
) -> None:
    rendered = render_at_once(batch(1, result), Ledger(), binding)
    sent = text(rendered).decode()
    assert bool(rendered.report.synthetic) == (shown is None)
    assert shown is None or f'{shown}"' in sent
    assert "fine" not in sent


@pytest.mark.requirement("REQ-915-047")
@either_dialect
def test_a_call_in_a_tool_message_is_attributed_to_the_model(binding: Binding) -> None:
    astray = [
        Message("user", [Text("u")]),
        Message("tool", [ToolCall("c1", "read"), ToolResult("c1", "R1.")]),
        Message("user", [Text("go")]),
    ]
    right = [
        astray[0],
        Message("assistant", [ToolCall("c1", "read")]),
        Message("tool", [ToolResult("c1", "R1.")]),
        astray[2],
    ]
    rendered = render_at_once(astray, Ledger(), binding)
    assert text(rendered) == text(render_at_once(right, Ledger(), binding))
    assert [finding.code for finding in History(astray).report.findings] == ["misplaced_call"]


@pytest.mark.requirement("REQ-915-039", "REQ-915-040")
@either_dialect
def test_the_render_report_lists_changes_with_canonical_ids(binding: Binding) -> None:
    results = [
        ToolResult("c1", "R1."),
        ToolResult("c1", "R1."),
        ToolResult("c1", "R9."),
        ToolResult("x", "R8."),
    ]
    came = History(batch(2, *results)).report
    report = render_at_once(batch(2, *results), Ledger(), binding).report
    assert report.dialect == binding.dialect
    assert report.calls == ("c1", "c2")
    assert count_distinct_calls(report) == 2
    assert report.emitted_results == report.emitted_calls
    assert came.dedupe == (("c1", "duplicate"), ("c1", "conflicting_duplicate"))
    assert report.synthetic == (("c2", "lost"),)
    assert [(found.code, found.fault_class, found.call_ids) for found in came.findings] == [
        ("orphan_result", "canonical", ("x",))
    ]


SEALED = RequestSent(1, 1, ELSEWHERE, 0, 2, ((CallId("c1"), "cancelled"),))


@pytest.mark.requirement("PROMISE-2")
@either_dialect
def test_a_real_result_after_a_sealed_synthetic_result_is_sent_as_a_note(binding: Binding) -> None:
    ledger = Ledger().apply(Scheduled(CallId("c1"), "read"), SEALED, Returned(CallId("c1"), quote("R1.")))
    rendered = render_at_once(batch(1), ledger, binding)
    sent = text(rendered).decode()
    assert rendered.report.synthetic == (("c1", "cancelled"),)
    assert (
        sent.index("the call was cancelled") < sent.index("[Late result of read: R1.]") < sent.index('"go"')
    )


@pytest.mark.requirement("PROMISE-2")
@either_dialect
def test_a_late_result_is_sent_before_the_next_user_message(binding: Binding) -> None:
    ledger = Ledger().apply(SEALED, Returned(CallId("c1"), quote("R1.")))
    rendered = render_at_once(batch(1)[:2], ledger, binding)
    assert b"R1." not in text(rendered)
    assert rendered.lane._state.carried == (Text("[Late result of read: R1.]"),)


@either_dialect
def test_a_late_result_in_the_ledger_takes_precedence_over_a_result_block(binding: Binding) -> None:
    ledger = Ledger().apply(SEALED, Returned(CallId("c1"), quote("R1. by the ledger")))
    early = [Message("tool", [ToolResult("c1", "R2.")]), *batch(1)]
    assert marks(text(render_at_once(early, ledger, binding)).decode()) == Counter(["R1."])


@either_dialect
def test_an_orphan_result_is_sent_once_as_labelled_text(binding: Binding) -> None:
    orphan = ToolResult("gone", error="R1.")
    said = History([Message("tool", [orphan, orphan])])
    rendered = render_at_once(said, Ledger(), binding)
    assert text(rendered).count(b"[A tool result without its call, which failed: R1.]") == 1
    assert said.report.dedupe == (("gone", "duplicate"),)


@either_dialect
def test_an_orphan_result_gets_its_call_restored_from_the_ledger(binding: Binding) -> None:
    known = ToolCallRecord(
        CallId("gone"), "weather", Json(b'{"city":"Oslo"}'), True, ToolResult("gone", "R1.")
    )
    rendered = render_at_once([Message("tool", [ToolResult("gone", "R1.")])], Ledger([known]), binding)
    assert find_refusal(rendered) is None
    assert rendered.report.calls == ("gone",)
    assert b"Oslo" in text(rendered)
    assert text(rendered).count(b"R1.") == 1


@pytest.mark.requirement("REQ-915-022", "REQ-915-049")
@either_dialect
def test_calls_with_repeated_or_empty_ids_get_distinct_ids(binding: Binding) -> None:
    messages = [
        Message("user", [Text("u")]),
        Message("assistant", [ToolCall("", "read"), ToolCall("x", "read")]),
        Message("tool", [ToolResult("", "R1."), ToolResult("x", "R2.")]),
        Message("assistant", [ToolCall("", "read"), ToolCall("x", "read")]),
        Message("tool", [ToolResult("", "R3."), ToolResult("x", "R4.")]),
    ]
    rendered = render_at_once(messages, Ledger(), binding)
    assert find_refusal(rendered) is None
    assert count_distinct_calls(rendered.report) == 4
    assert MARK.findall(text(rendered).decode()) == ["R1.", "R2.", "R3.", "R4."]


@pytest.mark.requirement("REQ-915-025")
def test_one_message_may_mix_thinking_with_calls_results_and_text() -> None:
    mixed = Message(
        "assistant",
        [
            Text("first"),
            ToolCall("c1", "read"),
            ToolResult("c1", "R1."),
            Text("then"),
            ToolCall("c2", "read"),
        ],
    )
    for binding in BINDINGS:
        rendered = render_at_once([Message("user", [Text("u")]), mixed], Ledger(), binding)
        assert find_refusal(rendered) is None
        assert [kind for kind, _ in parse_body(body(rendered)).items if kind != "words"] == [
            "call",
            "result",
        ] * 2
        sent = text(rendered)
        assert sent.index(b"first") < sent.index(b"R1.") < sent.index(b"then")


SIZES = (1, 2, 199, 200, 201, 599, 600, 601, 4095, 70_000)
"""Characters of a result."""
every_dialect = pytest.mark.parametrize("name", PROFILES)


@pytest.mark.requirement("PROMISE-2", "REQ-915-008", "REQ-915-012")
@every_dialect
@pytest.mark.parametrize("failed", [False, True])
def test_a_result_of_any_size_is_sent_completely_and_with_its_status(name: str, failed: bool) -> None:
    words = [('"q\\" \n\té\u2713\U0001f600 ' * (size // 10 + 1))[:size] for size in SIZES]
    calls = [ToolCall(f"c{at}", "read") for at in range(len(words))]
    results = [
        ToolResult(call.id, error=each) if failed else ToolResult(call.id, each)
        for call, each in zip(calls, words, strict=True)
    ]
    said = History([Message("user", [Text("u")]), Message("assistant", calls), Message("tool", results)])
    rendered = render_at_once(said, Ledger(), READERS[name])
    assert find_refusal(rendered) is None
    answers = told_in(body(rendered), rendered.dialect)
    assert [answer.failed for answer in answers] == [failed] * len(SIZES)
    assert [
        size for size, answer, each in zip(SIZES, answers, words, strict=True) if answer.words != each
    ] == []


@pytest.mark.requirement("PROMISE-2", "REQ-915-008", "REQ-915-012")
@every_dialect
def test_each_result_in_a_body_has_its_recorded_content(name: str) -> None:
    for seed in spread(range(80), [*PROFILES].index(name)):
        messages, ledger = history(seed)
        said = History(messages, ledger)
        rendered = render_at_once(said, ledger, READERS[name])
        answers = told_in(body(rendered), rendered.dialect)
        made_up = [call_id for call_id, _ in rendered.report.synthetic]
        for call_id, (words, failed) in zip(rendered.report.calls, answers, strict=True):
            recorded = ledger._answer(call_id) or said.ledger._answer(call_id)
            if call_id in made_up or recorded is None:
                assert "No result was recorded" in words
                continue
            assert failed == recorded[1], (seed, call_id)
            said_so = unquote(recorded[0])
            if said_so.strip():  # an empty result may have a placeholder
                is_whole = _is_complete(words, said_so, bool(recorded[2]))
                assert is_whole, (seed, call_id)


def _is_complete(words: str, recorded: str, has_media: bool) -> bool:
    """Return True if a result contains the recorded text and at most a note on its media."""
    return words.startswith(recorded + "\n[") or words == recorded if has_media else words == recorded
