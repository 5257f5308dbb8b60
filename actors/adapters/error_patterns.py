"""List the known wordings of provider errors in one table, for `actors.adapters.classify`.

The first matching row decides. Its pattern must occur in the text `type code message`, and its statuses, if it lists
any, must include the status. The order matters, because different failures use the same words. Failures that look like
a rate limit but do not go away with time come before rate limits, and rate limits come before context overflows.
Gateways forward one provider's wording in another provider's format, so all providers share one table.

Each rule of the rulebook contains the wording of its own rejection (`Rule.refusal_pattern`), and the rule's fault class
determines the kind of failure. This table lists the remaining cases: failures that violate no rule, and additional
wordings.
"""

import re

from msgspec import Struct
from msgspec.structs import replace

from actors.adapters.failure import Kind
from actors.core.rulebook import RULES, FaultClass


class ErrorPattern(Struct, frozen=True):
    """One wording of a failure, its kind, and the statuses that may accompany it. Empty `statuses` allow any status.

    `rule` is the id of the rule whose violation the wording reports, if any. `case` selects a more specific rule of the
    same family (`actors.core.rulebook.rule_id`).
    """

    kind: Kind
    pattern: re.Pattern[str]
    statuses: tuple[int, ...] = ()
    rule: str | None = None
    case: str = ""

    def applies_to(self, status: int | None) -> bool:
        return not self.statuses or status in self.statuses


def _make_row(kind: Kind, pattern: str, *statuses: int) -> ErrorPattern:
    return ErrorPattern(kind, re.compile(pattern, re.IGNORECASE), statuses)


def _make_rule_row(
    rule: str, pattern: str, *statuses: int, kind: Kind | None = None, case: str = ""
) -> ErrorPattern:
    """Return a row for the wording of a rule. Unless `kind` is passed, the rule's fault class determines the kind."""
    row = _make_row(kind or _KIND_OF_FAULT_CLASS[RULES[rule].fault_class], pattern, *statuses)
    return replace(row, rule=rule, case=case)


_KIND_OF_FAULT_CLASS: dict[FaultClass, Kind] = {
    "rendering": "transcript",
    "projection": "transcript",
    "canonical": "transcript",
    "overflow": "overflow",
    "config": "config",
}
_MEDIA_RULES = frozenset(
    "ALL-10 ALL-15 ANT-30 ANT-54 ANT-58 ANT-59 ANT-61 BED-16 BED-17 MIS-18 OAC-08".split()  # noqa: SIM905  a list would fill a page
)
"""Rules about the type, size, number or position of attachments. An attachment that violates one can be omitted from
the lane.
"""
_PARAMETERS = """ALL-14 ANT-28 ANT-34 ANT-35 ANT-45 ANT-46 ANT-47 ANT-48 ANT-49 ANT-50 ANT-56 BED-08 BED-10 BED-11
    DSK-08 GEM-10 KIM-09 KIM-10 MIS-19 MIS-32 OAC-12 OAC-17 OAC-18 OAC-20"""
PARAMETER_RULES = frozenset(_PARAMETERS.split())
"""Rules whose error message may mention an optional parameter, which a new attempt can omit."""
SAMPLING_RULES = frozenset(("ANT-56", "KIM-09", "OAC-18"))
"""Rules about sampling whose error message is also used for other parameters."""
SCHEMA_RULES = frozenset((None, "ANT-57", "BED-10", "CMP-03", "OAC-11"))
"""Rules whose error message may mean that tool schemas must be rewritten. None stands for messages without a rule."""
_RULE_WORDINGS = [
    _make_rule_row(rule.id, rule.refusal_pattern, kind="media" if rule.id in _MEDIA_RULES else None)
    for rule in RULES.values()
    if rule.refusal_pattern
]

