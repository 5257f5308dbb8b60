"""What vendors of Chat Completions answer, in their own shapes and words, and what we make of it."""

import json

import pytest

from actors.adapters.classify import classify
from actors.core.dialects.profiles import dialect
from actors.core.rulebook import RULES


def mistral(message: str, kind: str = "invalid_request_message_order", code: object = "3230") -> object:
    error = {"object": "error", "message": message, "type": kind, "param": None, "code": code}
    return {**error, "raw_status_code": 400}


def nested(message: str, **more: object) -> object:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


ID = "Tool call id was call_abc123 but must be a-z, A-Z, 0-9, with a length of 9."
NAME = "Function name was a.b but must be a-z, A-Z, 0-9, or contain underscores and dashes."
EXTRA = {
    "type": "extra_forbidden",
    "loc": ["body", "messages", 5, "assistant", "reasoning_content"],
    "msg": "Extra inputs are not permitted",
}
UNANSWERED = (
    "A message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id' "
)
STRAY = 'messages with role "tool" must be a response to a preceeding message with "tool_calls".'
QWEN = "<400> InternalError.Algo.InvalidParameter: "
RAW = json.dumps(mistral("Unexpected role 'user' after role 'tool'"))

TRANSCRIPT: list[tuple[str, int, object, str | None]] = [
    ("mistral", 400, mistral(ID, "invalid_function_call", "3280"), "MIS-01"),
    ("mistral", 400, mistral("Tool call id must be a non-empty string other than 'null' for x"), "MIS-01"),
    ("mistral", 400, mistral("Not the same number of function calls and responses"), "MIS-02"),
    ("mistral", 400, mistral("Duplicate tool call id X in tool results"), "MIS-03"),
    ("mistral", 400, mistral("Duplicate tool call id X in assistant message"), "MIS-04"),
    ("mistral", 400, mistral("Unexpected role 'tool' after role 'user'"), "MIS-05"),
    ("mistral", 400, mistral("Unexpected tool call id X in tool results"), "MIS-07"),
    ("mistral", 400, mistral("Expected last role User or Tool (or Assistant with prefix) for serving"), "MIS-10"),
    ("mistral", 400, mistral("Assistant message with prefix True must be last message"), "MIS-11"),
    ("mistral", 400, mistral("Unexpected role 'system' after role 'tool'"), "MIS-12"),
    ("mistral", 400, mistral("Conversation must have at least one message"), "MIS-13"),
    ("mistral", 400, mistral("Conversation must start with a user message or system message"), "MIS-13"),
    ("mistral", 400, mistral(NAME, "invalid_function_call", "3280"), "MIS-14"),
    ("mistral", 400, mistral("Tool call id has to be defined."), "MIS-15"),
    ("mistral", 400, mistral("Tool call id has to be defined in serving mode."), "MIS-16"),
    ("mistral", 400, mistral("Assistant message must have either content or tool_calls, but not both."), "MIS-17"),
    ("mistral", 400, mistral("Unexpected role 'user' after role 'tool'"), "MIS-21"),
    ("mistral", 400, mistral("Unexpected role 'user' after role 'tool'", "invalid_request_error", 3230), "MIS-21"),
    ("mistral", 400, mistral("words nobody has seen"), None),
    ("mistral", 422, {"detail": [EXTRA]}, "MIS-32"),
    ("mistral", 422, nested(json.dumps([EXTRA])), "MIS-32"),
    ("mistral", 422, {"object": "error", "message": {"detail": [EXTRA]}, "type": "invalid_request_error"}, "MIS-32"),
    ("mistral", 422, nested("Extra inputs are not permitted"), "MIS-32"),
    ("mistral", 422, {"detail": [{"type": "too_short", "loc": ["body", "tools"], "msg": "at least 1 item"}]},
     "MIS-32"),
    ("kimi", 400, nested(UNANSWERED + "The following tool_call_ids did not have response messages: A:0"), "KIM-01"),
    ("kimi", 400, nested("Invalid request: tool_call_id  is not found"), "KIM-02"),
    ("kimi", 400,
     nested("thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"),
     "KIM-03"),
    ("kimi", 400,
     nested("Invalid request: the message at position 72 with role 'assistant' must not be empty"), "KIM-04"),
    ("kimi", 400, nested("text content is empty"), "KIM-05"),
    ("kimi", 400, nested("Invalid request: function name is invalid, must start with a letter and can"), "KIM-06"),
    ("kimi", 400,
     nested("tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'x'>"),
     "KIM-07"),
    ("kimi", 400, nested("unknown tool type: custom, currently only function and plugin are supported"), "KIM-08"),
    ("kimi", 400, nested("Invalid request: messages must not be empty"), "KIM-11"),
    ("deepseek", 400, nested("Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"),
     "DSK-01"),
    ("deepseek", 400, nested(UNANSWERED + "(insufficient tool messages following tool_calls message)"), "DSK-02"),
    ("deepseek", 400, nested(UNANSWERED + "The following tool_call_ids did not have response messages: c1"), "DSK-03"),
    ("deepseek", 422, nested("Failed to deserialize the JSON body: messages[2]: missing field `tool_call_id`"),
     "DSK-04"),
    ("deepseek", 400, nested("The `reasoning_content` in the thinking mode must be passed back to the API."),
     "DSK-05"),
    ("anthropic", 400, nested("The `content[].thinking` in the thinking mode must be passed back to the API."),
     "DSK-06"),
    ("openai_chat", 400, nested("The `reasoning_text` in the thinking mode must be passed back to the API"),
     "DSK-07"),
    ("qwen", 400, nested(QWEN + UNANSWERED.replace("'", '"') + "message[15].role"), "OAC-01"),
    ("qwen", 400, nested(QWEN + STRAY), "OAC-02"),
    ("qwen", 400, nested('The "function.arguments" parameter of the code model must be in JSON format.'), "ALL-06"),
    ("qwen", 400, nested("developer is not one of ['system', 'assistant', 'user', 'tool', 'function']"), "OAC-06"),
    ("qwen", 400, nested("Tool names are not allowed to be [search]"), "OAC-10"),
    ("glm", 400, {"error": {"code": "1214", "message": "输入不能为空"}}, "OAC-04"),
    ("glm", 400, {"error": {"code": "1214", "message": "messages 参数非法。请检查文档。"}}, "ALL-11"),
    ("minimax", 400, nested("invalid params, tool result's tool id(call_X) not found (2013)"), "OAC-02"),
    ("openrouter", 400,
     {"error": {"code": 400, "message": "Provider returned error", "metadata": {"provider_name": "x", "raw": RAW}}},
     "MIS-21"),
    ("vllm", 400,
     {"object": "error", "message": "Conversation roles must alternate user/assistant/...", "code": 400}, "CMP-01"),
    ("vllm", 400,
     nested("After the optional system message, conversation roles must alternate user and assistant roles except"),
     "CMP-01"),
    ("llama_cpp", 400, nested("All non-assistant messages must contain 'content'"), "OAC-05"),
    ("llama_cpp", 400, nested("Assistant message must contain either 'content' or 'tool_calls'!"), "ALL-11"),
    ("llama_cpp", 400, nested("Failed to parse messages: Expected 'content' or 'tool_calls'"), "ALL-11"),
    ("llama_cpp", 400, nested("Jinja Exception: This model only supports single tool-calls at once!"), "CMP-02"),
    ("llama_cpp", 400, nested("Missing tool call name"), "ALL-02"),
    ("llama_cpp", 500, nested("Failed to parse messages: Missing tool call type: {}"), "ALL-02"),
    ("llama_cpp", 400, nested("Expected 'content' to be a string or an array"), "OAC-05"),
    ("llama_cpp", 400, nested("Exception: Tool call IDs should be alphanumeric strings with length 9!"), "MIS-01"),
    ("llama_cpp", 500, nested("Failed to parse tool call arguments as JSON: x"), "ALL-06"),
    ("llama_cpp", 400, nested("Cannot have 2 or more assistant messages at the end of the list."), "ALL-05"),
    ("llama_cpp", 400, nested("Cannot continue an assistant message that contains tool calls."), "OAC-01"),
    ("ollama", 400, nested("invalid tool call arguments"), "ALL-06"),
    ("anthropic", 400, {"type": "error", "error": {"type": "invalid_request_error", "message":
        "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"}},
     "ALL-02"),
    ("ollama", 400, {"error": "invalid message content type: int"}, "OAC-05"),
]  # fmt: skip

