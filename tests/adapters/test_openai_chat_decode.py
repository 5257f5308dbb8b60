"""Check the decoding of Chat Completions answers, including deviations of compatible servers."""

import pytest

from actors.adapters.codec import decode
from actors.adapters.failure import AnswerFault
from actors.core.dialects.profiles import OPENAI_CHAT
from actors.core.values.content import Message
from actors.core.values.identity import mint
from actors.core.values.stream import (
    ArgumentsDelta,
    CallDone,
    CallStarted,
    Finish,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from tests.adapters.wire_streams import (
    OPENAI,
    Fields,
    answer,
    body_answer,
    calls,
    chunk,
    fragment,
    message_outline,
    openai_stream,
    run,
)

A, B = '{"a":1}', '{"b":2}'
FRAGMENTS: dict[str, tuple[list[list[Fields]], tuple[str, str]]] = {
    "by index": (
        [[fragment(0, "x", "f")], [fragment(1, "y", "g")], [fragment(0, text=A), fragment(1, text=B)]],
        ("x", "y"),
    ),
    "same index, another id": ([[fragment(0, "x", "f", A)], [fragment(0, "y", "g", B)]], ("x", "y")),
    "same index, ids interleaved": (
        [
            [fragment(0, "x", "f")],
            [fragment(0, "y", "g")],
            [fragment(0, "x", text=A)],
            [fragment(0, "y", text=B)],
        ],
        ("x", "y"),
    ),
    "no index, ids on every fragment": (
        [
            [fragment(None, "x", "f", '{"a"')],
            [fragment(None, "x", "f", ":1}")],
            [fragment(None, "y", "g", B)],
        ],
        ("x", "y"),
    ),
    "no index, continued without an id": (
        [
            [fragment(None, "x", "f")],
            [fragment(None, text=A)],
            [fragment(None, "y", "g")],
            [fragment(None, text=B)],
        ],
        ("x", "y"),
    ),
    "whole calls in one delta": ([[fragment(0, "x", "f", A), fragment(1, "y", "g", B)]], ("x", "y")),
    "whole calls in one delta, all index 0": (
        [[fragment(0, "x", "f", A), fragment(0, "y", "g", B)]],
        ("x", "y"),
    ),
    "whole calls, no index, one id for both": (
        [[fragment(None, "x", "f", A), fragment(None, "x", "g", B)]],
        ("x", "x"),
    ),
    "one id for two indices": ([[fragment(0, "x", "f", A), fragment(1, "x", "g", B)]], ("x", "x")),
    "id and name repeated on every fragment": (
        [[fragment(0, "x", "f", '{"a"')], [fragment(0, "x", "f", ":1}")], [fragment(1, "y", "g", B)]],
        ("x", "y"),
    ),
    "blank ids": ([[fragment(0, "", "f", A)], [fragment(1, " ", "g", B)]], ("", "")),
    "blank ids, all index 0": ([[fragment(0, "", "f", A)], [fragment(0, "", "g", B)]], ("", "")),
    "ids that restart": (
        [[fragment(0, "call_0", "f", A)], [fragment(0, "call_0", "g", B)]],
        ("call_0", "call_0"),
    ),
    "an index that is a word": (
        [[{**fragment(0, "x", "f", A), "index": "0"}], [fragment(None, "y", "g", B)]],
        ("x", "y"),
    ),
    "an id that comes late": (
        [[fragment(0, None, "f")], [fragment(0, "x", text=A)], [fragment(1, "y", "g", B)]],
        ("x", "y"),
    ),
    "a name that comes late": (
        [[fragment(0, "x", text='{"a"')], [fragment(0, None, "f", ":1}")], [fragment(1, "y", "g", B)]],
        ("x", "y"),
    ),
    "an empty last fragment": (
        [[fragment(0, "x", "f", A)], [fragment(0, "x", "f", "")], [fragment(1, "y", "g", B)]],
        ("x", "y"),
    ),
}


@pytest.mark.requirement("U-03", "U-10")
@pytest.mark.parametrize("reason", ["tool_calls", "stop", None])
@pytest.mark.parametrize("name", FRAGMENTS)
def test_the_calls_of_an_answer_are_kept_apart(name: str, reason: str | None) -> None:
    deltas, (first, second) = FRAGMENTS[name]
    stream = openai_stream(*(calls(*delta) for delta in deltas), chunk({}, reason))
    assert message_outline(answer(OPENAI_CHAT, stream)) == (
        ("call", "hist_tool_1", "f", A, f'"{first}"' if first else ""),
        ("call", "hist_tool_2", "g", B, f'"{second}"' if second else ""),
    )


def test_calls_with_blank_ids_and_the_same_index_remain_separate() -> None:
    stream = openai_stream(calls(fragment(0, "", "f", A)), calls(fragment(0, "", "f", B)))
    assert [call.arguments for call in answer(OPENAI_CHAT, stream).calls] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    "deltas",
    [
        [[fragment(0, "", "f", ""), fragment(0, "", "f", B)]],  # two entries of one delta
        [
            [fragment(0, "", "f", "")],
            [fragment(0, "", "f2", B)],
        ],  # another tool, before the first call is complete
    ],
)
def test_a_call_without_arguments_is_not_mixed_up_with_the_next_call(deltas: list[list[Fields]]) -> None:
    stream = openai_stream(*(calls(*delta) for delta in deltas), chunk({}, "tool_calls"))
    _, message = run(decode(OPENAI_CHAT, tools={"f", "f2"}), [stream])
    assert isinstance(message, Message)
    assert [call.arguments for call in message.calls] == [{}, {"b": 2}]


