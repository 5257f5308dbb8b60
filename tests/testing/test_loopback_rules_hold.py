"""Whatever body comes, the judge answers; and what the strict mode takes, the hosted mode takes."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.testing.rules import sign, validate
from actors.testing.rules.base import AnthropicSettings

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


SOUND = {"openai_chat": OPENAI, "anthropic": _anthropic()}


def places(value: Json) -> Iterator[tuple[Json, Json]]:
    """Yield (container, key) of every value inside `value`, in a fixed order."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from places(inner)


SCALARS = st.none() | st.booleans() | st.integers(-2, 5000) | st.floats(-3, 3) | st.text("ab _.", max_size=5)
NAMES = st.sampled_from(["type", "text", "id", "role", "content", "thinking", "a", "function"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)


@st.composite
def damaged(draw: st.DrawFn, sound: Json) -> Json:
    """A sound body with one to three values replaced, removed, repeated or moved."""
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
def test_the_body_the_damage_starts_from_is_sound(dialect: str) -> None:
    assert validate(json.dumps(SOUND[dialect]).encode(), dialect) is None


@pytest.mark.parametrize("dialect", SOUND)
@settings(max_examples=200, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_damaged_body_gets_a_verdict_and_strict_is_the_stricter(
    data: st.DataObject, dialect: str
) -> None:
    body = json.dumps(data.draw(damaged(SOUND[dialect]))).encode()
    strict = validate(body, dialect)
    hosted = validate(body, dialect, mode="hosted")
    assert strict is not None or hosted is None
    if strict is not None:
        assert strict.message
        assert 400 <= strict.status < 500


@settings(max_examples=200, deadline=None, database=None)
@given(raw=st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_at_all_get_a_verdict(raw: bytes) -> None:
    assert validate(raw, "openai_chat") is not None
    assert validate(raw, "anthropic") is not None
