"""OpenAI Responses: what `POST /v1/responses` refuses outside the items, and the order of the walk.

Body, model, required parameters, unknown keys, values, tools; then the items (`responses_items`), encrypted
reasoning (`responses_reasoning`) and the size.
"""

import re
from collections.abc import Mapping

from actors.strict.rules import responses_items, responses_reasoning, strict_schema, tool_schemas
from actors.strict.rules.base import Json, Mode, strings, unknown_key
from actors.strict.rules.model_checks import check_responses
from actors.strict.rules.reading import parse
from actors.strict.rules.responses_items import check_type, only, require, stands_on_something
from actors.strict.rules.responses_rules import RULES, ResponsesProfile, ResponsesSettings
from actors.strict.rules.responses_shapes import COUNTED_KEYS, FUNCTION_KEYS, KEYS
from actors.strict.rules.responses_store import ResponsesStore, expanded

_ENCRYPTED = "reasoning.encrypted_content"
_INCLUDES = frozenset(
    {
        _ENCRYPTED,
        "file_search_call.results",
        "web_search_call.results",
        "web_search_call.action.sources",
        "message.input_image.image_url",
        "computer_call_output.output.image_url",
        "code_interpreter_call.outputs",
        "message.output_text.logprobs",
    }
)
_EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
_SAMPLING = ("temperature", "top_p", "top_logprobs")
_RANGES: Mapping[str, tuple[float, float]] = {"temperature": (0, 2), "top_p": (0, 1)}
_NAME = r"^[a-zA-Z0-9_-]+$"
_MAX_NAME = 128
_MAX_FORM_NAME = 64
_FORM_KEYS = frozenset({"type", "name", "description", "schema", "strict"})
_MIN_OUTPUT = 16
_MAX_CACHE_KEY = 64


def validate(
    body: bytes,
    mode: Mode,
    settings: ResponsesSettings,
    store: ResponsesStore | None = None,
    *,
    keys: frozenset[str] = KEYS,
) -> None:
    """Walk one request body.

    Args:
        store: What the host keeps, and so what the body may refer to. A body that is judged alone refers to nothing,
            unless the settings trust signatures: then what it refers to is taken to be kept.
        keys: The parameters of the method, by default those of a request for an answer.

    Raises:
        RuleBroken: At the first rule that is broken.
    """
    request = _parsed(body)
    profile = _profile(request, settings, is_needed=keys != COUNTED_KEYS)
    if request.get("input") is None and not stands_on_something(request):
        raise RULES["OAR-S02"].refused("input", path="input")
    if (key := unknown_key(request, keys)) is not None:
        raise RULES["OAR-S03"].refused(key, path=key)
    _check_values(request, profile)
    if settings.models is None:
        check_responses(request)
    request = request if request.get("input") is not None else {**request, "input": []}
    _check_tools(request)
    _check_text_form(request, mode)
    responses_items.check(request, profile)
    trusts = settings.signatures == "trust"
    items, is_open = expanded(request, store or ResponsesStore(), trusts=trusts)
    responses_items.check_sequence(
        items, mode, profile, (store or ResponsesStore()).made_together, is_open=is_open
    )
    responses_reasoning.check({**request, "input": items}, mode, profile, settings)
    if profile.context_tokens is not None and len(body) // 4 > profile.context_tokens:
        raise RULES["OAR-13"].refused("input")


def _parsed(body: bytes) -> dict[str, Json]:
    try:
        request = parse(body)
    except ValueError as why:
        raise RULES["OAR-S01"].refused(why=why) from why
    if not isinstance(request, dict):
        raise RULES["OAR-S01"].refused(why="the body is not an object")
    return request


def _profile(request: dict[str, Json], settings: ResponsesSettings, *, is_needed: bool) -> ResponsesProfile:
    model = request.get("model")
    if model is None and (request.get("prompt") is not None or not is_needed):
        return settings.profile
    if not isinstance(model, str) or not model:
        raise RULES["OAR-S02"].refused("model", path="model")
    if settings.models is None:
        return settings.profile
    if model not in settings.models:
        raise RULES["OAR-12"].refused("model", model=model)
    return settings.models[model]


