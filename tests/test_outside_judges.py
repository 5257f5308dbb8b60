"""Judges that others wrote read what we send.

A rule that was read wrongly would pass the renderer, our judge and our strict servers alike. The request types of the
vendors' SDKs know every field and its type; turnsafe knows pairing and adjacency. None of them runs with the runtime.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import turnsafe
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

from actors import dialect, encode, render
from actors.testing.histories import READERS, history
from tests.vendor_types import nonconformity

REQUESTS: dict[str, Any] = {  # Any: vendors' typed dicts
    "openai_chat": CompletionCreateParamsStreaming,
    "anthropic": MessageCreateParamsStreaming,
}
TOOLS = [{"name": "read", "description": "Read.", "parameters": {"type": "object", "properties": {}}}]
NOT_OURS = {"tokens", turnsafe.EMPTY_CONTENT}


def _bodies(name: str, count: int) -> Iterator[tuple[int, dict[str, Any]]]:  # Any: JSON
    profile = dialect(name)
    for seed in range(count):
        messages, ledger = history(seed)
        rendered = render(messages, ledger, profile, binding=READERS[name])
        body = encode(rendered, model="m", system="Be brief.", tools=TOOLS, stream=True)
        yield seed, json.loads(body)


@pytest.mark.requirement("PROMISE-1", "REQ-915-036")
@pytest.mark.parametrize("name", list(REQUESTS))
def test_every_body_is_of_the_vendors_own_request_type(name: str) -> None:
    judged = 0
    for seed, body in _bodies(name, 1500):
        why = nonconformity(body, REQUESTS[name])
        assert why is None, f"history({seed}): {why}"
        judged += 1
    assert judged == 1500


@pytest.mark.parametrize("name", list(REQUESTS))
def test_the_vendors_type_refuses_an_unknown_key_and_a_wrong_type(name: str) -> None:
    _, body = next(_bodies(name, 1))
    assert nonconformity({**body, "zzz": 1}, REQUESTS[name]) is not None
    assert nonconformity({**body, "messages": "u"}, REQUESTS[name]) is not None
    first, *rest = body["messages"]
    assert nonconformity({**body, "messages": [{**first, "zzz": 1}, *rest]}, REQUESTS[name]) is not None


@pytest.mark.requirement("PROMISE-1", "REQ-915-006", "REQ-915-007", "REQ-915-008")
@pytest.mark.parametrize("name", list(REQUESTS))
def test_another_projects_judge_of_pairing_and_adjacency_finds_nothing(name: str) -> None:
    provider = name.removesuffix("_chat")
    judged = 0
    for seed, body in _bodies(name, 5000):
        report = turnsafe.validate(body["messages"], provider)
        assert bool(report), f"history({seed}): {report}"
        judged += 1
    assert judged == 5000


@pytest.mark.parametrize("name", list(REQUESTS))
def test_that_judge_refuses_a_call_whose_result_is_taken_away(name: str) -> None:
    spoilt = 0
    for _, body in _bodies(name, 200):
        kept = [message for message in body["messages"] if "tool" not in _answers(message)]
        if len(kept) < len(body["messages"]):
            spoilt += not turnsafe.validate(kept, name.removesuffix("_chat"))
    assert spoilt > 20


def _answers(message: dict[str, Any]) -> str:  # Any: JSON
    """Return `tool` for a message that holds a tool result."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    held = any(block.get("type") == "tool_result" for block in blocks)
    return "tool" if held or message["role"] == "tool" else ""
