"""Each rule of the Chat Completions vendors refuses its fault in the vendor's words, and nothing next to it."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from actors.strict.rules import COMPATIBLE_RULES, OPENAI_CHAT_RULES, CompatibleSettings, validate
from actors.strict.rules.base import Mode, ServerRule
from tests.strict.cases_answers import shown
from tests.strict.cases_mistral import FREE, GENERATION_13, MISTRAL
from tests.strict.cases_reasoning import DEEPSEEK_CASES, KIMI, OPENROUTER
from tests.strict.cases_vendors import VENDORS
from tests.strict.family import USER, Case, body, call, calls, result, thought

CASES = [*MISTRAL, *KIMI, *DEEPSEEK_CASES, *OPENROUTER, *VENDORS]
# Said about the model's answer or about what this server handed out, or by a later host alone: see the servers' tests.
ELSEWHERE = {"GRQ-01", "GRQ-02", "KIM-S03", "DSK-S03", "MIS-16S", "MIS-S08"}


def wire(value: Mapping[str, Any]) -> bytes:  # a body under test may be anything
    return json.dumps(value).encode()


def named(case: Case) -> str:
    return case.rule


@pytest.mark.requirement("REQ-915-005")
@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_broken_rule_is_refused_in_the_vendors_own_words(case: Case) -> None:
    refusal = validate(wire(case.refused), case.vendor, mode=case.mode, settings=case.settings)
    assert refusal is not None
    assert (refusal.rule, refusal.message) == (case.rule, case.message)
    assert (refusal.status, refusal.type, refusal.code) == (case.status, *case.kind)


@pytest.mark.parametrize("mode", ["strict", "hosted"])
@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_nearest_sound_body_is_accepted(case: Case, mode: Mode) -> None:
    assert validate(wire(case.accepted), case.vendor, mode=mode, settings=case.settings) is None


@pytest.mark.parametrize("case", CASES, ids=named)
def test_hosted_differs_only_where_sources_do(case: Case) -> None:
    hosted = validate(wire(case.refused), case.vendor, mode="hosted", settings=case.settings)
    assert (hosted is not None) == case.hosted


def test_every_rule_has_a_case() -> None:
    own: dict[str, ServerRule] = {}
    for rules in COMPATIBLE_RULES.values():
        own |= rules
    assert {case.rule for case in CASES} | ELSEWHERE | shown(own) == set(own)


@pytest.mark.parametrize("vendor", list(COMPATIBLE_RULES))
def test_a_fault_without_words_of_its_own_keeps_the_familys_rule(vendor: str) -> None:
    assert not COMPATIBLE_RULES[vendor].keys() & OPENAI_CHAT_RULES.keys()
    refusal = validate(b"[]", vendor)
    assert refusal is not None
    assert refusal.rule in OPENAI_CHAT_RULES or refusal.rule == "MIS-S08"


def test_a_422_names_the_place_as_a_path_and_repeats_what_stood_there() -> None:
    refusal = validate(wire(body(USER, thought(call()), result())), "mistral")
    assert refusal is not None
    assert refusal.param == "body.messages.1.assistant.reasoning_content"
    assert refusal.detail == {
        "loc": ["body", "messages", 1, "assistant", "reasoning_content"],
        "input": "t",
    }
    empty = validate(wire(body(USER, tools=[])), "mistral")
    assert empty is not None
    assert empty.detail == {"loc": ["body", "tools"], "input": []}


def test_a_later_mistral_host_takes_any_id_but_an_empty_one() -> None:
    later = body(USER, calls(call("call_1")), result("call_1"))
    assert validate(wire(later), "mistral", mode="hosted", settings=GENERATION_13) is None
    blank = body(USER, calls(call("")), result(""))
    refusal = validate(wire(blank), "mistral", mode="hosted", settings=GENERATION_13)
    assert refusal is not None
    assert (refusal.rule, refusal.message) == ("MIS-16S", FREE)


@pytest.mark.parametrize("upstream", ["openai_chat", "mistral", "deepseek"])
def test_behind_openrouter_the_upstreams_rules_hold_in_the_upstreams_words(upstream: str) -> None:
    settings = CompatibleSettings(upstream_vendor=upstream)
    dangling = wire(body(USER, calls(call(), content=None), USER, provider={"order": ["x"]}))
    refusal = validate(dangling, "openrouter", settings=settings)
    assert refusal is not None
    assert refusal.rule == {"openai_chat": "OAC-01", "mistral": "MIS-02", "deepseek": "DSK-02"}[upstream]
    assert refusal.detail["vendor"] == upstream


@pytest.mark.parametrize("model", ["openai/gpt-5.6", "openai/gpt-6-astra", "openai/gpt-5.3-codex", "gpt-5.6"])
def test_openrouter_serves_openais_models_with_tools_at_any_effort(model: str) -> None:
    tools = [
        {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    ]
    asked = body(USER, tools=tools, reasoning={"effort": "high"}, temperature=0.2) | {"model": model}
    assert validate(wire(asked), "openrouter") is None
    assert validate(wire(asked | {"model": "gpt-5.6"}), "openai_chat") is not None
