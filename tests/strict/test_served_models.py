"""Check that the model tables of the strict servers and of the encoders agree."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from actors.adapters.adapter import adapter
from actors.adapters.request import Settings, ToolSpec
from actors.core.data.jsonio import Json
from actors.core.dialects.narrow import for_model
from actors.core.models.facts import ModelFacts, ModelRow
from actors.core.models.table import ROWS
from actors.core.settings.values import ToolChoice
from actors.core.values.content import Message, Text
from actors.core.values.identity import Binding
from actors.errors import ConfigError
from actors.strict.rules.models import SERVED, ServedModel, served_model
from actors.testing import BedrockSettings, GeminiSettings, validate
from actors.transcripts import History, Ledger, check, dialect, render

WHEN = ("always", "without_thinking", "never")
TOOLS = {"any": "always", "no_effort": "without_effort", "effort_none": "effort_none", "never": "never"}
HOSTS: dict[str, tuple[str, ...]] = {
    "openai": ("openai_chat", "openai_responses"),
    "anthropic": ("anthropic",),
    "google": ("gemini", "vertex"),
    "amazon": ("bedrock",),
}
READ = ToolSpec("read", "Read a file.", Json(b'{"type":"object","properties":{}}'))
FUNCTIONS = [
    {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
]
HISTORY = History([Message("user", [Text("Read it.")])])


def compare(facts: ModelFacts, served: ServedModel) -> dict[str, tuple[object, object]]:
    """Return the values of both tables, by field of the encoders' table."""
    pairs: dict[str, tuple[object, object]] = {
        "chat_tools": (facts.chat_tools, TOOLS[served.tools]),
        "sampling": (facts.sampling, served.sampling),
        "efforts": (facts.efforts, served.efforts),
        "default_effort": (facts.default_effort, served.effort),
        "thinks_by_default": (facts.thinks_by_default, served.thinks_by_default),
        "forced_choice": (facts.forced_choice, served.forced),
        "stops": (facts.stops, served.stops),
        "schema_output": (facts.schema_output, served.schema_output),
        "cache_minimum": (facts.cache_minimum, served.cache_minimum),
    }
    if served.maker == "openai":
        return pairs | {"cache": (facts.cache, served.cache or "automatic")}
    return pairs | {"thinking": (facts.thinking, served.thinking)}


def is_cautious(field: str, ours: Any, theirs: Any) -> bool:  # Any: values of a field
    """Return True if requests for the encoders' value are valid for the servers' value too."""
    if field in ("sampling", "forced_choice"):
        return WHEN.index(ours) > WHEN.index(theirs)
    if field == "thinking":
        return set(ours) < set(theirs)
    if field == "efforts":
        return theirs is None
    return ours is False and theirs is True


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.sample[0])
def test_the_encoders_know_the_same_model_facts_as_the_servers_or_are_more_cautious(row: ModelRow) -> None:
    for name in row.sample:
        served = served_model(name)
        assert served is not None
        assert served.maker == row.maker
        pairs = compare(row.facts, served)
        different = {field for field, (ours, theirs) in pairs.items() if ours != theirs}
        assert different == row.cautious & pairs.keys()
        assert all(is_cautious(field, *pairs[field]) for field in different)


def test_every_model_row_of_the_servers_matches_a_sample_of_the_table_of_the_encoders() -> None:
    described = [served_model(name) for row in ROWS for name in row.sample]
    assert [row.names for row in SERVED if row not in described] == []


@pytest.mark.parametrize("name", ["gpt", "claude", "m", "qwen3-coder", "gpt-oss-120b", "my-deployment"])
def test_a_generic_or_custom_model_name_has_no_row_in_the_strict_servers_table(name: str) -> None:
    assert served_model(name) is None


@pytest.mark.parametrize(
    ("host", "body", "rule", "message"),
    [
        (
            "openai_chat",
            {"model": "gpt-5.6-terra", "tools": FUNCTIONS},
            "OAC-20",
            "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use "
            "function tools, use /v1/responses or set reasoning_effort to 'none'.",
        ),
        (
            "openai_chat",
            {"model": "gpt-5.3-codex"},
            "OAC-21",
            "This model is only supported in v1/responses and not in v1/chat/completions.",
        ),
        (
            "openai_responses",
            {"model": "gpt-6-astra", "reasoning": {"effort": "none"}},
            "OAC-23",
            "Unsupported value: 'reasoning.effort' does not support 'none' with this model. Supported values are: "
            "'low', 'medium', 'high', 'xhigh', 'max'.",
        ),
        (
            "openai_responses",
            {"model": "gpt-5.6", "temperature": 0.2},
            "OAC-24",
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is "
            "supported.",
        ),
        (
            "openai_chat",
            {"model": "o3", "stop": ["END"]},
            "OAC-22",
            "Unsupported parameter: 'stop' is not supported with this model.",
        ),
    ],
)
def test_a_model_rejects_a_setting_in_the_wording_of_its_provider(
    host: str, body: dict[str, Any], rule: str, message: str
) -> None:
    said = [{"role": "user", "content": "u"}]
    whole = {**body, "messages" if host == "openai_chat" else "input": said}
    refusal = validate(json.dumps(whole).encode(), host)
    assert refusal is not None
    assert (refusal.rule, refusal.message) == (rule, message)


def test_sampling_with_the_effort_none_is_accepted_where_real_hosts_accept_the_combination() -> None:
    said = [{"role": "user", "content": "u"}]
    for more in ({"model": "gpt-5.2"}, {"model": "gpt-5.6", "reasoning": {"effort": "none"}}):
        body = json.dumps({**more, "input": said, "temperature": 0.2}).encode()
        assert validate(body, "openai_responses") is None


