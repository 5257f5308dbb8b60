"""Requests with an output type: no provider refuses them, whatever the type."""

import json
from typing import Any, Literal

import jsonschema_rs
import pydantic
import pytest
from hypothesis import assume, given, settings

from actors.adapters.outputs import named_schema, output_means
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.schemas.closed import close_schema, measure_schema
from actors.core.data.jsonio import Json, JsonValue, dump
from actors.core.dialects.profiles import PROFILES, dialect
from actors.errors import ConfigError
from actors.session.output import Output, output_of
from actors.strict.rules import validate
from tests.commands.at_scale import share
from tests.session.output_types import FORMS, SCHEMAS, TypeWithValue
from tests.session.test_settings import request_with

MODELS = {
    "anthropic": "claude-sonnet-5",
    "bedrock": "anthropic.claude-sonnet-4-5",
    "groq": "openai/gpt-oss-120b",
}
READ = ToolSpec("read", "Read.", Json(b'{"type":"object","properties":{}}'))
ASKED = settings(max_examples=share(120), deadline=None)


def refusals(form: Output[Any]) -> list[tuple[str, bool, str]]:
    """Return the refusals of requests for this output type, in every dialect, with and without tools."""
    found = []
    for name in PROFILES:
        for tools in ((), (READ,)):
            model = MODELS.get(name, "m")
            made = request_with(name, Settings(model=model, output=form.schema, tools=tools))
            if (refusal := validate(made.body, name)) is not None:
                found.append((name, bool(tools), refusal.message))
    return found


@pytest.mark.requirement("PROMISE-1")
@ASKED
@given(FORMS)
def test_no_provider_refuses_a_request_for_a_generated_type(form: TypeWithValue) -> None:
    assert refusals(output_of(form.type)) == []


@pytest.mark.requirement("PROMISE-1")
@ASKED
@given(SCHEMAS)
def test_no_provider_refuses_a_request_for_a_generated_schema(schema: dict[str, Any]) -> None:  # Any: JSON
    try:
        form = output_of(schema)
    except ConfigError:
        assume(False)
    assert refusals(form) == []


@ASKED
@given(FORMS)
def test_a_closed_schema_accepts_every_value_of_its_type(form: TypeWithValue) -> None:
    """Closing a schema only removes unsupported keywords, so dumped values conform to it and parse to equal values."""
    asked, adapter = output_of(form.type), pydantic.TypeAdapter(form.type)
    value = adapter.validate_json(json.dumps(form.value))
    said = adapter.dump_python(value, mode="json", by_alias=True)
    told = said if json.loads(asked.schema).get("properties", {}).keys() != {"value"} else {"value": said}
    read = asked.parse(json.dumps(told), "strict")
    assert isinstance(read, tuple), read
    for made in (close_schema(asked.schema), close_schema(asked.schema, require_all=True)):
        if made is not None:
            assert jsonschema_rs.is_valid(json.loads(made), told), made


class In(pydantic.BaseModel):
    a: int
    b: Literal["x", "y"] = "x"


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    inner: In = pydantic.Field(description="What is in it.")


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str | None = None


class Zoo(pydantic.BaseModel):
    pets: list[Cat | Dog]
    best: Cat | Dog = pydantic.Field(discriminator="kind")
    site: pydantic.AnyUrl | None = None


class Tree(pydantic.BaseModel):
    value: int
    leaves: list["Tree"] = []


@pytest.mark.parametrize("name", ["anthropic", "bedrock", "openai_chat", "gemini", "mistral"])
@pytest.mark.parametrize("asked", [In, Cat, Zoo, list[Zoo], Cat | Dog, In | None], ids=str)
def test_unions_defaults_and_nested_types_use_a_strict_schema(name: str, asked: Any) -> None:  # Any: a type
    form = output_of(asked)
    wanted = Settings(model=MODELS.get(name, "m"), output=form.schema)
    assert output_means(wanted, dialect(name)) == "schema"
    assert named_schema(form.schema)["strict"] is True
    assert validate(request_with(name, wanted).body, name) is None


OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
NULLABLE = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}


@pytest.mark.parametrize(
    ("asked", "is_strict", "said"),
    [
        (Tree, True, "prompt"),
        (dict[str, int], False, "prompt"),
        (Any, False, "prompt"),
        (tuple[int, str], False, "prompt"),
        ({"type": "object"}, False, "prompt"),
        ({"type": "object", "properties": {}}, False, "prompt"),
        (Literal["a", 1], False, "schema"),
        (OPEN, False, "schema"),
        (NULLABLE, True, "schema"),
    ],
    ids=str,
)
def test_a_type_is_not_sent_strictly_if_a_strict_schema_would_change_the_type(
    asked: Any, is_strict: bool, said: str
) -> None:  # Any: a type
    """Only OpenAI accepts recursive types, no provider accepts open objects, and optional members stay optional."""
    form = output_of(asked)
    assert named_schema(form.schema)["strict"] is is_strict
    for name in ("anthropic", "bedrock", "gemini"):
        assert output_means(Settings(model=MODELS.get(name, "m"), output=form.schema), dialect(name)) == said


def test_a_union_of_objects_with_the_same_first_member_is_not_sent_strictly() -> None:
    class One(pydantic.BaseModel):
        name: str
        x: int

    class Two(pydantic.BaseModel):
        name: str
        y: int

    made = close_schema(output_of(One | Two).schema, require_all=True)
    assert made is not None
    assert measure_schema(made).indistinct_choices == 1
    assert named_schema(output_of(One | Two).schema)["strict"] is False
    assert named_schema(output_of(Cat | Dog).schema)["strict"] is True


@pytest.mark.parametrize(("count", "said"), [(24, "schema"), (25, "prompt")])
def test_a_type_with_too_many_optional_members_is_described_in_a_prompt(count: int, said: str) -> None:
    members: dict[str, Any] = {
        f"f{number}": (int, 0) for number in range(count)
    }  # Any: field definitions of pydantic
    form = output_of(pydantic.create_model("Many", **members))
    assert output_means(Settings(model="claude-sonnet-5", output=form.schema), dialect("anthropic")) == said


def test_a_format_that_is_not_a_string_is_dropped_from_a_closed_schema() -> None:
    assert close_schema(Json(b'{"type":"string","format":{"a":1}}')) == b'{"type":"string"}'


@pytest.mark.parametrize("keyword", ["allOf", "not", "if", "patternProperties", "prefixItems", "definitions"])
def test_a_schema_is_not_closed_if_closing_would_change_its_meaning(keyword: str) -> None:
    inner: dict[str, JsonValue] = {"type": "array", "items": {"type": "string"}}
    outer: dict[str, JsonValue] = {"type": "object", "additionalProperties": False}
    assert close_schema(dump({**outer, "properties": {"a": inner}})) is not None
    assert close_schema(dump({**outer, "properties": {"a": {**inner, keyword: {}}}})) is None
    assert close_schema(dump({**outer, "properties": {"a": inner}, keyword: {}})) is None
