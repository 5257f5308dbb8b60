"""Check that rejected optional parameters are recognised by error messages and fields."""

import json
from typing import Any

import pytest

from actors.adapters.classify import classify
from actors.adapters.failure import Failure
from actors.core.dialects.profiles import dialect

Case = tuple[str, str, dict[str, Any], str, bool]  # Any: fields of an error body


def openai(
    message: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:  # Any: as above
    return {"message": message, "param": param, "code": code, "type": "invalid_request_error"}


def plain(message: str) -> dict[str, Any]:  # Any: as above
    return {"message": message}


UNSUPPORTED = [
    (
        "openai_chat",
        openai("Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
        "temperature",
    ),
    (
        "openai_chat",
        openai("Unknown parameter: 'prompt_cache_options'.", "prompt_cache_options"),
        "cache_life",
    ),
    ("openai_chat", openai("Unknown parameter: 'prompt_cache_key'.", code="unknown_parameter"), "cache"),
    ("openai_chat", openai("Unrecognized request argument supplied: reasoning_effort"), "effort"),
    (
        "openai_chat",
        openai("Unsupported parameter: 'stop' is not supported with this model.", "stop"),
        "stop",
    ),
    (
        "openai_chat",
        openai(
            "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
            "max_tokens",
        ),
        "max_tokens",
    ),
    (
        "openai_responses",
        openai("Unsupported parameter: 'reasoning.effort' is not supported.", "reasoning.effort"),
        "effort",
    ),
    (
        "openai_responses",
        openai("Unsupported parameter: 'text.format' is not supported.", "text.format"),
        "output",
    ),
    ("openai_responses", openai("Unknown parameter: 'text'.", "text"), "output"),
    ("anthropic", plain("temperature: Extra inputs are not permitted"), "temperature"),
    ("anthropic", plain("`temperature` is deprecated for this model."), "temperature"),
    ("anthropic", plain("thinking: Extra inputs are not permitted"), "thinking"),
    ("anthropic", plain("This model does not support the effort parameter."), "effort"),
    ("anthropic", plain("output_config.effort: Extra inputs are not permitted"), "effort"),
    ("anthropic", plain("stop_sequences: Extra inputs are not permitted"), "stop"),
    ("anthropic", plain("messages.0.content.0.text.cache_control: Extra inputs are not permitted"), "cache"),
    ("anthropic", plain("tools.2.cache_control: Extra inputs are not permitted"), "cache"),
    (
        "gemini",
        plain(
            'Invalid JSON payload received. Unknown name "thinkingLevel" at '
            "'generation_config.thinking_config': Cannot find field."
        ),
        "effort",
    ),
    ("gemini", plain("Thinking level is not supported for this model."), "effort"),
    (
        "gemini",
        plain('Invalid JSON payload received. Unknown name "toolConfig": Cannot find field.'),
        "tool_choice",
    ),
    (
        "gemini",
        plain("Unable to submit request because thinking is not supported by this model."),
        "thinking",
    ),
    (
        "bedrock",
        plain("Malformed input request: #/inferenceConfig: extraneous key [topP] is not permitted"),
        "top_p",
    ),
    (
        "bedrock",
        plain("This model doesn't support the toolConfig.toolChoice.any field. Remove it and try again."),
        "tool_choice",
    ),
    (
        "bedrock",
        plain("This model doesn't support the stopSequences field. Remove stopSequences and try again."),
        "stop",
    ),
    (
        "bedrock",
        plain("The model returned the following errors: `temperature` is deprecated for this model."),
        "temperature",
    ),
    (
        "bedrock",
        plain("You invoked an unsupported model or your request did not allow prompt caching."),
        "cache",
    ),
    (
        "vllm",
        plain(
            "[{'type': 'extra_forbidden', 'loc': ('body', 'reasoning_effort'), 'msg': 'Extra inputs are not "
            "permitted'}]"
        ),
        "effort",
    ),
    ("llama_cpp", plain("Unsupported param: response_format"), "output"),
    ("groq", plain("`reasoning_effort` is not supported with this model"), "effort"),
    ("xai", plain("Argument not supported on this model: stop"), "stop"),
    ("xai", plain("Model grok-4 does not support parameter reasoningEffort."), "effort"),
    ("xai", plain("tool_choice is not supported with this model"), "tool_choice"),
    (
        "openai_compatible",
        plain("Extra inputs are not permitted, field: 'stream_options', value: {}"),
        "stream_options",
    ),
]
VALUES = [
    (
        "openai_chat",
        openai(
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value "
            "is supported.",
            "temperature",
            "unsupported_value",
        ),
        "temperature",
    ),
    (
        "openai_chat",
        openai(
            "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. "
            "To use function "
            "tools, use /v1/responses or set reasoning_effort to 'none'.",
            "reasoning_effort",
        ),
        "effort",
    ),
    (
        "openai_chat",
        openai("Your organization must be verified to stream this model.", "stream", "unsupported_value"),
        "stream",
    ),
    (
        "openai_responses",
        openai(
            "Unsupported value: 'xhigh' is not supported with the 'm' model. Supported values are: 'low'.",
            "reasoning.effort",
        ),
        "effort",
    ),
    ("openai_responses", openai("Invalid value: 'reasoning.encrypted_content'.", "include[0]"), "include"),
    ("anthropic", plain("`temperature` and `top_p` cannot both be specified for this model."), "temperature"),
    (
        "anthropic",
        plain('tool_choice: type "tool" and "any" are not supported for this model.'),
        "tool_choice",
    ),
    ("anthropic", plain("Thinking may not be enabled when tool_choice forces tool use."), "tool_choice"),
    (
        "anthropic",
        plain('"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'),
        "thinking",
    ),
    ("anthropic", plain("adaptive thinking is not supported on this model"), "thinking"),
    (
        "anthropic",
        plain("This model does not support effort level 'xhigh'. Supported levels: high, low."),
        "effort",
    ),
    (
        "anthropic",
        plain("max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens"),
        "max_tokens",
    ),
    ("gemini", plain("Budget 0 is invalid. This model only works in thinking mode."), "thinking"),
    ("gemini", plain("Invalid value at 'generation_config.stop_sequences'"), "stop"),
    ("kimi", plain("invalid temperature: only 1 is allowed for this model"), "temperature"),
    ("kimi", plain("tool_choice 'specified' is incompatible with thinking enabled"), "tool_choice"),
    ("deepseek", plain("deepseek-reasoner does not support this tool_choice"), "tool_choice"),
    ("groq", plain("reasoning_effort must be one of `none` or `default`"), "effort"),
]
OTHERS = [
    ("anthropic", plain("messages.0.content.0.foo: Extra inputs are not permitted")),
    (
        "anthropic",
        plain("tools.0.custom.input_schema.properties.temperature: Extra inputs are not permitted"),
    ),
    (
        "anthropic",
        plain(
            "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must be "
            "`thinking`."
        ),
    ),
    (
        "gemini",
        plain(
            "Invalid JSON payload received. Unknown name \"foo\" at 'contents[0].parts[0]': Cannot find field."
        ),
    ),
    ("bedrock", plain("extraneous key [toolResult] is not permitted")),
    ("openai_chat", openai("Invalid schema for function 'temperature': it is not valid")),
    (
        "openai_chat",
        openai("Unsupported value: 'messages[0].role' does not support 'developer'.", "messages[0].role"),
    ),
    ("openai_chat", openai("An assistant message with 'tool_calls' must be followed by tool messages.")),
]


def failure(name: str, error: dict[str, Any]) -> Failure:  # Any: as above
    body = error if name == "bedrock" else {"error": error}
    return classify(400, {}, json.dumps(body).encode(), dialect(name))


@pytest.mark.parametrize(("name", "error", "setting"), UNSUPPORTED)
def test_an_unsupported_parameter_is_recognised(
    name: str,
    error: dict[str, Any],  # Any: as above
    setting: str,
) -> None:
    parameter = failure(name, error).parameter
    assert parameter is not None
    assert (parameter.settings, parameter.is_value) == ((setting,), False)


@pytest.mark.parametrize(("name", "error", "setting"), VALUES)
def test_a_rejected_value_is_distinguished_from_an_unsupported_parameter(
    name: str,
    error: dict[str, Any],  # Any: as above
    setting: str,
) -> None:
    parameter = failure(name, error).parameter
    assert parameter is not None
    assert (parameter.settings, parameter.is_value) == ((setting,), True)


@pytest.mark.parametrize(("name", "error"), OTHERS)
def test_errors_about_other_problems_are_not_attributed_to_a_parameter(
    name: str,
    error: dict[str, Any],  # Any: as above
) -> None:
    assert failure(name, error).kind not in ("parameter", "media")


def test_the_rejected_parameter_is_found_in_a_list_of_rejected_fields() -> None:
    detail = [
        {
            "type": "extra_forbidden",
            "loc": ["body", "reasoning_effort"],
            "msg": "Extra inputs are not permitted",
        }
    ]
    found = classify(422, {}, json.dumps({"detail": detail}).encode(), dialect("mistral"))
    assert found.parameter is not None
    assert (found.action, found.parameter.settings) == ("leave_out", ("effort",))
    inside = [
        {
            "type": "extra_forbidden",
            "loc": ["body", "messages", 5, "assistant", "reasoning_content"],
            "msg": "x",
        }
    ]
    assert classify(422, {}, json.dumps({"detail": inside}).encode(), dialect("mistral")).kind == "transcript"
