"""If a provider refuses a schema, it is rewritten and sent again; without a known rewrite, the error names its tool."""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from actors.adapters.refusals import name_refused_tool, refused_schema
from actors.adapters.request import Request
from actors.core.data.persistent import Segments
from actors.core.log.events import EpochBegan, OmittedParameter, RequestSent
from actors.strict.rules.base import Json
from actors.strict.server import LoopbackServer
from actors.testing import Call, OpenAIServer, Say, Script, Status, Turn
from actors.tools import Tool
from tests.runtime_support import log, runtime_with
from tests.scripted import scripted
from tests.strict_hosts import strict_host

KEYS = "tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
GRAMMAR = "Failed to initialize samplers: failed to parse grammar"
SCHEMA: Any = {  # JSON
    "type": "object",
    "properties": {"$top": {"type": "integer"}, "id": {"type": "string", "pattern": "^\\d+$"}},
    "required": ["$top"],
}


def list_files(**given: Any) -> str:  # Any: JSON
    """Return what it was given."""
    return json.dumps(given)


TOOL = Tool.from_schema("list", "List files.", SCHEMA, list_files)


def schemas(body: Json) -> list[Json]:
    """Return the schemas of a body's tools."""
    return [tool["function"]["parameters"] for tool in body.get("tools", ())]


def has_odd_key(body: Json) -> bool:
    return any(not re.fullmatch(r"[\w.-]{1,64}", key) for each in schemas(body) for key in each["properties"])


def refusing(broken: Callable[[Json], bool], message: str) -> Callable[[int, Json], Status | None]:
    return lambda _, request: Status(400, message=message) if broken(request) else None


def answer(body: Json) -> Turn:
    """Call the tool with the keys that the request declares, then say that it is done."""
    if body["messages"][-1]["role"] == "tool":
        return Turn(Say("Done."))
    return Turn(Call("list", dict.fromkeys(schemas(body)[0]["required"], 3)))


def host(broken: Callable[[Json], bool], message: str, vendor: str = "openai_compatible") -> LoopbackServer:
    server = strict_host(vendor, Script(answer))
    server.faults = refusing(broken, message)
    return server


def sent_schemas(server: LoopbackServer) -> list[Json]:
    return [json.loads(exchange.body) for exchange in server.requests]


@pytest.mark.anyio
async def test_a_host_that_refused_property_keys_gets_renamed_keys_and_the_tool_gets_its_original_keys() -> (
    None
):
    server, other = host(has_odd_key, KEYS), OpenAIServer(Script(answer))
    async with runtime_with(a=server, b=other) as runtime:
        session = await runtime.open("a", tools=[TOOL])
        first = await session.ask("List.")
        assert first.text == "Done."
        refused = len(sent_schemas(server)) - 2
        assert refused == 1
        assert (await session.ask("Again.")).text == "Done."
        assert len(sent_schemas(server)) == 5
        assert not any(map(has_odd_key, sent_schemas(server)[1:]))
        assert [(item.kind, item.without) for item in first.refusals] == [("schema", ("schema_keys",))]
        results = [
            message["content"]
            for message in sent_schemas(server)[-1]["messages"]
            if message["role"] == "tool"
        ]
        assert results == ['{"$top": 3}', '{"$top": 3}']
        requests = [event for event in log(runtime, session) if isinstance(event, RequestSent)]
        assert {event.omitted for event in requests[1:]} == {(OmittedParameter("schema_keys"),)}
        assert not any(isinstance(event, EpochBegan) for event in log(runtime, session))
        (fact,) = runtime.stats().learned
        assert 'property_keys = "[a-zA-Z0-9_.-]{1,64}"' in fact.entry
        elsewhere = await runtime.open("b", tools=[TOOL])
        assert (await elsewhere.ask("List.")).text == "Done."
    assert all(map(has_odd_key, sent_schemas(other)))
    prefixes = [body["messages"] for body in sent_schemas(server)[1:]]
    assert all(after[: len(before)] == before for before, after in pairwise(prefixes))


@pytest.mark.anyio
async def test_patterns_are_omitted_after_a_host_rejects_a_pattern() -> None:
    server = host(lambda body: b'"pattern"' in json.dumps(body).encode(), GRAMMAR, "llama_cpp")
    async with scripted(server, tools=[TOOL]) as (_, _, session):
        result = await session.ask("List.")
        assert result.text == "Done."
        assert [(item.without, item.reason) for item in result.refusals] == [
            (("schema_patterns",), f"{GRAMMAR} (tool 'list', key 'id')")
        ]
        assert len(sent_schemas(server)) == 3
        assert (await session.ask("Again.")).text == "Done."
        assert len(sent_schemas(server)) == 5


