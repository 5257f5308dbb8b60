"""Check that a ledger recovered from blocks contains only facts supported by them."""

import pytest
from hypothesis import given

from actors.core.data.jsonio import Json
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.values.content import Message, Text, ToolCall, ToolResult
from actors.core.values.identity import CallId
from tests.core.session_log import BINDINGS, examples, render_at_once, text
from tests.generated.strategies import conversations

CALL = Message("assistant", [ToolCall("c1", "read", {"a": 1})])


def recover(messages: list[Message]) -> Ledger:
    """Return the ledger recovered from messages alone."""
    return History(messages).ledger


def completion(*results: ToolResult) -> ToolResult | None:
    found = recover([CALL, *(Message("tool", [result]) for result in results)]).get(CallId("c1"))
    assert found is not None
    return found.completion


@pytest.mark.requirement("REQ-915-046", "REQ-915-048")
@pytest.mark.parametrize(
    ("results", "status"),
    [
        ((), None),
        ((ToolResult("c1", "x", "bad", True),), "error"),
        ((ToolResult("c1", "x", is_complete=True),), "complete"),
        ((ToolResult("c1", "x", is_complete=False),), "complete"),
        ((ToolResult("c1", is_complete=False),), None),
        ((ToolResult("c1", "x", "bad", False),), "error"),
        ((ToolResult("c1", None, is_complete=True),), "complete"),
        ((ToolResult("c1", "x"),), "complete"),
        ((ToolResult("c1", None),), None),
        ((ToolResult("c1", None, is_complete=False), ToolResult("c1", "x")), "complete"),
    ],
)
def test_the_status_of_a_result_block_decides_the_call_status(
    results: tuple[ToolResult, ...], status: str | None
) -> None:
    found = completion(*results)
    assert (None if found is None else found.status) == status


def test_the_first_real_result_is_the_completion_and_different_results_are_kept_as_duplicates() -> None:
    blocks = [ToolResult("c1", value) for value in ("one", "one", "two", "two")]
    found = recover([CALL, Message("tool", blocks)]).get(CallId("c1"))
    assert found is not None
    assert found.completion == blocks[0]
    assert found.duplicates == (blocks[2],)


@pytest.mark.requirement("REQ-915-048", "PROMISE-2")
def test_any_result_with_content_is_a_completion() -> None:
    part, whole = ToolResult("c1", "part", is_complete=False), ToolResult("c1", "x")
    found = recover([CALL, Message("tool", [part, whole])]).get(CallId("c1"))
    assert found is not None
    assert (found.completion, found.duplicates) == (part, (whole,))
    for binding in BINDINGS:
        sent = render_at_once([CALL, Message("tool", [part])], Ledger(), binding)
        assert b"part" in text(sent)
        assert sent.report.synthetic == ()


def test_a_call_without_a_result_is_lost() -> None:
    found = recover([CALL]).get(CallId("c1"))
    assert found is not None
    assert (found.status, found.reason, found.started) == ("unknown", "lost", False)


@pytest.mark.requirement("REQ-915-048")
@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (ToolResult("c1"), "lost"),
        (ToolResult("c1", is_complete=False), "outcome_unknown"),
        (ToolResult("c1", content_json=Json(b"null"), is_complete=False), "outcome_unknown"),
    ],
)
def test_a_call_with_a_pending_result_block_counts_as_unknown_and_not_as_cancelled(
    block: ToolResult, reason: str
) -> None:
    found = recover([CALL, Message("tool", [block])]).get(CallId("c1"))
    assert found is not None
    assert (found.status, found.reason, found.completion) == ("unknown", reason, None)


def test_orphan_results_are_not_added_to_the_ledger() -> None:
    assert len(recover([Message("tool", [ToolResult("gone", "x")])])) == 0


@pytest.mark.requirement("REQ-915-047")
def test_recovery_reads_calls_and_results_from_messages_of_any_role() -> None:
    ledger = recover(
        [Message("tool", [ToolCall("c1", "read")]), Message("assistant", [ToolResult("c1", "x")])]
    )
    found = ledger.get(CallId("c1"))
    assert found is not None
    assert found.status == "complete"


@pytest.mark.requirement("PROMISE-2", "REQ-915-022")
def test_a_result_with_a_repeated_call_id_belongs_to_one_call_only() -> None:
    messages = [CALL, CALL, Message("tool", [ToolResult("c1", "R1.")]), Message("user", [Text("go")])]
    ledger = recover(messages)
    assert [item.completion is not None for item in ledger.interactions()] == [False, True]
    for binding in BINDINGS:
        assert text(render_at_once(messages, ledger, binding)).count(b"R1.") == 1


@examples(200)
@given(conversations())
def test_a_recovered_ledger_changes_only_the_reasons_of_missing_results_in_a_render(
    conversation: tuple[list[Message], Ledger],
) -> None:
    messages, _ = conversation
    for binding in BINDINGS:
        assert text(render_at_once(messages, recover(messages), binding)) == text(
            render_at_once(messages, Ledger(), binding)
        )
