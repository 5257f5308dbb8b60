"""Check messages that mix thinking, text, calls and results: order is kept and losses are counted."""

import pytest

from actors.core.check import check
from actors.core.data.jsonio import Json, quote
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import PROFILES
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.values.content import Block, Message, ProviderState, Text, Thinking, ToolCall, ToolResult
from actors.core.values.identity import Binding, CallId
from actors.transcripts import encode, render
from tests.core.wire_calls import read_body
from tests.generated.histories import READERS

SIGNED = "c2lnbmF0dXJl"
SEALS: dict[str, tuple[str, Json]] = {
    "anthropic_blocks": ("signature", quote(SIGNED)),
    "bedrock_reasoning": ("signature", quote(SIGNED)),
    "thought_signature": ("thought_signature", quote(SIGNED)),
    "reasoning_content": ("reasoning_content", quote("reasoning_content")),
    "thinking_chunk": ("thinking_chunk", quote("{}")),
    "reasoning_details": (
        "reasoning_details",
        quote('[{"type":"reasoning.text","text":"a thought","index":0}]'),
    ),
    "reasoning_item": (
        "reasoning",
        quote('{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2lnbmF0dXJl"}'),
    ),
}
"""How each carrier seals the reasoning of its own provider."""
OTHER = Binding("other", "other", "https://other.example", "", "m")
every_dialect = pytest.mark.parametrize("name", sorted(PROFILES))


def mixed_message(dialect: Dialect, maker: Binding) -> list[Message]:
    """Return a message of `maker` with thinking, text, a call, its result, more text and another call."""
    kind, data = SEALS.get(dialect.reasoning.carrier, ("signature", quote(SIGNED)))
    blocks: list[Block] = [
        Thinking("a thought", ProviderState(kind, data, maker)),
        Text("first"),
        ToolCall(CallId("c1"), "read", {"path": "a"}),
        ToolResult(CallId("c1"), "R1."),
        Text("then"),
        ToolCall(CallId("c2"), "read", {"path": "b"}),
    ]
    return [Message("user", [Text("go")]), Message("assistant", blocks, 0, maker)]


@pytest.mark.requirement("REQ-915-025", "REQ-915-005")
@pytest.mark.parametrize("own", [True, False], ids=["own", "foreign"])
@every_dialect
def test_a_message_may_mix_thinking_with_text_calls_and_results(name: str, own: bool) -> None:
    dialect, reader = PROFILES[name], READERS[name]
    rendered = render(
        History(mixed_message(dialect, reader if own else OTHER)), Ledger(), dialect, binding=reader
    )
    body = encode(rendered, model="m")
    assert check(body, dialect) == []
    said = read_body(body)
    calls, results = ([each for each in said if each.kind == kind] for kind in ("call", "result"))
    assert [call.content for call in calls] == [{"path": "a"}, {"path": "b"}]
    assert [result.id for result in results] == [call.id for call in calls]
    assert results[0].content == "R1."
    assert [call_id for call_id, _ in rendered.report.synthetic] == ["c2"]
    words = [each.content for each in said if each.kind == "words"]
    assert sum(text.count("first") for text in words) == sum(text.count("then") for text in words) == 1
    order = [body.index(mark) for mark in (b"first", b"R1.", b"then")]
    assert order == sorted(order)


@pytest.mark.requirement("REQ-915-025")
@pytest.mark.parametrize("own", [True, False], ids=["own", "foreign"])
@every_dialect
def test_thinking_of_a_mixed_message_is_sent_or_counted_as_lost(name: str, own: bool) -> None:
    dialect, reader = PROFILES[name], READERS[name]
    rendered = render(
        History(mixed_message(dialect, reader if own else OTHER)), Ledger(), dialect, binding=reader
    )
    sent = any(mark in encode(rendered, model="m") for mark in (b"a thought", SIGNED.encode()))
    assert sent != (dict(rendered.report.losses).get("thinking") == 1)
    assert own or not sent


@pytest.mark.requirement("REQ-915-025")
@pytest.mark.parametrize("own", [True, False], ids=["own", "foreign"])
@every_dialect
def test_text_before_between_and_after_calls_is_sent_once_and_in_order(name: str, own: bool) -> None:
    dialect, reader = PROFILES[name], READERS[name]
    calls = [ToolCall(CallId(f"c{path}"), "read", {"path": path}) for path in "ab"]
    blocks: list[Block] = [Text("alpha"), calls[0], Text("beta"), calls[1], Text("gamma")]
    history = [
        Message("user", [Text("go")]),
        Message("assistant", blocks, 0, reader if own else OTHER),
        Message("tool", [ToolResult(call.id, f"R{call.id}") for call in calls]),
        Message("user", [Text("on")]),
    ]
    body = encode(render(History(history), Ledger(), dialect, binding=reader), model="m")
    assert check(body, dialect) == []
    said = [(each.kind, "call" if each.kind == "call" else each.content) for each in read_body(body)]
    start, stop = said.index(("words", "go")), [kind for kind, _ in said].index("result")
    assert [content for _, content in said[start + 1 : stop]] == sent_as(dialect)
    assert [content for kind, content in said if kind == "result"] == ["Rca", "Rcb"]
    assert said[-1] == ("words", "on")


def sent_as(dialect: Dialect) -> list[str]:
    """Return the order of texts and calls that the family can express."""
    if dialect.family == "openai_chat":  # text is in one field, calls are in another
        return ["alpha\n\nbeta\n\ngamma", "call", "call"]
    if dialect.turns.calls_last:  # items after a call would separate it from its result (OAR-04)
        return ["alpha", "beta", "gamma", "call", "call"]
    return ["alpha", "call", "beta", "call", "gamma"]
