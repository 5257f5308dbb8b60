"""How providers word their failures, as one table.

The first row that fits decides: its pattern is searched in `type code message`, and its statuses, if it
names any, must hold the status. The rows stand in the order in which they must be asked: what looks like a
rate limit but never passes comes before rate limits, and rate limits come before context overflows, whose
words they share. Gateways put one provider's words into another's shape, so there is one table for all.

The rule ids are those of docs/reference/rulebook.md.
"""

import re
from dataclasses import dataclass

from actors.adapters.failure import Kind


@dataclass(frozen=True, slots=True)
class Row:
    """One way of wording a failure.

    Args:
        kind: What it means.
        pattern: Searched without regard to case.
        statuses: Statuses it may come with; empty for any.
        rule: Rulebook id, where the row is a rule's own text.
        case: Tells a vendor's rules apart that are one of its family (`actors.core.rulebook.cited`).
    """

    kind: Kind
    pattern: re.Pattern[str]
    statuses: frozenset[int] = frozenset()
    rule: str | None = None
    case: str = ""


def _row(kind: Kind, pattern: str, *statuses: int, rule: str | None = None, case: str = "") -> Row:
    return Row(kind, re.compile(pattern, re.IGNORECASE), frozenset(statuses), rule, case)


BEFORE_OVERFLOW = (
    # Gemini words an empty bucket of a minute as it does one of a day, and as OpenAI does an empty account.
    _row("quota", r"RESOURCE_EXHAUSTED.*PerDay", 429, rule="GEM-15"),
    _row("rate_limit", r"RESOURCE_EXHAUSTED.*exceeded your current quota", 429, rule="GEM-15"),
    # Out of money. Some of it comes as 429 or 400; no waiting helps.
    _row("quota", r"insufficient_quota|exceeded_current_quota|exceeded your current quota"),
    _row(
        "quota",
        r"billing_error|credit balance is too low|insufficient (?:balance|credits)|_spend_limit_reached",
    ),
    _row("quota", r"GenerateRequestsPerDay|requests per day \(RPD\)", 429),
    _row("quota", r"", 402),
    _row("quota", r"ServiceQuotaExceededException|too many tokens per day"),
    # Larger than the bucket ever holds. Looks like a rate limit.
    _row("too_big_for_bucket", r"request too large for", 413, 429),
    _row("too_big_for_bucket", r"tokens per min", 413),
    _row("transient", r"engine_overloaded|overloaded_error|server_error\b.*\boverloaded"),
    _row("transient", r"ModelNotReadyException"),
    _row("rate_limit", r"", 429),
    _row("rate_limit", r"rate_limit|rate limit (?:exceeded|reached)|tokens per min"),
    # The provider will not say it.
    _row("refusal", r"content_filter|content_policy|PROHIBITED_CONTENT|invalid_prompt|bio_policy"),
    _row("refusal", r"misalignment_policy"),
    _row("refusal", r"requires moderation|flagged by (?:our|the) |(?:input|prompt) was flagged", 400, 403),
    # The model wrote what its own server could not read.
    _row("model_fault", r"tool_use_failed|MALFORMED_FUNCTION_CALL|UNEXPECTED_TOOL_CALL|malformed_tool_use"),
    _row("model_fault", r"model did not call a tool"),
    # The prompt fits, and the answer asked for does not fit behind it.
    _row("overflow", r"input length and .max_tokens. exceed context limit", rule="ANT-37"),
)
"""Asked before the dialect's overflow patterns."""

