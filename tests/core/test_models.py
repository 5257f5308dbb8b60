"""Check the table of model facts: the row of each name and its effect on encoders."""

import json
from typing import Any

import pytest

from actors.adapters.adapter import adapter
from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.data.jsonio import Json
from actors.core.data.persistent import Segments
from actors.core.dialects.narrow import base_name, find_row, for_model
from actors.core.models.facts import ModelFacts, ModelRow
from actors.core.models.table import ROWS
from actors.errors import ConfigError
from actors.transcripts import dialect

MAKERS = ("openai", "anthropic", "google", "kimi", "deepseek", "glm", "minimax", "amazon")
HOSTS = {
    "openai": "openai_responses",
    "google": "gemini",
    "amazon": "bedrock",
}
READ = ToolSpec("read", "Read a file.", Json(b'{"type":"object","properties":{}}'))


def sent_body(name: str, **settings: Any) -> Request:  # Any: fields of Settings
    return adapter(dialect(name)).request(Segments(), Settings(**settings))


def body(name: str, **settings: Any) -> Any:  # Any: as above, and JSON
    return json.loads(sent_body(name, **settings).body)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.sample[0])
def test_each_sample_model_name_matches_the_expected_row_of_the_model_table(row: ModelRow) -> None:
    assert [find_row(name, MAKERS) for name in row.sample] == [row] * len(row.sample)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("openai/gpt-5.6-sol-2026-07-01", "gpt-5.6-sol"),
        ("us.anthropic.claude-opus-5-5-20260901-v1:0", "claude-opus-5-5"),
        ("claude-opus-5-5@20260901", "claude-opus-5-5"),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-sonnet-5-v1:0",
            "claude-sonnet-5",
        ),
        ("global.openai.gpt-5.6-luna", "gpt-5.6-luna"),
        ("~anthropic/claude-haiku-4.5:beta", "claude-haiku-4.5"),
        ("ft:gpt-4o-mini-2024-07-18:org::id", "gpt-4o-mini"),
        ("models/Gemini-3-Flash-Preview", "gemini-3-flash"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("kimi-k2.7-code", "kimi-k2.7-code"),
        ("claude-sonnet-4-5-20250929-thinking", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929[1m]", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
    ],
)
def test_the_name_of_a_model_is_recognised_without_its_prefix_date_or_tag(name: str, base: str) -> None:
    assert base_name(name) == base


@pytest.mark.parametrize(
    ("unknown", "newest"),
    [
        ("gpt-7-nova", "gpt-6.1-sol"),
        ("gpt-5.9", "gpt-6.1-sol"),
        ("o9-mini", "gpt-6.1-sol"),
        ("claude-opus-6", "claude-opus-5-5"),
        ("claude-lyric-1", "claude-opus-5-5"),
        ("eu.anthropic.claude-opus-4-9-v1:0", "claude-opus-5-5"),
        ("gemini-5-pro", "gemini-4-argon"),
        ("kimi-k4", "kimi-k3"),
        ("deepseek-v5", "deepseek-v4-pro"),
        ("glm-6", "glm-5.3"),
        ("minimax-m4", "minimax-m3"),
    ],
)
def test_an_unknown_model_has_the_facts_of_the_newest_model_in_its_family(unknown: str, newest: str) -> None:
    assert find_row(unknown, MAKERS) == find_row(newest, MAKERS) is not None


@pytest.mark.parametrize("name", ["gpt-oss-120b", "qwen3-coder", "claude", "my-deployment", "llama-4", ""])
def test_a_model_of_an_unknown_family_gets_the_default_facts_of_its_host(name: str) -> None:
    assert find_row(name, MAKERS) is None
    assert for_model(dialect("openai_chat"), name).model == ModelFacts()


def test_facts_about_an_open_model_apply_only_at_the_official_host_of_the_model() -> None:
    assert for_model(dialect("vllm"), "deepseek-v4").model == ModelFacts()
    assert for_model(dialect("deepseek"), "deepseek-v4").model.efforts == ("high", "max")


