"""Check that malformed arguments are repaired only without guessing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.data.jsonio import JsonObject
from actors.core.schemas.repair import read_arguments

TEXTS = st.text(st.characters(exclude_categories=["C"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)


def repaired(raw: str) -> JsonObject | None:
    """Return the object recovered from malformed arguments."""
    read = read_arguments(raw)
    return None if read is None else read[0]


@pytest.mark.requirement("U-05")
@given(OBJECTS, st.sampled_from(["", "json"]))
def test_code_fences_and_trailing_commas_are_ignored(value: dict[str, object], tag: str) -> None:
    text = json.dumps(value)
    for raw in (f"```{tag}\n{text}\n```", f"  ```{tag}\n{text}\n```\n"):
        found = repaired(raw)
        assert found is not None
        assert json.loads(found) == value
    if value:
        found = repaired(f"{text[:-1]},}}")
        assert found is not None
        assert json.loads(found) == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"a": [1, 2,], "b": {"c": 1,},}', {"a": [1, 2], "b": {"c": 1}}),
        ('{"a": ",}", "b": "\\",]",}', {"a": ",}", "b": '",]'}),
    ],
)
def test_commas_inside_strings_are_kept(raw: str, value: object) -> None:
    found = repaired(raw)
    assert found is not None
    assert json.loads(found) == value


@pytest.mark.parametrize(
    "raw",
    [
        '{"a": 1',
        "{'a': 1}",
        '{"a": True}',
        '{"a": 1} {"b": 2}',
        "[1,]",
        "",
        "```\n[1]\n```",
        "{,}x",
        '{"a": "\ud800",}',
    ],
)
def test_ambiguous_arguments_are_not_repaired(raw: str) -> None:
    assert repaired(raw) is None


def test_repairing_hostile_arguments_takes_linear_time() -> None:
    assert repaired('{"' + '\\"' * 200_000) is None
    assert repaired("{" + ", " * 200_000) is None
