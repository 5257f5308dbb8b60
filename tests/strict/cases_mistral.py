"""Mistral: a broken body for each rule, and the nearest sound one."""

from typing import Any

from tests.strict.family import (
    COUNT,
    FUNCTION,
    IMAGE,
    KNOWN,
    LONG,
    ONE,
    ORDER,
    SAID,
    SMALL,
    SYSTEM,
    TOOL,
    TWO,
    UNKNOWN,
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
    thought,
    without,
)

BEFORE_TOOL = "Unexpected role 'tool' after role 'user'"
LAST = "Expected last role User or Tool (or Assistant with prefix) for serving but got assistant"
NAME = "Function name was a.b but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum "
NAME += "length of 64."
FREE = "Tool call id must be a non-empty string other than 'null' for tokenizer version 13 or newer."
GENERATION_3, GENERATION_13 = given(generation=3), given(generation=13)


def mistral(
    rule: str,
    refused: Json,
    message: str,
    accepted: Json = ONE,
    kind: tuple[str, str | None] = ORDER,
    status: int = 400,
    **more: Any,  # passed on to a typed constructor
) -> Case:
    return Case("mistral", rule, refused, message, accepted, kind, status, **more)


BAD_ID = "Tool call id was call_abc123 but must be a-z, A-Z, 0-9, with a length of 9."

MISTRAL = [
    mistral("MIS-01", body(USER, calls(call("call_abc123")), result("call_abc123")), BAD_ID, ONE, FUNCTION),
    mistral("MIS-02", body(USER, calls(call(), call(B)), result()), COUNT, TWO),
    mistral("MIS-02", body(USER, calls(call()), USER), COUNT),
    mistral(
        "MIS-02", body(USER, calls(call(), call(B)), result(), SAID, USER), COUNT, body(USER, SAID, USER)
    ),
    mistral(
        "MIS-03", body(USER, calls(call()), result(), result()), f"Duplicate tool call id {A} in tool results"
    ),
    mistral(
        "MIS-04",
        body(USER, calls(call(), call()), result(), result()),
        f"Duplicate tool call id {A} in assistant message",
        TWO,
    ),
    mistral("MIS-05", body(USER, result()), BEFORE_TOOL),
    mistral("MIS-06", body(USER, SAID, result()), f"Unexpected tool call id {A} in tool results"),
    mistral("MIS-07", body(USER, calls(call()), result(B)), f"Unexpected tool call id {B} in tool results"),
    mistral("MIS-09", body(USER, calls(call()), USER, result()), BEFORE_TOOL),
    mistral("MIS-10", body(USER, SAID), LAST, body(USER, {**SAID, "prefix": True})),
    mistral(
        "MIS-11",
        body(USER, {**SAID, "prefix": True}, USER),
        "Assistant message with prefix True must be last message",
        body(USER, SAID, USER),
    ),
    mistral(
        "MIS-12",
        body(USER, SAID, SYSTEM, USER),
        "Unexpected role 'system' after role 'assistant'",
        body(USER, SYSTEM, SAID, USER),
    ),
    mistral(
        "MIS-12", body(USER, calls(call()), result(), SYSTEM), "Unexpected role 'system' after role 'tool'"
    ),
    mistral("MIS-13", body(), "Conversation must have at least one message", body(USER)),
    mistral(
        "MIS-13S",
        body(SAID),
        "Conversation must start with a user message or system message",
        body(SYSTEM),
    ),
    mistral("MIS-14", body(USER, calls(call(name="a.b")), result()), NAME, ONE, FUNCTION),
    mistral(
        "MIS-15",
        body(USER, calls(call()), without(result(), "tool_call_id")),
        "Tool call id has to be defined.",
        ONE,
        FUNCTION,
        mode="hosted",
        settings=GENERATION_3,
    ),
    mistral(
        "MIS-16",
        body(USER, calls(without(call(), "id")), result()),
        "Tool call id has to be defined in serving mode.",
        ONE,
        FUNCTION,
        mode="hosted",
        settings=GENERATION_3,
    ),
    mistral(
        "MIS-17",
        body(USER, calls(call(), content="t"), result()),
        "Assistant message must have either content or tool_calls, but not both.",
        ONE,
        ("invalid_request_assistant_message", "3240"),
        settings=GENERATION_3,
    ),
    mistral(
        "MIS-17",
        body(USER, {"role": "assistant"}, USER),
        "Assistant message must have either content or tool_calls, but not both.",
        body(USER, SAID, USER),
        ("invalid_request_assistant_message", "3240"),
        hosted=False,
    ),
    mistral(
        "MIS-18",
        body(USER, calls(call()), result(content=[IMAGE])),
        "Unexpected content chunk types in tool message: ['ImageURLChunk']",
        body(USER, calls(call()), result(content=[{"type": "text", "text": "r"}])),
    ),
    mistral(
        "MIS-20",
        body(USER, calls(call(arguments="[")), result()),
        "Function call arguments must be a JSON object.",
        ONE,
        FUNCTION,
        hosted=False,
    ),
    mistral(
        "MIS-21",
        body(USER, calls(call()), result(), USER),
        "Unexpected role 'user' after role 'tool'",
        body(USER, calls(call()), result(), SAID, USER),
    ),
    mistral(
        "MIS-21",
        body(USER, calls(call()), result(), USER),
        "Unexpected role 'user' after role 'tool'",
        hosted=False,
        settings=GENERATION_13,
    ),
    mistral(
        "MIS-32",
        body(USER, thought(call()), result()),
        "Extra inputs are not permitted",
        ONE,
        ("extra_forbidden", None),
        422,
    ),
    mistral(
        "MIS-33",
        LONG,
        "Prompt contains 140 tokens and 0 draft tokens, too large for model with 100 maximum context length",
        body(USER),
        ("invalid_request_error", "3051"),
        settings=SMALL,
    ),
    mistral(
        "MIS-S01",
        body(USER, tools=[]),
        "List should have at least 1 item after validation, not 0",
        body(USER, tools=[TOOL]),
        ("too_short", None),
        422,
    ),
    mistral(
        "MIS-S02",
        body({"role": "user", "content": 7}),
        "Input should be one of a string or array of objects",
        body(USER),
        ("type_error", None),
        422,
    ),
    mistral(
        "MIS-S03",
        body({"role": "developer", "content": "s"}, USER),
        "Input should be 'system', 'user', 'assistant', and 'tool'",
        body(SYSTEM, USER),
        ("literal_error", None),
        422,
    ),
    mistral("MIS-S04", body({"content": "u"}), "Field required", body(USER), ("missing", None), 422),
    mistral(
        "MIS-S05",
        body({"role": "system", "content": None}, USER),
        "Input should be a valid string",
        body(USER),
        ("string_type", None),
        422,
    ),
    mistral(
        "MIS-S06",
        body({"role": "user", "content": [{"type": "bogus"}]}),
        "Input tag does not match any of the expected tags",
        body({"role": "user", "content": [IMAGE]}),
        ("union_tag_invalid", None),
        422,
    ),
    mistral("MIS-S07", body(USER), "Invalid model: m", KNOWN, ("invalid_model", "1500"), settings=UNKNOWN),
]
