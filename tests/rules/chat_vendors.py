"""Rules that Mistral, Kimi and DeepSeek add to Chat Completions, each broken by one request."""

from collections.abc import Sequence
from typing import Any

from actors.strict.rules import CompatibleProfile, CompatibleSettings
from tests.rules.row import ACCEPTED, UNSEEN, Answer, Json, Row, rows, without


def say(role: str, content: Any = "hi", **more: Any) -> Json:  # Any: a row may break a body in any way
    return {"role": role, "content": content, **more}


def text(words: str = "hi", **more: Any) -> Json:  # Any: likewise
    return {"type": "text", "text": words, **more}


def thinking(words: str = "hm") -> Json:
    """Return a thinking chunk of Mistral."""
    return {"type": "thinking", "thinking": [text(words)]}


def call(call_id: Any = "aaaaaaaa1", name: Any = "read", arguments: str = "{}") -> Json:  # Any: likewise
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*made: Json, **more: Any) -> Json:  # Any: likewise
    return {"role": "assistant", "tool_calls": list(made), **more}


def calls_with_reasoning(*made: Json, **more: Any) -> Json:  # Any: likewise
    """Return a message with calls and the reasoning before them."""
    return {**calls(*(made or (call(),))), "reasoning_content": "t", **more}


def result(call_id: str = "aaaaaaaa1", content: Any = "r", **more: Any) -> Json:  # Any: likewise
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def body(*messages: Any, **more: Any) -> Json:  # Any: likewise
    return {"model": "m", "messages": list(messages), **more}


def tool(name: str = "read", **more: Any) -> Json:  # Any: likewise
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}, **more}}


def schema(**parameters: Any) -> Json:  # Any: likewise
    return body(USER, tools=[tool(parameters=parameters)])


def typed(required: Sequence[str] = (), **properties: Any) -> Json:  # Any: likewise
    return schema(type="object", properties=properties, required=list(required))


def picture(url: str) -> Json:
    return {"type": "image_url", "image_url": {"url": url}}


def model(**profile: Any) -> CompatibleSettings:  # Any: passed on to a typed constructor
    """Return a host with a model of these properties."""
    return CompatibleSettings(CompatibleProfile(**profile))


USER = {"role": "user", "content": "u"}
SYSTEM = {"role": "system", "content": "s"}
SAID = {"role": "assistant", "content": "a"}
TOOL = tool()
TOOLS = [TOOL]
CUSTOM = {"type": "custom", "custom": {"name": "sql"}}
CHOICE = {"type": "function", "function": {"name": "read"}}
IMAGE = picture("https://a.example/i.png")
STRING = {"type": "string"}
A, B = "aaaaaaaa1", "bbbbbbbb2"
KA, KB = "functions.read:0", "functions.read:1"
ROUND = (USER, calls(call()), result())
HI = body(USER)
ONE = body(*ROUND)
TWO = body(USER, calls(call(), call(B)), result(), result(B))
KIMI_CALL = calls_with_reasoning(call(KA))
KIMI_ONE = body(USER, KIMI_CALL, result(KA))
KIMI_TWO = body(USER, calls_with_reasoning(call(KA), call(KB)), result(KA), result(KB))
THOUGHT_ONE = body(USER, calls_with_reasoning(), result())
THOUGHT_TWO = body(USER, calls_with_reasoning(call(), call(B)), result(), result(B))
LONG = body({"role": "user", "content": "u" * 500})
SMALL = model(context_tokens=100)
UNKNOWN = CompatibleSettings(models={"known": CompatibleProfile()})

NO_PAIR = "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
UNANSWERED = NO_PAIR + "'tool_call_id'. The following tool_call_ids did not have response messages: "
ORDER = Answer(type="invalid_request_message_order", code="3230")
FUNCTION = Answer(type="invalid_function_call", code="3280")

