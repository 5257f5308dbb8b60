"""Check the simulated prompt cache of each provider, and the ideal cache counted alongside."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from actors.strict.loopback import HttpRequest
from actors.strict.server import LoopbackServer
from actors.testing import (
    AnthropicProfile,
    AnthropicServer,
    AnthropicSettings,
    BedrockServer,
    CompatibleServer,
    CompatibleSettings,
    GeminiServer,
    OpenAIServer,
    OpenRouterServer,
    PromptCache,
    ResponsesServer,
)

Json = dict[str, Any]  # a body under test may be anything
MARK: Json = {"type": "ephemeral"}
HOUR: Json = {"type": "ephemeral", "ttl": "1h"}
MINUTES = 60


def words(tokens: int, letter: str = "x") -> str:
    return letter * 4 * tokens


def text(content: str, mark: Json | None = None) -> Json:
    return {"type": "text", "text": content} | ({} if mark is None else {"cache_control": mark})


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def model_message(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


@dataclass
class Host:
    """A server without a socket, and a clock that moves only when set."""

    make: Callable[..., LoopbackServer] = AnthropicServer
    path: str = "/v1/messages"
    options: Json = field(default_factory=dict)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.cache = PromptCache(clock=lambda: self.now)
        self.server = self.make(cache=self.cache, **self.options)

    def usage(self, body: Json, headers: Mapping[str, str] | None = None) -> Json:
        named = {} if "/model" in self.path else {"model": "m"}
        encoded = json.dumps({**named, **body}).encode()
        answer = self.server.answer(HttpRequest("POST", self.path, headers or {}, encoded, False))
        told = json.loads(answer.parts[0])
        assert answer.status == 200, told
        usage: Json = told.get("usage") or told["usageMetadata"]
        return usage

    def read(self, *messages: Json, headers: Mapping[str, str] | None = None, **more: Any) -> int:
        """Return the cached tokens that an Anthropic host reports."""
        usage = self.usage({"max_tokens": 2048, "messages": list(messages), **more}, headers)
        assert min(usage["input_tokens"], usage["cache_creation_input_tokens"]) >= 0
        return int(usage["cache_read_input_tokens"])


LONG = words(2000)
ASK = user(text(LONG, MARK))
ASKED = user(text(LONG))


def test_a_marked_prefix_is_read_from_the_cache_and_reported_as_usage() -> None:
    host = Host()
    first = host.usage({"max_tokens": 9, "messages": [ASK]})
    written = first["cache_creation_input_tokens"]
    assert written >= 2000
    assert first["cache_read_input_tokens"] == first["input_tokens"] == 0
    more = [ASKED, model_message(text("answer")), user(text(words(500, "y"), MARK))]
    second = host.usage({"max_tokens": 9, "messages": more})
    assert second["cache_read_input_tokens"] == written
    assert second["cache_creation_input_tokens"] >= 500
    assert second["input_tokens"] == 0
    third = host.usage(
        {"max_tokens": 9, "messages": [*more, model_message(text("a")), user(text(words(300)))]}
    )
    assert third["cache_read_input_tokens"] == written + second["cache_creation_input_tokens"]
    assert (third["input_tokens"] >= 300, third["cache_creation_input_tokens"]) == (True, 0)
    assert host.cache.read_tokens == written + third["cache_read_input_tokens"]
    assert host.cache.ideal_tokens == written * 2 + second["cache_creation_input_tokens"]
    assert host.cache.prompt_tokens > host.cache.ideal_tokens


def test_without_a_cache_mark_nothing_is_read_and_the_ideal_count_shows_the_miss() -> None:
    host = Host()
    assert host.read(ASKED) == 0
    assert host.read(ASKED, model_message(text("a")), user(text("b"))) == 0
    assert (host.cache.read_tokens, host.cache.written_tokens) == (0, 0)
    assert host.cache.ideal_tokens >= 2000


def test_moving_a_cache_mark_does_not_change_the_prompt() -> None:
    host = Host()
    host.read(ASK)
    plain: Json = {"role": "user", "content": LONG}
    assert host.read(plain, model_message(text("a")), user(text("b", MARK))) >= 2000


def test_a_cache_mark_on_the_request_applies_to_the_last_block_that_may_have_a_mark() -> None:
    host = Host()
    host.read(ASKED, cache_control=MARK)
    assert host.read(ASKED, model_message(text("a")), user(text("b")), cache_control=MARK) >= 2000
    assert (
        host.read(
            ASKED, model_message(text("a")), user(text("b")), model_message(text("c")), user(text("d", MARK))
        )
        >= 2000
    )


def test_a_cache_entry_is_found_up_to_20_positions_before_a_mark() -> None:
    for between, found in ((18, True), (19, True), (20, False)):
        host = Host()
        host.read(ASK)
        answer = model_message(*(text(f"piece {number}") for number in range(between)))
        assert (host.read(ASKED, answer, user(text("next", MARK))) > 0) is found
        assert host.cache.ideal_tokens > 0


def test_consecutive_calls_or_results_count_as_one_cache_position() -> None:
    host = Host()
    host.read(ASK)
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "read", "input": {}} for n in range(60)]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "r"} for call in calls]
    pieces = [text(f"piece {number}") for number in range(17)]
    messages = [ASKED, model_message(*pieces, *calls), user(*results, text("next", MARK))]
    assert host.read(*messages) > 0


def test_a_mark_at_the_end_of_the_previous_request_always_finds_its_cache_entry() -> None:
    host = Host()
    host.read(ASK)
    answer = model_message(*(text(f"piece {number}") for number in range(100)))
    assert host.read(ASK, answer, user(text("next", MARK))) > 0


@pytest.mark.parametrize(("least", "tokens", "kept"), [(1024, 1000, 0), (1024, 1100, 1), (4096, 4000, 0)])
def test_a_prompt_below_the_minimum_of_its_model_is_not_cached(least: int, tokens: int, kept: int) -> None:
    host = Host(options={"settings": AnthropicSettings(models={"m": AnthropicProfile(cache_minimum=least)})})
    ask = user(text(words(tokens), MARK))
    host.read(ask)
    assert min(host.read(ask), 1) == kept
    assert min(host.cache.ideal_tokens, 1) == kept


def test_a_cache_entry_lives_5_minutes_after_its_last_use() -> None:
    host = Host()
    host.read(ASK)
    for _ in range(3):
        host.now += 4 * MINUTES
        assert host.read(ASK) > 0
    ideal = host.cache.ideal_tokens
    host.now += 5 * MINUTES
    assert host.read(ASK) == 0
    assert host.cache.ideal_tokens == ideal


def test_reading_through_a_later_mark_extends_the_life_of_a_cache_entry() -> None:
    host = Host()
    host.read(ASK)
    for answer in "ab":
        host.now += 4 * MINUTES
        assert host.read(ASKED, model_message(text(answer)), user(text("next", MARK))) > 0


def test_a_cache_entry_may_be_kept_for_an_hour() -> None:
    host = Host()
    ask = user(text(LONG, HOUR))
    host.read(ask)
    host.now += 59 * MINUTES
    assert host.read(ask) > 0
    assert host.cache.ideal_tokens > 0
    host.now += 60 * MINUTES
    assert host.read(ask) == 0


TOOLS = [{"name": "read", "description": words(1500), "input_schema": {"type": "object"}}]
CHOICE: Json = {"type": "any"}


@pytest.mark.parametrize(
    "change",
    [
        {"tool_choice": {"type": "any"}},
        {"thinking": {"type": "adaptive"}},
        {"output_config": {"effort": "low"}},
        {"headers": {"anthropic-beta": "context-1m"}},
    ],
)
def test_a_changed_parameter_invalidates_only_the_cached_messages(change: Json) -> None:
    host = Host()
    system = [text(words(1500), MARK)]
    whole = host.usage({"max_tokens": 9, "messages": [ASK], "system": system, "tools": TOOLS})
    assert host.read(ASK, system=system, tools=TOOLS) == whole["cache_creation_input_tokens"] > 5000
    assert 3000 <= host.read(ASK, system=system, tools=TOOLS, **change) < 5000
    ideal = host.cache.ideal_tokens
    assert ideal == 2 * whole["cache_creation_input_tokens"]  # its prompt was the same both times


def test_an_explicit_default_parameter_keeps_the_cache_valid() -> None:
    host = Host()
    host.read(ASK, tools=TOOLS)
    same: Json = {"tool_choice": {"type": "auto"}, "thinking": {"type": "disabled"}, "temperature": 0.5}
    assert host.read(ASK, tools=TOOLS, **same) >= 2000


def test_changed_tools_invalidate_the_complete_cache_even_in_the_ideal_count() -> None:
    host = Host()
    host.read(ASK, tools=TOOLS)
    assert host.read(ASK, tools=[{**TOOLS[0], "description": words(1500, "y")}]) == 0
    assert host.cache.ideal_tokens == 0


def test_a_changed_prompt_is_read_from_the_cache_up_to_the_mark_before_the_change() -> None:
    host = Host()
    host.read(ASK, model_message(text("a")), user(text(words(3000, "y"), MARK)))
    read = host.read(ASK, model_message(text("b")), user(text(words(3000, "y"), MARK)))
    assert 2000 <= read < 3000


def test_each_model_has_its_own_cache() -> None:
    host = Host()
    host.read(ASK)
    assert host.read(ASK, model="other") == 0
    assert host.cache.ideal_tokens == 0


def test_a_cache_mark_inside_a_tool_result_applies_to_the_result() -> None:
    host = Host()
    call = {"type": "tool_use", "id": "t", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [text(LONG, MARK)]}
    plain = {"type": "tool_result", "tool_use_id": "t", "content": [text(LONG)]}
    host.read(user(text("u")), model_message(call), user(result))
    assert (
        host.read(
            user(text("u")), model_message(call), user(plain), model_message(text("a")), user(text("b", MARK))
        )
        > 2000
    )


def test_the_number_of_cache_entries_is_bounded() -> None:
    host = Host()
    host.cache = host.server.cache = PromptCache(clock=lambda: 0.0, limit=2)
    first, *others = (user(text(words(1500, letter), MARK)) for letter in "abc")
    for ask in (first, *others):
        host.read(ask)
    assert [min(host.read(ask), 1) for ask in (*others, first)] == [1, 1, 0]


def test_rejected_requests_and_token_counts_are_not_cached() -> None:
    host = Host()
    body = json.dumps({"model": "m", "messages": [ASK]}).encode()
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        host.server.answer(HttpRequest("POST", path, {}, body, False))
    assert host.cache.prompt_tokens == 0
    assert host.read(ASK) == 0


# --- Bedrock and OpenRouter

POINT: Json = {"cachePoint": {"type": "default"}}
CONVERSE = "/model/m/converse"


def test_bedrock_caches_at_cache_points() -> None:
    host = Host(BedrockServer, CONVERSE)
    ask: Json = {"role": "user", "content": [{"text": LONG}, POINT]}
    first = host.usage({"messages": [ask]})
    assert first["cacheWriteInputTokens"] >= 2000
    assert first["inputTokens"] + first["cacheWriteInputTokens"] + 7 == first["totalTokens"]
    answer: Json = {"role": "assistant", "content": [{"text": "a"}]}
    more = [{**ask, "content": [{"text": LONG}]}, answer, {"role": "user", "content": [{"text": "b"}, POINT]}]
    assert host.usage({"messages": more})["cacheReadInputTokens"] == first["cacheWriteInputTokens"]
    assert "cacheReadInputTokens" not in host.usage({"messages": [{**ask, "content": [{"text": LONG}]}]})


def test_bedrock_caches_tools_and_system_at_their_own_points() -> None:
    host = Host(BedrockServer, CONVERSE)
    spec = {"name": "read", "description": words(1500), "inputSchema": {"json": {"type": "object"}}}
    body: Json = {
        "system": [{"text": words(1500)}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
        "toolConfig": {"tools": [{"toolSpec": spec}, {"cachePoint": {"type": "default", "ttl": "1h"}}]},
        "messages": [{"role": "user", "content": [{"text": "one"}]}],
    }
    host.usage(body)
    host.now += 30 * MINUTES
    body["messages"] = [{"role": "user", "content": [{"text": "two"}]}]
    assert host.usage(body)["cacheReadInputTokens"] >= 3000


CHAT = "/api/v1/chat/completions"


def test_openrouter_forwards_cache_marks_only_to_anthropic() -> None:
    system: Json = {"role": "system", "content": [text(LONG, MARK)]}
    body: Json = {"model": "anthropic/claude", "messages": [system, {"role": "user", "content": "one"}]}
    host = Host(OpenRouterServer, CHAT)
    first = host.usage(body)["prompt_tokens_details"]
    assert (first["cached_tokens"], first["cache_write_tokens"] >= 2000) == (0, True)
    body["messages"][1]["content"] = "two"
    assert host.usage(body)["prompt_tokens_details"]["cached_tokens"] == first["cache_write_tokens"]
    system["content"] = LONG
    assert "prompt_tokens_details" not in host.usage(body)
    body["model"] = "openai/gpt"
    host.usage(body)
    assert host.usage(body)["prompt_tokens_details"] == {"cached_tokens": 1920, "cache_write_tokens": 0}


def refusal(server: LoopbackServer, path: str, body: Json) -> str:
    request = HttpRequest(
        "POST", path, {}, json.dumps({"model": "m", "max_tokens": 9, **body}).encode(), False
    )
    assert server.answer(request).status == 400
    told = server.refusals[-1]
    return f"{told.rule} {told.message}"


FIVE = [text(str(number), MARK) for number in range(5)]
MOST = "A maximum of 4 blocks with cache_control may be provided. Found 5."


def test_invalid_cache_marks_are_rejected() -> None:
    anthropic, path = AnthropicServer(), "/v1/messages"
    assert MOST in refusal(anthropic, path, {"messages": [user(*FIVE)]})
    assert MOST in refusal(anthropic, path, {"messages": [user(*FIVE[1:])], "cache_control": MARK})
    assert refusal(anthropic, path, {"messages": [user(text(" ", MARK))]}).startswith("ANT-33")
    thought = {"type": "thinking", "thinking": "t", "signature": "s", "cache_control": MARK}
    messages = [user(text("u")), model_message(thought, text("a")), user(text("u"))]
    assert refusal(anthropic, path, {"messages": messages}).startswith("ANT-34")
    assert refusal(anthropic, path, {"messages": [user(text("a", MARK), text("b", HOUR))]}).startswith(
        "ANT-34"
    )


def test_invalid_cache_points_are_rejected_in_the_form_of_bedrock() -> None:
    def refused(*blocks: Json) -> str:
        body = json.dumps({"messages": [{"role": "user", "content": list(blocks)}]}).encode()
        assert server.answer(HttpRequest("POST", CONVERSE, {}, body, False)).status == 400
        return f"{server.refusals[-1].rule} {server.refusals[-1].message}"

    server = BedrockServer()
    assert f"BED-10 The model returned the following errors: {MOST}" in refused(*[{"text": "a"}, POINT] * 5)
    assert refused({"text": "a"}, {"cachePoint": {"type": "other"}}).startswith("BED-S03")
    assert refused({"text": "a"}, {"cachePoint": {"type": "default", "ttl": "2h"}}).startswith("BED-S03")


def test_openrouter_rejects_cache_marks_that_anthropic_rejects() -> None:
    server = OpenRouterServer()
    assert refusal(server, CHAT, {"messages": [user(*FIVE)]}) == f"ORT-05 {MOST}"
    assert refusal(server, CHAT, {"messages": [user(text("", MARK), text("a"))]}).startswith("ORT-06")
    assert refusal(server, CHAT, {"messages": [user(text("a", MARK), text("b", HOUR))]}).startswith("ORT-07")
    calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        for n in range(5)
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": [text("r", MARK)]} for call in calls]
    messages = [user(text("u")), {"role": "assistant", "tool_calls": calls}, *results]
    assert refusal(server, CHAT, {"messages": messages}) == f"ORT-05 {MOST}"
    body = json.dumps({"model": "openai/gpt", "messages": [user(*FIVE)]}).encode()
    assert server.answer(HttpRequest("POST", CHAT, {}, body, False)).status == 200


# --- automatic caches


def vendor(name: str) -> Callable[..., LoopbackServer]:
    return lambda **options: CompatibleServer(vendor=name, **options)


V1 = "/v1/chat/completions"
AUTOMATIC: Mapping[str, tuple[Callable[..., LoopbackServer], str]] = {
    "openai_chat": (OpenAIServer, V1),
    "openai_responses": (ResponsesServer, "/v1/responses"),
    "xai": (vendor("xai"), V1),
    "mistral": (vendor("mistral"), V1),
    "kimi": (vendor("kimi"), V1),
    "deepseek": (vendor("deepseek"), V1),
    "gemini": (GeminiServer, "/v1beta/models/m:generateContent"),
}


def body_of(name: str, *texts: str, key: str | None = None) -> Json:
    keyed = {} if key is None else {"prompt_cache_key": key}
    roles = ["user" if at % 2 == 0 else "assistant" for at in range(len(texts))]
    if name == "gemini":
        said = [
            {"role": role.replace("assistant", "model"), "parts": [{"text": told}]}
            for role, told in zip(roles, texts, strict=True)
        ]
        return {"contents": said}
    messages = [{"role": role, "content": told} for role, told in zip(roles, texts, strict=True)]
    return keyed | ({"input": messages} if name == "openai_responses" else {"messages": messages})


def cached(usage: Json) -> int:
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    flat = ("cachedContentTokenCount", "prompt_cache_hit_tokens", "cached_tokens")
    return int(details.get("cached_tokens") or next((usage[key] for key in flat if key in usage), 0))


def cached_tokens(name: str, host: Host, *texts: str, key: str | None = "lane") -> int:
    body = body_of(name, *texts, key=key if name not in ("gemini", "deepseek") else None)
    return cached(host.usage(body))


@pytest.mark.parametrize("name", AUTOMATIC)
def test_an_automatic_cache_reads_the_previous_prompt_in_fixed_steps(name: str) -> None:
    host = Host(*AUTOMATIC[name])
    assert cached_tokens(name, host, LONG) == 0
    assert cached_tokens(name, host, LONG, "answer", "more") == 1920
    assert cached_tokens(name, host, words(900), "answer", "more") == 0
    assert cached_tokens(name, host, words(1500) + words(1500, "y")) == 1408
    assert host.cache.ideal_tokens == host.cache.read_tokens == 1920 + 1408
    host.now += 5 * MINUTES
    assert cached_tokens(name, host, LONG) == 0
    assert host.cache.ideal_tokens == 1920 + 1408


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("deepseek", {"prompt_cache_hit_tokens": 1920, "prompt_cache_miss_tokens": 87}),
        ("kimi", {"cached_tokens": 1920}),
        ("xai", {"prompt_tokens_details": {"cached_tokens": 1920, "cache_write_tokens": 0}}),
        ("openai_responses", {"input_tokens_details": {"cached_tokens": 1920, "cache_write_tokens": 0}}),
    ],
)
def test_cached_tokens_are_reported_in_the_field_of_the_vendor(name: str, fields: Json) -> None:
    host = Host(*AUTOMATIC[name])
    cached_tokens(name, host, LONG)
    key = None if name == "deepseek" else "lane"
    usage = host.usage(body_of(name, LONG, key=key))
    assert usage.items() >= fields.items()


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "xai", "mistral", "kimi"])
def test_a_cache_key_routes_requests_to_the_machine_with_the_warm_cache(name: str) -> None:
    host = Host(*AUTOMATIC[name])
    assert [cached_tokens(name, host, LONG, key="a") for _ in range(3)] == [0, 1920, 1920]
    assert cached_tokens(name, host, LONG, key="b") == 0
    assert host.cache.ideal_tokens == host.cache.read_tokens
    keyless = [cached_tokens(name, host, LONG, key=None) for _ in range(5)]
    assert keyless == [0, 0, 0, 0, 1920]
    assert host.cache.ideal_tokens - host.cache.read_tokens == 3 * 1920


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "mistral"])
def test_a_cache_key_has_at_most_64_characters(name: str) -> None:
    make, path = AUTOMATIC[name]
    server = make()
    for length, status in ((64, 200), (65, 400)):
        body = json.dumps({"model": "m", **body_of(name, "hi", key="k" * length)}).encode()
        assert server.answer(HttpRequest("POST", path, {}, body, False)).status == status


def test_a_host_without_a_cache_reports_no_cached_tokens() -> None:
    host = Host(vendor("qwen"), "/compatible-mode/v1/chat/completions")
    assert [cached(host.usage(body_of("qwen", LONG))) for _ in range(2)] == [0, 0]
    assert host.cache.prompt_tokens == 0


def test_openrouter_caches_automatically_for_upstreams_other_than_anthropic() -> None:
    settings = CompatibleSettings(upstream="OpenAI")
    host = Host(OpenRouterServer, CHAT, {"settings": settings, "upstreams": ["OpenAI"]})
    assert [cached(host.usage(body_of("openrouter", LONG))) for _ in range(2)] == [0, 1920]
