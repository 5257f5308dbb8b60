"""How providers word their failures, as one table.

The first row that fits decides: its pattern is searched in `type code message`, and its statuses, if it
names any, must hold the status. The rows stand in the order in which they must be asked: what looks like a
rate limit but never passes comes before rate limits, and rate limits come before context overflows, whose
words they share. Gateways put one provider's words into another's shape, so there is one table for all.

A rule of the rulebook says itself in which words it is refused (`Rule.words`), and what it means follows from its fault
class. Here stands what that leaves: failures that break no rule, and other wordings.
"""

import re
from dataclasses import dataclass

from actors.adapters.failure import Kind
from actors.core.rulebook import RULES, FaultClass


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


_MEANS: dict[FaultClass, Kind] = {
    "rendering": "transcript",
    "projection": "transcript",
    "canonical": "transcript",
    "overflow": "overflow",
    "config": "config",
}
_TOLD = sorted(
    (_row(_MEANS[rule.fault_class], rule.words, rule=rule.id) for rule in RULES.values() if rule.words),
    key=lambda row: -len(row.pattern.pattern),
)
"""The longest words first: what one vendor says may hold what another does."""

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
    _row("transcript", r"tool_call_ids did not have response messages", rule="OAC-01", case="named"),
    _row(
        "transcript", r"tool_calls\[\d+\]\.id': string too long|tool_call_id': string too long", rule="OAC-03"
    ),
    _row(
        "transcript", r"thinking\.cache_control: Extra inputs|must not come after a ttl='5m'", rule="ANT-34"
    ),
    _row("transcript", r"following errors: too many images and documents", 400, rule="BED-17"),
    _row("transcript", r"Unknown name \W*id\W+at '[\w.\[\]]*function_", rule="GEM-09"),
    _row("config", r"not_found_error.* model: ", 404, rule="ANT-38"),
    _row(
        "transcript",
        r"(?<!a )conversation must (?:start with a user|have at least one) message",
        rule="MIS-13",
    ),
    *_TOLD,
    # The rest is more than one wording of a rule, a code, or of no rule at all.
    _row("transcript", r"invalid_encrypted_content|encrypted content .*could not be verified", rule="OAR-09"),
    _row("transcript", r"Missing required parameter: 'input\[\d+\]\.id'", rule="OAR-03"),
    _row("config", r"data_residency_mismatch"),
    # An image it cannot use, told inside the answer: another try meets the same image.
    _row(
        "transcript",
        r"\b(?:invalid_(?:base64_)?image(?:_format|_url|_mode)?|image_(?:file_)?too_(?:large|small))\b",
    ),
    _row(
        "transcript", r"image_parse_error|unsupported_image_media_type|empty_image_file|image_file_not_found"
    ),
    # Mistral, its copies on other hosts included.
    _row(
        "transcript",
        r"Tool call id was .* but must be a-z|must be a non-empty string other than 'null'",
        rule="MIS-01",
    ),
    _row("transcript", r"extra_forbidden|\"body\", ?\"tools\"\]", rule="MIS-32"),
    _row("config", r"\binvalid_model\b"),
    _row("transcript", r"invalid_function_call|invalid_request_message_order"),
    # Servers that copy OpenAI Chat, in words of their own.
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
    _row("transcript", r"must be a response to a prece+ding message with", rule="OAC-02"),
    _row("transcript", r"invalid_function_parameters|Invalid schema for function", rule="OAC-11"),
    _row("config", r"messages\[\d+\]\.role' does not support", rule="OAC-13"),
    _row("transcript", r"'prompt_cache_key': string too long", rule="OAC-17"),
    _row("config", r"model_not_found|does not exist or you do not have access", rule="OAC-16"),
    _row("config", r"unsupported_value|unsupported_parameter", rule="OAC-18"),
    _row("config", r"compatible only with \w+ extended prompt caching"),
    _row("config", r"must provide a model parameter", rule="OAC-19"),
    _row("transcript", r"tool_use(?:\.|_)id: String should match pattern", rule="ANT-07"),
    _row("transcript", r"\.name: String should (?:match pattern|have at most)", rule="ANT-08"),
    _row("transcript", r"tool_result\.content: List should have at least 1 item", rule="ANT-29"),
    _row("config", r"tool_choice: type .* not supported for this model", rule="ANT-48"),
    _row("config", r"Thinking may not be enabled when tool_choice forces", rule="ANT-48"),
    # Gemini.
    _row("transcript", r"Corrupted thought signature|Thought signature is not valid", rule="GEM-05"),
    _row("config", r"is not found for API version", 404, rule="GEM-13"),
    _row("transient", r"The model is overloaded", rule="GEM-14"),
    _row("config", r"API key not valid|API_KEY_INVALID|FAILED_PRECONDITION|PERMISSION_DENIED"),
    _row("transcript", r"Member must (?:satisfy|have length)", rule="BED-08"),
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
