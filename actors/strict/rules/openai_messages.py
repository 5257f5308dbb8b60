"""List the rules of OpenAI Chat Completions, and check the messages of requests.

Theory of operation. The messages are checked in three passes: first shapes (role, keys, types), then ids and names,
then the sequence. So the reported fault is the first in the provider's order of checks, not the first in the array. The
sequence check keeps one set as its state: the ids of the last assistant message's calls that have no `tool` message
yet. A `tool` message removes its id from the set. Before any other message and at the end, the set must be empty. A
second answer, an answer without a call, and a misplaced answer are refused, because their id is not in the set.

The mode `strict` adds rules of self-hosted servers with this API: they refuse arguments that are not a JSON object in a
string, two calls with the same id in a message, and an empty assistant message.
"""

import re
from collections.abc import Iterable

from actors.strict.rules.base import (
    COPIES,
    DOC,
    RECALLED,
    Json,
    ServerRule,
    is_object,
    rules_by_id,
    strings_inside,
)
from actors.strict.rules.host import RequestContext
from actors.strict.rules.reading import key_of_check, parse, unchecked_items
from actors.strict.rules.shapes import OpenAIShapeChecker

_TOO_LONG = (
    "Invalid '{path}': string too long. Expected a string with maximum length {limit}, "
    "but got a string with length {length} instead."
)
NAME = r"^[a-zA-Z0-9_-]+$"

RULES = rules_by_id(
    ServerRule(
        "OAC-01",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
    ),
    ServerRule(
        "OAC-02",
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
        "'tool_calls'.",
    ),
    ServerRule("OAC-03", _TOO_LONG, code="string_above_max_length"),
    ServerRule(
        "OAC-04",
        "Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty array "
        "instead.",
        code="empty_array",
    ),
    ServerRule(
        "OAC-05",
        "Invalid type for '{path}': expected {expected}, but got {got} instead.",
        code="invalid_type",
    ),
    ServerRule("OAC-06", "Invalid value: '{value}'. Supported values are: {values}.", code="invalid_value"),
    ServerRule("OAC-07", "Missing required parameter: '{path}'.", code="missing_required_parameter"),
    ServerRule(
        "OAC-08",
        "Invalid '{path}'. Content blocks are expected to be either text or image_url type.",
        code="invalid_value",
    ),
    ServerRule(
        "OAC-09",
        "Invalid '{path}': array too long. Expected an array with maximum length {limit}, but got an array "
        "with length {length} instead.",
        code="array_above_max_length",
    ),
    ServerRule("OAC-10", _TOO_LONG, code="string_above_max_length"),
    ServerRule("OAC-11", "Invalid schema for function '{name}': {why}", code="invalid_function_parameters"),
    ServerRule("OAC-12", "Unknown parameter: '{path}'."),
    ServerRule(
        "OAC-13",
        "Unsupported value: '{path}' does not support '{role}' with this model.",
        code="unsupported_value",
    ),
    ServerRule("OAC-14", _TOO_LONG, code="string_above_max_length"),
    ServerRule(
        "OAC-15",
        "This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} "
        "tokens. Please reduce the length of the messages.",
        code="context_length_exceeded",
    ),
    ServerRule(
        "OAC-16",
        "The model `{model}` does not exist or you do not have access to it.",
        status=404,
        code="model_not_found",
    ),
    ServerRule("OAC-17", _TOO_LONG, code="string_above_max_length"),
    ServerRule(
        "OAC-18",
        "Unsupported value: '{path}' does not support this value with this model.",
        source=RECALLED,
        code="unsupported_value",
    ),
    ServerRule("OAC-19", "you must provide a model parameter"),
    ServerRule("OAC-S01", "We could not parse the JSON body of your request. ({why})", source=RECALLED),
    ServerRule("OAC-S02", "Invalid value for '{path}'.", source=RECALLED, code="invalid_value"),
    ServerRule(
        "OAC-S03",
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        source=RECALLED,
    ),
    ServerRule("OAC-S04", "'{path}' is only allowed when 'tools' are specified.", source=RECALLED),
    ServerRule("OAC-S05", "Tool choice 'function' not found in 'tools' parameter.", source=RECALLED),
    ServerRule(
        "OAC-S06",
        "Invalid '{path}': string does not match pattern. Expected a string that matches the pattern "
        "'" + NAME + "'.",
        source=DOC,
        code="invalid_value",
    ),
    ServerRule(
        "OAC-S07",
        "Invalid '{path}': empty string. Expected a string with minimum length 1, but got an empty string "
        "instead.",
        source=RECALLED,
        code="empty_string",
    ),
    ServerRule(
        "OAC-S08",
        "Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message.",
        source=RECALLED,
    ),
    ServerRule("OAC-S09", "invalid tool call arguments", source=COPIES, strict_only=True),
    ServerRule(
        "OAC-S10", "Duplicate tool call id {id} in assistant message", source=COPIES, strict_only=True
    ),
    ServerRule(
        "OAC-S11",
        "Assistant message must contain either 'content' or 'tool_calls'!",
        source=COPIES,
        strict_only=True,
    ),
    ServerRule("OAC-S13", "Invalid schema for response_format '{name}': {why}"),
    ServerRule(
        "OAC-S14",
        "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
    ),
    ServerRule(
        "OAC-S15",
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
        code="invalid_parameter_combination",
    ),
    ServerRule("OAC-S12", "Invalid value for 'content': expected a string, got null.", source=RECALLED),
)