def _check_values(request: dict[str, Json], profile: ResponsesProfile) -> None:
    for key in ("store", "stream", "parallel_tool_calls", "background"):
        if request.get(key) is not None:
            check_type(request[key], bool, key, "a boolean")
    if request.get("instructions") is not None:
        check_type(request["instructions"], str, "instructions", "a string")
    for key in _SAMPLING:
        if not profile.sampling and request.get(key) is not None:
            raise RULES["OAR-S10"].refused(key, path=key)
    for key, (low, high) in _RANGES.items():
        _check_range(key, request.get(key), low, high)
    asked = request.get("max_output_tokens")
    if asked is not None and (not isinstance(asked, int) or isinstance(asked, bool) or asked < _MIN_OUTPUT):
        raise RULES["OAR-S13"].refused("max_output_tokens", path="max_output_tokens")
    _check_include(request.get("include"), profile)
    _check_reasoning(request.get("reasoning"))
    for key, limit in (("previous_response_id", None), ("prompt_cache_key", _MAX_CACHE_KEY)):
        _check_text(key, request.get(key), limit)


def _check_text(key: str, value: Json, limit: int | None) -> None:
    if value is None:
        return
    check_type(value, str, key, "a string")
    if limit is not None and len(value) > limit:
        raise RULES["OAR-S07"].refused(key, path=key, limit=limit, length=len(value))


def _check_range(key: str, value: Json, low: float, high: float) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        check_type(value, float, key, "a decimal")
    if not low <= value <= high:
        raise RULES["OAR-S13"].refused(key, path=key)


def _check_include(include: Json, profile: ResponsesProfile) -> None:
    if include is None:
        return
    check_type(include, list, "include", "an array of strings")
    for at, wanted in enumerate(include):
        if not isinstance(wanted, str) or wanted not in _INCLUDES:
            values = ", ".join(repr(name) for name in sorted(_INCLUDES))
            raise RULES["OAR-S04"].refused(f"include[{at}]", value=wanted, values=values)
    if _ENCRYPTED in include and not profile.encrypted:
        raise RULES["OAR-S11"].refused("include")


def _check_reasoning(reasoning: Json) -> None:
    if reasoning is None:
        return
    check_type(reasoning, dict, "reasoning", "an object")
    only(reasoning, frozenset({"effort", "summary", "generate_summary", "context", "mode"}), "reasoning")
    effort = reasoning.get("effort")
    if effort is not None and (not isinstance(effort, str) or effort not in _EFFORTS):
        values = ", ".join(repr(name) for name in sorted(_EFFORTS))
        raise RULES["OAR-S04"].refused("reasoning.effort", value=effort, values=values)


def _check_text_form(request: dict[str, Json], mode: Mode) -> None:
    """Check the form of the answer."""
    text = request.get("text")
    if text is None:
        return
    check_type(text, dict, "text", "an object")
    only(text, frozenset({"format", "verbosity"}), "text")
    _check_word("text.verbosity", text.get("verbosity"), ("low", "medium", "high"))
    form = text.get("format")
    if form is None:
        return
    check_type(form, dict, "text.format", "an object")
    which = require(form, "type", "text.format")
    _check_word("text.format.type", which, ("text", "json_object", "json_schema"))
    only(form, _FORM_KEYS if which == "json_schema" else frozenset({"type"}), "text.format")
    if which == "json_object" and not any("json" in said.lower() for _, said in strings(request["input"])):
        raise RULES["OAR-S15"].refused("input")
    if which == "json_schema":
        _check_form(form, mode)


def _check_word(path: str, word: Json, known: tuple[str, ...]) -> None:
    if word is not None and word not in known:
        raise RULES["OAR-S04"].refused(path, value=word, values=", ".join(map(repr, known)))


