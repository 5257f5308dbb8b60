"""Check the rules shared by Chat Completions vendors, and the errors that gateways forward."""

import pytest

from actors.strict.rules import COMPATIBLE_RULES, OPENAI_CHAT_RULES, CompatibleSettings, validate
from tests.rules.chat_vendors import USER, body, call, calls, calls_with_reasoning, result
from tests.rules.row import encode_request


@pytest.mark.parametrize("vendor", list(COMPATIBLE_RULES))
def test_a_fault_without_a_wording_of_its_vendor_uses_the_wording_of_its_family(vendor: str) -> None:
    assert not COMPATIBLE_RULES[vendor].keys() & OPENAI_CHAT_RULES.keys()
    refusal = validate(b"[]", vendor)
    assert refusal is not None
    assert refusal.rule in OPENAI_CHAT_RULES or refusal.rule == "MIS-S08"


def test_a_response_with_status_422_names_the_path_and_repeats_the_input() -> None:
    refusal = validate(encode_request(body(USER, calls_with_reasoning(call()), result())), "mistral")
    assert refusal is not None
    assert refusal.param == "body.messages.1.assistant.reasoning_content"
    assert refusal.detail == {
        "loc": ["body", "messages", 1, "assistant", "reasoning_content"],
        "input": "t",
    }
    empty = validate(encode_request(body(USER, tools=[])), "mistral")
    assert empty is not None
    assert empty.detail == {"loc": ["body", "tools"], "input": []}


@pytest.mark.parametrize("upstream", ["openai_chat", "mistral", "deepseek"])
def test_openrouter_applies_the_rules_and_wordings_of_its_upstream(upstream: str) -> None:
    settings = CompatibleSettings(upstream_vendor=upstream)
    dangling = encode_request(body(USER, calls(call(), content=None), USER, provider={"order": ["x"]}))
    refusal = validate(dangling, "openrouter", settings=settings)
    assert refusal is not None
    assert refusal.rule == {"openai_chat": "OAC-01", "mistral": "MIS-02", "deepseek": "DSK-02"}[upstream]
    assert refusal.detail["vendor"] == upstream


@pytest.mark.parametrize("model", ["openai/gpt-5.6", "openai/gpt-6-astra", "openai/gpt-5.3-codex", "gpt-5.6"])
def test_openrouter_accepts_openai_models_with_tools_at_any_effort(model: str) -> None:
    tools = [
        {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    ]
    asked = body(USER, tools=tools, reasoning={"effort": "high"}, temperature=0.2) | {"model": model}
    assert validate(encode_request(asked), "openrouter") is None
    assert validate(encode_request(asked | {"model": "gpt-5.6"}), "openai_chat") is not None
