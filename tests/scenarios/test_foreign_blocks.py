"""Scenario 44: blocks known to one provider, in a history sent to all others."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from actors.core.check import check
from actors.core.dialects.profiles import dialect
from actors.testing import validate
from actors.transcripts import from_wire
from tests.scenarios.hosts import TRUSTING
from tests.scenarios.providers import IDS
from tests.scenarios.sending import send_conversation

_USER = {"role": "user", "content": [{"type": "text", "text": "u"}]}
_GO = {"role": "user", "content": [{"type": "text", "text": "go"}]}
_ADVICE = {"type": "advisor_tool_result", "tool_use_id": "srvtoolu_1", "content": "take the stairs"}
_REFERENCE = {"type": "tool_reference", "tool_name": "stairs"}
_CALL = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
_RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [_REFERENCE]}
_ITEM = {"type": "item_reference", "id": "msg_stairs"}
_SAID = {"type": "message", "role": "user", "content": "u"}

BROUGHT: Mapping[str, tuple[str, str | None, dict[str, Any]]] = {  # Any: JSON
    "an answer of a server's tool": (
        "anthropic",
        "ANT-11",
        {"messages": [_USER, {"role": "assistant", "content": [_ADVICE]}, _GO]},
    ),
    "a reference to a tool": (
        "anthropic",
        None,  # the result of a tool search is complete: its own host accepts it
        {
            "messages": [
                _USER,
                {"role": "assistant", "content": [_CALL]},
                {"role": "user", "content": [_RESULT]},
            ]
        },
    ),
    "a reference to an item": ("openai_responses", "OAR-05", {"input": [_SAID, _ITEM, _SAID]}),
}


@pytest.mark.parametrize(("name", "rule", "body"), BROUGHT.values(), ids=list(BROUGHT))
def test_each_host_rejects_an_unpaired_native_call_and_an_unpaired_native_result(
    name: str, rule: str | None, body: dict[str, Any]
) -> None:
    extra = {"max_tokens": 64} if name == "anthropic" else {"store": False}
    refusal = validate(json.dumps({"model": "m", **extra, **body}).encode(), name)
    assert (refusal and refusal.rule) == rule


@pytest.mark.parametrize("target", list(IDS))
@pytest.mark.parametrize(("name", "rule", "body"), BROUGHT.values(), ids=list(BROUGHT))
def test_native_blocks_are_sent_to_other_providers_as_text(
    name: str, rule: str | None, body: dict[str, Any], target: str
) -> None:
    history, ledger = from_wire(body, name)
    rendered, request = send_conversation(history, ledger, target)
    assert list(rendered.report.faults) == []
    assert check(request, dialect(target)) == []
    assert validate(request, target, settings=TRUSTING.get(target)) is None
    assert b"stairs" in request
