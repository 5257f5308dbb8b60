"""Each rule of the Responses judge refuses its fault in the provider's words, and nothing next to it."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from actors.strict.rules import RESPONSES_RULES, ResponsesProfile, ResponsesSettings, validate
from actors.strict.rules.responses_reasoning import encrypt_reasoning
from actors.strict.script import Call, Say, Think, Turn
from actors.strict.wires.responses import ResponsesWire
from tests.strict.cases_answers import shown

Json = dict[str, Any]  # a body under test may be anything

USER: Json = {"type": "message", "role": "user", "content": "u"}
SAID: Json = {"type": "message", "role": "assistant", "content": "t"}
TOOL: Json = {"type": "function", "name": "read", "parameters": {"type": "object"}, "strict": False}
DEFAULT = ResponsesSettings()
TRUST = ResponsesSettings(signatures="trust")
MISSING = (
    "Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove "
)
MISSING += "this item from your input."
TOO_LONG = "string too long. Expected a string with maximum length"


def call(call_id: str = "call_a", **more: Any) -> Json:  # any key at all may be under test
    return {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}", **more}


def gave(call_id: str = "call_a", output: Any = "r", **more: Any) -> Json:  # any output may be under test
    return {"type": "function_call_output", "call_id": call_id, "output": output, **more}


def custom(call_id: str = "call_a") -> Json:
    return {"type": "custom_tool_call", "call_id": call_id, "name": "sql", "input": "select 1"}


def custom_gave(call_id: str = "call_a") -> Json:
    return {"type": "custom_tool_call_output", "call_id": call_id, "output": "r"}


def thought(item_id: str | None = None, state: str | None = "gAAA") -> Json:
    named = {} if item_id is None else {"id": item_id}
    return {"type": "reasoning", **named, "summary": [], "encrypted_content": state}


def body(*items: Any, **more: Any) -> Json:  # any item and any key at all may be under test
    return {"model": "m", "store": False, "input": list(items), **more}


def profile(**values: Any) -> ResponsesSettings:  # passed on to a typed constructor
    return ResponsesSettings(ResponsesProfile(**values), signatures="trust")


@dataclass(frozen=True)
class Case:
    rule: str
    refused: Json | bytes
    message: str
    accepted: Json
    settings: ResponsesSettings = TRUST
    status: int = 400
    code: str | None = None
    param: str | None = "input"


ONE = body(USER, call(), gave(), USER)
TWO = body(USER, call(), call("call_b"), gave(), gave("call_b"), USER)
TOOLS = body(USER, tools=[TOOL])
THINKS = body(USER, thought(), call(), gave())
BEHIND = "fc_rabc123_1"

CASES = [
    Case("OAR-01", body(USER, call()), "No tool output found for function call call_a.", ONE),
    Case("OAR-01", body(USER, call(), USER), "No tool output found for function call call_a.", ONE),
    Case(
        "OAR-02",
        body(USER, gave()),
        "No tool call found for function call output with call_id call_a.",
        ONE,
    ),
    Case("OAR-02", body(USER, call(), gave(), gave()), "No tool call found for function", ONE),
    Case("OAR-02", body(USER, call(), custom_gave()), "No tool call found for custom tool call output", ONE),
    Case(
        "OAR-03",
        body(USER, thought("rs_1"), USER),
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        THINKS,
    ),
    Case("OAR-03", body(USER, thought()), "without its required following item.", THINKS),
    Case(
        "OAR-04",
        body(USER, call(id=BEHIND), gave()),
        f"Item '{BEHIND}' of type 'function_call' was provided without its required 'reasoning' item: 'rs_abc123'.",
        body(USER, thought("rs_abc123"), call(id=BEHIND), gave()),
    ),
    Case(
        "OAR-03",
        body(USER, thought("rs_1"), call(), gave()),
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        body(USER, thought("rs_1"), call(id="fc_1"), gave()),
    ),
    Case(
        "OAR-04",
        body(USER, thought(), call(id="fc_1"), gave()),
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item",
        THINKS,
    ),
    Case(
        "OAR-04",
        body(USER, {**SAID, "id": "msg_rabc123_1"}, USER),
        "of type 'message' was provided without its required 'reasoning' item",
        body(USER, {**SAID, "id": "msg_abc123_1"}, USER),
    ),
    Case(
        "OAR-05",
        body(USER, thought("rs_1", None), call(id="fc_1"), gave()),
        f"Item with id 'rs_1' not found. {MISSING}",
        THINKS,
        status=404,
    ),
    Case(
        "OAR-05",
        body(USER, call(id="fc_1"), gave()),
        f"Item with id 'fc_1' not found. {MISSING}",
        ONE,
        profile(looks_up_items=True),
        status=404,
    ),
    Case("OAR-05", body({"type": "item_reference", "id": "msg_1"}, USER), MISSING, ONE, status=404),
    Case(
        "OAR-06",
        body(USER, call(id="call_a"), gave()),
        "Invalid 'input[1].id': 'call_a'. Expected an ID that begins with 'fc'.",
        ONE,
        code="invalid_value",
        param="input[1].id",
    ),
    Case(
        "OAR-07",
        body(USER, call(id="fc_1"), gave(), {**SAID, "id": "msg_1"}, {**SAID, "id": "msg_1"}, USER),
        "Duplicate item found with id msg_1.",
        body(USER, call(id="fc_1"), gave(), {**SAID, "id": "msg_1"}, {**SAID, "id": "msg_2"}, USER),
    ),
    Case(
        "OAR-08",
        body(USER, call("c" * 65), gave("c" * 65)),
        f"Invalid 'input[1].call_id': {TOO_LONG} 64, but got a string with length 65 instead.",
        body(USER, call("c" * 64), gave("c" * 64)),
        code="string_above_max_length",
        param="input[1].call_id",
    ),
    Case(
        "OAR-09",
        body(USER, thought("rs_1"), call(id="fc_1"), gave()),
        "The encrypted content for item rs_1 could not be verified. Reason: ",
        ONE,
        DEFAULT,
        code="invalid_encrypted_content",
    ),
    Case(
        "OAR-10",
        body(USER, call(), gave(output={})),
        "Invalid type for 'input[2].output': expected one of a string or array of objects, but got an object "
        "instead.",
        ONE,
        code="invalid_type",
        param="input[2].output",
    ),
    Case(
        "OAR-11",
        body(USER, custom(), USER),
        "Custom tool call output is missing for call id: call_a",
        body(USER, custom(), custom_gave()),
    ),
    Case(
        "OAR-12",
        body(USER),
        "The requested model 'm' does not exist.",
        {**body(USER), "model": "known"},
        ResponsesSettings(models={"known": ResponsesProfile()}),
        code="model_not_found",
        param="model",
    ),
    Case(
        "OAR-13",
        body({**USER, "content": "x" * 4000}),
        "Your input exceeds the context window of this model.",
        body(USER),
        profile(context_tokens=100),
        code="context_length_exceeded",
    ),
    Case(
        "OAR-14",
        body(USER, call(), USER, gave()),
        "No tool output found for tool call call_a.",
        ONE,
        code="invalid_request_error",
    ),
    Case(
        "OAR-14",
        body(USER, call(), call("call_b"), gave(), SAID, gave("call_b")),
        "No tool output found for tool call call_b.",
        TWO,
        code="invalid_request_error",
    ),
    Case("OAR-S01", b"{", "We could not parse the JSON body of your request.", ONE, param=None),
    Case(
        "OAR-S02",
        {"model": "m"},
        "Missing required parameter: 'input'.",
        ONE,
        code="missing_required_parameter",
    ),
    Case("OAR-S02", {"input": []}, "'model'", ONE, code="missing_required_parameter", param="model"),
    Case(
        "OAR-S02",
        body(USER, {"type": "function_call", "call_id": "a", "name": "b"}, USER),
        "'input[1].arguments'",
        ONE,
        code="missing_required_parameter",
        param="input[1].arguments",
    ),
    Case(
        "OAR-S03",
        {**ONE, "messages": []},
        "Unknown parameter: 'messages'.",
        ONE,
        code="unknown_parameter",
        param="messages",
    ),
    Case(
        "OAR-S03",
        body(USER, {**SAID, "tool_calls": []}, USER),
        "Unknown parameter: 'input[1].tool_calls'.",
        ONE,
        code="unknown_parameter",
        param="input[1].tool_calls",
    ),
    Case(
        "OAR-S04",
        body({**USER, "role": "tool"}),
        "Invalid value: 'tool'.",
        ONE,
        code="invalid_value",
        param="input[0].role",
    ),
    Case(
        "OAR-S04",
        body(USER, include=["zzz"]),
        "Invalid value: 'zzz'.",
        ONE,
        code="invalid_value",
        param="include[0]",
    ),
    Case(
        "OAR-S04",
        body({**USER, "content": [{"type": "output_text", "text": "t"}]}),
        "Invalid value: 'output_text'.",
        ONE,
        code="invalid_value",
        param="input[0].content[0].type",
    ),
    Case(
        "OAR-S05",
        body(USER, {**call(), "name": "a b"}, gave()),
        "string does not match pattern",
        ONE,
        code="invalid_value",
        param="input[1].name",
    ),
    Case("OAR-S06", body(), "empty array", ONE, code="empty_array"),
    Case(
        "OAR-S06",
        body(USER, call(""), gave("")),
        "empty string",
        ONE,
        code="empty_array",
        param="input[1].call_id",
    ),
    Case(
        "OAR-S07",
        body(USER, {**call(), "name": "x" * 129}, gave()),
        f"{TOO_LONG} 128",
        ONE,
        code="string_above_max_length",
        param="input[1].name",
    ),
    Case(
        "OAR-S07",
        body(USER, prompt_cache_key="k" * 65),
        f"{TOO_LONG} 64",
        body(USER, prompt_cache_key="k" * 64),
        code="string_above_max_length",
        param="prompt_cache_key",
    ),
    Case(
        "OAR-S08",
        body(USER, tools=[{**TOOL, "parameters": {"type": "string"}}]),
        "Invalid schema for function 'read'",
        TOOLS,
        code="invalid_function_parameters",
        param="tools[0].parameters",
    ),
    Case(
        "OAR-S08",
        body(USER, tools=[{**TOOL, "parameters": {"type": "object", "allOf": [{}]}}]),
        "Invalid schema for function 'read'",
        TOOLS,
        code="invalid_function_parameters",
        param="tools[0].parameters",
    ),
    Case(
        "OAR-S09",
        {**TOOLS, "tool_choice": {"type": "function", "name": "z"}},
        "Tool choice 'z'",
        TOOLS,
        param="tool_choice",
    ),
    Case(
        "OAR-S10",
        body(USER, temperature=1),
        "'temperature' is not supported with this model",
        ONE,
        profile(sampling=False),
        code="unsupported_parameter",
        param="temperature",
    ),
    Case(
        "OAR-S11",
        body(USER, include=["reasoning.encrypted_content"]),
        "Encrypted content is not supported",
        ONE,
        profile(encrypted=False),
        param="include",
    ),
    Case(
        "OAR-S12",
        body(USER, previous_response_id="resp_1"),
        "Previous response with id 'resp_1' not found.",
        ONE,
        DEFAULT,
        code="previous_response_not_found",
        param="previous_response_id",
    ),
    Case(
        "OAR-S13",
        body(USER, max_output_tokens=1),
        "max_output_tokens",
        body(USER, max_output_tokens=16),
        code="invalid_value",
        param="max_output_tokens",
    ),
    Case(
        "OAR-S20",
        body(USER, call(arguments=""), gave()),
        "invalid tool call arguments",
        ONE,
        param="input[1].arguments",
    ),
    Case(
        "OAR-S21",
        body(USER, call(), gave(), call(), gave()),
        "Duplicate tool call id call_a",
        ONE,
        param="input[3].call_id",
    ),
    Case("OAR-S22", body(USER, SAID), "The last item", ONE),
]


def encoded(request: Json | bytes) -> bytes:
    return request if isinstance(request, bytes) else json.dumps(request).encode()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_fault_is_refused_in_the_providers_words_and_its_twin_is_accepted(case: Case) -> None:
    refusal = validate(encoded(case.refused), "openai_responses", settings=case.settings)
    assert refusal is not None
    assert refusal.rule == case.rule
    assert case.message in refusal.message
    assert (refusal.status, refusal.code, refusal.param) == (case.status, case.code, case.param)
    accepted = validate(encoded(case.accepted), "openai_responses", settings=case.settings)
    assert accepted is None, accepted


# In `test_loopback_responses_resources`, with a server that keeps something.
STORED = {"OAR-S16", "OAR-S17", "OAR-S18", "OAR-S24", "OAR-S25"}


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} | shown(RESPONSES_RULES) | STORED == set(RESPONSES_RULES)


@pytest.mark.parametrize(
    "case", [case for case in CASES if RESPONSES_RULES[case.rule].strict_only], ids=lambda c: c.rule
)
def test_what_only_copies_refuse_the_official_host_takes(case: Case) -> None:
    assert validate(encoded(case.refused), "openai_responses", mode="hosted", settings=case.settings) is None


def test_outputs_may_stand_anywhere_on_the_official_host_and_not_on_deepseeks_copy() -> None:
    apart = encoded(body(USER, call(), USER, gave()))
    assert validate(apart, "openai_responses", mode="hosted") is None
    refusal = validate(apart, "openai_responses", mode="hosted", settings=profile(adjacent=True))
    assert refusal is not None
    assert refusal.rule == "OAR-14"


# ---- encrypted reasoning

OWN = ResponsesSettings()
BOUND = ResponsesSettings(ResponsesProfile(prefix_bound=True))


def answered(settings: ResponsesSettings, **more: Any) -> Json:  # any key of a request
    """A request that sends reasoning back to the host that made it, with its call and the result."""
    request = body(USER, include=["reasoning.encrypted_content"], **more)
    turn = Turn(Think("Hm."), Call("read"))
    response = json.loads(ResponsesWire(settings).response(turn, request, 0))
    request["input"] += [*response["output"], gave(response["output"][1]["call_id"])]
    return request


def verdict(request: Json, settings: ResponsesSettings, mode: Any = "strict") -> str | None:  # any mode
    refusal = validate(encoded(request), "openai_responses", mode=mode, settings=settings)
    return None if refusal is None else refusal.rule


@pytest.mark.parametrize("settings", [OWN, BOUND])
def test_reasoning_that_comes_back_as_it_was_made_is_accepted(settings: ResponsesSettings) -> None:
    assert verdict(answered(settings), settings) is None


def test_reasoning_of_another_account_host_or_model_is_refused() -> None:
    request = answered(OWN)
    assert verdict(request, ResponsesSettings(account="account-2")) == "OAR-09"
    assert verdict(request, ResponsesSettings(secret=b"another")) == "OAR-09"
    assert verdict({**request, "model": "other"}, OWN) == "OAR-09"
    assert verdict({**request, "model": "other"}, OWN, mode="hosted") is None


def test_reasoning_under_another_id_or_with_other_content_is_refused() -> None:
    changes: list[Json] = [{"id": "rs_other"}, {"encrypted_content": "gAAA"}]
    for change in changes:
        request = answered(OWN)
        request["input"][2]["id"] = "fc_1"
        request["input"][1] |= change
        assert verdict(request, OWN) == "OAR-09"


def test_reasoning_may_lose_its_summary_and_together_with_its_follower_its_id() -> None:
    request = answered(OWN)
    request["input"][1]["summary"] = []
    assert verdict(request, OWN) is None
    for item in request["input"][1:3]:
        del item["id"]
    assert verdict(request, OWN) is None


def test_bound_reasoning_is_refused_behind_another_prefix() -> None:
    request = answered(BOUND)
    assert verdict({**request, "instructions": "now"}, BOUND) == "OAR-09"
    assert verdict({**request, "instructions": "now"}, OWN) is None
    request["input"][0] = {**USER, "content": "other"}
    assert verdict(request, BOUND) == "OAR-09"


def test_the_stand_in_depends_on_everything_before_it() -> None:
    request = body(USER)
    one = encrypt_reasoning(request, [], "rs_1", OWN)
    assert one == encrypt_reasoning(request, [thought()], "rs_1", OWN)
    assert one != encrypt_reasoning(request, [SAID], "rs_1", OWN)


def test_items_are_minted_under_ids_that_tell_what_they_came_behind() -> None:
    turn = Turn(Say("a"), Think("Hm."), Say("b"), Call("read"))
    output = json.loads(ResponsesWire(OWN).response(turn, body(USER), 0))["output"]
    prefixes = [item["id"].partition("_")[0] for item in output]
    assert prefixes == ["msg", "rs", "msg", "fc"]
    output[1]["encrypted_content"] = "gAAA"
    request = body(USER, *output, gave(output[3]["call_id"]))
    assert verdict(request, TRUST) is None
    request["input"].remove(output[1])
    assert verdict(request, TRUST) == "OAR-04"