@pytest.mark.parametrize(
    ("model", "effort", "tools", "expected", "losses"),
    [
        ("gpt-5.4", "medium", True, None, ("effort",)),
        ("gpt-5.5", "high", True, None, ("effort",)),
        ("gpt-5.6-terra", "low", True, "none", ("effort",)),
        ("gpt-5.6", None, True, "none", ()),
        ("gpt-5.6-sol", "low", False, "low", ()),
        ("gpt-6-sol", None, True, "none", ()),
        ("gpt-5.2", "low", True, "low", ()),
    ],
)
def test_chat_completions_sends_the_effort_that_the_model_accepts_together_with_tools(
    model: str, effort: str | None, tools: bool, expected: str | None, losses: tuple[str, ...]
) -> None:
    """Case chat-effort-and-tools: OAC-20."""
    made = sent_body("openai_chat", model=model, effort=effort, tools=(READ,) if tools else ())
    assert json.loads(made.body).get("reasoning_effort") == expected
    assert made.losses == losses


@pytest.mark.parametrize("model", ["gpt-6-astra", "gpt-6.1-sol", "gpt-7-nova"])
def test_the_error_for_a_model_without_tools_on_chat_completions_names_the_responses_api(model: str) -> None:
    with pytest.raises(ConfigError, match=f"use openai_responses:{model}"):
        sent_body("openai_chat", model=model, tools=(READ,))
    assert body("openai_chat", model=model)["model"] == model
    assert body("openai_responses", model=model, tools=(READ,), effort="max")["reasoning"] == {
        "effort": "max"
    }


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-5", None),
        ("gpt-5-mini", None),
        ("o4-mini", None),
        ("gpt-5.2-codex", None),
        ("gpt-5.6-terra", None),
        ("gpt-4.1", 0.2),
    ],
)
def test_reasoning_models_are_sent_no_temperature(name: str, model: str, expected: float | None) -> None:
    """Case sampling-on-gpt-5: OAC-18."""
    made = sent_body(name, model=model, temperature=0.2)
    assert json.loads(made.body).get("temperature") == expected
    assert made.losses == (() if expected else ("temperature",))


@pytest.mark.parametrize(
    ("name", "model", "expected", "losses"),
    [
        ("anthropic", "claude-sonnet-5", {"thinking": {"type": "disabled"}}, ()),
        ("anthropic", "claude-sonnet-5-5", {"thinking": {"type": "between_tools"}}, ()),
        ("anthropic", "claude-opus-5-5", {"output_config": {"effort": "low"}}, ("thinking",)),
        ("anthropic", "claude-3-5-haiku-latest", {}, ()),
        ("openai_responses", "gpt-5.6", {"reasoning": {"effort": "none"}}, ()),
        ("openai_responses", "gpt-5", {"reasoning": {"effort": "minimal"}}, ("thinking",)),
        ("openai_responses", "gpt-6-astra", {"reasoning": {"effort": "low"}}, ("thinking",)),
        ("openai_responses", "gpt-4.1", {}, ()),
        ("kimi", "kimi-k2.6", {"thinking": {"type": "disabled"}}, ()),
        ("kimi", "kimi-k3", {"reasoning_effort": "low"}, ("thinking",)),
        ("deepseek", "deepseek-v4-pro", {"thinking": {"type": "disabled"}}, ()),
        ("glm", "glm-5.2", {"thinking": {"type": "disabled"}}, ()),
        ("glm", "glm-5.3", {"reasoning_effort": "low"}, ("thinking",)),
        ("minimax", "minimax-m3", {"thinking": {"type": "disabled"}}, ()),
        ("gemini", "gemini-2.5-flash", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}, ()),
        (
            "gemini",
            "gemini-4-argon",
            {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}},
            ("thinking",),
        ),
        (
            "bedrock",
            "us.anthropic.claude-sonnet-5-v1:0",
            {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}},
            (),
        ),
    ],
)
def test_disabled_thinking_is_sent_in_the_form_that_the_model_accepts(
    name: str, model: str, expected: dict[str, Any], losses: tuple[str, ...]
) -> None:
    made = sent_body(name, model=model, thinking="off")
    keys = ("thinking", "output_config", "reasoning", "reasoning_effort", "generationConfig")
    found = json.loads(made.body)
    relevant = {key: found[key] for key in (*keys, "additionalModelRequestFields") if key in found}
    assert relevant == expected
    assert made.losses == losses


