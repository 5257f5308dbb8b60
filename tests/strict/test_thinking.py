"""Check that the strict Anthropic server accepts only unchanged thinking in its original place."""

import copy
import json
from typing import Any

import pytest

from actors.strict.rules import AnthropicProfile, AnthropicSettings, ServerRefusal, sign, validate

Json = dict[str, Any]  # a body under test may be anything

BOUND = AnthropicSettings(AnthropicProfile(prefix_bound=True))
MANUAL: Json = {"type": "enabled", "budget_tokens": 2048}
INVALID = "Invalid `signature` in `thinking` block"


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def use(call_id: str) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "read", "input": {"b": 1, "a": 2}}


def result_message(call_id: str) -> Json:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "r"}]}


def signed_thinking(request: Json, words: str, settings: AnthropicSettings = BOUND, *before: Json) -> Json:
    signature = sign(request, before, words, settings)
    return {"type": "thinking", "thinking": words, "signature": signature}


def start(**more: Any) -> Json:  # any key may be under test
    request = {"model": "m", "max_tokens": 4096, "system": "s", **more}
    request["tools"] = [{"name": "read", "input_schema": {"type": "object"}}]
    request["messages"] = [{"role": "user", "content": [text("u")]}]
    return request


def conversation(rounds: int = 3, settings: AnthropicSettings = BOUND, **more: Any) -> Json:
    """Return a tool loop of the server: each round has thinking and a call."""
    request = start(**more)
    for number in range(rounds):
        call_id = f"toolu_{number}"
        thinking = signed_thinking(request, f"thought {number}", settings)
        request["messages"] += [
            {"role": "assistant", "content": [thinking, use(call_id)]},
            result_message(call_id),
        ]
    return request


def validate_request(request: Json, settings: AnthropicSettings = BOUND, **more: Any) -> ServerRefusal | None:
    return validate(json.dumps(request).encode(), "anthropic", settings=settings, **more)


def rule(request: Json, settings: AnthropicSettings = BOUND, **more: Any) -> str | None:
    refusal = validate_request(request, settings, **more)
    return refusal.rule if refusal else None


def test_thinking_sent_back_unchanged_is_accepted() -> None:
    assert validate_request(conversation()) is None


def edit_system(request: Json) -> None:
    request["system"] = "s, today"


def edit_tools(request: Json) -> None:
    request["tools"][0]["description"] = "d"


def reorder_tools(request: Json) -> None:
    request["tools"] = [{"name": "write", "input_schema": {"type": "object"}}, *request["tools"]]


def edit_id(request: Json) -> None:
    request["messages"][1]["content"][1]["id"] = "toolu_x"
    request["messages"][2]["content"][0]["tool_use_id"] = "toolu_x"


def edit_result(request: Json) -> None:
    request["messages"][2]["content"][0]["content"] = "late"


def reorder_input(request: Json) -> None:
    request["messages"][1]["content"][1]["input"] = {"a": 2, "b": 1}


def insert_text(request: Json) -> None:
    request["messages"][2]["content"].append(text("note"))


def drop_middle(request: Json) -> None:
    del request["messages"][3]["content"][0]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (edit_system, "`system`"),
        (edit_tools, "`tools`"),
        (reorder_tools, "`tools`"),
        (edit_id, "an earlier message"),
        (edit_result, "an earlier message"),
        (reorder_input, "an earlier message"),
        (insert_text, "an earlier message"),
        (drop_middle, "an earlier thinking block"),
    ],
)
def test_bound_thinking_is_rejected_after_any_change_of_earlier_content(change: Any, what: str) -> None:
    request = conversation()
    change(request)
    refusal = validate_request(request)
    assert refusal is not None
    assert refusal.rule == "ANT-44"
    assert refusal.message.endswith(f'"drop_block". What changed: {what}.')
    unbound = AnthropicSettings()
    assert rule(request, unbound) is None


def test_a_dropped_thinking_block_may_not_be_restored() -> None:
    request = conversation(1)
    kept = request["messages"][1]["content"].pop(0)
    second = [signed_thinking(request, "later"), use("toolu_9")]
    request["messages"] += [{"role": "assistant", "content": second}, result_message("toolu_9")]
    assert validate_request(request) is None
    request["messages"][1]["content"].insert(0, kept)
    assert rule(request) == "ANT-44"


def move_breakpoint(request: Json) -> None:
    for message in request["messages"][::2]:
        message["content"][0]["cache_control"] = {"type": "ephemeral"}


def reorder_block_keys(request: Json) -> None:
    message = request["messages"][1]
    message["content"][1] = dict(reversed(message["content"][1].items()))


def drop_first(request: Json) -> None:
    del request["messages"][1]["content"][0]


def drop_last(request: Json) -> None:
    del request["messages"][5]["content"][0]


def drop_all(request: Json) -> None:
    for message in request["messages"][1::2]:
        del message["content"][0]


def append(request: Json) -> None:
    request["messages"][-1]["content"].append(text("go"))


def other_parameters(request: Json) -> None:
    request["max_tokens"] = 7


