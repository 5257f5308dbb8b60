"""Check that the strict Responses server accepts everything that OpenAI's SDK can send."""

import json
from typing import Any

import pytest
from openai.types.responses import (
    ResponseFunctionCallOutputItemParam,
    ResponseInputContentParam,
    ResponseInputItemParam,
    ResponseOutputRefusalParam,
    ResponseOutputTextParam,
    ToolParam,
)
from openai.types.responses.input_token_count_params import InputTokenCountParams
from openai.types.responses.response_compact_params import ResponseCompactParams
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from actors.core.check import check
from actors.core.dialects.profiles import dialect
from actors.strict.rules import ResponsesSettings, responses, validate
from actors.strict.rules.base import RuleBroken
from actors.strict.rules.responses_shapes import COMPACTED_KEYS, COUNTED_KEYS
from tests.strict.sdk_samples import assert_valid, dictionaries, required_keys, tags, variants

Json = dict[str, Any]  # dumped objects of the SDK

TRUST = ResponsesSettings(signatures="trust")
WORDS = {"id": "msg_a", "call_id": "call_a", "arguments": "{}", "file_data": "QUJD", "max_output_tokens": 100}
PREFIXES = {"function_call": "fc_a", "custom_tool_call": "ctc_a", "reasoning": "rs_a"}
USER: Json = {"role": "user", "content": "json"}
SAID: Json = {"role": "assistant", "content": "t"}
TOOL: Json = {"type": "function", "name": "x", "parameters": {"type": "object"}, "strict": False}
CALLS: dict[str, Json] = {
    "function_call": {"call_id": "call_a", "name": "x", "arguments": "{}"},
    "custom_tool_call": {"call_id": "call_a", "name": "x", "input": ""},
    "computer_call": {"id": "cu_a", "call_id": "call_a", "pending_safety_checks": [], "status": "completed"},
    "local_shell_call": {"id": "ls_a", "call_id": "call_a", "action": {}, "status": "completed"},
    "shell_call": {"call_id": "call_a", "action": {"commands": ["ls"]}},
    "apply_patch_call": {"call_id": "call_a", "operation": {"type": "delete_file", "path": "a"}},
}
OUTPUTS: dict[str, Json] = {
    "function_call": {"output": "r"},
    "custom_tool_call": {"output": "r"},
    "computer_call": {"output": {"type": "computer_screenshot"}},
    "local_shell_call": {"output": "r"},
    "shell_call": {"output": []},
    "apply_patch_call": {"status": "completed"},
}


def body(*items: Json, **more: Any) -> bytes:  # any key of a request
    return json.dumps({"model": "m", "input": list(items), **more}).encode()


def rejection_of(*items: Json, **more: Any) -> str | None:  # any key of a request
    refusal = validate(body(*items, **more), "openai_responses", settings=TRUST)
    return None if refusal is None else f"{refusal.rule}: {refusal.message}"


def conversation(item: Json) -> list[Json]:
    """Return a conversation with an item in a plausible position."""
    kind = item.get("type") or ("message" if "role" in item else "item_reference")
    if "id" in item and kind in PREFIXES and item["id"] is not None:
        item = {**item, "id": PREFIXES[kind]}
    if kind in CALLS:
        return [USER, item, {"type": f"{kind}_output", "call_id": item["call_id"], **OUTPUTS[kind]}, USER]
    if (call := kind.removesuffix("_output")) != kind and call in CALLS:
        item = {"call_id": "call_a", **item} if call == "function_call" else item
        named = {"id": item["id"], "call_id": "call_a"} if call == "local_shell_call" else {}
        return [USER, {"type": call, **CALLS[call], **named}, item, USER]
    if kind == "reasoning":
        return [USER, item, {**SAID, "type": "message", "id": "msg_b", "status": "completed"}, USER]
    return [USER, item, USER]


ITEMS = dictionaries(ResponseInputItemParam)


