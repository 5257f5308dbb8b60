"""Validate requests to vendors of Chat Completions with external checkers.

mistral-common is the validator of Mistral's own servers. Each of its generations validates complete transcripts, in
the mode for serving. Request types of vendors' SDKs know every field; turnsafe knows pairing. The fields that a vendor
adds to OpenAI's messages are removed before OpenAI's request type validates them.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest
import turnsafe
from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import MistralRequestValidator, ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from mistralai.client.models.chatcompletionstreamrequest import ChatCompletionStreamRequestTypedDict
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from pydantic import ValidationError

from actors.core.dialects.profiles import PROFILES
from actors.core.render import ThinkingPolicy
from actors.transcripts import dialect
from tests.adapters import wanted
from tests.adapters.vendor_types import nonconformity
from tests.commands.at_scale import share
from tests.generated.histories import READERS, history

Json = dict[str, Any]  # Any: JSON
COUNT = share(600)
VENDORS = [
    name for name, profile in PROFILES.items() if profile.family == "openai_chat" and name != "mistral"
]
BOTH = "Assistant message must have either content or tool_calls, but not both."
OF_THE_HOST = (
    *(
        "prompt_cache_key",
        "stop",
        "top_k",
        "frequency_penalty",
        "presence_penalty",
        "logprobs",
        "top_logprobs",
    ),
    *("metadata", "service_tier"),
)
"""Keys that never reach a tokenizer. The SDK's type knows them."""
OWN_SETTINGS = ("thinking", "reasoning", "provider", "top_k")
OWN_FIELDS = ("reasoning_content", "reasoning_details")


@lru_cache(maxsize=2)
def bodies(name: str, thinking: ThinkingPolicy = "native", *, stream: bool = True) -> list[Json]:
    """Yield the requests of generated histories."""
    return list(_bodies(name, thinking, stream=stream))


def _bodies(name: str, thinking: ThinkingPolicy, *, stream: bool) -> Iterator[Json]:
    for seed in range(COUNT):
        yield wanted.body(history, seed, dialect(name), READERS[name], rendering=thinking, stream=stream)


def validation_error(body: Json, validator: MistralRequestValidator[Any, Any, Any, Any]) -> str | None:
    """Return the error of Mistral's validator for a body, or None."""
    messages = [_flatten_thinking(message) for message in body["messages"]]
    known = {key: value for key, value in body.items() if key not in OF_THE_HOST}
    try:
        validator.validate_request(ChatCompletionRequest.model_validate({**known, "messages": messages}))
    except (MistralCommonException, ValidationError) as refused:
        return str(refused)
    return None


def _flatten_thinking(message: Json) -> Json:
    """Return a message with text chunks joined to a string, as mistral-common requires."""
    content = message.get("content")
    if not isinstance(content, list) or message["role"] != "assistant":
        return message
    return {**message, "content": [_chunk(chunk) for chunk in content]}


def _chunk(chunk: Json) -> Json:
    if chunk["type"] != "thinking":
        return chunk
    return {"type": "thinking", "thinking": "".join(part["text"] for part in chunk["thinking"])}


@pytest.mark.requirement("PROMISE-1", "REQ-915-006", "REQ-915-007", "REQ-915-008", "REQ-915-036")
@pytest.mark.parametrize(
    ("generation", "thinking"), [(3, "drop"), (7, "drop"), (11, "drop"), (13, "native"), (15, "native")]
)
def test_every_version_of_mistrals_validator_accepts_our_requests(
    generation: int, thinking: ThinkingPolicy
) -> None:
    validator = get_validator(TokenizerVersion(f"v{generation}"), ValidationMode.serving)
    accepted = 0
    for seed, body in enumerate(bodies("mistral", thinking, stream=False)):
        if generation < 15:  # only models with the newest tokenizer support an effort
            body = {key: value for key, value in body.items() if key != "reasoning_effort"}
        why = validation_error(body, validator)
        if generation == 3 and any(
            message.get("content") and message.get("tool_calls") for message in body["messages"]
        ):
            assert why == BOTH  # no model in service uses the oldest tokenizers
            continue
        assert why is None, f"history({seed}): {why}"
        accepted += 1
    assert accepted > COUNT / 3


@pytest.mark.parametrize("generation", [3, 7, 11, 13, 15])
def test_mistrals_validator_rejects_a_missing_result_and_an_unknown_field(generation: int) -> None:
    validator = get_validator(TokenizerVersion(f"v{generation}"), ValidationMode.serving)
    spoilt = 0
    for body in bodies("mistral", "drop", stream=False)[:200]:
        kept = [message for message in body["messages"] if message["role"] != "tool"]
        if len(kept) < len(body["messages"]):
            spoilt += validation_error({**body, "messages": kept}, validator) is not None
    assert spoilt > 20
    messages = [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "a", "reasoning_content": "hm"},
    ]
    assert (
        validation_error({"model": "m", "messages": [*messages, {"role": "user", "content": "u"}]}, validator)
        is not None
    )


def _with_declared_schema_key(body: Json) -> Json:
    """Return a body with the output schema under the field name of the SDK; on the wire it is `schema`."""
    form = body.get("response_format")
    if form is None:
        return body
    named = {
        "schema_definition" if key == "schema" else key: item for key, item in form["json_schema"].items()
    }
    return {**body, "response_format": {**form, "json_schema": named}}


@pytest.mark.requirement("PROMISE-1", "REQ-915-036")
def test_every_mistral_body_validates_against_its_sdk() -> None:
    said = set[str]()
    for seed, body in enumerate(bodies("mistral")):
        why = nonconformity(_with_declared_schema_key(body), ChatCompletionStreamRequestTypedDict)
        assert why is None, f"history({seed}): {why}"
        said |= body.keys()
    assert sum(map(wanted.names_a_tool, bodies("mistral"))) > COUNT // 20
    assert said >= {
        "response_format",
        "tool_choice",
        "reasoning_effort",
        "temperature",
        "stop",
        "prompt_cache_key",
    }
    unknown = {**bodies("mistral")[0], "stream_options": {"include_usage": True}}
    assert nonconformity(unknown, ChatCompletionStreamRequestTypedDict) is not None


@pytest.mark.requirement("PROMISE-1", "REQ-915-006", "REQ-915-036")
@pytest.mark.parametrize("name", VENDORS)
def test_requests_to_other_vendors_are_openai_requests_plus_vendor_fields(name: str) -> None:
    forces = dialect(name).request
    is_named = forces.forced_choice == "yes" and forces.named_choice
    is_named = is_named and dialect(name).model.forced_choice != "never"
    assert (sum(map(wanted.names_a_tool, bodies(name))) > COUNT // 20) is is_named or name == "deepseek"
    for seed, body in enumerate(bodies(name)):
        messages = [
            {key: item for key, item in message.items() if key not in OWN_FIELDS}
            for message in body["messages"]
        ]
        common = {key: value for key, value in body.items() if key not in OWN_SETTINGS}
        why = nonconformity({**common, "messages": messages}, CompletionCreateParamsStreaming)
        assert why is None, f"history({seed}): {why}"
        report = turnsafe.validate(messages, "openai")
        assert bool(report), f"history({seed}): {report}"
