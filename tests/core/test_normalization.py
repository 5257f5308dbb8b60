"""Check that any input becomes a normal history, without losing calls or results."""

import pytest
from hypothesis import given

from actors.core.data.jsonio import Json, parse
from actors.core.history.history import History
from actors.core.log.call_events import ToolCallRecord
from actors.core.normalize import settle
from actors.core.values.content import Block, Media, Message, Text, Thinking, ToolCall, ToolResult
from actors.core.values.identity import RUNTIME, CallId
from actors.core.values.intake import ReportBuilder
from actors.core.values.packed import pack, unpack
from actors.errors import TranscriptError
from actors.testing.images import png_base64
from actors.transcripts import Ledger, dialect, render
from tests.core.session_log import examples
from tests.generated.histories import history
from tests.generated.strategies import conversations

PIXEL = png_base64()

ONE, TWO = ToolCall("c1", "read"), ToolCall("c2", "read")
IMAGE = Media("image/png", PIXEL)


def human(*blocks: Block) -> Message:
    return Message("user", blocks or (Text("u"),))


def model(*blocks: Block) -> Message:
    return Message("assistant", blocks)


def tool(*blocks: Block) -> Message:
    return Message("tool", blocks)


def attributed(messages: list[Message]) -> list[Message]:
    return [
        message
        for _, message in settle.split_by_role([("", message) for message in messages], ReportBuilder())
    ]


def assert_normal(said: History) -> None:
    ids = [call.id for message in said.since(0) for call in message.calls]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    for message in said.since(0):
        assert message.role in ("user", "assistant")
        assert not message.results
        assert message.role == "assistant" or not message.calls
        assert all(type(parse(call.json)) is dict for call in message.calls)


def answers(said: History) -> dict[str, object]:
    """Return the content of each call's completion by call id."""
    known = said.ledger.interactions()
    return {item.call_id: None if item.completion is None else item.completion.content for item in known}


# ---- any input


@pytest.mark.requirement("REQ-915-047", "PROMISE-1")
@examples(200)
@given(conversations())
def test_normalizing_any_conversation_gives_a_normal_history_and_is_idempotent(
    conversation: tuple[list[Message], Ledger],
) -> None:
    messages, ledger = conversation
    said = History(messages, ledger)
    assert_normal(said)
    again = History(said, ledger)
    assert again.since(0) == said.since(0)
    assert answers(again) == answers(said)
    assert (again.report.findings, again.report.dedupe) == ((), ())


def test_appending_messages_one_by_one_keeps_a_history_normal() -> None:
    for seed in range(150):
        messages, ledger = history(seed)
        said = History((), ledger)
        for number, message in enumerate(messages):
            before, said = said, said.append(message, ledger=ledger)
            assert_normal(said)
            assert said.since(0)[: before.length] == before.since(0), (seed, number)


def test_normal_messages_are_kept_unchanged_with_an_empty_report() -> None:
    messages = [human(), model(Text("t"), ONE), human()]
    said = History(messages)
    assert said.since(0) == messages
    assert said._packed == ((), tuple(map(pack, messages)))
    assert (said.report.findings, said.report.dedupe, said.report.notes) == ((), (), ())


@pytest.mark.parametrize("given", [[human()], (human(),), None, "text"])
def test_render_rejects_anything_but_a_history(given: object) -> None:
    with pytest.raises(
        TranscriptError, match=r"render\(\) takes a History, not \w+; create one with History\(messages\)"
    ):
        render(given, Ledger(), dialect("anthropic"))  # type: ignore[arg-type]  # rejected by type checkers


def test_iterating_a_history_yields_results_after_their_calls() -> None:
    messages = [human(), model(ONE, TWO), tool(ToolResult("c1", "x"), ToolResult("c2", error="y")), human()]
    said = History(messages)
    assert list(said) == messages
    assert (len(said), said[2], said[1:3], said.length) == (4, messages[2], messages[1:3], 3)
    late = [human(), model(ONE, TWO), human(), tool(ToolResult("c2", "y")), tool(ToolResult("c1", "x"))]
    assert list(History(late)) == [*messages[:2], tool(ToolResult("c1", "x"), ToolResult("c2", "y")), human()]
    assert History(messages) != History(messages[:2])
    assert History(messages) != History([*messages[:2], human()])


