"""Validate our requests with external checkers.

A rule that was read wrongly would pass the renderer, our judge and our strict servers alike. The request types of the
vendors' SDKs know every field and its type; turnsafe knows pairing and adjacency. None of them runs with the runtime.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
import pytest
import turnsafe
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from botocore.validate import ParamValidator
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

from actors.core.data.jsonio import dump
from actors.transcripts import dialect
from tests.adapters import wanted
from tests.adapters.vendor_types import nonconformity
from tests.commands.at_scale import share
from tests.generated.histories import READERS, history

REQUESTS: dict[str, Any] = {  # Any: vendors' typed dicts
    "openai_chat": CompletionCreateParamsStreaming,
    "anthropic": MessageCreateParamsStreaming,
    "openai_responses": ResponseCreateParamsStreaming,
}
SETTINGS = {
    "openai_chat": {"response_format", "tool_choice", "reasoning_effort", "temperature", "top_p", "stop"},
    "anthropic": {
        "output_config",
        "tool_choice",
        "thinking",
        "stop_sequences",
        "cache_control",
        "max_tokens",
    },
    "openai_responses": {"text", "tool_choice", "reasoning", "temperature", "top_p", "max_output_tokens"},
}
"""What the judged bodies say of settings: each is seen. The newest Claude takes no sampling."""
PAIRING = ["openai_chat", "anthropic"]  # the dialects that turnsafe supports
MODELS = {"anthropic": "claude-sonnet-5", "bedrock": "anthropic.claude-sonnet-4-5"}
COUNT = share(600)
NOT_OURS = {"tokens", turnsafe.EMPTY_CONTENT}


def _bodies(name: str, count: int) -> Iterator[tuple[int, dict[str, Any]]]:  # Any: JSON
    return ((seed, json.loads(_body(name, seed))) for seed in range(count))


@cache
def _body(name: str, seed: int) -> bytes:
    """Render a conversation once for all checkers, with the settings of its seed."""
    return dump(wanted.body(history, seed, dialect(name), READERS[name], model=MODELS.get(name, "m")))


def _with_item_ids(body: dict[str, Any]) -> None:  # Any: JSON
    """Add the ids that the SDK types require on native items; hosts reject a single such id (OAR-03)."""
    for item in body.get("input", ()):
        if item.get("type") in ("reasoning", "web_search_call", "code_interpreter_call"):
            assert "id" not in item
            item["id"] = "rs_1"


@pytest.mark.requirement("PROMISE-1", "REQ-915-036")
@pytest.mark.parametrize("name", list(REQUESTS))
def test_every_request_body_validates_against_the_request_type_of_its_vendor(name: str) -> None:
    judged, named, said = 0, 0, set[str]()
    for seed, body in _bodies(name, COUNT):
        _with_item_ids(body)
        said |= body.keys()
        why = nonconformity(body, REQUESTS[name])
        assert why is None, f"history({seed}): {why}"
        judged, named = judged + 1, named + wanted.names_a_tool(body)
    assert judged == COUNT
    assert named > COUNT // 20
    assert said >= SETTINGS[name]


@pytest.mark.parametrize("name", list(REQUESTS))
def test_the_request_type_of_a_vendor_rejects_an_unknown_key_and_a_wrong_type(name: str) -> None:
    _, body = next(_bodies(name, 1))
    assert nonconformity({**body, "zzz": 1}, REQUESTS[name]) is not None
    key = "input" if "input" in body else "messages"
    assert nonconformity({**body, key: 1}, REQUESTS[name]) is not None
    first, *rest = body[key]
    assert nonconformity({**body, key: [{**first, "zzz": 1}, *rest]}, REQUESTS[name]) is not None


@pytest.mark.requirement("PROMISE-1", "REQ-915-006", "REQ-915-007", "REQ-915-008")
@pytest.mark.parametrize("name", PAIRING)
def test_an_external_checker_of_call_pairing_finds_no_faults_in_our_requests(name: str) -> None:
    provider = name.removesuffix("_chat")
    judged = 0
    for seed, body in _bodies(name, COUNT):
        report = turnsafe.validate(body["messages"], provider)
        assert bool(report), f"history({seed}): {report}"
        judged += 1
    assert judged == COUNT


@pytest.mark.parametrize("name", PAIRING)
def test_the_external_checker_rejects_a_call_without_its_result(name: str) -> None:
    spoilt = 0
    for _, body in _bodies(name, 200):
        kept = [message for message in body["messages"] if "tool" not in _answers(message)]
        if len(kept) < len(body["messages"]):
            spoilt += not turnsafe.validate(kept, name.removesuffix("_chat"))
    assert spoilt > 20


def _converse() -> Any:  # Any: botocore has no types
    """Return the shape of a Converse request from the AWS service model."""
    model = botocore.session.Session().get_service_model("bedrock-runtime")
    return model.operation_model("Converse").input_shape


def _converse_faults(body: dict[str, Any], shape: Any) -> str:  # Any: JSON, and botocore's shape
    return str(ParamValidator().validate({"modelId": "m", **body}, shape).generate_report())


@pytest.mark.requirement("PROMISE-1", "REQ-915-036")
def test_every_bedrock_body_matches_the_request_shape_of_aws() -> None:
    shape, judged, named = _converse(), 0, 0
    for seed, body in _bodies("bedrock", COUNT):
        assert _converse_faults(body, shape) == "", f"history({seed})"
        judged, named = judged + 1, named + wanted.names_a_tool(body)
    assert judged == COUNT
    assert named > COUNT // 20


def test_the_aws_shape_rejects_unknown_keys_wrong_types_and_empty_lists() -> None:
    shape = _converse()
    _, body = next(_bodies("bedrock", 1))
    first, *rest = body["messages"]
    for spoilt in (
        {**body, "zzz": 1},
        {**body, "messages": "u"},
        {**body, "toolConfig": {"tools": []}},
        {**body, "messages": [{**first, "zzz": 1}, *rest]},
        {**body, "messages": [{"role": "user", "content": [{"toolResult": {"toolUseId": "a"}}]}]},
    ):
        assert _converse_faults(spoilt, shape) != ""


@pytest.mark.requirement("PROMISE-1", "REQ-915-006", "REQ-915-007", "REQ-915-008")
def test_an_external_pairing_checker_finds_no_faults_in_bedrock_bodies() -> None:
    judged = 0
    for seed, body in _bodies("bedrock", COUNT):
        report = turnsafe.validate(
            [_with_anthropic_names(message) for message in body["messages"]], "anthropic"
        )
        assert bool(report), f"history({seed}): {report}"
        judged += 1
    assert judged == COUNT


def _with_anthropic_names(message: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return a Converse message with its blocks renamed to Anthropic's names."""
    return {"role": message["role"], "content": [_renamed_block(block) for block in message["content"]]}


def _renamed_block(block: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    match block:
        case {"toolUse": call}:
            return {"type": "tool_use", "id": call["toolUseId"], "name": call["name"], "input": call["input"]}
        case {"toolResult": result}:
            return {"type": "tool_result", "tool_use_id": result["toolUseId"], "content": result["content"]}
        case _:
            return {"type": "text", "text": block.get("text", "x")}


def _answers(message: dict[str, Any]) -> str:  # Any: JSON
    """Return `tool` for a message that holds a tool result."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    held = any(block.get("type") == "tool_result" for block in blocks)
    return "tool" if held or message["role"] == "tool" else ""
