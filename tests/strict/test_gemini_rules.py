"""Check the requests that the strict generateContent rules accept, and the host that represents each dialect."""

import pytest

from actors.strict.rules import GeminiProfile, GeminiSettings, validate
from actors.strict.rules.gemini import sign
from tests.rules.gemini import GO, HOST, U, body, call, model, plain, result, signed_call, text, user
from tests.rules.row import Json, encode_request


@pytest.mark.parametrize(
    "contents",
    [
        (U,),
        (U, model("t"), GO),
        (U, model(call(), plain("run")), user(result(), result("run"), "go")),
        (U, model(signed_call(HOST, args={"a": 1}), plain("run")), user(result(), result("run"))),
        (
            U,
            model("t", signed_call(HOST)),
            user(result()),
            model(signed_call(HOST, args={"b": 2})),
            user(result()),
        ),
        (U, model(text("t"), text("", thoughtSignature=sign({"text": ""}, HOST))), GO),
        (U, model(call(id="a")), user(result(id="a"))),
        ({"parts": [text("no role")]},),
    ],
)
def test_valid_requests_are_accepted(contents: tuple[Json, ...]) -> None:
    assert validate(encode_request(body(*contents)), "gemini", settings=HOST) is None


def test_each_gemini_dialect_has_its_own_host() -> None:
    bare = encode_request(body(U, model(plain()), user(result())))
    with_id = encode_request(body(U, model(call(id="a")), user(result(id="a"))))
    assert [validate(bare, name) is None for name in ("gemini", "vertex", "gemini_2")] == [False, False, True]
    assert [validate(with_id, name) is None for name in ("gemini", "vertex", "gemini_2")] == [
        True,
        True,
        True,
    ]


def test_the_error_for_an_unknown_model_names_the_model() -> None:
    others = GeminiSettings(model="gemini-test", models={"gemini-3": GeminiProfile()})
    refusal = validate(encode_request(body(U)), "gemini", settings=others)
    assert refusal is not None
    assert (refusal.rule, refusal.status, refusal.type) == ("GEM-13", 404, "NOT_FOUND")
    assert "models/gemini-test is not found for API version v1beta" in refusal.message
    assert validate(encode_request(body(U)), "gemini", mode="hosted", settings=others) is not None
