"""Rules that gateways and servers add to Chat Completions: a broken request and the nearest valid one."""

from actors.core.data.record import replace
from actors.core.dialects.profiles import VLLM
from actors.strict.rules import CompatibleSettings
from actors.strict.rules.openrouter import sign
from tests.rules.chat_vendors import (
    CHOICE,
    HI,
    IMAGE,
    LONG,
    ONE,
    ROUND,
    SAID,
    SMALL,
    SYSTEM,
    TOOL,
    TOOLS,
    USER,
    body,
    call,
    calls,
    model,
    picture,
    result,
    say,
    text,
    thinking,
    tool,
)
from tests.rules.row import ACCEPTED, NOT_ASKED, UNSEEN, Answer, Json, Row, rows, without


def tool_with_pattern(pattern: str) -> Json:
    """Return a tool with a pattern deep inside its schema."""
    inner = {"anyOf": [{"type": "string", "pattern": pattern}, {"type": "null"}]}
    return tool(parameters={"type": "object", "properties": {"a": {"type": "array", "items": inner}}})


def text_with_mark(words: str = "u", **mark: str) -> Json:
    return text(words, cache_control={"type": "ephemeral", **mark})


def detail(words: str, upstream: str = "Anthropic", place: int = 0) -> Json:
    """Return reasoning that an upstream of OpenRouter signed."""
    signature = sign(words, place, CompatibleSettings(upstream=upstream))
    return {"type": "reasoning.text", "text": words, "signature": signature, "index": place}


def with_details(*details: Json) -> Json:
    return say("assistant", "a", reasoning_details=list(details))


INLINE = picture("data:image/png;base64,aGk=")
SIGNED = body(USER, with_details(detail("t")), USER)
FRAGMENTS = [
    {"type": "reasoning.text", "text": "t", "index": 0},
    {"type": "reasoning.text", "text": "u", "index": 0},
    without(detail("tu"), "text"),
]
CUT = body(USER, calls(call(arguments="[")), result())
ONE_CALL = replace(VLLM, turns=replace(VLLM.turns, calls_together=False))

OPENROUTER = rows(
    "openrouter",
    Row("ALL-02", body(USER, say("assistant", reasoning_details="hm"), USER),
        body(USER, say("assistant", reasoning_details=[{"type": "reasoning.text"}]), USER), server=ACCEPTED),
    Row("ALL-07", body(USER, say("assistant", reasoning_content="hm"), USER), HI, server=ACCEPTED),
    Row("CMP-01", body(USER, calls(call()), result(), USER), HI, server=ACCEPTED),
    Row("OAC-03", body(USER, calls(call("c" * 65)), result("c" * 65), SAID, USER),
        body(USER, calls(call("c" * 50)), result("c" * 50), SAID, USER), server=ACCEPTED),
    Row("ORT-01", body(USER, tools=TOOLS), HI, "No endpoints found that support tool use", judge=UNSEEN,
        answer=Answer(status=404), read="config", settings=model(tools=False)),
    Row("ORT-02", LONG, HI,
        "This endpoint's maximum context length is 100 tokens. However, you requested about 140 tokens. "
        "Please reduce the length of either one, or use the middle-out transform.", judge=UNSEEN,
        read="overflow OAC-15", settings=SMALL),
    Row("ORT-03", body(USER, with_details(detail("t", "Google")), USER), SIGNED,
        "messages.1.content.0: Invalid `signature` in `thinking` block", judge=UNSEEN, read="transcript ANT-42"),
    Row("ORT-03", body(USER, with_details({**detail("t"), "text": "x"}), USER, SAID, USER),
        body(USER, with_details(*FRAGMENTS), USER, SAID, USER),
        "messages.1.content.0: Invalid `signature` in `thinking` block", judge=UNSEEN, read="transcript ANT-42"),
    Row("ORT-04", body(USER, with_details(detail("u", "Anthropic", 1), detail("t")), USER),
        body(USER, with_details(detail("t"), detail("u", "Anthropic", 1)), USER),
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message "
        "cannot be modified. These blocks must remain as they were in the original response.", judge=UNSEEN,
        read="transcript ANT-41"),
    Row("ORT-05", body({"role": "user", "content": [text_with_mark()] * 5}),
        body({"role": "user", "content": [text_with_mark()] * 4}),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.", judge="ANT-32",
        read="transcript ANT-32"),
    Row("ORT-06", body({"role": "user", "content": [text_with_mark(" ")]}),
        body({"role": "user", "content": [text_with_mark(), text(" ")]}),
        "messages: cache_control cannot be set for empty text blocks", judge="ANT-33", read="transcript ANT-33"),
    Row("ORT-07", body({"role": "user", "content": [text_with_mark(), text_with_mark(ttl="1h")]}),
        body({"role": "user", "content": [text_with_mark(ttl="1h"), text_with_mark()]}),
        "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
        "ttl='5m' cache_control block.", judge="ANT-34", read="parameter ANT-34"),
    Row("ORT-08", body({"role": "user", "content": [text_with_mark(ttl="2h")]}),
        body({"role": "user", "content": [text_with_mark(ttl="5m")]}),
        "messages.0.content.0.cache_control.ttl: Input should be '5m' or '1h'", judge="ALL-02", read="parameter"),
)  # fmt: skip

