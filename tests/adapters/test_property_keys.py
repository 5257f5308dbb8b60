"""Check that invalid property keys are renamed in requests and restored in calls."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors import Tool
from actors.adapters.adapter import adapter
from actors.adapters.codec import decode
from actors.adapters.request import Request, Settings, ToolSpec
from actors.adapters.schemas.host import host_schema
from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.data.record import replace
from actors.core.dialects.profiles import PROFILES
from actors.core.schemas.property_keys import property_key, rename_keys
from actors.core.values.content import Message, Text, ToolCall
from actors.core.values.identity import Binding, CallId
from actors.errors import ToolDefinitionError
from actors.strict.rules import DIALECTS
from actors.strict.script import Script
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Turn, validate
from actors.transcripts import History, Ledger, check, dialect, render
from tests.commands.at_scale import share
from tests.runtime_support import assert_prefixes, bodies, runtime_with

KEYS = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
PATTERN = KEYS.pattern
LONG = f"settings__{'x' * 66}"
LIST: JsonValue = {  # anthropics/claude-code#34771, ComposioHQ/composio#3500
    "type": "object",
    "properties": {
        "$top": {"type": "integer"},
        "@microsoft.graph.conflictBehavior": {"type": "string"},
        "a b": {"type": "string"},
        LONG: {"type": "string"},
        "fine": {"type": "string"},
    },
    "required": ["$top"],
}
SEND: JsonValue = {  # QwenLM/qwen-code#10520
    "type": "object",
    "properties": {
        "to": {
            "type": "array",
            "items": {
                "type": "string",
                "pattern": r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@[a-z]{2,}$",
            },
        },
        "day": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
    },
    "required": ["to"],
}
STRAY: JsonValue = {  # smallmain/vscode-unify-chat-provider#162
    "type": "object",
    "properties": {"filePath": {"type": "string"}, "parents": {"type": "array"}, "type": "object"},
    "required": ["filePath"],
}
CLAUDE = {
    "anthropic": "claude-x",
    "bedrock": "us.anthropic.claude-x-v1:0",
    "openrouter": "anthropic/claude-x",
}


def request(schema: JsonValue, name: str, model: str = "m") -> Request:
    """Return the request of a dialect that declares one tool with this schema."""
    spec = ToolSpec("list", "List.", dump(schema))
    history = History([Message("user", [Text("hi")])])
    rendered = render(history, Ledger(), dialect(name))
    return adapter(dialect(name)).request(
        rendered._segments, Settings(model=model, tools=(spec,)), rendered._facts
    )


def sent_schema(made: Request, name: str) -> Any:  # Any: JSON
    """Return the schema that a request declares."""
    body = json.loads(made.body)
    if name == "bedrock":
        return body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"]
    tool = body["tools"][0]
    return tool["input_schema"] if "input_schema" in tool else tool["function"]["parameters"]


@pytest.mark.parametrize("name", CLAUDE)
def test_an_invalid_property_key_is_renamed_in_the_required_list_too(
    name: str,
) -> None:
    made = request(LIST, name, CLAUDE[name])
    schema, keys = sent_schema(made, name), made.keys["list"]
    assert all(map(KEYS.fullmatch, schema["properties"]))
    assert len(schema["properties"]) == 5
    assert "fine" in schema["properties"]
    assert [keys[key] for key in schema["required"]] == ["$top"]
    assert {keys.get(key, key) for key in schema["properties"]} == LIST["properties"].keys()  # type: ignore[index,call-overload,union-attr]  # JSON
    assert made.losses == ()
    assert check(made.body, dialect(name)) == []
    assert validate(made.body, name) is None


@pytest.mark.parametrize(
    ("name", "model"), [("openai_chat", "gpt"), ("bedrock", "amazon.nova-pro-v1:0"), ("vllm", "m")]
)
def test_a_host_that_accepts_any_key_gets_the_original_keys(name: str, model: str) -> None:
    made = request(LIST, name, model)
    assert made.keys == {}
    assert sent_schema(made, name) == LIST


def test_an_invalid_key_gets_the_same_new_name_in_every_process() -> None:
    code = (
        "from actors.core.schemas.property_keys import property_key; "
        f"print(property_key({LONG!r}, {PATTERN!r}), end='')"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == property_key(LONG, PATTERN)


def test_every_reference_to_a_renamed_key_is_updated() -> None:
    inner: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"x y": {"type": "string"}},
        "required": ["x y"],
    }
    schema: JsonValue = {
        "type": "object",
        "properties": {
            "a/b": inner,
            "same": {"$ref": "#/properties/a~1b"},
            "other": {"$ref": "#/properties/a~1b/properties/x%20y"},
            "list": {"type": "array", "items": {"anyOf": [inner, {"$ref": "#/$defs/a b"}]}},
        },
        "$defs": {"a b": {**inner, "propertyNames": {"enum": ["x y", "z"]}}},
        "dependentRequired": {"a/b": ["same", "x y"]},
        "dependentSchemas": {"a/b": inner},
        "discriminator": {"propertyName": "a/b"},
        "default": {"a/b": "is data"},
    }
    made = host_schema(dump(schema), "any", PATTERN)
    names = {own: key for key, own in made.keys.items()}
    xy, ab = names["x y"], names["a/b"]
    renamed = {"type": "object", "properties": {xy: {"type": "string"}}, "required": [xy]}
    assert parse(made.schema) == {
        "type": "object",
        "properties": {
            ab: renamed,
            "same": {"$ref": f"#/properties/{ab}"},
            "other": {"$ref": f"#/properties/{ab}/properties/{xy}"},
            "list": {"type": "array", "items": {"anyOf": [renamed, {"$ref": "#/$defs/a b"}]}},
        },
        "$defs": {"a b": {**renamed, "propertyNames": {"enum": [xy, "z"]}}},
        "dependentRequired": {ab: ["same", xy]},
        "dependentSchemas": {ab: renamed},
        "discriminator": {"propertyName": ab},
        "default": {"a/b": "is data"},
    }


def test_a_renamed_key_never_collides_with_an_original_key() -> None:
    taken = property_key("a b", PATTERN)
    made = host_schema(dump({"type": "object", "properties": {"a b": {}, taken: {}}}), "any", PATTERN)
    assert made.keys == {property_key("a b", PATTERN, 1): "a b"}
    assert len(parse(made.schema)["properties"]) == 2  # type: ignore[index,call-overload,arg-type]  # JSON


def test_patterns_with_lookarounds_are_dropped_for_hosts_that_compile_schemas_to_grammars() -> None:
    for name in ("llama_cpp", "vllm", "ollama"):
        made = request(SEND, name)
        properties = sent_schema(made, name)["properties"]
        assert properties["to"]["items"] == {"type": "string"}
        assert properties["day"]["pattern"] == r"^\d{4}-\d{2}-\d{2}$"
        assert made.losses == ("schema.pattern",)
        assert check(made.body, dialect(name)) == []
        assert validate(made.body, name) is None
    assert sent_schema(request(SEND, "openai_chat"), "openai_chat") == SEND


@pytest.mark.parametrize("pattern", [r"^\(?!b$", r"^(?:a|b)$", r"^\\(a)$", "^a$"])
def test_a_pattern_without_lookarounds_is_kept(pattern: str) -> None:
    schema = dump({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})
    assert host_schema(schema, "plain") == (schema, (), {})


def test_patterns_with_lookarounds_are_dropped_from_an_output_schema_too() -> None:
    form = dump(
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=a)b$"}}, "required": ["a"]}
    )
    made = adapter(dialect("llama_cpp")).prepare(Settings(model="m", output=form))
    assert made.losses == ("output.pattern",)
    assert b"(?=" not in made.request_head.before


@pytest.mark.parametrize("name", DIALECTS)
def test_an_invalid_subschema_is_sent_as_an_empty_schema(name: str) -> None:
    made = request(STRAY, name)
    assert "schema.properties" in made.losses
    assert check(made.body, dialect(name)) == []
    assert validate(made.body, name) is None


@pytest.mark.parametrize(
    ("place", "schema"),
    [
        ("properties.type", STRAY),
        ("properties.a.items", {"type": "object", "properties": {"a": {"type": "array", "items": "string"}}}),
        ("$defs.x", {"type": "object", "$defs": {"x": None}}),
        ("properties.a.anyOf[1]", {"type": "object", "properties": {"a": {"anyOf": [{}, "null"]}}}),
        ("additionalProperties", {"type": "object", "additionalProperties": "no"}),
        ("properties.a.not", {"type": "object", "properties": {"a": {"not": 3}}}),
    ],
)
def test_an_invalid_property_schema_is_rejected_when_its_tool_is_declared(
    place: str, schema: Any
) -> None:  # Any: JSON
    with pytest.raises(ToolDefinitionError, match=re.escape(f"'{place}' is ")) as refused:
        Tool.from_schema("t", "d", schema, lambda **_: None)
    assert "\n" not in str(refused.value)


# ---- generated


def names() -> st.SearchStrategy[str]:
    odd = st.sampled_from(
        ["$top", "a b", "a/b", "a~b", "filter[id]", "", "ä", "x" * 65, "%41", '"', "\\", "type"]
    )
    return odd | st.text(max_size=70).filter(lambda text: "\0" not in text and text.isprintable())


def schemas() -> st.SearchStrategy[dict[str, Any]]:  # Any: JSON
    leaf: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
        [{}, {"type": "string"}, {"type": "integer"}]
    )  # Any: as above
    return st.recursive(leaf, lambda inner: objects(inner) | lists(inner), max_leaves=12).flatmap(
        lambda schema: objects(st.just(schema))
    )


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:  # Any: as above
    made = st.dictionaries(names(), inner, min_size=1, max_size=4)
    return made.map(
        lambda members: {"type": "object", "properties": members, "required": sorted(members)[:2]}
    )


def lists(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:  # Any: as above
    arrays = inner.map(lambda item: {"type": "array", "items": item})
    return arrays | st.lists(inner, min_size=1, max_size=3).map(lambda arms: {"anyOf": arms})


def arguments(schema: dict[str, Any]) -> Any:  # Any: as above
    """Return arguments that name every property of a schema."""
    if "anyOf" in schema:
        return arguments(schema["anyOf"][-1])
    if schema.get("type") == "array":
        return [arguments(schema["items"])] * 2
    if schema.get("type") == "object":
        return {key: arguments(inner) for key, inner in schema["properties"].items()}
    return 'a key: "a b"' if schema.get("type") == "string" else 1


@settings(max_examples=share(960), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schema=schemas())
def test_tool_calls_round_trip_for_any_tool_schema(
    schema: dict[str, Any],
) -> None:
    made = request(schema, "anthropic")
    declared, keys = sent_schema(made, "anthropic"), made.keys.get("list", {})
    assert validate(made.body, "anthropic") is None
    assert len(set(keys.values())) == len(keys)
    native = arguments(declared)
    me = Binding("b", "anthropic", "https://a.example", "", "m")
    call = {"type": "tool_use", "id": "toolu_1", "name": "list", "input": native}
    body = {"type": "message", "role": "assistant", "content": [call], "stop_reason": "tool_use", "usage": {}}
    decoder = decode(dialect("anthropic"), me, stream=False, keys=made.keys)
    decoder.feed(json.dumps(body).encode())
    message = decoder.close()
    (came,) = message.calls
    assert came.arguments == arguments(schema)
    history = History([Message("user", [Text("u")]), message])
    back = render(history, Ledger(), dialect("anthropic"), binding=me).transcript
    assert json.loads(back)[1]["content"][0] == call
    elsewhere = json.loads(render(history, Ledger(), PROFILES["openai_chat"]).transcript)[1]["tool_calls"][0]
    assert json.loads(elsewhere["function"]["arguments"]) == arguments(schema)


@given(
    text=st.recursive(st.text() | st.integers(), lambda inner: st.dictionaries(names(), inner), max_leaves=8)
)
def test_renaming_keys_leaves_all_remaining_bytes_unchanged(text: Any) -> None:  # Any: JSON
    written = Json(json.dumps({"a b": text}, indent=1).encode())
    there = rename_keys(written, {"a b": "a_b_1"})
    assert rename_keys(there, {"a_b_1": "a b"}) == written or b"a_b_1" in bytes(written)
    assert there.startswith(b'{\n "a_b_1": ')


def test_a_call_with_a_duplicate_key_is_sent_back_with_the_original_arguments_of_the_model() -> None:
    me = Binding("b", "anthropic", "https://a.example", "", "m")
    decoder = decode(dialect("anthropic"), me, stream=False, keys={"list": {"a_b_1": "a b"}})
    call = {"type": "tool_use", "id": "toolu_1", "name": "list", "input": {"a_b_1": 1, "a b": 2}}
    decoder.feed(json.dumps({"role": "assistant", "content": [call], "stop_reason": "tool_use"}).encode())
    assert decoder.close().calls[0].arguments == {"a_b_1": 1, "a b": 2}


# ---- a session


def list_files(**given: Any) -> str:  # Any: JSON
    return json.dumps(given)


TOOL = Tool.from_schema("list", "List files.", LIST, list_files)  # type: ignore[arg-type]  # JSON


@pytest.mark.anyio
async def test_the_provider_gets_renamed_keys_and_the_tool_gets_the_original_keys() -> None:
    def answer(body: dict[str, Any]) -> Turn:  # Any: JSON
        if body["messages"][-1]["content"][0]["type"] == "tool_result":
            return Turn(Say("Done."))
        (tool,) = body["tools"]
        return Turn(Call("list", dict.fromkeys(tool["input_schema"]["required"], 3)))

    claude, gpt = AnthropicServer(Script(answer)), OpenAIServer([Turn(Say("Hi."))])
    async with runtime_with(claude=claude, gpt=gpt) as runtime:
        session = await runtime.open("claude", tools=[TOOL])
        assert (await session.ask("List.")).text == "Done."
        assert (await session.ask("Again.")).text == "Done."
        await session.switch("gpt")
        assert (await session.ask("And you?")).text == "Hi."
        ledger = await session.ledger()
    for call_id in ("hist_tool_1", "hist_tool_2"):
        known = ledger.get(CallId(call_id))
        assert known is not None
        assert known.completion is not None
        assert json.loads(str(known.completion.content)) == {"$top": 3}
    assert claude.refusals == gpt.refusals == []
    assert_prefixes(claude)
    (made,) = [block["input"] for block in bodies(claude)[-1]["messages"][1]["content"]]
    assert made == {property_key("$top", PATTERN): 3}
    assert json.loads(bodies(gpt)[-1]["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"$top": 3}


def test_a_call_stores_the_id_and_the_keys_that_it_has_at_its_provider() -> None:
    me = Binding("b", "anthropic")
    seal = ToolCall.sealed_id("x", {"a b": "a_b"}, me)
    call = ToolCall("c1", "list", {"a b": 1}, native=seal)
    assert (call.native_id, call.native_keys) == ("x", {"a b": "a_b"})
    plain = ToolCall("c1", "list", {"a b": 1}, native=ToolCall.sealed_id("x", {}, me))
    assert (plain.native_id, plain.native_keys) == ("x", {})
    assert seal is not None
    broken = ToolCall("c1", "list", native=replace(seal, data=dump("no JSON")))
    assert (broken.native_id, broken.native_keys) == ("", {})
