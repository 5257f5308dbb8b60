"""Check requests to DeepSeek and Kimi, which require reasoning in turns with calls.

DeepSeek pairs calls and results differently from OpenAI. Theory of operation: the state is the set of ids of open
calls. A result removes its id, so a second result for the same call finds no open call. A result with an unknown id is
counted, but not refused immediately. After the last result for the calls of a message, DeepSeek reports a fault if
there are too few results. It reports a different fault if the number is right but a call has no result. This behaviour
was observed at DeepSeek's endpoint.

Kimi pairs calls and results as OpenAI does, and refuses empty text. Every turn with calls needs reasoning. In addition,
the mode `strict` requires unique ids in Kimi's own format. The API accepts ids in other formats without an error, but
Kimi's models then drop calls.
"""

import re
from dataclasses import replace

from actors.strict.rules.base import (
    RECALLED,
    CompatibleProfile,
    CompatibleSettings,
    Json,
    ServerRule,
    is_array,
    is_object,
    object_at,
    rules_by_id,
)
from actors.strict.rules.host import RequestContext, VendorHost, check_reasoning_present
from actors.strict.rules.model_checks import RULES as OF_MODELS
from actors.strict.rules.model_checks import check_kimi
from actors.strict.rules.openai_chat import KEYS, OPENAI, object_schema_fault, without_answer_rules
from actors.strict.rules.openai_messages import MESSAGE_KEYS
from actors.strict.rules.openai_messages import RULES as FAMILY

_CODE = "invalid_request_error"
_UNREADABLE = "Failed to deserialize the JSON body into the target type: "
_FOLLOWED = "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
DEEPSEEK_RULES = rules_by_id(
    ServerRule(
        "DSK-01",
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        code=_CODE,
    ),
    ServerRule(
        "DSK-02",
        _FOLLOWED + "'tool_call_id'. (insufficient tool messages following tool_calls message)",
        code=_CODE,
    ),
    ServerRule(
        "DSK-03",
        _FOLLOWED + "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
        code=_CODE,
    ),
    ServerRule("DSK-04", _UNREADABLE + "{parent}: missing field `{key}`", status=422, code=_CODE),
    ServerRule(
        "DSK-05",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        code=_CODE,
    ),
    ServerRule("DSK-08", "deepseek-reasoner does not support this tool_choice", RECALLED, code=_CODE),
    ServerRule(
        "DSK-09",
        "This model's maximum context length is {limit} tokens. However, you requested {tokens} tokens "
        "({tokens} in the messages, 0 in the completion). Please reduce the length of the messages or completion.",
        code=_CODE,
    ),
    ServerRule("DSK-10", "This response_format type is unavailable now", code=_CODE),
    ServerRule(
        "DSK-11",
        "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'.",
        code=_CODE,
    ),
    ServerRule("DSK-S01", _UNREADABLE + "{path}: expected {expected}", RECALLED, status=422, code=_CODE),
    ServerRule(
        "DSK-S02",
        _UNREADABLE + "{path}: unknown variant `{value}`, expected {values}",
        RECALLED,
        422,
        code=_CODE,
    ),
    ServerRule(
        "DSK-S03",
        "The `reasoning_content` of messages[{at}] is not the one that was returned.",
        RECALLED,
        code=_CODE,
        strict_only=True,
    ),
)
_DROPPED = "no refusal: the model drops calls"
KIMI_RULES = rules_by_id(
    replace(FAMILY["OAC-01"], id="KIM-01"),
    ServerRule("KIM-02", "Invalid request: tool_call_id  is not found"),
    ServerRule(
        "KIM-03",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}",
    ),
    ServerRule(
        "KIM-04", "Invalid request: the message at position {at} with role 'assistant' must not be empty"
    ),
    ServerRule("KIM-05", "text content is empty"),
    ServerRule(
        "KIM-06",
        "Invalid request: function name is invalid, must start with a letter and can contain letters, numbers, "
        "underscores, and dashes",
    ),
    ServerRule(
        "KIM-07",
        "tools.function.parameters is not a valid moonshot flavored json schema, details: <{why}>",
    ),
    ServerRule("KIM-08", "unknown tool type: {value}, currently only function and plugin are supported"),
    ServerRule("KIM-09", "invalid {path}: only {only} is allowed for this model"),
    ServerRule("KIM-10", "tool_choice '{choice}' is incompatible with thinking enabled"),
    ServerRule("KIM-11", "Invalid request: messages must not be empty"),
    ServerRule("KIM-12", "Invalid request: Your request exceeded model token limit: {limit}"),
    ServerRule(
        "KIM-S01", "tool call id {id} is not in the form functions.name:index", _DROPPED, strict_only=True
    ),
    ServerRule("KIM-S02", "tool call id {id} is used twice", _DROPPED, strict_only=True),
    ServerRule(
        "KIM-S03",
        "reasoning_content is not the one that was returned with this tool call message, at index {at}",
        RECALLED,
        strict_only=True,
    ),
)
_ID = re.compile(r"(functions\.)?.+:\d+", re.DOTALL)


