"""Rules of OpenAI Responses: a request that breaks each rule, and the nearest valid request."""

from typing import Any

from actors.core.data.record import replace
from actors.core.dialects.dialect import PartMedia
from actors.core.dialects.profiles import OPENAI_RESPONSES
from actors.strict.rules import ResponsesProfile, ResponsesSettings
from tests.rules.row import ACCEPTED, NOT_ASKED, UNSEEN, Answer, Json, Row, rows


def say(
    content: Any = "hi", role: str = "user", **more: Any
) -> Json:  # Any: a row may break a body in any way
    return {"type": "message", "role": role, "content": content, **more}


def call(
    call_id: Any = "call_a", name: Any = "read", arguments: Any = "{}", **more: Any
) -> Json:  # Any: likewise
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}


def output(call_id: Any = "call_a", output: Any = "r", **more: Any) -> Json:  # Any: likewise
    return {"type": "function_call_output", "call_id": call_id, "output": output, **more}


def custom(call_id: str = "call_a") -> Json:
    return {"type": "custom_tool_call", "call_id": call_id, "name": "sql", "input": "select 1"}


def custom_output(call_id: str = "call_a") -> Json:
    return {"type": "custom_tool_call_output", "call_id": call_id, "output": "r"}


def local(call_id: Any = "call_a") -> Json:  # Any: likewise
    return {"type": "local_shell_call", "call_id": call_id, "action": {"type": "exec", "command": ["ls"]}}


def local_output(call_id: str = "call_a") -> Json:
    return {"type": "local_shell_call_output", "call_id": call_id, "output": "{}"}


def reasoning(item_id: Any = None, state: Any = "gAAA") -> Json:  # Any: likewise
    named = {} if item_id is None else {"id": item_id}
    return {"type": "reasoning", **named, "summary": [], "encrypted_content": state}


def part(words: Any = "hi", kind: str = "input_text", **more: Any) -> Json:  # Any: likewise
    return {"type": kind, "text": words, **more}


def body(*items: Any, **more: Any) -> Json:  # Any: likewise
    return {"model": "m", "store": False, "input": list(items), **more}


