"""Check how the calls of a message are classified: run, rejected with a reason, deferred or denied."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from actors.core.data.jsonio import JsonValue, parse
from actors.core.log.call_events import Denied, Refused, Scheduled
from actors.core.schemas.arguments import ArgumentError
from actors.core.turn.batch import BoundArguments, Plan, WaitingCall, plan
from actors.core.values.content import ToolCall


@dataclass(frozen=True)
class Reader:
    """A tool that requires a path."""

    approval: Literal["allow", "ask", "deny"] = "allow"
    is_external: bool = False

    def approval_of(self, arguments: Mapping[str, JsonValue]) -> Literal["allow", "ask", "deny"]:
        return self.approval

    def bind(self, arguments: Mapping[str, JsonValue]) -> BoundArguments | tuple[ArgumentError, ...]:
        if "path" in arguments:
            return BoundArguments(arguments)
        return (ArgumentError("path", "a value", is_missing=True),)

    def _single_interpretation(self, arguments: Mapping[str, JsonValue]) -> None:
        return None


TOOLS = {
    "read": Reader(),
    "ask": Reader("ask"),
    "never": Reader("deny"),
    "out": Reader(is_external=True),
    "ask-out": Reader("ask", is_external=True),
    "never-out": Reader("deny", is_external=True),
}


def call(number: int, name: str = "read", arguments: object = None, raw: str | None = None) -> ToolCall:
    return ToolCall(f"c{number}", name, {"path": "/"} if arguments is None else arguments, raw)


MOST = 8


def classify_calls(*calls: ToolCall, can_ask: bool = False) -> Plan:
    return plan(calls, TOOLS, MOST, can_ask=can_ask)


def problem(answer: Refused | Denied) -> Any:  # Any: JSON
    assert isinstance(answer, Refused)
    value: Any = parse(answer.error)  # Any: JSON
    return value["tool_error"]


@pytest.mark.requirement("REQ-915-031", "U-10")
def test_every_call_is_scheduled_and_valid_calls_run_in_call_order() -> None:
    made = [call(1), call(2, "nobody"), call(3), call(4, "read", {})]
    planned = classify_calls(*made)
    assert [(ran.call.id, dict(ran.arguments)) for ran in planned.run] == [
        ("c1", {"path": "/"}),
        ("c3", {"path": "/"}),
    ]
    assert [answer.call_id for answer in planned.answered] == ["c2", "c4"]
    assert planned.scheduled == tuple(Scheduled(each.id, each.name, each.json) for each in made)


@pytest.mark.requirement("U-05")
def test_the_result_of_an_invalid_call_lists_the_missing_fields() -> None:
    (answer,) = classify_calls(call(1, "read", {})).answered
    assert problem(answer)["kind"] == "invalid_arguments"
    assert problem(answer)["missing"] == ["path"]


@pytest.mark.requirement("U-05", "REQ-915-038")
@pytest.mark.parametrize("made", [call(1, raw='{"path":"/'), call(1, arguments=[1]), call(1, arguments="x")])
def test_a_call_with_non_object_arguments_never_runs(made: ToolCall) -> None:
    planned = classify_calls(made)
    assert planned.run == ()
    assert problem(planned.answered[0])["kind"] == "malformed_arguments"


@pytest.mark.requirement("U-05")
def test_arguments_repaired_without_loss_are_used_and_logged() -> None:
    planned = classify_calls(call(1, raw='```json\n{"path": "/",}\n```'))
    assert [dict(ran.arguments) for ran in planned.run] == [{"path": "/"}]
    assert [event.arguments for event in planned.scheduled] == [b'{"path":"/"}']


def test_the_result_of_an_unknown_tool_lists_the_known_tools() -> None:
    (answer,) = classify_calls(call(1, "raed")).answered
    assert problem(answer)["kind"] == "unknown_tool"
    assert "read" in problem(answer)["message"]


@pytest.mark.parametrize(
    ("name", "can_ask", "asks"),
    [
        ("ask", True, True),
        ("never", True, None),
        ("never", False, None),
        ("read", True, False),
    ],
)
def test_a_call_runs_only_with_the_approval_that_its_tool_requires(
    name: str, can_ask: bool, asks: bool | None
) -> None:
    planned = classify_calls(call(1, name), can_ask=can_ask)
    assert [ran.needs_approval for ran in planned.run] == ([] if asks is None else [asks])
    assert all(isinstance(answer, Denied) for answer in planned.answered)


@pytest.mark.parametrize(
    ("name", "can_ask", "is_external"),
    [("ask", False, False), ("out", False, True), ("out", True, True), ("ask-out", True, True)],
)
def test_calls_that_need_an_approval_or_result_from_the_caller_are_deferred(
    name: str, can_ask: bool, is_external: bool
) -> None:
    planned = classify_calls(call(1, name), call(2, "never-out"), can_ask=can_ask)
    assert planned.waiting == (WaitingCall(call(1, name), is_external),)
    assert planned.run == ()
    assert [answer.call_id for answer in planned.answered] == ["c2"]
    assert len(planned.scheduled) == 2


def test_an_approved_call_is_validated_again_but_not_scheduled_again() -> None:
    planned = plan(
        (call(1, "ask"), call(2, "ask", {})), TOOLS, MOST, can_ask=False, approved=True, waited=True
    )
    assert [(ran.call.id, ran.needs_approval) for ran in planned.run] == [("c1", False)]
    assert [problem(answer)["kind"] for answer in planned.answered] == ["invalid_arguments"]
    assert planned.scheduled == ()
    assert planned.waiting == ()


def test_no_approval_is_requested_for_a_call_that_cannot_run() -> None:
    planned = classify_calls(call(1, "ask", {}), call(2, "ask"), can_ask=True)
    assert [ran.call.id for ran in planned.run if ran.needs_approval] == ["c2"]


def test_calls_beyond_the_batch_limit_are_scheduled_and_denied() -> None:
    planned = classify_calls(*(call(number) for number in range(MOST + 2)))
    assert len(planned.run) == MOST
    assert [problem(answer)["kind"] for answer in planned.answered] == ["too_many_calls"] * 2
    assert len(planned.scheduled) == MOST + 2