AFTER_OVERFLOW = (
    _row("overflow", r"token count of \d+ exceeds the limit of|request_too_large"),
    _row("overflow", r"", 413),
    # OpenAI Responses, and copies of it.
    _row("transcript", r"No tool output found for tool call", rule="OAR-14"),
    _row("transcript", r"No tool output found for function call", rule="OAR-01"),
    _row("transcript", r"No tool call found for .*call output", rule="OAR-02"),
    _row(
        "transcript", r"of type 'reasoning' was provided without its required following item", rule="OAR-03"
    ),
    _row("transcript", r"was provided without its required 'reasoning' item", rule="OAR-04"),
    _row("transcript", r"Items are not persisted when", rule="OAR-05"),
    _row("transcript", r"Expected an ID that begins with", rule="OAR-06"),
    _row("transcript", r"Duplicate item found with id", rule="OAR-07"),
    _row("transcript", r"input\[\d+\]\.call_id': string too long", rule="OAR-08"),
    _row("transcript", r"invalid_encrypted_content|encrypted content .*could not be verified", rule="OAR-09"),
    _row("transcript", r"Invalid type for 'input\[\d+\]\.output'", rule="OAR-10"),
    _row("transcript", r"Custom tool call output is missing", rule="OAR-11"),
    _row("config", r"The requested model '[^']*' does not exist", rule="OAR-12"),
    _row("config", r"data_residency_mismatch"),
    # An image it cannot use, told inside the answer: another try meets the same image.
    _row(
        "transcript",
        r"\b(?:invalid_(?:base64_)?image(?:_format|_url|_mode)?|image_(?:file_)?too_(?:large|small))\b",
    ),
    _row(
        "transcript", r"image_parse_error|unsupported_image_media_type|empty_image_file|image_file_not_found"
    ),
    # DeepSeek, in words that are almost OpenAI's.
    _row("transcript", r"insufficient tool messages following tool_calls message", rule="DSK-02"),
    _row("transcript", r"Messages with role 'tool' must be a response to a preceding message", rule="DSK-01"),
    _row("transcript", r"missing field `tool_call_id`", rule="DSK-04"),
    _row("transcript", r"`reasoning_content` in the thinking mode must be passed back", rule="DSK-05"),
    _row("transcript", r"`content\[\]\.thinking` in the thinking mode must be passed back", rule="DSK-06"),
    _row("transcript", r"`reasoning_text` in the thinking mode must be passed back", rule="DSK-07"),
    # Kimi.
    _row("transcript", r"tool_call_id\s+is not found", rule="KIM-02"),
    _row("transcript", r"reasoning_content is missing in assistant tool call message", rule="KIM-03"),
    _row("transcript", r"with role 'assistant' must not be empty", rule="KIM-04"),
    _row("transcript", r"text content is empty", rule="KIM-05"),
    _row("transcript", r"function name is invalid, must start with a letter", rule="KIM-06"),
    _row("transcript", r"not a valid moonshot flavored json schema", rule="KIM-07"),
    _row("transcript", r"unknown tool type: \w+, currently only function", rule="KIM-08"),
    _row("transcript", r"messages must not be empty", rule="KIM-11"),
    # Mistral, its copies on other hosts included.
    _row(
        "transcript",
        r"Tool call id was .* but must be a-z|must be a non-empty string other than 'null'",
        rule="MIS-01",
    ),
    _row("transcript", r"Not the same number of function calls and responses", rule="MIS-02"),
    _row("transcript", r"Duplicate tool call id .* in tool results", rule="MIS-03"),
    _row("transcript", r"Duplicate tool call id .* in assistant message", rule="MIS-04"),
    _row("transcript", r"Unexpected role 'tool' after role", rule="MIS-05"),
    _row("transcript", r"Unexpected tool call id .* in tool results", rule="MIS-07"),
    _row("transcript", r"Expected last role User or Tool", rule="MIS-10"),
    _row("transcript", r"prefix True must be last message", rule="MIS-11"),
    _row("transcript", r"Unexpected role 'system' after role", rule="MIS-12"),
    _row(
        "transcript",
        r"(?<!a )conversation must (?:start with a user|have at least one) message",
        rule="MIS-13",
    ),
    _row("transcript", r"Function name was .* but must be a-z", rule="MIS-14"),
    _row("transcript", r"Tool call id has to be defined in serving mode", rule="MIS-16"),
    _row("transcript", r"Tool call id has to be defined", rule="MIS-15"),
    _row("transcript", r"must have either content or tool_calls, but not both", rule="MIS-17"),
    _row("transcript", r"Unexpected content chunk types in", rule="MIS-18"),
    _row("transcript", r"Unexpected role 'user' after role 'tool'", rule="MIS-21"),
    _row("transcript", r"extra_forbidden|\"body\", ?\"tools\"\]", rule="MIS-32"),
    _row("config", r"\binvalid_model\b"),
    _row("transcript", r"invalid_function_call|invalid_request_message_order"),
    # Servers that copy OpenAI Chat, in words of their own.
    _row("transcript", r"conversation roles must alternate user", rule="CMP-01"),
    _row("transcript", r"only supports single tool-calls at once", rule="CMP-02"),
    _row("transcript", r"tool result's tool id\(.*\) not found", rule="OAC-02"),  # MiniMax
    _row("transcript", r"is not one of \['system', 'assistant', 'user'", rule="OAC-06"),  # Qwen
    _row("transcript", r"Tool names are not allowed to be", rule="OAC-10"),  # Qwen
    _row("transcript", r"parameter of the code model must be in JSON format", rule="ALL-06"),  # Qwen
    _row("transcript", r"输入不能为空", rule="OAC-04"),  # GLM: the input must not be empty
    _row("transcript", r"messages 参数非法", rule="ALL-11"),  # GLM: messages is not valid
    _row(
        "transcript", r"All non-assistant messages must contain 'content'", rule="OAC-05"
    ),  # llama.cpp, and on
    _row("transcript", r"must contain either 'content' or 'tool_calls'", rule="ALL-11"),
    _row("transcript", r"Failed to parse messages: Expected 'content' or 'tool_calls'", rule="ALL-11"),
    _row("transcript", r"Missing tool call (?:type|function|name)", rule="ALL-02"),
    _row("transcript", r"input_schema does not support \w+", rule="ALL-02"),  # Anthropic
    _row("transcript", r"Failed to parse tool call arguments as JSON", rule="ALL-06"),
    _row("transcript", r"Cannot have 2 or more assistant messages at the end", rule="ALL-05"),
    _row("transcript", r"Cannot continue an assistant message that contains tool calls", rule="OAC-01"),
    _row("transcript", r"Expected 'content' to be a string or an array", rule="OAC-05"),
    _row("transcript", r"Tool call IDs should be alphanumeric strings with length 9", rule="MIS-01"),
    _row("config", r"tools param requires --jinja"),
    _row("config", r"(?:image|audio|video) input is not supported"),
    _row("model_fault", r"model produced output that does not match the expected"),
    _row("transcript", r"invalid tool call arguments", rule="ALL-06"),  # Ollama
    _row("transcript", r"invalid message content type", rule="OAC-05"),  # Ollama
    _row("transcript", r"invalid image input", rule="ALL-10"),  # Ollama
    _row("config", r"No endpoints found that support tool use"),  # OpenRouter
    # OpenAI Chat: structure.
    _row("transcript", r"tool_call_ids did not have response messages", rule="OAC-01", case="named"),
    _row("transcript", r"must be followed by tool messages responding to each", rule="OAC-01"),
    _row("transcript", r"must be a response to a prece+ding message with", rule="OAC-02"),
    _row(
        "transcript", r"tool_calls\[\d+\]\.id': string too long|tool_call_id': string too long", rule="OAC-03"
    ),
    _row("transcript", r"Invalid 'messages': empty array", rule="OAC-04"),
    _row("transcript", r"Invalid type for 'messages", rule="OAC-05"),
    _row("transcript", r"Supported values are: 'system', 'assistant', 'user'", rule="OAC-06"),
    _row("transcript", r"Missing required parameter: 'messages\[\d+\]\.role'", rule="OAC-07"),
    _row("transcript", r"expected to be either text or image_url type", rule="OAC-08"),
    _row("transcript", r"Invalid 'tools': array too long", rule="OAC-09"),
    _row("transcript", r"function\.name': string too long", rule="OAC-10"),
    _row("transcript", r"invalid_function_parameters|Invalid schema for function", rule="OAC-11"),
    _row("transcript", r"Unknown parameter: '", rule="OAC-12"),
    _row("config", r"messages\[\d+\]\.role' does not support", rule="OAC-13"),
    _row("transcript", r"'prompt_cache_key': string too long", rule="OAC-17"),
    _row("transcript", r"Invalid 'messages\[\d+\]\.[^']*': string too long", rule="OAC-14"),
    _row("config", r"model_not_found|does not exist or you do not have access", rule="OAC-16"),
    _row("config", r"unsupported_value|unsupported_parameter", rule="OAC-18"),
    _row("config", r"compatible only with \w+ extended prompt caching"),
    _row("config", r"must provide a model parameter", rule="OAC-19"),
    # Anthropic: pairing and placement.
    _row("transcript", r"`tool_use` ids were found without `tool_result` blocks immediately", rule="ANT-01"),
    _row("transcript", r"unexpected `tool_use_id` found in `tool_result` blocks", rule="ANT-02"),
    _row("transcript", r"Did not find \d+ `tool_result` block", rule="ANT-03"),
    _row("transcript", r"must be followed by a user message with `tool_result`", rule="ANT-04"),
    _row("transcript", r"`tool_use` ids must be unique", rule="ANT-05"),
    _row("transcript", r"each tool_use must have a single result", rule="ANT-06"),
    _row("transcript", r"tool_use(?:\.|_)id: String should match pattern", rule="ANT-07"),
    _row("transcript", r"\.name: String should (?:match pattern|have at most)", rule="ANT-08"),
    _row("transcript", r"Tool names must be unique", rule="ANT-09"),
    _row("transcript", r"unexpected `tool_use_id` found in `\w+_tool_result` blocks", rule="ANT-11"),
    # Anthropic: content.
    _row("transcript", r"text content blocks must be non-empty", rule="ANT-20"),
    _row("transcript", r"text content blocks must contain non-whitespace", rule="ANT-21"),
    _row("transcript", r"all messages must have non-empty content", rule="ANT-22"),
    _row("transcript", r"final assistant content cannot end with trailing whitespace", rule="ANT-23"),
    _row("transcript", r"first message must use the \"user\" role", rule="ANT-24"),
    _row("transcript", r"at least one message is required", rule="ANT-25"),
    _row("transcript", r"roles must alternate between", rule="ANT-26"),
    _row("transcript", r"does not support assistant message prefill", rule="ANT-27"),
    _row("config", r"block_binding: Extra inputs are not permitted", rule="ANT-50"),
    _row(
        "transcript", r"thinking\.cache_control: Extra inputs|must not come after a ttl='5m'", rule="ANT-34"
    ),
    _row("transcript", r"Extra inputs are not permitted", rule="ANT-28"),
    _row("transcript", r"tool_result\.content: List should have at least 1 item", rule="ANT-29"),
    _row("transcript", r"all content must be type .text. if .is_error. is true", rule="ANT-51"),
    _row("transcript", r"final block in an assistant message cannot be", rule="ANT-52"),
    _row("transcript", r"content cannot be empty if .is_error. is true", rule="ANT-53"),
    _row("transcript", r"following errors: too many images and documents", 400, rule="BED-17"),
    _row("transcript", r"too many images and documents", rule="ANT-54"),
    _row("transcript", r"image exceeds \d+ MB maximum", rule="ANT-30"),
    _row("transcript", r"not valid JSON: no low surrogate", rule="ANT-31"),
    _row("transcript", r"A maximum of \d+ blocks with cache_control", rule="ANT-32"),
    _row("transcript", r"cache_control cannot be set for empty text", rule="ANT-33"),
    _row("config", r"maximum allowed number of output tokens", rule="ANT-35"),
    _row("config", r"not_found_error.* model: ", 404, rule="ANT-38"),
    # Anthropic: thinking.
    _row("transcript", r"the first block must be `thinking` or `redacted_thinking`", rule="ANT-39"),
    _row("transcript", r"Expected `thinking` or `redacted_thinking`, but found", rule="ANT-40"),
    _row("transcript", r"blocks in the latest assistant message cannot be modified", rule="ANT-41"),
    _row("transcript", r"bound to a different conversation", rule="ANT-44"),
    _row("transcript", r"Invalid `signature` in `thinking` block", rule="ANT-42"),
    _row("transcript", r"each thinking block must contain thinking", rule="ANT-43"),
    _row("config", r"thinking\.type\.enabled\W+is not supported", rule="ANT-45"),
    _row("config", r"adaptive thinking is not supported", rule="ANT-46"),
    _row("config", r"thinking\.type\.disabled\W+is not supported", rule="ANT-47"),
    _row("config", r"tool_choice: type .* not supported for this model", rule="ANT-48"),
    _row("config", r"Thinking may not be enabled when tool_choice forces", rule="ANT-48"),
    _row("config", r"does not support effort level", rule="ANT-49"),
    # Gemini.
    _row("transcript", r"number of function response parts is equal to the number of", rule="GEM-01"),
    _row("transcript", r"function call turn comes immediately after a user turn", rule="GEM-02"),
    _row("transcript", r"function response turn comes immediately after a function call", rule="GEM-03"),
    _row("transcript", r"missing a thought_signature", rule="GEM-04"),
    _row("transcript", r"Corrupted thought signature|Thought signature is not valid", rule="GEM-05"),
    _row("transcript", r"thought_signature' \(TYPE_BYTES\)", rule="GEM-06"),
    _row("transcript", r"contents: contents is not specified", rule="GEM-07"),
    _row("transcript", r"Please use a valid role: ", rule="GEM-08"),
    _row("transcript", r"Unknown name \W*id\W+at '[\w.\[\]]*function_", rule="GEM-09"),
    _row("transcript", r"Unknown name .*Cannot find field", rule="GEM-10"),
    _row("transcript", r"must include at least one parts field", rule="GEM-11"),
    _row("config", r"is not found for API version", 404, rule="GEM-13"),
    _row("transient", r"The model is overloaded", rule="GEM-14"),
    _row("config", r"API key not valid|API_KEY_INVALID|FAILED_PRECONDITION|PERMISSION_DENIED"),
    # Bedrock. The words of the model's own vendor, which it wraps, are above.
    _row("transcript", r"Expected toolResult blocks at ", rule="BED-01"),
    _row("transcript", r"number of toolResult blocks at .* exceeds the number of toolUse", rule="BED-02"),
    _row("transcript", r"toolConfig field must be defined when using toolUse", rule="BED-03"),
    _row("transcript", r"text field in the ContentBlock object at .* is blank", rule="BED-04"),
    _row("transcript", r"content field in the Message object at .* is empty", rule="BED-05"),
    _row("transcript", r"conversation must alternate between user and assistant roles", rule="BED-06"),
    _row("transcript", r"conversation must start with a user message", rule="BED-07"),
    _row("transcript", r"Member must (?:satisfy|have length)", rule="BED-08"),
    _row("transcript", r"doesn't support the \w+ content block", rule="BED-09"),
    _row("transcript", r"extraneous key \[\w+\] is not permitted", rule="BED-11"),
    _row("config", r"provided model identifier is invalid", rule="BED-14"),
    _row("transcript", r"can.t contain duplicate document names", rule="BED-15"),
    _row("transcript", r"can.t include more than \w+ documents in a request", rule="BED-16"),
    _row("transcript", r"document file name can only contain", rule="BED-18"),
    _row("transcript", r"The model returned the following errors", 400, rule="BED-10"),
    # Settings that other servers behind these dialects refuse.
    _row("config", r"only [\d.]+ is allowed for this model", 400, rule="KIM-09"),
    _row("config", r"is incompatible with thinking enabled", 400, rule="KIM-10"),
    _row(
        "config",
        r"not support this tool_choice|tool_choice\b.*(?:unsupported|not supported)",
        400,
        rule="ALL-14",
        case="forced",
    ),
    _row("config", r"invalid_api_key|authentication_error|permission_error"),
)
"""Asked after the dialect's overflow patterns. What fits no row goes by its status."""

STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "INVALID_ARGUMENT": 400,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "validationException": 400,
    "modelStreamErrorException": 424,
    "throttlingException": 429,
    "internalServerException": 500,
    "serviceUnavailableException": 503,
}
"""The status an error inside a 200 stands for."""

KIND_OF_STATUS: dict[int, Kind] = {
    400: "transcript",  # a structural 400 that is not recognised is still ours to look at
    422: "transcript",
    408: "transient",
    409: "transient",
    424: "transient",
    425: "transient",
}
"""Statuses that decide alone. Other 3xx and 4xx are `config`; 5xx, and no status, are `transient`."""

KIND_OF_FINISH: dict[str, Kind] = {
    "model_length": "overflow",
    "model_context_window_exceeded": "overflow",
    "content_filter": "refusal",
    "refusal": "refusal",
    "content_filtered": "refusal",
    "sensitive": "refusal",  # GLM
    "guardrail_intervened": "refusal",
    "malformed_tool_use": "model_fault",
    "malformed_model_output": "model_fault",
    "error": "transient",
    "MALFORMED_FUNCTION_CALL": "model_fault",
    "UNEXPECTED_TOOL_CALL": "model_fault",
    "TOO_MANY_TOOL_CALLS": "model_fault",
    "MALFORMED_RESPONSE": "model_fault",
    "MISSING_THOUGHT_SIGNATURE": "transcript",
    "OTHER": "transient",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "LANGUAGE": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "MODEL_ARMOR": "refusal",
    "IMAGE_SAFETY": "refusal",
    "IMAGE_PROHIBITED_CONTENT": "refusal",
    "IMAGE_RECITATION": "refusal",
    "JAILBREAK": "refusal",
}
"""Reasons to stop that are failures, by the provider's own word."""
