"""What the cases of the Chat Completions vendors are written with: messages, bodies and the case itself."""

from dataclasses import dataclass, field
from typing import Any

from actors.strict.rules import CompatibleProfile, CompatibleSettings
from actors.strict.rules.base import Mode

Json = dict[str, Any]  # a body under test may be anything

USER: Json = {"role": "user", "content": "u"}
SYSTEM: Json = {"role": "system", "content": "s"}
SAID: Json = {"role": "assistant", "content": "a"}
TOOL: Json = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
IMAGE: Json = {"type": "image_url", "image_url": {"url": "x"}}
A, B = "aaaaaaaa1", "bbbbbbbb2"
KA, KB = "functions.read:0", "functions.read:1"
NO_PAIR = "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
UNANSWERED = NO_PAIR + "'tool_call_id'. The following tool_call_ids did not have response messages: "
COUNT = "Not the same number of function calls and responses"
ORDER = ("invalid_request_message_order", "3230")
FUNCTION = ("invalid_function_call", "3280")
PLAIN = ("invalid_request_error", None)
DEEPSEEK = ("invalid_request_error", "invalid_request_error")
QWEN = ("invalid_request_error", "invalid_parameter_error")
VLLM = ("BadRequestError", "400")
ALGO = "<400> InternalError.Algo.InvalidParameter: "


def call(call_id: str = A, arguments: str = "{}", name: str = "read") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*made: Json, **more: Any) -> Json:  # any key at all may be under test
    return {"role": "assistant", "tool_calls": list(made), **more}


def thought(*made: Json, **more: Any) -> Json:  # any key at all may be under test
    return calls(*made, reasoning_content="t", **more)


def result(call_id: str = A, **more: Any) -> Json:  # any key at all may be under test
    return {"role": "tool", "tool_call_id": call_id, "content": "r", **more}


def body(*messages: Json, **more: Any) -> Json:  # any key at all may be under test
    return {"model": "m", "messages": list(messages), **more}


def without(value: Json, key: str) -> Json:
    return {each: inner for each, inner in value.items() if each != key}


def schema(**parameters: Any) -> Json:  # any key at all may be under test
    return body(USER, tools=[{"type": "function", "function": {"name": "read", "parameters": parameters}}])


def given(**profile: Any) -> CompatibleSettings:  # passed on to a typed constructor
    return CompatibleSettings(CompatibleProfile(**profile))


@dataclass(frozen=True)
class Case:
    """`hosted` says whether the official host refuses the body too; `mode` is the one these words are from."""

    vendor: str
    rule: str
    refused: Json
    message: str
    accepted: Json
    kind: tuple[str, str | None] = PLAIN
    status: int = 400
    hosted: bool = True
    mode: Mode = "strict"
    settings: CompatibleSettings = field(default=CompatibleSettings())


ONE = body(USER, calls(call()), result())
TWO = body(USER, calls(call(), call(B)), result(), result(B))
LONG = body({"role": "user", "content": "u" * 500})
SMALL = given(context_tokens=100)
UNKNOWN = CompatibleSettings(models={"known": CompatibleProfile()})
KNOWN = {**body(USER), "model": "known"}
