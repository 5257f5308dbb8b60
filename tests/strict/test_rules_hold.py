"""Check that any body gets a verdict and that the strict mode accepts no more than the hosted mode."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.strict.rules import COMPATIBLE_RULES, sign, validate
from actors.strict.rules.base import AnthropicSettings, CompatibleSettings
from actors.strict.rules.openrouter import sign as sign_detail
from actors.strict.rules.responses import encrypt
from actors.strict.rules.responses_shapes import ResponsesSettings
from tests.commands.at_scale import share

Json = Any  # a body under test may be anything

OPENAI: Json = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": True},
    "temperature": 1,
    "stop": ["x"],
    "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
    "tool_choice": {"type": "function", "function": {"name": "read"}},
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "read", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "r"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "r"}]},
        {"role": "user", "content": "u"},
    ],
}


BEDROCK: Json = {
    "system": [{"text": "s"}, {"cachePoint": {"type": "default"}}],
    "inferenceConfig": {"maxTokens": 4096, "temperature": 1},
    "outputConfig": {"effort": "low"},
    "additionalModelRequestFields": {"thinking": {"type": "adaptive"}},
    "toolConfig": {
        "tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}],
        "toolChoice": {"auto": {}},
    },
    "messages": [
        {"role": "user", "content": [{"text": "u"}, {"image": {"format": "png", "source": {"bytes": "AA"}}}]},
        {
            "role": "assistant",
            "content": [
                {"text": "t"},
                {"toolUse": {"toolUseId": "a", "name": "read", "input": {"p": 1}}},
                {"toolUse": {"toolUseId": "b", "name": "read", "input": {}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "a", "content": [{"text": "r"}], "status": "error"}},
                {"toolResult": {"toolUseId": "b", "content": [{"json": {"x": 1}}]}},
                {"text": "u"},
            ],
        },
    ],
}


def _anthropic() -> Json:
    request: Json = {
        "model": "m",
        "max_tokens": 4096,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "tools": [{"name": "read", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto"},
        "messages": [{"role": "user", "content": "u"}],
    }
    signature = sign(request, (), "t", AnthropicSettings())
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": "r", "is_error": True},
        {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "r"}]},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
    ]
    said = [
        {"type": "thinking", "thinking": "t", "signature": signature},
        {"type": "text", "text": "t"},
        {"type": "tool_use", "id": "a", "name": "read", "input": {"p": 1}},
        {"type": "tool_use", "id": "b", "name": "read", "input": {}},
    ]
    request["messages"] += [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
    return request


def _responses() -> Json:
    request: Json = {
        "model": "m",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low"},
        "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}, "strict": False}],
        "tool_choice": "auto",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "u"}]}],
    }
    summary = [{"type": "summary_text", "text": "t"}]
    state = encrypt(request, (), "rs_1", ResponsesSettings())
    calls = [
        {"type": "function_call", "id": f"fc_{name}", "call_id": name, "name": "read", "arguments": "{}"}
        for name in "ab"
    ]
    outputs = [{"type": "function_call_output", "call_id": name, "output": "r"} for name in "ab"]
    thought = {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": state}
    request["input"] += [thought, *calls, *outputs, {"role": "user", "content": "u"}]
    return request


def _family(vendor: str) -> Json:
    """Return a valid body of a vendor of the Chat Completions family."""
    request = copy.deepcopy(OPENAI)
    if vendor == "mistral":
        del request["stream_options"]
    ids = {"mistral": ("aaaaaaaa1", "bbbbbbbb2"), "kimi": ("functions.read:0", "functions.read:1")}
    first, second = ids.get(vendor, ("a", "b"))
    asked, *results = request["messages"][2:5]
    for call, result, call_id in zip(asked["tool_calls"], results, (first, second), strict=True):
        call["id"] = result["tool_call_id"] = call_id
    if vendor in ("kimi", "deepseek"):
        asked["reasoning_content"] = "t"
    if vendor in ("kimi", "deepseek", "llama_cpp", "ollama"):
        request["tool_choice"] = "auto"
    if vendor == "openrouter":
        request["messages"].insert(5, {"role": "assistant", "content": "a", "reasoning_details": [_detail()]})
    if vendor == "mistral":
        request["messages"].insert(5, {"role": "assistant", "content": "a"})
    return request


def _detail() -> Json:
    signature = sign_detail("t", 0, CompatibleSettings())
    return {"type": "reasoning.text", "text": "t", "signature": signature, "index": 0}


SOUND = {
    "openai_chat": OPENAI,
    "anthropic": _anthropic(),
    "openai_responses": _responses(),
    "bedrock": BEDROCK,
    **{vendor: _family(vendor) for vendor in COMPATIBLE_RULES},
}


def places(value: Json) -> Iterator[tuple[Json, Json]]:
    """Yield (container, key) of every value inside `value`, in a fixed order."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from places(inner)


SCALARS = st.none() | st.booleans() | st.integers(-2, 5000) | st.floats(-3, 3) | st.text("ab _.", max_size=5)
NAMES = st.sampled_from(
    ["type", "text", "id", "toolUse", "reasoningContent", "role", "content", "thinking", "a", "function"]
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)


@st.composite
def damaged_bodies(draw: st.DrawFn, sound: Json) -> Json:
    """Return a valid body with one to three values replaced, removed, repeated or moved."""
    body = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(body))
        if not found:
            break
        container, key = found[draw(st.integers(0, len(found) - 1))]
        match draw(st.sampled_from(["replace", "remove", "repeat", "move"])):
            case "replace":
                container[key] = draw(VALUES)
            case "remove":
                del container[key]
            case "repeat" if isinstance(container, list):
                container.insert(key, copy.deepcopy(container[key]))
            case "move" if isinstance(container, list):
                container.append(container.pop(key))
    return body


@pytest.mark.parametrize("dialect", SOUND)
def test_each_request_body_is_accepted_before_it_is_damaged(dialect: str) -> None:
    assert validate(json.dumps(SOUND[dialect]).encode(), dialect) is None


@pytest.mark.parametrize("dialect", SOUND)
@settings(max_examples=share(200), database=None)
@given(data=st.data())
def test_strict_mode_rejects_every_damaged_body_that_hosted_mode_rejects(
    data: st.DataObject, dialect: str
) -> None:
    body = json.dumps(data.draw(damaged_bodies(SOUND[dialect]))).encode()
    strict = validate(body, dialect)
    hosted = validate(body, dialect, mode="hosted")
    assert strict is not None or hosted is None
    if strict is not None:
        assert strict.message
        assert 400 <= strict.status < 500 or strict.rule.startswith(
            "LCP-"
        )  # llama.cpp answers some faults with a 5xx status


def test_a_thinking_parameter_of_the_wrong_type_is_rejected() -> None:
    refusal = validate(json.dumps({**SOUND["anthropic"], "thinking": [None]}).encode(), "anthropic")
    assert refusal is not None
    assert "thinking" in refusal.message


@settings(max_examples=200, deadline=None, database=None)
@given(raw=st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_the_strict_server_judges_any_bytes_without_an_exception(raw: bytes) -> None:
    for dialect in SOUND:
        assert validate(raw, dialect) is not None
