"""Define the rules of the self-hosted servers vLLM, llama.cpp and Ollama.

These servers differ from OpenAI in a few rules, and enforce the model's chat template.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from actors.strict.rules import schemas
from actors.strict.rules.base import (
    RECALLED,
    Json,
    ServerRefusal,
    ServerRule,
    is_array,
    is_object,
    rules_by_id,
)
from actors.strict.rules.host import RequestContext, VendorHost
from actors.strict.rules.openai_messages import check_identity, check_sequence
from actors.strict.rules.vendors import FAMILY, variant_of

_SOURCE = "the server's source"


def strict_only(
    check: Callable[[list[Json], RequestContext], None],
) -> Callable[[list[Json], RequestContext], None]:
    """Return a check that runs `check` only in the mode `strict`."""

    def check_strictly(messages: list[Json], context: RequestContext) -> None:
        if context.mode == "strict":
            check(messages, context)

    return check_strictly


_SELF_HOSTED: VendorHost = replace(
    FAMILY,
    unknown_keys="ignore",
    enforced=frozenset({"OAC-S09"}),
    identity=strict_only(check_identity),
    sequence=strict_only(check_sequence),
)


def _check_template(request: Json, context: RequestContext) -> None:
    """Check the order of roles that the chat template of the model requires."""
    template = context.model_profile.template
    rule = {"alternate": "VLM-01", "alternate_around_tools": "VLM-02"}.get(template)
    if rule is None:
        return
    messages = request["messages"]
    if messages[0]["role"] in ("system", "developer"):
        messages = messages[1:]
    if template == "alternate_around_tools":
        messages = [each for each in messages if each["role"] != "tool" and not each.get("tool_calls")]
    if any((message["role"] == "user") != (at % 2 == 0) for at, message in enumerate(messages)):
        raise context.host.rules[rule].refuse()


VLLM = replace(
    variant_of(
        _SELF_HOSTED,
        "vllm",
        rules_by_id(
            ServerRule(
                "VLM-01",
                "Conversation roles must alternate user/assistant/user/assistant/...",
                type="BadRequestError",
                code="400",
            ),
            ServerRule(
                "VLM-02",
                "After the optional system message, conversation roles must alternate user and assistant roles "
                "except for tool calls and results.",
                type="BadRequestError",
                code="400",
            ),
            ServerRule(
                "VLM-03",
                "This model's maximum context length is {limit} tokens. However, you requested {tokens} tokens. "
                "Please reduce the length of the messages.",
                type="BadRequestError",
                code="400",
            ),
            ServerRule(
                "VLM-04",
                "Expecting value: the arguments of a tool call must be a JSON object",
                RECALLED,
                type="BadRequestError",
                code="400",
            ),
        ),
        OAC_15="VLM-03",
        OAC_S09="VLM-04",
    ),
    error_type="BadRequestError",
    error_code="400",
    checks=(_check_template,),
)

# ---- llama.cpp


def _check_last_messages(messages: list[Json], context: RequestContext) -> None:
    """Refuse two assistant messages at the end, and calls in the last message."""
    roles = [message["role"] for message in messages[-2:]]
    if roles == ["assistant", "assistant"]:
        raise context.host.rules["LCP-07"].refuse()
    if messages[-1].get("tool_calls"):
        raise context.host.rules["LCP-08"].refuse()
    strict_only(check_sequence)(messages, context)


def _check_tool_support(request: Json, context: RequestContext) -> None:
    if request.get("tools") and not context.model_profile.tools:
        raise context.host.rules["LCP-09"].refuse()


def _check_parallel_calls(request: Json, context: RequestContext) -> None:
    if not context.model_profile.parallel and any(
        len(each.get("tool_calls") or ()) > 1 for each in request["messages"]
    ):
        raise context.host.rules["LCP-13"].refuse()


def _check_grammar(request: Json, context: RequestContext) -> None:
    """Check that the server can build one grammar for all tools of the request."""
    parameters = [tool.get("function", {}).get("parameters") for tool in request.get("tools") or ()]
    if any(map(schemas.has_lookaround, parameters)):
        raise context.host.rules["LCP-16"].refuse()


def _check_image_support(request: Json, context: RequestContext) -> None:
    contents = [message.get("content") for message in request["messages"]]
    parts = [part for content in contents if is_array(content) for part in content]
    if not context.model_profile.images and any(part["type"] == "image_url" for part in parts):
        raise context.host.rules["LCP-12"].refuse()


def _unanchored_pattern(schema: Json) -> str | None:
    """Return the first regular expression in a schema that is not anchored at both ends, or None.

    The server cannot build a grammar for such an expression.
    """
    patterns = [schema.get("pattern")] if is_object(schema) else []
    for pattern in patterns:
        if isinstance(pattern, str) and not (pattern.startswith("^") and pattern.endswith("$")):
            return pattern
    inner = schema if is_array(schema) else []
    if is_object(schema):
        inner = [
            value for key, value in schema.items() if key not in ("default", "examples", "const", "enum")
        ]
    return next((found for value in inner if (found := _unanchored_pattern(value))), None)


def _server_error_rule(rule_id: str, message: str) -> ServerRule:
    """Return a rule whose violation the server reports with status 500."""
    return ServerRule(rule_id, message, "measured", status=500, type="server_error")


def _check_choice(request: Json, context: RequestContext) -> None:
    """Refuse a tool choice that is not a string, in the mode `strict`."""
    if context.mode == "strict" and is_object(request.get("tool_choice")):
        raise context.host.rules["LCP-15" if context.host.name == "llama_cpp" else "OLL-05"].refuse(
            "tool_choice"
        )


def _ignored_choice_rule(rule_id: str) -> ServerRule:
    """Return the rule that forbids an object as tool choice. The real server silently ignores such a choice."""
    message = "tool_choice is not a string"
    return ServerRule(rule_id, message, f"{_SOURCE}: no refusal, it is taken for auto", strict_only=True)


def _add_token_count(refusal: ServerRefusal, request: Json, values: Mapping[str, object]) -> ServerRefusal:
    """Add token counts to the refusal of a request that exceeds the context window."""
    if refusal.rule != "LCP-10":
        return refusal
    return replace(refusal, detail={"n_prompt_tokens": values["tokens"], "n_ctx": values["limit"]})


LLAMA_CPP = replace(
    variant_of(
        _SELF_HOSTED,
        "llama_cpp",
        rules_by_id(
            ServerRule("LCP-01", "All non-assistant messages must contain 'content'", "measured"),
            ServerRule(
                "LCP-02", "Assistant message must contain either 'content' or 'tool_calls'!", "measured"
            ),
            _server_error_rule("LCP-03", "Failed to parse messages: Missing tool call type"),
            _server_error_rule("LCP-04", "Failed to parse messages: Missing tool call function"),
            _server_error_rule("LCP-05", "Failed to parse messages: Missing tool call name"),
            _server_error_rule("LCP-06", "Failed to parse tool call arguments as JSON: {arguments}"),
            ServerRule(
                "LCP-07", "Cannot have 2 or more assistant messages at the end of the list.", "measured"
            ),
            ServerRule(
                "LCP-08", "Cannot continue an assistant message that contains tool calls.", "measured"
            ),
            _server_error_rule("LCP-09", "tools param requires --jinja flag"),
            ServerRule(
                "LCP-10",
                "request ({tokens} tokens) exceeds the available context size ({limit} tokens), try increasing it",
                "measured",
                type="exceed_context_size_error",
            ),
            ServerRule("LCP-11", "Expected 'content' to be a string or an array", "measured"),
            _server_error_rule(
                "LCP-12",
                "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            ),
            ServerRule(
                "LCP-14",
                "JSON schema conversion failed:\nPattern must start with '^' and end with '$'",
                _SOURCE,
            ),
            _ignored_choice_rule("LCP-15"),
            ServerRule("LCP-16", "Failed to initialize samplers: failed to parse grammar"),
            ServerRule(
                "LCP-13", "Jinja Exception: This model only supports single tool-calls at once!", "measured"
            ),
        ),
    ),
    replacement_rules={
        "OAC-07 content": "LCP-01",
        "OAC-S12": "LCP-01",
        "OAC-S11": "LCP-02",
        "OAC-07 type": "LCP-03",
        "OAC-07 function": "LCP-04",
        "OAC-07 name": "LCP-05",
        "OAC-S09": "LCP-06",
        "OAC-15": "LCP-10",
        "OAC-05 content": "LCP-11",
        "OAC-S13": "LCP-14",
    },
    enforced=frozenset({"OAC-S09", "OAC-S11"}),
    sequence=_check_last_messages,
    checks=(_check_tool_support, _check_image_support, _check_parallel_calls, _check_choice, _check_grammar),
    answer=_unanchored_pattern,
    finish=_add_token_count,
)

# ---- Ollama


def _check_image_urls(request: Json, context: RequestContext) -> None:
    for message in request["messages"]:
        parts = message.get("content")
        for part in parts if is_array(parts) else ():
            if part["type"] == "image_url" and not str(part["image_url"].get("url")).startswith("data:"):
                raise context.host.rules["OLL-03"].refuse()


_OLLAMA = replace(
    variant_of(
        _SELF_HOSTED,
        "ollama",
        rules_by_id(
            ServerRule("OLL-01", "invalid tool call arguments", _SOURCE),
            ServerRule("OLL-02", "invalid message content type: {kind}", _SOURCE),
            ServerRule("OLL-03", "invalid image input", RECALLED),
            ServerRule("OLL-04", "invalid JSON schema in format", RECALLED),
            _ignored_choice_rule("OLL-05"),
        ),
        OAC_S09="OLL-01",
        OAC_S13="OLL-04",
    ),
    answer=_unanchored_pattern,
    kinds={
        "integer": "float64",
        "decimal": "float64",
        "boolean": "bool",
        "object": "map[string]interface {}",
        "null": "<nil>",
    },
)
OLLAMA = replace(
    _OLLAMA,
    replacement_rules={**_OLLAMA.replacement_rules, "OAC-05 content": "OLL-02"},
    checks=(_check_image_urls, _check_choice),
)

# ---- hosts of open models; they run vLLM

OPEN_MODELS = replace(VLLM, name="open_models")
