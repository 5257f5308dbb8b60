"""Check that the Chat Completions servers accept everything that the SDKs of OpenAI and Mistral can send."""

import json
from typing import Any

import pytest
from mistralai.client import models as mistral
from mistralai.client.models.chatcompletionrequest import (
    ChatCompletionRequestToolTypedDict,
    ChatCompletionRequestTypedDict,
)
from openai.types.chat import (
    ChatCompletionContentPartParam,
    ChatCompletionMessageParam,
    ChatCompletionToolChoiceOptionParam,
    ChatCompletionToolUnionParam,
)
from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from actors.core.check import check
from actors.core.dialects.profiles import dialect
from actors.strict.rules import CompatibleSettings, validate
from actors.strict.rules.base import CompatibleProfile
from tests.strict.sdk_samples import assert_valid, dictionaries, required_keys, variants

Json = dict[str, Any]  # dumped objects of the SDK

WORDS = {"id": "call_a", "tool_call_id": "call_a", "arguments": "{}"}
NINE = {"id": "call00001", "tool_call_id": "call00001", "arguments": "{}", "type": "function"}
USER: Json = {"role": "user", "content": "json"}
TOOL: Json = {"type": "function", "function": {"name": "x", "parameters": {"type": "object"}}}
CUSTOM: Json = {"type": "custom", "custom": {"name": "x"}}
TRUST = CompatibleSettings(signatures="trust", profile=CompatibleProfile(generation=15))


def rejection_of(
    *messages: Json, vendor: str = "openai_chat", **more: Any
) -> str | None:  # any key of a request
    body = json.dumps({"model": "m", "messages": list(messages), **more}).encode()
    refusal = validate(body, vendor, settings=TRUST if vendor == "mistral" else None)
    return None if refusal is None else f"{refusal.rule}: {refusal.message}"


def call(call_id: str) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": "x", "arguments": "{}"}}


def conversation(message: Json, call_id: str) -> list[Json]:
    """Return a conversation with a message in a plausible position."""
    if message["role"] == "tool":
        return [USER, {"role": "assistant", "content": None, "tool_calls": [call(call_id)]}, message]
    if message["role"] != "assistant":
        return [message, USER]
    calls = message.get("tool_calls") or ()
    if not calls and not message.get("content"):
        message = {**message, "content": "t"}
    results = [{"role": "tool", "tool_call_id": made["id"], "content": "r"} for made in calls]
    return [USER, message, *(results or [USER])]


@pytest.mark.parametrize("kind", dictionaries(ChatCompletionMessageParam), ids=lambda kind: kind.__name__)
def test_the_strict_server_knows_every_message_of_openais_sdk(kind: type) -> None:
    for sample in variants(kind, WORDS):
        assert_valid(kind, sample)
        assert rejection_of(*conversation(sample, "call_a")) is None, sample


@pytest.mark.parametrize("kind", dictionaries(ChatCompletionContentPartParam), ids=lambda kind: kind.__name__)
def test_the_strict_server_knows_every_content_part_of_openais_sdk(kind: type) -> None:
    for sample in variants(kind, WORDS):
        assert_valid(kind, sample)
        assert rejection_of({"role": "user", "content": [sample]}) is None, sample


def test_an_image_may_exceed_the_length_limit_of_texts() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 2_000_000}}
    assert rejection_of({"role": "user", "content": [image]}) is None
    assert str(rejection_of({"role": "user", "content": "A" * 2_000_000})).startswith("OAC-14")


@pytest.mark.parametrize("kind", dictionaries(ChatCompletionToolUnionParam), ids=lambda kind: kind.__name__)
def test_the_strict_server_knows_every_tool_of_openais_sdk(kind: type) -> None:
    for sample in variants(kind, WORDS):
        assert_valid(kind, sample)
        assert rejection_of(USER, tools=[sample]) is None, sample


def test_the_strict_server_knows_every_tool_choice_of_openais_sdk() -> None:
    for kind in dictionaries(ChatCompletionToolChoiceOptionParam):
        for sample in variants(kind, WORDS):
            assert_valid(kind, sample)
            assert rejection_of(USER, tools=[TOOL, CUSTOM], tool_choice=sample) is None, sample


EDGES: dict[str, Json] = {
    "tool_choice": {"tools": [TOOL, CUSTOM]},
    "parallel_tool_calls": {"tools": [TOOL]},
    "stream_options": {"stream": True},
}


def test_the_strict_server_knows_every_parameter_of_openais_sdk() -> None:
    for key, value in parameters(CompletionCreateParamsBase):
        if key != "response_format" or value.get("type") != "json_schema":  # schemas have tests of their own
            assert rejection_of(USER, **EDGES.get(key, {}), **{key: value}) is None, (key, value)


def test_the_strict_server_knows_every_parameter_of_mistrals_sdk() -> None:
    for key, value in parameters(ChatCompletionRequestTypedDict):
        if key != "response_format":
            edges = {"tools": [TOOL]} if key == "tool_choice" else EDGES.get(key, {})
            assert rejection_of(USER, vendor="mistral", **edges, **{key: value}) is None, (key, value)


def parameters(kind: type) -> list[tuple[str, Any]]:  # values of any parameter
    """Return a value of each type for each parameter except the messages and the tools."""
    own = {"tools", *required_keys(kind)}
    samples = [(key, value) for sample in variants(kind) for key, value in sample.items() if key not in own]
    assert len(samples) > 25
    return samples


MISTRALS = (
    mistral.SystemMessageTypedDict,
    mistral.UserMessageTypedDict,
    mistral.AssistantMessageTypedDict,
    mistral.ToolMessageTypedDict,
)


