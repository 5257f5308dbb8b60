"""Kimi, DeepSeek and OpenRouter: a broken body for each rule, and the nearest sound one."""

from typing import Any

from actors.strict.rules import CompatibleSettings
from actors.strict.rules.openrouter import sign
from tests.strict.family import (
    DEEPSEEK,
    KA,
    KB,
    LONG,
    NO_PAIR,
    ONE,
    SAID,
    SMALL,
    SYSTEM,
    TOOL,
    UNANSWERED,
    USER,
    A,
    B,
    Case,
    Json,
    body,
    call,
    calls,
    given,
    result,
    schema,
    thought,
    without,
)

KA_TURN = thought(call(KA))
K_ONE = body(USER, KA_TURN, result(KA))
K_TWO = body(USER, thought(call(KA), call(KB)), result(KA), result(KB))
MOONSHOT = "tools.function.parameters is not a valid moonshot flavored json schema, details: "


def kimi(rule: str, refused: Json, message: str, accepted: Json = K_ONE, **more: Any) -> Case:
    return Case("kimi", rule, refused, message, accepted, **more)  # passed on to a typed constructor


KIMI = [
    kimi("KIM-01", body(USER, KA_TURN, USER), UNANSWERED + KA),
    kimi("KIM-01", body(USER, thought(call(KA), call(KB)), result(KB)), UNANSWERED + KA, K_TWO),
    kimi("KIM-02", body(USER, result(KA)), "Invalid request: tool_call_id  is not found"),
    kimi(
        "KIM-02", body(USER, KA_TURN, result(KB), result(KA)), "Invalid request: tool_call_id  is not found"
    ),
    kimi(
        "KIM-03",
        body(USER, calls(call(KA)), result(KA)),
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
    ),
    kimi(
        "KIM-03",
        body(USER, calls(call(KA), reasoning_content=""), result(KA)),
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
        body(USER, calls(call(KA)), result(KA), thinking={"type": "disabled"}),
        hosted=False,
    ),
    kimi(
        "KIM-04",
        body(USER, {"role": "assistant", "content": ""}, USER),
        "Invalid request: the message at position 1 with role 'assistant' must not be empty",
        body(USER, SAID, USER),
    ),
    kimi(
        "KIM-05",
        body(USER, thought(call(KA), content=[{"type": "text", "text": ""}]), result(KA)),
        "text content is empty",
        body(USER, thought(call(KA), content=[{"type": "text", "text": "t"}]), result(KA)),
    ),
    kimi(
        "KIM-06",
        body(USER, thought(call(KA, name="1read")), result(KA)),
        "Invalid request: function name is invalid, must start with a letter and can contain letters, numbers, "
        "underscores, and dashes",
    ),
    kimi(
        "KIM-07",
        schema(type="object", properties={"x": {}}),
        MOONSHOT + "<At path 'properties.x': type is not defined>",
        schema(type="object", properties={"x": {"type": "string"}}),
    ),
    kimi(
        "KIM-07",
        schema(type="object", properties={"x": {"type": "string", "anyOf": [{}]}}),
        MOONSHOT
        + "<At path 'properties.x': when using anyOf, type should be defined in anyOf items instead of "
        "the parent schema>",
        schema(type="object", properties={"x": {"anyOf": [{"type": "string"}]}}),
    ),
    kimi(
        "KIM-07",
        schema(type="object", properties={"x": True}),
        MOONSHOT + "<At path 'properties': property schema for 'x' must be an object>",
        schema(type="object", properties={"x": {"type": "null"}}),
    ),
    kimi(
        "KIM-07",
        schema(type="object", properties={"x": {"type": "array", "items": [{"type": "string"}]}}),
        MOONSHOT + "<At path 'properties.x': items must be an object>",
        schema(type="object", properties={"x": {"type": "array", "items": {"type": "string"}}}),
    ),
    kimi(
        "KIM-08",
        body(USER, tools=[{"type": "custom", "custom": {"name": "read"}}]),
        "unknown tool type: custom, currently only function and plugin are supported",
        body(USER, tools=[TOOL]),
    ),
    kimi(
        "KIM-09",
        body(USER, temperature=0.6),
        "invalid temperature: only 1 is allowed for this model",
        body(USER, temperature=1, top_p=0.95, n=1),
        settings=given(sampling=False),
    ),
    kimi(
        "KIM-10",
        body(USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "read"}}),
        "tool_choice 'specified' is incompatible with thinking enabled",
        body(USER, tools=[TOOL], tool_choice="auto"),
    ),
    kimi(
        "KIM-14",
        body(USER, model="kimi-k3", thinking={"type": "disabled"}),
        "invalid thinking: kimi-k3 does not accept the thinking parameter",
        body(USER, model="kimi-k2.6", thinking={"type": "disabled"}),
    ),
    kimi(
        "KIM-15",
        body(USER, model="kimi-k3", reasoning_effort="medium"),
        "invalid reasoning_effort: only low, high, max are allowed for this model",
        body(USER, model="kimi-k3", reasoning_effort="high"),
    ),
    kimi("KIM-11", body(), "Invalid request: messages must not be empty", body(USER)),
    kimi(
        "KIM-12",
        LONG,
        "Invalid request: Your request exceeded model token limit: 100",
        body(USER),
        settings=SMALL,
    ),
    kimi(
        "KIM-S01",
        body(USER, thought(call("call_a")), result("call_a")),
        "tool call id call_a is not in the form functions.name:index",
        body(USER, thought(call("read:0")), result("read:0")),
        hosted=False,
    ),
    kimi(
        "KIM-S02",
        body(USER, KA_TURN, result(KA), KA_TURN, result(KA)),
        f"tool call id {KA} is used twice",
        body(USER, KA_TURN, result(KA), thought(call(KB)), result(KB)),
        hosted=False,
    ),
]

