"""Check requests to OpenAI's `POST /v1/responses` in the provider's order.

This module checks the body, model, required parameters, unknown keys, values and tools, in this order. Then follow the
items (`responses_items`), encrypted reasoning and the size.

Theory of operation of the simulated reasoning. The encrypted content contains the state that the item was bound to when
it was created: the account, the model, the item's id, and a digest of everything before the item. An HMAC protects this
state. So the server need not store anything: when a request returns the encrypted content, the server compares the
state in it with the request. A client may omit the id of the item, but must not change it. The state does not contain
the summary, which clients omit. The digest excludes reasoning, because clients may drop it. It excludes the ids,
statuses and phases of items as well, because a client that stores nothing on the server does not send them back.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from actors.strict.rules import responses_items, schemas
from actors.strict.rules.base import Json, Mode, dump, is_array, is_object, strings_inside
from actors.strict.rules.model_checks import check_responses
from actors.strict.rules.reading import parse
from actors.strict.rules.responses_items import WALK, item_kind, may_omit_input
from actors.strict.rules.responses_shapes import (
    COUNTED_KEYS,
    FUNCTION_KEYS,
    KEYS,
    RULES,
    ResponsesProfile,
    ResponsesSettings,
)
from actors.strict.rules.responses_store import ResponsesStore, as_items, expand
from actors.strict.rules.shapes import ArrayOf, Fields, Maybe, Shape, Then, Word

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
    """Check one request body.

    Args:
        body: The request body.
        mode: The mode of the server.
        settings: The settings of the server.
        store: The stored items of the host, to which the body may refer. Without a store, references are refused,
            unless the settings trust signatures.
        keys: The parameters that the endpoint accepts; by default, those of a request for an answer.

    Raises:
        RuleBroken: At the first broken rule.
    """
    request = _parse_body(body)
    profile = _profile_of(request, settings, is_needed=keys != COUNTED_KEYS)
    if request.get("input") is None and not may_omit_input(request):
        raise RULES["OAR-S02"].refuse("input", path="input")
    WALK.allow_only(request, keys, "")
    WALK.check(request, _VALUES, "", profile)
    if settings.models is None:
        check_responses(request)
    request = request if request.get("input") is not None else {**request, "input": list[Json]()}
    _check_tools(request)
    _check_text_settings(request, mode)
    responses_items.check(request, profile)
    trusts = settings.signatures == "trust"
    items, allows_unknown_calls = expand(request, store or ResponsesStore(), accepts_unknown=trusts)
    responses_items.check_sequence(
        items,
        mode,
        profile,
        (store or ResponsesStore()).are_consecutive,
        allows_unknown_calls=allows_unknown_calls,
    )
    check({**request, "input": items}, mode, profile, settings)
    if profile.context_tokens is not None and len(body) // 4 > profile.context_tokens:
        raise RULES["OAR-13"].refuse("input")


def _parse_body(body: bytes) -> dict[str, Json]:
    try:
        request = parse(body)
    except ValueError as why:
        raise RULES["OAR-S01"].refuse(why=why) from why
    if not is_object(request):
        raise RULES["OAR-S01"].refuse(why="the body is not an object")
    return request


def _profile_of(
    request: dict[str, Json], settings: ResponsesSettings, *, is_needed: bool
) -> ResponsesProfile:
    """Return the profile of the requested model. If `is_needed` is False, the request may omit the model."""
    model = request.get("model")
    if model is None and (request.get("prompt") is not None or not is_needed):
        return settings.profile
    if not isinstance(model, str) or not model:
        raise RULES["OAR-S02"].refuse("model", path="model")
    if settings.models is None:
        return settings.profile
    if model not in settings.models:
        raise RULES["OAR-12"].refuse("model", model=model)
    return settings.models[model]


def _check_sampling(value: Json, path: str, profile: ResponsesProfile) -> None:
    """Refuse a sampling setting for a reasoning model."""
    if not profile.sampling:
        raise RULES["OAR-S10"].refuse(path, path=path)


def _check_number(value: Json, path: str, profile: ResponsesProfile) -> None:
    _check_sampling(value, path, profile)
    if not isinstance(value, int) or isinstance(value, bool):
        WALK.require_type(value, float, path)
    low, high = _RANGES[path]
    if not low <= value <= high:
        raise RULES["OAR-S13"].refuse(path, path=path)


def _check_output_limit(limit: Json, path: str, context: object) -> None:
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < _MIN_OUTPUT:
        raise RULES["OAR-S13"].refuse(path, path=path)


def _check_cache_key(key: str, path: str, context: object) -> None:
    if len(key) > _MAX_CACHE_KEY:
        raise RULES["OAR-S07"].refuse(path, path=path, limit=_MAX_CACHE_KEY, length=len(key))


def _check_include(include: Json, path: str, profile: ResponsesProfile) -> None:
    """Check the parameter `include`, which lists the additional output that a request asks for."""
    WALK.require_described_type(include, list, path, "an array of strings")
    WALK.check(include, ArrayOf(Word(*sorted(_INCLUDES))), path)
    if _ENCRYPTED in include and not profile.encrypted:
        raise RULES["OAR-S11"].refuse(path)


def _check_conversation(conversation: Json, path: str, context: object) -> None:
    if is_object(conversation):
        WALK.optional_member(conversation, "id", str, path)
    else:
        WALK.require_described_type(conversation, str, path, "one of a string or object")


def _nullable(shape: Shape) -> Maybe:
    return Maybe(shape, null=True)


_NUMBER, _FLAG, _ANY = _nullable(Then(object, _check_number)), _nullable(bool), Maybe(object)
_VALUES = Fields(
    {
        **dict.fromkeys(("store", "stream", "parallel_tool_calls", "background"), _FLAG),
        "instructions": _nullable(str),
        "temperature": _NUMBER,
        "top_p": _NUMBER,
        "top_logprobs": _nullable(Then(object, _check_sampling)),
        "max_output_tokens": _nullable(Then(object, _check_output_limit)),
        "include": _nullable(Then(object, _check_include)),
        "reasoning": _nullable(
            Fields(
                {
                    "effort": _nullable(Word(*sorted(_EFFORTS))),
                    **dict.fromkeys(("summary", "generate_summary", "context", "mode"), _ANY),
                }
            )
        ),
        "previous_response_id": _nullable(str),
        "conversation": _nullable(Then(object, _check_conversation)),
        "prompt_cache_key": _nullable(Then(str, _check_cache_key)),
    },
    closed="open",
)
"""The parameters of a request, in the order of their checks. The checks need a `ResponsesProfile` as the context."""


def _check_text_settings(request: dict[str, Json], mode: Mode) -> None:
    """Check the text settings of a request, including the format of the answer."""
    text = request.get("text")
    if text is None:
        return
    WALK.check(text, _TEXT, "text")
    if (form := text.get("format")) is None:
        return
    which = WALK.require(WALK.require_type(form, dict, "text.format"), "type", "text.format")
    if which is not None:
        WALK.check(which, Word("text", "json_object", "json_schema"), "text.format.type")
    WALK.allow_only(form, _FORM_KEYS if which == "json_schema" else frozenset({"type"}), "text.format")
    if which == "json_object" and not any(
        "json" in said.lower() for _, said in strings_inside(request["input"])
    ):
        raise RULES["OAR-S15"].refuse("input")
    if which == "json_schema":
        _check_answer_schema(form, mode)


_TEXT = Fields({"verbosity": _nullable(Word("low", "medium", "high")), "format": _ANY})


def _check_answer_schema(answer_format: dict[str, Json], mode: Mode) -> None:
    name, schema = (WALK.require(answer_format, key, "text.format") for key in ("name", "schema"))
    WALK.require_type(name, str, "text.format.name")
    if len(name) > _MAX_FORM_NAME:
        path = "text.format.name"
        raise RULES["OAR-S07"].refuse(path, path=path, limit=_MAX_FORM_NAME, length=len(name))
    if not re.fullmatch(_NAME[1:-1], name):
        raise RULES["OAR-S05"].refuse("text.format.name", path="text.format.name", pattern=_NAME)
    WALK.require_type(schema, dict, "text.format.schema")
    WALK.optional_member(answer_format, "strict", bool, "text.format")
    is_strict = answer_format.get("strict") is True
    wrong = (
        schemas.find_strict_fault(schema, is_compatible_host=mode == "strict")
        if is_strict
        else _parameters_fault(schema)
    )
    if wrong:
        raise RULES["OAR-S14"].refuse("text.format.schema", name=name, why=wrong)


def _parameters_fault(schema: dict[str, Json]) -> str | None:
    if schema.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
    if schema.keys() & {"oneOf", "anyOf", "allOf", "enum", "not"}:
        return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    stray = schemas.first_invalid_subschema(schema)
    return None if stray is None else f"{stray} is not of type 'object', 'boolean'."


def _check_tools(request: dict[str, Json]) -> None:
    for at, tool in enumerate(WALK.optional_member(request, "tools", list) or ()):
        path = f"tools[{at}]"
        which = WALK.required_member(WALK.require_type(tool, dict, path), "type", str, path)
        if which in ("function", "custom"):
            check_name(WALK.require(tool, "name", path), f"{path}.name")
        if which == "function":
            _check_function(tool, path)
    _check_choice(request.get("tool_choice"), _all_tools(request))


def _all_tools(request: Json) -> list[Json]:
    """Return all tools of a request: its own tools, tools in items, and tools in namespaces."""
    tools = [*_only_objects(request.get("tools"))]
    for item in _only_objects(request["input"]):
        tools += _only_objects(item.get("tools"))
    return tools + [inner for tool in tools for inner in _only_objects(tool.get("tools"))]


def _only_objects(value: Json) -> list[Json]:
    return [item for item in value if is_object(item)] if is_array(value) else []


def _check_function(tool: dict[str, Json], path: str) -> None:
    WALK.allow_only(tool, FUNCTION_KEYS, path)
    WALK.optional_member(tool, "description", str, path)
    schema = WALK.optional_member(tool, "parameters", dict, path)
    if schema is None:
        return
    wrong = _parameters_fault(schema)
    if wrong is None and tool.get("strict"):
        wrong = schemas.find_strict_fault(schema, is_compatible_host=False)
    if wrong:
        raise RULES["OAR-S08"].refuse(f"{path}.parameters", name=tool["name"], why=wrong)


def check_name(name: Json, path: str) -> None:
    """Refuse a tool name that is empty, is too long, or contains characters other than letters, digits, `_` and `-`."""
    WALK.require_type(name, str, path)
    if len(name) > _MAX_NAME:
        raise RULES["OAR-S07"].refuse(path, path=path, limit=_MAX_NAME, length=len(name))
    if not re.fullmatch(_NAME[1:-1], name):
        raise RULES["OAR-S05"].refuse(path, path=path, pattern=_NAME)


def _check_choice(choice: Json, tools: list[Json]) -> None:
    if choice is None or choice in ("none", "auto"):
        return
    if choice == "required":
        if not tools:
            raise RULES["OAR-S09"].refuse("tool_choice", name="required")
        return
    if isinstance(choice, str):
        raise RULES["OAR-S04"].refuse("tool_choice", value=choice, values="'none', 'auto', and 'required'")
    WALK.require_described_type(choice, dict, "tool_choice", "one of a string or object")
    which = WALK.require(choice, "type", "tool_choice")
    if which in ("function", "custom") and not any(
        tool.get("type") == which and tool.get("name") == choice.get("name") for tool in tools
    ):
        raise RULES["OAR-S09"].refuse("tool_choice", name=choice.get("name"))


@dataclass(frozen=True, slots=True)
class _SealedItem:
    """The state to which encrypted reasoning is bound. `before` is a digest of the preceding content."""

    account: str
    model: str
    item: str
    before: str


def encrypt(request: Json, produced: Sequence[Json], item_id: str, settings: ResponsesSettings) -> str:
    """Return the encrypted content of a reasoning item.

    Args:
        request: The request that the response answers.
        produced: The items of the response before the reasoning item.
        item_id: The id of the reasoning item.
        settings: The settings of the host, with its account and secret.
    """
    seal = _sealed_item(request, [*as_items(request["input"]), *produced], item_id, settings)
    payload = dump(asdict(seal))
    return base64.b64encode(_hmac_of(payload, settings) + payload).decode()


def check(request: Json, mode: Mode, profile: ResponsesProfile, settings: ResponsesSettings) -> None:
    """Check the reasoning items of a request whose shape and sequence are valid.

    Raises:
        RuleBroken: At the first broken rule.
    """
    if settings.signatures == "trust":
        return
    items = request["input"]
    for at, item in enumerate(items):
        if item_kind(item) != "reasoning" or not item.get("encrypted_content"):
            continue
        then = _open_content(item["encrypted_content"], settings)
        named = item.get("id") or (then.item if then is not None else "")
        now = _sealed_item(request, items[:at], named, settings)
        if (
            why := _mismatch_reason(then, now, is_bound=profile.prefix_bound, is_strict=mode == "strict")
        ) is not None:
            raise RULES["OAR-09"].refuse("input", id=named, why=why)


def _mismatch_reason(
    sealed: _SealedItem | None, current: _SealedItem, *, is_bound: bool, is_strict: bool
) -> str | None:
    """Return the reason that the provider gives for refusing encrypted reasoning; None if the reasoning is valid."""
    if sealed is None:
        return "Encrypted content could not be decrypted or parsed."
    if sealed.account != current.account:
        return "Encrypted content organization_id did not match the target organization."
    if sealed.item != current.item:
        return "Encrypted content item_id did not match the target item id."
    if is_strict and sealed.model != current.model:
        return "Encrypted content model did not match the target model."
    if is_strict and is_bound and sealed.before != current.before:
        return "Encrypted content prefix did not match the target input."
    return None


def _sealed_item(
    request: Json, preceding_items: Sequence[Json], item_id: str, settings: ResponsesSettings
) -> _SealedItem:
    """Return the state that the encrypted content of a reasoning item must contain."""
    parameters = [request.get("instructions"), request.get("tools")]
    before_item = [_without_ids(item) for item in preceding_items if item_kind(item) != "reasoning"]
    return _SealedItem(settings.account, request["model"], item_id, _digest(dump([parameters, before_item])))


def _without_ids(item: Json) -> Json:
    """Return the parts of an item that the digest of a prefix covers."""
    which = item_kind(item)
    if which == "message":
        return [item["role"], _joined_text(item["content"])]
    return [which, *(item.get(key) for key in ("call_id", "name", "arguments", "input", "output"))]


def _joined_text(content: Json) -> Json:
    """Return a message's content as one string if it contains only text; otherwise return it unchanged."""
    if isinstance(content, str):
        return content
    texts = [part.get("text", part.get("refusal")) for part in content]
    return content if None in texts else "".join(texts)


def _open_content(content: str, settings: ResponsesSettings) -> _SealedItem | None:
    try:
        raw = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return None
    mac, payload = raw[:32], raw[32:]
    if not hmac.compare_digest(mac, _hmac_of(payload, settings)):
        return None
    return _SealedItem(**json.loads(payload))


def _hmac_of(payload: bytes, settings: ResponsesSettings) -> bytes:
    return hmac.new(settings.secret, payload, hashlib.sha256).digest()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
