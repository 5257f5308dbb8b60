"""Check that an invalid value is converted only if exactly one reading is valid."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.data.jsonio import JsonValue
from actors.core.schemas.arguments import ArgumentCheck, compile_schema
from actors.core.schemas.readings import MOST_NAMED, MOST_TEXTS, only_repair
from actors.core.schemas.repair import Repair

INTEGER, TEXT, FLAG = {"type": "integer"}, {"type": "string"}, {"type": "boolean"}
INTEGERS = {"type": "array", "items": INTEGER}
NUMBERED = {"type": "object", "properties": {"n": INTEGER}, "required": ["n"], "additionalProperties": False}
LABELLED = {
    "type": "object",
    "properties": {"label": TEXT, "n": INTEGER},
    "required": ["label"],
    "additionalProperties": False,
}
Schema = dict[str, Any]  # Any: JSON


def check(value: Schema) -> ArgumentCheck:
    return compile_schema({"type": "object", "properties": {"x": value}}, tool="t")


@pytest.mark.parametrize(
    ("schema", "said", "meant"),
    [
        (INTEGER, "3", 3),
        (INTEGER, " -3\n", -3),
        ({"type": "number"}, "1e3", 1000.0),
        (FLAG, "true", True),
        ({"type": ["integer", "null"]}, "3", 3),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "3", 3),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "null", None),
        ({"enum": [1, 2]}, "2", 2),
        ({"const": 1}, "1", 1),
        ({"type": "array", "items": TEXT}, '["a"]', ["a"]),
        ({"type": "array", "items": TEXT}, '["1",]', ["1"]),
        (INTEGERS, '["1", "2"]', [1, 2]),
        (INTEGERS, ["1", 2], [1, 2]),
        (NUMBERED, '{"n": "1"}', {"n": 1}),
        ({"anyOf": [NUMBERED, LABELLED]}, {"n": "1"}, {"n": 1}),
        ({"anyOf": [NUMBERED, LABELLED]}, {"label": "1", "n": "1"}, {"label": "1", "n": 1}),
        ({"anyOf": [NUMBERED, INTEGERS]}, "[1]", [1]),
        ({"allOf": [INTEGER, {"minimum": 2}]}, "3", 3),
        ({"anyOf": [INTEGER, {"type": "string", "pattern": "^v"}]}, "3", 3),
    ],
    ids=str,
)
def test_a_string_argument_that_contains_json_of_the_required_type_is_parsed(
    schema: Schema, said: JsonValue, meant: JsonValue
) -> None:
    reading = only_repair({"x": said}, check(schema))
    assert reading is not None
    assert reading.value == {"x": meant}
    assert {each.kind for each in reading.repairs} == {"text"}
    assert all(each.path.startswith("x") for each in reading.repairs)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (INTEGER, "three"),
        (INTEGER, "3.5"),
        (INTEGER, "03"),
        (INTEGER, '"3"'),
        (INTEGER, ""),
        (FLAG, "True"),
        (FLAG, "yes"),
        (FLAG, "1"),
        (TEXT, 3),
        ({"type": "integer", "minimum": 5}, "3"),
        ({"type": "array", "items": TEXT}, "a"),
        ({"type": "array", "items": TEXT}, "['a']"),
        ({"type": "array", "items": TEXT}, '["a"'),
        (NUMBERED, '{"n": 1, "n": 2}'),
        (NUMBERED, {"n": "1", "m": 2}),
        ({"oneOf": [INTEGER, {"type": "number"}]}, "3"),
        ({"not": TEXT}, "3"),
    ],
    ids=str,
)
def test_an_argument_stays_unchanged_if_no_repair_makes_it_valid(schema: Schema, said: JsonValue) -> None:
    assert only_repair({"x": said}, check(schema)) is None


def branches(*kinds: tuple[Schema, Schema]) -> Schema:
    return {
        "anyOf": [
            {"type": "object", "properties": {"a": a, "b": b}, "required": ["a", "b"]} for a, b in kinds
        ]
    }


@pytest.mark.parametrize(
    "schema",
    [
        branches((INTEGER, TEXT), (TEXT, INTEGER)),
        branches((INTEGER, TEXT), (INTEGER, INTEGER)),
        branches((INTEGER, INTEGER), (FLAG, TEXT), (TEXT, INTEGER)),
    ],
)
def test_an_argument_with_several_possible_repairs_is_unchanged(schema: Schema) -> None:
    assert only_repair({"x": {"a": "1", "b": "2"}}, check(schema)) is None


@pytest.mark.parametrize(
    "schema", [TEXT, {"anyOf": [INTEGER, TEXT]}, {"type": ["integer", "string"]}, {}, {"enum": ["3", 3]}]
)
def test_a_string_argument_is_unchanged_if_the_schema_accepts_strings(schema: Schema) -> None:
    reading = only_repair({"x": "3"}, check(schema))
    assert reading is None
    both: Schema = {"type": "object", "properties": {"x": schema, "y": INTEGER}}
    beside = compile_schema(both, tool="t")
    reading = only_repair({"x": "3", "y": "3"}, beside)
    assert reading is not None
    assert reading.value == {"x": "3", "y": 3}
    assert reading.repairs == (Repair("text", "y"),)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["", "1", "true", "[1]", '{"a":1}', "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
KINDS = [INTEGER, TEXT, FLAG, INTEGERS, NUMBERED, {"type": "null"}, {"type": "object"}]
SCHEMAS = st.sampled_from(KINDS) | st.lists(st.sampled_from(KINDS), min_size=1, max_size=3).map(
    lambda kinds: {"anyOf": kinds}
)


@given(SCHEMAS, VALUES)
def test_valid_arguments_are_unchanged_and_repaired_arguments_are_valid(
    schema: Schema, value: object
) -> None:
    compiled, said = check(schema), {"x": value}
    before = json.dumps(said)
    reading = only_repair(said, compiled)  # type: ignore[arg-type]  # JSON
    assert json.dumps(said) == before
    if reading is not None:
        assert not compiled.is_valid(said)  # type: ignore[arg-type]  # JSON
        assert compiled.is_valid(reading.value)


def test_the_search_for_argument_repairs_and_the_list_of_repairs_are_bounded() -> None:
    few = only_repair({"x": ["1"] * 100}, check(INTEGERS))
    assert few is not None
    assert len(few.repairs) == MOST_NAMED
    assert only_repair({"x": ["1"] * (MOST_TEXTS + 1)}, check(INTEGERS)) is None
    either = {"type": "array", "items": branches((INTEGER, TEXT), (TEXT, INTEGER))}
    assert only_repair({"x": [{"a": "1", "b": "2"}] * 50}, check(either)) is None