@pytest.mark.parametrize("together", [True, False])
def test_calls_at_the_same_index_are_separated_by_their_ids(together: bool) -> None:
    whole = [fragment(0, name, "f", text) for name, text in (("x", A), ("y", ""), ("z", A))]
    ends = [fragment(0, "y", text=B[:3]), fragment(0, "y", text=B[3:])]
    deltas = [[*whole, *ends]] if together else [[piece] for piece in (*whole, *ends)]
    expected = (
        ("call", "hist_tool_1", "f", A, '"x"'),
        ("call", "hist_tool_2", "f", B, '"y"'),
        ("call", "hist_tool_3", "f", A, '"z"'),
    )
    stream = openai_stream(*(calls(*delta) for delta in deltas), chunk({}, "tool_calls"))
    assert message_outline(answer(OPENAI_CHAT, stream)) == expected
    entries = [fragment(0, name, "f", text) for name, text in (("x", A), ("y", B), ("z", A))]
    body = {"choices": [{"message": {"tool_calls": entries}, "finish_reason": "tool_calls"}]}
    assert message_outline(body_answer(OPENAI_CHAT, body)[1]) == expected


def test_a_fragment_without_an_index_belongs_to_the_previous_call() -> None:
    stream = openai_stream(calls(fragment(3, "x", "f")), calls(fragment(None, text=A)))
    assert message_outline(answer(OPENAI_CHAT, stream)) == (("call", "hist_tool_1", "f", A, '"x"'),)


def test_a_call_starts_when_its_name_is_known_and_ends_once() -> None:
    stream = openai_stream(
        calls(fragment(0, "x", text='{"a"')), calls(fragment(0, None, "f", ":1}")), chunk({}, "tool_calls")
    )
    events, _ = run(decode(OPENAI_CHAT), [stream])
    call = mint(1)
    assert events == [
        CallStarted(call, "f"),
        ArgumentsDelta(call, '{"a"'),
        ArgumentsDelta(call, ":1}"),
        Finish("tool_calls"),
        CallDone(call),
    ]