D_ONE = body(USER, thought(call()), result())
D_TWO = body(USER, thought(call(), call(B)), result(), result(B))
ORPHAN = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
PASS_BACK = "The `reasoning_content` in the thinking mode must be passed back to the API."
UNREADABLE = "Failed to deserialize the JSON body into the target type: "


def deepseek(rule: str, refused: Json, message: str, accepted: Json = D_ONE, **more: Any) -> Case:
    return Case("deepseek", rule, refused, message, accepted, DEEPSEEK, **more)  # to a typed constructor


DEEPSEEK_CASES = [
    deepseek("DSK-01", body(USER, result()), ORPHAN),
    deepseek("DSK-01", body(USER, thought(call()), result(), result()), ORPHAN),
    deepseek("DSK-01", body(USER, thought(call(), call(B)), result(), result(), result(B)), ORPHAN, D_TWO),
    deepseek("DSK-01", body(USER, thought(call(), call(B)), result(), result()), ORPHAN, D_TWO),
    deepseek(
        "DSK-02",
        body(USER, thought(call(), call(B)), result(), USER),
        NO_PAIR + "'tool_call_id'. (insufficient tool messages following tool_calls message)",
        D_TWO,
    ),
    deepseek(
        "DSK-02",
        body(USER, thought(call())),
        NO_PAIR + "'tool_call_id'. (insufficient tool messages following tool_calls message)",
    ),
    deepseek("DSK-03", body(USER, thought(call()), result(B)), UNANSWERED + A),
    deepseek(
        "DSK-04",
        body(USER, thought(call()), without(result(), "tool_call_id")),
        UNREADABLE + "messages[2]: missing field `tool_call_id`",
        status=422,
    ),
    deepseek("DSK-05", ONE, PASS_BACK),
    deepseek("DSK-05", body(USER, calls(call()), result(), USER), PASS_BACK, hosted=False),
    deepseek("DSK-05", body(USER, calls(call(), reasoning_content=""), result()), PASS_BACK, hosted=False),
    deepseek(
        "DSK-08",
        body(USER, tools=[TOOL], tool_choice="required"),
        "deepseek-reasoner does not support this tool_choice",
        body(USER, tools=[TOOL], tool_choice="required", thinking={"type": "disabled"}),
    ),
    deepseek(
        "DSK-09",
        LONG,
        "This model's maximum context length is 100 tokens. However, you requested 140 tokens (140 in the "
        "messages, 0 in the completion). Please reduce the length of the messages or completion.",
        body(USER),
        settings=SMALL,
    ),
    deepseek(
        "DSK-S01",
        body({"role": "user", "content": 7}),
        UNREADABLE + "messages[0].content: expected one of a string or array of objects",
        body(USER),
        status=422,
    ),
    deepseek(
        "DSK-S02",
        body({"role": "developer", "content": "s"}, USER),
        UNREADABLE
        + "messages[0]: unknown variant `developer`, expected 'system', 'assistant', 'user', 'function', "
        "and 'tool'",
        body(SYSTEM, USER),
        status=422,
    ),
]


