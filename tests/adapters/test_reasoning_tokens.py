"""Check which token figures count. Reasoning tokens count as output, whether or not the completion includes them."""

import json
from typing import Any

import pytest

from actors.adapters.codec import decode
from actors.core.dialects.profiles import dialect
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from tests.runtime.hosting_cases import case

CASE = case("xai-reasoning-tokens")
Json = dict[str, Any]  # Any: an answer under test


def usage_of(name: str, *told: Json, stream: bool = True) -> Usage:
    """Return the usage of an answer with these successive reports."""
    decoder = decode(dialect(name), Binding("a", name, "http://a.test/v1", "", "m"), stream=stream)
    if not stream:
        choice = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
        decoder.feed(json.dumps({"choices": [choice], "usage": told[-1]}).encode())
    else:
        choice = {"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}
        chunks = [{"choices": [choice]}, *({"choices": [], "usage": each} for each in told)]
        for chunk in chunks:
            decoder.feed(f"data: {json.dumps(chunk)}\n\n".encode())
        decoder.feed(b"data: [DONE]\n\n")
    decoder.close()
    return decoder.usage


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", [CASE["dialect"], "openai_compatible", "openrouter"])
def test_reasoning_tokens_counted_outside_the_completion_are_output_tokens(name: str, stream: bool) -> None:
    assert usage_of(name, CASE["usage"], stream=stream) == Usage(1000, 50, 800)


@pytest.mark.parametrize("total", [1020, None, 0, 1021])
def test_reasoning_tokens_within_the_completion_are_counted_once(total: int | None) -> None:
    told = {**CASE["usage"], "total_tokens": total}
    assert usage_of("xai", told) == Usage(1000, 20, 800)


def test_a_later_usage_chunk_without_details_does_not_reset_the_reasoning_token_count() -> None:
    later = {"prompt_tokens": 1000, "completion_tokens": 25, "total_tokens": 1055}
    assert usage_of("xai", CASE["usage"], later) == Usage(1000, 55, 800)


def test_a_token_count_that_the_log_cannot_store_is_ignored() -> None:
    impossible = {
        "prompt_tokens": 2**63,
        "completion_tokens": 10**30,
        "prompt_tokens_details": {"cached_tokens": 2**64},
    }
    assert usage_of("openai_compatible", impossible) == Usage()
    assert usage_of("openai_compatible", CASE["usage"], impossible) == Usage(1000, 50, 800)