@pytest.mark.parametrize("more", [1, 2])
def test_a_call_ends_once_even_if_arguments_follow_the_finish_reason(more: int) -> None:
    stream = openai_stream(
        calls(fragment(0, "x", "f", '{"a"')),
        *(chunk({}, "tool_calls") for _ in range(more)),
        calls(fragment(0, text=":1}")),
        *(chunk({}, "tool_calls") for _ in range(more)),
    )
    events, message = run(decode(OPENAI_CHAT), [stream])
    assert [event for event in events if isinstance(event, CallDone)] == [CallDone(mint(1))]
    assert events[-1] == CallDone(mint(1))  # after all its arguments
    assert isinstance(message, Message)
    assert message.calls[0].arguments == {"a": 1}


def test_a_finished_call_is_kept_if_the_stream_breaks_off_later() -> None:
    decoder = decode(OPENAI_CHAT)
    decoder.feed(openai_stream(calls(fragment(0, "x", "f", A)), chunk({}, "tool_calls"), done=False))
    with pytest.raises(AnswerFault):
        decoder.close()
    assert [call.arguments for call in decoder.partial_message().calls] == [{"a": 1}]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"a":1}{"b":2}',
        "null",
        "3",
        "[1]",
        '"x"',
        '{"a":1,"a":2}',
        '{"a":NaN}',
        '{"a":1} trailing',
        '{"a":"\\ud800"}',
    ],
)
def test_malformed_arguments_become_an_empty_object_and_are_kept_verbatim(text: str) -> None:
    (call,) = answer(
        OPENAI_CHAT, openai_stream(calls(fragment(0, "x", "f", text)), chunk({}, "tool_calls"))
    ).calls
    assert (call.json, call.raw) == (b"{}", text)


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_empty_call_arguments_are_decoded_as_an_empty_object(text: str) -> None:
    stream = openai_stream(calls(fragment(0, "x", "f", text)), chunk({}, "tool_calls"))
    (call,) = answer(OPENAI_CHAT, stream).calls
    assert (call.json, call.raw) == (b"{}", None)


def test_valid_streamed_arguments_keep_the_exact_bytes_of_the_model() -> None:
    text = '{ "z" : 1.10,\t"a":"\\u00e9é/\\/" , "big":1e5}'
    (call,) = answer(OPENAI_CHAT, openai_stream(calls(fragment(0, "x", "f", f"{text}\n")))).calls
    assert call.json == text.encode()


def test_a_character_split_across_two_deltas_is_joined() -> None:
    stream = openai_stream(
        b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\ude00b\\udc00"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"c\\ud800"}}]}\n\n',
    )
    events, message = run(decode(OPENAI_CHAT), [stream])
    assert isinstance(message, Message)
    assert message.text == "a😀b\ufffdc\ufffd"
    assert events == [TextDelta("a"), TextDelta("😀b\ufffd"), TextDelta("c")]


def test_the_parts_of_a_message_keep_the_order_of_the_stream() -> None:
    stream = openai_stream(
        chunk({"reasoning": "hm"}),
        chunk({"content": "one"}),
        calls(fragment(0, "x", "f", "{}")),
        chunk({"content": "two"}),
        chunk({"content": " three"}),
        calls(fragment(1, "y", "g", "{}")),
    )
    assert [part[:2] for part in message_outline(answer(OPENAI_CHAT, stream))] == [
        ("thinking", "hm"),
        ("text", "one"),
        ("call", "hist_tool_1"),
        ("text", "two three"),
        ("call", "hist_tool_2"),
    ]


def test_an_answer_may_have_two_hundred_calls_but_not_ten_thousand() -> None:
    deltas = [calls(fragment(number, f"c{number}", "f", "{}")) for number in range(10_000)]
    assert len(answer(OPENAI_CHAT, openai_stream(*deltas[:200])).calls) == 200
    _, fault = run(decode(OPENAI_CHAT), [openai_stream(*deltas)])
    assert isinstance(fault, AnswerFault)


