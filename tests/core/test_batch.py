"""The calls of one message are sorted before anything runs: run, refused with a reason, or denied."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from actors.core.arguments import ArgumentError
from actors.core.batch import FAN_OUT, Plan, plan
from actors.core.content import ToolCall
from actors.core.events import Denied, Refused, Scheduled
from actors.core.jsonio import JsonValue, parse


@dataclass(frozen=True)
class Arguments:
    kwargs: Mapping[str, Any]  # Any: see `Bound`


@dataclass(frozen=True)
class Reader:
    """A tool that wants a path."""

    approval: Literal["allow", "ask", "deny"] = "allow"

    def bind(self, arguments: Mapping[str, JsonValue]) -> Arguments | tuple[ArgumentError, ...]:
        if "path" in arguments:
            return Arguments(arguments)
        return (ArgumentError("path", "a value", is_missing=True),)


TOOLS = {"read": Reader(), "ask": Reader("ask"), "never": Reader("deny")}


def call(number: int, name: str = "read", arguments: object = None, raw: str | None = None) -> ToolCall:
    return ToolCall(f"c{number}", name, {"path": "/"} if arguments is None else arguments, raw)


def sorted_out(*calls: ToolCall, approve: bool | None = None) -> Plan:
    return plan(calls, TOOLS, None if approve is None else lambda _: approve)


def problem(answer: Refused | Denied) -> Any:  # Any: JSON
    assert isinstance(answer, Refused)
    value: Any = parse(answer.error)  # Any: JSON
    return value["tool_error"]


@pytest.mark.requirement("REQ-915-031", "U-10")
def test_every_call_is_scheduled_and_the_valid_ones_run_in_call_order() -> None:
    made = [call(1), call(2, "nobody"), call(3), call(4, "read", {})]
    planned = sorted_out(*made)
    assert [(ran.id, dict(kwargs)) for ran, kwargs in planned.run] == [
        ("c1", {"path": "/"}),
        ("c3", {"path": "/"}),
    ]
    assert [answer.call_id for answer in planned.answered] == ["c2", "c4"]
    assert planned.scheduled == tuple(Scheduled(each.id, each.name, each.json) for each in made)


@pytest.mark.requirement("U-05")
def test_invalid_arguments_are_answered_with_the_fields_that_are_missing() -> None:
    (answer,) = sorted_out(call(1, "read", {})).answered
    assert problem(answer)["kind"] == "invalid_arguments"
    assert problem(answer)["missing"] == ["path"]


@pytest.mark.requirement("U-05", "REQ-915-038")
@pytest.mark.parametrize("made", [call(1, raw='{"path":"/'), call(1, arguments=[1]), call(1, arguments="x")])
def test_arguments_that_are_no_object_are_never_run(made: ToolCall) -> None:
    planned = sorted_out(made)
    assert planned.run == ()
    assert problem(planned.answered[0])["kind"] == "malformed_arguments"


def test_an_unknown_tool_is_answered_with_the_ones_there_are() -> None:
    (answer,) = sorted_out(call(1, "raed")).answered
    assert problem(answer)["kind"] == "unknown_tool"
    assert "read" in problem(answer)["message"]


@pytest.mark.parametrize(
    ("name", "approve", "runs"),
    [
        ("ask", True, True),
        ("ask", False, False),
        ("ask", None, False),
        ("never", True, False),
        ("never", None, False),
        ("read", False, True),
    ],
)
def test_a_call_runs_only_with_the_approval_its_tool_asks_for(
    name: str, approve: bool | None, runs: bool
) -> None:
    planned = sorted_out(call(1, name), approve=approve)
    assert bool(planned.run) == runs
    assert all(isinstance(answer, Denied) for answer in planned.answered)


def test_nobody_is_asked_about_a_call_that_cannot_run() -> None:
    asked: list[str] = []

    def approve(made: ToolCall) -> bool:
        asked.append(made.id)
        return True

    plan((call(1, "ask", {}), call(2, "ask")), TOOLS, approve)
    assert asked == ["c2"]


def test_calls_beyond_the_fan_out_are_refused_and_the_model_is_told() -> None:
    planned = sorted_out(*(call(number) for number in range(FAN_OUT + 2)))
    assert len(planned.run) == FAN_OUT
    assert [problem(answer)["kind"] for answer in planned.answered] == ["too_many_calls"] * 2
    assert len(planned.scheduled) == FAN_OUT + 2