def detail(text: str, upstream: str, place: int = 0) -> Json:
    signature = sign(text, place, CompatibleSettings(upstream=upstream))
    return {"type": "reasoning.text", "text": text, "signature": signature, "index": place}


def said(*details: Json) -> Json:
    return {**SAID, "reasoning_details": list(details)}


FRAGMENTS = [
    {"type": "reasoning.text", "text": "t", "index": 0},
    {"type": "reasoning.text", "text": "u", "index": 0},
    {**without(detail("tu", "Anthropic"), "text")},
]
MINE = body(USER, said(detail("t", "Anthropic")), USER)
MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These "
)
MODIFIED += "blocks must remain as they were in the original response."

HOUR_BEHIND = (
    "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
    "cache_control block."
)


def marked(text: str = "u", **mark: str) -> Json:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral", **mark}}


def openrouter(rule: str, refused: Json, message: str, accepted: Json = MINE, **more: Any) -> Case:
    return Case("openrouter", rule, refused, message, accepted, **more)  # passed on to a typed constructor


OPENROUTER = [
    openrouter(
        "ORT-01",
        body(USER, tools=[TOOL]),
        "No endpoints found that support tool use",
        body(USER),
        status=404,
        settings=given(tools=False),
    ),
    openrouter(
        "ORT-02",
        LONG,
        "This endpoint's maximum context length is 100 tokens. However, you requested about 140 tokens. Please "
        "reduce the length of either one, or use the middle-out transform.",
        body(USER),
        settings=SMALL,
    ),
    openrouter(
        "ORT-03",
        body(USER, said(detail("t", "Google")), USER),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    openrouter(
        "ORT-03",
        body(USER, said({**detail("t", "Anthropic"), "text": "x"}), USER, SAID, USER),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        body(USER, said(*FRAGMENTS), USER, SAID, USER),
    ),
    openrouter(
        "ORT-04",
        body(USER, said(detail("u", "Anthropic", 1), detail("t", "Anthropic")), USER),
        "messages.1.content.0: " + MODIFIED,
        body(USER, said(detail("t", "Anthropic"), detail("u", "Anthropic", 1)), USER),
    ),
    openrouter(
        "ORT-05",
        body({"role": "user", "content": [marked()] * 5}),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        body({"role": "user", "content": [marked()] * 4}),
    ),
    openrouter(
        "ORT-06",
        body({"role": "user", "content": [marked(text=" ")]}),
        "messages: cache_control cannot be set for empty text blocks",
        body({"role": "user", "content": [marked(), {"type": "text", "text": " "}]}),
    ),
    openrouter(
        "ORT-07",
        body({"role": "user", "content": [marked(), marked(ttl="1h")]}),
        HOUR_BEHIND,
        body({"role": "user", "content": [marked(ttl="1h"), marked()]}),
    ),
    openrouter(
        "ORT-08",
        body({"role": "user", "content": [marked(ttl="2h")]}),
        "messages.0.content.0.cache_control.ttl: Input should be '5m' or '1h'",
        body({"role": "user", "content": [marked(ttl="5m")]}),
    ),
]
