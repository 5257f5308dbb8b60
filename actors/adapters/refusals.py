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
    """

    kind: Kind
    pattern: re.Pattern[str]
    statuses: frozenset[int] = frozenset()
    rule: str | None = None


def _row(kind: Kind, pattern: str, *statuses: int, rule: str | None = None) -> Row:
    return Row(kind, re.compile(pattern, re.IGNORECASE), frozenset(statuses), rule)


BEFORE_OVERFLOW = (
    # Out of money. Some of it comes as 429 or 400; no waiting helps.
    _row("quota", r"insufficient_quota|exceeded_current_quota|exceeded your current quota"),
    _row(
        "quota",
        r"billing_error|credit balance is too low|insufficient (?:balance|credits)|_spend_limit_reached",
    ),
    _row("quota", r"GenerateRequestsPerDay|requests per day \(RPD\)", 429),
    _row("quota", r"", 402),
    # Larger than the bucket ever holds. Looks like a rate limit.
    _row("too_big_for_bucket", r"request too large for", 413, 429),
    _row("too_big_for_bucket", r"tokens per min", 413),
    _row("transient", r"engine_overloaded|overloaded_error|server_error\b.*\boverloaded"),
    _row("rate_limit", r"", 429),
    _row("rate_limit", r"rate_limit|tokens per min"),
    # The provider will not say it.
    _row("refusal", r"content_filter|content_policy|PROHIBITED_CONTENT|invalid_prompt|bio_policy"),
    _row("refusal", r"misalignment_policy|requires moderation|flagged by (?:our|the) ", 400, 403),
    # The model wrote what its own server could not read.
    _row("model_fault", r"tool_use_failed|MALFORMED_FUNCTION_CALL|UNEXPECTED_TOOL_CALL|malformed_tool_use"),
    _row("model_fault", r"model did not call a tool"),
)
"""Asked before the dialect's overflow patterns."""

AFTER_OVERFLOW = (
    _row("overflow", r"token count of \d+ exceeds the limit of|request_too_large"),
    _row("overflow", r"", 413),
    # OpenAI Chat: structure.
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
    _row("transcript", r"Invalid 'messages\[\d+\]\.content[^']*': string too long", rule="OAC-14"),
    _row("config", r"model_not_found|does not exist or you do not have access", rule="OAC-16"),
    _row("config", r"unsupported_value|unsupported_parameter", rule="OAC-18"),
    _row("config", r"must provide a model parameter", rule="OAC-19"),
    # OpenAI Responses words that come with a 404.
    _row("transcript", r"Items are not persisted when", rule="OAR-05"),
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
    _row("transcript", r"Extra inputs are not permitted", rule="ANT-28"),
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
    _row("config", r"does not support effort level", rule="ANT-49"),
    # Settings that other servers behind these dialects refuse.
    _row("config", r"only 1 is allowed for this model", 400, rule="KIM-09"),
    _row("config", r"is incompatible with thinking enabled", 400, rule="KIM-10"),
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
    "malformed_tool_use": "model_fault",
    "error": "transient",
}
"""Reasons to stop that are failures, by the provider's own word."""
