"""Check that large JSON documents are parsed like small ones, with long non-ASCII strings left in place."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.adapters import document
from actors.adapters.document import LongText, load_document, load_json
from actors.core.data.jsonio import sanitise
from tests.commands.at_scale import share

Value = Any  # JSON

SMALL = {"_LARGE": 1, "_LONG": 12, "SLICE": 12}
CHARACTERS = st.sampled_from(["a", '"', "\\", "/", "\n", "u", "é", "中", "😀", "\u2028", "0"])
TEXTS = st.lists(CHARACTERS, max_size=60).map("".join)
VALUES = st.recursive(
    TEXTS | st.integers(0, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(autouse=True, scope="module")
def small() -> Any:  # a fixture
    with pytest.MonkeyPatch.context() as patch:
        for name, size in SMALL.items():
            patch.setattr(document, name, size)
        yield


def plain(value: Value) -> Value:
    """Return a value with its long texts as strings, each read in both ways."""
    match value:
        case LongText():
            assert sanitise("".join(value.slices())) == sanitise(str(value))
            return str(value)
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case list():
            return list(map(plain, value))
        case _:
            return value


def long_texts(value: Value) -> int:
    if isinstance(value, dict | list):
        return sum(map(long_texts, value.values() if isinstance(value, dict) else value))
    return isinstance(value, LongText)


@settings(max_examples=share(2400), suppress_health_check=list(HealthCheck), deadline=None)
@given(VALUES, st.booleans(), st.sampled_from([(",", ":"), (" , ", "\n:\t")]))
def test_the_lazy_json_parser_returns_the_same_values_as_a_standard_parser(
    value: Value, escaped: bool, separators: tuple[str, str]
) -> None:
    data = json.dumps(value, ensure_ascii=escaped, separators=separators).encode()
    assert plain(load_document(data)) == value


@pytest.mark.parametrize("escaped", [True, False])
def test_only_long_non_ascii_strings_are_left_undecoded(escaped: bool) -> None:
    value = {"é" * 20: ["é" * 20, "é", "a" * 20, {"b": "\\" * 20 + "😀"}], "c": "naïve\n" * 9}
    data = json.dumps(value, ensure_ascii=escaped).encode()
    assert long_texts(load_document(data)) == 3
    assert plain(load_document(data)) == value


@settings(max_examples=share(1600), suppress_health_check=list(HealthCheck), deadline=None)
@given(VALUES, st.data())
def test_a_damaged_json_document_is_rejected_or_passed_to_the_standard_parser(
    value: Value, data: st.DataObject
) -> None:
    whole = json.dumps(value, ensure_ascii=False).encode()
    at = data.draw(st.integers(0, len(whole)))
    broken = whole[:at] + data.draw(st.sampled_from([b"", b'"', b"\\", b"\n", b"\xff"])) + whole[at + 1 :]
    try:
        wanted = load_json(broken)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011  whatever the parser calls it
            load_document(broken)
    else:
        assert (
            plain(load_document(broken)) == wanted or b"\xff" in broken
        )  # parsers may replace invalid bytes differently


@pytest.mark.parametrize("length", range(4, 20))
@pytest.mark.parametrize("at", range(10))
def test_text_that_is_not_utf_8_is_read_equally_in_slices_and_at_once(length: int, at: int) -> None:
    """The two characters have more bytes in a row that continue a character than one character has."""
    characters = "\U0001f600\u4e2d\u00e9".encode()
    data = b'["' + b"a" * length + characters[:at] + characters[at + 1 :] + b"a" * 12 + b'"]'
    assert plain(load_document(data))[0].startswith("a" * length)


def test_a_lone_surrogate_is_parsed_equally_in_large_and_small_json_documents() -> None:
    data = b'["' + b"a" * 11 + b"\\ud83d\\ude00" * 5 + b'\\ud83d"]'
    assert plain(load_document(data)) == json.loads(data)


def test_a_long_string_of_escapes_is_parsed_in_one_pass() -> None:
    value = ["\\" * 200_000 + "é", '"' * 100_000 + "é"]
    assert plain(load_document(json.dumps(value).encode())) == value