@pytest.mark.parametrize("kind", MISTRALS, ids=lambda kind: kind.__name__)
def test_the_strict_server_knows_every_message_of_mistrals_sdk(kind: type) -> None:
    for sample in variants(kind, NINE):
        if sample.get("tool_call_id", "call00001") != "call00001":
            continue  # the API requires the call's id, the SDK's type does not
        assert_valid(kind, sample)
        if sample["role"] == "assistant" and sample.get("prefix"):
            messages = [USER, {**sample, "content": "t"}]
        else:
            messages = conversation(
                {"tool_call_id": "call00001", **sample} if sample["role"] == "tool" else sample, "call00001"
            )
        assert rejection_of(*messages, vendor="mistral") is None, sample


def test_the_strict_server_knows_every_tool_of_mistrals_sdk() -> None:
    for kind in dictionaries(ChatCompletionRequestToolTypedDict):
        for sample in variants(kind, NINE):
            assert_valid(kind, sample)
            if "function" in sample:
                sample = {**sample, "function": {"parameters": {"type": "object"}, "name": "x"}}
            assert rejection_of(USER, vendor="mistral", tools=[sample]) is None, sample


def test_mistral_accepts_tools_and_choices_without_a_type() -> None:
    bare = {"function": {"name": "x", "parameters": {"type": "object"}}}
    choice = {"function": {"name": "x"}}
    assert rejection_of(USER, vendor="mistral", tools=[bare], tool_choice=choice) is None
    assert (
        str(rejection_of(USER, vendor="mistral", tools=[bare], tool_choice={"function": {"name": "y"}}))
        != "None"
    )
    assert str(rejection_of(USER, tools=[bare])).startswith("OAC-07")
    made = {"id": "call00001", "index": 0, "function": {"name": "x", "arguments": "{}"}}
    talk = [USER, {"role": "assistant", "content": "", "tool_calls": [made]}]
    talk.append({"role": "tool", "tool_call_id": "call00001", "content": "r"})
    judged = json.dumps({"model": "m", "messages": talk, "tools": [bare], "top_k": 3}).encode()
    assert check(judged, dialect("mistral")) == []
    assert {fault.rule for fault in check(judged, dialect("openai_chat"))} == {"ALL-02", "OAC-02", "OAC-12"}


def test_openrouter_accepts_server_tools_and_cache_marks_on_tools() -> None:
    search = {"type": "openrouter:web_search", "parameters": {"max_results": 3}}
    marked = {**TOOL, "cache_control": {"type": "ephemeral"}}
    inside = {"type": "function", "function": {**TOOL["function"], "cache_control": {"type": "ephemeral"}}}
    assert rejection_of(USER, vendor="openrouter", tools=[search, marked]) is None
    judged = json.dumps({"model": "m", "messages": [USER], "tools": [search, marked]}).encode()
    assert check(judged, dialect("openrouter")) == []
    assert {fault.rule for fault in check(judged, dialect("openai_chat"))} == {"ALL-02", "ALL-07"}
    assert rejection_of(USER, vendor="openrouter", tools=[inside], tool_choice="auto") is None
    assert rejection_of(USER, vendor="openrouter", tools=[search], tool_choice="auto") is None


def test_openrouter_applies_openais_schema_rules_only_to_its_models() -> None:
    loose = {
        "type": "function",
        "function": {"name": "x", "parameters": {"properties": {"a": {"type": "array"}}}},
    }
    form = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": {"type": "object"}}}
    for model in ("anthropic/claude-sonnet-5", "google/gemini-4"):
        assert (
            rejection_of(USER, vendor="openrouter", model=model, tools=[loose], response_format=form) is None
        )
    assert rejection_of(USER, vendor="openrouter", model="openai/gpt-5.6", tools=[loose]) is not None
    assert rejection_of(USER, vendor="openrouter", model="openai/gpt-5.6", response_format=form) is not None


def test_openrouter_accepts_its_own_answers_in_requests() -> None:
    made = {**call("toolu_01ABCDEFGHIJKLMNOPQRSTUVWX_0123456789012345678"), "index": 0}
    answer: Json = {
        "role": "assistant",
        "content": "",
        "refusal": None,
        "reasoning": "Hm.",
        "reasoning_details": [],
        "annotations": [],
        "tool_calls": [made],
    }
    result = {"role": "tool", "tool_call_id": made["id"], "content": "r"}
    assert rejection_of(USER, answer, result, vendor="openrouter", tools=[TOOL]) is None
    video = {"type": "video_url", "video_url": {"url": "https://a.test/a.mp4"}}
    assert rejection_of({"role": "user", "content": [video]}, vendor="openrouter") is None


@pytest.mark.parametrize(
    ("vendor", "tool"),
    [
        ("groq", {"type": "browser_search"}),
        ("glm", {"type": "web_search", "web_search": {"enable": True}}),
        ("kimi", {"type": "builtin_function", "function": {"name": "$web_search"}}),
        ("xai", {"type": "web_search"}),
    ],
)
def test_each_vendor_accepts_tools_that_the_vendor_runs_itself(vendor: str, tool: Json) -> None:
    assert rejection_of(USER, vendor=vendor, tools=[tool]) is None
    assert rejection_of(USER, tools=[tool]) is not None


def test_unknown_tool_types_and_parameter_names_are_rejected() -> None:
    assert str(rejection_of(USER, vendor="mistral", tools=[{"type": "made_up"}])).startswith("MIS-")
    assert str(rejection_of(USER, vendor="openrouter", tools=[{"type": "made_up"}])).startswith("OAC-06")
    assert str(rejection_of(USER, vendor="mistral", made_up=1)).startswith("MIS-32")
