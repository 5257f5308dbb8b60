"""Rules of OpenAI Chat Completions: a request that breaks each rule, and the nearest valid request.

The rules that vendors of this wire format add are in `chat_vendors`.
"""

from typing import Any

from actors.core.data.record import replace
from actors.core.dialects.profiles import OPENAI_CHAT
from actors.strict.rules import OpenAIProfile, OpenAISettings
from tests.rules.row import ACCEPTED, NOT_ASKED, UNSEEN, Answer, Json, Row, rows, without


def say(role: str, content: Any = "hi", **more: Any) -> Json:  # Any: a row may break a body in any way
    return {"role": role, "content": content, **more}


def text(words: Any = "hi", **more: Any) -> Json:  # Any: likewise
    return {"type": "text", "text": words, **more}


def call(
    call_id: Any = "call_a", name: Any = "read", arguments: Any = "{}", **more: Any
) -> Json:  # Any: likewise
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def calls(*made: Json, **more: Any) -> Json:  # Any: likewise
    return {"role": "assistant", "content": None, "tool_calls": list(made or [call()]), **more}


def result(call_id: str = "call_a", content: Any = "r", **more: Any) -> Json:  # Any: likewise
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def body(*messages: Any, **more: Any) -> Json:  # Any: likewise
    return {"model": "m", "messages": list(messages), **more}


def tool(name: str = "read", **more: Any) -> Json:  # Any: likewise
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}, **more}}


