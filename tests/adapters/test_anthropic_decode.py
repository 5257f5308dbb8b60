"""Check the decoding of Anthropic answers: block order, seals, cumulative usage, errors inside a 200."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.adapters.calls import without_placeholder
from actors.adapters.codec import decode
from actors.adapters.failure import AnswerFault
from actors.core.data.jsonio import unquote
from actors.core.dialects.profiles import ANTHROPIC
from actors.core.values.content import Message, Thinking, ToolCall
from actors.core.values.identity import mint
from actors.core.values.stream import ArgumentsDelta, CallDone, CallStarted, Finish, Usage
from tests.adapters.wire_streams import (
    CLAUDE,
    SIGNATURE,
    Fields,
    answer,
    anthropic_stream,
    body_answer,
    delta,
    dump_json,
    message_outline,
    run,
    start,
    stop,
)


@pytest.mark.requirement("REQ-915-014")
@given(signature=st.text(min_size=1), native=st.text(min_size=1).filter(without_placeholder))
def test_decoding_keeps_signatures_and_provider_ids_byte_for_byte(signature: str, native: str) -> None:
    stream = anthropic_stream(
        start(0, type="thinking", thinking=""),
        delta(0, type="signature_delta", signature=signature),
        stop(0),
        start(1, type="redacted_thinking", data=signature),
        stop(1),
        start(2, type="tool_use", id=native, name="f", input={}),
        stop(2),
    )
    first, second, call = answer(ANTHROPIC, stream).blocks
    assert isinstance(first, Thinking)
    assert isinstance(second, Thinking)
    assert isinstance(call, ToolCall)
    assert first.seal is not None
    assert second.seal is not None
    assert call.native is not None
    assert (first.seal.kind, unquote(first.seal.data)) == ("signature", signature)
    assert (second.seal.kind, unquote(second.seal.data)) == ("redacted", signature)
    assert (call.native.kind, unquote(call.native.data)) == ("call_id", native)
    assert {first.seal.origin, second.seal.origin, call.native.origin} == {CLAUDE}


def test_blocks_keep_their_order_and_boundaries() -> None:
    stream = anthropic_stream(
        start(0, type="text", text="a"),
        stop(0),
        start(1, type="text", text=""),
        delta(1, type="text_delta", text="b"),
        stop(1),
        start(2, type="text", text=""),
        stop(2),
        start(3, type="thinking", thinking="progress", signature=SIGNATURE),
        stop(3),
        start(4, type="tool_use", id="toolu_1", name="f", input={}),
        stop(4),
    )
    assert [part[:2] for part in message_outline(answer(ANTHROPIC, stream))] == [
        ("text", "a"),
        ("text", "b"),
        ("thinking", "progress"),
        ("call", "hist_tool_1"),
    ]


def test_unsigned_thinking_is_kept_only_from_a_finished_answer() -> None:
    events = [start(0, type="thinking", thinking=""), delta(0, type="thinking_delta", thinking="hm"), stop(0)]
    assert message_outline(answer(ANTHROPIC, anthropic_stream(*events))) == (("thinking", "hm", ""),)
    decoder = decode(ANTHROPIC)
    run(decoder, [anthropic_stream(*events, stop=False)])
    assert decoder.partial_message().blocks == ()


def test_an_unfinished_signature_is_not_kept_from_a_partial_answer() -> None:
    decoder = decode(ANTHROPIC)
    events = [start(0, type="thinking", thinking="x"), delta(0, type="signature_delta", signature="s")]
    run(decoder, [anthropic_stream(*events, stop=False)])
    assert decoder.partial_message().blocks == ()
    run(decoder := decode(ANTHROPIC), [anthropic_stream(*events, stop(0), stop=False)])
    assert message_outline(decoder.partial_message()) == (("thinking", "x", '"s"'),)


@pytest.mark.parametrize(
    ("pieces", "json_text", "raw"),
    [
        ([], "{}", None),
        ([""], "{}", None),
        (["", '{"a', '": 1', "}"], '{"a": 1}', None),
        (['{"path":"/a'], "{}", '{"path":"/a'),
        (["[1]"], "{}", "[1]"),
        (["{}{}"], "{}", None),
        (["{}[]"], "{}", "{}[]"),
    ],
)
def test_the_argument_fragments_of_a_call_are_joined(
    pieces: list[str], json_text: str, raw: str | None
) -> None:
    fragments = [delta(0, type="input_json_delta", partial_json=piece) for piece in pieces]
    stream = anthropic_stream(start(0, type="tool_use", id="t", name="f", input={}), *fragments, stop(0))
    (call,) = answer(ANTHROPIC, stream).calls
    assert (call.json.decode(), call.raw) == (json_text, raw)


def test_initial_arguments_are_used_only_if_no_argument_fragment_follows() -> None:
    begun = start(0, type="tool_use", id="t", name="f", input={"a": 1})
    (call,) = answer(ANTHROPIC, anthropic_stream(begun, stop(0))).calls
    assert call.arguments == {"a": 1}
    later = delta(0, type="input_json_delta", partial_json='{"b":2}')
    (call,) = answer(ANTHROPIC, anthropic_stream(begun, later)).calls
    assert call.arguments == {"b": 2}


@pytest.mark.requirement("U-03")
def test_calls_with_repeated_or_blank_ids_are_separate_calls() -> None:
    events = []
    for index, native in enumerate(("call_0", "call_0", " ", None, "null")):
        given = {"p": 1} if index == 1 else {}
        events += [start(index, type="tool_use", id=native, name="f", input=given), stop(index)]
    message = answer(ANTHROPIC, anthropic_stream(*events))
    assert [call.id for call in message.calls] == [f"hist_tool_{number}" for number in (1, 2, 3, 4, 5)]
    assert [call.native is not None for call in message.calls] == [True, True, False, False, False]


def test_calls_are_kept_for_every_stop_reason() -> None:
    call = [start(0, type="tool_use", id="t", name="f", input={"p": 1}), stop(0)]
    for reason in ("end_turn", "max_tokens", "refusal"):
        events, message = run(
            decode(ANTHROPIC),
            [anthropic_stream(*call, {"type": "message_delta", "delta": {"stop_reason": reason}})],
        )
        assert not isinstance(message, Exception)
        assert len(message.calls) == 1
        said = [
            CallStarted(mint(1), "f"),
            ArgumentsDelta(mint(1), '{"p":1}'),
            CallDone(mint(1)),
            Finish(reason),
        ]
        assert events == said


BEGUN: Fields = {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}}
FIRST = (
    {"type": "message_start", "message": {"usage": {"input_tokens": 90, "cache_read_input_tokens": 40}}},
    start(0, type="thinking", thinking="Let me see.", signature=SIGNATURE),
    stop(0),
    start(1, type="text", text="Half an ans"),
    stop(1),
    start(2, type="tool_use", id="toolu_A", name="read", input={"p": 1}),
    stop(2),
    start(3, type="tool_use", id="toolu_B", name="", input={}),
    delta(3, type="input_json_delta", partial_json='{"p"'),
    {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 70}},
)


@pytest.mark.parametrize("came", range(1, len(FIRST) + 1))
def test_a_second_message_start_event_restarts_the_answer(came: int) -> None:
    again = (
        BEGUN,
        start(0, type="text", text="The answer."),
        stop(0),
        start(1, type="tool_use", id="toolu_A", name="read", input={"p": 2}),
        stop(1),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
    )
    decoder = decode(ANTHROPIC, CLAUDE)
    events, message = run(decoder, [anthropic_stream(*FIRST[:came], *again)])
    assert isinstance(message, Message)
    assert [block[:1] + block[2:] for block in message_outline(message)] == [
        ("text",),
        ("call", "read", '{"p":2}', '"toolu_A"'),
    ]
    assert message.text == "The answer."
    assert (decoder.usage, decoder.finish_reason) == (Usage(5, 7), "tool_use")
    begun = [event.call_id for event in events if isinstance(event, CallStarted)]
    assert begun == [mint(number) for number in range(1, len(begun) + 1)]
    assert [call.id for call in message.calls] == begun[-1:]  # no call of the first answer had its number


def test_a_partial_answer_contains_only_the_blocks_after_the_last_message_start_event() -> None:
    decoder = decode(ANTHROPIC, CLAUDE)
    run(decoder, [anthropic_stream(*FIRST[:-1], BEGUN, start(0, type="text", text="The"), stop=False)])
    assert message_outline(decoder.partial_message()) == (("text", "The"),)


def test_usage_is_cumulative_and_cached_tokens_are_part_of_the_input() -> None:
    began = {
        "input_tokens": 10,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 1,
    }
    stream = anthropic_stream(
        {"type": "message_start", "message": {"usage": began}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 5}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 9, "input_tokens": 11},
        },
    )
    decoder = decode(ANTHROPIC)
    assert decoder.feed(stream) == [
        Usage(130, 1, 100, 20),
        Usage(130, 5, 100, 20),
        Usage(131, 9, 100, 20),
        Finish("end_turn"),
    ]
    assert decoder.usage == Usage(131, 9, 100, 20)


@pytest.mark.parametrize(
    ("type_", "kind", "status"),
    [
        ("overloaded_error", "transient", 529),
        ("api_error", "transient", 500),
        ("timeout_error", "transient", 504),
        ("rate_limit_error", "rate_limit", 429),
        ("billing_error", "quota", 402),
        ("authentication_error", "config", 401),
        ("invalid_request_error", "transcript", 400),
        ("something_new", "transient", None),
    ],
)
def test_an_error_inside_a_200_stream_is_classified(type_: str, kind: str, status: int | None) -> None:
    error = {"type": "error", "error": {"type": type_, "message": "Words"}}
    decoder = decode(ANTHROPIC)
    events, fault = run(
        decoder, [anthropic_stream(start(0, type="text", text="half"), stop=False), anthropic_stream(error)]
    )
    assert isinstance(fault, AnswerFault)
    assert (fault.failure.kind, fault.failure.status, fault.failure.message) == (kind, status, "Words")
    assert message_outline(decoder.partial_message()) == (("text", "half"),)
    assert len(events) == 1


def test_an_event_named_error_is_treated_as_an_error_regardless_of_its_data() -> None:
    told = b'event: error\ndata: {"code":500,"message":"Out of room","type":"server_error"}\n\n'  # from llama.cpp
    _, fault = run(decode(ANTHROPIC, CLAUDE), [anthropic_stream(stop=False), told])
    assert isinstance(fault, AnswerFault)
    assert (fault.failure.kind, fault.failure.message) == ("transient", "Out of room")


@pytest.mark.parametrize("told", ["message_start", "message_delta"])
def test_thinking_dropped_by_the_provider_is_reported(told: str) -> None:
    dropped = [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    ]
    head: Fields = {"type": "message_start", "message": {"input_transformations": dropped}}
    tail: Fields = {"type": "message_delta", "delta": {}, "input_transformations": dropped}
    plain: Fields = {"type": "message_start", "message": {"input_transformations": None}}
    events = (head, {"type": "message_delta", "delta": {}}) if told == "message_start" else (plain, tail)
    decoder = decode(ANTHROPIC, CLAUDE)
    run(decoder, [anthropic_stream(*events)])
    assert decoder.withheld == ("prefix_binding_mismatch",)


def test_thinking_dropped_by_the_provider_is_also_reported_without_streaming() -> None:
    decoder = decode(ANTHROPIC, CLAUDE, stream=False)
    dropped = [{"type": "thinking_dropped", "reason": "model_binding_mismatch"}]
    decoder.feed(dump_json({"content": [], "input_transformations": dropped}))
    decoder.close()
    assert decoder.withheld == ("model_binding_mismatch",)


def test_unknown_events_and_deltas_are_ignored_and_an_unknown_block_is_kept() -> None:
    stream = anthropic_stream(
        {"type": "brand_new", "x": 1},
        start(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        delta(0, type="input_json_delta", partial_json='{"q":1}'),
        stop(0),
        start(1, type="text", text="a", citations=[]),
        delta(1, type="citations_delta", citation={}),
        delta(1, type="input_json_delta", partial_json="{"),
        delta(1, type="text_delta", text="b", extra=1),
        stop(1),
        stop(7),
    )
    expected = (("native", "server_tool_use", "unknown"), ("text", "ab"))
    assert message_outline(answer(ANTHROPIC, b"data: [DONE]\n\n" + stream)) == expected


def test_reasoning_after_a_block_that_cannot_be_sent_back_loses_its_signature() -> None:
    parts = [
        part
        for at, kind in ((0, "thinking"), (1, "server_tool_use"), (2, "thinking"))
        for part in (start(at, type=kind, thinking="so", signature=SIGNATURE), stop(at))
    ]
    first, _, second = answer(ANTHROPIC, anthropic_stream(*parts)).blocks
    assert isinstance(first, Thinking)
    assert first.seal is not None
    assert second == Thinking("so")


@pytest.mark.parametrize(
    "event",
    [
        delta(0, type="text_delta", text="x"),
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_start", "content_block": {"type": "text", "text": "x"}},
    ],
)
def test_text_of_a_block_without_a_start_event_or_an_index_is_kept(event: dict[str, object]) -> None:
    assert answer(ANTHROPIC, anthropic_stream(event)).text == "x"


def test_arguments_for_a_block_that_was_never_opened_make_the_answer_incomplete() -> None:
    decoder = decode(ANTHROPIC)
    stray = delta(0, type="input_json_delta", partial_json='{"p":1}')
    _, message = run(decoder, [anthropic_stream(start(1, type="text", text="x"), stop(1), stray)])
    assert isinstance(message, Message)
    assert message_outline(message) == (("text", "x"),)
    assert (decoder.cut_reason, decoder.left_out) == ("fault", {"stray_arguments": 1})


def test_the_event_name_is_used_if_an_event_has_no_type_field() -> None:
    stream = (
        b"event: content_block_start\ndata: "
        + json.dumps({"index": 0, "content_block": {"type": "text", "text": "x"}}).encode()
        + b"\n\nevent: message_stop\ndata: {}"
    )
    assert answer(ANTHROPIC, stream).text == "x"


@pytest.mark.requirement("U-09")
def test_a_response_body_gives_the_same_message_as_a_stream() -> None:
    usage = {"input_tokens": 3, "output_tokens": 2}
    content = [
        {"type": "thinking", "thinking": "hm", "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": "zzz"},
        {"type": "text", "text": "t"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"z": 1, "a": ["é"]}},
        {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}},
    ]
    body = {
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": "tool_use",
        "usage": usage,
    }
    events, whole = body_answer(ANTHROPIC, body)
    stream = anthropic_stream(
        {"type": "message_start", "message": {"usage": usage}},
        start(0, type="thinking", thinking=""),
        delta(0, type="thinking_delta", thinking="hm"),
        delta(0, type="signature_delta", signature=SIGNATURE),
        stop(0),
        start(1, type="redacted_thinking", data="zzz"),
        stop(1),
        start(2, type="text", text=""),
        delta(2, type="text_delta", text="t"),
        stop(2),
        start(3, type="tool_use", id="toolu_1", name="f", input={}),
        delta(3, type="input_json_delta", partial_json='{"z":1,"a":["é"]}'),
        stop(3),
        start(4, type="tool_use", id="toolu_2", name="g", input={}),
        stop(4),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    )
    assert (events, whole) == run(decode(ANTHROPIC, CLAUDE), [stream])
    assert ArgumentsDelta(mint(1), '{"z":1,"a":["é"]}') in events


@pytest.mark.parametrize(
    "body", [{}, {"content": "x"}, {"type": "error", "error": {"type": "api_error"}}, None]
)
def test_a_response_body_without_a_message_is_reported_as_a_fault(body: object) -> None:
    with pytest.raises(AnswerFault):
        body_answer(ANTHROPIC, body)
