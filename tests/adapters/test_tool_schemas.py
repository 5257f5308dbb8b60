"""Check the tool schema sent in each dialect: an object at its root, even for a root union."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from actors import Tool
from actors.adapters.adapter import adapter
from actors.adapters.request import Request, Settings, ToolSpec
from actors.adapters.schemas.rooted import flatten_root
from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.data.persistent import Segments
from actors.core.dialects.dialect import Dialect
from actors.core.schemas.arguments import compile_schema
from actors.core.values.content import Message, Text
from actors.core.values.identity import Binding
from actors.strict.rules import DIALECTS
from actors.testing import validate
from actors.transcripts import History, Ledger, check, dialect, render
from tests.commands.at_scale import extent

STRING: JsonValue = {"type": "string"}
NUMBER: JsonValue = {"type": "number"}
HOST = Binding("b", "d", "https://x.example", "", "m")


def sent_schema(schema: JsonValue) -> tuple[Any, tuple[str, ...]]:  # Any: JSON
    """Return the schema sent to every provider, and its losses."""
    root, lost = flatten_root(dump(schema))
    return parse(root), lost


def request(settings: Settings, profile: Dialect) -> Request:
    return adapter(profile).request(Segments(), settings)


def test_the_arms_of_a_root_union_are_merged_and_their_required_lists_intersected() -> None:
    root, lost = sent_schema(
        {
            "type": "object",
            "properties": {"note": STRING},
            "required": ["note"],
            "oneOf": [
                {"properties": {"kind": {"const": "a"}, "x": STRING}, "required": ["kind", "x"]},
                {"properties": {"kind": {"const": "b"}, "y": NUMBER}, "required": ["kind"]},
                {"type": "null"},
            ],
        }
    )
    assert root == {
        "type": "object",
        "properties": {
            "note": STRING,
            "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]},
            "x": STRING,
            "y": NUMBER,
        },
        "required": ["note", "kind"],
    }
    assert lost == ("oneOf",)


def test_properties_required_by_all_arms_of_a_union_are_required_at_the_root() -> None:
    root, lost = sent_schema(
        {
            "type": "object",
            "allOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"a": {"minLength": 1}, "b": NUMBER}, "required": ["b"]},
            ],
        }
    )
    assert root["properties"] == {"a": {"type": "string", "minLength": 1}, "b": NUMBER}
    assert root["required"] == ["a", "b"]
    assert lost == ()


def test_references_at_the_root_and_in_the_arms_of_a_union_are_followed() -> None:
    root, lost = sent_schema(
        {
            "type": "object",
            "anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
            "$defs": {
                "A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
                "B": {"$ref": "#/$defs/A"},
            },
        }
    )
    assert root["properties"] == {"a": {"$ref": "#/$defs/A"}}
    assert "anyOf" not in root
    assert lost == ()


@pytest.mark.parametrize(
    ("schema", "lost"),
    [
        ({"not": {"required": ["a"]}}, ("not",)),
        ({"enum": [{}]}, ("enum",)),
        ({"anyOf": [{"type": "string"}]}, ("anyOf",)),
        ({"anyOf": []}, ("anyOf",)),
        ({"allOf": [False]}, ("allOf",)),
        ({"$ref": "#"}, ("$ref",)),
        ({"$ref": "https://x.example/s.json"}, ("$ref",)),
        ({"anyOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"$ref": "#/$defs/A"}}}, ("$ref",)),
        ({"allOf": [{"minProperties": 1}, {"minProperties": 2}]}, ("minProperties",)),
        ({"allOf": [{"if": {"required": ["a"]}, "then": {"required": ["b"]}}]}, ("if", "then")),
        ({"anyOf": [{}], "properties": {"a": {"$ref": "#/anyOf/0"}}}, ("$ref",)),
    ],
)
def test_constraints_that_the_provider_cannot_express_are_omitted_and_named(
    schema: dict[str, JsonValue], lost: tuple[str, ...]
) -> None:
    root, named = sent_schema({"type": "object", **schema})
    assert named == lost
    assert root.keys().isdisjoint({"anyOf", "oneOf", "allOf", "not", "enum", "$ref"})


def test_a_union_schema_without_a_type_is_sent_as_an_object_but_validated_unchanged() -> None:
    """The schema is that of a union of models. Only the provider gets a changed schema."""
    union: dict[str, JsonValue] = {
        "oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
        "$defs": {
            "A": {"type": "object", "properties": {"a": STRING}, "required": ["a"]},
            "B": {"type": "object", "properties": {"b": NUMBER}, "required": ["b"]},
        },
    }
    tool = Tool.from_schema("t", "", union, lambda **arguments: arguments)
    root, _ = sent_schema(tool.schema)
    assert (root["type"], root["properties"]) == ("object", {"a": STRING, "b": NUMBER})
    assert tool._check.errors({"a": "x"}) == ()
    assert tool._check.errors({}) != ()
    assert tool._check.errors({"a": "x", "b": 1}) != ()


def test_the_expansion_of_a_schema_that_grows_exponentially_stops_at_a_bound() -> None:
    doubling: dict[str, JsonValue] = {
        f"D{n}": {"anyOf": [{"$ref": f"#/$defs/D{n + 1}"}, {"$ref": f"#/$defs/D{n + 1}"}]} for n in range(30)
    }
    _, lost = sent_schema(
        {"type": "object", "$ref": "#/$defs/D0", "$defs": {**doubling, "D30": {"required": ["a"]}}}
    )
    assert "anyOf" in lost


VALUES = st.sampled_from(["", "a", 1, None, True])
KINDS = st.sampled_from(["string", "number", "boolean", "null"])
MEMBER: st.SearchStrategy[dict[str, JsonValue]] = st.one_of(
    KINDS.map(lambda kind: {"type": kind}), VALUES.map(lambda value: {"const": value}), st.just({})
)
ARM = st.fixed_dictionaries(
    {
        "properties": st.fixed_dictionaries(dict.fromkeys("abc", MEMBER)),
        "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
    }
)
CHOICES = st.dictionaries(
    st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(ARM, min_size=1, max_size=3), max_size=3
)


@settings(
    max_examples=extent(25, 100), suppress_health_check=list(HealthCheck)
)  # the number of arguments that fit is random
@given(arm=ARM, choices=CHOICES, arguments=st.dictionaries(st.sampled_from("abc"), VALUES))
def test_arguments_valid_for_a_tool_are_valid_for_the_sent_schema(
    arm: dict[str, JsonValue], choices: dict[str, JsonValue], arguments: dict[str, JsonValue]
) -> None:
    schema: dict[str, JsonValue] = {"type": "object", **arm, **choices}
    assume(not compile_schema(schema, tool="t").errors(arguments))
    assert not compile_schema(sent_schema(schema)[0], tool="t").errors(arguments)


@pytest.mark.parametrize("name", DIALECTS)
def test_no_provider_rejects_a_tool_with_a_root_union(name: str) -> None:
    """OAC-11, KIM-07 and similar rules. The schema is that of a union of models."""
    arms: JsonValue = [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"required": ["c"]}]
    definitions: JsonValue = {
        "A": {"type": "object", "properties": {"kind": {"const": "a"}, "next": {"$ref": "#/$defs/B"}}},
        "B": {"type": "object", "properties": {"kind": {"const": "b"}, "list": {"items": STRING}}},
    }
    for keyword in ("anyOf", "oneOf", "allOf"):
        schema = dump({"type": "object", keyword: arms, "$defs": definitions})
        rendered = render(History([Message("user", [Text("u")])]), Ledger(), dialect(name), binding=HOST)
        settings = Settings(model="m", tools=(ToolSpec("t", "", schema),))
        body = adapter(dialect(name)).request(rendered._segments, settings, rendered._facts).body
        assert check(body, dialect(name)) == []
        assert validate(body, name) is None


def test_a_reference_unsupported_by_kimi_is_dropped_and_named() -> None:
    """KIM-07."""
    schema = dump({"type": "object", "properties": {"a": {"$ref": "https://x.example/s.json"}}})
    settings = Settings(model="m", tools=(ToolSpec("read", "", schema),))
    assert request(settings, dialect("kimi")).losses == ("schema.$ref",)
    assert request(settings, dialect("openai")).losses == ()


@pytest.mark.parametrize("name", ["openai", "responses", "anthropic", "bedrock", "mistral", "kimi"])
def test_sent_schemas_have_root_properties_and_array_items(name: str) -> None:
    """OAC-11, in the words of several hosts; `tuple[int, str]` of a function gives the array."""
    pair: JsonValue = {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "minItems": 2,
    }
    odd: list[JsonValue] = [
        {"type": "object"},
        {"type": "object", "anyOf": [{"required": ["a"]}], "properties": {"a": {"type": "string"}}},
        {"type": "object", "properties": {"b": pair}},
    ]
    tools = tuple(ToolSpec(f"t{at}", "", dump(schema)) for at, schema in enumerate(odd))
    made = adapter(dialect(name)).request(Segments(), Settings(model="m", tools=tools))
    text = made.body.decode()
    assert '"anyOf":[{"required"' not in text
    assert text.count('"properties"') == 3
    assert text.count('"required":["a"]') == 1
    assert text.count('"items"') == 1


def test_a_schema_that_the_provider_supports_is_sent_unchanged() -> None:
    whole = Json(b'{"type": "object",  "properties":{"a":{"type":"string"}}}')
    made = request(Settings(model="m", tools=(ToolSpec("t", "", whole),)), dialect("anthropic"))
    assert made.body.count(bytes(whole)) == 1
    assert made.losses == ()


def test_kimi_gets_types_in_the_arms_of_a_union_and_references_without_other_keywords() -> None:
    """KIM-07, as observed: no type next to anyOf or $ref, no tuples, no external references."""
    schema: JsonValue = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "additionalProperties": {"$ref": "#/definitions/X"}},
            "b": {"type": "string", "anyOf": [{"minLength": 1}, {"type": "null"}]},
            "c": {"$ref": "#/definitions/X", "type": "string"},
            "e": {"type": "array", "items": [{"type": "string"}]},
            "f": False,
        },
        "definitions": {"X": {"type": "string"}},
    }
    tool = ToolSpec("t", "", dump(schema))
    sent = json.loads(request(Settings(model="m", tools=(tool,)), dialect("kimi")).body)["tools"][0][
        "function"
    ]["parameters"]
    assert sent["properties"] == {
        "a": {"type": "object", "additionalProperties": {"$ref": "#/$defs/X"}},
        "b": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
        "c": {"$ref": "#/$defs/X"},
        "e": {"type": "array", "items": {"anyOf": [{"type": "string"}]}},
        "f": {"type": "null"},
    }
