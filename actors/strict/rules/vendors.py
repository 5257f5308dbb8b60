"""Define the vendors of the Chat Completions family that differ from OpenAI in only a few rules.

The self-hosted servers are defined in `self_hosted`.
"""

import re
from dataclasses import replace

from actors.strict.rules.base import RECALLED, CompatibleProfile, Json, ServerRule, object_at, rules_by_id
from actors.strict.rules.host import RequestContext, VendorHost, check_call_signatures
from actors.strict.rules.model_checks import RULES as OF_MODELS
from actors.strict.rules.model_checks import check_glm, check_minimax
from actors.strict.rules.openai_chat import KEYS, OPENAI, object_schema_fault, without_answer_rules
from actors.strict.rules.openai_messages import MESSAGE_KEYS

_THOUGHT = frozenset({"reasoning", "reasoning_content"})
_MESSAGES = {role: keys | _THOUGHT if role == "assistant" else keys for role, keys in MESSAGE_KEYS.items()}
_WITHOUT_DEVELOPER = {role: keys for role, keys in _MESSAGES.items() if role != "developer"}

FAMILY: VendorHost = replace(
    without_answer_rules(OPENAI),
    rules={},
    unknown_keys="strict",
    message_keys=_MESSAGES,
    tool_types=("function",),
    schema=object_schema_fault,
    profile=CompatibleProfile(),
)


def variant_of(host: VendorHost, name: str, rules: dict[str, ServerRule], **vendor_rules: str) -> VendorHost:
    """Return a copy of `host` with a different name and different rules.

    Each keyword in `vendor_rules` maps a rule of the family to the vendor's rule: `OAC_01="XAI-01"`.
    """
    return replace(
        host,
        name=name,
        rules=rules,
        replacement_rules={key.replace("_", "-", 1): rule for key, rule in vendor_rules.items()},
    )


# ---- xAI

XAI = replace(
    variant_of(
        FAMILY,
        "xai",
        rules_by_id(
            ServerRule(
                "XAI-01",
                "This model's maximum prompt length is {limit} but the request contains {tokens} tokens.",
                code="Client specified an invalid argument",
            ),
        ),
        OAC_15="XAI-01",
    ),
    error_code="Client specified an invalid argument",
    keys=KEYS | {"search_parameters", "deferred"},
    own_tools=re.compile(r"(web|x|live|collections|file)_search|code_(execution|interpreter)|mcp"),
)

# ---- Qwen

_ALGO = "<400> InternalError.Algo.InvalidParameter: "
_QWEN_CODE = "invalid_parameter_error"


def _reject_search_tool(request: Json, context: RequestContext) -> None:
    if any(object_at(tool, "function").get("name") == "search" for tool in request.get("tools") or ()):
        raise context.host.rules["QWN-05"].refuse("tools")


QWEN = replace(
    variant_of(
        FAMILY,
        "qwen",
        rules_by_id(
            ServerRule(
                "QWN-01",
                _ALGO
                + 'An assistant message with "tool_calls" must be followed by tool messages responding to '
                'each "tool_call_id". The following tool_call_ids did not have response messages: '
                "message[{at}].role",
                code=_QWEN_CODE,
            ),
            ServerRule(
                "QWN-02",
                _ALGO
                + 'messages with role "tool" must be a response to a preceeding message with "tool_calls".',
                code=_QWEN_CODE,
            ),
            ServerRule(
                "QWN-03",
                _ALGO + 'The "function.arguments" parameter of the code model must be in JSON format.',
                code=_QWEN_CODE,
            ),
            ServerRule(
                "QWN-04",
                "{value} is not one of ['system', 'assistant', 'user', 'tool', 'function']",
                code=_QWEN_CODE,
            ),
            ServerRule(
                "QWN-06",
                _ALGO
                + "'messages' must contain the word 'json' in some form, to use 'response_format' of type "
                "'json_object'.",
                code=_QWEN_CODE,
            ),
            ServerRule("QWN-05", "Tool names are not allowed to be [search]", code=_QWEN_CODE),
        ),
        OAC_01="QWN-01",
        OAC_02="QWN-02",
        OAC_S08="QWN-02",
        OAC_S09="QWN-03",
        OAC_06="QWN-04",
        OAC_S14="QWN-06",
    ),
    lacks=frozenset({"OAC-S15"}),
    error_code=_QWEN_CODE,
    keys=KEYS | {"enable_thinking", "thinking_budget", "enable_search", "top_k", "extra_body"},
    message_keys=_WITHOUT_DEVELOPER,
    enforced=frozenset({"OAC-S09"}),
    checks=(_reject_search_tool,),
)

