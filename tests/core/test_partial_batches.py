"""Check batches with missing or repeated results: real results are sent once, in order, unchanged."""

from itertools import permutations

import pytest

from actors.core.check import check
from actors.core.dialects.profiles import PROFILES
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.values.content import Message, Text, ToolCall, ToolResult
from actors.core.values.identity import CallId
from actors.transcripts import encode, render
from tests.core.answers import Told
from tests.core.answers import parse_results as answers_in
from tests.core.wire_calls import read_body
from tests.generated.histories import READERS

every_dialect = pytest.mark.parametrize("name", sorted(PROFILES))

BLANKS = ("R1. ", "R1.\n\n", " \tR1.\r\n ", "R1.\u00a0\u2003", "\nR1.\n", "R1. \x0b\x0c")
"""Results whose blanks a careless reader strips."""
MISSING = "No result was recorded"


def batch(*messages: Message, calls: int = 3) -> list[Message]:
    made = [ToolCall(CallId(f"c{number}"), "read", {"number": number}) for number in range(1, calls + 1)]
    return [
        Message("user", [Text("u")]),
        Message("assistant", made),
        *messages,
        Message("user", [Text("go")]),
    ]


def results(*given: tuple[int, str]) -> Message:
    return Message("tool", [ToolResult(CallId(f"c{number}"), words) for number, words in given])


def sent_request(name: str, messages: list[Message]) -> bytes:
    rendered = render(History(messages), Ledger(), PROFILES[name], binding=READERS[name])
    body = encode(rendered, model="m")
    assert check(body, PROFILES[name]) == []
    return body


def answers(name: str, messages: list[Message]) -> list[Told]:
    return answers_in(sent_request(name, messages), PROFILES[name])


@pytest.mark.requirement("REQ-915-012", "PROMISE-2")
@pytest.mark.parametrize("failed", [False, True], ids=["returned", "failed"])
@every_dialect
def test_a_partial_batch_sends_real_results_with_their_whitespace(name: str, failed: bool) -> None:
    for words in BLANKS:
        result = (
            ToolResult(CallId("c2"), error=words) if failed else ToolResult(CallId("c2"), words)
        )  # the other calls have no real result
        first, real, last = answers(name, batch(Message("tool", [result])))
        assert (real.words, real.failed) == (words, failed)
        assert MISSING in first.words
        assert MISSING in last.words


@pytest.mark.requirement("REQ-915-012", "PROMISE-2")
@every_dialect
def test_real_results_of_a_partial_batch_keep_their_positions(name: str) -> None:
    for known in range(2**3):
        given = [(number, f"R{number}. ") for number in (3, 1, 2) if known >> (number - 1) & 1]
        told = [answer.words for answer in answers(name, batch(results(*given)) if given else batch())]
        for number, words in enumerate(told, 1):
            assert words == f"R{number}. " if (number, f"R{number}. ") in given else MISSING in words
        assert len(told) == 3


REPEATED = {
    "twice in one message": [results((1, "R1."), (1, "R1."), (2, "R2."))],
    "twice, with other words": [results((1, "R1."), (1, "R9."), (2, "R2."))],
    "in two messages": [results((1, "R1."), (2, "R2.")), results((1, "R1."))],
    "in two messages, with other words": [results((1, "R1."), (2, "R2.")), results((1, "R9."))],
    "three times": [results((2, "R2."), (1, "R1.")), results((1, "R8.")), results((1, "R9."), (2, "R9."))],
}


@pytest.mark.requirement("REQ-915-009")
@pytest.mark.parametrize("case", REPEATED)
@every_dialect
def test_the_first_of_several_results_for_a_call_is_sent(name: str, case: str) -> None:
    body = sent_request(name, batch(*REPEATED[case], calls=2))
    assert [answer.words for answer in answers_in(body, PROFILES[name])] == ["R1.", "R2."]
    assert b"R8." not in body
    assert b"R9." not in body


@pytest.mark.requirement("REQ-915-010")
@every_dialect
def test_pairing_and_order_do_not_depend_on_arrival_order(name: str) -> None:
    given = [(1, "R1."), (2, "R2."), (3, "R3.")]
    bodies = {
        sent_request(name, batch(*messages))
        for order in permutations(given)
        for messages in ([results(*order)], [results(each) for each in order])
    }
    (body,) = bodies
    said = [each for each in read_body(body) if each.kind != "words"]
    assert [each.kind for each in said] == ["call"] * 3 + ["result"] * 3 or (
        [each.kind for each in said] == ["call", "result"] * 3
    )
    calls, answered = ([each for each in said if each.kind == kind] for kind in ("call", "result"))
    assert [call.content for call in calls] == [{"number": number} for number, _ in given]
    assert [each.id for each in answered] == [each.id for each in calls]
    assert [answer.words for answer in answers_in(body, PROFILES[name])] == ["R1.", "R2.", "R3."]
