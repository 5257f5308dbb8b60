"""The vendors that differ by data: a broken body for each rule, and the nearest sound one."""

from tests.strict.family import (
    ALGO,
    LONG,
    ONE,
    PLAIN,
    QWEN,
    SAID,
    SMALL,
    SYSTEM,
    TOOL,
    USER,
    VLLM,
    A,
    Case,
    Json,
    body,
    call,
    calls,
    given,
    result,
    without,
)

XAI_CODE = ("invalid_request_error", "Client specified an invalid argument")
MINIMAX = ("bad_request_error", None)
GLM = ("invalid_request_error", "1214")
FAILED = (("server_error", None), 500)
PARSE = "Failed to parse tool call arguments as JSON: ["
CUT = body(USER, calls(call(arguments="[")), result())
AROUND = (
    "After the optional system message, conversation roles must alternate user and assistant roles except "
)
AROUND += "for tool calls and results."

PIXEL = "data:image/png;base64,AAAA"


def picture(url: str) -> Json:
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


def patterned(pattern: str) -> Json:
    """Return a tool with a pattern inside its schema."""
    named = {"type": "object", "properties": {"a": {"items": {"type": "string", "pattern": pattern}}}}
    return {"type": "function", "function": {"name": "write", "parameters": named}}


FORCED = body(USER, tools=[TOOL], tool_choice="required")
NAMED = body(USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "read"}})