def choice(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


def schema(**parameters: Any) -> Json:  # Any: likewise
    return body(USER, tools=[tool(parameters=parameters)])


def request_with_call_id(call_id: str) -> Json:
    """Return a request with one call and its result under this id."""
    return body(USER, calls(call(call_id)), result(call_id))


def model(**values: Any) -> OpenAISettings:  # Any: passed on to a typed constructor
    """Return a host with a model of these properties."""
    return OpenAISettings(OpenAIProfile(**values))


SURROGATE = "\ud800"
LONG = "x" * (OPENAI_CHAT.turns.max_string or 0)
PREFIX = "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
UNANSWERED = PREFIX + "'tool_call_id'. The following tool_call_ids did not have response messages: "
ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
TOO_LONG = "string too long. Expected a string with maximum length"
USER = {"role": "user", "content": "u"}
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
MARK = {"type": "ephemeral"}
LINKED = {"type": "image_url", "image_url": {"url": "https://a.example/i.png"}}
FILE = {"type": "file", "file": {"file_id": "f"}}
BLOCK = {"type": "tool_result", "tool_use_id": "call_a", "content": "r"}
ROUND = (USER, calls(), result())
BATCH = calls(call(), call("call_b"))
HI = body(USER)
ONE = body(*ROUND)
TWO = body(USER, BATCH, result(), result("call_b"), USER)
CAUTIOUS = replace(OPENAI_CHAT, turns=replace(OPENAI_CHAT.turns, first_roles=frozenset({"user"})))
PER_MESSAGE = replace(OPENAI_CHAT, ids=replace(OPENAI_CHAT.ids, unique_scope="message"))
WITHOUT_FILES = replace(OPENAI_CHAT, media=replace(OPENAI_CHAT.media, user_files=False))
ONE_FILE = replace(OPENAI_CHAT, media=replace(OPENAI_CHAT.media, max_count=1))


ROWS = rows(
    "openai_chat",
    Row("ALL-01", b'{"model":"m","messages":[{"role":"user","content":"hi"}]', HI, server="OAC-S01"),
    Row("ALL-01", b'{"model":"m","model":"m","messages":[{"role":"user","content":"hi"}]}', HI, server="OAC-S01"),
    Row("ALL-01", b'{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":NaN}', HI,
        server="OAC-S01"),
    Row("ALL-01", b"[]", HI, server="OAC-S01"),
    Row("ALL-02", body(USER, stream_options={}), body(USER, stream=True, stream_options={}), server="OAC-S03"),
    Row("ALL-02", body(USER, max_tokens=0), body(USER, max_tokens=1), server="OAC-S02"),
    Row("ALL-02", body(USER, max_completion_tokens=-1), body(USER, max_completion_tokens=1), server="OAC-S02"),
    Row("ALL-02", body(USER, max_tokens=1.5), body(USER, max_tokens=None), server="OAC-S02"),
    Row("ALL-02", body(USER, max_completion_tokens=True), HI, server="OAC-S02"),
    Row("ALL-02", without(HI, "messages"), HI, server="OAC-07"),
    Row("ALL-02", body("hi", USER), HI, server="OAC-05"),
    Row("ALL-02", body(USER, calls(), {"role": "tool", "content": "ok"}), ONE, judge="ALL-02 OAC-01", server="OAC-07"),
    Row("ALL-02", body(USER, calls(call(None)), result()), ONE, judge="ALL-02 OAC-02", server="OAC-05"),
    Row("ALL-02", body(USER, calls(call(type="other")), USER), HI, server="OAC-06"),
    Row("ALL-02", body(USER, say("assistant", "x", tool_calls=[]), USER), ONE, server="OAC-04"),
    Row("ALL-02", body(USER, calls({**call(), "function": 1}), result()), ONE, server="OAC-05"),
    Row("ALL-02", body(USER, tools=[]), body(USER, tools=[TOOL]), server="OAC-04"),
    Row("ALL-02", body(USER, tools=[{"type": "x"}]), body(USER, tools=[TOOL]), server="OAC-06"),
    Row("ALL-02", body(USER, tools=[{"type": "function"}]), body(USER, tools=[TOOL]), server="OAC-07"),
    Row("ALL-02", body(say("user", [text(1)])), body(say("user", [text()])), server="OAC-05"),
    Row("ALL-02", body(say("user", [{"type": "image_url", "image_url": "x"}])), HI, server="OAC-05"),
    Row("ALL-03", body(USER, calls(call("functions.read:0")), result("functions.read:0")), ONE, server=ACCEPTED),
    Row("ALL-04", body(*ROUND, calls(), result()), body(*ROUND, calls(call("call_b")), result("call_b")),
        server=ACCEPTED),
    Row("ALL-04", body(USER, calls(call(), call()), result()), ONE, server=NOT_ASKED, profile=PER_MESSAGE),
    Row("ALL-05", body(USER, say("assistant")), body(USER, say("assistant"), USER), server=ACCEPTED),
    Row("ALL-05", body(USER, say("system")), body(say("system"), USER), server=ACCEPTED),
    Row("ALL-06", body(USER, calls(call(arguments="")), result()), ONE, server="OAC-S09", hosted=False),
    Row("ALL-06", body(USER, calls(call(arguments="[]")), result()), ONE, server="OAC-S09", hosted=False),
    Row("ALL-06", body(USER, calls(call(arguments="null")), result()), ONE, server="OAC-S09", hosted=False),
    Row("ALL-06", body(USER, calls(call(arguments='{"a')), result()), ONE, server="OAC-S09", hosted=False),
    Row("ALL-06", body(USER, calls(call(arguments={})), result()), ONE, server="OAC-05"),
    Row("ALL-07", body(USER, say("assistant", "x", reasoning_content="hm"), USER), HI, server="OAC-12"),
    Row("ALL-07", body(say("user", [text(cache_control=MARK)])), HI, server="OAC-12"),
    Row("ALL-07", body(USER, calls({**call(), "function": {**call()["function"], "x": 1}}), result()), ONE,
        server="OAC-12"),
    Row("ALL-07", body(USER, tools=[{**tool(), "x": 1}]), body(USER, tools=[TOOL]), server="OAC-12"),
    Row("ALL-07", body(USER, tools=[tool(x=1)]), body(USER, tools=[TOOL]), server="OAC-12"),
    Row("ALL-09", body(say("assistant"), USER), HI, server=NOT_ASKED, profile=CAUTIOUS),
    Row("ALL-10", body(say("user", [FILE])), body(say("user", [LINKED])), server=NOT_ASKED, profile=WITHOUT_FILES),
    Row("ALL-11", body(say("user", [])), HI, server="OAC-04"),
    Row("ALL-11", body(say("user", [text("")])), HI, server=ACCEPTED),
    Row("ALL-12", body(say("user", SURROGATE)), HI, server="OAC-S01"),
    Row("ALL-12", b'{"model":"m","messages":[{"role":"user","content":"\xed\xa0\x80"}]}', HI, server="OAC-S01"),
    Row("ALL-13", body(USER, tools=[tool(), tool()]), body(USER, tools=[tool(), tool("write")]), server=ACCEPTED),
    Row("ALL-14", body(USER, parallel_tool_calls=True), HI, server="OAC-S04"),
    Row("ALL-14", body(USER, tool_choice=choice("write"), tools=[TOOL]),
        body(USER, tool_choice=choice("read"), tools=[TOOL]), server="OAC-S05"),
    Row("ALL-15", body(say("user", [LINKED] * 501)), body(say("user", [LINKED] * 500)), server=ACCEPTED),
    Row("ALL-15", body(say("user", [LINKED]), say("assistant"), say("user", [LINKED])),
        body(say("user", [LINKED]), say("assistant"), USER), server=NOT_ASKED, profile=ONE_FILE),
    Row("ALL-16", body(USER, model="gpt-5", reasoning_effort="none"),
        body(USER, model="gpt-5", reasoning_effort="minimal"), server="OAC-23"),
    Row("OAC-01", body(USER, calls()), ONE, UNANSWERED + "call_a", judge="OAC-01 ALL-05", param="messages.[1].role"),
    Row("OAC-01", body(USER, calls(), USER, result()), ONE, UNANSWERED + "call_a", judge="OAC-01 OAC-02",
        param="messages.[2].role"),
    Row("OAC-01", body(USER, calls(call(), call("call_b"), call("call_c")), result("call_b"), USER), TWO,
        UNANSWERED + "call_a, call_c", param="messages.[3].role"),
    Row("OAC-01", body(USER, calls(), USER), ONE),
    Row("OAC-01", body(USER, BATCH, result()), body(USER, BATCH, result(), result("call_b"))),
    Row("OAC-01", body(USER, calls(), say("system"), result()), ONE, judge="OAC-01 OAC-02"),
    Row("OAC-01", body(USER, calls(), calls(call("call_b")), result("call_b")), ONE),
    Row("OAC-02", body(result(), USER), ONE, ORPHAN, param="messages.[0].role"),
    Row("OAC-02", body(*ROUND, result()), TWO, ORPHAN, param="messages.[3].role"),
    Row("OAC-02", body(USER, result()), ONE),
    Row("OAC-02", body(*ROUND, USER, result()), body(*ROUND, USER)),
    Row("OAC-03", request_with_call_id("c" * 43), request_with_call_id("c" * 40),
        f"Invalid 'messages[1].tool_calls[0].id': {TOO_LONG} 40, but got a string with length 43 instead.",
        answer=Answer(code="string_above_max_length"), param="messages[1].tool_calls[0].id"),
    Row("OAC-03", request_with_call_id("c" * 41), request_with_call_id("c" * 40)),
    Row("OAC-04", body(), HI,
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        answer=Answer(code="empty_array"), param="messages"),
    Row("OAC-05", body({"role": "user", "content": 7}), HI,
        "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an "
        "integer instead.", answer=Answer(code="invalid_type"), param="messages[0].content"),
    Row("OAC-05", body(say("user", 1)), HI),
    Row("OAC-05", body({"role": "user"}), HI, server="OAC-07"),
    Row("OAC-05", body(say("user", ["hi"])), HI),
    Row("OAC-05", body(USER, say("assistant", 1), USER), HI),
    Row("OAC-05", body(USER, calls(), result(content=None)), ONE, server="OAC-S12"),
    Row("OAC-06", body({"role": "bogus", "content": "u"}), body(say("developer"), USER),
        "Invalid value: 'bogus'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and "
        "'developer'.", judge="OAC-06 ALL-05", answer=Answer(code="invalid_value"), param="messages[0].role"),
    Row("OAC-06", body(USER, say("bogus"), USER), HI),
    Row("OAC-06", body(USER, {"role": ["user"], "content": "hi"}, USER), HI),
    Row("OAC-07", body({"content": "u"}), HI, "Missing required parameter: 'messages[0].role'.", judge="OAC-07 ALL-05",
        answer=Answer(code="missing_required_parameter"), param="messages[0].role"),
    Row("OAC-07", body({"content": "hi"}, USER), HI),
    Row("OAC-08", body(USER, calls(), result(content=[{"type": "image_url", "image_url": {"url": "x"}}])),
        body(USER, calls(), result(content=[{"type": "text", "text": "r"}])),
        "Invalid 'messages[2]'. Content blocks are expected to be either text or image_url type.",
        answer=Answer(code="invalid_value"), param="messages[2]", read="media OAC-08"),
    Row("OAC-08", body(say("user", [BLOCK])), HI),
    Row("OAC-09", body(USER, tools=[tool(f"t{n}") for n in range(150)]),
        body(USER, tools=[tool(f"t{n}") for n in range(128)]),
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with "
        "length 150 instead.", answer=Answer(code="array_above_max_length"), param="tools"),
    Row("OAC-09", body(USER, tools=[tool(f"t{n}") for n in range(129)]),
        body(USER, tools=[tool(f"t{n}") for n in range(128)])),
    Row("OAC-10", body(USER, tools=[{"type": "function", "function": {"name": "n" * 65}}]),
        body(USER, tools=[{"type": "function", "function": {"name": "n" * 64}}]),
        f"Invalid 'tools[0].function.name': {TOO_LONG} 64, but got a string with length 65 instead.",
        answer=Answer(code="string_above_max_length"), param="tools[0].function.name"),
    Row("OAC-10", body(USER, tools=[tool("x" * 65)]), body(USER, tools=[tool("x" * 64)])),
    Row("OAC-10", body(USER, calls(call(name="functions.read")), result()), ONE, server="OAC-S06"),
    Row("OAC-10", body(USER, calls(call(name="")), result()), ONE, server="OAC-S07"),
    Row("OAC-11", schema(type="string"), schema(type="object"),
        "Invalid schema for function 'read': schema must be a JSON Schema of 'type: \"object\"', got 'type: "
        "\"string\"'.", answer=Answer(code="invalid_function_parameters")),
    Row("OAC-11", schema(type="object", anyOf=[{}]), schema(type="object"),
        "Invalid schema for function 'read': schema must have type 'object' and not have "
        "'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.", answer=Answer(code="invalid_function_parameters")),
    Row("OAC-11", schema(type="object", properties={"type": "object"}), schema(type="object", properties={"type": {}}),
        "Invalid schema for function 'read': 'object' is not of type 'object', 'boolean'.",
        answer=Answer(code="invalid_function_parameters")),
    Row("OAC-11", schema(type="object", properties={"x": {"type": "array"}}),
        schema(type="object", properties={"x": {"type": "array", "items": {}}}),
        "Invalid schema for function 'read': In context=('properties', 'x'), array schema missing items.",
        judge=UNSEEN, answer=Answer(code="invalid_function_parameters")),
    Row("OAC-11", body(USER, tools=[tool(parameters={"type": "string"})]),
        body(USER, tools=[{"type": "function", "function": {"name": "read"}}])),
    Row("OAC-11", body(USER, tools=[tool(parameters={})]), body(USER, tools=[TOOL])),
    Row("OAC-11", body(USER, tools=[tool(parameters={"type": "object", "anyOf": []})]), body(USER, tools=[TOOL])),
    Row("OAC-12", body(USER, zzz_unknown=1), HI, "Unknown parameter: 'zzz_unknown'.", param="zzz_unknown"),
    Row("OAC-12", body(USER, calls(call(), reasoning_content="t"), result()), ONE,
        "Unknown parameter: 'messages[1].reasoning_content'.", judge="ALL-07", param="messages[1].reasoning_content"),
    Row("OAC-12", body(USER, calls({**call(), "index": 0}), result()), ONE,
        "Unknown parameter: 'messages[1].tool_calls[0].index'.", judge="ALL-07",
        param="messages[1].tool_calls[0].index"),
    Row("OAC-12", body(USER, calls({"id": "call_a", "type": "function", "function": {**call()["function"], "x": 1}})),
        ONE, "Unknown parameter: 'messages[1].tool_calls[0].function.x'.", judge="ALL-05 ALL-07 OAC-01",
        param="messages[1].tool_calls[0].function.x"),
    Row("OAC-12", body(USER, calls(), result(status="done")), body(USER, calls(), result(name="read")),
        "Unknown parameter: 'messages[2].status'.", judge="ALL-07", param="messages[2].status"),
    Row("OAC-12", body({"role": "user", "content": [{"type": "text", "text": "u", "cache_control": {}}]}),
        body({"role": "user", "content": [{"type": "text", "text": "u"}]}),
        "Unknown parameter: 'messages[0].content[0].cache_control'.", judge="ALL-07",
        param="messages[0].content[0].cache_control", read="parameter OAC-12"),
    Row("OAC-12", body(USER, zzz_unknown=1), body(USER, temperature=1)),
    Row("OAC-13", body({"role": "developer", "content": "s"}, USER), HI,
        "Unsupported value: 'messages[0].role' does not support 'developer' with this model.", judge=UNSEEN,
        answer=Answer(code="unsupported_value"), param="messages[0].role", read="config OAC-13",
        settings=model(system_role=False)),
    Row("OAC-14", body({"role": "user", "content": "u" * 1048577}), body({"role": "user", "content": "u" * 1048576}),
        f"Invalid 'messages[0].content': {TOO_LONG} 1048576, but got a string with length 1048577 instead.",
        answer=Answer(code="string_above_max_length"), param="messages[0].content"),
    Row("OAC-14", body(say("user", [text(LONG + "x")])), body(say("user", [text(LONG)]))),
    Row("OAC-14", body(USER, calls(call(arguments='{"a":"' + LONG + '"}')), result()), ONE),
    Row("OAC-15", body({"role": "user", "content": "u" * 500}), HI,
        "This model's maximum context length is 100 tokens. However, your messages resulted in 140 tokens. "
        "Please reduce the length of the messages.", judge=UNSEEN, answer=Answer(code="context_length_exceeded"),
        param="messages", settings=model(context_tokens=100)),
    Row("OAC-16", HI, {**body(USER), "model": "known"},
        "The model `m` does not exist or you do not have access to it.", judge=UNSEEN,
        answer=Answer(status=404, code="model_not_found"), settings=OpenAISettings(models={"known": OpenAIProfile()})),
    Row("OAC-17", body(USER, prompt_cache_key="k" * 65), body(USER, prompt_cache_key="k" * 64),
        f"Invalid 'prompt_cache_key': {TOO_LONG} 64, but got a string with length 65 instead.",
        answer=Answer(code="string_above_max_length"), param="prompt_cache_key", read="parameter OAC-17"),
    Row("OAC-17", body(USER, prompt_cache_key="k" * 65), body(USER, prompt_cache_key="k" * 64)),
    Row("OAC-18", body(USER, temperature=0.2), HI,
        "Unsupported value: 'temperature' does not support this value with this model.", judge=UNSEEN,
        answer=Answer(code="unsupported_value"), param="temperature", read="parameter:config OAC-18",
        settings=model(sampling=False)),
    Row("OAC-18", body(USER, model="o3", temperature=0.2), body(USER, model="o3", temperature=1), server="OAC-24"),
    Row("OAC-19", {"messages": [USER]}, HI, "you must provide a model parameter", read="config OAC-19"),
    Row("OAC-20", body(USER, model="gpt-5.6", tools=[TOOL]),
        body(USER, model="gpt-5.6", tools=[TOOL], reasoning_effort="none")),
    Row("OAC-20", body(USER, model="gpt-5.5", tools=[TOOL], reasoning_effort="low"),
        body(USER, model="gpt-5.5", tools=[TOOL])),
    Row("OAC-20", body(USER, model="gpt-6-astra", tools=[TOOL]), body(USER, model="gpt-6-astra")),
    Row("OAC-S01", b'{"model":"m","model":"n"}', HI,
        'We could not parse the JSON body of your request. (Detected duplicate key "model" at line 1 column 22)',
        judge="ALL-01"),
    Row("OAC-S02", body(USER, n=0), body(USER, n=1), "Invalid value for 'n'.", judge=UNSEEN,
        answer=Answer(code="invalid_value"), param="n"),
    Row("OAC-S03", body(USER, stream_options={"include_usage": True}),
        body(USER, stream_options={"include_usage": True}, stream=True),
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.", judge="ALL-02",
        param="stream_options", read="parameter"),
    Row("OAC-S04", body(USER, tool_choice="none"), body(USER, tool_choice="none", tools=[TOOL]),
        "'tool_choice' is only allowed when 'tools' are specified.", judge="ALL-14", param="tool_choice",
        read="parameter"),
    Row("OAC-S05", body(USER, tools=[TOOL], tool_choice=choice("write")),
        body(USER, tools=[TOOL], tool_choice=choice("read")), "Tool choice 'function' not found in 'tools' parameter.",
        judge="ALL-14", param="tool_choice", read="parameter"),
    Row("OAC-S06", body(USER, calls(call(name="read file")), result()),
        body(USER, calls(call(name="read_file-2")), result()),
        "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. Expected a string "
        "that matches the pattern '^[a-zA-Z0-9_-]+$'.", judge="OAC-10", answer=Answer(code="invalid_value"),
        param="messages[1].tool_calls[0].function.name"),
    Row("OAC-S07", request_with_call_id("c" * 0), request_with_call_id("c" * 1),
        "Invalid 'messages[1].tool_calls[0].id': empty string. Expected a string with minimum length 1, but "
        "got an empty string instead.", judge="ALL-03", answer=Answer(code="empty_string"),
        param="messages[1].tool_calls[0].id"),
    Row("OAC-S08", body(USER, calls(), result("call_z"), result()), ONE,
        "Invalid parameter: 'tool_call_id' of 'call_z' not found in 'tool_calls' of previous message.", judge="OAC-02",
        param="messages.[2].tool_call_id"),
    Row("OAC-S08", body(USER, BATCH, result(), result(), result("call_b")), TWO,
        "Invalid parameter: 'tool_call_id' of 'call_a' not found in 'tool_calls' of previous message.", judge="OAC-02",
        param="messages.[3].tool_call_id"),
    Row("OAC-S09", body(USER, calls(call(arguments='{"path":"/a')), result()),
        body(USER, calls(call(arguments='{"path":"/a"}')), result()), "invalid tool call arguments", judge="ALL-06",
        param="messages[1].tool_calls[0].function.arguments", read="transcript ALL-06", hosted=False),
    Row("OAC-S09", body(USER, calls(call(arguments="[1]")), result()), ONE, "invalid tool call arguments",
        judge="ALL-06", param="messages[1].tool_calls[0].function.arguments", read="transcript ALL-06", hosted=False),
    Row("OAC-S10", body(USER, calls(call(), call()), result(), result()), TWO,
        "Duplicate tool call id call_a in assistant message", judge="ALL-04 OAC-02",
        param="messages[1].tool_calls[1].id", read="transcript MIS-04", hosted=False),
    Row("OAC-S11", body(USER, say("assistant", None), USER), body(USER, say("assistant"), USER),
        "Assistant message must contain either 'content' or 'tool_calls'!", judge="ALL-11", param="messages[1]",
        read="transcript ALL-11", hosted=False),
    Row("OAC-S12", body({"role": "user", "content": None}), HI,
        "Invalid value for 'content': expected a string, got null.", judge="OAC-05", param="messages[0].content"),
)  # fmt: skip