MISTRAL = rows(
    "mistral",
    Row("ALL-02", body(USER, calls({"id": A, "type": "custom", "custom": {"name": "sql", "input": "x"}}), result(A)),
        ONE, server="MIS-S03"),
    Row("ALL-02", body(USER, tools=[CUSTOM]), body(USER, tools=TOOLS), server="MIS-S03"),
    Row("ALL-02", body(USER, say("assistant", [{"type": "thinking", "thinking": "hm"}]), USER), HI, server="MIS-S02"),
    Row("MIS-01", body(USER, calls(call("call_abc123")), result("call_abc123")), ONE,
        "Tool call id was call_abc123 but must be a-z, A-Z, 0-9, with a length of 9.", answer=FUNCTION),
    Row("MIS-01", body(USER, calls(call("aaaa-aaaa")), result("aaaa-aaaa")), ONE),
    Row("MIS-02", body(USER, calls(call(), call(B)), result()), TWO,
        "Not the same number of function calls and responses"),
    Row("MIS-02", body(USER, calls(call()), USER), ONE, "Not the same number of function calls and responses"),
    Row("MIS-02", body(USER, calls(call(), call(B)), result(), SAID, USER), body(USER, SAID, USER),
        "Not the same number of function calls and responses"),
    Row("MIS-03", body(*ROUND, result()), ONE, "Duplicate tool call id aaaaaaaa1 in tool results"),
    Row("MIS-04", body(USER, calls(call(), call()), result(), result()), TWO,
        "Duplicate tool call id aaaaaaaa1 in assistant message", judge="MIS-04 MIS-03"),
    Row("MIS-04", body(USER, calls(call(A), call(A)), result(A)), ONE),
    Row("MIS-05", body(USER, result()), ONE, "Unexpected role 'tool' after role 'user'"),
    Row("MIS-05", body(result(A)), ONE, server="MIS-13S"),
    Row("MIS-06", body(USER, SAID, result()), ONE, "Unexpected tool call id aaaaaaaa1 in tool results",
        read="transcript MIS-07"),
    Row("MIS-07", body(USER, calls(call()), result(B)), ONE, "Unexpected tool call id bbbbbbbb2 in tool results",
        judge="MIS-07 MIS-02"),
    Row("MIS-07", body(USER, calls(call(A), call(B)), result(A), result("ccccccccc"), result(B)), ONE),
    Row("MIS-07", body(*ROUND, result(B)), ONE),
    Row("MIS-09", body(USER, calls(call()), USER, result()), ONE, "Unexpected role 'tool' after role 'user'",
        judge="MIS-02 MIS-05", read="transcript MIS-05"),
    Row("MIS-10", body(USER, SAID), body(USER, {**SAID, "prefix": True}),
        "Expected last role User or Tool (or Assistant with prefix) for serving but got assistant",
        stricter="MIS-10 MIS-11"),
    Row("MIS-10", body(USER, SAID), HI),
    Row("MIS-11", body(USER, {**SAID, "prefix": True}, USER), body(USER, SAID, USER),
        "Assistant message with prefix True must be last message"),
    Row("MIS-12", body(USER, SAID, SYSTEM, USER), body(USER, SYSTEM, SAID, USER),
        "Unexpected role 'system' after role 'assistant'"),
    Row("MIS-12", body(*ROUND, SYSTEM), ONE, "Unexpected role 'system' after role 'tool'", judge="MIS-12 MIS-10"),
    Row("MIS-12", body(*ROUND, SYSTEM, SAID, USER), body(SYSTEM, *ROUND)),
    Row("MIS-12", body(USER, SAID, SYSTEM, USER), body(SYSTEM, USER)),
    Row("MIS-13", body(), HI, "Conversation must have at least one message"),
    Row("MIS-13", body(SAID, USER), HI, server=ACCEPTED),
    Row("MIS-13S", body(SAID), body(SYSTEM), "Conversation must start with a user message or system message",
        judge="MIS-10 MIS-13", stricter="MIS-10", read="transcript MIS-13"),
    Row("MIS-14", body(USER, calls(call(name="a.b")), result()), ONE,
        "Function name was a.b but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum "
        "length of 64.", answer=FUNCTION),
    Row("MIS-14", body(USER, tools=[tool("a.b")]), HI),
    Row("MIS-15", body(USER, calls(call()), without(result(), "tool_call_id")), ONE, "Tool call id has to be defined.",
        judge="MIS-15 MIS-02", answer=FUNCTION, mode="hosted", settings=model(generation=3)),
    Row("MIS-15", body(USER, calls(call(A)), {"role": "tool", "content": "ok"}), ONE, judge="MIS-15 MIS-02",
        server="MIS-07"),
    Row("MIS-16", body(USER, calls(without(call(), "id")), result()), ONE,
        "Tool call id has to be defined in serving mode.", judge="MIS-16 MIS-06", answer=FUNCTION, mode="hosted",
        settings=model(generation=3)),
    Row("MIS-16", body(USER, calls(call(None)), USER), HI, server="MIS-S02"),
    Row("MIS-16S", body(USER, calls(call("")), result("")), body(USER, calls(call("call_1")), result("call_1")),
        "Tool call id must be a non-empty string other than 'null' for tokenizer version 13 or newer.", judge="MIS-01",
        stricter="MIS-01", answer=FUNCTION, read="transcript MIS-01", mode="hosted", settings=model(generation=13)),
    Row("MIS-17", body(USER, calls(call(), content="t"), result()), ONE,
        "Assistant message must have either content or tool_calls, but not both.", judge=UNSEEN,
        answer=Answer(type="invalid_request_assistant_message", code="3240"), settings=model(generation=3)),
    Row("MIS-17", body(USER, {"role": "assistant"}, USER), body(USER, SAID, USER),
        "Assistant message must have either content or tool_calls, but not both.",
        answer=Answer(type="invalid_request_assistant_message", code="3240"), hosted=False),
    Row("MIS-17", body(USER, {"role": "assistant", "tool_calls": []}, USER),
        body(USER, say("assistant", "x", tool_calls=[]), USER), hosted=False),
    Row("MIS-18", body(USER, calls(call()), result(content=[IMAGE])),
        body(USER, calls(call()), result(content=[text("r")])),
        "Unexpected content chunk types in tool message: ['ImageURLChunk']", read="media MIS-18"),
    Row("MIS-19", body(USER, say("assistant", reasoning_content="hm"), USER), HI, server="MIS-32"),
    Row("MIS-20", body(USER, calls(call(arguments="[")), result()), ONE,
        "Function call arguments must be a JSON object.", judge="ALL-06", answer=FUNCTION, hosted=False),
    Row("MIS-21", body(*ROUND, USER), body(*ROUND, SAID, USER), "Unexpected role 'user' after role 'tool'"),
    Row("MIS-21", body(*ROUND, USER), ONE, "Unexpected role 'user' after role 'tool'", hosted=False,
        settings=model(generation=13)),
    Row("MIS-23", body(USER, say("assistant", [text(), thinking()]), USER),
        body(USER, say("assistant", [thinking(), thinking(), text()]), USER), server=ACCEPTED),
    Row("MIS-32", body(USER, calls_with_reasoning(call()), result()), ONE, "Extra inputs are not permitted",
        judge="MIS-19", answer=Answer(status=422, type="extra_forbidden")),
    Row("MIS-32", body(USER, stream=True, stream_options={"include_usage": True}), body(USER, stream=True)),
    Row("MIS-32", body(say("user", name="bob")), body(USER, calls(call(A)), {**result(A), "name": "read"})),
    Row("MIS-32", body(USER, calls({**call(A), "name": "read"}), result(A)), ONE),
    Row("MIS-32", body(USER, max_completion_tokens=9), body(USER, max_tokens=9)),
    Row("MIS-33", LONG, HI,
        "Prompt contains 140 tokens and 0 draft tokens, too large for model with 100 maximum context length",
        judge=UNSEEN, answer=Answer(code="3051"), settings=SMALL),
    Row("MIS-S01", body(USER, tools=[]), body(USER, tools=TOOLS),
        "List should have at least 1 item after validation, not 0", judge="MIS-32",
        answer=Answer(status=422, type="too_short"), read="transcript MIS-32"),
    Row("MIS-S02", body({"role": "user", "content": 7}), HI, "Input should be one of a string or array of objects",
        judge="OAC-05", answer=Answer(status=422, type="type_error")),
    Row("MIS-S03", body({"role": "developer", "content": "s"}, USER), body(SYSTEM, USER),
        "Input should be 'system', 'user', 'assistant', and 'tool'", judge="OAC-06",
        answer=Answer(status=422, type="literal_error")),
    Row("MIS-S04", body({"content": "u"}), HI, "Field required", judge="MIS-10 OAC-07",
        answer=Answer(status=422, type="missing")),
    Row("MIS-S05", body({"role": "system", "content": None}, USER), HI, "Input should be a valid string",
        judge="OAC-05", answer=Answer(status=422, type="string_type")),
    Row("MIS-S06", body({"role": "user", "content": [{"type": "bogus"}]}), body({"role": "user", "content": [IMAGE]}),
        "Input tag does not match any of the expected tags", judge="MIS-18",
        answer=Answer(status=422, type="union_tag_invalid")),
    Row("MIS-S07", HI, {**HI, "model": "known"}, "Invalid model: m", judge=UNSEEN,
        answer=Answer(type="invalid_model", code="1500"), read="config", settings=UNKNOWN),
    Row("MIS-S08", b"{", HI, "JSON decode error", judge="ALL-01", answer=Answer(status=422, type="json_invalid")),
    answer=ORDER,
)  # fmt: skip