VENDORS = [
    Case(
        "xai",
        "XAI-01",
        LONG,
        "This model's maximum prompt length is 100 but the request contains 140 tokens.",
        body(USER),
        XAI_CODE,
        settings=SMALL,
    ),
    Case(
        "qwen",
        "QWN-01",
        body(USER, calls(call()), USER),
        ALGO + 'An assistant message with "tool_calls" must be followed by tool messages responding to each '
        '"tool_call_id". The following tool_call_ids did not have response messages: message[2].role',
        ONE,
        QWEN,
    ),
    Case(
        "qwen",
        "QWN-02",
        body(USER, result()),
        ALGO + 'messages with role "tool" must be a response to a preceeding message with "tool_calls".',
        ONE,
        QWEN,
    ),
    Case(
        "qwen",
        "QWN-03",
        CUT,
        ALGO + 'The "function.arguments" parameter of the code model must be in JSON format.',
        ONE,
        QWEN,
    ),
    Case(
        "qwen",
        "QWN-04",
        body({"role": "developer", "content": "s"}, USER),
        "developer is not one of ['system', 'assistant', 'user', 'tool', 'function']",
        body(SYSTEM, USER),
        QWEN,
    ),
    Case(
        "qwen",
        "QWN-05",
        body(USER, tools=[{"type": "function", "function": {"name": "search"}}]),
        "Tool names are not allowed to be [search]",
        body(USER, tools=[TOOL]),
        QWEN,
    ),
    Case("glm", "GLM-01", body(), "输入不能为空", body(USER), GLM),
    Case("glm", "GLM-02", body(USER, {"role": "assistant"}, USER), "messages 参数非法", body(USER), GLM),
    Case("glm", "GLM-02", body(USER, calls(call())), "messages 参数非法", ONE, GLM),
    Case("glm", "GLM-03", body(USER, n=0), "API 调用参数有误", body(USER, n=1), (PLAIN[0], "1210")),
    Case(
        "glm",
        "GLM-04",
        body(USER, model="glm-5.3", thinking={"type": "disabled"}),
        "API 调用参数有误: thinking.type",
        body(USER, model="glm-5.2", thinking={"type": "disabled"}),
        (PLAIN[0], "1210"),
    ),
    Case(
        "minimax",
        "MMX-04",
        body(USER, model="minimax-m3", thinking={"type": "enabled"}),
        "invalid params, thinking.type (2013)",
        body(USER, model="minimax-m3", thinking={"type": "adaptive"}),
        MINIMAX,
    ),
    Case(
        "minimax",
        "MMX-01",
        body(USER, result()),
        f"invalid params, tool result's tool id({A}) not found (2013)",
        ONE,
        MINIMAX,
    ),
    Case(
        "minimax",
        "MMX-02",
        LONG,
        "invalid params, context window exceeds limit (2013)",
        body(USER),
        MINIMAX,
        settings=SMALL,
    ),
    Case(
        "minimax",
        "MMX-03",
        body(USER, calls(call()), USER),
        "invalid params, tool call result does not follow tool call (2013)",
        ONE,
        MINIMAX,
    ),
    Case(
        "groq",
        "GRQ-03",
        LONG,
        "Please reduce the length of the messages or completion.",
        body(USER),
        (PLAIN[0], "context_length_exceeded"),
        settings=SMALL,
    ),
    Case(
        "vllm",
        "VLM-01",
        body(SYSTEM, USER, USER),
        "Conversation roles must alternate user/assistant/user/assistant/...",
        body(SYSTEM, USER, SAID, USER),
        VLLM,
        settings=given(template="alternate"),
    ),
    Case(
        "vllm",
        "VLM-02",
        body(USER, calls(call()), result(), USER),
        AROUND,
        body(USER, calls(call()), result(), SAID, USER),
        VLLM,
        settings=given(template="alternate_around_tools"),
    ),
    Case(
        "vllm",
        "VLM-03",
        LONG,
        "This model's maximum context length is 100 tokens. However, you requested 140 tokens. Please reduce the "
        "length of the messages.",
        body(USER),
        VLLM,
        settings=SMALL,
    ),
    Case(
        "vllm",
        "VLM-04",
        CUT,
        "Expecting value: the arguments of a tool call must be a JSON object",
        ONE,
        VLLM,
    ),
    Case(
        "llama_cpp",
        "LCP-01",
        body({"role": "user"}),
        "All non-assistant messages must contain 'content'",
        body(USER),
    ),
    Case(
        "llama_cpp",
        "LCP-02",
        body(USER, {"role": "assistant"}, USER),
        "Assistant message must contain either 'content' or 'tool_calls'!",
        body(USER, SAID, USER),
    ),
    Case(
        "llama_cpp",
        "LCP-03",
        body(USER, calls(without(call(), "type"))),
        "Failed to parse messages: Missing tool call type",
        ONE,
        *FAILED,
    ),
    Case(
        "llama_cpp",
        "LCP-04",
        body(USER, calls(without(call(), "function"))),
        "Failed to parse messages: Missing tool call function",
        ONE,
        *FAILED,
    ),
    Case(
        "llama_cpp",
        "LCP-05",
        body(USER, calls({**call(), "function": {"arguments": "{}"}})),
        "Failed to parse messages: Missing tool call name",
        ONE,
        *FAILED,
    ),
    Case("llama_cpp", "LCP-06", CUT, PARSE, ONE, *FAILED),
    Case(
        "llama_cpp",
        "LCP-07",
        body(USER, SAID, SAID),
        "Cannot have 2 or more assistant messages at the end of the list.",
        body(USER, SAID),
    ),
    Case(
        "llama_cpp",
        "LCP-08",
        body(USER, calls(call())),
        "Cannot continue an assistant message that contains tool calls.",
        ONE,
    ),
    Case(
        "llama_cpp",
        "LCP-09",
        body(USER, tools=[TOOL]),
        "tools param requires --jinja flag",
        body(USER),
        *FAILED,
        settings=given(tools=False),
    ),
    Case(
        "llama_cpp",
        "LCP-10",
        LONG,
        "request (140 tokens) exceeds the available context size (100 tokens), try increasing it",
        body(USER),
        ("exceed_context_size_error", None),
        settings=SMALL,
    ),
    Case(
        "llama_cpp",
        "LCP-11",
        body({"role": "user", "content": 7}),
        "Expected 'content' to be a string or an array",
        body(USER),
    ),
    Case(
        "llama_cpp",
        "LCP-12",
        body(
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}],
            }
        ),
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        body(USER),
        *FAILED,
        settings=given(images=False),
    ),
    Case(
        "llama_cpp",
        "LCP-13",
        body(USER, calls(call(), call("aaaaaaaa2")), result(), result("aaaaaaaa2")),
        "Jinja Exception: This model only supports single tool-calls at once!",
        ONE,
        settings=given(parallel=False),
    ),
    Case(
        "llama_cpp",
        "LCP-16",
        body(USER, tools=[TOOL, patterned("^(?!a)b$")]),
        "Failed to initialize samplers: failed to parse grammar",
        body(USER, tools=[TOOL, patterned(r"^\(?!b$")]),
    ),
    Case("llama_cpp", "LCP-15", NAMED, "tool_choice is not a string", FORCED, hosted=False),
    Case("ollama", "OLL-05", NAMED, "tool_choice is not a string", FORCED, hosted=False),
    Case("ollama", "OLL-01", CUT, "invalid tool call arguments", ONE),
    Case(
        "ollama",
        "OLL-02",
        body({"role": "user", "content": 7}),
        "invalid message content type: float64",
        body(USER),
    ),
    Case(
        "ollama", "OLL-03", body(picture("https://host/a.png")), "invalid image input", body(picture(PIXEL))
    ),
]