# ---- roles


@pytest.mark.requirement("REQ-915-047")
@examples(200)
@given(conversations())
def test_normalization_moves_each_block_to_a_message_of_its_role_once_and_in_order(
    conversation: tuple[list[Message], Ledger],
) -> None:
    messages, _ = conversation
    given_out = attributed(messages)
    assert [block for message in given_out for block in message.blocks] == [
        block for message in messages for block in message.blocks
    ]
    for message in given_out:
        for block in message.blocks:
            assert (type(block) is ToolCall) <= (message.role == "assistant")
            assert (type(block) is ToolResult) == (message.role == "tool")
    assert attributed(given_out) == given_out


def test_text_in_a_tool_message_becomes_a_user_message() -> None:
    said = History([model(ONE), tool(Text("note"), ToolResult("c1", "x"))])
    assert said.since(0) == [model(ONE), human(Text("note"))]
    assert answers(said) == {"c1": "x"}


def test_a_message_with_an_unknown_role_becomes_a_user_message_and_is_reported() -> None:
    said = History([Message("narrator", [Text("once")])])  # type: ignore[arg-type]  # possible input from a host
    assert said.since(0) == [human(Text("once"))]
    assert [finding.code for finding in said.report.findings] == ["unknown_speaker"]


# ---- ids


@pytest.mark.requirement("REQ-915-022")
def test_a_repeated_call_id_is_numbered_across_appended_messages() -> None:
    said = History([model(ONE), tool(ToolResult("c1", "a"))])
    said = said.append(model(ONE)).append(tool(ToolResult("c1", "b", media=[IMAGE])))
    assert [call.id for message in said.since(0) for call in message.calls] == ["c1", "c1~2"]
    assert answers(said) == {"c1": "a", "c1~2": "b"}
    known = said.ledger.get(CallId("c1~2"))
    assert known is not None
    assert known.completion == ToolResult("c1~2", "b", media=[IMAGE])
    assert [(found.code, found.call_ids) for found in said.report.findings] == [("repeated_id", ("c1",))]


def test_a_numbered_id_skips_ids_already_in_use() -> None:
    (message,) = History([model(ToolCall("x~2", "a"), ToolCall("x", "b"), ToolCall("x", "c"))]).since(0)
    assert [call.id for call in message.calls] == ["x~2", "x", "x~3"]


@pytest.mark.requirement("REQ-915-022")
def test_empty_ids_pair_by_position_if_there_are_as_many_calls_as_results() -> None:
    calls = [ToolCall("", "read", {"n": number}) for number in range(3)]
    results = [ToolResult("", f"R{number}.") for number in range(3)]
    together = History([model(*calls), tool(*results)])
    assert list(answers(together).values()) == ["R0.", "R1.", "R2."]
    apart = History(
        [model(calls[0], ONE, calls[1]), tool(results[0]), tool(ToolResult("c1", "x")), tool(results[1])]
    )
    assert sorted(answers(apart).values(), key=str) == ["R0.", "R1.", "x"]
    for broken in (
        [model(*calls), tool(*results[:2])],
        [model(*calls[:2]), tool(*results)],
        [model(calls[0]), human(), tool(results[0])],
        [model(calls[0]), model(Text("t")), tool(results[0])],
    ):
        said = History(broken)
        assert set(answers(said).values()) == {None}
        told = "".join(message.text for message in said.since(0) if message.origin == RUNTIME)
        assert [told.count(f"R{number}.") for number in range(3)] == [
            sum(result == results[number] for message in broken for result in message.results)
            for number in range(3)
        ]


