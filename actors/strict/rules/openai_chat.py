"""Check requests to OpenAI's `POST /v1/chat/completions`, except their messages.

The order is: body, model, required parameters, unknown keys, values, tools, then the messages. `openai_messages`
contains the rules and the checks of messages. The same code checks requests to all other vendors of the family, as
their `VendorHost` configures it, including the schemas in `response_format`. In JSON mode, a message must mention JSON.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from actors.strict.rules import openai_messages, schemas
from actors.strict.rules.base import (
    CompatibleSettings,
    Json,
    Mode,
    OpenAIProfile,
    OpenAISettings,
    RuleBroken,
    is_array,
    is_object,
    strings_inside,
)
from actors.strict.rules.host import RequestContext, VendorHost, accept_anything, does_model_think
from actors.strict.rules.model_checks import RULES as OF_MODELS
from actors.strict.rules.model_checks import check_chat, with_thinking_default
from actors.strict.rules.openai_messages import (
    MESSAGE_KEYS,
    NAME,
    PARTS,
    RULES,
    WALK,
    check_identity,
    check_name,
    check_sequence,
    enumerate_names,
    is_integer,
    refuse_unknown_keys,
)
from actors.strict.rules.reading import key_of_check, parse, unchecked_items

_NAMES = (
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens "
    "messages metadata modalities model moderation n parallel_tool_calls prediction presence_penalty "
    "prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format "
    "safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools "
    "top_logprobs top_p user verbosity web_search_options"
)
KEYS = frozenset(_NAMES.split())
_FUNCTION_KEYS = frozenset({"name", "description", "parameters", "strict"})
_SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs")
_RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}
_FLAGS = ("stream", "store", "logprobs", "parallel_tool_calls")
_MAX_TOOLS = 128
_MAX_CACHE_KEY = 64
_MAX_STOPS = 4
_KEYS = frozenset({"name", "description", "schema", "strict"})
_FORMS = ("text", "json_object", "json_schema")
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_MAX_NAME = 64


def validate(
    body: bytes, mode: Mode, settings: OpenAISettings | CompatibleSettings, host: VendorHost | None = None
) -> None:
    """Check one request body. `host` describes the vendor; None means OpenAI.

    Raises:
        RuleBroken: At the first broken rule, with the vendor's error message.
    """
    host = host or OPENAI
    request: Json = None
    try:
        request = _parse_body(body)
        _check_parsed(
            request, RequestContext(host, mode, settings, _profile_of(request, settings, host)), len(body)
        )
    except RuleBroken as refused:
        raise host.translate(refused, request) from None


def check_request(request: Json, context: RequestContext, size: int) -> None:
    """Check a parsed request. `size` is the size of the request's body in bytes.

    Raises:
        RuleBroken: At the first broken rule, with the error message of the host in `context`.
    """
    try:
        _check_parsed(request, context, size)
    except RuleBroken as refused:
        raise context.host.translate(refused, request) from None


def _check_parsed(request: dict[str, Json], context: RequestContext, size: int) -> None:
    """Check a parsed request. Refusals have OpenAI's error messages, which the caller translates."""
    if request.get("messages") is None:
        raise WALK.missing_key_refusal("", "messages")
    refuse_unknown_keys(request, context.host.keys, "", context)
    _check_values(request, context)
    if context.host is OPENAI and context.settings.models is None:
        check_chat(request)
    _check_tools(request, context)
    openai_messages.check(request["messages"], context, may_have_long_strings=size > 1_048_576)
    check_response_format(request, context)
    for check in context.host.checks:
        check(request, context)
    tokens, limit = size // 4, context.profile.context_tokens
    if limit is not None and tokens > limit:
        raise RULES["OAC-15"].refuse("messages", limit=limit, tokens=tokens)


def _parse_body(body: bytes) -> dict[str, Json]:
    try:
        request = parse(body)
    except ValueError as why:
        raise RULES["OAC-S01"].refuse(why=why) from why
    if not is_object(request):
        raise RULES["OAC-S01"].refuse(why="the body is not an object")
    return request