KIMI = rows(
    "kimi",
    Row("ALL-02", body(USER, calls_with_reasoning(call(KA), reasoning_content=[1]), result(KA)), KIMI_ONE,
        server="KIM-03"),
    Row("KIM-01", body(USER, KIMI_CALL, USER), KIMI_ONE,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: functions.read:0"),
    Row("KIM-01", body(USER, calls_with_reasoning(call(KA), call(KB)), result(KB)), KIMI_TWO,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: functions.read:0"),
    Row("KIM-02", body(USER, result(KA)), KIMI_ONE, "Invalid request: tool_call_id  is not found"),
    Row("KIM-02", body(USER, KIMI_CALL, result(KB), result(KA)), KIMI_ONE,
        "Invalid request: tool_call_id  is not found"),
    Row("KIM-02", body(USER, calls_with_reasoning(call(KA)), result(KA), result(KA)), KIMI_ONE),
    Row("KIM-03", body(USER, calls(call(KA)), result(KA)), KIMI_ONE,
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"),
    Row("KIM-03", body(USER, calls(call(KA), reasoning_content=""), result(KA)),
        body(USER, calls(call(KA)), result(KA), thinking={"type": "disabled"}),
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
        stricter="KIM-03", hosted=False),
    Row("KIM-03", body(USER, calls_with_reasoning(call(KA), reasoning_content=""), result(KA)), KIMI_ONE,
        hosted=False),
    Row("KIM-03", body(USER, calls_with_reasoning(call(KA), reasoning_content=None), result(KA)), KIMI_ONE),
    Row("KIM-04", body(USER, {"role": "assistant", "content": ""}, USER), body(USER, SAID, USER),
        "Invalid request: the message at position 1 with role 'assistant' must not be empty"),
    Row("KIM-04", body(USER, {"role": "assistant"}, USER), HI),
    Row("KIM-04", body(USER, {"role": "assistant", "reasoning_content": "hm"}, USER), HI),
    Row("KIM-05", body(USER, calls_with_reasoning(call(KA), content=[{"type": "text", "text": ""}]), result(KA)),
        body(USER, calls_with_reasoning(call(KA), content=[{"type": "text", "text": "t"}]), result(KA)),
        "text content is empty"),
    Row("KIM-06", body(USER, calls_with_reasoning(call(KA, name="1read")), result(KA)), KIMI_ONE,
        "Invalid request: function name is invalid, must start with a letter and can contain letters, "
        "numbers, underscores, and dashes"),
    Row("KIM-06", body(USER, tools=[tool("_x")]), HI, server=ACCEPTED),
    Row("KIM-07", schema(type="object", properties={"x": {}}),
        schema(type="object", properties={"x": {"type": "string"}}),
        "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path "
        "'properties.x': type is not defined>"),
    Row("KIM-07", schema(type="object", properties={"x": {"type": "string", "anyOf": [{}]}}),
        schema(type="object", properties={"x": {"anyOf": [{"type": "string"}]}}),
        "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path "
        "'properties.x': when using anyOf, type should be defined in anyOf items instead of the parent schema>"),
    Row("KIM-07", schema(type="object", properties={"x": True}),
        schema(type="object", properties={"x": {"type": "null"}}),
        "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path "
        "'properties': property schema for 'x' must be an object>"),
    Row("KIM-07", schema(type="object", properties={"x": {"type": "array", "items": [{"type": "string"}]}}),
        schema(type="object", properties={"x": {"type": "array", "items": {"type": "string"}}}),
        "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path "
        "'properties.x': items must be an object>"),
    Row("KIM-07", typed(x={"enum": ["a"]}), typed(x={"type": "string"}), server=ACCEPTED),
    Row("KIM-07", typed(x={"type": "array", "items": {"$ref": "#/definitions/X"}}),
        typed(x={"type": "array", "items": {"$ref": "#/$defs/X"}})),
    Row("KIM-07", typed(x=True), HI),
    Row("KIM-07", typed(x={"type": "string", "anyOf": [STRING]}), typed(x={"anyOf": [STRING]})),
    Row("KIM-07", typed(x={"anyOf": [{"minLength": 1}]}), typed(x={"anyOf": [{"minLength": 1, **STRING}]}),
        server=ACCEPTED),
    Row("KIM-07", typed(x={"type": "string", "$ref": "#/$defs/X"}), typed(x={"$ref": "#/$defs/X"}), server=ACCEPTED),
    Row("KIM-07", typed(x={"type": "array", "items": [STRING]}), typed(x={"type": "array", "items": STRING})),
    Row("KIM-07", typed(x={"type": "array", "items": {}}), typed(x={"type": "array", "prefixItems": [STRING]})),
    Row("KIM-07", typed(x={"type": "object", "additionalProperties": {}}),
        typed(x={"type": "object", "additionalProperties": False}), server=ACCEPTED),
    Row("KIM-07", typed(x={"type": "object", "patternProperties": {"^a": {"$ref": "#/a"}}}),
        typed(x={"type": "object", "patternProperties": {"^a": STRING}}), server=ACCEPTED),
    Row("KIM-07", typed(["y"], x=STRING), typed(["x"], x=STRING), server=ACCEPTED),
    Row("KIM-08", body(USER, tools=[{"type": "custom", "custom": {"name": "read"}}]), body(USER, tools=TOOLS),
        "unknown tool type: custom, currently only function and plugin are supported"),
    Row("KIM-09", body(USER, temperature=0.6), body(USER, temperature=1, top_p=0.95, n=1),
        "invalid temperature: only 1 is allowed for this model", stricter="KIM-09", read="parameter:config KIM-09",
        settings=model(sampling=False)),
    Row("KIM-09", body(USER, model="kimi-k3", temperature=0.2), body(USER, model="kimi-k3", temperature=1),
        server=ACCEPTED),
    Row("KIM-10", body(USER, tools=TOOLS, tool_choice=CHOICE), body(USER, tools=TOOLS, tool_choice="auto"),
        "tool_choice 'specified' is incompatible with thinking enabled", read="parameter:config KIM-10"),
    Row("KIM-10", body(USER, tools=TOOLS, tool_choice="required"), body(USER, tools=TOOLS, tool_choice="auto")),
    Row("KIM-10", body(USER, tools=TOOLS, tool_choice="required", thinking={"type": "disabled"}),
        body(USER, thinking={"type": "enabled"}), server=ACCEPTED),
    Row("KIM-11", body(), HI, "Invalid request: messages must not be empty"),
    Row("KIM-12", LONG, HI, "Invalid request: Your request exceeded model token limit: 100", judge=UNSEEN,
        settings=SMALL),
    Row("KIM-14", body(USER, model="kimi-k3", thinking={"type": "disabled"}),
        body(USER, model="kimi-k2.6", thinking={"type": "disabled"}),
        "invalid thinking: kimi-k3 does not accept the thinking parameter", judge="ALL-16", read="parameter"),
    Row("KIM-15", body(USER, model="kimi-k3", reasoning_effort="medium"),
        body(USER, model="kimi-k3", reasoning_effort="high"),
        "invalid reasoning_effort: only low, high, max are allowed for this model", judge="ALL-16", read="parameter"),
    Row("KIM-S01", body(USER, calls_with_reasoning(call("call_a")), result("call_a")),
        body(USER, calls_with_reasoning(call("read:0")), result("read:0")),
        "tool call id call_a is not in the form functions.name:index", judge=UNSEEN, hosted=False),
    Row("KIM-S02", body(USER, KIMI_CALL, result(KA), KIMI_CALL, result(KA)),
        body(USER, KIMI_CALL, result(KA), calls_with_reasoning(call(KB)), result(KB)),
        "tool call id functions.read:0 is used twice", judge="ALL-04", hosted=False),
    Row("OAC-06", body(say("developer"), USER), body(SYSTEM, USER)),
)  # fmt: skip

DEEPSEEK = rows(
    "deepseek",
    Row("ALL-10", body(say("user", [IMAGE])), HI, server=ACCEPTED),
    Row("DSK-01", body(USER, result()), THOUGHT_ONE,
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"),
    Row("DSK-01", body(USER, calls_with_reasoning(call()), result(), result()), THOUGHT_ONE,
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"),
    Row("DSK-01", body(USER, calls_with_reasoning(call(), call(B)), result(), result(), result(B)), THOUGHT_TWO,
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"),
    Row("DSK-01", body(USER, calls_with_reasoning(call(), call(B)), result(), result()), THOUGHT_TWO,
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        judge="DSK-01 DSK-02"),
    Row("DSK-02", body(USER, calls_with_reasoning(call(), call(B)), result(), USER), THOUGHT_TWO,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. (insufficient tool messages following tool_calls message)"),
    Row("DSK-02", body(USER, calls_with_reasoning(call())), THOUGHT_ONE,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. (insufficient tool messages following tool_calls message)", judge="DSK-02 ALL-05"),
    Row("DSK-02", body(USER, calls_with_reasoning(), USER), THOUGHT_ONE),
    Row("DSK-03", body(USER, calls_with_reasoning(call()), result(B)), THOUGHT_ONE,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: aaaaaaaa1",
        judge="DSK-03 DSK-02"),
    Row("DSK-03", body(USER, calls_with_reasoning(call("c1"), call("c2")), result("c1"), result("c9"), result("c2")),
        THOUGHT_ONE, server="DSK-01"),
    Row("DSK-04", body(USER, calls_with_reasoning(call()), without(result(), "tool_call_id")), THOUGHT_ONE,
        "Failed to deserialize the JSON body into the target type: messages[2]: missing field `tool_call_id`",
        judge="DSK-04 DSK-02", answer=Answer(status=422, code="invalid_request_error")),
    Row("DSK-05", ONE, THOUGHT_ONE, "The `reasoning_content` in the thinking mode must be passed back to the API."),
    Row("DSK-05", body(*ROUND, USER), THOUGHT_ONE,
        "The `reasoning_content` in the thinking mode must be passed back to the API.", hosted=False),
    Row("DSK-05", body(USER, calls(call(), reasoning_content=""), result()), THOUGHT_ONE,
        "The `reasoning_content` in the thinking mode must be passed back to the API.", hosted=False),
    Row("DSK-08", body(USER, tools=TOOLS, tool_choice="required"),
        body(USER, tools=TOOLS, tool_choice="required", thinking={"type": "disabled"}),
        "deepseek-reasoner does not support this tool_choice", read="parameter:config DSK-08"),
    Row("DSK-09", LONG, HI,
        "This model's maximum context length is 100 tokens. However, you requested 140 tokens (140 in the "
        "messages, 0 in the completion). Please reduce the length of the messages or completion.", judge=UNSEEN,
        settings=SMALL),
    Row("DSK-S01", body({"role": "user", "content": 7}), HI,
        "Failed to deserialize the JSON body into the target type: messages[0].content: expected one of a "
        "string or array of objects", judge="OAC-05", answer=Answer(status=422, code="invalid_request_error")),
    Row("DSK-S02", body({"role": "developer", "content": "s"}, USER), body(SYSTEM, USER),
        "Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `developer`, "
        "expected 'system', 'assistant', 'user', 'function', and 'tool'", judge="OAC-06",
        answer=Answer(status=422, code="invalid_request_error")),
    answer=Answer(code="invalid_request_error"),
)  # fmt: skip

ROWS = [
    *MISTRAL,
    *KIMI,
    *DEEPSEEK,
]
