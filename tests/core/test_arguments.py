"""Check the validation of tool arguments and the rejection of hostile schemas."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.data.jsonio import JsonValue, dump, parse
from actors.core.schemas.arguments import (
    MAX_ERRORS,
    ArgumentCheck,
    ArgumentError,
    compile_schema,
    tool_error,
    unknown_tool_error,
)
from actors.errors import ToolDefinitionError

TRIP: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "class": {"enum": ["first", "second"]},
        "stops": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
        },
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def trip() -> ArgumentCheck:
    return compile_schema(TRIP, tool="trip")


def test_valid_arguments_have_no_errors(trip: ArgumentCheck) -> None:
    assert trip.errors({"city": "Oslo", "days": 2, "stops": [{"name": "x"}], "note": None}) == ()


@pytest.mark.requirement("U-05")
def test_every_missing_field_is_named_with_its_path(trip: ArgumentCheck) -> None:
    errors = trip.errors({"stops": [{"name": "a"}, {}]})
    assert [(error.path, error.is_missing) for error in errors] == [
        ("city", True),
        ("days", True),
        ("stops[1].name", True),
    ]


@pytest.mark.requirement("U-05")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"city": 3, "days": 2}, ArgumentError("city", "string", "3")),
        ({"city": "", "days": 2}, ArgumentError("city", "at least 1 characters", '""')),
        ({"city": "x", "days": "2"}, ArgumentError("days", "integer", '"2"')),
        ({"city": "x", "days": 99}, ArgumentError("days", "at most 14", "99")),
        ({"city": "x", "days": 2, "class": 3}, ArgumentError("class", 'one of "first", "second"', "3")),
        ({"city": "x", "days": 2, "town": 1}, ArgumentError("town", "no such field", "1")),
        ({"city": "x", "days": 2, "note": 1}, ArgumentError("note", "string or null", "1")),
        ({"city": "x", "days": 2, "stops": {}}, ArgumentError("stops", "array", "{}")),
        ([], ArgumentError("", "object", "[]")),
        (None, ArgumentError("", "object", "null")),
    ],
)
def test_an_argument_error_names_the_path_the_expected_type_and_the_value(
    trip: ArgumentCheck, arguments: JsonValue, error: ArgumentError
) -> None:
    assert trip.errors(arguments) == (error,)


@pytest.mark.requirement("U-05")
def test_the_tool_error_lists_missing_and_wrong_fields(trip: ArgumentCheck) -> None:
    assert tool_error("trip", trip.errors({"days": "2"})) == {
        "tool_error": {
            "kind": "invalid_arguments",
            "tool": "trip",
            "missing": ["city"],
            "wrong": [{"path": "days", "expected": "integer", "got": '"2"'}],
            "message": (
                'trip was not run. missing: city; days: expected integer, got "2". '
                "Call it again with corrected arguments."
            ),
        }
    }


def test_the_error_about_arguments_that_are_not_an_object_quotes_them_verbatim() -> None:
    value = tool_error("trip", (), '{"city": "Os')["tool_error"]
    assert isinstance(value, dict)
    assert value["kind"] == "malformed_arguments"
    assert value["wrong"] == [{"path": "", "expected": "one JSON object", "got": '{"city": "Os'}]


def test_an_unknown_tool_error_suggests_the_nearest_name() -> None:
    near = unknown_tool_error("wether", ["weather", "time"])["tool_error"]
    far = unknown_tool_error("launch", ["weather", "time"])["tool_error"]
    none = unknown_tool_error("launch", [])["tool_error"]
    assert isinstance(near, dict)
    assert isinstance(far, dict)
    assert isinstance(none, dict)
    assert near["kind"] == "unknown_tool"
    assert near["message"] == "There is no tool wether. Did you mean weather?"
    assert far["message"] == "There is no tool launch. Tools: weather, time."
    assert none["message"] == "There is no tool launch. Tools: none."


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["city", "days", "stops", "name", "note", "x"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(values)
def test_argument_errors_are_always_deterministic_json_of_bounded_size(value: JsonValue) -> None:
    check = compile_schema(TRIP, tool="trip")
    errors = check.errors(value)
    text = dump(tool_error("trip", errors, "raw"))
    assert parse(text) == tool_error("trip", check.errors(value), "raw")
    assert len(errors) <= MAX_ERRORS
    assert len(text) <= 16_000


def test_the_number_of_reported_errors_is_bounded(trip: ArgumentCheck) -> None:
    arguments: dict[str, JsonValue] = {f"{'x' * 1000}{n}": "y" * 1000 for n in range(200)}
    arguments["stops"] = [{} for _ in range(10_000)]
    errors = trip.errors(arguments)
    assert len(errors) == MAX_ERRORS
    assert len(dump(tool_error("t" * 10_000, errors))) <= 16_000


def test_errors_are_sorted_by_path_not_by_schema_order() -> None:
    fields: dict[str, JsonValue] = {name: {"type": "string"} for name in "cab"}
    check = compile_schema({"type": "object", "properties": fields}, tool="t")
    assert [error.path for error in check.errors({"b": 1, "c": 1, "a": 1})] == ["a", "b", "c"]


def test_the_error_for_long_invalid_json_quotes_only_part_of_the_json() -> None:
    assert len(dump(tool_error("t", (), "x" * 1_000_000))) < 1000


def test_hostile_text_reaches_the_model_as_plain_json() -> None:
    text = dump(tool_error("a\ud800", (), "\ud800" * 500))
    assert parse(text)
    assert len(text) < 2000


def test_the_order_of_errors_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "from actors.core.data.jsonio import dump\n"
        "from actors.core.schemas.arguments import compile_schema, tool_error\n"
        f"check = compile_schema({TRIP!r}, tool='trip')\n"
        "print(dump(tool_error('trip', check.errors({k: 1 for k in 'zyxwabc'} | {'class': 3}))))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1


# --- schemas from strangers --------------------------------------------------------------------------


@pytest.fixture
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """Listen on a loopback port and record connections."""
    hits: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                hits.append(b"hit")

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield server.getsockname()[1], hits
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(timeout=60)


@pytest.mark.parametrize(
    "reference",
    [
        {"$ref": "http://127.0.0.1:{port}/schema"},
        {"allOf": [{"$ref": "http://127.0.0.1:{port}/a#/b"}]},
        {"properties": {"a": {"$ref": "http://localhost:{port}/a"}}},
        {"$id": "http://127.0.0.1:{port}/base", "properties": {"a": {"$ref": "other"}}},
        {"properties": {"a": {"$dynamicRef": "http://127.0.0.1:{port}/a"}}},
        {"$schema": "http://127.0.0.1:{port}/meta"},
    ],
)
def test_a_network_reference_is_rejected_without_a_connection(
    reference: dict[str, JsonValue], listener: tuple[int, list[bytes]]
) -> None:
    port, hits = listener
    text = dump({"type": "object", **reference}).replace(b"{port}", str(port).encode())
    schema = parse(text)
    assert isinstance(schema, dict)
    with pytest.raises(ToolDefinitionError, match="Tool 'spy' has an unusable schema"):
        compile_schema(schema, tool="spy")
    assert hits == []


def test_a_file_reference_is_rejected_without_reading_the_file(tmp_path: Any) -> None:  # Any: pytest's path
    secret = tmp_path / "secret.json"
    secret.write_text('{"type": "object", "required": ["the-secret"]}')
    with pytest.raises(ToolDefinitionError) as refused:
        compile_schema({"type": "object", "allOf": [{"$ref": secret.as_uri()}]}, tool="spy")
    assert "the-secret" not in str(refused.value)


def formula(levels: int, leaf: JsonValue) -> JsonValue:
    for _ in range(levels):
        leaf = {"of": leaf}
    return leaf


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_errors_inside_recursive_unions_are_listed_only_up_to_a_nesting_depth(keyword: str) -> None:
    """Each level has two alternatives that contain the next level. Validity itself is decided at any depth."""
    member: JsonValue = {"of": {"$ref": "#/$defs/formula"}}
    arms: JsonValue = [
        {"type": "object", "properties": member, "required": ["of"]},
        {"type": "object", "properties": member, "required": ["of"], "minProperties": 2},
        {"type": "number"},
    ]
    check = compile_schema(
        {"type": "object", "$defs": {"formula": {keyword: arms}}, "properties": member}, tool="t"
    )
    assert check.errors(formula(11, 1)) == ()
    assert [error.path for error in check.errors(formula(3, "x"))] == ["of"]
    (error,) = check.errors(formula(11, "x"))
    assert (error.path, "nested too deeply" in error.expected) == ("", True)


def test_errors_in_a_tree_are_reported_at_any_depth() -> None:
    tree: dict[str, JsonValue] = {"type": "object", "properties": {"of": {"$ref": "#"}}}
    (error,) = compile_schema(tree, tool="t").errors(formula(30, "x"))
    assert error.path == ".".join(["of"] * 30)


def doubling_schema(levels: int, key: str = "$ref", by: str | None = None) -> dict[str, JsonValue]:
    """Return a schema that expands to 2**levels parts, referenced by the keyword `by` or by path."""
    name = {None: "#/$defs/d{}", "$id": "urn:d{}"}.get(by, "#d{}")
    if key == "$dynamicRef":
        name, by = "#d{}", "$dynamicAnchor"
    defs: dict[str, JsonValue] = {
        f"d{n}": {
            **({by: f"urn:d{n}" if by == "$id" else f"d{n}"} if by else {}),
            **({"allOf": [{key: name.format(n + 1)}, {key: name.format(n + 1)}]} if n < levels else {}),
        }
        for n in range(levels + 1)
    }
    return {"type": "object", "$defs": defs, key: name.format(0)}


def reference_chain(levels: int, *, backwards: bool = False) -> dict[str, JsonValue]:
    """Return a schema with a chain of `levels` references."""
    numbers = range(levels, -1, -1) if backwards else range(levels + 1)
    defs: dict[str, JsonValue] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}]} if n < levels else {} for n in numbers
    }
    return {"type": "object", "$defs": defs, "$ref": "#/$defs/d0"}


def unevaluated_schema(levels: int) -> dict[str, JsonValue]:
    """Return a schema in which each level evaluates the next one twice."""
    schema: dict[str, JsonValue] = {"properties": {"a": {}}}
    for _ in range(levels):
        schema = {"allOf": [schema], "unevaluatedProperties": False}
    return {"type": "object", **schema}


def nested_schema(levels: int) -> dict[str, JsonValue]:
    schema: dict[str, JsonValue] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return {"type": "object", **schema}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({}, "its type is None, but providers accept only 'object'"),
        ({"type": "array"}, "its type is 'array'"),
        ({"type": ["object", "null"]}, "its type is"),
        ({"type": "object", "properties": {"a": {"type": "objekt"}}}, "objekt"),
        ({"type": "object", "properties": []}, "not of type"),
        ({"type": "object", "required": "a"}, "not of type"),
        ({"type": "object", "properties": {"a": {"minimum": "1"}}}, "not of type"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}, "does not exist"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "regex"),
        ({"type": "object", "properties": {"a": {"pattern": "(?=a"}}}, "regex"),
        ({"type": "object", "properties": {"a": {"pattern": "((a{99}){99}){99}"}}}, "regex"),
        (
            {"type": "object", "patternProperties": {f"^{n}$": {} for n in range(300)}},
            "300 patterns, but at most 256",
        ),
        ({"type": "object", "properties": {"a": {"pattern": "a|" * 2049}}}, "a pattern of 4098 characters"),
        ({"type": "object", "patternProperties": {"a|" * 2049: {}}}, "a pattern of 4098 characters"),
        (
            {"type": "object", "properties": {"a": {"anyOf": [{}] * 10_000}}},
            "10003 subschemas, but at most 10000",
        ),
        (reference_chain(500), "nest more than 160"),
        (reference_chain(500, backwards=True), "nest more than 160"),
        (unevaluated_schema(20), "expand to more than"),
        (doubling_schema(30, key="$dynamicRef"), "it uses $dynamicRef"),
        (doubling_schema(30, key="$ref", by="$dynamicAnchor"), "expand to more than"),
        (doubling_schema(30, key="$ref", by="$id"), "another schema with an $id"),
        ({"type": "object", "$id": "urn:a", "properties": {"a": {"$ref": "urn:a"}}}, "it refers to 'urn:a'"),
        ({"type": "object", "$recursiveRef": "#"}, "it uses $recursiveRef"),
        ({"type": "object", "description": "x" * 300_000}, "bytes of JSON"),
        (nested_schema(60), "nested deeper"),
        (nested_schema(5000), "recursion"),
        (doubling_schema(30), "expand to more than"),
        ({"type": "object", "default": float("nan")}, "float"),
        ({"type": "object", "maximum": 2**70}, "64 bits"),
        ({"type": "object", "default": object()}, "not JSON serializable"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_invalid_schema_is_rejected_with_a_one_line_error(
    schema: dict[str, JsonValue], reason: str
) -> None:
    with pytest.raises(ToolDefinitionError) as refused:
        compile_schema(schema, tool="odd")
    message = str(refused.value)
    assert message.startswith("Tool 'odd' has an unusable schema: ")
    assert reason in message
    assert "\n" not in message
    assert len(message) < 500


@pytest.mark.parametrize("schema", [None, [], "object", 5, [("type", "object")]])
def test_a_schema_must_be_an_object(schema: Any) -> None:  # Any: any schema
    with pytest.raises(
        ToolDefinitionError,
        match=f"'odd' has an unusable schema: it must be an object, not {type(schema).__name__}",
    ):
        compile_schema(schema, tool="odd")


@pytest.mark.parametrize("text", ["a\x1b[31m(", "\r\n(", "(\u202e", "(\x9b2J"])
def test_schema_text_in_errors_has_no_control_characters_or_newlines(text: str) -> None:
    for schema in (
        {"pattern": text},
        {"$ref": text},
        {"$ref": f"#{text}"},
        {"type": text},
        {"$schema": text},
    ):
        hostile: dict[str, JsonValue] = {
            "type": "object",
            "properties": {"a": dict(schema)},
            "$schema": schema.get("$schema", _DRAFT),
        }
        with pytest.raises(ToolDefinitionError) as refused:
            compile_schema(hostile, tool="odd" * 1000)
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 600


_DRAFT = "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(x+x+)+y", "^([a-z]+)*$", "(.*a){20}", "^(\\w+\\s?)*$"]
)
def test_no_schema_pattern_causes_catastrophic_backtracking(pattern: str) -> None:
    check = compile_schema({"type": "object", "properties": {"a": {"pattern": pattern}}}, tool="slow")
    check.errors({"a": "a" * 50_000 + "!"})  # a backtracking engine would never end


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "allOf": [{"$ref": "#"}]},
        {"type": "object", "$ref": "#"},
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
        {"type": "object", "$anchor": "me", "properties": {"next": {"$ref": "#me"}}},
    ],
)
def test_a_schema_may_refer_to_itself(schema: dict[str, JsonValue]) -> None:
    assert compile_schema(schema, tool="tree").errors({"next": {"next": {}}}) == ()


@pytest.mark.parametrize(
    "schema", [reference_chain(30), unevaluated_schema(8), doubling_schema(8), nested_schema(40)]
)
def test_a_schema_within_the_bounds_compiles_and_validates(schema: dict[str, JsonValue]) -> None:
    assert compile_schema(schema, tool="t").errors({}) == ()


def test_a_property_may_have_the_name_of_a_json_schema_keyword() -> None:
    names = ("$id", "id", "$ref", "pattern", "$dynamicRef", "unevaluatedProperties")
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
    }
    assert compile_schema(schema, tool="t").errors({"id": "x", "$ref": "y"}) == ()


def test_changing_a_schema_after_compilation_has_no_effect() -> None:
    schema: dict[str, JsonValue] = {"type": "object", "required": ["a"]}
    check = compile_schema(schema, tool="t")
    schema["required"] = []
    assert len(check.errors({})) == 1


def test_importing_the_arguments_module_does_not_import_jsonschema_rs() -> None:
    program = "import actors.core.schemas.arguments, sys; sys.exit('jsonschema_rs' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