@pytest.mark.parametrize("kind", ITEMS, ids=lambda kind: kind.__name__)
def test_the_strict_server_knows_every_item_of_the_sdk(kind: type) -> None:
    for sample in variants(kind, WORDS):
        assert_valid(kind, sample)
        if sample.get("call_id", "") is None and sample["type"] == "function_call_output":
            continue  # the API requires the call's id, the SDK's type does not
        if not _makes_sense(sample):
            continue
        assert rejection_of(*conversation(sample)) is None, sample


def _makes_sense(item: Json) -> bool:
    """Return False for media without a source or in an answer: the SDK's type is wider than the API there."""
    parts = item.get("content") or item.get("output") or ()
    media = [
        part for part in parts if isinstance(part, dict) and part.get("type") in ("input_image", "input_file")
    ]
    return all(_has_source(part) for part in media) and not (media and item.get("role") == "assistant")


def _has_source(part: Json) -> bool:
    return any(part.get(key) for key in ("image_url", "file_id", "file_url", "file_data"))


def test_the_checker_accepts_every_item_of_the_sdk() -> None:
    judged = dialect("openai_responses")
    for kind in ITEMS:
        sample = next(iter(variants(kind, WORDS)))
        if "content" in sample and not isinstance(sample["content"], str):
            sample = {**sample, "content": "t"}
        faults = check(body(*conversation(sample)), judged)
        assert [str(fault) for fault in faults] == [], sample


@pytest.mark.parametrize(
    "kind",
    [*dictionaries(ResponseInputContentParam), *dictionaries(ResponseFunctionCallOutputItemParam)],
    ids=lambda kind: kind.__name__,
)
def test_the_strict_server_knows_every_part_of_the_input(kind: type) -> None:
    for sample in variants(kind, WORDS):
        assert_valid(kind, sample)
        if sample["type"] != "input_text" and not _has_source(sample):
            sample = {**sample, "file_id": "file_a"}
        if sample.get("file_data"):
            sample = {**sample, "filename": "a.pdf"}
        assert rejection_of({"role": "user", "content": [sample]}) is None, sample
        call = {"type": "function_call", **CALLS["function_call"]}
        result = {"type": "function_call_output", "call_id": "call_a", "output": [sample]}
        assert rejection_of(USER, call, result) is None, sample


@pytest.mark.parametrize("kind", [ResponseOutputTextParam, ResponseOutputRefusalParam])
def test_the_strict_server_knows_every_part_of_an_answer(kind: type) -> None:
    for sample in variants(kind, WORDS):
        assert_valid(kind, sample)
        assert rejection_of(USER, {"role": "assistant", "content": [sample]}, USER) is None, sample


@pytest.mark.parametrize("kind", dictionaries(ToolParam), ids=lambda kind: kind.__name__)
def test_the_strict_server_knows_every_tool_of_the_sdk(kind: type) -> None:
    for sample in variants(kind, WORDS):
        assert_valid(kind, sample)
        if isinstance(sample.get("parameters"), dict) and "function" in tags(kind):
            sample = {**sample, "parameters": {"type": "object"}, "strict": False}
        assert rejection_of(USER, tools=[sample]) is None, sample
        found = {"type": "tool_search_output", "tools": [sample], "execution": "server"}
        added = {"type": "additional_tools", "role": "developer", "tools": [sample]}
        assert rejection_of(USER, added, found, USER) is None, sample


EDGES: dict[str, Json] = {
    "tool_choice": {"tools": [TOOL, {"type": "custom", "name": "x"}]},
    "stream_options": {"stream": True},
}


def test_the_strict_server_knows_every_parameter_of_the_sdk() -> None:
    for key, value in parameters(ResponseCreateParamsBase):
        if key == "text" and value and "format" in value:
            continue  # its schemas have tests of their own
        assert rejection_of(USER, **EDGES.get(key, {}), **{key: value}) is None, (key, value)


@pytest.mark.parametrize(
    ("kind", "keys"), [(InputTokenCountParams, COUNTED_KEYS), (ResponseCompactParams, COMPACTED_KEYS)]
)
def test_the_strict_server_knows_every_parameter_of_compaction_and_token_counting(
    kind: type, keys: frozenset[str]
) -> None:
    for key, value in parameters(kind):
        if key == "text" and value and "format" in value:
            continue
        raw = (
            body(USER, **EDGES.get(key, {}), **{key: value})
            if keys == COUNTED_KEYS
            else body(USER, **{key: value})
        )
        responses.validate(raw, "strict", TRUST, keys=keys)
    with pytest.raises(RuleBroken, match="Unknown parameter: 'temperature'"):
        responses.validate(body(USER, temperature=1), "strict", TRUST, keys=keys)