WALK = OpenAIShapeChecker(RULES["OAC-05"], RULES["OAC-07"], RULES["OAC-12"], RULES["OAC-06"])
_NAMED = frozenset({"role", "content", "name"})
MESSAGE_KEYS = {
    "system": _NAMED,
    "assistant": _NAMED | {"refusal", "audio", "tool_calls", "function_call"},
    "user": _NAMED,
    "function": _NAMED,
    "tool": _NAMED | {"tool_call_id"},
    "developer": _NAMED,
}
PARTS = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
}
_TEXT_ONLY = frozenset({"text"})
_IS_MEDIA = re.compile(r"\.(?:image_url|input_audio|file|audio|video_url|document_url)(?:\.|$)")
_MAX_NAME = 64
_MAX_STRING = 1_048_576
_CALL_KEYS = {
    "function": (frozenset({"id", "type", "function"}), frozenset({"name", "arguments"}), "arguments"),
    "custom": (frozenset({"id", "type", "custom"}), frozenset({"name", "input"}), "input"),
}


def check(messages: Json, context: RequestContext, *, may_have_long_strings: bool) -> None:
    """Check the messages of one request.

    `may_have_long_strings` is True if the body is large enough to contain a string that is too long.

    Raises:
        RuleBroken: At the first broken rule.
    """
    WALK.require_type(messages, list, "messages")
    if not messages:
        raise RULES["OAC-04"].refuse("messages", path="messages")
    under = context.host, context.mode, context.profile
    for at, message in unchecked_items(messages, key_of_check("OAC shape", *under)):
        _check_shape(message, f"messages[{at}]", context)
    if may_have_long_strings:
        _check_lengths(messages)
    context.host.identity(messages, context)
    for at, message in unchecked_items(messages, key_of_check("OAC calls", *under)):
        _check_calls_strictly(message, at, context)
    context.host.sequence(messages, context)


def _check_shape(message: Json, path: str, context: RequestContext) -> None:
    WALK.require_type(message, dict, path)
    role, keys = WALK.require(message, "role", path), context.host.message_keys
    if not isinstance(role, str) or role not in keys:
        raise RULES["OAC-06"].refuse(f"{path}.role", path=path, value=role, values=enumerate_names(keys))
    if role in ("system", "developer") and not context.profile.system_role:
        raise RULES["OAC-13"].refuse(f"{path}.role", path=f"{path}.role", role=role)
    refuse_unknown_keys(message, keys[role], path, context)
    if message.get("name") is not None:
        WALK.require_type(message["name"], str, f"{path}.name")
    if message.get("tool_calls") is not None:
        _check_calls(message["tool_calls"], f"{path}.tool_calls", context)
    if role == "tool":
        _check_text(message, "tool_call_id", path, context)
    _check_content(message, role, path, context)


