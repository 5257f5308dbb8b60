"""Check that the strict server accepts every parameter, message, block and tool of Anthropic's SDK."""

import json
from typing import Any, get_args

import pytest
from anthropic.types import ContentBlockParam, MessageCountTokensToolParam, ToolUnionParam
from anthropic.types.beta import (
    BetaContentBlockParam,
    BetaSystemMessageParam,
    BetaToolResultBlockParam,
    BetaToolUnionParam,
    message_count_tokens_params,
    message_create_params,
)
from anthropic.types.message_create_params import MessageCreateParamsBase

from actors.strict.rules import AnthropicSettings, validate, validate_count
from actors.strict.rules.anthropic_shapes import SERVER_CALLS, SERVER_RESULTS
from tests.strict.sdk_samples import assert_valid, dictionaries, fields, required_keys, tags, variants

Json = dict[str, Any]  # dumped objects of the SDK

SETTINGS = AnthropicSettings(
    signatures="trust",
    betas=frozenset({"thinking-binding-controls-2026-08-01", "interleaved-thinking-2025-05-14"}),
)
WORDS = {"id": "toolu_a", "tool_use_id": "toolu_a", "model": "m", "is_error": False}
IDS = {"server_tool_use": "srvtoolu_a", "mcp_tool_use": "mcptoolu_a"}
OWN_CALLS: dict[str, Json] = {
    "server_tool_use": {"type": "server_tool_use", "id": "srvtoolu_a", "name": "advisor", "input": {}},
    "mcp_tool_use": {
        "type": "mcp_tool_use",
        "id": "mcptoolu_a",
        "name": "x",
        "server_name": "s",
        "input": {},
    },
}
CALL: Json = {"type": "tool_use", "id": "toolu_a", "name": "x", "input": {}}
RESULT: Json = {"type": "tool_result", "tool_use_id": "toolu_a", "content": "r"}
TEXT: Json = {"type": "text", "text": "t"}
HEADERS = {"betas"}  # parameters of the SDK that are no part of the body
USER: Json = {"role": "user", "content": "u"}
TOOL: Json = {"name": "x", "input_schema": {"type": "object"}}
BLOCKS = [*dictionaries(BetaContentBlockParam), *dictionaries(ContentBlockParam)]
TOOLS = [
    *dictionaries(BetaToolUnionParam),
    *dictionaries(ToolUnionParam),
    *dictionaries(MessageCountTokensToolParam),
]


def rejection_of(request: Json, *, count: bool = False) -> str | None:
    body = json.dumps(request).encode()
    refusal = (
        validate_count(body, settings=SETTINGS) if count else validate(body, "anthropic", settings=SETTINGS)
    )
    return None if refusal is None else f"{refusal.rule}: {refusal.message}"


def request(*messages: Json, **more: Any) -> Json:  # any key of a request
    return {"model": "m", "max_tokens": 4096, "messages": list(messages), **more}


def model_message(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def conversations_with(block: Json) -> list[Json]:
    """Return conversations with a block in plausible positions; the host accepts at least one."""
    kind = block["type"]
    if kind == "tool_use":
        return [request(USER, model_message(block), user(RESULT))]
    if kind == "tool_result":
        return [request(USER, model_message(CALL), user(block))]
    if kind in SERVER_CALLS:
        return [request(USER, model_message({**block, "id": IDS[kind]}))]
    if kind in SERVER_RESULTS:
        call = OWN_CALLS[SERVER_RESULTS[kind]]
        return [request(USER, model_message(call, {**block, "tool_use_id": call["id"]}, TEXT), USER)]
    in_system = request(USER, {"role": "system", "content": [block]})
    return [request(USER, model_message(block, TEXT), USER), request(user(block)), in_system]


@pytest.mark.parametrize("kind", [MessageCreateParamsBase, message_create_params.MessageCreateParamsBase])
def test_the_strict_server_knows_every_parameter_of_the_sdk(kind: type) -> None:
    for key, value in parameters(kind):
        more = {"tools": [TOOL]} if key == "tool_choice" else {}
        assert rejection_of(request(USER, **more, **{key: value})) is None, (key, value)


def test_the_strict_server_knows_every_parameter_of_token_counting() -> None:
    for key, value in parameters(message_count_tokens_params.MessageCountTokensParams):
        more = {"tools": [TOOL]} if key == "tool_choice" else {}
        counted = {"model": "m", "messages": [USER], **more, key: value}
        assert rejection_of(counted, count=True) is None, (key, value)


def parameters(kind: type) -> list[tuple[str, Any]]:  # values of any parameter
    """Return a value of each type for each optional parameter of the body."""
    samples = list(variants(kind, WORDS))
    for sample in samples:
        assert_valid(kind, sample)
    given = [
        (key, value) for sample in samples for key, value in sample.items() if key not in required_keys(kind)
    ]
    assert len(given) > 15
    return [(key, value) for key, value in given if key not in HEADERS]


@pytest.mark.parametrize("kind", BLOCKS, ids=lambda kind: kind.__name__)
def test_the_strict_server_knows_every_content_block_of_the_sdk(kind: type) -> None:
    for sample in variants(kind, WORDS):
        assert_valid(kind, sample)
        verdicts = [rejection_of(conversation) for conversation in conversations_with(sample)]
        assert None in verdicts, (sample, verdicts)


def test_the_strict_server_knows_every_block_of_a_tool_result() -> None:
    kinds = [
        kind for arm in get_args(fields(BetaToolResultBlockParam)["content"]) for kind in dictionaries(arm)
    ]
    assert {tag for kind in kinds for tag in tags(kind)} >= {"tool_reference", "browser_state"}
    for kind in kinds:
        for sample in variants(kind, WORDS):
            assert_valid(kind, sample)
            result = {**RESULT, "content": [sample]}
            assert rejection_of(request(USER, model_message(CALL), user(result))) is None, sample


def test_the_strict_server_knows_every_form_of_a_system_message() -> None:
    for sample in variants(BetaSystemMessageParam, WORDS):
        assert_valid(BetaSystemMessageParam, sample)
        assert rejection_of(request(USER, sample)) is None, sample


@pytest.mark.parametrize("kind", TOOLS, ids=lambda kind: kind.__name__)
def test_the_strict_server_knows_every_tool_of_the_sdk(kind: type) -> None:
    for sample in variants(kind, WORDS):
        assert_valid(kind, sample)
        if "input_schema" in sample:
            sample = {**sample, "input_schema": {"type": "object", **sample["input_schema"]}}
        assert rejection_of(request(USER, tools=[sample])) is None, sample
        assert rejection_of({"model": "m", "messages": [USER], "tools": [sample]}, count=True) is None, sample


def test_unknown_parameter_names_are_rejected() -> None:
    unknown = {"role": "user", "content": [{"type": "container_upload", "file_id": "f", "made_up": 1}]}
    assert rejection_of(request(unknown)) == (
        "ANT-28: messages.0.content.0.container_upload.made_up: Extra inputs are not permitted"
    )
    assert str(rejection_of(request(USER, tools=[{"type": "web_serch_20250305", "name": "x"}]))).startswith(
        "ANT-S04"
    )
    assert str(
        rejection_of(request(USER, {"role": "assistant", "content": [{"type": "made_up"}]}))
    ).startswith("ANT-S04")
    assert str(rejection_of(request(USER, contxt=1))).startswith("ANT-28")