def _check_form(form: dict[str, Json], mode: Mode) -> None:
    name, schema = require(form, "name", "text.format"), require(form, "schema", "text.format")
    check_type(name, str, "text.format.name", "a string")
    if len(name) > _MAX_FORM_NAME:
        path = "text.format.name"
        raise RULES["OAR-S07"].refused(path, path=path, limit=_MAX_FORM_NAME, length=len(name))
    if not re.fullmatch(_NAME[1:-1], name):
        raise RULES["OAR-S05"].refused("text.format.name", path="text.format.name", pattern=_NAME)
    check_type(schema, dict, "text.format.schema", "an object")
    if form.get("strict") is not None:
        check_type(form["strict"], bool, "text.format.strict", "a boolean")
    is_strict = form.get("strict") is True
    wrong = strict_schema.fault(schema, copies=mode == "strict") if is_strict else _not_an_object(schema)
    if wrong:
        raise RULES["OAR-S14"].refused("text.format.schema", name=name, why=wrong)


def _not_an_object(schema: dict[str, Json]) -> str | None:
    if schema.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
    if schema.keys() & {"oneOf", "anyOf", "allOf", "enum", "not"}:
        return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    stray = tool_schemas.stray_value(schema)
    return None if stray is None else f"{stray} is not of type 'object', 'boolean'."


def _check_tools(request: dict[str, Json]) -> None:
    tools = request.get("tools")
    tools = [] if tools is None else tools
    check_type(tools, list, "tools", "an array of objects")
    for at, tool in enumerate(tools):
        check_type(tool, dict, f"tools[{at}]", "an object")
        which = require(tool, "type", f"tools[{at}]")
        check_type(which, str, f"tools[{at}].type", "a string")
        if which in ("function", "custom"):
            check_name(require(tool, "name", f"tools[{at}]"), f"tools[{at}].name")
        if which == "function":
            _check_function(tool, f"tools[{at}]")
    _check_choice(request.get("tool_choice"), _declared(request))


def _declared(request: Json) -> list[Json]:
    """Return all tools of a request: its own, those that items declare or found, and those inside namespaces."""
    tools = [*_objects(request.get("tools"))]
    for item in _objects(request["input"]):
        tools += _objects(item.get("tools"))
    return tools + [inner for tool in tools for inner in _objects(tool.get("tools"))]


def _objects(value: Json) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _check_function(tool: dict[str, Json], path: str) -> None:
    only(tool, FUNCTION_KEYS, path)
    if tool.get("description") is not None:
        check_type(tool["description"], str, f"{path}.description", "a string")
    schema = tool.get("parameters")
    if schema is None:
        return
    check_type(schema, dict, f"{path}.parameters", "an object")
    wrong = _not_an_object(schema)
    if wrong is None and tool.get("strict"):
        wrong = strict_schema.fault(schema, copies=False)
    if wrong:
        raise RULES["OAR-S08"].refused(f"{path}.parameters", name=tool["name"], why=wrong)


def check_name(name: Json, path: str) -> None:
    """Refuse a tool name that is empty, too long or has characters beyond letters, digits, `_` and `-`."""
    check_type(name, str, path, "a string")
    if len(name) > _MAX_NAME:
        raise RULES["OAR-S07"].refused(path, path=path, limit=_MAX_NAME, length=len(name))
    if not re.fullmatch(_NAME[1:-1], name):
        raise RULES["OAR-S05"].refused(path, path=path, pattern=_NAME)


def _check_choice(choice: Json, tools: list[Json]) -> None:
    if choice is None or choice in ("none", "auto"):
        return
    if choice == "required":
        if not tools:
            raise RULES["OAR-S09"].refused("tool_choice", name="required")
        return
    if isinstance(choice, str):
        raise RULES["OAR-S04"].refused("tool_choice", value=choice, values="'none', 'auto', and 'required'")
    check_type(choice, dict, "tool_choice", "one of a string or object")
    which = require(choice, "type", "tool_choice")
    if which in ("function", "custom") and not any(
        tool.get("type") == which and tool.get("name") == choice.get("name") for tool in tools
    ):
        raise RULES["OAR-S09"].refused("tool_choice", name=choice.get("name"))
