"""Check requests to Mistral, with Mistral's error messages and with Mistral's own rules for ids, order and pairing.

Theory of operation. Mistral's host runs the validator of the model's tokenizer generation. A table contains the roles
that may follow each role. Up to generation 7, only the number of results must match: there must be as many results as
calls before the next assistant message. From generation 11 on, calls and results are paired by id. Up to generation 11,
ids have nine alphanumeric characters; later, ids may be any string that is not empty. But the hosted API still refuses
ids that do not have nine alphanumeric characters, and a user message after a tool message. So the mode `strict` refuses
both in every generation. An unknown key is refused before the validator runs, with status 422 and a path in a different
format.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from actors.strict.rules.base import (
    COPIES,
    DOC,
    RECALLED,
    Json,
    ServerRefusal,
    ServerRule,
    is_array,
    is_object,
    rules_by_id,
)
from actors.strict.rules.host import RequestContext, VendorHost, accept_anything
from actors.strict.rules.openai_chat import OPENAI, object_schema_fault, without_answer_rules

_MEASURED = "measured with the vendor's own validator"
_BAD_NAME = (
    "Function name was {name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, "
    "with a maximum length of 64."
)
_ROLES = "Unexpected role '{role}' after role '{after}'"


def _order_rule(rule_id: str, text: str) -> ServerRule:
    return ServerRule(rule_id, text, _MEASURED, type="invalid_request_message_order", code="3230")


def _call_rule(rule_id: str, text: str) -> ServerRule:
    return ServerRule(rule_id, text, _MEASURED, type="invalid_function_call", code="3280")


RULES = rules_by_id(
    _call_rule("MIS-01", "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."),
    _order_rule("MIS-02", "Not the same number of function calls and responses"),
    _order_rule("MIS-03", "Duplicate tool call id {id} in tool results"),
    _order_rule("MIS-04", "Duplicate tool call id {id} in assistant message"),
    _order_rule("MIS-05", _ROLES),
    _order_rule("MIS-06", "Unexpected tool call id {id} in tool results"),
    _order_rule("MIS-07", "Unexpected tool call id {id} in tool results"),
    _order_rule("MIS-09", _ROLES),
    _order_rule(
        "MIS-10", "Expected last role User or Tool (or Assistant with prefix) for serving but got {role}"
    ),
    _order_rule("MIS-11", "Assistant message with prefix True must be last message"),
    _order_rule("MIS-12", _ROLES),
    _order_rule("MIS-13", "Conversation must have at least one message"),
    _order_rule("MIS-13S", "Conversation must start with a user message or system message"),
    _call_rule("MIS-14", _BAD_NAME),
    _call_rule("MIS-15", "Tool call id has to be defined."),
    _call_rule("MIS-16", "Tool call id has to be defined in serving mode."),
    _call_rule(
        "MIS-16S",
        "Tool call id must be a non-empty string other than 'null' for tokenizer version 13 or newer.",
    ),
    ServerRule(
        "MIS-17",
        "Assistant message must have either content or tool_calls, but not both.",
        _MEASURED,
        type="invalid_request_assistant_message",
        code="3240",
    ),
    _order_rule("MIS-18", "Unexpected content chunk types in tool message: ['ImageURLChunk']"),
    replace(
        _call_rule("MIS-20", "Function call arguments must be a JSON object."),
        source=COPIES,
        strict_only=True,
    ),
    _order_rule("MIS-21", _ROLES),
    ServerRule("MIS-32", "Extra inputs are not permitted", status=422, type="extra_forbidden"),
    ServerRule(
        "MIS-33",
        "Prompt contains {tokens} tokens and 0 draft tokens, too large for model with {limit} maximum context "
        "length",
        code="3051",
    ),
    ServerRule(
        "MIS-S01",
        "List should have at least 1 item after validation, not 0",
        RECALLED,
        status=422,
        type="too_short",
    ),
    ServerRule("MIS-S02", "Input should be {expected}", RECALLED, status=422, type="type_error"),
    ServerRule("MIS-S03", "Input should be {values}", RECALLED, status=422, type="literal_error"),
    ServerRule("MIS-S04", "Field required", RECALLED, status=422, type="missing"),
    ServerRule("MIS-S05", "Input should be a valid string", RECALLED, status=422, type="string_type"),
    ServerRule(
        "MIS-S06",
        "Input tag does not match any of the expected tags",
        DOC,
        status=422,
        type="union_tag_invalid",
    ),
    ServerRule("MIS-S07", "Invalid model: {model}", RECALLED, type="invalid_model", code="1500"),
    ServerRule("MIS-S08", "JSON decode error", RECALLED, status=422, type="json_invalid"),
)

_FOLLOW = {
    "system": frozenset({"user", "assistant", "system"}),
    "user": frozenset({"assistant", "system", "user"}),
    "assistant": frozenset({"assistant", "user", "tool"}),
    "tool": frozenset({"assistant", "tool", "user"}),
}
_NINE = re.compile(r"[a-zA-Z0-9]{9}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# the first generations that pair by id, accept ids of any form, and accept results with more than text
_BY_ID, _FREE_IDS, _RICH_RESULTS = 11, 13, 15


def check(messages: list[Json], context: RequestContext) -> None:
    """Check the order and pairing of messages, and then the content of each message, as the vendor does."""
    generation = context.model_profile.generation
    _check_ends(messages)
    _check_order(messages, is_lenient=context.mode == "hosted" and generation >= _FREE_IDS)
    if generation >= _BY_ID or context.mode == "strict":
        _check_pairs(messages)
    else:
        _check_counts(messages)
    for at, message in enumerate(messages):
        _check_content(message, at == len(messages) - 1, context)


def _check_ends(messages: list[Json]) -> None:
    """Check the roles of the first and of the last message."""
    first, last = messages[0], messages[-1]
    if first["role"] == "tool" or (len(messages) == 1 and first["role"] == "assistant"):
        raise RULES["MIS-13S"].refuse()
    if last["role"] == "assistant" and not last.get("prefix"):
        raise RULES["MIS-10"].refuse(role="assistant")


def _check_order(messages: list[Json], *, is_lenient: bool) -> None:
    for before, message in pairwise(messages):
        after, role = before["role"], message["role"]
        if role not in _FOLLOW[after]:
            raise RULES["MIS-12" if role == "system" else _misplaced_result_rule(messages)].refuse(
                role=role, after=after
            )
        if (after, role) == ("tool", "user") and not is_lenient:
            raise RULES["MIS-21"].refuse(role=role, after=after)


def _misplaced_result_rule(messages: list[Json]) -> str:
    """Return the id of the rule that is broken by a result directly after a user message.

    The rule depends on whether any message contains calls.
    """
    return "MIS-09" if any(message.get("tool_calls") for message in messages) else "MIS-05"


def _check_counts(messages: list[Json]) -> None:
    """Check that an answer with calls is followed by an equal number of results. Ids are not compared."""
    missing = 0
    for message in messages[1:]:
        if message["role"] == "tool":
            missing -= 1
        elif message["role"] == "assistant":
            if missing:
                raise RULES["MIS-02"].refuse()
            missing = len(message.get("tool_calls") or ())
    if missing:
        raise RULES["MIS-02"].refuse()


def _check_pairs(messages: list[Json]) -> None:
    """Check that calls and results match by id. Like the vendor, ignore calls in the first message."""
    made: set[str] = set()
    given: set[str] = set()
    for message in messages[1:]:
        if message["role"] == "tool":
            _check_result(message.get("tool_call_id"), made, given)
        elif message["role"] == "assistant":
            if len(made) != len(given):
                raise RULES["MIS-02"].refuse()
            made, given = _call_ids(message), set()
    if len(made) != len(given):
        raise RULES["MIS-02"].refuse()


def _check_result(call_id: str | None, call_ids: set[str], result_ids: set[str]) -> None:
    """Check the id of a result, and add it to `result_ids`."""
    if call_id in result_ids:
        raise RULES["MIS-03"].refuse(id=call_id)
    if call_id not in call_ids:
        raise RULES["MIS-07" if call_ids else "MIS-06"].refuse(id=call_id)
    result_ids.add(call_id)


def _call_ids(message: Json) -> set[str]:
    ids: set[str] = set()
    for call in message.get("tool_calls") or ():
        if (call_id := call.get("id", "null")) in ids:
            raise RULES["MIS-04"].refuse(id=call_id)
        ids.add(call_id)
    return ids


def _check_content(message: Json, is_last: bool, context: RequestContext) -> None:
    generation = context.model_profile.generation
    if message["role"] == "tool":
        _check_images(message, generation)
        _check_id(message.get("tool_call_id"), "MIS-15", context)
        _check_name(message.get("name") or "unnamed")
    if message["role"] != "assistant":
        return
    calls = message.get("tool_calls") or ()
    if generation < 5 and bool(message.get("content")) == bool(calls):
        raise RULES["MIS-17"].refuse()
    for call in calls:
        _check_id(call.get("id"), "MIS-16", context)
        _check_name(call["function"]["name"])
    if message.get("prefix") and not is_last:
        raise RULES["MIS-11"].refuse()


def _check_images(message: Json, generation: int) -> None:
    parts = message["content"] if is_array(message["content"]) else ()
    if generation < _RICH_RESULTS and any(part["type"] != "text" for part in parts):
        raise RULES["MIS-18"].refuse()


def _check_id(call_id: str | None, missing_rule: str, context: RequestContext) -> None:
    if context.mode == "hosted" and context.model_profile.generation >= _FREE_IDS:
        if not call_id or call_id == "null":
            raise RULES["MIS-16S"].refuse()
    elif call_id is None or (missing_rule == "MIS-16" and call_id == "null"):
        raise RULES[missing_rule].refuse()
    elif not _NINE.fullmatch(call_id):
        raise RULES["MIS-01"].refuse(id=call_id)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise RULES["MIS-14"].refuse(name=name)


def _add_path(refusal: ServerRefusal, request: Json, values: Mapping[str, object]) -> ServerRefusal:
    """Add the path in the vendor's format to a refusal with status 422.

    For example, `messages[1].x` becomes `body.messages.1.assistant.x`. Other refusals have no path.
    """
    if refusal.status != 422:
        return replace(refusal, param=None)
    loc: list[str | int] = ["body"]
    value = request
    for name, number in re.findall(r"([^.\[\]]+)|\[(\d+)\]", refusal.param or ""):
        key = int(number) if number else name
        loc.append(key)
        value = _inner_value(value, key)
        if len(loc) == 3 and loc[1] == "messages" and is_object(value):
            loc.append(str(value.get("role")))
    return replace(refusal, param=".".join(map(str, loc)), detail={"loc": loc, "input": value})


def _inner_value(value: Json, key: str | int) -> Json:
    """Return the value under a key of an object or at an index of a list; None if there is no value."""
    if isinstance(key, str):
        return value.get(key) if is_object(value) else None
    return value[key] if is_array(value) and key < len(value) else None


_NAMES = (
    "frequency_penalty guardrails logprobs max_tokens messages metadata min_tokens model n parallel_tool_calls "
    "prediction presence_penalty prompt_cache_key prompt_logprobs prompt_mode random_seed "
    "reasoning_effort repetition_penalty response_format safe_prompt service_tier stop stream temperature "
    "tool_choice tools top_k top_logprobs top_p top_prompt_logprobs"
)
_KEYS = frozenset(_NAMES.split())
_CHUNKS = frozenset(
    """text image_url document_url input_audio file reference resource resource_link
    thinking""".split()  # noqa: SIM905  a list would fill a page
)
_OWN_TOOLS = re.compile(r"image_generation|document_library|connector|web_search(_premium)?|code_interpreter")

MISTRAL: VendorHost = replace(
    without_answer_rules(OPENAI),
    name="mistral",
    rules=RULES,
    replacement_rules={
        "OAC-04": "MIS-S01",
        "OAC-04 messages": "MIS-13",
        "OAC-05": "MIS-S02",
        "OAC-06": "MIS-S03",
        "OAC-07": "MIS-S04",
        "OAC-08": "MIS-S06",
        "OAC-10": "MIS-14",
        "OAC-12": "MIS-32",
        "OAC-15": "MIS-33",
        "OAC-16": "MIS-S07",
        "OAC-19": "MIS-S04",
        "OAC-S01": "MIS-S08",
        "OAC-S06": "MIS-14",
        "OAC-S07": "MIS-14",
        "OAC-S09": "MIS-20",
        "OAC-S10": "MIS-04",
        "OAC-S11": "MIS-17",
        "OAC-S12": "MIS-S05",
    },
    keys=_KEYS,
    message_keys={
        "system": frozenset({"role", "content"}),
        "user": frozenset({"role", "content"}),
        "assistant": frozenset({"role", "content", "tool_calls", "prefix"}),
        "tool": frozenset({"role", "content", "tool_call_id", "name"}),
    },
    call_keys=frozenset({"index"}),
    empty_calls=True,
    optional=frozenset({"id", "tool_call_id", "type"}),
    parts={
        "system": frozenset({"text", "thinking"}),
        "user": _CHUNKS,
        "assistant": _CHUNKS,
        "tool": _CHUNKS,
    },
    part_keys=frozenset({"signature", "closed", "document_name", "metadata", "content"}),
    part_types={
        "text": str,
        "thinking": list,
        "document_url": str,
        "image_url": object,
        "input_audio": str,
        "file": str,
        "reference": list,
        "resource": str,
        "resource_link": str,
    },
    part_values={"file": "file_id", "reference": "reference_ids", "resource": "uri", "resource_link": "uri"},
    nullable=frozenset({"user", "tool"}),
    argument_types=(str, dict),
    tool_types=("function",),
    own_tools=_OWN_TOOLS,
    choices=("none", "auto", "required", "any"),
    names=re.compile(r"[a-zA-Z0-9_-]+"),
    schema=object_schema_fault,
    identity=accept_anything,
    sequence=check,
    finish=_add_path,
)