def test_arguments_that_are_not_an_object_become_an_empty_object_and_are_kept_verbatim() -> None:
    broken = [Json(text) for text in (b"[1]", b'"x"', b"{", b"", b" {}", b'{"a":1}{}', b'{"a":NaN}', b"\xff")]
    (message,) = History(
        [model(*(ToolCall(f"c{at}", "read", json=json) for at, json in enumerate(broken)))]
    ).since(0)
    assert [call.json for call in message.calls] == [b"{}"] * len(broken)
    assert [call.raw for call in message.calls] == [json.decode("utf-8", "replace") for json in broken]


# ---- results


@pytest.mark.requirement("REQ-915-048")
def test_a_result_before_its_call_is_paired_with_it() -> None:
    said = History([tool(ToolResult("c1", "early")), human(), model(ONE)])
    assert (said.since(0), answers(said)) == ([human(), model(ONE)], {"c1": "early"})


@pytest.mark.requirement("REQ-915-039")
def test_the_first_of_several_results_wins_and_the_report_lists_the_other_results() -> None:
    results = [ToolResult("c1", "a"), ToolResult("c1", "a", is_complete=True), ToolResult("c1", "b")]
    said = History([model(ONE), tool(*results)])
    assert said.report.dedupe == (("c1", "duplicate"), ("c1", "conflicting_duplicate"))
    assert len(said.report.notes) == 2
    known = said.ledger.get(CallId("c1"))
    assert known is not None
    assert (known.completion, known.duplicates) == (results[0], (results[2],))


def test_equal_text_with_a_different_image_is_a_different_result() -> None:
    first, other = ToolResult("c1", "seen", media=[IMAGE]), ToolResult("c1", "seen")
    said = History([model(ONE), tool(first, first, other)])
    assert said.report.dedupe == (("c1", "duplicate"), ("c1", "conflicting_duplicate"))


@pytest.mark.requirement("REQ-915-012")
def test_an_orphan_result_becomes_one_note_before_the_next_user_message() -> None:
    gone = ToolResult("gone", error="R1.", media=[IMAGE])
    said = History([tool(gone), model(Text("so")), tool(gone), human()])
    first, told, last = said.since(0)
    assert (first, last) == (model(Text("so")), human())
    assert told == Message(
        "user", [Text("[A tool result without its call, which failed: R1.]"), IMAGE], origin=RUNTIME
    )
    assert [(found.code, found.call_ids) for found in said.report.findings] == [
        ("orphan_result", ("gone",))
    ] * 2
    assert said.report.dedupe == (("gone", "duplicate"),)
    assert said.append(tool(gone)).since(0) == said.since(0)


@pytest.mark.requirement("REQ-915-046")
def test_a_call_that_only_the_ledger_knows_is_restored() -> None:
    known = ToolCallRecord(
        CallId("gone"), "weather", Json(b'{"city":"Oslo"}'), True, ToolResult("gone", "R1.")
    )
    said = History([human(), tool(ToolResult("gone", "R1.")), human()], Ledger([known]))
    assert said.since(0) == [human(), model(ToolCall("gone", "weather", {"city": "Oslo"})), human()]
    assert [found.code for found in said.report.findings] == ["restored_call"]
    assert answers(said) == {"gone": "R1."}


def test_empty_orphan_results_are_dropped_without_a_finding() -> None:
    said = History([human(), tool(ToolResult("gone"), ToolResult("c9", content_json=Json(b"null")))])
    assert (said.since(0), said.report.findings) == ([human()], ())


def test_surrogates_in_ids_are_replaced_before_ids_are_compared() -> None:
    said = History([model(ToolCall("\ud800", "a"), ToolCall("\ud801", "b"))])
    assert [call.id for message in said.since(0) for call in message.calls] == ["\ufffd", "\ufffd~2"]


def test_thinking_in_a_user_message_is_left_for_the_renderer() -> None:
    thought = human(Thinking("t"), Text("u"))
    assert History([thought]).since(0) == [unpack(pack(thought))]
