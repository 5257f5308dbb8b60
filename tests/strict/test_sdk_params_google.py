"""Check that the strict Gemini server accepts each field that Google's SDK writes.

The SDK's own converters write the bodies. They raise ValueError for a field that one of the two APIs does not have.
"""

import base64
import json
import warnings
from collections.abc import Iterator
from enum import Enum
from typing import Any, get_args

import pydantic
import pytest
from google import genai
from google.genai import models, types
from google.oauth2.credentials import Credentials

from actors.core.check import check
from actors.core.dialects.profiles import dialect
from actors.strict.rules import GeminiSettings, validate
from tests.strict.sdk_samples import arms, origin_of

Json = dict[str, Any]  # a body under test

SHAPES = {"GEM-06", "GEM-09", "GEM-10", "GEM-S02"}
"""The rules that refuse a name or a type of value that the host does not know."""
PYTHON_ONLY = {
    # parameters of the SDK, not of the API
    "http_options",
    "should_return_http_response",
    "automatic_function_calling",
    "response_schema",
    "system_instruction",
    "tools",
}
PLAIN: dict[Any, Any] = {str: "x", int: 1, float: 1.0, bool: True, bytes: b"abc", Any: {"x": 1}, object: {}}


def filled_models(kind: Any) -> Iterator[Any]:
    """Yield instances of an SDK model, each with a different field set."""
    for name, field in kind.model_fields.items():
        for value in values(field.annotation):
            try:
                yield kind(**{name: value})
            except pydantic.ValidationError:  # the declared type is too wide
                continue


def values(annotation: Any) -> Iterator[Any]:
    """Yield a value of each arm of a type."""
    for arm in arms(annotation):
        origin = origin_of(arm)
        if arm in PLAIN:
            yield PLAIN[arm]
        elif origin is list:
            yield from ([value] for value in values(get_args(arm)[0]))
        elif origin is dict:
            yield from ({"x": value} for value in values(get_args(arm)[1]))
        elif isinstance(arm, type) and issubclass(arm, Enum):
            yield from list(arm)
        elif isinstance(arm, type) and issubclass(arm, pydantic.BaseModel):
            yield arm()


def client(*, vertex: bool) -> Any:  # the SDK's class, whose attributes the converters read
    credentials = Credentials(token="token")  # type: ignore[no-untyped-call]  # not typed by its maker
    if vertex:
        return genai.Client(vertexai=True, project="p", location="global", credentials=credentials)
    return genai.Client(api_key="key")


CLIENTS = {"gemini": client(vertex=False), "vertex": client(vertex=True)}


def sdk_body(contents: Any, config: Any, api: str) -> Json | None:
    """Return the body that the SDK writes, or None if this API lacks one of its fields."""
    api_client = CLIENTS[api]._api_client
    convert: Any = (
        models._GenerateContentParameters_to_vertex
        if api == "vertex"
        else models._GenerateContentParameters_to_mldev
    )
    asked = types._GenerateContentParameters(model="gemini-4", contents=contents, config=config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            body = convert(api_client, asked)
        except ValueError:
            return None
    return {key: value for key, value in body.items() if not key.startswith("_")}


def to_json(value: Any) -> Any:
    """Return a value as the SDK encodes it in JSON."""
    if isinstance(value, bytes):
        return base64.urlsafe_b64encode(value).decode()
    if isinstance(value, pydantic.BaseModel):
        return to_json(value.model_dump(exclude_none=True, by_alias=True))
    if isinstance(value, dict):
        return {key: to_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [to_json(inner) for inner in value]
    return value.value if isinstance(value, Enum) else value


USER = types.Content(role="user", parts=[types.Part(text="u")])


def config_of(name: str) -> Any:
    """Return a function that sets a field of the request settings."""
    config = types.GenerateContentConfig
    return {
        "Tool": lambda value: config(tools=[value]),
        "ToolConfig": lambda value: config(tool_config=value),
        "FunctionCallingConfig": lambda value: config(
            tool_config=types.ToolConfig(function_calling_config=value)
        ),
        "ThinkingConfig": lambda value: config(thinking_config=value),
        "FunctionDeclaration": lambda value: config(tools=[types.Tool(function_declarations=[value])]),
        "Schema": lambda value: config(response_schema=value),
    }[name]


def part_of(name: str) -> Any:
    """Return a function that sets a field of a part."""
    return {
        "Part": lambda value: value,
        "FunctionCall": lambda value: types.Part(function_call=value),
        "FunctionResponse": lambda value: types.Part(function_response=value),
        "FunctionResponsePart": lambda value: types.Part(
            function_response=types.FunctionResponse(name="read", response={}, parts=[value])
        ),
    }[name]


IN_CONFIG = ("Tool", "ToolConfig", "FunctionCallingConfig", "ThinkingConfig", "FunctionDeclaration", "Schema")
IN_PART = ("Part", "FunctionCall", "FunctionResponse", "FunctionResponsePart")


def requests() -> Iterator[tuple[str, Any, Any]]:
    """Yield contents and settings that contain each field of the SDK types once, with the type name."""
    for config in filled_models(types.GenerateContentConfig):
        if not config.model_fields_set & PYTHON_ONLY:
            yield "GenerateContentConfig", [USER], config
    for name in IN_CONFIG:
        yield from ((name, [USER], config_of(name)(value)) for value in filled_models(getattr(types, name)))
    for name in IN_PART:
        for value in filled_models(getattr(types, name)):
            yield name, [types.Content(role="user", parts=[part_of(name)(value)])], None


@pytest.mark.parametrize("api", ["gemini", "vertex"])
def test_the_strict_server_knows_every_field_that_the_sdk_writes(api: str) -> None:
    seen: dict[str, int] = {}
    for kind, contents, config in requests():
        if (body := sdk_body(contents, config, api)) is None:
            continue
        raw = json.dumps(to_json(body)).encode()
        refusal = validate(raw, api, settings=GeminiSettings(vertex=api == "vertex", signatures="trust"))
        assert refusal is None or refusal.rule not in SHAPES, (kind, refusal, raw)
        seen[kind] = seen.get(kind, 0) + 1
    assert len(seen) == 11
    assert sum(seen.values()) > 100


def assert_accepted(api: str, **more: Any) -> None:  # any key of a request
    """Fail unless the strict server, the host in its other mode, and the judge accept a request."""
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "u"}]}], **more}).encode()
    settings = GeminiSettings(vertex=api == "vertex", signatures="trust")
    assert validate(body, api, settings=settings) is None
    assert validate(body, api, settings=settings, mode="hosted") is None
    assert [str(fault) for fault in check(body, dialect(api))] == []