def drop_mismatches(request: Json) -> None:
    edit_system(request)
    request["thinking"] = {
        "type": "adaptive",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }


@pytest.mark.parametrize(
    "change",
    [
        move_breakpoint,
        reorder_block_keys,
        drop_first,
        drop_last,
        drop_all,
        append,
        other_parameters,
        drop_mismatches,
    ],
)
def test_changes_outside_the_prefix_keep_bound_thinking_valid(change: Any) -> None:
    request = conversation()
    change(request)
    betas = frozenset({"thinking-binding-controls-2026-08-01"})
    settings = AnthropicSettings(AnthropicProfile(prefix_bound=True), betas=betas)
    assert validate_request(request, settings) is None


@pytest.mark.parametrize(
    "settings",
    [
        AnthropicSettings(secret=b"another host"),
        AnthropicSettings(account="account-2"),
    ],
)
def test_foreign_thinking_is_rejected(settings: AnthropicSettings) -> None:
    refusal = validate_request(conversation(), settings)
    assert refusal is not None
    assert (refusal.rule, refusal.message) == ("ANT-42", f"messages.1.content.0: {INVALID}")


def test_thinking_of_another_model_is_rejected_only_in_strict_mode() -> None:
    request = conversation() | {"model": "newer"}
    assert rule(request) == "ANT-42"
    assert rule(request, mode="hosted") is None


@pytest.mark.parametrize("signature", ["", "x", "AAAA", "=", "\u00e9"])
def test_a_corrupted_signature_is_rejected(signature: str) -> None:
    request = conversation(1)
    request["messages"][1]["content"][0]["signature"] = signature
    assert rule(request) == "ANT-42"


def test_thinking_without_text_needs_a_signature() -> None:
    request = start()
    silent = signed_thinking(request, "")
    request["messages"] += [
        {"role": "assistant", "content": [silent, use("toolu_0")]},
        result_message("toolu_0"),
    ]
    assert validate_request(request) is None
    silent["signature"] = ""
    refusal = validate_request(request)
    assert refusal is not None
    assert refusal.rule == "ANT-43"
    assert refusal.message == (
        "messages.1.content.0.thinking.thinking: each thinking block must contain thinking"
    )


def test_thinking_of_the_latest_assistant_message_may_not_be_edited() -> None:
    request = conversation(2)
    edited = copy.deepcopy(request)
    edited["messages"][3]["content"][0]["thinking"] = "shorter"
    refusal = validate_request(edited)
    assert refusal is not None
    assert refusal.message == (
        "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message "
        "cannot be modified. These blocks must remain as they were in the original response."
    )
    request["messages"][1]["content"][0]["thinking"] = "shorter"
    assert rule(request) == "ANT-42"


def test_thinking_of_the_latest_assistant_message_may_not_be_reordered() -> None:
    request = start()
    first = signed_thinking(request, "one")
    second = signed_thinking(request, "two", BOUND, first)
    content = [first, second, use("toolu_0")]
    request["messages"] += [{"role": "assistant", "content": content}, result_message("toolu_0")]
    assert validate_request(request) is None
    content[0], content[1] = content[1], content[0]
    assert rule(request) == "ANT-41"


def test_thinking_must_come_first_unless_the_model_interleaves_thinking() -> None:
    request = start()
    late = signed_thinking(request, "t", BOUND, text("say"))
    request["messages"].append({"role": "assistant", "content": [text("say"), late, use("toolu_0")]})
    request["messages"].append(result_message("toolu_0"))
    refusal = validate_request(request)
    assert refusal is not None
    assert refusal.message == (
        "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must be "
        "`thinking` or `redacted_thinking`. Found `text`."
    )
    interleaving = AnthropicSettings(AnthropicProfile(prefix_bound=True, interleaved=True))
    assert validate_request(request, interleaving) is None
    assert validate_request(request, mode="hosted") is None


def test_manual_thinking_requires_thinking_at_the_start_of_an_open_tool_loop() -> None:
    request = conversation(2, thinking=MANUAL)
    assert validate_request(request) is None
    foreign = copy.deepcopy(request)
    del foreign["messages"][1]["content"][0]
    refusal = validate_request(foreign)
    assert refusal is not None
    assert refusal.rule == "ANT-40"
    assert refusal.message.startswith(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    )
    del foreign["thinking"]
    assert validate_request(foreign) is None
    foreign["thinking"] = {"type": "adaptive"}
    assert validate_request(foreign) is None


def test_a_closed_tool_loop_requires_no_thinking() -> None:
    request = start(thinking=MANUAL)
    request["messages"] += [{"role": "assistant", "content": [use("toolu_0")]}, result_message("toolu_0")]
    assert rule(request) == "ANT-40"
    request["messages"] += [
        {"role": "assistant", "content": [text("t")]},
        {"role": "user", "content": [text("u")]},
    ]
    assert validate_request(request) is None


def test_a_server_that_trusts_foreign_signatures_accepts_them() -> None:
    request = conversation(1)
    request["messages"][1]["content"][0]["signature"] = "from elsewhere"
    assert validate_request(request, AnthropicSettings(signatures="trust")) is None