def parameters(kind: type) -> list[tuple[str, Any]]:  # values of any parameter
    """Return a value of each type for each parameter except the input, the model and the tools."""
    samples = list(variants(kind, WORDS))
    for sample in samples:
        assert_valid(kind, sample)
    own = {"input", "tools", "model", *required_keys(kind)}
    given = [(key, value) for sample in samples for key, value in sample.items() if key not in own]
    assert len(given) > 5
    return given


def test_a_request_may_use_a_prompt_or_an_earlier_response() -> None:
    for more in ({"prompt": {"id": "pmpt_a"}}, {"model": "m", "previous_response_id": "resp_a"}):
        assert validate(json.dumps(more).encode(), "openai_responses", settings=TRUST) is None
    assert (
        rejection_of(
            {"type": "function_call_output", "call_id": "call_z", "output": "r"},
            previous_response_id="resp_a",
        )
        is None
    )
    assert rejection_of({"id": "msg_a"}, USER) is None


def test_requests_accepted_in_recorded_traffic_are_accepted() -> None:
    call = {"type": "function_call", **CALLS["function_call"]}
    output = {"type": "function_call_output", "call_id": "call_a", "output": ""}
    search = {"type": "web_search_call", "id": "ws_a", "status": "completed", "action": {"type": "search"}}
    thought = {"type": "reasoning", "id": "rs_a", "summary": [], "encrypted_content": "gAAA"}
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    found = {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": [TOOL]}
    sought = {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {"query": "q"}}
    answer = {"role": "assistant", "content": "t", "phase": "commentary"}
    choice = {"type": "function", "name": "x"}
    assert rejection_of(USER, {**search, "id": "ws_b"}, call, search, output, USER) is None
    assert rejection_of(USER, call, search, output, USER) is None
    assert rejection_of(USER, thought, update, {**call, "id": "fc_a"}, output) is None
    assert (
        rejection_of(USER, sought, found, call, output, tools=[{"type": "tool_search"}], tool_choice=choice)
        is None
    )
    assert rejection_of(USER, answer, call, output, update) is None
    assert rejection_of(USER, {"role": "assistant", "content": []}, USER) is None
    assert (
        rejection_of(USER, {"role": "assistant", "content": [{"type": "output_text", "text": ""}]}, USER)
        is None
    )
    container = {"type": "container_reference", "container_id": "cntr_a"}
    assert (
        rejection_of(USER, {"type": "shell_call", **CALLS["shell_call"], "environment": container}, USER)
        is None
    )


@pytest.mark.parametrize(
    ("rule", "items"),
    [
        (
            "OAR-01: No tool output found for shell call call_a.",
            [{"type": "shell_call", **CALLS["shell_call"]}],
        ),
        (
            "OAR-01: No tool output found for apply patch call call_a.",
            [{"type": "apply_patch_call", **CALLS["apply_patch_call"]}, USER],
        ),
        (
            "OAR-02: No tool call found for shell call output with call_id call_a.",
            [{"type": "shell_call_output", "call_id": "call_a", "output": []}],
        ),
        ("OAR-S03: Unknown parameter: 'input[1].made_up'.", [{**SAID, "made_up": 1}]),
        ("OAR-S02: Missing required parameter: 'input[1].tools'.", [{"type": "tool_search_output"}]),
    ],
)
def test_a_malformed_or_unpaired_item_is_rejected_next_to_a_valid_item(rule: str, items: list[Json]) -> None:
    assert rejection_of(USER, *items) == rule


def test_an_unknown_item_is_rejected() -> None:
    assert str(rejection_of(USER, {"type": "made_up_call"})).startswith(
        "OAR-S04: Invalid value: 'made_up_call'."
    )