_REJECTION_STATUSES = (400, 415, 422)
_ATTACHMENT = (
    r"\b(?:images?|pictures?|pdfs?|gifs?|documents?|pages|mime ?types?|attachments?|multi-?modal|videos?|audio|media|"
    r"vision|image_url|inline_?data|input_file|file_data|file_ur[il]|media[_ ]type)\b"
)
_FILE = r"\bfiles?\b(?![./_])"
_BLOCK = r"(?:image|document|image_url|inline_?data|input_image|input_file|file_data|file_url)"
_UNUSABLE = (
    r"\b(?:un(?:supported|able|readable)|not? (?:supported|valid|accept\w*|accessible|found|pages|longer available)|"
    r"in(?:valid|accessible)|illegal|incorrect|corrupt\w*|malformed|empty|expired|fail\w*|error while|tim(?:ed |e)out|"
    r"could ?n[o']t|cannot|can't|exceed\w*|(?:larger|smaller|more|fewer) than|too (?:many|large|small|big)|"
    r"at (?:most|least)|maximum|(?:do|does)(?: not|n't) (?:match|represent|meet|support)|should be 'image/|appears to "
    r"be|password|protected|encrypted|in an? \w+ state|no pages)"
)
_NO_TOOL = r"^(?!.*(?:\btools?\b[.\[]|signature|encrypted_content))"
"""Excludes messages about a tool's declaration or about reasoning."""

BEFORE_OVERFLOW = (
    # Gemini uses the same words for an exhausted quota per minute and per day. OpenAI uses them for an empty account.
    _make_rule_row("GEM-15", r"RESOURCE_EXHAUSTED.*PerDay", 429, kind="quota"),
    _make_rule_row("GEM-15", r"RESOURCE_EXHAUSTED.*exceeded your current quota", 429, kind="rate_limit"),
    # The account has no money left. The status may be 429 or 400; waiting does not help.
    _make_row("quota", r"insufficient_quota|exceeded_current_quota|exceeded your current quota"),
    _make_row("quota", r"billing_error|credit balance is too low|insufficient (?:balance|credits)"),
    _make_row("quota", r"_spend_limit_reached|ServiceQuotaExceededException|too many tokens per day"),
    _make_row("quota", r"GenerateRequestsPerDay|requests per day \(RPD\)", 429),
    _make_row("quota", r"", 402),
    # The request alone exceeds the rate limit, so waiting does not help. The wording resembles a rate limit.
    _make_row("too_big_for_bucket", r"request too large for", 413, 429),
    _make_row("too_big_for_bucket", r"tokens per min", 413),
    _make_row(
        "transient", r"engine_overloaded|overloaded_error|server_error\b.*\boverloaded|ModelNotReadyException"
    ),
    _make_row("rate_limit", r"", 429),
    _make_row("rate_limit", r"rate_limit|rate limit (?:exceeded|reached)|tokens per min"),
    # The provider refuses to answer because of the content.
    _make_row(
        "refusal", r"content_(?:filter|policy)|PROHIBITED_CONTENT|invalid_prompt|(?:bio|misalignment)_policy"
    ),
    _make_row(
        "refusal", r"requires moderation|flagged by (?:our|the) |(?:input|prompt) was flagged", 400, 403
    ),
    # The provider's server could not parse the model's output.
    _make_row(
        "model_fault", r"tool_use_failed|MALFORMED_FUNCTION_CALL|UNEXPECTED_TOOL_CALL|malformed_tool_use"
    ),
    _make_row("model_fault", r"model did not call a tool"),
    # The prompt fits, but the prompt plus `max_tokens` exceeds the context window.
    _make_rule_row("ANT-37", r"input length and .max_tokens. exceed context limit"),
)
"""Rows that are searched before the dialect's overflow patterns."""

