"""Check that circular and hostile arguments become a bounded, deterministic object on every wire."""

import json
from typing import Any

import pytest

from actors.core.check import check
from actors.core.dialects.profiles import PROFILES
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.values.content import Message, Text, ToolCall, ToolResult
from actors.core.values.identity import CallId
from actors.transcripts import encode, render
from tests.core.wire_calls import read_body
from tests.generated.histories import READERS

every_dialect = pytest.mark.parametrize("name", sorted(PROFILES))


def circular_arguments() -> dict[str, Any]:  # Any: contains itself
    """Return arguments with two cycles and a valid value."""
    around: list[object] = [1]
    around.append(around)
    arguments: dict[str, Any] = {"path": "notes.txt", "list": around}  # Any: as above
    arguments["self"] = arguments
    arguments["nested"] = {"up": arguments}
    return arguments


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def deep(levels: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(levels):
        value = {"in": value}
    return value


HOSTILE = {
    "deep": deep(10_000),
    "wide": {"n": 2**80, "nan": float("nan"), "inf": float("inf")},
    "keys": {1: "a", None: "b", "\ud800": "c", "\0": "d"},
    "text": {"half": "\ud83d", "nul": "a\0b", "quote": '"}]},{'},
    "foreign": {"object": Broken(), "bytes": b"\xff\x00", "set": {1, 2}},
}


def conversation_with(arguments: object) -> list[Message]:
    call = ToolCall(CallId("c1"), "read", arguments)
    return [
        Message("user", [Text("go")]),
        Message("assistant", [call]),
        Message("tool", [ToolResult(CallId("c1"), "ok")]),
    ]


def sent_arguments(arguments: object, name: str) -> tuple[bytes, Any]:  # Any: JSON
    """Return the validated body of a request with a call of these arguments, and the arguments in it."""
    body = encode(
        render(History(conversation_with(arguments)), Ledger(), PROFILES[name], binding=READERS[name]),
        model="m",
    )
    assert check(body, PROFILES[name]) == []
    (call,) = [each for each in read_body(body) if each.kind == "call"]
    return body, call.content


@pytest.mark.requirement("REQ-915-038")
@every_dialect
def test_circular_arguments_are_cut_only_at_the_cycle(name: str) -> None:
    body, arguments = sent_arguments(circular_arguments(), name)
    cut = "[cycle]"
    assert arguments == {"path": "notes.txt", "list": [1, cut], "self": cut, "nested": {"up": cut}}
    assert sent_arguments(circular_arguments(), name)[0] == body


@pytest.mark.requirement("REQ-915-038", "REQ-915-005")
@every_dialect
@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_hostile_arguments_are_converted_to_an_object_that_providers_accept(name: str, kind: str) -> None:
    body, arguments = sent_arguments(HOSTILE[kind], name)
    assert isinstance(arguments, dict)
    assert arguments
    assert json.loads(json.dumps(arguments, allow_nan=False)) == arguments
    assert sent_arguments(HOSTILE[kind], name)[0] == body