FUNCTIONS = {"functionDeclarations": [{"name": "read", "parametersJsonSchema": {"type": "object"}}]}
SCHEMA = {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}


@pytest.mark.parametrize("api", ["gemini", "vertex"])
def test_requests_accepted_in_recorded_traffic_are_accepted(api: str) -> None:
    assert_accepted(
        api, toolConfig={"includeServerSideToolInvocations": True}, tools=[{"googleSearch": {}}, FUNCTIONS]
    )
    assert_accepted(api, tools=[{"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/a"]}}])
    assert_accepted(
        api, tools=[{"googleMaps": {}}], toolConfig={"retrievalConfig": {"latLng": {"latitude": 1}}}
    )
    assert_accepted(api, tools=[{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}])
    assert_accepted(
        api, tools=[{"googleSearch": {}}], toolConfig={"functionCallingConfig": {"mode": "VALIDATED"}}
    )
    assert_accepted(api, labels={"team": "a"}, modelArmorConfig={"promptTemplateName": "t"})
    assert_accepted(api, tools=[FUNCTIONS], generationConfig=SCHEMA)


@pytest.mark.parametrize("api", ["gemini", "vertex"])
def test_conversations_accepted_in_recorded_traffic_are_accepted(api: str) -> None:
    user = {"role": "user", "parts": [{"text": "u"}]}
    call = {"functionCall": {"name": "read", "args": {}, "id": "a"}, "thoughtSignature": "c2ln"}
    other = {"functionCall": {"name": "run", "args": {}, "id": "b"}}
    response = {"functionResponse": {"name": "read", "response": {}, "id": "a"}}
    second = {"functionResponse": {"name": "run", "response": {}, "id": "b"}}
    bare = {"functionResponse": {"name": "read", "response": {}}}
    search = [
        {"toolCall": {"id": "s", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["q"]}}},
        {"toolResponse": {"id": "s", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}},
    ]
    settings = GeminiSettings(vertex=api == "vertex", signatures="trust")
    for conversation in (
        [user, {"role": "model", "parts": [{"text": ""}, call]}, {"role": "user", "parts": [response]}],
        [user, {"role": "model", "parts": [call]}, {"role": "user", "parts": [bare]}],
        [user, {"role": "model", "parts": [call, other]}, {"role": "user", "parts": [second, response]}],
        [user, {"role": "model", "parts": [*search, call]}, {"role": "user", "parts": [response]}],
        [{"role": "user", "parts": [{"text": ""}]}],
        [user, {"role": "model", "parts": [{"text": "t"}, {"thoughtSignature": "c2ln"}]}, user],
    ):
        body = json.dumps({"contents": conversation}).encode()
        assert validate(body, api, settings=settings) is None, conversation


def test_an_unknown_field_name_of_a_tool_is_rejected() -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "u"}]}], "tools": [{"fileSerch": {}}]}
    refusal = validate(json.dumps(body).encode(), "gemini")
    assert refusal is not None
    assert refusal.rule == "GEM-10"
