"""Check Kimi requests. Kimi pairs calls and results as OpenAI does, refuses empty text, and requires reasoning.

Every turn with calls needs reasoning. In addition, the mode `strict` requires unique ids in Kimi's own format. The API
accepts ids in other formats without an error, but Kimi's models then drop calls.
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
    rules_by_id,
)
from actors.strict.rules.host import RequestContext, VendorHost, check_reasoning_present
from actors.strict.rules.model_checks import RULES as OF_MODELS
from actors.strict.rules.model_checks import check_kimi
from actors.strict.rules.openai_chat import KEYS, OPENAI, object_schema_fault, without_answer_rules
from actors.strict.rules.openai_messages import MESSAGE_KEYS
from actors.strict.rules.openai_messages import RULES as FAMILY

_DROPPED = "no refusal: the model drops calls"

RULES = rules_by_id(
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


def _check_no_empty_content(request: Json, context: RequestContext) -> None:
    for at, message in enumerate(request["messages"]):
        content = message.get("content")
        if message["role"] == "assistant" and not content and not message.get("tool_calls"):
            raise RULES["KIM-04"].refuse(f"messages[{at}]", at=at)
        for part in content if is_array(content) else ():
            if part["type"] == "text" and not part["text"]:
                raise RULES["KIM-05"].refuse(f"messages[{at}].content")


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
                raise RULES["KIM-S01"].refuse(id=call_id)
            if call_id in seen:
                raise RULES["KIM-S02"].refuse(id=call_id)
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
    rules={**RULES, "KIM-14": OF_MODELS["KIM-14"], "KIM-15": OF_MODELS["KIM-15"]},
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