def check(messages: list[Json], context: RequestContext) -> None:
    """Check the sequence of calls and results in the messages of one request."""
    waiting: list[str] = []
    made: list[str] = []
    strays = 0
    for message in messages:
        if message["role"] != "tool":
            _close_group(waiting, strays)
            made, strays = [call["id"] for call in message.get("tool_calls") or ()], 0
            waiting = made.copy()
        elif message["tool_call_id"] in waiting:
            waiting.remove(message["tool_call_id"])
        elif len(waiting) > strays and message["tool_call_id"] not in made:
            strays += 1
        else:
            raise DEEPSEEK_RULES["DSK-01"].refuse()
    _close_group(waiting, strays)


def _close_group(open_ids: list[str], stray_count: int) -> None:
    """Check the results for a message with calls, after its last result has been read."""
    if len(open_ids) > stray_count:
        raise DEEPSEEK_RULES["DSK-02"].refuse()
    if open_ids:
        raise DEEPSEEK_RULES["DSK-03"].refuse(ids=", ".join(open_ids))
    if stray_count:
        raise DEEPSEEK_RULES["DSK-01"].refuse()


def _check_answer_format(request: Json, context: RequestContext) -> None:
    if object_at(request, "response_format").get("type") == "json_schema":
        raise DEEPSEEK_RULES["DSK-10"].refuse()


DEEPSEEK: VendorHost = replace(
    without_answer_rules(OPENAI),
    name="deepseek",
    rules=DEEPSEEK_RULES,
    replacement_rules={
        "OAC-05": "DSK-S01",
        "OAC-06": "DSK-S02",
        "OAC-07": "DSK-04",
        "OAC-15": "DSK-09",
        "OAC-S14": "DSK-11",
    },
    error_code=_CODE,
    lacks=frozenset({"OAC-S15"}),
    keys=KEYS | {"thinking"},
    unknown_keys="ignore",
    message_keys={
        role: keys | {"reasoning_content", "prefix"}
        for role, keys in MESSAGE_KEYS.items()
        if role != "developer"
    },
    tool_types=("function",),
    schema=object_schema_fault,
    sequence=check,
    checks=(check_reasoning_present, _check_answer_format),
    reasoning="DSK-05",
    reasoning_scope="open",
    forced="DSK-08",
    profile=CompatibleProfile(id_length=64, thinking="on"),
)


def _check_no_empty_content(request: Json, context: RequestContext) -> None:
    for at, message in enumerate(request["messages"]):
        content = message.get("content")
        if message["role"] == "assistant" and not content and not message.get("tool_calls"):
            raise KIMI_RULES["KIM-04"].refuse(f"messages[{at}]", at=at)
        for part in content if is_array(content) else ():
            if part["type"] == "text" and not part["text"]:
                raise KIMI_RULES["KIM-05"].refuse(f"messages[{at}].content")


def _check_model_settings(request: Json, context: RequestContext) -> None:
    check_kimi(request)