AFTER_OVERFLOW = (
    _make_row("overflow", r"token count of \d+ exceeds the limit of|request_too_large"),
    _make_row("media", rf"{_ATTACHMENT}.{{0,40}}\b(?:too large|exceed)", 413),
    _make_row("overflow", r"", 413),
    _make_rule_row("OAC-01", r"tool_call_ids did not have response messages", case="named"),
    _make_rule_row("OAC-03", r"tool_calls\[\d+\]\.id': string too long|tool_call_id': string too long"),
    _make_rule_row("ANT-34", r"thinking\.cache_control: Extra inputs|must not come after a ttl='5m'"),
    _make_rule_row("BED-17", r"following errors: too many images and documents", 400, kind="media"),
    _make_rule_row("BED-09", r"doesn't support the (?:image|document) content block", 400, kind="media"),
    _make_rule_row("GEM-09", r"Unknown name \W*id\W+at '[\w.\[\]]*function_"),
    _make_rule_row("ANT-38", r"not_found_error.* model: ", 404),
    _make_rule_row("MIS-13", r"(?<!a )conversation must (?:start with a user|have at least one) message"),
    # The longest pattern comes first, because one vendor's wording may contain another vendor's.
    *sorted(_RULE_WORDINGS, key=lambda row: -len(row.pattern.pattern)),
    # The remaining rows are additional wordings of rules, error codes, and failures without a rule.
    _make_rule_row("OAR-09", r"invalid_encrypted_content|encrypted content .*could not be verified"),
    _make_rule_row("OAR-03", r"Missing required parameter: 'input\[\d+\]\.id'"),
    # Mistral's models, on Mistral's own host, on other hosts, and in llama.cpp.
    _make_rule_row(
        "MIS-01", r"Tool call id was .* but must be a-z|must be a non-empty string other than 'null'"
    ),
    _make_rule_row("MIS-01", r"Tool call IDs should be alphanumeric strings with length 9"),
    _make_rule_row("MIS-32", r"extra_forbidden|\"body\", ?\"tools\"\]"),
    _make_row("transcript", r"invalid_function_call|invalid_request_message_order"),
    # The provider cannot process an attachment, so the same request would fail again.
    _make_row("media", r"\binvalid_(?:base64_)?image(?:_format|_url|_mode)?\b|image_file_not_found"),
    _make_row("media", r"\bimage_(?:file_)?too_(?:large|small)\b|image_parse_error|failed_to_download_image"),
    _make_row("media", r"unsupported_image_media_type|empty_image_file"),
    _make_row(
        "media",
        r"(?:image|audio|video) input is not supported|endpoints found that support (?:image|file) input",
    ),
    # Hosts compatible with OpenAI Chat have their own wordings: Qwen, GLM, MiniMax, llama.cpp, Ollama, OpenRouter.
    _make_rule_row(
        "OAC-02", r"tool result's tool id\(.*\) not found|must be a response to a prece+ding message with"
    ),
    _make_rule_row("OAC-06", r"is not one of \['system', 'assistant', 'user'"),
    _make_rule_row("OAC-10", r"Tool names are not allowed to be"),
    _make_rule_row(
        "ALL-06", r"parameter of the code model must be in JSON format|invalid tool call arguments"
    ),
    _make_rule_row("ALL-06", r"Failed to parse tool call arguments as JSON"),
    _make_rule_row("OAC-04", r"输入不能为空"),  # in English: "the input must not be empty"
    _make_rule_row("ALL-11", r"messages 参数非法"),  # in English: "messages is not valid"
    _make_rule_row(
        "OAC-05", r"All non-assistant messages must contain 'content'|invalid message content type"
    ),
    _make_rule_row(
        "ALL-11", r"(?:must contain either|Failed to parse messages: Expected) 'content' or 'tool_calls'"
    ),
    _make_rule_row("ALL-02", r"Missing tool call (?:type|function|name)|input_schema does not support \w+"),
    _make_rule_row("ALL-05", r"Cannot have 2 or more assistant messages at the end"),
    _make_rule_row("OAC-01", r"Cannot continue an assistant message that contains tool calls"),
    _make_rule_row("OAC-05", r"Expected 'content' to be a string or an array"),
    _make_rule_row("ALL-10", r"invalid image input", kind="media"),
    _make_row("model_fault", r"model produced output that does not match the expected"),
    _make_rule_row("OAC-11", r"invalid_function_parameters|Invalid schema for function"),
    _make_rule_row("OAC-13", r"messages\[\d+\]\.role' does not support", kind="config"),
    # Messages that mention an attachment near a complaint, but do not mention a tool's declaration.
    _make_row("media", rf"{_NO_TOOL}.*{_ATTACHMENT}.{{0,80}}{_UNUSABLE}", *_REJECTION_STATUSES),
    _make_row("media", rf"{_NO_TOOL}.*{_UNUSABLE}.{{0,80}}{_ATTACHMENT}", *_REJECTION_STATUSES),
    _make_row("media", rf"\b(?:messages|input|contents)[.\[][\w.\[\]]*\.{_BLOCK}\b", *_REJECTION_STATUSES),
    _make_row(
        "media",
        r"\b(?:download|fetch|retriev)\w*\b.{0,40}\b(?:file|content|url|https?:)",
        *_REJECTION_STATUSES,
    ),
    _make_row(
        "media",
        r"\b(?:file|url|link)\b.{0,60}\b(?:expired|no longer (?:valid|available))",
        *_REJECTION_STATUSES,
    ),
    _make_rule_row("OAC-17", r"'prompt_cache_key': string too long"),
    _make_rule_row("OAC-16", r"model_not_found|does not exist or you do not have access"),
    _make_rule_row("OAC-18", r"unsupported_value|unsupported_parameter"),
    _make_rule_row("OAC-19", r"must provide a model parameter", kind="config"),
    _make_rule_row("ANT-07", r"tool_use(?:\.|_)id: String should match pattern"),
    _make_rule_row("ANT-08", r"\.name: String should (?:match pattern|have at most)"),
    _make_rule_row("ANT-29", r"tool_result\.content: List should have at least 1 item"),
    _make_rule_row("ANT-48", r"tool_choice: type .* not supported for this model", kind="config"),
    _make_rule_row("ANT-48", r"Thinking may not be enabled when tool_choice forces", kind="config"),
    _make_rule_row("GEM-05", r"Corrupted thought signature|Thought signature is not valid"),
    _make_rule_row("GEM-13", r"is not found for API version", 404),
    _make_rule_row("GEM-14", r"The model is overloaded", kind="transient"),
    _make_rule_row("BED-08", r"Member must (?:satisfy|have length)"),
    _make_rule_row("BED-10", r"The model returned the following errors", 400),
    _make_rule_row("KIM-09", r"only [\d.]+ is allowed for this model", 400),
    _make_rule_row("KIM-10", r"is incompatible with thinking enabled", 400, kind="config"),
    _make_rule_row("ALL-14", r"not support this tool_choice", 400, kind="config", case="forced"),
    _make_rule_row(
        "ALL-14", r"tool_choice\b.*(?:unsupported|not supported)", 400, kind="config", case="forced"
    ),
    # Wordings about attachments that occur in other rejections as well, so these rows come after those rejections.
    _make_row(
        "media", r"unknown variant \W*(?:image_url|input_audio|video_url|file)\b", *_REJECTION_STATUSES
    ),
    _make_row("media", rf"{_NO_TOOL}.*(?:{_FILE}|\burls?\b).{{0,80}}{_UNUSABLE}", *_REJECTION_STATUSES),
    _make_row("media", rf"{_NO_TOOL}.*{_UNUSABLE}.{{0,80}}(?:{_FILE}|\burls?\b)", *_REJECTION_STATUSES),
    _make_row(
        "media", rf"{_NO_TOOL}.*\burls?\b.{{0,60}}\b(?:disallowed|timed out|must start)", *_REJECTION_STATUSES
    ),
    _make_row("media", r"\bonly https urls\b|\bpermission to access the file\b", 403, *_REJECTION_STATUSES),
    _make_row("media", rf"{_NO_TOOL}.*\b(?:base64|incorrect padding|data[- ]ur[il])\b", *_REJECTION_STATUSES),
    # The Chinese words mean image, image, video and audio.
    _make_row("media", r"\bheight\b.{0,20}\bwidth\b|图片|图像|视频|音频", *_REJECTION_STATUSES),
    _make_row(
        "media",
        r"failed to (?:process|decode|load) (?:image|audio)|image: unknown format|invalid image index",
        500,
    ),
    # The configuration, the plan or the permissions do not allow the request.
    _make_row("config", r"\binvalid_model\b|data_residency_mismatch|tools param requires --jinja"),
    _make_row("config", r"No endpoints found that support tool use"),
    _make_row("config", r"compatible only with \w+ extended prompt caching"),
    _make_row("config", r"API key not valid|API_KEY_INVALID|FAILED_PRECONDITION|PERMISSION_DENIED"),
    _make_row("config", r"invalid_api_key|authentication_error|permission_error"),
)
"""Rows that are searched after the dialect's overflow patterns. Without a match, the status decides."""

_TYPES = {
    400: "invalid_request_error INVALID_ARGUMENT validationException",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    424: "modelStreamErrorException",
    429: "rate_limit_error rate_limit_exceeded insufficient_quota RESOURCE_EXHAUSTED throttlingException",
    500: "api_error server_error internalServerException",
    503: "UNAVAILABLE serviceUnavailableException",
    504: "timeout_error",
    529: "overloaded_error",
}
STATUS_OF_TYPE = {name: status for status, names in _TYPES.items() for name in names.split()}
"""The HTTP status that corresponds to the type of an error inside a response with status 200."""

KIND_OF_STATUS: dict[int, Kind] = {
    400: "transcript",  # a 400 with an unknown wording is treated as our own bug
    422: "transcript",
    408: "transient",
    409: "transient",
    424: "transient",
    425: "transient",
}
"""The kind of a failure without a known wording. Other 3xx and 4xx are `config`; 5xx or no status is `transient`."""