def enumerate_names(names: Iterable[str]) -> str:
    """Return quoted names joined as in OpenAI's error messages: `'a', 'b', and 'c'`."""
    quoted = [f"'{name}'" for name in names]
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}" if len(quoted) > 2 else " and ".join(quoted)


def _check_text(value: dict[str, Json], key: str, path: str, context: RequestContext) -> None:
    """Check that the value of a key is a string. On some hosts, the key may be missing."""
    if key in value or key not in context.host.optional:
        WALK.required_member(value, key, str, path)


def _check_content(message: dict[str, Json], role: str, path: str, context: RequestContext) -> None:
    if role == "assistant" and message.get("content") is None:
        return
    content = WALK.require(message, "content", path)
    if content is None and role in context.host.nullable:
        return
    if content is None:
        raise RULES["OAC-S12"].refuse(f"{path}.content")
    if isinstance(content, str):
        return
    WALK.require_described_type(content, list, f"{path}.content", "one of a string or array of objects")
    if not content:
        raise RULES["OAC-04"].refuse(f"{path}.content", path=f"{path}.content")
    for at, part in enumerate(content):
        allowed = context.host.parts.get(role, _TEXT_ONLY)
        _check_part(part, allowed, path, f"{path}.content[{at}]", context)


def _check_part(
    part: Json, allowed_types: frozenset[str], message_path: str, path: str, context: RequestContext
) -> None:
    WALK.require_type(part, dict, path)
    which = WALK.require(part, "type", path)
    if not isinstance(which, str) or which not in allowed_types:
        raise RULES["OAC-08"].refuse(message_path, path=message_path)
    held = context.host.part_values.get(which, which)
    if held is None:
        return
    refuse_unknown_keys(part, frozenset({"type", held}) | context.host.part_keys, path, context)
    wanted = context.host.part_types.get(which, dict)
    WALK.required_member(part, held, wanted, path)


def _check_calls(calls: Json, path: str, context: RequestContext) -> None:
    WALK.require_type(calls, list, path)
    if not calls and not context.host.empty_calls:
        raise RULES["OAC-04"].refuse(path, path=path)
    for at, call in enumerate(calls):
        _check_call(call, f"{path}[{at}]", context)


def _check_call(call: Json, path: str, context: RequestContext) -> None:
    WALK.require_type(call, dict, path)
    _check_text(call, "id", path, context)
    which = "function" if "type" in context.host.optional else WALK.require(call, "type", path)
    which = call.get("type", which)
    if not isinstance(which, str) or which not in context.host.tool_types:
        types = enumerate_names(context.host.tool_types)
        raise RULES["OAC-06"].refuse(f"{path}.type", path=path, value=which, values=types)
    outer, inner, text = _CALL_KEYS[which]
    signing = {"extra_content"} if context.model_profile.signed_calls else frozenset[str]()
    refuse_unknown_keys(call, outer | context.host.call_keys | signing, path, context)
    made, at = WALK.require(call, which, path), f"{path}.{which}"
    WALK.require_type(made, dict, at)
    refuse_unknown_keys(made, inner, at, context)
    WALK.required_member(made, "name", str, at)
    if not isinstance(WALK.require(made, text, at), context.host.argument_types):
        WALK.require_type(made[text], str, f"{at}.{text}")


def check_identity(messages: list[Json], context: RequestContext) -> None:
    """Check the ids and names in all messages as OpenAI does."""
    standard = key_of_check("OAC identity", context.host, context.profile)
    for number, message in unchecked_items(messages, standard):
        path = f"messages[{number}]"
        if message["role"] == "tool":
            check_id(message["tool_call_id"], f"{path}.tool_call_id", context.profile.id_length)
        for at, call in enumerate(message.get("tool_calls") or ()):
            check_id(call["id"], f"{path}.tool_calls[{at}].id", context.profile.id_length)
            which = call["type"]
            check_name(call[which]["name"], f"{path}.tool_calls[{at}].{which}.name", context)


