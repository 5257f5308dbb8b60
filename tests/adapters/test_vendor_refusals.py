"""Check the classification of errors of Chat Completions vendors that no strict server sends.

`tests/rules` has the words of the strict servers.
"""

import json

import pytest

from actors.adapters.classify import classify
from actors.core.dialects.profiles import dialect
from actors.core.rulebook import RULES


def mistral(message: str, kind: str = "invalid_request_message_order", code: object = "3230") -> object:
    error = {"object": "error", "message": message, "type": kind, "param": None, "code": code}
    return {**error, "raw_status_code": 400}


def wrap(message: str, **more: object) -> object:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


EXTRA = {
    "type": "extra_forbidden",
    "loc": ["body", "messages", 5, "assistant", "reasoning_content"],
    "msg": "Extra inputs are not permitted",
}
UNANSWERED = (
    "A message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id' "
)
QWEN = "<400> InternalError.Algo.InvalidParameter: "
RAW = json.dumps(mistral("Unexpected role 'user' after role 'tool'"))

TRANSCRIPT: list[tuple[str, int, object, str | None]] = [
    ("mistral", 400, mistral("Tool call id must be a non-empty string other than 'null' for x"), "MIS-01"),
    ("mistral", 400, mistral("Unexpected role 'user' after role 'tool'", "invalid_request_error", 3230), "MIS-21"),
    ("mistral", 400, mistral("words nobody has seen"), None),
    ("mistral", 422, {"detail": [EXTRA]}, "MIS-32"),
    ("mistral", 422, wrap(json.dumps([EXTRA])), "MIS-32"),
    ("mistral", 422, {"object": "error", "message": {"detail": [EXTRA]}, "type": "invalid_request_error"}, "MIS-32"),
    ("mistral", 422, wrap("Extra inputs are not permitted"), "MIS-32"),
    ("mistral", 422, {"detail": [{"type": "too_short", "loc": ["body", "tools"], "msg": "at least 1 item"}]},
     "MIS-32"),
    ("kimi", 400, wrap(UNANSWERED + "The following tool_call_ids did not have response messages: A:0"), "KIM-01"),
    ("kimi", 400,
     wrap("tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'x'>"),
     "KIM-07"),
    ("deepseek", 400, wrap(UNANSWERED + "(insufficient tool messages following tool_calls message)"), "DSK-02"),
    ("deepseek", 400, wrap(UNANSWERED + "The following tool_call_ids did not have response messages: c1"), "DSK-03"),
    ("deepseek", 422, wrap("Failed to deserialize the JSON body: messages[2]: missing field `tool_call_id`"),
     "DSK-04"),
    ("openai_chat", 400, wrap("The `reasoning_text` in the thinking mode must be passed back to the API"),
     "DSK-07"),
    ("qwen", 400, wrap(QWEN + UNANSWERED.replace("'", '"') + "message[15].role"), "OAC-01"),
    ("glm", 400, {"error": {"code": "1214", "message": "messages 参数非法。请检查文档。"}}, "ALL-11"),
    ("openrouter", 400,
     {"error": {"code": 400, "message": "Provider returned error", "metadata": {"provider_name": "x", "raw": RAW}}},
     "MIS-21"),
    ("vllm", 400,
     {"object": "error", "message": "Conversation roles must alternate user/assistant/...", "code": 400}, "CMP-01"),
    ("llama_cpp", 400, wrap("Failed to parse messages: Expected 'content' or 'tool_calls'"), "ALL-11"),
    ("llama_cpp", 400, wrap("Missing tool call name"), "ALL-02"),
    ("llama_cpp", 500, wrap("Failed to parse messages: Missing tool call type: {}"), "ALL-02"),
    ("llama_cpp", 400, wrap("Exception: Tool call IDs should be alphanumeric strings with length 9!"), "MIS-01"),
    ("llama_cpp", 500, wrap("Failed to parse tool call arguments as JSON: x"), "ALL-06"),
    ("ollama", 400, {"error": "invalid message content type: int"}, "OAC-05"),
]  # fmt: skip

OTHERS: list[tuple[str, int, object, str, str | None]] = [
    ("kimi", 400, wrap("invalid top_p: only 0.95 is allowed for this model"), "parameter", "KIM-09"),
    ("kimi", 400, wrap("invalid n: only 1 is allowed for this model"), "config", "KIM-09"),
    ("kimi", 400, wrap("tool_choice 'required' is unsupported"), "parameter", "KIM-10"),
    ("xai", 400, wrap("tool_choice is not supported with this model"), "parameter", "ALL-14"),
    ("mistral", 400, {"object": "error", "message": "Invalid model: x", "type": "invalid_model", "code": "1500"},
     "config", None),
    ("openai_chat", 400, wrap("This model is compatible only with 24h extended prompt caching"), "parameter", None),
    ("llama_cpp", 500, wrap("The model produced output that does not match the expected peg-native format"),
     "model_fault", None),
    ("openrouter", 402, wrap("Insufficient credits"), "quota", None),
    ("deepseek", 402, wrap("Insufficient Balance"), "quota", None),
    ("deepseek", 503, wrap("Server overloaded"), "transient", None),
    ("kimi", 429, wrap("x", type="engine_overloaded_error"), "transient", None),
    ("kimi", 429, wrap("x", type="exceeded_current_quota_error"), "quota", None),
    ("groq", 400, wrap("Failed to call a function.", code="tool_use_failed", failed_generation="<x>"),
     "model_fault", None),
    ("groq", 400, wrap("Tool choice is required, but model did not call a tool"), "model_fault", None),
    ("groq", 413, wrap("Request too large for model `x` on tokens per minute (TPM)"), "too_big_for_bucket", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "status", "body", "rule"), TRANSCRIPT)
def test_a_rejected_transcript_is_classified_as_a_bug_of_this_library_and_names_the_rule(
    name: str, status: int, body: object, rule: str | None
) -> None:
    failure = classify(status, {}, json.dumps(body).encode(), dialect(name))
    assert (failure.kind, failure.action, failure.rule) == ("transcript", "our_bug", rule)
    assert rule is None or rule in RULES


@pytest.mark.parametrize(("name", "status", "body", "kind", "rule"), OTHERS)
def test_other_errors_are_not_classified_as_transcript_faults(
    name: str, status: int, body: object, kind: str, rule: str | None
) -> None:
    failure = classify(status, {}, json.dumps(body).encode(), dialect(name))
    assert (failure.kind, failure.rule) == (kind, rule)
