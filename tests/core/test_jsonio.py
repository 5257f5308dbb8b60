"""Check that JSON is read exactly or rejected, and written compactly and in order."""

import json
from enum import StrEnum
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.data.jsonio import (
    Json,
    JsonRefused,
    JsonValue,
    dump,
    parse,
    parse_object,
    quote,
    quote_json,
    resolve_pointer,
    unquote,
)

LONE = "\ud800"

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(st.text())
def test_quoting_a_string_gives_its_json_literal(text: str) -> None:
    literal = quote(text)
    read = json.loads(literal)
    assert read == unquote(literal)
    assert quote(unquote(literal)) == literal
    if text.encode(errors="ignore").decode() == text:
        assert read == text


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("", b'""'),
        ('say "hi"\\\n\t', b'"say \\"hi\\"\\\\\\n\\t"'),
        ("\0\x1f\x7f", b'"\\u0000\\u001f\x7f"'),
        ("é\u2028😀", '"é\u2028😀"'.encode()),
        (LONE, '"\ufffd"'.encode()),
        ("\udc00\ud800", '"\ufffd\ufffd"'.encode()),
        ("a\ud800b", '"a\ufffdb"'.encode()),
        ("\ud83d\ude00", '"😀"'.encode()),
    ],
)
def test_a_quoted_string_is_utf8_in_which_only_lone_surrogates_are_replaced(
    text: str, literal: bytes
) -> None:
    assert quote(text) == literal


class LabelledText(StrEnum):
    """A string that prints, and stores as its value, another text."""

    ONE = "one", "other"

    def __new__(cls, text: str, value: str) -> "LabelledText":
        member = str.__new__(cls, text)
        member._value_ = value
        return member


class TemplateText(str):
    """A subclass of `str`, as template libraries return."""


@pytest.mark.parametrize("text", [LabelledText.ONE, TemplateText("one")])
def test_a_string_of_a_subclass_is_quoted_as_its_text(text: str) -> None:
    assert quote(text) == b'"one"'


@given(json_values)
def test_values_survive_dumping_and_parsing_and_json_text_survives_quoting(value: JsonValue) -> None:
    text = dump(value)
    assert parse(text) == value
    assert unquote(quote_json(text)).encode() == text


def test_dumping_keeps_insertion_order_and_is_compact() -> None:
    assert dump({"b": [1, 2.5, None], "a": "é"}) == '{"b":[1,2.5,null],"a":"é"}'.encode()
    assert dump({LONE: LONE}) == '{"\ufffd":"\ufffd"}'.encode()


@pytest.mark.parametrize("value", [nan, inf, -inf, [nan]])
def test_dumping_a_float_without_a_json_form_is_rejected(value: JsonValue) -> None:
    with pytest.raises(JsonRefused):
        dump(value)


def test_dumping_a_cyclic_value_is_rejected() -> None:
    cycle: list[JsonValue] = []
    cycle.append(cycle)
    with pytest.raises(JsonRefused):
        dump(cycle)