QWEN = rows(
    "qwen",
    Row("OAC-10", body(USER, tools=[tool("search")]), body(USER, tools=[tool("searches")]), server="QWN-05"),
    Row("QWN-01", body(USER, calls(call()), USER), ONE,
        '<400> InternalError.Algo.InvalidParameter: An assistant message with "tool_calls" must be followed '
        'by tool messages responding to each "tool_call_id". The following tool_call_ids did not have '
        "response messages: message[2].role", judge="OAC-01", read="transcript OAC-01"),
    Row("QWN-02", body(USER, result()), ONE,
        '<400> InternalError.Algo.InvalidParameter: messages with role "tool" must be a response to a '
        'preceeding message with "tool_calls".', judge="OAC-02", read="transcript OAC-02"),
    Row("QWN-03", CUT, ONE,
        '<400> InternalError.Algo.InvalidParameter: The "function.arguments" parameter of the code model must '
        "be in JSON format.", judge="ALL-06", read="transcript ALL-06"),
    Row("QWN-04", body({"role": "developer", "content": "s"}, USER), body(SYSTEM, USER),
        "developer is not one of ['system', 'assistant', 'user', 'tool', 'function']", judge="OAC-06",
        read="transcript OAC-06"),
    Row("QWN-05", body(USER, tools=[{"type": "function", "function": {"name": "search"}}]), body(USER, tools=TOOLS),
        "Tool names are not allowed to be [search]", judge="OAC-10", read="transcript OAC-10"),
    answer=Answer(code="invalid_parameter_error"),
)  # fmt: skip

GLM = rows(
    "glm",
    Row("GLM-01", body(), HI, "输入不能为空", judge="OAC-04", answer=Answer(code="1214"), read="transcript OAC-04"),
    Row("GLM-02", body(USER, {"role": "assistant"}, USER), HI, "messages 参数非法", judge="ALL-11",
        answer=Answer(code="1214"), read="transcript ALL-11"),
    Row("GLM-02", body(USER, calls(call())), ONE, "messages 参数非法", judge="ALL-05 OAC-01",
        answer=Answer(code="1214"), read="transcript ALL-11"),
    Row("GLM-03", body(USER, n=0), body(USER, n=1), "API 调用参数有误", judge=UNSEEN, answer=Answer(code="1210")),
    Row("GLM-04", body(USER, model="glm-5.3", thinking={"type": "disabled"}),
        body(USER, model="glm-5.2", thinking={"type": "disabled"}), "API 调用参数有误: thinking.type", judge="ALL-16",
        answer=Answer(code="1210"), read="parameter"),
    Row("OAC-06", body(say("developer"), USER), body(SYSTEM, USER)),
)  # fmt: skip

MINIMAX = rows(
    "minimax",
    Row("MMX-01", body(USER, result()), ONE, "invalid params, tool result's tool id(aaaaaaaa1) not found (2013)",
        judge="OAC-02", answer=Answer(type="bad_request_error"), read="transcript OAC-02"),
    Row("MMX-02", LONG, HI, "invalid params, context window exceeds limit (2013)", judge=UNSEEN,
        answer=Answer(type="bad_request_error"), read="overflow OAC-15", settings=SMALL),
    Row("MMX-03", body(USER, calls(call()), USER), ONE,
        "invalid params, tool call result does not follow tool call (2013)", judge="OAC-01",
        answer=Answer(type="bad_request_error")),
    Row("MMX-04", body(USER, model="minimax-m3", thinking={"type": "enabled"}),
        body(USER, model="minimax-m3", thinking={"type": "adaptive"}), "invalid params, thinking.type (2013)",
        judge="ALL-16", answer=Answer(type="bad_request_error"), read="parameter"),
)  # fmt: skip