def _profile_of(
    request: dict[str, Json], settings: OpenAISettings | CompatibleSettings, host: VendorHost
) -> OpenAIProfile:
    model = request.get("model")
    if not isinstance(model, str) or not model:
        raise RULES["OAC-19"].refuse()
    if settings.models is None:
        return settings.profile or with_thinking_default(host.profile, model, host.name)
    if model not in settings.models:
        raise RULES["OAC-16"].refuse(model=model)
    return settings.models[model]


def _check_values(request: dict[str, Json], context: RequestContext) -> None:
    if (n := request.get("n")) is not None and (not is_integer(n) or n < 1):
        raise RULES["OAC-S02"].refuse("n", path="n")
    _check_stop(request.get("stop"))
    if not context.profile.sampling:
        _check_sampling(request, context.host.fixed)
    for key, (low, high) in _RANGES.items():
        _check_range(key, request.get(key), low, high)
    for key in _FLAGS:
        if request.get(key) is not None:
            WALK.require_type(request[key], bool, key)
    for key in ("max_tokens", "max_completion_tokens"):
        if (limit := request.get(key)) is not None and (not is_integer(limit) or limit < 1):
            raise RULES["OAC-S02"].refuse(key, path=key)
    both = None not in (request.get("max_tokens"), request.get("max_completion_tokens"))
    if both and context.enforces(RULES["OAC-S15"]):
        raise RULES["OAC-S15"].refuse()
    _check_effort(request.get("reasoning_effort"), context.host.efforts)
    _check_options(request, context)


def _check_effort(effort: Json, accepted: tuple[str, ...] | None) -> None:
    if effort is None or accepted is None or effort in accepted:
        return
    path = "reasoning_effort"
    WALK.require_type(effort, str, path)
    raise RULES["OAC-06"].refuse(
        path, path=path, value=effort, values=openai_messages.enumerate_names(accepted)
    )


def _check_sampling(request: dict[str, Json], fixed: Mapping[str, float]) -> None:
    for key in dict.fromkeys((*_SAMPLING, *fixed)):
        only = fixed.get(key)
        if request.get(key) is not None and (only is None or request[key] != only):
            raise RULES["OAC-18"].refuse(key, path=key, only=only)


def _check_stop(stop: Json) -> None:
    if is_array(stop) and len(stop) > _MAX_STOPS:
        raise RULES["OAC-09"].refuse("stop", path="stop", limit=_MAX_STOPS, length=len(stop))
    if stop is not None and not (isinstance(stop, str) or is_array(stop)):
        WALK.require_described_type(stop, str, "stop", "one of a string or array of strings")
    for at, text in enumerate(stop if is_array(stop) else list[Json]()):
        WALK.require_type(text, str, f"stop[{at}]")


def _check_range(key: str, value: Json, low: float, high: float) -> None:
    if value is None:
        return
    if not is_integer(value):
        WALK.require_type(value, float, key)
    if not low <= value <= high:
        raise RULES["OAC-S02"].refuse(key, path=key)


def _check_options(request: dict[str, Json], context: RequestContext) -> None:
    if isinstance(key := request.get("prompt_cache_key"), str) and len(key) > _MAX_CACHE_KEY:
        path = "prompt_cache_key"
        raise RULES["OAC-17"].refuse(path, path=path, limit=_MAX_CACHE_KEY, length=len(key))
    options = request.get("stream_options")
    if options is None:
        return
    WALK.require_type(options, dict, "stream_options")
    if not request.get("stream"):
        raise RULES["OAC-S03"].refuse("stream_options")
    refuse_unknown_keys(
        options, frozenset({"include_usage", "include_obfuscation"}), "stream_options", context
    )


