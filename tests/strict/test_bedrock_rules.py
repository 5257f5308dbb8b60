"""Check the strict Bedrock rules for signed reasoning and models."""

from dataclasses import replace
from typing import Any

import pytest

from actors.strict.rules import AnthropicProfile, BedrockProfile, BedrockSettings, validate
from actors.strict.rules.bedrock import sign_reasoning
from tests.rules.converse import OK, body, model, reasoning, text, user
from tests.rules.row import Json, encode_request

DEFAULT = BedrockSettings()


def conversation(**more: Any) -> Json:  # Any: any key may be under test
    """Return a request with reasoning signed for its first message."""
    asked = body(user(text()))
    sig = sign_reasoning(asked, [], "hm", replace(DEFAULT, **more), "strict")
    return body(user(text()), model(reasoning(sig), text("t")), user(text("go")))


def test_reasoning_signed_for_the_same_organisation_and_model_is_accepted() -> None:
    assert validate(encode_request(conversation()), "bedrock", settings=DEFAULT) is None


@pytest.mark.parametrize(
    "more", [{"organisation": "other"}, {"secret": b"other"}, {"model": "anthropic.other"}]
)
def test_reasoning_of_another_organisation_host_or_model_is_rejected(more: dict[str, Any]) -> None:
    refusal = validate(encode_request(conversation(**more)), "bedrock", settings=DEFAULT)
    assert refusal is not None
    assert refusal.rule == "BED-10"
    assert "Invalid `signature`" in refusal.message


def test_bound_reasoning_is_rejected_if_the_messages_before_it_changed() -> None:
    bound = BedrockSettings(BedrockProfile(AnthropicProfile(prefix_bound=True)))
    request = conversation()
    assert validate(encode_request(request), "bedrock", settings=bound) is None
    changed = {**request, "messages": [user(text("other")), *request["messages"][1:]]}
    refusal = validate(encode_request(changed), "bedrock", settings=bound)
    assert refusal is not None
    assert "bound to a different conversation" in refusal.message


def test_the_last_message_may_be_a_model_message_for_models_of_other_vendors() -> None:
    nova = BedrockSettings(BedrockProfile(upstream=None))
    assert validate(encode_request(body(user(text()), model(text("t")))), "bedrock", settings=nova) is None


def test_an_unknown_model_is_rejected() -> None:
    others = BedrockSettings(models={"other": BedrockProfile()})
    refusal = validate(encode_request(OK), "bedrock", settings=others)
    assert refusal is not None
    assert (refusal.rule, refusal.message) == ("BED-14", "The provided model identifier is invalid.")
    assert (refusal.status, refusal.type) == (400, "ValidationException")
    assert validate(encode_request(OK), "bedrock", settings=replace(others, model="other")) is None