OTHERS: list[tuple[str, int, object, str, str | None]] = [
    ("mistral", 400,
     mistral("Prompt contains 10000 tokens and 0 draft tokens, too large for model with 8192 maximum context length"),
     "overflow", "MIS-33"),
    ("kimi", 400, nested("Invalid request: Your request exceeded model token limit: 8192"), "overflow", "KIM-12"),
    ("deepseek", 400, nested("This model's maximum context length is 65536 tokens. However, you requested 70000"),
     "overflow", "DSK-09"),
    ("xai", 400, {"code": "x", "error": "This model's maximum prompt length is 131072 but the request contains"},
     "overflow", "OAC-15"),
    ("minimax", 400, nested("invalid params, context window exceeds limit"), "overflow", "OAC-15"),
    ("groq", 400, nested("Please reduce the length of the messages or completion."), "overflow", "OAC-15"),
    ("openrouter", 400, nested("This endpoint's maximum context length is 9 tokens. However, you requested about 10"),
     "overflow", "OAC-15"),
    ("llama_cpp", 400, nested("request (9 tokens) exceeds the available context size (8 tokens), try increasing it",
                              type="exceed_context_size_error"), "overflow", "OAC-15"),
    ("kimi", 400, nested("invalid temperature: only 1 is allowed for this model"), "parameter", "KIM-09"),
    ("kimi", 400, nested("invalid top_p: only 0.95 is allowed for this model"), "parameter", "KIM-09"),
    ("kimi", 400, nested("invalid n: only 1 is allowed for this model"), "config", "KIM-09"),
    ("kimi", 400, nested("tool_choice 'specified' is incompatible with thinking enabled"), "parameter", "KIM-10"),
    ("kimi", 400, nested("tool_choice 'required' is unsupported"), "parameter", "KIM-10"),
    ("deepseek", 400, nested("deepseek-reasoner does not support this tool_choice"), "parameter", "DSK-08"),
    ("xai", 400, nested("tool_choice is not supported with this model"), "parameter", "ALL-14"),
    ("mistral", 400, {"object": "error", "message": "Invalid model: x", "type": "invalid_model", "code": "1500"},
     "config", None),
    ("openai_chat", 400, nested("This model is compatible only with 24h extended prompt caching"), "parameter", None),
    ("llama_cpp", 500, nested("tools param requires --jinja flag"), "config", None),
    ("llama_cpp", 500, nested("image input is not supported - hint: if this is unexpected"), "media", None),
    ("mistral", 400, mistral("Unexpected content chunk types in tool message: ['ImageURLChunk']"), "media", "MIS-18"),
    ("ollama", 400, nested("invalid image input"), "media", "ALL-10"),
    ("llama_cpp", 500, nested("The model produced output that does not match the expected peg-native format"),
     "model_fault", None),
    ("openrouter", 404, nested("No endpoints found that support tool use"), "config", None),
    ("openrouter", 402, nested("Insufficient credits"), "quota", None),
    ("deepseek", 402, nested("Insufficient Balance"), "quota", None),
    ("deepseek", 503, nested("Server overloaded"), "transient", None),
    ("kimi", 429, nested("x", type="engine_overloaded_error"), "transient", None),
    ("kimi", 429, nested("x", type="exceeded_current_quota_error"), "quota", None),
    ("groq", 400, nested("Failed to call a function.", code="tool_use_failed", failed_generation="<x>"),
     "model_fault", None),
    ("groq", 400, nested("Tool choice is required, but model did not call a tool"), "model_fault", None),
    ("groq", 413, nested("Request too large for model `x` on tokens per minute (TPM)"), "too_big_for_bucket", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "status", "body", "rule"), TRANSCRIPT)
def test_a_vendors_refusal_of_a_transcript_is_our_bug_and_names_the_rule(
    name: str, status: int, body: object, rule: str | None
) -> None:
    failure = classify(status, {}, json.dumps(body).encode(), dialect(name))
    assert (failure.kind, failure.action, failure.rule) == ("transcript", "our_bug", rule)
    assert rule is None or rule in RULES


@pytest.mark.parametrize(("name", "status", "body", "kind", "rule"), OTHERS)
def test_what_is_no_fault_of_a_transcript_is_told_apart(
    name: str, status: int, body: object, kind: str, rule: str | None
) -> None:
    failure = classify(status, {}, json.dumps(body).encode(), dialect(name))
    assert (failure.kind, failure.rule) == (kind, rule)
