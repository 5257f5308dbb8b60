"""Check requests to Google's generateContent, and create and check simulated thought signatures.

The order is: the model in the path, the body's JSON, its shape (`gemini_shape`). Then follow roles and parts, tools,
the sequence of calls and responses, signatures, and the size.

Theory of operation. A message is called a content in this API, and a result a response. Responses are paired with the
calls of the previous content, by position. The content after a model content with calls must begin with as many
responses as there are calls. So each content is checked together with the previous content. Successive model contents
count as one, because Google's client library sends the pieces of a stream as separate contents.

A signature contains the model, the account, the route (Gemini API or Vertex AI) and a digest of its call, protected by
an HMAC. So the server need not store anything: when a request returns a signature, the server compares the signed state
with the request. A signature that was moved to a different call is invalid. The signature of a text part does not
depend on the text, because a stream sends it on an empty piece at the end, and clients merge the pieces.

The first call of a model content needs a signature, which may be a placeholder. The mode `strict` requires it in every
content, and accepts no placeholder on other calls. The official host checks only the current turn.
"""

import hashlib
import hmac
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from actors.strict.rules import gemini_shape
from actors.strict.rules.base import Json, Mode, array_at, dump, is_object, object_at
from actors.strict.rules.gemini_rules import NAME, RULES, SENTINELS, GeminiProfile, GeminiSettings
from actors.strict.rules.gemini_shape import decode_base64, parse_request
from actors.strict.rules.model_checks import check_gemini
from actors.strict.rules.models import served_model
from actors.strict.rules.reading import cached_result, key_of_check, parse, unchecked_items

_NAME = re.compile(NAME)
_ROLES = frozenset({"user", "model"})
_DATA = frozenset(
    """text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall
    toolResponse""".split()  # noqa: SIM905  a list would fill a page
)
_JSON = "application/json"
_MIMES = frozenset({"text/plain", _JSON, "application/xml", "application/yaml", "text/x.enum"})
_RANGES = {"temperature": (0, 2), "topP": (0, 1)}
_MAX_STOPS = 5
_NO_CONTENT: Json = {"role": "", "parts": []}