def _check_ids(request: Json, context: RequestContext) -> None:
    settings = context.settings
    trusted = isinstance(settings, CompatibleSettings) and settings.signatures == "trust"
    seen: set[str] = set()
    for message in request["messages"] if context.mode == "strict" else ():
        for call in message.get("tool_calls") or ():
            call_id = call["id"]
            if not trusted and not _ID.fullmatch(call_id):
                raise KIMI_RULES["KIM-S01"].refuse(id=call_id)
            if call_id in seen:
                raise KIMI_RULES["KIM-S02"].refuse(id=call_id)
            seen.add(call_id)


_SCHEMA = {
    "member": "property schema for '{name}' must be an object",
    "items": "items must be an object",
    "reference": "references must start with #/$defs/",
    "untyped": "type is not defined",
    "twice": "when using anyOf, type should be defined in anyOf items instead of the parent schema",
}
"""Descriptions of faults in a schema. In an error message, they follow the path."""


def _moonshot_fault(function: Json) -> str | None:
    """Return a description of a fault in the parameters of a tool, or None."""
    if (wrong := object_schema_fault(function)) is not None:
        return _fault_at("", wrong)
    return _inner_fault(function["parameters"], "")


def _fault_at(path: str, reason: str) -> str:
    """Return the description of a fault at a path, formatted as in Kimi's error messages."""
    return f"At path '{path.lstrip('.')}': {reason}"


def _inner_fault(schema: Json, path: str) -> str | None:
    """Return a description of a fault in an object's properties or an array's items, or None."""
    properties = schema.get("properties")
    for key, inner in properties.items() if is_object(properties) else ():
        if not is_object(inner):
            return _fault_at(f"{path}.properties", _SCHEMA["member"].format(name=key))
        if wrong := _subschema_fault(inner, f"{path}.properties.{key}"):
            return wrong
    if "items" not in schema:
        return None
    items = schema["items"]
    return _subschema_fault(items, f"{path}.items") if is_object(items) else _fault_at(path, _SCHEMA["items"])


def _subschema_fault(schema: Json, path: str) -> str | None:
    if not str(schema.get("$ref", "#/$defs")).startswith("#/$defs"):
        return _fault_at(path, _SCHEMA["reference"])
    if not schema.keys() & {"type", "$ref", "anyOf", "enum"}:
        return _fault_at(path, _SCHEMA["untyped"])
    if schema.keys() >= {"type", "anyOf"}:
        return _fault_at(path, _SCHEMA["twice"])
    return _inner_fault(schema, path)


KIMI: VendorHost = replace(
    without_answer_rules(OPENAI),
    name="kimi",
    rules={**KIMI_RULES, "KIM-14": OF_MODELS["KIM-14"], "KIM-15": OF_MODELS["KIM-15"]},
    replacement_rules={
        "OAC-01": "KIM-01",
        "OAC-02": "KIM-02",
        "OAC-S08": "KIM-02",
        "OAC-S11": "KIM-04",
        "OAC-S06": "KIM-06",
        "OAC-S07 name": "KIM-06",
        "OAC-10": "KIM-06",
        "OAC-11": "KIM-07",
        "OAC-06 type": "KIM-08",
        "OAC-18": "KIM-09",
        "OAC-04 messages": "KIM-11",
        "OAC-15": "KIM-12",
    },
    keys=KEYS | {"thinking", "partial"},
    unknown_keys="ignore",
    message_keys={
        role: keys | {"reasoning_content", "partial"}
        for role, keys in MESSAGE_KEYS.items()
        if role != "developer"
    },
    tool_types=("function", "plugin"),
    own_tools=re.compile("builtin_function"),
    names=re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*"),
    enforced=frozenset({"OAC-S11"}),
    fixed={"temperature": 1, "top_p": 0.95, "n": 1, "presence_penalty": 0, "frequency_penalty": 0},
    schema=_moonshot_fault,
    checks=(_check_no_empty_content, check_reasoning_present, _check_ids, _check_model_settings),
    reasoning="KIM-03",
    forced="KIM-10",
    profile=CompatibleProfile(id_length=None, thinking="on"),
)