def settings(model: str) -> Iterator[Settings]:
    """Yield the settings that a caller may request, alone and combined."""
    choices: list[dict[str, Any]] = [{}, {"tool_choice": "required"}, {"tool_choice": ToolChoice("read")}]
    thinking: list[dict[str, Any]] = [
        {},
        {"thinking": "off"},
        {"thinking": "adaptive"},
        {"thinking": "manual"},
    ]
    efforts: list[dict[str, Any]] = [{}, *({"effort": level} for level in ("none", "minimal", "high", "max"))]
    others: list[dict[str, Any]] = [
        {},
        {"temperature": 0.2},
        {"stop": ("END",), "top_p": 0.96, "cache": "long"},
        {"output": Json(b'{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}')},
    ]
    for tools in ((), (READ,)):
        for choice, think, effort, other in itertools.product(choices, thinking, efforts, others):
            if tools or not choice:
                yield Settings(model=model, tools=tools, **choice, **think, **effort, **other)


def hosts(row: ModelRow) -> tuple[str, ...]:
    also = ("bedrock",) if row.maker == "anthropic" else ()
    return HOSTS.get(row.maker, (row.maker,)) + also


CELLS = [(name, host) for row in ROWS for name in row.sample for host in hosts(row)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "host"), CELLS)
def test_no_encoded_setting_of_any_model_is_rejected(name: str, host: str) -> None:
    """Each model on a host is tested with a third of the combinations, in rotation."""
    binding = Binding("a", host, model=name)
    narrowed = for_model(dialect(host), name)
    rendered = render(HISTORY, Ledger(), narrowed, binding=binding)
    codec = adapter(narrowed)
    is_on_responses_alone = any(part in name for part in ("codex", "-pro")) and host == "openai_chat"
    for asked in itertools.islice(settings(name), CELLS.index((name, host)) % 3, None, 3):
        if host == "openai_chat" and asked.tools and narrowed.model.chat_tools == "never":
            with pytest.raises(ConfigError, match="openai_responses"):
                codec.request(rendered._segments, asked, rendered._facts)
            continue
        made = codec.request(rendered._segments, asked, rendered._facts)
        refusal = validate(made.body, host, settings=of_path(host, name))
        assert (refusal and refusal.rule) == ("OAC-21" if is_on_responses_alone else None), made.body


def of_path(host: str, model: str) -> GeminiSettings | BedrockSettings | None:
    """Return the settings of a host with the model in the request path."""
    if host in ("gemini", "vertex"):
        return GeminiSettings(model=model, vertex=host == "vertex")
    return BedrockSettings(model=model) if host == "bedrock" else None


@pytest.mark.parametrize(
    ("model", "prefill", "pair", "mid_system"),
    [
        ("claude-3-5-sonnet-20241022", True, True, False),
        ("claude-sonnet-4-5", True, False, False),
        ("claude-opus-4-6", False, False, False),
        ("claude-opus-4-8", False, False, True),
        ("claude-sonnet-5-5", False, False, True),
        ("m", False, False, True),
    ],
)
def test_legacy_anthropic_settings_are_accepted_only_for_older_models(
    model: str, prefill: bool, pair: bool, mid_system: bool
) -> None:
    said: list[dict[str, Any]] = [{"role": "user", "content": "u"}]

    def is_accepted(*more: dict[str, Any], **settings: Any) -> bool:  # any message and any setting
        whole = {"model": model, "max_tokens": 9, "messages": [*said, *more], **settings}
        return validate(json.dumps(whole).encode(), "anthropic") is None

    assert is_accepted()
    assert is_accepted({"role": "assistant", "content": "It is"}) is prefill
    assert is_accepted(temperature=1, top_p=1) is pair
    assert is_accepted({"role": "system", "content": "s"}) is mid_system


@pytest.mark.parametrize(
    ("model", "accepted"), [("gemini-2.5-pro", False), ("gemini-3-pro", True), ("m", True)]
)
def test_vertex_accepts_call_ids_from_gemini_3_on(model: str, accepted: bool) -> None:
    call = {"functionCall": {"name": "read", "args": {}, "id": "a"}, "thoughtSignature": "c2ln"}
    response = {"functionResponse": {"name": "read", "response": {}, "id": "a"}}
    contents = [
        {"role": "user", "parts": [{"text": "u"}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [response]},
    ]
    settings = GeminiSettings(vertex=True, model=model, signatures="trust")
    refusal = validate(json.dumps({"contents": contents}).encode(), "vertex", settings=settings)
    assert (refusal is None) is accepted
    assert accepted or (refusal is not None and refusal.rule == "GEM-09")


@pytest.mark.parametrize(
    ("host", "settings"),
    [
        ("kimi", {"model": "kimi-k2.6", "tool_choice": "required", "thinking": {"type": "disabled"}}),
        ("deepseek", {"model": "deepseek-v4-pro", "reasoning_effort": "low"}),
        ("openai_chat", {"model": "gpt-5.2", "temperature": 0.2, "reasoning_effort": "none"}),
    ],
)
def test_settings_that_only_the_encoders_avoid_are_accepted_by_server_and_checker(
    host: str, settings: dict[str, Any]
) -> None:
    body = {"messages": [{"role": "user", "content": "Read it."}], "tools": FUNCTIONS} | settings
    assert validate(json.dumps(body).encode(), host) is None
    assert check(json.dumps(body).encode(), dialect(host)) == []


def test_forcing_a_tool_is_rejected_while_kimi_thinking_is_enabled() -> None:
    body = {"model": "kimi-k2.6", "messages": [{"role": "user", "content": "Read it."}], "tools": FUNCTIONS}
    faults = check(json.dumps(body | {"tool_choice": "required"}).encode(), dialect("kimi"))
    assert [fault.rule for fault in faults] == ["KIM-10"]
