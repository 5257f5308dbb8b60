"""Each rule of the OpenAI Chat judge refuses its fault in the provider's words, and nothing next to it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from actors.strict.rules import OPENAI_CHAT_RULES, OpenAIProfile, OpenAISettings, validate
from tests.strict.cases_answers import shown

Json = dict[str, Any]  # a body under test may be anything

USER: Json = {"role": "user", "content": "u"}
PREFIX = "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
UNANSWERED = PREFIX + "'tool_call_id'. The following tool_call_ids did not have response messages: "
ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
ORPHAN += "'tool_calls'."
TOO_LONG = "string too long. Expected a string with maximum length"
FUNCTION: Json = {"name": "read", "parameters": {"type": "object", "properties": {}}}
TOOL: Json = {"type": "function", "function": FUNCTION}


def call(call_id: str = "call_a", arguments: str = "{}", name: str = "read") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*made: Json, **more: Any) -> Json:  # any key at all may be under test
    return {"role": "assistant", "content": None, "tool_calls": list(made), **more}


def result(call_id: str = "call_a", **more: Any) -> Json:  # any key at all may be under test
    return {"role": "tool", "tool_call_id": call_id, "content": "r", **more}


def body(*messages: Json, **more: Any) -> Json:  # any key at all may be under test
    return {"model": "m", "messages": list(messages), **more}


def schema(**parameters: Any) -> Json:  # any key at all may be under test
    return body(USER, tools=[{"type": "function", "function": {"name": "read", "parameters": parameters}}])


def long_id(length: int) -> Json:
    return body(USER, calls(call("c" * length)), result("c" * length))


@dataclass(frozen=True)
class Case:
    rule: str
    refused: Json | bytes
    message: str
    accepted: Json
    param: str | None = None
    status: int = 400
    code: str | None = None
    settings: OpenAISettings = field(default=OpenAISettings())


def profile(**values: Any) -> OpenAISettings:  # passed on to a typed constructor
    return OpenAISettings(OpenAIProfile(**values))


ONE = body(USER, calls(call()), result())
TWO = body(USER, calls(call(), call("call_b")), result(), result("call_b"), USER)
TOOLS = body(USER, tools=[TOOL])

PAIRING = [
    Case("OAC-01", body(USER, calls(call())), UNANSWERED + "call_a", ONE, "messages.[1].role"),
    Case(
        "OAC-01", body(USER, calls(call()), USER, result()), UNANSWERED + "call_a", ONE, "messages.[2].role"
    ),
    Case(
        "OAC-01",
        body(USER, calls(call(), call("call_b"), call("call_c")), result("call_b"), USER),
        UNANSWERED + "call_a, call_c",
        TWO,
        "messages.[3].role",
    ),
    Case("OAC-02", body(result(), USER), ORPHAN, ONE, "messages.[0].role"),
    Case("OAC-02", body(USER, calls(call()), result(), result()), ORPHAN, TWO, "messages.[3].role"),
    Case(
        "OAC-S08",
        body(USER, calls(call()), result("call_z"), result()),
        "Invalid parameter: 'tool_call_id' of 'call_z' not found in 'tool_calls' of previous message.",
        ONE,
        "messages.[2].tool_call_id",
    ),
    Case(
        "OAC-S08",
        body(USER, calls(call(), call("call_b")), result(), result(), result("call_b")),
        "Invalid parameter: 'tool_call_id' of 'call_a' not found in 'tool_calls' of previous message.",
        TWO,
        "messages.[3].tool_call_id",
    ),
    Case(
        "OAC-S10",
        body(USER, calls(call(), call()), result(), result()),
        "Duplicate tool call id call_a in assistant message",
        TWO,
        "messages[1].tool_calls[1].id",
    ),
]

IDENTITY = [
    Case(
        "OAC-03",
        long_id(43),
        f"Invalid 'messages[1].tool_calls[0].id': {TOO_LONG} 40, but got a string with length 43 instead.",
        long_id(40),
        "messages[1].tool_calls[0].id",
        code="string_above_max_length",
    ),
    Case(
        "OAC-S07",
        long_id(0),
        "Invalid 'messages[1].tool_calls[0].id': empty string. Expected a string with minimum length 1, but "
        "got an empty string instead.",
        long_id(1),
        "messages[1].tool_calls[0].id",
        code="empty_string",
    ),
    Case(
        "OAC-10",
        body(USER, tools=[{"type": "function", "function": {"name": "n" * 65}}]),
        f"Invalid 'tools[0].function.name': {TOO_LONG} 64, but got a string with length 65 instead.",
        body(USER, tools=[{"type": "function", "function": {"name": "n" * 64}}]),
        "tools[0].function.name",
        code="string_above_max_length",
    ),
    Case(
        "OAC-S06",
        body(USER, calls(call(name="read file")), result()),
        "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. Expected a string "
        "that matches the pattern '^[a-zA-Z0-9_-]+$'.",
        body(USER, calls(call(name="read_file-2")), result()),
        "messages[1].tool_calls[0].function.name",
        code="invalid_value",
    ),
    Case(
        "OAC-S09",
        body(USER, calls(call(arguments='{"path":"/a')), result()),
        "invalid tool call arguments",
        body(USER, calls(call(arguments='{"path":"/a"}')), result()),
        "messages[1].tool_calls[0].function.arguments",
    ),
    Case(
        "OAC-S09",
        body(USER, calls(call(arguments="[1]")), result()),
        "invalid tool call arguments",
        ONE,
        "messages[1].tool_calls[0].function.arguments",
    ),
]

SHAPES = [
    Case(
        "OAC-04",
        body(),
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array "
        "instead.",
        body(USER),
        "messages",
        code="empty_array",
    ),
    Case(
        "OAC-05",
        body({"role": "user", "content": 7}),
        "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an "
        "integer instead.",
        body(USER),
        "messages[0].content",
        code="invalid_type",
    ),
    Case(
        "OAC-06",
        body({"role": "bogus", "content": "u"}),
        "Invalid value: 'bogus'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', "
        "and 'developer'.",
        body({"role": "developer", "content": "u"}),
        "messages[0].role",
        code="invalid_value",
    ),
    Case(
        "OAC-07",
        body({"content": "u"}),
        "Missing required parameter: 'messages[0].role'.",
        body(USER),
        "messages[0].role",
        code="missing_required_parameter",
    ),
    Case(
        "OAC-08",
        body(USER, calls(call()), result(content=[{"type": "image_url", "image_url": {"url": "x"}}])),
        "Invalid 'messages[2]'. Content blocks are expected to be either text or image_url type.",
        body(USER, calls(call()), result(content=[{"type": "text", "text": "r"}])),
        "messages[2]",
        code="invalid_value",
    ),
    Case("OAC-12", body(USER, zzz_unknown=1), "Unknown parameter: 'zzz_unknown'.", body(USER), "zzz_unknown"),
    Case(
        "OAC-12",
        body(USER, calls(call(), reasoning_content="t"), result()),
        "Unknown parameter: 'messages[1].reasoning_content'.",
        ONE,
        "messages[1].reasoning_content",
    ),
    Case(
        "OAC-12",
        body(USER, calls({**call(), "index": 0}), result()),
        "Unknown parameter: 'messages[1].tool_calls[0].index'.",
        ONE,
        "messages[1].tool_calls[0].index",
    ),
    Case(
        "OAC-12",
        body(USER, calls({"id": "call_a", "type": "function", "function": {**call()["function"], "x": 1}})),
        "Unknown parameter: 'messages[1].tool_calls[0].function.x'.",
        ONE,
        "messages[1].tool_calls[0].function.x",
    ),
    Case(
        "OAC-12",
        body(USER, calls(call()), result(status="done")),
        "Unknown parameter: 'messages[2].status'.",
        body(USER, calls(call()), result(name="read")),
        "messages[2].status",
    ),
    Case(
        "OAC-12",
        body({"role": "user", "content": [{"type": "text", "text": "u", "cache_control": {}}]}),
        "Unknown parameter: 'messages[0].content[0].cache_control'.",
        body({"role": "user", "content": [{"type": "text", "text": "u"}]}),
        "messages[0].content[0].cache_control",
    ),
    Case(
        "OAC-13",
        body({"role": "developer", "content": "s"}, USER),
        "Unsupported value: 'messages[0].role' does not support 'developer' with this model.",
        body(USER),
        "messages[0].role",
        code="unsupported_value",
        settings=profile(system_role=False),
    ),
    Case(
        "OAC-14",
        body({"role": "user", "content": "u" * 1_048_577}),
        f"Invalid 'messages[0].content': {TOO_LONG} 1048576, but got a string with length 1048577 instead.",
        body({"role": "user", "content": "u" * 1_048_576}),
        "messages[0].content",
        code="string_above_max_length",
    ),
    Case(
        "OAC-S11",
        body(USER, {"role": "assistant", "content": None}),
        "Assistant message must contain either 'content' or 'tool_calls'!",
        body(USER, {"role": "assistant", "content": "a"}),
        "messages[1]",
    ),
    Case(
        "OAC-S12",
        body({"role": "user", "content": None}),
        "Invalid value for 'content': expected a string, got null.",
        body(USER),
        "messages[0].content",
    ),
]

REQUEST = [
    Case(
        "OAC-09",
        body(USER, tools=[TOOL] * 150),
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with "
        "length 150 instead.",
        body(USER, tools=[TOOL] * 128),
        "tools",
        code="array_above_max_length",
    ),
    Case(
        "OAC-11",
        schema(type="string"),
        "Invalid schema for function 'read': schema must be a JSON Schema of 'type: \"object\"', got 'type: "
        '"string"\'.',
        schema(type="object"),
        code="invalid_function_parameters",
    ),
    Case(
        "OAC-11",
        schema(type="object", anyOf=[{}]),
        "Invalid schema for function 'read': schema must have type 'object' and not have "
        "'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
        schema(type="object"),
        code="invalid_function_parameters",
    ),
    Case(
        "OAC-11",
        schema(type="object", properties={"type": "object"}),
        "Invalid schema for function 'read': 'object' is not of type 'object', 'boolean'.",
        schema(type="object", properties={"type": {}}),
        code="invalid_function_parameters",
    ),
    Case(
        "OAC-11",
        schema(type="object", properties={"x": {"type": "array"}}),
        "Invalid schema for function 'read': In context=('properties', 'x'), array schema missing items.",
        schema(type="object", properties={"x": {"type": "array", "items": {}}}),
        code="invalid_function_parameters",
    ),
    Case(
        "OAC-15",
        body({"role": "user", "content": "u" * 500}),
        "This model's maximum context length is 100 tokens. However, your messages resulted in 140 tokens. "
        "Please reduce the length of the messages.",
        body(USER),
        "messages",
        code="context_length_exceeded",
        settings=profile(context_tokens=100),
    ),
    Case(
        "OAC-16",
        body(USER),
        "The model `m` does not exist or you do not have access to it.",
        {**body(USER), "model": "known"},
        status=404,
        code="model_not_found",
        settings=OpenAISettings(models={"known": OpenAIProfile()}),
    ),
    Case(
        "OAC-17",
        body(USER, prompt_cache_key="k" * 65),
        f"Invalid 'prompt_cache_key': {TOO_LONG} 64, but got a string with length 65 instead.",
        body(USER, prompt_cache_key="k" * 64),
        "prompt_cache_key",
        code="string_above_max_length",
    ),
    Case(
        "OAC-18",
        body(USER, temperature=0.2),
        "Unsupported value: 'temperature' does not support this value with this model.",
        body(USER),
        "temperature",
        code="unsupported_value",
        settings=profile(sampling=False),
    ),
    Case("OAC-19", {"messages": [USER]}, "you must provide a model parameter", body(USER)),
    Case(
        "OAC-S01",
        b'{"model":"m","model":"n"}',
        "We could not parse the JSON body of your request. "
        '(Detected duplicate key "model" at line 1 column 22)',
        body(USER),
    ),
    Case("OAC-S02", body(USER, n=0), "Invalid value for 'n'.", body(USER, n=1), "n", code="invalid_value"),
    Case(
        "OAC-S03",
        body(USER, stream_options={"include_usage": True}),
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        body(USER, stream_options={"include_usage": True}, stream=True),
        "stream_options",
    ),
    Case(
        "OAC-S04",
        body(USER, tool_choice="none"),
        "'tool_choice' is only allowed when 'tools' are specified.",
        body(USER, tool_choice="none", tools=[TOOL]),
        "tool_choice",
    ),
    Case(
        "OAC-S05",
        body(USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "write"}}),
        "Tool choice 'function' not found in 'tools' parameter.",
        body(USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "read"}}),
        "tool_choice",
    ),
]

CASES = PAIRING + IDENTITY + SHAPES + REQUEST


def wire(value: Mapping[str, Any] | bytes) -> bytes:  # a body under test may be anything
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@pytest.mark.requirement("REQ-915-005")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_broken_rule_is_refused_in_the_providers_own_words(case: Case) -> None:
    refusal = validate(wire(case.refused), "openai_chat", settings=case.settings)
    assert refusal is not None
    assert (refusal.rule, refusal.message) == (case.rule, case.message)
    assert (refusal.status, refusal.type) == (case.status, "invalid_request_error")
    assert (refusal.code, refusal.param) == (case.code, case.param)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_the_nearest_sound_body_is_accepted(case: Case) -> None:
    assert validate(wire(case.accepted), "openai_chat", settings=case.settings) is None


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} | shown(OPENAI_CHAT_RULES) == set(OPENAI_CHAT_RULES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_hosted_differs_only_in_the_rules_of_strict_copies(case: Case) -> None:
    hosted = validate(wire(case.refused), "openai_chat", mode="hosted", settings=case.settings)
    assert (hosted is None) == OPENAI_CHAT_RULES[case.rule].strict_only
    assert validate(wire(case.accepted), "openai_chat", mode="hosted", settings=case.settings) is None


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"zzz": 1, "messages": []}, "OAC-19"),
        ({"model": "m", "zzz": 1}, "OAC-07"),
        ({"model": "m", "zzz": 1, "messages": [{"role": "bogus"}], "n": 0}, "OAC-12"),
        ({"model": "m", "messages": [{"role": "bogus"}], "n": 0, "temperature": 9}, "OAC-S02"),
        ({"model": "m", "messages": [{"role": "bogus"}], "tools": []}, "OAC-04"),
    ],
)
def test_the_first_fault_in_the_providers_order_is_the_one_reported(wrong: Json, rule: str) -> None:
    refusal = validate(wire(wrong), "openai_chat")
    assert refusal is not None
    assert refusal.rule == rule


@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic"])
@pytest.mark.parametrize(
    "value",
    [b"NaN", b"Infinity", b'"\\ud800"', b'"\xff"', b'{"a":1,"a":2}', b"[" * 300 + b"]" * 300, b"01", b""],
)
def test_a_body_that_is_not_strict_json_is_refused_before_anything_else(value: bytes, dialect: str) -> None:
    sound = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"u"}],"metadata":{"a":%s}}'
    assert validate(sound % b"1", dialect) is None
    refusal = validate(sound % value, dialect)
    assert refusal is not None
    assert refusal.rule in ("OAC-S01", "ANT-31")


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b'"s"', b"{}", b'{"model":"m"} x', b'{"messages":7}'])
def test_a_body_that_is_no_request_is_refused_and_raises_nothing(raw: bytes) -> None:
    assert validate(raw, "openai_chat") is not None
    assert validate(raw, "anthropic") is not None


def test_an_id_may_come_back_in_a_later_turn_as_several_backends_send_it() -> None:
    assert validate(wire(body(USER, calls(call()), result(), calls(call()), result())), "openai_chat") is None


def test_an_unknown_dialect_is_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match="openai_chat"):
        validate(b"{}", "telnet")