def tool(name: str = "read", **more: Any) -> Json:  # Any: likewise
    return {"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False, **more}


def model(**values: Any) -> ResponsesSettings:  # Any: passed on to a typed constructor
    """Return a host with a model of these properties, which trusts any reasoning."""
    return ResponsesSettings(ResponsesProfile(**values), signatures="trust")


SURROGATE = "\ud800"
LONG = "x" * (OPENAI_RESPONSES.turns.max_string or 0)
TOO_LONG = "string too long. Expected a string with maximum length"
MISSING = "Items are not persisted when `store` is set to false."
BEHIND = "fc_rabc123_1"
IMAGE = {"type": "input_image", "image_url": "https://a.example/i.png", "detail": "auto"}
FILE = {"type": "input_file", "filename": "d.pdf", "file_data": "data:application/pdf;base64,aGk="}
REFERENCE = {"type": "item_reference", "id": "msg_1"}
CHOSEN = {"type": "function", "name": "read"}
USER = {"role": "user", "content": "u"}
SAID = {"role": "assistant", "content": "a"}
TOOL = tool()
HI = body(USER)
ONE = body(USER, call(), output(), USER)
TWO = body(USER, call(), call("call_b"), output(), output("call_b"), USER)
TOOLS = body(USER, tools=[TOOL])
THINKS = body(USER, reasoning(), call(), output())
NAMED = body(USER, reasoning("rs_1"), call(id="fc_1"), output())
FURTHER = {"model": "m", "input": [output(), USER]}
CAUTIOUS = replace(OPENAI_RESPONSES, turns=replace(OPENAI_RESPONSES.turns, first_roles=frozenset({"user"})))
TEXT_ONLY = replace(OPENAI_RESPONSES, media=PartMedia(user_kinds=frozenset(), result_kinds=frozenset()))
NO_REASONING = replace(OPENAI_RESPONSES, reasoning=replace(OPENAI_RESPONSES.reasoning, carrier="none"))
ONE_DOCUMENT = replace(OPENAI_RESPONSES, media=PartMedia(max_documents=1))


ROWS = rows(
    "openai_responses",
    Row("ALL-02", body(USER, local(None), USER), HI, server="OAR-10"),
    Row("ALL-02", body(USER, {"type": "zzz"}), HI, server="OAR-S04"),
    Row("ALL-02", body(USER, "hi"), HI, server="OAR-10"),
    Row("ALL-02", body(say(role="tool")), HI, judge="ALL-02 ALL-05", server="OAR-S04"),
    Row("ALL-02", {"input": [USER]}, HI, server="OAR-S02"),
    Row("ALL-02", body(USER, call(name="x" * 129), output()), ONE, server="OAR-S07"),
    Row("ALL-02", body(USER, say("t", "assistant", phase="zzz"), USER), HI, server="OAR-S04"),
    Row("ALL-02", body(say(LONG + "x")), body(say(LONG)), server="OAR-S07"),
    Row("ALL-02", body(USER, call(), output(output=LONG + "x")), ONE, server="OAR-S07"),
    Row("ALL-02", body(say([{"type": "input_image"}])), body(say([IMAGE])), server="OAR-S02"),
    Row("ALL-02", body(say([part(kind="output_text")])), body(say([part()])), server="OAR-S04"),
    Row("ALL-03", body(USER, call("é"), output("é")), ONE, server=ACCEPTED),
    Row("ALL-04", body(USER, call(), output(), call(), output()),
        body(USER, call(), output(), call("call_b"), output("call_b")), server="OAR-S21", hosted=False),
    Row("ALL-06", body(USER, call(arguments={}), output()), ONE, server="OAR-10"),
    Row("ALL-07", {**HI, "messages": []}, HI, server="OAR-S03"),
    Row("ALL-07", body(say(zzz=1)), HI, server="OAR-S03"),
    Row("ALL-07", body(say([part(cache_control={})])), body(say([part()])), server="OAR-S03"),
    Row("ALL-07", {**HI, "tools": [tool(zzz=1)]}, TOOLS, server="OAR-S03"),
    Row("ALL-08", THINKS, ONE, server=NOT_ASKED, profile=NO_REASONING),
    Row("ALL-09", body(SAID, USER), HI, server=NOT_ASKED, profile=CAUTIOUS),
    Row("ALL-10", body(say([part(), IMAGE])), body(say([part()])), server=NOT_ASKED, profile=TEXT_ONLY),
    Row("ALL-10", body(USER, call(), output(output=[FILE])), body(USER, call(), output(output=[part()])),
        server=NOT_ASKED, profile=TEXT_ONLY),
    Row("ALL-11", body(say([part("")])), body(say([part()])), server=ACCEPTED),
    Row("ALL-11", body(say([])), body(say([part()])), server="OAR-S06"),
    Row("ALL-11", body(USER, say("", "assistant"), USER), HI, server=ACCEPTED),
    Row("ALL-12", body(say(SURROGATE)), HI, server="OAR-S01"),
    Row("ALL-13", {**HI, "tools": [tool(), tool()]}, {**HI, "tools": [tool(), tool("run")]}, server=ACCEPTED),
    Row("ALL-14", {**HI, "tool_choice": "required"}, {**HI, "tools": [TOOL], "tool_choice": "required"},
        server="OAR-S09"),
    Row("ALL-14", {**HI, "tools": [tool("run")], "tool_choice": CHOSEN},
        {**HI, "tools": [TOOL], "tool_choice": CHOSEN}, server="OAR-S09"),
    Row("ALL-15", body(say([IMAGE] * 500), call(), output(output=[IMAGE])), body(say([IMAGE] * 500)), server=ACCEPTED),
    Row("ALL-15", body(say([FILE, FILE])), body(say([FILE, IMAGE])), server=NOT_ASKED, profile=ONE_DOCUMENT),
    Row("ALL-16", {**HI, "model": "gpt-6-astra", "reasoning": {"effort": "none"}},
        {**HI, "model": "gpt-6-astra", "reasoning": {"effort": "max"}}, server="OAC-23"),
    Row("ALL-16", {**HI, "model": "o3", "temperature": 0.2}, {**HI, "model": "o3", "temperature": 1}, server="OAC-24"),
    Row("OAR-01", body(USER, call()), ONE, "No tool output found for function call call_a.", judge="OAR-01 ALL-05"),
    Row("OAR-01", body(USER, call(), USER), ONE, "No tool output found for function call call_a."),
    Row("OAR-02", body(USER, output()), ONE, "No tool call found for function call output with call_id call_a."),
    Row("OAR-02", body(USER, call(), output(), output()), ONE, "No tool call found for function…"),
    Row("OAR-02", body(USER, call(), custom_output()), ONE, "No tool call found for custom tool call output…",
        judge="OAR-02 OAR-01"),
    Row("OAR-02", body(output(), call(), output()), ONE),
    Row("OAR-02", body(USER, custom(), output(), custom_output()), body(USER, custom(), custom_output())),
    Row("OAR-02", {**FURTHER, "store": True}, {**FURTHER, "previous_response_id": "resp_1"}),
    Row("OAR-03", body(USER, reasoning("rs_1"), USER), THINKS,
        "Item 'rs_1' of type 'reasoning' was provided without its required following item."),
    Row("OAR-03", body(USER, reasoning()), THINKS, "…without its required following item.", judge="OAR-03 ALL-05"),
    Row("OAR-03", body(USER, reasoning("rs_1"), call(), output()),
        body(USER, reasoning("rs_1"), call(id="fc_1"), output()),
        "Item 'rs_1' of type 'reasoning' was provided without its required following item."),
    Row("OAR-03", body(USER, reasoning(), USER), body(USER, reasoning(), SAID, USER)),
    Row("OAR-03", body(USER, call(), reasoning(), output()), THINKS),
    Row("OAR-03", body(USER, reasoning("rs_1"), SAID, USER), NAMED),
    Row("OAR-04", body(USER, call(id=BEHIND), output()), body(USER, reasoning("rs_abc123"), call(id=BEHIND), output()),
        f"Item '{BEHIND}' of type 'function_call' was provided without its required 'reasoning' item: 'rs_abc123'.",
        judge=UNSEEN),
    Row("OAR-04", body(USER, reasoning(), call(id="fc_1"), output()), THINKS,
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item…"),
    Row("OAR-04", body(USER, {**SAID, "id": "msg_rabc123_1"}, USER), body(USER, {**SAID, "id": "msg_abc123_1"}, USER),
        "…of type 'message' was provided without its required 'reasoning' item…", judge=UNSEEN),
    Row("OAR-04", body(USER, reasoning(), say("t", "assistant", id="msg_1"), USER), THINKS),
    Row("OAR-05", body(USER, reasoning("rs_1", None), call(id="fc_1"), output()), THINKS,
        f"Item with id 'rs_1' not found. {MISSING}" + "…", answer=Answer(status=404)),
    Row("OAR-05", body(USER, call(id="fc_1"), output()), ONE, f"Item with id 'fc_1' not found. {MISSING}" + "…",
        judge=UNSEEN, answer=Answer(status=404), settings=model(looks_up_items=True)),
    Row("OAR-05", body({"type": "item_reference", "id": "msg_1"}, USER), ONE, "…" + MISSING + "…",
        answer=Answer(status=404)),
    Row("OAR-05", body(USER, REFERENCE, USER), {"model": "m", "input": [USER, REFERENCE, USER]}),
    Row("OAR-05", body(USER, reasoning(state=None), call(), output()), {**THINKS, "store": True}, server="OAR-S02"),
    Row("OAR-05", body(USER, reasoning(state=""), call(), output()), THINKS, server="OAR-S02"),
    Row("OAR-05", {**HI, "previous_response_id": "resp_1"}, {**FURTHER, "previous_response_id": "resp_1"},
        server=ACCEPTED),
    Row("OAR-05", {**HI, "conversation": "conv_1"}, {**FURTHER, "conversation": "conv_1"}, server=ACCEPTED),
    Row("OAR-06", body(USER, call(id="call_a"), output()), ONE,
        "Invalid 'input[1].id': 'call_a'. Expected an ID that begins with 'fc'.", answer=Answer(code="invalid_value"),
        param="input[1].id"),
    Row("OAR-06", body(USER, call(id="call_1"), output()), ONE),
    Row("OAR-06", body(USER, reasoning("reasoning_1"), call(id="fc_1"), output()), THINKS),
    Row("OAR-07", body(USER, call(id="fc_1"), output(), {**SAID, "id": "msg_1"}, {**SAID, "id": "msg_1"}, USER),
        body(USER, call(id="fc_1"), output(), {**SAID, "id": "msg_1"}, {**SAID, "id": "msg_2"}, USER),
        "Duplicate item found with id msg_1.…"),
    Row("OAR-07", body(USER, reasoning("rs_1"), call(id="fc_1"), output(), reasoning("rs_1"), call("call_b",
        id="fc_2"), output("call_b")),
        body(USER, reasoning("rs_1"), call(id="fc_1"), output(), reasoning("rs_2"), call("call_b",
        id="fc_2"), output("call_b"))),
    Row("OAR-08", body(USER, call("c" * 65), output("c" * 65)), body(USER, call("c" * 64), output("c" * 64)),
        f"Invalid 'input[1].call_id': {TOO_LONG} 64, but got a string with length 65 instead.",
        answer=Answer(code="string_above_max_length"), param="input[1].call_id"),
    Row("OAR-08", body(USER, call("c" * 65), output("c" * 65)), body(USER, call("c" * 64), output("c" * 64))),
    Row("OAR-09", body(USER, reasoning("rs_1"), call(id="fc_1"), output()), ONE,
        "The encrypted content for item rs_1 could not be verified. Reason: …", judge=UNSEEN,
        answer=Answer(code="invalid_encrypted_content"), settings=ResponsesSettings()),
    Row("OAR-10", body(USER, call(), output(output={})), ONE,
        "Invalid type for 'input[2].output': expected one of a string or array of objects, but got an object "
        "instead.", answer=Answer(code="invalid_type"), param="input[2].output"),
    Row("OAR-10", body(USER, call(), output(output={"a": 1})), ONE),
    Row("OAR-10", body(USER, call(), output(output=None)), ONE),
    Row("OAR-11", body(USER, custom(), USER), body(USER, custom(), custom_output()),
        "Custom tool call output is missing for call id: call_a…"),
    Row("OAR-11", body(USER, local(), USER), body(USER, local(), local_output(), USER), server="OAR-01"),
    Row("OAR-11", body(USER, custom(), USER), body(USER, custom(), custom_output(), USER)),
    Row("OAR-12", body(USER), {**body(USER), "model": "known"}, "The requested model 'm' does not exist.",
        judge=UNSEEN, answer=Answer(code="model_not_found"), param="model",
        settings=ResponsesSettings(models={"known": ResponsesProfile()})),
    Row("OAR-13", body({**USER, "content": "x" * 4000}), body(USER),
        "Your input exceeds the context window of this model.…", judge=UNSEEN,
        answer=Answer(code="context_length_exceeded"), settings=model(context_tokens=100)),
    Row("OAR-14", body(USER, call(), USER, output()), ONE, "No tool output found for tool call call_a.",
        answer=Answer(code="invalid_request_error"), hosted=False),
    Row("OAR-14", body(USER, call(), call("call_b"), output(), SAID, output("call_b")), TWO,
        "No tool output found for tool call call_b.", answer=Answer(code="invalid_request_error"), hosted=False),
    Row("OAR-14", body(USER, call(), call("call_b"), output(), USER, output("call_b")), TWO, hosted=False),
    Row("OAR-14", body(USER, call(), call("call_b"), output(), call("call_c"), output("call_b"), output("call_c")),
        TWO, hosted=False),
    Row("OAR-S01", b"{", ONE, "We could not parse the JSON body of your request.…", judge="ALL-01", param=None),
    Row("OAR-S02", {"model": "m"}, ONE, "Missing required parameter: 'input'.", judge="ALL-02",
        answer=Answer(code="missing_required_parameter")),
    Row("OAR-S02", {"input": []}, ONE, "…'model'…", judge="ALL-02", answer=Answer(code="missing_required_parameter"),
        param="model"),
    Row("OAR-S02", body(USER, {"type": "function_call", "call_id": "a", "name": "b"}, USER), ONE,
        "…'input[1].arguments'…", judge="ALL-06 OAR-01", answer=Answer(code="missing_required_parameter"),
        param="input[1].arguments"),
    Row("OAR-S03", {**ONE, "messages": []}, ONE, "Unknown parameter: 'messages'.", judge="ALL-07",
        answer=Answer(code="unknown_parameter"), param="messages", read="transcript OAC-12"),
    Row("OAR-S03", body(USER, {**SAID, "tool_calls": []}, USER), ONE, "Unknown parameter: 'input[1].tool_calls'.",
        judge="ALL-07", answer=Answer(code="unknown_parameter"), param="input[1].tool_calls",
        read="transcript OAC-12"),
    Row("OAR-S04", body({**USER, "role": "tool"}), ONE, "Invalid value: 'tool'.…", judge="ALL-02 ALL-05",
        answer=Answer(code="invalid_value"), param="input[0].role"),
    Row("OAR-S04", body(USER, include=["zzz"]), ONE, "Invalid value: 'zzz'.…", judge=UNSEEN,
        answer=Answer(code="invalid_value"), param="include[0]", read="parameter"),
    Row("OAR-S04", body({**USER, "content": [{"type": "output_text", "text": "t"}]}), ONE,
        "Invalid value: 'output_text'.…", judge="ALL-02", answer=Answer(code="invalid_value"),
        param="input[0].content[0].type", read="media"),
    Row("OAR-S05", body(USER, {**call(), "name": "a b"}, output()), ONE, "…string does not match pattern…",
        judge="ALL-02", answer=Answer(code="invalid_value"), param="input[1].name"),
    Row("OAR-S06", body(), ONE, "…empty array…", judge="ALL-02", answer=Answer(code="empty_array")),
    Row("OAR-S06", body(USER, call(""), output("")), ONE, "…empty string…", judge="ALL-03",
        answer=Answer(code="empty_array"), param="input[1].call_id"),
    Row("OAR-S07", body(USER, {**call(), "name": "x" * 129}, output()), ONE, "…" + f"{TOO_LONG} 128" + "…",
        judge="ALL-02", answer=Answer(code="string_above_max_length"), param="input[1].name"),
    Row("OAR-S07", body(USER, prompt_cache_key="k" * 65), body(USER, prompt_cache_key="k" * 64),
        "…" + f"{TOO_LONG} 64" + "…", judge=UNSEEN, answer=Answer(code="string_above_max_length"),
        param="prompt_cache_key", read="parameter OAC-17"),
    Row("OAR-S08", body(USER, tools=[{**TOOL, "parameters": {"type": "string"}}]), TOOLS,
        "Invalid schema for function 'read'…", judge="ALL-02", answer=Answer(code="invalid_function_parameters"),
        param="tools[0].parameters", read="transcript OAC-11"),
    Row("OAR-S08", body(USER, tools=[{**TOOL, "parameters": {"type": "object", "allOf": [{}]}}]), TOOLS,
        "Invalid schema for function 'read'…", judge="ALL-02", answer=Answer(code="invalid_function_parameters"),
        param="tools[0].parameters", read="transcript OAC-11"),
    Row("OAR-S09", {**TOOLS, "tool_choice": {"type": "function", "name": "z"}}, TOOLS, "Tool choice 'z'…",
        judge="ALL-14", param="tool_choice", read="parameter"),
    Row("OAR-S10", body(USER, temperature=1), ONE, "…'temperature' is not supported with this model…", judge=UNSEEN,
        answer=Answer(code="unsupported_parameter"), param="temperature", read="parameter:config OAC-18",
        settings=model(sampling=False)),
    Row("OAR-S11", body(USER, include=["reasoning.encrypted_content"]), ONE, "Encrypted content is not supported…",
        judge=UNSEEN, param="include", read="parameter", settings=model(encrypted=False)),
    Row("OAR-S12", body(USER, previous_response_id="resp_1"), ONE, "Previous response with id 'resp_1' not found.",
        judge="OAR-05", answer=Answer(code="previous_response_not_found"), param="previous_response_id",
        settings=ResponsesSettings()),
    Row("OAR-S13", body(USER, max_output_tokens=1), body(USER, max_output_tokens=16), "…max_output_tokens…",
        judge=UNSEEN, answer=Answer(code="invalid_value"), param="max_output_tokens", read="parameter"),
    Row("OAR-S20", body(USER, call(arguments=""), output()), ONE, "invalid tool call arguments", judge="ALL-06",
        param="input[1].arguments", read="transcript ALL-06", hosted=False),
    Row("OAR-S21", body(USER, call(), output(), call(), output()), ONE, "Duplicate tool call id call_a",
        judge="ALL-04", param="input[3].call_id", hosted=False),
    Row("OAR-S22", body(USER, SAID), ONE, "The last item…", judge="ALL-05", hosted=False),
    param="input",
)  # fmt: skip
