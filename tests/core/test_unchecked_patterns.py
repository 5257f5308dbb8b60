"""Check that a pattern that needs backtracking is skipped without changing other checks."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema_rs import FancyRegexOptions, validator_for

from actors import Tool
from actors.core.data.jsonio import JsonValue, dump
from actors.core.schemas.arguments import compile_schema
from actors.core.schemas.json_schema import without_patterns
from actors.errors import ConfigError, ToolDefinitionError
from actors.session.output import Output
from tests.commands.at_scale import share

Schema = dict[str, Any]  # Any: JSON

LOOKAHEAD = "^(?!a)"
LINEAR = "b$"
KEYS = st.sampled_from(["a", "b", "ab", "c"])


def node(children: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    some = st.lists(children, min_size=1, max_size=3)
    by_key = st.dictionaries(KEYS, children, max_size=2)
    by_pattern = st.dictionaries(st.sampled_from([LOOKAHEAD, LINEAR]), children, min_size=1, max_size=2)
    return st.one_of(
        st.fixed_dictionaries({"anyOf": some}),
        st.fixed_dictionaries({"oneOf": some}, optional={"allOf": some}),
        st.fixed_dictionaries({"not": children}),
        st.fixed_dictionaries({"if": children}, optional={"then": children, "else": children}),
        st.fixed_dictionaries({"contains": children}, optional={"maxContains": st.integers(1, 2)}),
        st.fixed_dictionaries({"items": children}, optional={"prefixItems": some}),
        st.fixed_dictionaries(
            {"patternProperties": by_pattern},
            optional={"additionalProperties": st.one_of(children, st.just(False)), "properties": by_key},
        ),
        st.fixed_dictionaries({"properties": by_key, "unevaluatedProperties": st.just(False), "anyOf": some}),
        st.fixed_dictionaries(
            {"prefixItems": some, "contains": children, "unevaluatedItems": st.just(False)}
        ),
        st.fixed_dictionaries({"propertyNames": children, "dependentSchemas": by_key}),
    )


LEAVES = st.sampled_from(
    [{"pattern": LOOKAHEAD}, {"pattern": LINEAR}, {"type": "string"}, {"$ref": "#/$defs/x"}, {"minLength": 2}]
)
SCHEMAS = st.recursive(LEAVES, node, max_leaves=8)
TEXTS = st.sampled_from(["", "a", "b", "ab", "ba", "bb"])
VALUES = st.recursive(
    TEXTS | st.integers(0, 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=share(3200), suppress_health_check=list(HealthCheck), deadline=None)
@given(SCHEMAS, SCHEMAS, VALUES)
def test_a_schema_without_its_uncheckable_patterns_accepts_every_value_of_the_original(
    outer: Schema, inner: Schema, value: JsonValue
) -> None:
    schema = {"$defs": {"x": {"anyOf": [{"pattern": LOOKAHEAD}, {"minLength": 1}]}, "y": inner}, **outer}
    weaker = without_patterns(schema, frozenset({LOOKAHEAD}))
    backtracking = FancyRegexOptions(backtrack_limit=10_000)
    if validator_for(schema, pattern_options=backtracking).is_valid(value):
        assert validator_for(weaker).is_valid(value), weaker
    assert LOOKAHEAD not in str(weaker)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"not": {"pattern": LOOKAHEAD}}, "a"),
        ({"not": {"$ref": "#/$defs/x"}, "$defs": {"x": {"pattern": LOOKAHEAD}}}, "a"),
        ({"if": {"pattern": LOOKAHEAD}, "then": {"type": "integer"}}, "a"),
        ({"contains": {"pattern": LOOKAHEAD}, "maxContains": 1}, ["a", "b"]),
        ({"oneOf": [{"pattern": LOOKAHEAD}, {"pattern": "^a"}], "allOf": [{"minLength": 1}]}, "a"),
        ({"patternProperties": {LOOKAHEAD: {}}, "additionalProperties": False}, {"b": 1}),
        ({"allOf": [{"patternProperties": {LOOKAHEAD: {}}}], "unevaluatedProperties": False}, {"b": 1}),
        ({"not": {"anyOf": [{"pattern": "^b"}], "unevaluatedProperties": False}}, {"a": 1}),
        ({"if": {"items": {"pattern": LOOKAHEAD}}, "unevaluatedItems": False}, ["b"]),
    ],
)
def test_no_schema_keyword_rejects_a_value_because_a_pattern_was_removed(
    schema: Schema, value: JsonValue
) -> None:
    assert validator_for(schema, pattern_options=FancyRegexOptions()).is_valid(value)
    assert validator_for(without_patterns(schema, frozenset({LOOKAHEAD}))).is_valid(value)


@given(SCHEMAS)
def test_a_schema_with_only_checkable_patterns_keeps_its_bytes(schema: Schema) -> None:
    weaker = without_patterns(schema, frozenset())
    if "unevaluated" not in str(schema) and "$ref" not in str(schema):
        assert dump(weaker) == dump(schema)


@pytest.mark.parametrize("pattern", [LOOKAHEAD, "^(?=a)", "(?<!a)$", "(?<=b)$", r"^(.)\1"])
def test_an_uncheckable_pattern_is_left_to_the_tool(pattern: str) -> None:
    fields: Schema = {"a": {"type": "string", "pattern": pattern}, "b": {"type": "string", "pattern": "^b$"}}
    tool = Tool.from_schema("work", "Work.", {"type": "object", "properties": fields}, lambda **_: "done")
    assert tool.schema["properties"] == fields
    assert tool._check.errors({"a": "ab", "b": "b"}) == ()
    assert [error.path for error in tool._check.errors({"a": 1, "b": "c"})] == ["a", "b"]


def test_keys_under_an_uncheckable_key_pattern_do_not_count_as_additional_properties() -> None:
    schema: Schema = {"type": "object", "patternProperties": {"^(?!x)": {}}, "additionalProperties": False}
    assert compile_schema(schema, tool="t").errors({"anything": 1}) == ()


def test_a_catastrophic_pattern_does_not_slow_validation_down() -> None:
    schema: Schema = {"type": "object", "properties": {"a": {"pattern": r"^(?=(a+)+!)(a|aa)+\1$"}}}
    check = compile_schema(schema, tool="slow")
    assert check.errors({"a": "a" * 50_000 + "!"}) == ()  # a backtracking engine would never end


@pytest.mark.parametrize("pattern", ["(?=a", "(", "((a{99}){99}){99}(?=a)"])
def test_a_pattern_that_no_engine_supports_is_rejected(pattern: str) -> None:
    with pytest.raises(ToolDefinitionError, match="regex"):
        compile_schema({"type": "object", "properties": {"a": {"pattern": pattern}}}, tool="t")


def test_uncheckable_patterns_in_an_output_schema_are_rejected() -> None:
    form: Schema = {"type": "object", "properties": {"a": {"pattern": LOOKAHEAD}}}
    with pytest.raises(ConfigError, match="regex"):
        Output(form)