def validate(body: bytes, mode: Mode, settings: GeminiSettings) -> None:
    """Check one request body.

    Raises:
        RuleBroken: At the first broken rule.
    """
    profile = profile_of(settings)
    request = cached_result(
        parse_request, _parse_body(body), accepts_call_ids(settings, profile), settings.vertex
    )
    _check_request(request, mode, profile, settings)
    limit = profile.context_tokens
    if limit is not None and len(body) // 4 > limit:
        raise RULES["GEM-12"].refuse(tokens=len(body) // 4, limit=limit)


def validate_count(body: bytes, settings: GeminiSettings) -> None:
    """Check the body of a token count request: its shape, contents and tools, but not the pairing of calls and
    responses.

    Raises:
        RuleBroken: At the first broken rule.
    """
    profile = profile_of(settings)
    ids = accepts_call_ids(settings, profile)
    counted = parse_request(_parse_body(body), ids, settings.vertex, "CountTokensRequest")
    request = counted.get("generateContentRequest") or counted
    _check_contents(request, settings)
    _check_tools(request)


def accepts_call_ids(settings: GeminiSettings, profile: GeminiProfile) -> bool:
    """Return True if calls and responses may have ids. On Vertex AI, this depends on the model."""
    row = served_model(settings.model)
    return not settings.vertex or (profile.call_ids and (row is None or row.call_ids))


def _check_request(request: Json, mode: Mode, profile: GeminiProfile, settings: GeminiSettings) -> None:
    contents = _check_contents(request, settings)
    names = _check_tools(request)
    _check_config(request, names)
    generation = object_at(request, "generationConfig")
    _check_generation(generation, names, profile, mode)
    if settings.models is None:
        check_gemini(settings.model, object_at(generation, "thinkingConfig"))
    turns = _merge_turns(contents)
    _check_sequence(turns, mode, is_continued=request.get("continuationToken") is not None)
    check(turns, mode, profile, settings)


def _check_contents(request: Json, settings: GeminiSettings) -> Sequence[Json]:
    contents: Sequence[Json] = request.get("contents") or []
    if not contents:
        raise RULES["GEM-07"].refuse("contents")
    for at, content in unchecked_items(contents, key_of_check("GEM content", settings.vertex)):
        _check_content(content, f"contents[{at}]", settings)
    return contents


def profile_of(settings: GeminiSettings) -> GeminiProfile:
    """Return the profile of the model in the request's path.

    Raises:
        RuleBroken: The model does not exist.
    """
    if settings.models is None:
        return settings.profile
    if settings.model not in settings.models:
        raise RULES["GEM-13"].refuse(model=settings.model)
    return settings.models[settings.model]


def _parse_body(body: bytes) -> dict[str, Json]:
    try:
        request = parse(body)
    except ValueError as why:
        raise RULES["GEM-S01"].refuse(why=str(why)) from why
    if not is_object(request):
        raise RULES["GEM-S01"].refuse(why="Root element must be a message.")
    return request


# ---- contents


def _check_content(content: Json, path: str, settings: GeminiSettings) -> None:
    role = content.get("role", "user")
    if role not in _ROLES:
        rule = "GEM-08-vertex" if settings.vertex else "GEM-08"
        raise RULES[rule].refuse(f"{path}.role", role=role)
    if not content.get("parts"):
        raise RULES["GEM-11"].refuse(f"{path}.parts")
    for at, part in enumerate(content["parts"]):
        _check_part(part, f"{path}.parts[{at}]", role)


def _check_part(part: Json, path: str, role: str) -> None:
    held = [key for key in part if key in _DATA and part[key] is not None]
    if not held and part.get("thoughtSignature"):
        return  # the last part of a stream may have only a signature, because the client omitted the empty text
    if len(held) != 1:
        raise RULES["GEM-S12" if held else "GEM-11"].refuse(path, path=path)
    if "functionCall" in part:
        _check_name(part["functionCall"], f"{path}.function_call.name")
        if role != "model":
            raise RULES["GEM-02"].refuse(path)
    if "functionResponse" in part:
        _check_name(part["functionResponse"], f"{path}.function_response.name")
        if role != "user":
            raise RULES["GEM-03"].refuse(path)


def _check_name(value: Json, path: str) -> None:
    name = value.get("name") or ""
    if not name:
        raise RULES["GEM-S03"].refuse(path, path=path)
    if not _NAME.fullmatch(name):
        raise RULES["GEM-S04"].refuse(path, path=path)


def _cached_parts_with(content: Json, key: str) -> list[Json]:
    return cached_result(_parts_with, content, key)


def _parts_with(content: Json, key: str) -> list[Json]:
    """Return the values that the parts of a content have under `key`."""
    return [part[key] for part in content["parts"] if key in part]


def _merge_turns(contents: Sequence[Json]) -> dict[int, Json]:
    """Merge successive model contents. Return the contents by index; a merged content has the lowest of its indexes."""
    turns: dict[int, Json] = {}
    last = -1
    for at, content in enumerate(contents):
        if turns and content.get("role") == turns[last].get("role") == "model":
            turns[last] = {**turns[last], "parts": [*turns[last]["parts"], *content["parts"]]}
        else:
            turns[at], last = content, at
    return turns


def _check_sequence(turns: Mapping[int, Json], mode: Mode, *, is_continued: bool) -> None:
    for (_, before), (at, content) in pairwise([(-1, _NO_CONTENT), *turns.items()]):
        _check_turn(before, content, f"contents[{at}]", mode)
    last = list(turns.values())[-1]
    if _cached_parts_with(last, "functionCall"):
        raise RULES["GEM-01"].refuse()
    if last.get("role", "user") != "user" and not is_continued:
        raise RULES["GEM-S07"].refuse()


def _check_turn(previous: Json, content: Json, path: str, mode: Mode) -> None:
    """Check that a content answers the calls of the previous content."""
    calls, responses = (
        _cached_parts_with(previous, "functionCall"),
        _cached_parts_with(content, "functionResponse"),
    )
    if responses and not calls:
        raise RULES["GEM-03"].refuse(path)
    if any("functionResponse" not in part for part in content["parts"][: len(responses)]):
        raise RULES["GEM-03"].refuse(path)
    if len(calls) != len(responses):
        raise RULES["GEM-01"].refuse(path)
    if _cached_parts_with(content, "functionCall") and previous.get("role", "user") != "user":
        raise RULES["GEM-02"].refuse(path)
    if mode == "strict":
        if previous.get("role", "user") == content.get("role", "user") or not (
            previous.get("role", "user") or content.get("role", "user") == "user"
        ):
            raise RULES["GEM-S06"].refuse(path)
        for at, (call, response) in enumerate(_pair_responses(calls, responses)):
            if call is None or call["name"] != response["name"]:
                where = f"{path}.parts[{at}].function_response"
                raise RULES["GEM-S08"].refuse(where, path=where)


def _pair_responses(calls: Sequence[Json], responses: Sequence[Json]) -> Iterator[tuple[Json | None, Json]]:
    """Yield (call, response) for each response. The call is None if no call has the response's id.

    Responses are matched by position, unless both the response and the call at its position have an id.
    """
    by_id = {call["id"]: call for call in calls if call.get("id")}
    for call, response in zip(calls, responses, strict=True):
        named = response.get("id")
        yield by_id.get(named) if named and call.get("id") else call, response


# ---- tools and generation settings


def _check_tools(request: Json) -> set[str]:
    """Check the tools of a request, and return their names."""
    names: set[str] = set()
    for at, tool in enumerate(array_at(request, "tools")):
        for number, declared in enumerate(array_at(tool, "functionDeclarations")):
            path = f"tools[{at}].function_declarations[{number}]"
            _check_name(declared, f"{path}.name")
            if declared["name"] in names:
                raise RULES["GEM-S05"].refuse(path, name=declared["name"])
            names.add(declared["name"])
            if declared.get("parameters") is not None:
                gemini_shape.check(declared["parameters"], f"{path}.parameters")
    return names


def _check_config(request: Json, tool_names: set[str]) -> None:
    calling = object_at(object_at(request, "toolConfig"), "functionCallingConfig")
    mode = calling.get("mode", "MODE_UNSPECIFIED")
    needs_functions = mode == "ANY" or (mode != "MODE_UNSPECIFIED" and not request.get("tools"))
    if needs_functions and not tool_names:
        raise RULES["GEM-S09"].refuse("tool_config")
    _check_allowed_functions(calling, tool_names)
    thinking = object_at(object_at(request, "generationConfig"), "thinkingConfig")
    if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
        raise RULES["GEM-S11"].refuse("generation_config.thinking_config")


def _check_allowed_functions(calling_config: Json, tool_names: set[str]) -> None:
    allowed = calling_config.get("allowedFunctionNames") or ()
    if allowed and calling_config.get("mode") not in ("ANY", "VALIDATED"):
        raise RULES["GEM-S21"].refuse(_ALLOWED, why="can only be set when the function calling mode is ANY.")
    for name in allowed:
        if name not in tool_names:
            raise RULES["GEM-S21"].refuse(_ALLOWED, why=f"{name} is not among the function declarations.")


_ALLOWED = "tool_config.function_calling_config.allowed_function_names"


def _check_generation(config: Json, tool_names: set[str], profile: GeminiProfile, mode: Mode) -> None:
    for key, (low, high) in _RANGES.items():
        value = config.get(key)
        if value is not None and not low <= value <= high:
            raise RULES["GEM-S16"].refuse(key, name=key, value=value, low=low, high=high)
    if config.get("maxOutputTokens", 1) < 1:
        path = "generation_config.max_output_tokens"
        raise RULES["GEM-S13"].refuse(path, path=path, why="must be positive")
    if len(config.get("stopSequences") or ()) > _MAX_STOPS:
        raise RULES["GEM-S18"].refuse("generation_config.stop_sequences", most=_MAX_STOPS)
    media_type = config.get("responseMimeType", "text/plain")
    if media_type not in _MIMES:
        raise RULES["GEM-S15"].refuse("generation_config.response_mime_type")
    if media_type == _JSON and tool_names and not profile.json_beside_tools:
        raise RULES["GEM-S20"].refuse()
    _check_answer_format(config, media_type, mode)


def _check_answer_format(config: Json, media_type: str, mode: Mode) -> None:
    schema, json = config.get("responseSchema"), config.get("responseJsonSchema")
    if (schema is not None or json is not None) and media_type not in (_JSON, "text/x.enum"):
        raise RULES["GEM-S17"].refuse(
            "generation_config", why="needs a response mime type of application/json"
        )
    if schema is not None and json is not None:
        raise RULES["GEM-S17"].refuse("generation_config", why="is set beside response_json_schema")
    if schema is not None:
        gemini_shape.check(schema, "generation_config.response_schema", is_filled=mode == "strict")
    if json is not None:
        gemini_shape.check_json(json, "")


def sign(part: Json, settings: GeminiSettings) -> str:
    """Return the signature that a host with these settings creates for a part."""
    payload = dump(_signed_data(part, settings))
    return b64encode(_hmac_of(payload, settings) + payload).decode()


def continuation_token(request: Json, settings: GeminiSettings) -> str:
    """Return the continuation token for a paused answer.

    The token is bound to the request and to the previous token.
    """
    asked = [request.get("contents"), request.get("continuationToken")]
    payload = hashlib.sha256(dump(asked[:1])).digest() + hashlib.sha256(dump(asked)).digest()
    return b64encode(_hmac_of(payload, settings) + payload).decode()


def is_continuation(request: Json, settings: GeminiSettings) -> bool:
    """Return True if the continuation token of a request is valid."""
    raw = decode_base64(request["continuationToken"]) or b""
    mac, payload = raw[:-64], raw[-64:]
    is_own = hmac.compare_digest(mac, _hmac_of(payload, settings))
    return is_own and payload[:32] == hashlib.sha256(dump([request.get("contents")])).digest()


def check(turns: Mapping[int, Json], mode: Mode, profile: GeminiProfile, settings: GeminiSettings) -> None:
    """Check the signatures of contents whose shape and sequence are valid. `turns` is the result of `_merge_turns`.

    Raises:
        RuleBroken: At the first broken rule.
    """
    current = 0 if mode == "strict" else _current_turn(turns)
    for at, content in turns.items():
        first = next((part for part in content["parts"] if "functionCall" in part), None)
        if first is not None and profile.signatures and at >= current and not first.get("thoughtSignature"):
            raise RULES["GEM-04"].refuse(name=first["functionCall"]["name"], position=at + 1)
        for part in content["parts"]:
            signature = part.get("thoughtSignature")
            if signature and not _is_valid(signature, part, part is first, mode, settings):
                raise RULES["GEM-05-vertex" if settings.vertex else "GEM-05"].refuse()


def _current_turn(turns: Mapping[int, Json]) -> int:
    """Return the index of the last user content that contains text. The current turn begins there."""
    begun = 0
    for at, content in turns.items():
        if content.get("role", "user") == "user" and any("text" in part for part in content["parts"]):
            begun = at
    return begun


def _is_valid(signature: str, part: Json, is_first: bool, mode: Mode, settings: GeminiSettings) -> bool:
    """Return True if the signature of a part is valid. `is_first` is True for the first call of a content."""
    if signature in SENTINELS:
        return is_first or mode != "strict"
    if settings.signatures == "trust":
        return True
    raw = decode_base64(signature) or b""
    mac, payload = raw[:32], raw[32:]
    if not hmac.compare_digest(mac, _hmac_of(payload, settings)):
        return False
    return bool(json.loads(payload) == _signed_data(part, settings))


def _signed_data(part: Json, settings: GeminiSettings) -> Json:
    """Return the data that a signature is bound to.

    The tool's name is not part of the data, because clients may replace an invalid name with a valid one.
    """
    held = part["functionCall"].get("args") if "functionCall" in part else None
    route = "vertex" if settings.vertex else "api"
    digest = hashlib.sha256(dump(["functionCall" in part, held])).hexdigest()[:16]
    return [settings.model, settings.account, route, digest]


def _hmac_of(payload: bytes, settings: GeminiSettings) -> bytes:
    return hmac.new(settings.secret, payload, hashlib.sha256).digest()