XAI = rows(
    "xai",
    Row("OAC-12", body(USER, reasoning={"effort": "low"}), HI, hosted=False),
    Row("XAI-01", LONG, HI, "This model's maximum prompt length is 100 but the request contains 140 tokens.",
        judge=UNSEEN, answer=Answer(code="Client specified an invalid argument"), read="overflow OAC-15",
        settings=SMALL),
)  # fmt: skip

GROQ = rows(
    "groq",
    Row("GRQ-03", LONG, HI, "Please reduce the length of the messages or completion.", judge=UNSEEN,
        answer=Answer(code="context_length_exceeded"), read="overflow OAC-15", settings=SMALL),
)  # fmt: skip

VLLM_SERVER = rows(
    "vllm",
    Row("CMP-01", body(USER, USER), body(USER, SAID, USER), server=ACCEPTED),
    Row("CMP-01", body(USER, SAID, SAID, USER), HI, server=ACCEPTED),
    Row("CMP-02", body(USER, calls(call("c1"), call("c2")), result("c1"), result("c2")),
        body(USER, calls(call("c1")), result("c1"), calls(call("c2")), result("c2")), server=NOT_ASKED,
        profile=ONE_CALL),
    Row("CMP-03", body(USER, tools=[tool_with_pattern("^(?!a)b$")]),
        body(USER, tools=[tool_with_pattern("^\\(?!\\d(?:a|b)$")]), server=ACCEPTED),
    Row("CMP-03", body(USER, tools=[tool_with_pattern("a(?=b)")]),
        body(USER, tools=[tool_with_pattern("^\\(?!\\d(?:a|b)$")]), server=ACCEPTED),
    Row("CMP-03", body(USER, tools=[tool_with_pattern("(?<=a)b")]),
        body(USER, tools=[tool_with_pattern("^\\(?!\\d(?:a|b)$")]), server=ACCEPTED),
    Row("CMP-03", body(USER, tools=[tool_with_pattern("(?<!a)b")]),
        body(USER, tools=[tool_with_pattern("^\\(?!\\d(?:a|b)$")]), server=ACCEPTED),
    Row("CMP-03", body(USER, tools=[tool_with_pattern("(?<name>a)")]),
        body(USER, tools=[tool_with_pattern("^\\(?!\\d(?:a|b)$")]), server=ACCEPTED),
    Row("CMP-03", body(USER, tools=[tool_with_pattern("(?i)a")]),
        body(USER, tools=[tool_with_pattern("^\\(?!\\d(?:a|b)$")]), server=ACCEPTED),
    Row("VLM-01", body(SYSTEM, USER, USER), body(SYSTEM, USER, SAID, USER),
        "Conversation roles must alternate user/assistant/user/assistant/...", judge="CMP-01",
        read="transcript CMP-01", settings=model(template="alternate")),
    Row("VLM-02", body(*ROUND, USER), body(*ROUND, SAID, USER),
        "After the optional system message, conversation roles must alternate user and assistant roles except "
        "for tool calls and results.", judge="CMP-01", read="transcript CMP-01",
        settings=model(template="alternate_around_tools")),
    Row("VLM-03", LONG, HI,
        "This model's maximum context length is 100 tokens. However, you requested 140 tokens. Please reduce "
        "the length of the messages.", judge=UNSEEN, read="overflow OAC-15", settings=SMALL),
    Row("VLM-04", CUT, ONE, "Expecting value: the arguments of a tool call must be a JSON object", judge="ALL-06"),
    answer=Answer(type="BadRequestError", code="400"),
)  # fmt: skip