def _check_tools(request: dict[str, Json], context: RequestContext) -> None:
    tools = request.get("tools")
    if tools is None:
        for key in ("tool_choice", "parallel_tool_calls"):
            if request.get(key) is not None:
                raise RULES["OAC-S04"].refuse(key, path=key)
        return
    WALK.require_type(tools, list, "tools")
    if not tools:
        raise RULES["OAC-04"].refuse("tools", path="tools")
    if len(tools) > _MAX_TOOLS:
        raise RULES["OAC-09"].refuse("tools", path="tools", limit=_MAX_TOOLS, length=len(tools))
    for at, tool in unchecked_items(
        tools, key_of_check("OAC tool", context.host, context.mode, context.profile)
    ):
        _check_tool(tool, f"tools[{at}]", context)
    _check_choice(request.get("tool_choice"), tools, context.host)
    if (
        (forced := context.host.forced)
        and _forces_tool(request.get("tool_choice"))
        and does_model_think(request, context.model_profile)
    ):
        choice = request["tool_choice"] if isinstance(request["tool_choice"], str) else "specified"
        raise context.host.rules[forced].refuse("tool_choice", choice=choice)


def _forces_tool(choice: Json) -> bool:
    return is_object(choice) or choice in ("required", "any")


def _check_tool(tool: Json, path: str, context: RequestContext) -> None:
    WALK.require_type(tool, dict, path)
    if context.host.runs_tool(tool):
        return
    which = (
        tool.get("type", "function") if "type" in context.host.optional else WALK.require(tool, "type", path)
    )
    if which not in context.host.tool_types:
        listed = openai_messages.enumerate_names(context.host.tool_types)
        raise RULES["OAC-06"].refuse(f"{path}.type", path=f"{path}.type", value=which, values=listed)
    refuse_unknown_keys(tool, frozenset({"type", which}) | context.host.tool_keys, path, context)
    inner, at = WALK.require(tool, which, path), f"{path}.{which}"
    WALK.require_type(inner, dict, at)
    check_name(WALK.require(inner, "name", at), f"{at}.name", context)
    if which == "function":
        refuse_unknown_keys(inner, _FUNCTION_KEYS, at, context)
        if inner.get("parameters") is not None and (wrong := context.host.schema(inner)):
            raise RULES["OAC-11"].refuse(None, name=inner["name"], why=wrong)


def object_schema_fault(function: dict[str, Json]) -> str | None:
    """Return a description of the fault if a function's parameters are not a schema of type object; otherwise None."""
    schema = function["parameters"]
    if not is_object(schema):
        return f"{schema!r} is not of type 'object', 'boolean'."
    if (got := schema.get("type")) != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{got}\"'."
    if schema.keys() & {"oneOf", "anyOf", "allOf", "enum", "not"}:
        return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    stray = schemas.first_invalid_subschema(schema)
    return None if stray is None else f"{stray} is not of type 'object', 'boolean'."


def _parameters_fault(function: dict[str, Json]) -> str | None:
    if (wrong := object_schema_fault(function)) is not None:
        return wrong
    if function.get("strict"):
        return schemas.find_strict_fault(function["parameters"], is_compatible_host=False)
    return _missing_items_fault(function["parameters"], ())


def _answer_fault(schema: dict[str, Json]) -> str | None:
    return object_schema_fault({"parameters": schema})


def _missing_items_fault(schema: dict[str, Json], context: tuple[str, ...]) -> str | None:
    """Return a description of the first array without `items`, or None. `context` is the schema's path."""
    properties = schema.get("properties")
    for key, inner in properties.items() if is_object(properties) else ():
        if not is_object(inner):
            continue
        where = (*context, "properties", key)
        if inner.get("type") == "array" and "items" not in inner:
            return f"In context={where}, array schema missing items."
        if wrong := _missing_items_fault(inner, where):
            return wrong
    return None