REFUSED: dict[str, bytes] = {
    "empty": b"",
    "space only": b" \n",
    "half an object": b'{"a": 1',
    "half a string": b'"a',
    "trailing data": b"{} {}",
    "trailing comma": b"[1,]",
    "single quotes": b"{'a': 1}",
    "comment": b"/* */ 1",
    "bare word": b"undefined",
    "NaN": b"NaN",
    "nested NaN": b'{"a": [NaN]}',
    "Infinity": b"Infinity",
    "-Infinity": b"-Infinity",
    "overflow": b"1e999",
    "negative overflow": b"[-1e999]",
    "duplicate key": b'{"a": 1, "a": 2}',
    "duplicate key by escape": b'{"a": 1, "\\u0061": 2}',
    "deep duplicate key": b'[{"x": {"a": 1, "a": 1}}]',
    "lone high surrogate": b'"\\ud800"',
    "lone low surrogate": b'"\\udc00 "',
    "lone surrogate in a key": b'{"\\ud800": 1}',
    "raw surrogate bytes": b'"\xed\xa0\x80"',
    "invalid UTF-8": b'"\xff"',
    "overlong UTF-8": b'"\xc0\xaf"',
    "NUL in a key": b'{"a\\u0000": 1}',
    "raw NUL": b'"\x00"',
    "raw control character": b'"\n"',
    "byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "2^63": b"9223372036854775808",
    "-2^63-1": b"[-9223372036854775809]",
    "5,000 digits": b"1" * 5000,
    "depth 65": b"[" * 65 + b"]" * 65,
    "depth 65 in objects": b'{"a":' * 65 + b"1" + b"}" * 65,
    "depth 500": b"[" * 500 + b"]" * 500,
    "depth 100,000": b"[" * 100_000,
    "leading zero": b"01",
    "plus sign": b"+1",
    "bare fraction": b".5",
    "hex": b"0x10",
    "bad escape": b'"\\x41"',
    "short escape": b'"\\u00"',
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_hostile_json_is_rejected_with_one_short_line(text: bytes) -> None:
    with pytest.raises(JsonRefused) as refused:
        parse(text)
    reason = str(refused.value)
    assert reason.isprintable()
    assert 0 < len(reason) <= 200


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"9223372036854775807", 2**63 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b' {"a" : [ ] } \n', {"a": []}),
        (b'"\\u0000"', "\0"),
        (b'"\\ud83d\\ude00"', "😀"),
        (b"1.0", 1.0),
        (b"1e3", 1000.0),
        (b'{"": 1}', {"": 1}),
        (b"[" * 64 + b"]" * 64, None),
    ],
)
def test_unusual_but_valid_json_is_read(text: bytes, value: JsonValue) -> None:
    assert parse(text) == value or value is None


def test_json_text_above_the_size_limit_is_rejected_without_parsing() -> None:
    assert parse(b"[1]", max_bytes=3) == [1]
    with pytest.raises(JsonRefused, match="4 bytes of JSON exceed the limit of 3"):
        parse(b"NaN!", max_bytes=3)


def test_error_messages_contain_no_control_characters_of_the_input() -> None:
    with pytest.raises(JsonRefused) as refused:
        parse(b'{"\\u001b[31m\\n": 1, "\\u001b[31m\\n": 2}')
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ("", {}),
        (" \n\t", {}),
        ("{}", {}),
        ('{"city": "Rome"}', {"city": "Rome"}),
        ("null", None),
        ("[]", None),
        ('"{}"', None),
        ("3", None),
        ('{"city": "Ro', None),
        ('{"a":1}{"b":2}', None),
        ('{"a":1,"a":2}', None),
        ('{"a": NaN}', None),
        ('{"a": "\ud800"}', None),
        ('{"a": "' + "x" * 300_000 + '"}', None),
        ('{"a":' * 33 + "1" + "}" * 33, None),
    ],
)
def test_the_arguments_text_of_a_model_is_parsed_to_an_object_or_to_none(
    raw: str, arguments: dict[str, JsonValue] | None
) -> None:
    assert parse_object(raw) == arguments


def test_only_string_literals_are_unquoted() -> None:
    with pytest.raises(JsonRefused, match="expected a JSON string, got object"):
        unquote(Json(b"{}"))


DOCUMENT: JsonValue = {"$defs": {"A": {"type": "null"}, "a/b~c d": 1}, "anyOf": [{"x": 2}], "n": 3}


@pytest.mark.parametrize(
    ("reference", "named"),
    [
        ("#", DOCUMENT),
        ("#/$defs/A", {"type": "null"}),
        ("#/$defs/a~1b~0c%20d", 1),
        ("#/anyOf/0/x", 2),
        ("#/anyOf/1", None),
        ("#/anyOf/x", None),
        ("#/anyOf/-1", None),
        ("#/n/x", None),
        ("#/none/x", None),
        ("#A", None),
        ("/n", None),
        ("https://x.example/#/n", None),
    ],
)
def test_a_schema_reference_resolves_to_a_value_in_its_document_or_none(
    reference: str, named: JsonValue
) -> None:
    assert resolve_pointer(DOCUMENT, reference) == named