def test_a_deprecated_function_call_and_a_refusal_are_decoded() -> None:
    stream = openai_stream(
        chunk({"function_call": {"name": "f", "arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ":1}"}}),
        chunk({"refusal": "No."}, "function_call"),
    )
    assert message_outline(answer(OPENAI_CHAT, stream)) == (
        ("call", "hist_tool_1", "f", A, ""),
        ("text", "No."),
    )


NO_CALL: Fields = {"name": "", "arguments": ""}


def test_an_empty_deprecated_function_call_does_not_count_as_a_call() -> None:
    stream = openai_stream(
        chunk({"role": "assistant", "content": "", "function_call": NO_CALL}),
        chunk({"content": "Hi.", "function_call": NO_CALL}),
        chunk({"function_call": NO_CALL}, "stop"),
    )
    events, message = run(decode(OPENAI_CHAT, OPENAI), [stream])
    assert isinstance(message, Message)
    assert message_outline(message) == (("text", "Hi."),)
    assert events == [TextDelta("Hi."), Finish("stop")]
    body = {"content": "Hi.", "function_call": NO_CALL, "tool_calls": None}
    assert body_answer(OPENAI_CHAT, {"choices": [{"message": body, "finish_reason": "stop"}]})[1] == message


def test_an_empty_deprecated_function_call_next_to_a_tool_call_adds_no_call() -> None:
    both = {"tool_calls": [fragment(0, "x", "f", A)], "function_call": NO_CALL}
    stream = openai_stream(chunk(both), chunk({"function_call": NO_CALL}, "tool_calls"))
    assert message_outline(answer(OPENAI_CHAT, stream)) == (("call", "hist_tool_1", "f", A, '"x"'),)


def test_the_last_usage_chunk_overrides_earlier_usage_chunks() -> None:
    first = chunk({"content": "x"}, usage={"prompt_tokens": 1, "completion_tokens": 1})
    last = {
        "choices": [],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 32},
        },
    }
    decoder = decode(OPENAI_CHAT)
    decoder.feed(openai_stream(first, chunk({}, "stop"), last))
    assert decoder.usage == Usage(100, 20, 64, 32)
    assert decoder.finish_reason == "stop"


@pytest.mark.parametrize("usage", [{"prompt_cache_hit_tokens": 5}, {"cached_tokens": 5}])
def test_cached_token_counts_of_compatible_servers_are_decoded(usage: dict[str, object]) -> None:
    decoder = decode(OPENAI_CHAT)
    decoder.feed(openai_stream({"choices": [{"delta": {}, "usage": {"prompt_tokens": 9, **usage}}]}))
    assert decoder.usage == Usage(9, 0, 5, 0)


def test_a_stream_without_the_end_marker_keeps_only_finished_parts() -> None:
    stream = openai_stream(
        chunk({"content": "t"}), calls(fragment(0, "x", "f", A)), chunk({}, "stop"), done=False
    )
    decoder = decode(OPENAI_CHAT, OPENAI)
    _, fault = run(decoder, [stream])
    assert isinstance(fault, AnswerFault)
    assert message_outline(decoder.partial_message()) == (
        ("text", "t"),
        ("call", "hist_tool_1", "f", A, '"x"'),
    )


def test_without_a_finish_reason_no_call_is_kept() -> None:
    decoder = decode(OPENAI_CHAT, OPENAI)
    run(decoder, [openai_stream(chunk({"content": "t"}), calls(fragment(0, "x", "f", A)), done=False)])
    assert message_outline(decoder.partial_message()) == (("text", "t"),)