def _check_choice(choice: Json, tools: list[Json], host: VendorHost) -> None:
    if choice is None or choice in host.choices:
        return
    if isinstance(choice, str):
        listed = openai_messages.enumerate_names(host.choices)
        raise RULES["OAC-06"].refuse("tool_choice", path="tool_choice", value=choice, values=listed)
    WALK.require_described_type(choice, dict, "tool_choice", "one of a string or object")
    which = (
        choice.get("type", "function")
        if "type" in host.optional
        else WALK.require(choice, "type", "tool_choice")
    )
    if which == "allowed_tools" or host.runs_tool(choice):
        return
    if which not in ("function", "custom"):
        raise RULES["OAC-06"].refuse(
            "tool_choice.type", path="tool_choice.type", value=which, values="'function' and 'custom'"
        )
    named = WALK.require(choice, which, "tool_choice")
    if not any(is_object(tool.get(which)) and _has_same_name(tool[which], named) for tool in tools):
        raise RULES["OAC-S05"].refuse("tool_choice")


def _has_same_name(tool: dict[str, Json], choice: Json) -> bool:
    return is_object(choice) and tool.get("name") == choice.get("name")


def without_answer_rules(host: VendorHost) -> VendorHost:
    """Return a copy of a host without OpenAI's rules about answer formats, for vendors whose own rules are unknown."""
    return replace(
        host,
        strict=accept_anything,
        answer=accept_anything,
        efforts=None,
        lacks=host.lacks | {"OAC-S14", "OAC-S15"},
    )


OPENAI = VendorHost(
    name="openai_chat",
    rules={**RULES, **OF_MODELS},
    keys=KEYS,
    message_keys=MESSAGE_KEYS,
    parts=PARTS,
    part_keys=frozenset({"prompt_cache_breakpoint"}),
    names=re.compile(NAME),
    tool_types=("function", "custom"),
    schema=_parameters_fault,
    strict=lambda schema, mode: schemas.find_strict_fault(schema, is_compatible_host=mode == "strict"),
    answer=_answer_fault,
    efforts=("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    identity=check_identity,
    sequence=check_sequence,
)


def check_response_format(request: dict[str, Json], context: RequestContext) -> None:
    """Refuse an answer format that the host does not support, or a schema that it does not accept."""
    asked = request.get("response_format")
    if asked is None:
        return
    WALK.require_type(asked, dict, "response_format")
    which = WALK.require(asked, "type", "response_format")
    if which not in _FORMS:
        told = enumerate_names(_FORMS)
        raise RULES["OAC-06"].refuse(
            "response_format.type", path="response_format.type", value=which, values=told
        )
    refuse_unknown_keys(asked, frozenset({"type", "json_schema"}), "response_format", context)
    if (
        which == "json_object"
        and context.enforces(RULES["OAC-S14"])
        and not _mentions_json(request["messages"])
    ):
        raise RULES["OAC-S14"].refuse("messages")
    if which == "json_schema":
        _check_json_schema(WALK.require(asked, "json_schema", "response_format"), context)


def _mentions_json(messages: Json) -> bool:
    return any("json" in text.lower() for _, text in strings_inside(messages))


def _check_json_schema(setting: Json, context: RequestContext) -> None:
    path = "response_format.json_schema"
    WALK.require_type(setting, dict, path)
    refuse_unknown_keys(setting, _KEYS, path, context)
    name = WALK.required_member(setting, "name", str, path)
    if len(name) > _MAX_NAME:
        at = f"{path}.name"
        raise RULES["OAC-10"].refuse(at, path=at, limit=_MAX_NAME, length=len(name), name=name)
    if not _NAME.fullmatch(name):
        raise RULES["OAC-S06"].refuse(f"{path}.name", path=f"{path}.name", name=name)
    schema = WALK.required_member(setting, "schema", dict, path)
    if setting.get("strict") is not None:
        WALK.require_type(setting["strict"], bool, f"{path}.strict")
    if wrong := _schema_fault(schema, context, is_strict=setting.get("strict") is True):
        raise RULES["OAC-S13"].refuse("response_format", name=name, why=wrong)


def _schema_fault(schema: dict[str, Json], context: RequestContext, *, is_strict: bool) -> str | None:
    """Return a description of a fault in an answer schema, or None."""
    if is_strict and (wrong := context.host.strict(schema, context.mode)):
        return wrong
    return context.host.answer(schema)
