"""Check the requests that the strict Anthropic rules accept, and those that only the official host accepts."""

from actors.strict.rules import validate
from tests.rules.anthropic import answer, assistant, body, use, user
from tests.rules.row import encode_request


def test_the_host_rejects_text_before_results_in_its_current_wording() -> None:
    misplaced = encode_request(body(user("u"), assistant(use()), user("go", answer())))
    refusal = validate(misplaced, "anthropic", mode="hosted")
    assert refusal is not None
    assert refusal.rule == "ANT-01"


def test_tool_results_may_come_in_any_order() -> None:
    last = user(answer("toolu_b"), answer())
    assert (
        validate(encode_request(body(user("u"), assistant(use(), use("toolu_b")), last)), "anthropic") is None
    )


def test_the_results_of_a_turn_must_follow_that_turn() -> None:
    shifted = body(
        user("u"), assistant(use()), assistant(use("toolu_b")), user(answer()), user(answer("toolu_b"))
    )
    for mode in ("strict", "hosted"):
        refusal = validate(encode_request(shifted), "anthropic", mode=mode)
        assert (refusal is None) == (mode == "hosted")