@pytest.mark.parametrize(
    ("name", "model", "settings", "expected", "losses"),
    [
        (
            "anthropic",
            "claude-opus-5",
            {"thinking": "manual", "thinking_tokens": 9},
            "adaptive",
            ("thinking_tokens",),
        ),
        ("anthropic", "claude-haiku-4-5", {"thinking": "adaptive", "budgeted": True}, "enabled", ()),
        ("anthropic", "claude-haiku-4-5", {"thinking": "adaptive"}, None, ("thinking",)),
        ("minimax", "minimax-m3", {"thinking": "manual"}, "adaptive", ()),
        ("glm", "glm-5.2", {"thinking": "adaptive"}, "enabled", ()),
    ],
)
def test_requested_thinking_is_sent_in_the_form_that_the_model_accepts(
    name: str, model: str, settings: dict[str, Any], expected: str | None, losses: tuple[str, ...]
) -> None:
    made = sent_body(name, model=model, **settings)
    assert json.loads(made.body).get("thinking", {}).get("type") == expected
    assert made.losses == losses


@pytest.mark.parametrize(
    ("model", "asked", "sent_effort", "losses"),
    [
        ("gpt-5.6", "minimal", "none", ("effort",)),
        ("gpt-5", "xhigh", "high", ("effort",)),
        ("gpt-6-astra", "max", "max", ()),
        ("gpt-4.1", "low", None, ("effort",)),
        ("my-model", "ultra", "ultra", ()),
    ],
)
def test_an_unsupported_effort_is_replaced_by_the_nearest_supported_effort(
    model: str, asked: str, sent_effort: str | None, losses: tuple[str, ...]
) -> None:
    made = sent_body("openai_responses", model=model, effort=asked)
    assert json.loads(made.body).get("reasoning", {}).get("effort") == sent_effort
    assert made.losses == losses


@pytest.mark.parametrize(
    ("model", "expected", "losses"),
    [
        ("gpt-5.6", {"prompt_cache_options": {"ttl": "12h"}}, ()),
        ("gpt-5.5", {"prompt_cache_retention": "24h"}, ()),
        ("gpt-4o", {}, ("cache",)),
    ],
)
def test_a_long_cache_lifetime_is_requested_in_the_field_that_the_model_accepts(
    model: str, expected: dict[str, Any], losses: tuple[str, ...]
) -> None:
    made = sent_body("openai_responses", model=model, cache="long")
    found = json.loads(made.body)
    assert {key: value for key, value in found.items() if key.startswith("prompt_cache_")} == expected
    assert made.losses == losses


@pytest.mark.parametrize(
    ("name", "model", "choice", "thinking"),
    [
        ("anthropic", "claude-sonnet-5", {"type": "any"}, "disabled"),
        ("anthropic", "claude-haiku-4-5", {"type": "any"}, None),
        ("anthropic", "claude-opus-5-5", None, None),
        ("deepseek", "deepseek-v4-pro", "required", "disabled"),
        ("kimi", "kimi-k3", None, None),
        ("openai_responses", "gpt-5.6", "required", None),
    ],
)
def test_thinking_that_excludes_forced_tools_is_switched_off_for_a_forced_tool(
    name: str, model: str, choice: object, thinking: str | None
) -> None:
    made = sent_body(name, model=model, tools=(READ,), tool_choice="required")
    found = json.loads(made.body)
    assert found.get("tool_choice") == choice
    assert found.get("thinking", {}).get("type") == thinking
    assert made.losses == (() if choice else ("tool_choice",))


def test_native_call_ids_are_sent_back_to_vertex_from_gemini_3_on() -> None:
    """GEM-09."""
    newer = for_model(dialect("vertex"), "gemini-3-pro-preview")
    older = for_model(dialect("vertex"), "gemini-2.5-flash")
    assert (newer.ids.native_passthrough, older.ids.native_passthrough) == (True, False)


def test_model_overrides_apply_in_order_and_the_last_override_wins() -> None:
    user, learned = {"stops": True, "efforts": ["low"]}, {"efforts": ["high"]}
    facts = for_model(dialect("openai_responses"), "gpt-6-astra", (user, learned)).model
    assert (facts.stops, facts.efforts, facts.chat_tools) == (True, ("high",), "never")