# ---- GLM


def _check_glm(request: Json, context: RequestContext) -> None:
    check_glm(request)


_GLM_INVALID = "messages 参数非法"
_GLM = replace(
    variant_of(
        FAMILY,
        "glm",
        rules_by_id(
            ServerRule("GLM-01", "输入不能为空", code="1214"),
            OF_MODELS["GLM-04"],
            ServerRule("GLM-02", _GLM_INVALID, code="1214"),
            ServerRule("GLM-03", "API 调用参数有误", RECALLED, code="1210"),
        ),
        OAC_01="GLM-02",
        OAC_02="GLM-02",
        OAC_S08="GLM-02",
        OAC_S11="GLM-02",
        OAC_12="GLM-03",
        OAC_S02="GLM-03",
    ),
    checks=(_check_glm,),
    error_code="1214",
    keys=KEYS | {"thinking", "do_sample", "request_id", "user_id", "tool_stream"},
    own_tools=re.compile(r"web_search|retrieval|mcp"),
    message_keys=_WITHOUT_DEVELOPER,
    enforced=frozenset({"OAC-S11"}),
)
GLM = replace(_GLM, replacement_rules={**_GLM.replacement_rules, "OAC-04 messages": "GLM-01"})

# ---- MiniMax


def _check_minimax(request: Json, context: RequestContext) -> None:
    check_minimax(request)


MINIMAX = replace(
    variant_of(
        FAMILY,
        "minimax",
        rules_by_id(
            ServerRule(
                "MMX-01",
                "invalid params, tool result's tool id({id}) not found (2013)",
                type="bad_request_error",
            ),
            OF_MODELS["MMX-04"],
            ServerRule(
                "MMX-02", "invalid params, context window exceeds limit (2013)", type="bad_request_error"
            ),
            ServerRule(
                "MMX-03",
                "invalid params, tool call result does not follow tool call (2013)",
                RECALLED,
                type="bad_request_error",
            ),
        ),
        OAC_02="MMX-01",
        OAC_S08="MMX-01",
        OAC_15="MMX-02",
        OAC_01="MMX-03",
    ),
    error_type="bad_request_error",
    checks=(_check_minimax,),
    keys=KEYS | {"reasoning_split", "mask_sensitive_info", "thinking"},
    message_keys={
        role: keys | {"reasoning_details"} if role == "assistant" else keys
        for role, keys in _WITHOUT_DEVELOPER.items()
    },
)

# ---- Groq


def _check_answer_format(request: Json, context: RequestContext) -> None:
    """Refuse an answer format if the request has tools, and refuse an answer schema if the answer is streamed."""
    which = object_at(request, "response_format").get("type", "text")
    if which != "text" and request.get("tools"):
        raise context.host.rules["GRQ-04"].refuse()
    if which == "json_schema" and request.get("stream"):
        raise context.host.rules["GRQ-05"].refuse()


GROQ = replace(
    variant_of(
        FAMILY,
        "groq",
        rules_by_id(
            ServerRule(
                "GRQ-01",
                "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
                code="tool_use_failed",
            ),
            ServerRule(
                "GRQ-02",
                "Tool choice is required, but model did not call a tool",
                code="tool_use_failed",
            ),
            ServerRule(
                "GRQ-03",
                "Please reduce the length of the messages or completion.",
                code="context_length_exceeded",
            ),
            ServerRule("GRQ-04", "json mode cannot be combined with tool/function calling"),
            ServerRule("GRQ-05", "response_format` does not support streaming"),
            ServerRule("GRQ-06", "invalid schema for response format: response_format/json_schema: {why}"),
        ),
        OAC_15="GRQ-03",
        OAC_S13="GRQ-06",
    ),
    lacks=frozenset({"OAC-S15"}),
    strict=OPENAI.strict,
    checks=(_check_answer_format,),
    keys=KEYS | {"reasoning_format", "include_reasoning", "search_settings"},
    own_tools=re.compile(r"browser_search|code_interpreter|mcp"),
)

# ---- unknown hosts with this API

OPENAI_COMPATIBLE = replace(variant_of(FAMILY, "openai_compatible", {}), checks=(check_call_signatures,))

# ---- Azure OpenAI, dated API versions

AZURE = replace(
    without_answer_rules(OPENAI),
    name="azure",
    rules={},
    keys=KEYS - {"prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"},
    message_keys=_MESSAGES,
    profile=CompatibleProfile(),
)