@pytest.mark.parametrize(
    ("event", "kind", "status"),
    [
        (
            {"error": {"message": "The server had an error", "type": "server_error", "code": None}},
            "transient",
            500,
        ),
        ({"error": {"code": 429, "message": "Rate limited"}}, "rate_limit", 429),
        (
            {"error": {"message": "quota", "code": "insufficient_quota", "type": "insufficient_quota"}},
            "quota",
            429,
        ),
        ({"error": {"message": "too long", "code": "context_length_exceeded"}}, "overflow", None),
        (
            {"error": {"code": 502, "message": "Provider returned error", "metadata": {"raw": "upstream"}}},
            "transient",
            502,
        ),
        ({"object": "error", "message": "boom", "code": 500}, "transient", 500),
        ({"error": "plain words"}, "transient", None),
        *(
            (chunk({}, cut), "transient", None)
            for cut in ("error", "network_error", "insufficient_system_resource")
        ),
        (
            {"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 429, "message": "x"}}]},
            "rate_limit",
            429,
        ),
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, "quota", None),
        ({"base_resp": {"status_code": 1002, "status_msg": "rate limit exceeded"}}, "rate_limit", None),
        (
            chunk(
                {}, base_resp={"status_code": 2013, "status_msg": "tool result's tool id(call_X) not found"}
            ),
            "transcript",
            None,
        ),
    ],
)
def test_an_error_inside_a_200_stream_is_classified(
    event: dict[str, object], kind: str, status: int | None
) -> None:
    decoder = decode(OPENAI_CHAT, OPENAI)
    _, fault = run(decoder, [openai_stream(chunk({"content": "half"})), openai_stream(event)][1:])
    assert isinstance(fault, AnswerFault)
    assert (fault.failure.kind, fault.failure.status) == (kind, status)
    assert fault.status == status


def test_an_event_named_error_is_treated_as_an_error() -> None:
    _, fault = run(decode(OPENAI_CHAT), [b'event: error\ndata: {"message":"overloaded_error"}\n\n'])
    assert isinstance(fault, AnswerFault)


def test_an_error_inside_a_body_is_classified_like_an_error_inside_a_stream() -> None:
    for error in (
        {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
        {"choices": [{"error": {"code": 402, "message": "x"}, "message": {"content": ""}}]},
    ):
        with pytest.raises(AnswerFault) as raised:
            body_answer(OPENAI_CHAT, error)
        assert raised.value.failure.kind == "quota"
    good = {"choices": [{"message": {"content": "ok"}}], "base_resp": {"status_code": 0, "status_msg": ""}}
    assert body_answer(OPENAI_CHAT, good)[1].text == "ok"


def test_a_null_error_field_is_not_an_error() -> None:
    assert answer(OPENAI_CHAT, openai_stream(chunk({"content": "x"}, error=None))).text == "x"


def test_only_the_first_choice_is_decoded() -> None:
    other = {
        "choices": [{"index": 1, "delta": {"content": "other"}}, {"index": 0, "delta": {"content": "mine"}}]
    }
    assert answer(OPENAI_CHAT, openai_stream(other)).text == "mine"


@pytest.mark.requirement("U-09")
def test_a_response_body_gives_the_same_message_as_a_stream() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    tool_calls = [
        {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": A}},
        {"id": "call_0", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
    message = {"role": "assistant", "reasoning_content": "hm", "content": "t", "tool_calls": tool_calls}
    events, whole = body_answer(
        OPENAI_CHAT, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    )
    streamed = openai_stream(
        {"choices": [], "usage": usage},
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "t"}),
        calls({**tool_calls[0], "index": 0}),
        calls({**tool_calls[1], "index": 1}),
        chunk({}, "stop"),
    )
    assert (events, whole) == run(decode(OPENAI_CHAT, OPENAI), [streamed])
    assert events[:3] == [Usage(3, 2), ThinkingDelta("hm"), TextDelta("t")]


@pytest.mark.parametrize(
    "body", [{}, {"choices": []}, {"choices": [{"message": None}]}, {"error": {"message": "x"}}, []]
)
def test_a_response_body_without_a_message_is_reported_as_a_fault(body: object) -> None:
    with pytest.raises(AnswerFault):
        body_answer(OPENAI_CHAT, body)
