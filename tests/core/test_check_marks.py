"""Check how the judge counts cache marks and where it forbids them."""

import json
from typing import Any

import pytest

from actors.core.check import check
from actors.core.dialects.profiles import dialect

Json = dict[str, Any]  # a body under test may be anything
MARK: Json = {"type": "ephemeral"}
HOUR: Json = {"type": "ephemeral", "ttl": "1h"}
POINT: Json = {"cachePoint": {"type": "default"}}
HOUR_POINT: Json = {"cachePoint": {"type": "default", "ttl": "1h"}}
TOOL: Json = {"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}
SPEC: Json = {"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}


def text(mark: Json | None = None, words: str = "a") -> Json:
    return {"type": "text", "text": words} | ({} if mark is None else {"cache_control": mark})


def messages(*blocks: Json) -> list[Json]:
    return [{"role": "user", "content": list(blocks)}]


def rules(name: str, **body: Any) -> list[str | None]:  # Any: keys of a body under test
    return [fault.rule for fault in check(json.dumps({"model": "m", **body}).encode(), dialect(name))]


def anthropic(**body: Any) -> list[str | None]:  # Any: likewise
    return rules("anthropic", max_tokens=9, **body)


@pytest.mark.requirement("PROMISE-14")
def test_at_most_four_cache_marks_are_accepted() -> None:
    four = [text(MARK) for _ in range(4)]
    assert anthropic(messages=messages(*four)) == []
    assert anthropic(messages=messages(*four, text(MARK))) == ["ANT-32"]
    assert anthropic(messages=messages(*four), cache_control=MARK) == ["ANT-32"]
    assert anthropic(messages=messages(*four[1:]), cache_control=MARK) == []
    two = {"tools": [{**TOOL, "cache_control": MARK}], "system": [text(MARK)]}
    assert anthropic(messages=messages(*four[2:]), **two) == []
    assert anthropic(messages=messages(*four[1:]), **two) == ["ANT-32"]
    assert rules("openrouter", messages=messages(*four)) == []
    assert rules("openrouter", messages=messages(*four, text(MARK))) == ["ANT-32"]
    points = [{"text": "a"}, POINT]
    assert rules_of_bedrock(messages=messages(*points * 4)) == []
    assert rules_of_bedrock(messages=messages(*points * 5)) == ["BED-10"]
    head: Json = {"toolConfig": {"tools": [SPEC, POINT]}, "system": [{"text": "a"}, POINT]}
    assert rules_of_bedrock(messages=messages(*points * 2), **head) == []
    assert rules_of_bedrock(messages=messages(*points * 3), **head) == ["BED-10"]


def rules_of_bedrock(**body: Any) -> list[str | None]:  # Any: likewise
    return [fault.rule for fault in check(json.dumps(body).encode(), dialect("bedrock"))]


def test_cache_marks_of_one_hour_must_precede_cache_marks_of_five_minutes() -> None:
    assert anthropic(messages=messages(text(HOUR), text(MARK))) == []
    assert anthropic(messages=messages(text(MARK), text(HOUR))) == ["ANT-34"]
    assert anthropic(messages=messages(text(MARK)), cache_control=HOUR) == ["ANT-34"]
    assert anthropic(messages=messages(text(HOUR)), cache_control=MARK) == []
    assert rules("openrouter", messages=messages(text(MARK), text(HOUR))) == ["ANT-34"]
    tools = {"tools": [SPEC, HOUR_POINT]}
    said = messages({"text": "a"}, POINT)
    assert rules_of_bedrock(messages=said, toolConfig=tools, system=[{"text": "a"}, POINT]) == []
    late = {"tools": [SPEC, POINT]}
    assert rules_of_bedrock(messages=said, toolConfig=late, system=[{"text": "a"}, HOUR_POINT]) == ["BED-10"]


def test_a_cache_mark_on_thinking_or_blank_text_is_reported_as_a_fault() -> None:
    thought = {"type": "thinking", "thinking": "t", "signature": "s", "cache_control": MARK}
    said = [*messages(text()), {"role": "assistant", "content": [thought, text()]}, *messages(text())]
    assert anthropic(messages=said) == ["ANT-34"]
    assert "ANT-33" in anthropic(messages=messages(text(MARK, "")))
    assert rules("openrouter", messages=messages(text(), text(MARK, " "))) == ["ANT-33"]


@pytest.mark.parametrize("mark", [{"type": "forever"}, {"type": "ephemeral", "ttl": "2h"}, "yes"])
def test_a_malformed_cache_mark_is_reported_as_a_fault(mark: object) -> None:
    marked = messages({**text(), "cache_control": mark})
    assert anthropic(messages=marked) == ["ALL-02"]
    assert rules("openrouter", messages=marked) == ["ALL-02"]
    assert anthropic(messages=messages(text()), cache_control=mark) == ["ALL-02"]
    assert rules_of_bedrock(messages=messages({"text": "a"}, {"cachePoint": mark}))[-1] == "ALL-02"


def test_chat_completions_accepts_cache_marks_only_for_anthropic_upstreams() -> None:
    assert rules("openai_chat", messages=messages(text(MARK))) == ["ALL-07"]
