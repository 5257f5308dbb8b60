"""Check that the strict servers accept the schemas that vendors' SDKs generate."""

from enum import Enum
from typing import Any, Literal

import pydantic
import pytest
from anthropic import transform_schema
from openai.lib._pydantic import to_strict_json_schema

from actors.strict.rules import validate
from tests.rules.answers import answering, in_chat, in_responses, output
from tests.rules.row import encode_request


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Step(pydantic.BaseModel):
    words: str = pydantic.Field(description="What is done.")
    color: Color
    after: Literal["a", "b"] | None


class Sum(pydantic.BaseModel):
    kind: Literal["sum"]
    of: list[float]


class Word(pydantic.BaseModel):
    kind: Literal["word"]
    text: str


class Plan(pydantic.BaseModel):
    steps: list[Step]
    first: Step = pydantic.Field(description="The first of them.")
    value: Sum | Word
    note: str | None = None


class Node(pydantic.BaseModel):
    value: int
    next: "Node | None"


class Bounded(pydantic.BaseModel):
    many: list[int] = pydantic.Field(min_length=2, max_length=4)
    part: float = pydantic.Field(gt=0, le=1)
    name: str = pydantic.Field(pattern="^[a-z]+$")


@pytest.mark.parametrize("made", [Step, Plan, Node, Bounded, Sum])
def test_schemas_generated_by_openais_sdk_are_accepted(made: type[pydantic.BaseModel]) -> None:
    schema = to_strict_json_schema(made)
    assert validate(encode_request(in_chat(schema)), "openai_chat") is None
    assert validate(encode_request(in_responses(schema)), "openai_responses") is None


@pytest.mark.parametrize("made", [Step, Plan, Bounded, Sum])
def test_schemas_generated_by_anthropics_sdk_are_accepted(made: type[pydantic.BaseModel]) -> None:
    schema: dict[str, Any] = transform_schema(made)  # Any: JSON
    assert validate(encode_request(answering(schema)), "anthropic") is None
    assert validate(encode_request(output(schema)), "bedrock") is None