@pytest.mark.anyio
async def test_a_tool_with_a_lookaround_pattern_works_on_a_host_that_compiles_schemas_to_grammars() -> None:
    fields = {"id": {"type": "string", "pattern": "^(?!0)"}, "day": {"type": "string", "pattern": "^[0-9]$"}}
    schema: Any = {"type": "object", "properties": fields, "required": ["id", "day"]}  # JSON
    answers = [Turn(Call("list", {"id": "a", "day": "Monday"})), Turn(Call("list", {"id": "a", "day": "1"}))]
    server = strict_host("llama_cpp", Script([*answers, Turn(Say("Done."))]))
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[Tool.from_schema("list", "List files.", schema, list_files)])
        result = await session.ask("List.")
    assert (result.text, dict(result.losses)) == ("Done.", {"schema.pattern": 1})
    assert schemas(sent_schemas(server)[0])[0]["properties"] == {
        "id": {"type": "string"},
        "day": fields["day"],
    }
    first, second = (
        message["content"] for message in sent_schemas(server)[-1]["messages"] if message["role"] == "tool"
    )
    assert "day: expected text matching ^[0-9]$" in first
    assert second == '{"id": "a", "day": "1"}'


@pytest.mark.anyio
async def test_a_schema_refusal_without_a_known_rewrite_names_the_tool() -> None:
    words = "Invalid schema for function 'list': schema is odd at properties.id"
    async with scripted(host(lambda body: "tools" in body, words), tools=[TOOL]) as (_, _, session):
        result = await session.ask("List.", check=False)
    assert result.status == "failed"
    assert f"{words} (tool 'list', key 'id')" in result.error
    assert {item.kind for item in result.refusals} == {"transcript"}


def request(*tools: Json) -> Request:
    return Request(
        "/", (), Segments.of(json.dumps({"tools": list(tools)}).encode()), keys={"list": {"top_1": "$top"}}
    )


def function(name: str, **properties: Json) -> Json:
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
    }


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("tools.1: Property keys should match pattern '^[a-z]{1,9}$'", " (tool 'b', key 'X')"),
        ("Invalid schema for function 'a': In context=('properties', 'x'), no items.", " (tool 'a', key 'x')"),
        ("Invalid schema for function 'list': properties.top_1 is odd", " (tool 'list', key '$top')"),
        ("tools[2].function.parameters is not a schema", " (tool 'list')"),
        ("failed to parse grammar", " (tool 'b', key 'p')"),
        ("tools.7.input_schema: JSON schema is invalid", ""),
        ("temperature must be at most 1", ""),
    ],
)  # fmt: skip
def test_a_schema_error_is_reported_with_the_original_names_of_the_tool_and_the_key(
    message: str, told: str
) -> None:
    made = request(
        function("a", x={}), function("b", X={}, p={"items": {"pattern": "^a$"}}), function("list", top_1={})
    )
    assert name_refused_tool(message, made) == message + told


def test_the_tool_and_key_of_a_refused_schema_are_named_in_requests_of_every_family() -> None:
    schema = {"type": "object", "properties": {"x": {}}}
    for tool in (
        {"name": "t", "input_schema": schema},
        {"toolSpec": {"name": "t", "inputSchema": {"json": schema}}},
        {"functionDeclarations": [{"name": "t", "parameters": schema}]},
        {"type": "function", "name": "t", "parameters": schema},
    ):
        assert name_refused_tool("tools.0: schema at properties.x", request(tool)).endswith(
            "(tool 't', key 'x')"
        )


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (KEYS, "schema_keys"),
        (f"The model returned the following errors: {KEYS}", "schema_keys"),
        (GRAMMAR, "schema_patterns"),
        ("JSON schema conversion failed:\nPattern must start with '^' and end with '$'", "schema_patterns"),
        ("Invalid schema for function 'x': pattern '^(?!a)' is not supported", "schema_patterns"),
        ("Lookahead is not allowed in regular expressions", "schema_patterns"),
        ("messages.1.content.0.tool_use.id: String should match pattern '^[a-z]+$'", None),
        ("Invalid schema for function 'x': array schema missing items", None),
    ],
)
def test_the_error_message_of_a_schema_refusal_decides_the_rewrite(message: str, name: str | None) -> None:
    found = refused_schema(message)
    assert (found and found.settings) == (None if name is None else (name,))
