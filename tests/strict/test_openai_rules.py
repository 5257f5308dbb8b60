"""Check the order of the strict Chat Completions rules, and the rejection of invalid bodies."""

import pytest

from actors.strict.rules import validate
from tests.rules.openai_chat import ROUND, body, calls, result
from tests.rules.row import Json, encode_request


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"zzz": 1, "messages": []}, "OAC-19"),
        ({"model": "m", "zzz": 1}, "OAC-07"),
        ({"model": "m", "zzz": 1, "messages": [{"role": "bogus"}], "n": 0}, "OAC-12"),
        ({"model": "m", "messages": [{"role": "bogus"}], "n": 0, "temperature": 9}, "OAC-S02"),
        ({"model": "m", "messages": [{"role": "bogus"}], "tools": []}, "OAC-04"),
    ],
)
def test_the_first_fault_in_the_order_of_the_provider_is_reported(wrong: Json, rule: str) -> None:
    refusal = validate(encode_request(wrong), "openai_chat")
    assert refusal is not None
    assert refusal.rule == rule


@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic"])
@pytest.mark.parametrize(
    "value",
    [b"NaN", b"Infinity", b'"\\ud800"', b'"\xff"', b'{"a":1,"a":2}', b"[" * 300 + b"]" * 300, b"01", b""],
)
def test_a_body_that_is_not_strict_json_is_rejected_first(value: bytes, dialect: str) -> None:
    sound = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"u"}],"metadata":{"a":%s}}'
    assert validate(sound % b"1", dialect) is None
    refusal = validate(sound % value, dialect)
    assert refusal is not None
    assert refusal.rule in ("OAC-S01", "ANT-31")


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b'"s"', b"{}", b'{"model":"m"} x', b'{"messages":7}'])
def test_an_invalid_body_is_rejected_without_an_exception(raw: bytes) -> None:
    assert validate(raw, "openai_chat") is not None
    assert validate(raw, "anthropic") is not None


def test_a_call_id_may_be_repeated_in_a_later_turn() -> None:
    assert validate(encode_request(body(*ROUND, calls(), result())), "openai_chat") is None


def test_an_unknown_dialect_raises_a_value_error() -> None:
    with pytest.raises(ValueError, match="openai_chat"):
        validate(b"{}", "telnet")
