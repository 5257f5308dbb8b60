"""Check JSON shapes: each kind of fault is reported once, in order, with its path."""

import json
from typing import Any

import pytest

from actors.strict.rules import validate
from actors.strict.rules.base import Json, RuleBroken, ServerRule
from actors.strict.rules.shapes import (
    ArrayOf,
    Fields,
    Maybe,
    OneMember,
    Shape,
    ShapeChecker,
    Tagged,
    Then,
    Word,
)

RULE = ServerRule("T-01", "{fault} at {path}")


class Walk(ShapeChecker):
    """A walk that reports faults with their path."""

    def tagged_path(self, path: str, tag: str) -> str:
        return f"{path}<{tag}>"

    def wrong_type_refusal(self, path: str, wanted: type, value: Json) -> RuleBroken:
        return RULE.refuse(fault=f"no {wanted.__name__}", path=path)

    def wrong_word_refusal(self, path: str, value: Json, shape: Word) -> RuleBroken:
        return RULE.refuse(fault=f"{value!r} not in {shape.values}", path=path)

    def wrong_tag_refusal(self, path: str, value: Json, shape: Tagged) -> RuleBroken:
        return RULE.refuse(fault=f"no tag {value}", path=path)

    def missing_key_refusal(self, path: str, key: str) -> RuleBroken:
        return RULE.refuse(fault="missing", path=self.key_path(path, key))

    def unknown_key_refusal(self, path: str, key: str) -> RuleBroken:
        return RULE.refuse(fault="unknown", path=self.key_path(path, key))

    def key_count_refusal(self, path: str, count: int) -> RuleBroken:
        return RULE.refuse(fault=f"{count} keys", path=path)


def _odd(value: Json, path: str, context: object) -> None:
    if value == context:
        raise RULE.refuse(fault="odd", path=path)


def fault(value: Json, shape: Shape, context: object = None) -> str | None:
    """Return the sentence of the first fault."""
    try:
        Walk().check(value, shape, "v", context)
    except RuleBroken as broken:
        return broken.refusal.message
    return None


LAST = Fields({"a": int}, closed="last")
TAGGED = Tagged("type", {"x": Fields({"type": str, "n": int})}, precheck=lambda value, path, context: None)
ONE = OneMember({"a": int, "b": ArrayOf(str)})


@pytest.mark.parametrize(
    ("value", "shape", "expected"),
    [
        ("x", str, None),
        (1, str, "no str at v"),
        (True, int, "no int at v"),
        (True, bool, None),
        ("c", Word("a", "b"), "'c' not in ('a', 'b') at v"),
        ([], Word("a"), "[] not in ('a',) at v"),
        (1, Word("a", reports_wrong_type=True), "no str at v"),
        ({}, ArrayOf(int), "no list at v"),
        ([1, "x"], ArrayOf(int), "no int at v[1]"),
        ([], Fields({}), "no dict at v"),
        ({"b": 1}, Fields({"a": int}), "unknown at v.b"),
        ({"b": 1}, LAST, "missing at v.a"),
        ({"a": 1, "b": 1}, LAST, "unknown at v.b"),
        ({"a": 1, "b": 1}, Fields({"a": int}, closed="open"), None),
        ({}, Fields({"a": Maybe(int)}), None),
        ({"a": None}, Fields({"a": Maybe(int)}), "no int at v.a"),
        ({"a": None}, Fields({"a": Maybe(int, null=True)}), None),
        ({}, Fields({"a": Word("x")}), "None not in ('x',) at v.a"),
        ({}, Fields({"a": Word("x", reports_wrong_type=True)}), "missing at v.a"),
        ({"a": "x", "b": []}, Fields({"b": int, "a": int}), "no int at v.b"),
        ({"c": 1}, ONE, "unknown at v.c"),
        ({}, ONE, "0 keys at v"),
        ({"a": 1, "b": []}, ONE, "2 keys at v"),
        ({"b": [1]}, ONE, "no str at v.b[0]"),
        ({"a": ""}, OneMember({"a": int}, is_key_in_path=False), "no int at v"),
        ({}, TAGGED, "missing at v.type"),
        ({"type": 1}, TAGGED, "no str at v.type"),
        ({"type": "y"}, TAGGED, "no tag y at v"),
        ({"type": "x"}, TAGGED, "missing at v<x>.n"),
        ({"type": "x", "n": 1}, TAGGED, None),
    ],
)
def test_the_first_fault_of_a_value_is_reported(value: Any, shape: Shape, expected: str | None) -> None:
    assert fault(value, shape) == expected


def test_custom_checks_of_a_shape_run_in_order_and_get_the_context() -> None:
    assert fault("x", Then(str, _odd), "x") == "odd at v"
    assert fault(1, Then(str, _odd), 1) == "no str at v"
    assert fault([1], ArrayOf(str, _odd), [1]) == "odd at v"
    early, late = Fields({"a": str}, precheck=_odd), Fields({"a": str}, check=_odd)
    assert fault({"a": 1}, early, {"a": 1}) == "odd at v"
    assert fault({"a": 1}, late, {"a": 1}) == "no str at v.a"
    assert fault({"a": "x"}, late, {"a": "x"}) == "odd at v"
    assert fault({}, OneMember({"a": int}, precheck=_odd), {}) == "odd at v"
    tagged = Tagged("type", {"x": Fields({"type": int})}, precheck=_odd)
    assert fault({"type": "x"}, tagged, {"type": "x"}) == "odd at v"


def test_values_of_a_wrong_type_are_rejected_without_ending_the_server() -> None:
    user = {"role": "user", "content": "Hi."}
    schema = {"type": "object", "properties": {"a": {"format": {}}}, "additionalProperties": False}
    form = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    thought = {"type": "reasoning", "id": ["x"], "summary": []}
    said = {"type": "message", "role": "assistant", "content": []}
    bodies: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("anthropic", {"model": "m", "max_tokens": 9, "messages": [user], **form}, "ANT-S18"),
        ("openai_responses", {"model": "m", "input": "Hi.", "conversation": []}, "OAR-10"),
        ("openai_responses", {"model": "m", "input": "Hi.", "conversation": {"id": 1}}, "OAR-10"),
        ("openai_responses", {"model": "m", "input": [user, thought, said]}, "OAR-10"),
    )
    for dialect, body, rule in bodies:
        refusal = validate(json.dumps(body).encode(), dialect)
        assert refusal is not None
        assert refusal.rule == rule
