"""Check that a call with lost arguments never runs with `{}` but makes the answer incomplete."""

from collections.abc import Sequence

import pytest

from actors.adapters.base import Decoder
from actors.adapters.codec import decode
from actors.core.dialects.profiles import OPENAI_CHAT, OPENAI_RESPONSES
from actors.core.values.content import Message
from tests.adapters.wire_streams import (
    Fields,
    calls,
    chunk,
    fragment,
    function_call,
    item_added,
    item_delta,
    openai_stream,
    responses_stream,
    run,
)

A, B = '{"a":1}', '{"b":2}'
TOOLS = frozenset({"f", "g", "fg"})


def read_fragments(
    *fragments: Fields, finish: str | None = "tool_calls", tools: frozenset[str] | None = TOOLS
) -> Decoder:
    """Return the decoder that has read a stream of these fragments, and its message."""
    decoder = decode(OPENAI_CHAT, tools=tools)
    _, message = run(decoder, [openai_stream(*(calls(each) for each in fragments), chunk({}, finish))])
    assert isinstance(message, Message)
    return decoder


def calls_of(decoder: Decoder) -> list[tuple[str, str]]:
    return [(call.name, call.raw or call.json.decode()) for call in decoder.close().calls]


LOST: dict[str, tuple[Sequence[Fields], list[tuple[str, str]]]] = {
    "arguments ahead of any call": ([fragment(0, "x", text=A), fragment(1, "y", "g")], []),
    "a call behind arguments that belong to none": (
        [fragment(0, "x", "f", A), fragment(1, "y", text=B), fragment(2, "z", "g")],
        [("f", A)],
    ),
    "arguments alone": ([fragment(0, "x", text="{}")], []),
    "arguments of a second call whose name was lost": (
        [fragment(0, "x", "f", A), fragment(1, "y", text=""), fragment(1, text=B)],
        [("f", A)],
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_arguments_without_a_call_make_the_answer_incomplete(name: str) -> None:
    fragments, expected = LOST[name]
    decoder = read_fragments(*fragments)
    assert calls_of(decoder) == expected
    assert decoder.cut_reason == "fault"
    assert decoder.left_out["stray_arguments"] == 1


def test_a_call_without_arguments_is_kept_only_in_a_complete_answer() -> None:
    assert calls_of(read_fragments(fragment(0, "x", "f"))) == [("f", "{}")]
    assert read_fragments(fragment(0, "x", "f")).cut_reason is None
    for finish, cut in ((None, "fault"), ("length", "length"), ("brand_new", "unknown")):
        decoder = read_fragments(fragment(0, "x", "f", A), fragment(1, "y", "g"), finish=finish)
        assert calls_of(decoder) == [("f", A)]
        assert (decoder.cut_reason, decoder.left_out) == (cut, {"cut_call": 1})


def test_a_partial_tool_name_does_not_count_as_a_call_if_the_declared_tools_are_unknown() -> None:
    pieces = [fragment(0, "", "f"), fragment(0, "", "g", B)]
    decoder = read_fragments(*pieces, tools=None)
    assert calls_of(decoder) == [("g", B)]
    assert (decoder.cut_reason, decoder.left_out) == ("fault", {"cut_call": 1})
    assert calls_of(read_fragments(*pieces)) == [("fg", B)]
    assert calls_of(read_fragments(*pieces, tools=frozenset({"f", "g"}))) == [("f", "{}"), ("g", B)]


def test_argument_fragments_with_a_second_id_may_continue_a_call_of_the_same_tool() -> None:
    decoder = read_fragments(fragment(0, "x", "f"), fragment(0, "y", "f", B))
    assert (calls_of(decoder), decoder.cut_reason) == ([("f", B)], "fault")


def test_an_unfinished_item_without_arguments_does_not_count_as_a_call() -> None:
    half = item_added(0, **function_call("fc_1", "call_A", "read", "", "in_progress"))
    for more in ((), (item_delta("function_call_arguments", 0, "fc_1", '{"p": 1'),)):
        decoder = decode(OPENAI_RESPONSES)
        _, message = run(decoder, [responses_stream(half, *more)])
        assert isinstance(message, Message)
        assert message.calls == ()
        assert (decoder.cut_reason, decoder.left_out) == ("fault", {"cut_call": 1})