LLAMA_CPP = rows(
    "llama_cpp",
    Row("LCP-01", body({"role": "user"}), HI, "All non-assistant messages must contain 'content'", judge="OAC-05",
        read="transcript OAC-05"),
    Row("LCP-02", body(USER, {"role": "assistant"}, USER), body(USER, SAID, USER),
        "Assistant message must contain either 'content' or 'tool_calls'!", judge="ALL-11", read="transcript ALL-11"),
    Row("LCP-03", body(USER, calls(without(call(), "type"))), ONE, "Failed to parse messages: Missing tool call type",
        judge="ALL-02 ALL-05", answer=Answer(status=500, type="server_error"), read="transcript ALL-02"),
    Row("LCP-04", body(USER, calls(without(call(), "function"))), ONE,
        "Failed to parse messages: Missing tool call function", judge="ALL-02 ALL-05 OAC-01",
        answer=Answer(status=500, type="server_error"), read="transcript ALL-02"),
    Row("LCP-05", body(USER, calls({**call(), "function": {"arguments": "{}"}})), ONE,
        "Failed to parse messages: Missing tool call name", judge="ALL-05 OAC-01 OAC-10",
        answer=Answer(status=500, type="server_error"), read="transcript ALL-02"),
    Row("LCP-06", CUT, ONE, "Failed to parse tool call arguments as JSON: [", judge="ALL-06",
        answer=Answer(status=500, type="server_error"), read="transcript ALL-06"),
    Row("LCP-07", body(USER, SAID, SAID), body(USER, SAID),
        "Cannot have 2 or more assistant messages at the end of the list.", judge="ALL-05 CMP-01", stricter="ALL-05",
        read="transcript ALL-05"),
    Row("LCP-08", body(USER, calls(call())), ONE, "Cannot continue an assistant message that contains tool calls.",
        judge="ALL-05 OAC-01", read="transcript OAC-01"),
    Row("LCP-09", body(USER, tools=TOOLS), HI, "tools param requires --jinja flag", judge=UNSEEN,
        answer=Answer(status=500, type="server_error"), read="config", settings=model(tools=False)),
    Row("LCP-10", LONG, HI, "request (140 tokens) exceeds the available context size (100 tokens), try increasing it",
        judge=UNSEEN, answer=Answer(type="exceed_context_size_error"), read="overflow OAC-15", settings=SMALL),
    Row("LCP-11", body({"role": "user", "content": 7}), HI, "Expected 'content' to be a string or an array",
        judge="OAC-05", read="transcript OAC-05"),
    Row("LCP-12",
        body({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}),
        HI, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        judge=UNSEEN, answer=Answer(status=500, type="server_error"), read="media", settings=model(images=False)),
    Row("LCP-13", body(USER, calls(call(), call("aaaaaaaa2")), result(), result("aaaaaaaa2")), ONE,
        "Jinja Exception: This model only supports single tool-calls at once!", judge=UNSEEN, read="transcript CMP-02",
        settings=model(parallel=False)),
    Row("LCP-15", body(USER, tools=TOOLS, tool_choice=CHOICE), body(USER, tools=TOOLS, tool_choice="required"),
        "tool_choice is not a string", judge=UNSEEN, read="parameter", hosted=False),
    Row("LCP-16", body(USER, tools=[TOOL, tool_with_pattern("^(?!a)b$")]),
        body(USER, tools=[TOOL, tool_with_pattern("^\\(?!b$")]),
        "Failed to initialize samplers: failed to parse grammar", judge="ALL-13 CMP-03", stricter="ALL-13",
        read="parameter CMP-03"),
)  # fmt: skip

OLLAMA = rows(
    "ollama",
    Row("ALL-10", body(say("user", [IMAGE])), body(say("user", [INLINE])), server="OLL-03"),
    Row("OLL-01", CUT, ONE, "invalid tool call arguments", judge="ALL-06", read="transcript ALL-06"),
    Row("OLL-02", body({"role": "user", "content": 7}), HI, "invalid message content type: float64", judge="OAC-05",
        read="transcript OAC-05"),
    Row("OLL-03", body(say("user", [picture("https://host/a.png")])),
        body(say("user", [picture("data:image/png;base64,AAAA")])), "invalid image input", judge="ALL-10",
        read="media ALL-10"),
    Row("OLL-05", body(USER, tools=TOOLS, tool_choice=CHOICE), body(USER, tools=TOOLS, tool_choice="required"),
        "tool_choice is not a string", judge=UNSEEN, read="parameter", hosted=False),
)  # fmt: skip

OPENAI_CHAT = rows(
    "openai_chat",
    Row("ALL-02", body(USER, say("assistant", "x", tool_calls=[]), USER), HI, server="OAC-04"),
    Row("OAC-08", body(USER, say("assistant", [thinking()]), USER), HI),
)  # fmt: skip

ROWS = [
    *OPENROUTER,
    *QWEN,
    *GLM,
    *MINIMAX,
    *XAI,
    *GROQ,
    *VLLM_SERVER,
    *LLAMA_CPP,
    *OLLAMA,
    *OPENAI_CHAT,
]