def check_id(call_id: str, path: str, limit: int | None) -> None:
    """Refuse an id that is empty or longer than `limit` characters; None means unlimited."""
    if not call_id:
        raise RULES["OAC-S07"].refuse(path, path=path)
    if limit is not None and len(call_id) > limit:
        raise RULES["OAC-03"].refuse(path, path=path, limit=limit, length=len(call_id))


def check_name(name: Json, path: str, context: RequestContext) -> None:
    """Refuse a tool name that is empty, is too long, or contains characters that the host does not accept."""
    WALK.require_type(name, str, path)
    if not name:
        raise RULES["OAC-S07"].refuse(path, path=path, name=name)
    if len(name) > _MAX_NAME:
        raise RULES["OAC-10"].refuse(path, path=path, limit=_MAX_NAME, length=len(name), name=name)
    if not context.host.names.fullmatch(name):
        raise RULES["OAC-S06"].refuse(path, path=path, name=name)


def _check_lengths(messages: list[Json]) -> None:
    for path, text in strings_inside(messages):
        if len(text) > _MAX_STRING and not _IS_MEDIA.search(path):
            where = f"messages{path}"
            raise RULES["OAC-14"].refuse(where, path=where, limit=_MAX_STRING, length=len(text))


def _check_calls_strictly(message: dict[str, Json], message_index: int, context: RequestContext) -> None:
    seen: set[str] = set()
    for number, call in enumerate(message.get("tool_calls") or ()):
        path = f"messages[{message_index}].tool_calls[{number}]"
        if call.get("id") in seen and context.enforces(RULES["OAC-S10"]):
            raise RULES["OAC-S10"].refuse(f"{path}.id", id=call["id"])
        seen.add(call.get("id", ""))
        if call.get("type", "function") == "function":
            _check_arguments(call["function"]["arguments"], f"{path}.function.arguments", context)
    nothing = message.get("content") is None and message.get("refusal") is None
    empty = not seen and nothing and not message.get("function_call")
    if message["role"] == "assistant" and empty and context.enforces(RULES["OAC-S11"]):
        raise RULES["OAC-S11"].refuse(f"messages[{message_index}]", at=message_index)


def _check_arguments(arguments: Json, path: str, context: RequestContext) -> None:
    if isinstance(arguments, str) and not _is_json_object(arguments) and context.enforces(RULES["OAC-S09"]):
        raise RULES["OAC-S09"].refuse(path, arguments=arguments)


def _is_json_object(arguments: str) -> bool:
    try:
        return is_object(parse(arguments.encode()))
    except ValueError:
        return False


def check_sequence(messages: list[Json], context: RequestContext) -> None:
    """Check, as OpenAI does, that an assistant message is directly followed by the results of all its calls."""
    waiting: list[str] = []
    for at, message in enumerate(messages):
        if message["role"] != "tool":
            _check_answered(waiting, at)
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
        elif not waiting:
            raise RULES["OAC-02"].refuse(f"messages.[{at}].role", id=message["tool_call_id"], at=at)
        elif message["tool_call_id"] not in waiting:
            call_id = message["tool_call_id"]
            raise RULES["OAC-S08"].refuse(f"messages.[{at}].tool_call_id", id=call_id, at=at)
        else:
            waiting.remove(message["tool_call_id"])
    _check_answered(waiting, len(messages) - 1)


def _check_answered(unanswered_ids: list[str], message_index: int) -> None:
    if unanswered_ids:
        raise RULES["OAC-01"].refuse(
            f"messages.[{message_index}].role", ids=", ".join(unanswered_ids), at=message_index
        )


def refuse_unknown_keys(
    value: dict[str, Json], allowed: frozenset[str], path: str, context: RequestContext
) -> None:
    """Refuse keys that are not in `allowed`, if this host refuses unknown keys."""
    if context.refuses_unknown_keys():
        WALK.allow_only(value, allowed, path)


def is_integer(value: Json) -> bool:
    """Return True if a JSON value is an integer. Unlike in Python, True and False are not integers."""
    return isinstance(value, int) and not isinstance(value, bool)
