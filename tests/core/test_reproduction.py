"""Check that the reproduction of a rejected request shows the fault without its content."""

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.check import check
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.lanes.reproduction import RedactedRequest, reproduce
from actors.core.transcript.diagnostics import Refusal, Report
from actors.core.values.identity import Binding
from actors.errors import RenderingFault

CANARY = "my-secret-canary"
TOOL = {"description": CANARY, "parameters": {"type": "object", "properties": {}}}


def reproduce_rejection(body: Any, name: str, why: str = "no", rule: str | None = None) -> RedactedRequest:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    report = Report(name, faults=(RenderingFault(why, rule=rule),))
    binding = Binding("a", name, "http://x", "", "m")
    return reproduce(Refusal("s", binding, "provider", why, raw, report), dialect(name))


def reproduce_without_fault(body: Any, name: str) -> RedactedRequest:
    """Return the reproduction without a known fault; with one, the expected structure would be omitted."""
    with patch("actors.core.lanes.reproduction.check", return_value=[]):
        found = reproduce_rejection(body, name)
    assert not found.is_minimal
    return found


def chat(*, answered: bool) -> dict[str, Any]:
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "work", "arguments": json.dumps({CANARY: CANARY})},
    }
    talk: list[dict[str, Any]] = [
        {"role": "user" if number % 2 == 0 else "assistant", "content": f"{CANARY} {number}"}
        for number in range(20)
    ]
    result = [{"role": "tool", "tool_call_id": "call_1", "content": CANARY}]
    return {
        "model": "gpt",
        "messages": [
            {"role": "system", "content": CANARY},
            *talk,
            {"role": "user", "content": CANARY},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            *(result if answered else []),
            {"role": "user", "content": [{"type": "text", "text": CANARY}]},
        ],
        "tools": [{"type": "function", "function": {"name": "work", **TOOL}}],
    }


def test_a_redacted_reproduction_of_a_request_keeps_only_the_fault() -> None:
    body = chat(answered=False)
    (wanted,) = {fault.rule for fault in check(json.dumps(body).encode(), dialect("openai_chat"))}
    found = reproduce_rejection(body, "openai_chat", rule=wanted)
    assert found.is_minimal
    assert wanted in {fault.rule for fault in check(found.request, dialect("openai_chat"))}
    least = json.loads(found.request)
    assert len(least["messages"]) <= 2
    assert len(found.request) < 200
    assert CANARY not in found.request.decode()
    for place in range(len(least["messages"])):
        less = {**least, "messages": [m for at, m in enumerate(least["messages"]) if at != place]}
        rules = {fault.rule for fault in check(json.dumps(less).encode(), dialect("openai_chat"))}
        assert wanted not in rules


def test_a_redacted_reproduction_without_a_known_fault_keeps_the_complete_structure() -> None:
    body = chat(answered=True)
    found = reproduce_rejection(body, "openai_chat", why=f"messages.3: unexpected '{CANARY}' of call_1")
    assert not found.is_minimal
    kept = json.loads(found.request)
    assert [message["role"] for message in kept["messages"]] == [m["role"] for m in body["messages"]]
    assert kept["messages"][22]["tool_calls"][0]["id"] == kept["messages"][23]["tool_call_id"] == "id_1"
    assert kept["messages"][0]["content"] == f"[{len(CANARY)} characters]"
    assert kept["messages"][22]["tool_calls"][0]["function"] == {"name": "work", "arguments": "{}"}
    assert CANARY not in found.request.decode()
    assert found.reason == f"messages.3: unexpected '[{len(CANARY)} characters]' of id_1"


SAID = st.recursive(
    st.just(CANARY) | st.integers(10**6, 10**9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "x"]), inner),
    max_leaves=8,
)


@given(said=SAID, name=st.sampled_from(sorted(PROFILES)), key=st.sampled_from(["content", "args", "parts"]))
def test_a_redacted_reproduction_never_contains_conversation_content(said: Any, name: str, key: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", key: said}], "input": {"a": said}, "contents": [said]}
    assert CANARY not in reproduce_without_fault(body, name).request.decode()


@pytest.mark.parametrize("raw", [b"", b"\xff", b"{", b"[1e999]", b'"' + CANARY.encode()])
def test_an_invalid_json_body_is_described_by_its_length(raw: bytes) -> None:
    assert (
        json.loads(reproduce_rejection(raw, "anthropic").request) == f"[{len(raw)} bytes that are not JSON]"
    )


def test_the_message_list_is_kept_even_if_arguments_contain_the_same_key() -> None:
    call = {
        "type": "function_call",
        "call_id": "call_1",
        "name": "work",
        "arguments": json.dumps({CANARY: 1}),
    }
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": CANARY}]}
    body = {
        "model": "m",
        "input": [said, call, {"type": "function_call_output", "call_id": "x", "output": CANARY}],
    }
    found = reproduce_rejection(body, "openai_responses")
    (wanted, *_) = {fault.rule for fault in check(json.dumps(body).encode(), dialect("openai_responses"))}
    assert wanted
    assert found.is_minimal
    assert CANARY not in found.request.decode()
    found = reproduce_rejection({**body, "input": [said]}, "openai_responses")
    kept = json.loads(found.request)["input"]
    assert kept == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "[16 characters]"}]}
    ]


@pytest.mark.parametrize("key", ["input", "arguments", "args"])
def test_arguments_sent_as_an_object_are_redacted_like_other_content(key: str) -> None:
    body = chat(answered=True)
    body["messages"][0][key] = {"name": CANARY, CANARY: [{"type": CANARY, "id": CANARY}, 4711]}
    found = reproduce_without_fault(body, "openai_chat")
    hidden = "[16 characters]"
    kept = json.loads(found.request)["messages"][0][key]
    assert kept == {"key_0": hidden, "key_1": [{"key_0": hidden, "key_1": hidden}, 0]}
    assert CANARY not in found.request.decode()
